"""What the analysis claims of an expression, tried at random points: chords, pairs, orders, slopes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.structure.facts import Facts
from support.random_expressions import BOXES, EDGED, Generator, data, point, value


def shifted(at: dict, step: np.ndarray, names: list[str]) -> dict:
    """A point moved along all variables at once."""
    moved, start = dict(at), 0
    for name in names:
        size = np.size(at[name])
        moved[name] = np.asarray(at[name] + np.reshape(step[start : start + size], np.shape(at[name])))
        start += size
    return moved


def gradient(f: Callable, at: dict, names: list[str], h: float = 1e-5) -> np.ndarray:
    """Central differences over the variables used."""
    n = sum(np.size(at[name]) for name in names)
    rows = np.eye(n) * h
    return np.array([(f(shifted(at, row, names)) - f(shifted(at, -row, names))) / (2 * h) for row in rows])


def flat(at: dict, names: list[str]) -> np.ndarray:
    return np.concatenate([np.ravel(at[name]) for name in names])


def inside(at: dict) -> dict:
    """A point with room for differences."""
    return at | {name: np.clip(at[name], BOXES[name][0] + 1e-3, BOXES[name][1] - 1e-3) for name in EDGED}


def claims(found: Facts, f: Callable, rng: np.random.Generator) -> list[str]:
    """Claims that some random points refute."""
    names = sorted(found.leaves)
    wrong: list[str] = []
    pairs = [(point(rng), point(rng)) for _ in range(14)]
    pairs += [(x, {n: x[n] + 0.01 * (y[n] - x[n]) for n in x}) for x, y in pairs[:6]]
    for x, y in pairs:
        middle = {name: (x[name] + y[name]) / 2 for name in x}
        low, high, mid = f(x), f(y), f(middle)
        if not np.isfinite([low, high, mid]).all() or max(abs(low), abs(high), abs(mid)) > 1e8:
            continue
        gap = float(np.sum((flat(x, names) - flat(y, names)) ** 2)) if names else 0.0
        slack = 1e-9 * (1 + abs(low) + abs(high) + abs(mid))
        lies = found.interval.value
        if not all(lies.lo - slack <= r <= lies.hi + slack for r in (low, high)):
            wrong.append(f"interval {lies}, value {low}, {high}")
        if found.constant and abs(low - high) > slack:
            wrong.append("constant")
        average = (low + high) / 2
        rho, alpha = found.below.value.number, found.above.value.number
        if rho < np.inf and mid > average + rho / 8 * gap + slack:
            wrong.append(f"{found.below}: {mid} > {average} + {rho / 8 * gap}")
        if alpha < np.inf and mid < average - alpha / 8 * gap - slack:
            wrong.append(f"{found.above}: {mid} < {average} - {alpha / 8 * gap}")
        if found.C < np.inf and abs(high - low) > found.C * np.sqrt(gap) + slack:
            wrong.append(f"{found.lipschitz}: {abs(high - low)} > {found.C * np.sqrt(gap)}")
        for name, sign in found.leaves.items():
            up = {**x, name: np.maximum(x[name], y[name])}
            down = {**x, name: np.minimum(x[name], y[name])}
            if sign and (f(up) - f(down)) * sign < -slack:
                wrong.append(f"monotone in {name}: {sign}, {f(down)} to {f(up)}")
    if found.smooth and names:
        wrong += smoothness(found, f, [(inside(x), inside(y)) for x, y in pairs[:5]], names)
    return wrong


def smoothness(found: Facts, f: Callable, pairs: list, names: list[str]) -> list[str]:
    """Pair tests of the gradient, and a hunt for kinks along segments by bisection on the larger
    change of the slope."""
    wrong = []
    for x, y in pairs:
        start, end = flat(x, names), flat(y, names)
        ends = [gradient(f, x, names), gradient(f, y, names)]
        scale = 1 + np.abs(ends).max()
        if not np.isfinite(scale) or scale > 1e5:
            continue
        length = np.linalg.norm(start - end)
        if found.L is not None and found.L < np.inf:
            change = np.linalg.norm(ends[0] - ends[1])
            if change > found.L * length * (1 + 1e-3) + 1e-5 * scale:
                wrong.append(f"{found.gradient}: {change} > {found.L * length}")
        a, b = 0.0, 1.0
        left, right = ends
        steps = [x]
        for _ in range(14):
            m = (a + b) / 2
            at = shifted(x, m * (end - start), names)
            middle = gradient(f, at, names, 1e-6)
            steps.append(at)
            if np.linalg.norm(middle - left) >= np.linalg.norm(right - middle):
                b, right = m, middle
            else:
                a, left = m, middle
        jump = np.linalg.norm(right - left)
        # Between points 1e-4 apart, a slope may change by the largest curvature around; a kink
        # changes it by a fixed amount.
        curved = np.linalg.norm(
            gradient(f, shifted(x, (a - 3e-4) * (end - start), names), names, 1e-6) - left
        )
        if np.isfinite(jump) and jump > 0.02 * scale and jump > 20 * curved + 1e-3 * scale:
            # Where an intermediate value is next to underflow, differences say nothing: those of
            # two lengths disagree.
            again = [gradient(f, shifted(x, end_at * (end - start), names), names, 1e-5) for end_at in (a, b)]
            if max(np.linalg.norm(again[0] - left), np.linalg.norm(again[1] - right)) < 0.1 * jump:
                wrong.append(f"differentiable: slope jumps by {jump}")
    return wrong


def made(problem: ir.Problem, seed: int) -> ir.Expr:
    """The random expression of a seed."""
    generator = Generator(problem, seed)
    return generator.scalar(generator.rng.choice([2, 2, 3, 4]))


def tried(problem: ir.Problem, seed: int) -> tuple[ir.Expr, list[str], list[Facts]]:
    """A random expression, the claims about it that random points refute, and its facts: by the text
    alone, and with data."""
    expr, bound, rng = made(problem, seed), data(problem, seed), np.random.default_rng(seed)

    def f(at: dict) -> float:
        with np.errstate(all="ignore"):
            return float(value(expr, at, bound))

    known = [
        structure.facts_of(expr, problem=problem),
        structure.facts_of(expr, problem=problem, bound=bound),
    ]
    known = [found for found in known if not found.domain]
    return expr, [wrong for found in known for wrong in claims(found, f, rng)], known


def kinds(found: Facts) -> list[str]:
    """What is claimed of an expression, by the names of the tests."""
    if found.constant:
        return ["constant"]
    said = {
        "convex": found.convex, "concave": found.concave,
        "weakly convex": 0 < found.below.value.number < np.inf, "weakly concave": 0 < found.above.value.number < np.inf,
        "monotone in a variable": any(found.leaves.values()), "Lipschitz": np.inf > found.C,
        "gradient Lipschitz": found.L is not None and found.L < np.inf, "continuously differentiable": found.smooth,
    }  # fmt: skip
    return [name for name, holds in said.items() if holds]
