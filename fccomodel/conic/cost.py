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


def seconds(program: Assembled) -> float:
    """Seconds to the optimum, within a factor of three if the number of iterations is as usual."""
    numbers = FILL_A * program.A.nnz + FILL_P * program.P.nnz
    rate = next(rate for most, rate in NUMBER_S if numbers <= most)
    pairs = sum(size**2 for kind, size, _ in program.cones if kind == "semidefinite")
    curved = any(kind in CURVED for kind, *_ in program.cones)
    iterations = CURVED_ITERATIONS if curved else ITERATIONS
    return iterations * (rate * numbers + PAIR_S * pairs + ROW_S * sum(program.A.shape))
