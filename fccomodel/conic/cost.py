"""What the interior-point method costs, foreseen from the sizes of a program: the same on every
machine, and at every load."""

from __future__ import annotations

from fccomodel.conic.cones import CURVED, Assembled

#: Numbers of a factorisation for each one of A and of P.
FILL_A, FILL_P = 1.6, 2.0
#: Iterations, of programs without and with cones that are not symmetric.
ITERATIONS, MORE_ITERATIONS = 20, 40
#: Seconds of an iteration for each row and column, for each pair of entries of a semidefinite
#: matrix's triangle; and for each number, where there are at most so many: what leaves the cache is
#: dear. Of one core at 2.5 GHz, by the models of textbooks and by regressions of up to 60,000 rows.
ROW_S, PAIR_S = 1e-7, 4e-8
NUMBER_S = ((300_000, 4e-8), (1_000_000, 9e-8), (float("inf"), 2e-7))


def seconds(program: Assembled) -> float:
    """Seconds to the optimum, within a factor of three where iterations are as many as usual."""
    numbers = FILL_A * program.A.nnz + FILL_P * program.P.nnz
    rate = next(rate for most, rate in NUMBER_S if numbers <= most)
    pairs = sum(size**2 for kind, size, _ in program.cones if kind == "semidefinite")
    curved = any(kind in CURVED for kind, *_ in program.cones)
    return (MORE_ITERATIONS if curved else ITERATIONS) * (
        rate * numbers + PAIR_S * pairs + ROW_S * sum(program.A.shape)
    )
