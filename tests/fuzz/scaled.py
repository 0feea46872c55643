"""Random feasible convex models whose numbers are between 1e-10 and 1e10, with their optima."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Powers of 10 of the numbers.
SMALLEST, LARGEST = -10.0, 10.0


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """A model with its optimum, and a point that has it.

    terms   the size of what the optimum is a sum of: its rounding is relative to that
    """

    text: str
    optimum: float
    point: np.ndarray
    terms: float
    data: dict[str, Any] = field(default_factory=dict)


class Numbers:
    """Random numbers of any size from a seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)

    def size(self, low: float = SMALLEST, high: float = LARGEST) -> float:
        """10 to a uniform power, with three digits."""
        return float(f"{10 ** self.random.uniform(low, high):.2e}")

    def count(self, most: int = 6) -> int:
        return self.random.randrange(2, most)


def model(seed: int) -> Scaled:
    """The model of a seed."""
    numbers = Numbers(seed)
    kinds = [
        linear,
        quadratic,
        least_norm,
        one_function,
        distances,
        over_a_ball,
        over_a_box,
        entropy,
        fitted,
        level_set,
        needs,
    ]
    made: Callable[[Numbers], Scaled] = numbers.random.choice(kinds)
    return made(numbers)


def _written(coefficients: np.ndarray, name: str = "x") -> str:
    return " + ".join(f"{float(c)!r} * {name}[{k + 1}]" for k, c in enumerate(coefficients))


def _squares(weights: np.ndarray, centre: np.ndarray) -> str:
    terms = zip(weights.tolist(), centre.tolist(), strict=True)
    return " + ".join(f"{w!r} * (x[{k + 1}] - {m!r})^2" for k, (w, m) in enumerate(terms))


def linear(numbers: Numbers) -> Scaled:
    """A linear program: as many active constraints as variables, whose multipliers give the costs;
    rows in units of their own."""
    n = numbers.count()
    units, rows = (
        np.array([numbers.size(-5, 5) for _ in range(n)]),
        [numbers.size(-5, 5) for _ in range(n + 2)],
    )
    A = numbers.rng.normal(size=(n + 2, n))
    x, nu = numbers.rng.normal(size=n), np.append(numbers.rng.uniform(0.1, 1, n), [0.0, 0.0])
    slack = np.append(np.zeros(n), numbers.rng.uniform(0.5, 2, 2))
    c, b = A.T @ nu, A @ x - slack
    scale, far = numbers.size(-5, 5), numbers.size(-2, 5)
    x, A, b = x * far * units, A / units, b * far
    lines = [f"c{k}: {_written(A[k] * rows[k])} >= {float(b[k] * rows[k])!r};" for k in range(n + 2)]
    c = c / units * scale
    text = f"var x[{n}];\nminimize {_written(c)};\nsubject to\n" + "\n".join(lines) + "\n"
    return Scaled(text=text, optimum=float(c @ x), point=x, terms=float(np.abs(c) @ np.abs(x)))


def quadratic(numbers: Numbers) -> Scaled:
    """Weighted squares around a centre, and one active half-space."""
    n, far, scale, row = numbers.count(), numbers.size(-5, 8), numbers.size(-5, 5), numbers.size()
    weights, a = numbers.rng.uniform(0.5, 2, n), numbers.rng.normal(size=n)
    centre = numbers.rng.normal(size=n) * far
    beyond = numbers.random.uniform(0.5, 2) * far
    shift = a / weights
    x = centre + shift * (beyond / float(a @ shift))
    squares = _squares(weights, centre)
    level = float(a @ centre + beyond) * row
    text = (
        f"var x[{n}];\nminimize {scale!r} * ({squares});\nsubject to\nc: {_written(a * row)} >= {level!r};\n"
    )
    best = scale * float(weights @ (x - centre) ** 2)
    return Scaled(
        text=text, optimum=best, point=x, terms=best + scale * float(weights @ (x**2 + centre**2)) * 1e-8
    )


def least_norm(numbers: Numbers) -> Scaled:
    """The least squares, or norm, with a sum."""
    n, level, unit = numbers.count(), numbers.size(-10, 10), numbers.size(-5, 5)
    square = numbers.random.random() < 0.5
    x = np.full(n, level / unit / n)
    best = float(x @ x) if square else float(np.linalg.norm(x))
    text = (
        f"var x[{n}];\nminimize {'sumsq' if square else 'norm2'}(x);\nsubject to\nc: {unit!r} * "
        f"sum(x) >= {level!r};\n"
    )
    return Scaled(text=text, optimum=best, point=x, terms=best)


def one_function(numbers: Numbers) -> Scaled:
    """The least or largest x whose function reaches a level."""
    power, cost = numbers.random.uniform(-8, 8), numbers.size(-5, 5)
    root = float(f"{10**power:.3e}")
    log = round(numbers.random.uniform(-20, 35), 2)
    text, x = numbers.random.choice(
        [
            (f"minimize {cost!r} * x;\nsubject to\nc: log(x) >= {log};", math.exp(log)),
            (f"minimize {cost!r} * x;\nsubject to\nc: sqrt(x) >= {root!r};", root**2),
            (f"maximize {cost!r} * x;\nsubject to\nc: x^2 <= {root!r};", math.sqrt(root)),
            (f"maximize {cost!r} * x;\nsubject to\nc: exp(x) <= {root!r};", math.log(root)),
            (f"minimize {cost!r} * x;\nsubject to\nc: exp(-x) <= {root!r};", -math.log(root)),
            (f"minimize {cost!r} * x;\nsubject to\nc: x >= {root!r};", root),
            (f"minimize {cost!r} * x;\nsubject to\nc: 1 / x <= {root!r};\nd: x >= 0;", 1 / root),
        ]
    )
    return Scaled(text=f"var x;\n{text}\n", optimum=cost * x, point=np.array([x]), terms=abs(cost * x))


def distances(numbers: Numbers) -> Scaled:
    """Absolute distances from numbers, and a sum beyond theirs."""
    n, unit = numbers.count(), numbers.size(-8, 8)
    near = numbers.rng.uniform(0.5, 2, n) * unit
    level = float(near.sum() * numbers.random.uniform(1.1, 4))
    terms = " + ".join(f"abs(x[{k + 1}] - {float(a)!r})" for k, a in enumerate(near))
    x = near * (level / near.sum())
    text = f"var x[{n}];\nminimize {terms};\nsubject to\nc: sum(x) >= {level!r};\n"
    return Scaled(text=text, optimum=level - float(near.sum()), point=x, terms=level)


def over_a_ball(numbers: Numbers) -> Scaled:
    """A linear function over a ball, as a set or a constraint."""
    n, radius = numbers.count(), numbers.size()
    c = numbers.rng.normal(size=n) * numbers.size(-5, 5)
    x = -c * (radius / np.linalg.norm(c))
    best = float(c @ x)
    inside, limit = numbers.random.choice(
        [
            (f" in ball({radius!r})", ""),
            ("", f"subject to\nc: norm2(x) <= {radius!r};\n"),
            ("", f"subject to\nc: sumsq(x) <= {float(radius**2)!r};\n"),
        ]
    )
    return Scaled(
        text=f"var x[{n}]{inside};\nminimize {_written(c)};\n{limit}", optimum=best, point=x, terms=abs(best)
    )


def over_a_box(numbers: Numbers) -> Scaled:
    """A linear function over a box, as a set or as constraints."""
    n, wide = numbers.count(), numbers.size()
    c = numbers.rng.normal(size=n) * numbers.size(-5, 5)
    x = -np.sign(c) * wide
    best = float(c @ x)
    declared = numbers.random.random() < 0.5
    head = f"var x[{n}] >= {-wide!r}, <= {wide!r};\n" if declared else f"var x[{n}];\n"
    limits = "" if declared else "subject to\n" + f"low: x >= {-wide!r};\nhigh: x <= {wide!r};\n"
    return Scaled(
        text=f"{head}minimize {_written(c)};\n{limits}",
        optimum=best,
        point=x,
        terms=float(np.abs(c) @ np.abs(x)),
    )


def entropy(numbers: Numbers) -> Scaled:
    """The largest entropy with a sum."""
    n, total = numbers.count(), numbers.size(-6, 8)
    x = np.full(n, total / n)
    best = total * math.log(total / n)
    terms = " + ".join(f"x[{k + 1}] * log(x[{k + 1}])" for k in range(n))
    text = f"var x[{n}] >= 0;\nminimize {terms};\nsubject to\nc: sum(x) == {total!r};\n"
    return Scaled(text=text, optimum=best, point=x, terms=total * max(1.0, abs(math.log(total / n))))


def fitted(numbers: Numbers) -> Scaled:
    """Least squares of rows in units of their own."""
    n, rows = numbers.count(4), 30
    units, size = np.array([numbers.size(-4, 4) for _ in range(n)]), numbers.size(-5, 5)
    X = numbers.rng.normal(size=(rows, n)) * units
    y = (X / units @ numbers.rng.normal(size=n) + numbers.rng.normal(size=rows)) * size
    w = np.linalg.lstsq(X / units, y, rcond=None)[0] / units
    best = float(((X @ w - y) ** 2).mean())
    text = f"data D : table(x: real[{n}], y: real);\nvar w[{n}];\nminimize E[z ~ D] (dot(w, z.x) - z.y)^2;\n"
    return Scaled(text=text, optimum=best, point=w, terms=float((y**2).mean()), data={"D": {"x": X, "y": y}})


def level_set(numbers: Numbers) -> Scaled:
    """A linear function over an ellipse around a centre."""
    n, size = numbers.count(4), numbers.size(-8, 8)
    c, weights = numbers.rng.normal(size=n), numbers.rng.uniform(0.5, 2, n)
    centre = numbers.rng.normal(size=n) * size
    move = -c / weights
    x = centre + move * (size / math.sqrt(float(weights @ move**2)))
    squares = _squares(weights, centre)
    text = f"var x[{n}];\nminimize {_written(c)};\nsubject to\nc: {squares} <= {float(size**2)!r};\n"
    return Scaled(text=text, optimum=float(c @ x), point=x, terms=float(np.abs(c) @ np.abs(x)))


def needs(numbers: Numbers) -> Scaled:
    """Squared distances from needs, and a total that is beyond their sum."""
    n, need = numbers.count(), numbers.size(-8, 8)
    total = float(need * n * numbers.random.uniform(1.1, 3))
    x = np.full(n, total / n)
    best = n * (total / n - need) ** 2
    text = (
        f"var x[{n}];\nminimize sum[i in 1 .. {n}] (x[i] - {need!r})^2;\nsubject to\nc: sum(x) >= "
        f"{total!r};\n"
    )
    return Scaled(text=text, optimum=best, point=x, terms=best + 1e-8 * total**2)
