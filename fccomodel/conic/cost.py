"""The predicted cost of the interior-point method. It depends only on the sizes of a program, not
on the machine or its load."""

from __future__ import annotations

from fccomodel.conic.cones import CURVED, Assembled

#: Nonzero entries of the factorisation for each one of A.
FILL_A = 1.6
#: Nonzero entries of the factorisation for each one of P.
FILL_P = 2.0
#: Iterations for a program of symmetric cones.
ITERATIONS = 20
#: Iterations for a program with other cones.
CURVED_ITERATIONS = 40
# Seconds of one core at 2.5 GHz, measured on models of textbooks and regressions of up to 60,000 rows.
#: Seconds of an iteration for each row and each column.
ROW_S = 1e-7
#: Seconds of an iteration for each pair of entries of a semidefinite matrix's triangle.
PAIR_S = 4e-8
#: (largest number of entries, seconds of an iteration for each): entries outside the cache cost more.
NUMBER_S = ((300_000, 4e-8), (1_000_000, 9e-8), (float("inf"), 2e-7))
#: Bytes for each entry of A and P while a program is built: places, values, and copies of both.
BUILT_BYTES = 100
#: Bytes for each entry of A and P that Clarabel takes: its copies and the factorisation.
ENTRY_BYTES = 140
#: Bytes for each pair of entries of a semidefinite matrix's triangle: a dense block and its factor.
PAIR_BYTES = 32
#: Bytes for each row and each column: vectors of the iterations.
ROW_BYTES = 500


def bytes_needed(program: Assembled) -> float:
    """Bytes that the program takes, with its optimum found by all rows at once."""
    factored = ENTRY_BYTES * _entries(program) + PAIR_BYTES * _pairs(program)
    return bytes_built(program) + factored + ROW_BYTES * sum(program.A.shape)


def bytes_built(program: Assembled) -> float:
    """Bytes that the program takes by itself, while it is built."""
    return float(BUILT_BYTES * _entries(program))


def _entries(program: Assembled) -> int:
    """Nonzero entries of A and P."""
    return int(program.A.nnz + program.P.nnz)


def _pairs(program: Assembled) -> int:
    """Pairs of entries of the triangles of semidefinite matrices."""
    return sum(size**2 for kind, size, _ in program.cones if kind == "semidefinite")


def seconds(program: Assembled) -> float:
    """Seconds to the optimum, within a factor of three if the number of iterations is as usual."""
    numbers = FILL_A * program.A.nnz + FILL_P * program.P.nnz
    rate = next(rate for most, rate in NUMBER_S if numbers <= most)
    curved = any(kind in CURVED for kind, *_ in program.cones)
    iterations = CURVED_ITERATIONS if curved else ITERATIONS
    return iterations * (rate * numbers + PAIR_S * _pairs(program) + ROW_S * sum(program.A.shape))
