"""Largest errors of prox, envelope and conjugate: every atom that has one, and random compositions,
against brute force.

    python tests/bench/prox.py [COMPOSITIONS] [SEED]

Scalars: grid and golden section in float64. Vectors: CVXPY with Clarabel. Errors are relative to 1
+ |value|; of a prox, the excess of its objective over the least one found.
"""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.proximal_tools import (
    T,
    atoms_of_one_number,
    random_vector,
    scalar_errors,
    scalars,
    show,
    vector_errors,
)  # noqa: E402

from fccomodel.library import atoms  # noqa: E402
from fccomodel.library.proximal import of  # noqa: E402
from fccomodel.structure import facts_of  # noqa: E402

POINTS = np.array([-2.3, -0.7, 0.0, 0.4, 3.0])
MEASURES = ("prox", "envelope", "conjugate", "fenchel", "value")


def line(name: str, errors: dict[str, float], kind: str) -> str:
    return f"{name[:44]:<45} {kind:<10}" + "".join(
        f"{errors[m]:>10.1e}" if m in errors else f"{'':>10}" for m in MEASURES[:4]
    )


def main(count: int, seed: int) -> None:
    print(f"{'':<56}" + "".join(f"{m:>10}" for m in MEASURES[:4]))
    worst: dict[str, tuple[float, str]] = {}

    def note(name: str, errors: dict[str, float]) -> None:
        for measure, error in errors.items():
            worst[measure] = max(worst.get(measure, (0.0, "")), (error, name))

    known = 0
    for name, node in atoms_of_one_number().items():
        f = of(node, (T,), facts_of, where=atoms.Interval(0.0, inf, True, True))
        if isinstance(f, str):
            print(f"{name:<18} none: {f}")
            continue
        known += 1
        errors = scalar_errors(node, f, POINTS)
        note(name, errors)
        print(line(name, errors, type(f).__name__))
    rng = np.random.default_rng(seed)
    kinds: dict[str, int] = {}
    for node, f in scalars(rng, count - count // 3):
        errors = scalar_errors(node, f, POINTS[1:4])
        kinds[type(f).__name__] = kinds.get(type(f).__name__, 0) + 1
        note(show(node), errors)
    for _ in range(count // 3):
        node, holes, twin = random_vector(rng)
        f = of(node, holes, facts_of)
        if isinstance(f, str):
            print(f"{show(node)}  none: {f}")
            continue
        kinds[type(f).__name__] = kinds.get(type(f).__name__, 0) + 1
        note(show(node), vector_errors(f, twin, holes[0].shape[0] if holes[0].shape else len(holes), rng))
    print(
        f"\n{known} atoms, {sum(kinds.values())} random compositions: "
        f"{', '.join(f'{n} {k}' for k, n in sorted(kinds.items()))}"
    )
    for measure in MEASURES:
        error, name = worst[measure]
        print(f"largest error of {measure:<10} {error:.1e}   {name[:96]}")


if __name__ == "__main__":
    main(*(int(a) for a in [*sys.argv[1:], *("240", "0")[len(sys.argv) - 1 :]]))
