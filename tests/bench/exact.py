"""Models whose optima are known in exact arithmetic, at all scales: for ``bounds.py``.

Every number of a model is the float64 that it is bound as, and optima are those of these numbers as
fractions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

Exact = list[Fraction]
#: Powers of 10 that columns, objectives and points are scaled by.
SCALES = (-10, 10)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model with its exact optimum.

    value   the objective at a point, exactly       points   some points, by the variables' names
    drawn   an expectation is over a distribution: nothing may be said to be proved
    """

    name: str
    text: str
    optimum: Fraction
    value: Callable[[dict[str, np.ndarray]], Fraction]
    points: list[dict[str, np.ndarray]]
    data: dict[str, Any] = field(default_factory=dict)
    drawn: bool = False


def models(seed: int) -> Iterator[Model]:
    """One model of every kind."""
    rng = np.random.default_rng(seed)
    yield least_squares(rng, offset=0.0)
    yield least_squares(rng, offset=10.0 ** rng.uniform(0, 18))
    yield form_on_a_box(rng)
    yield diagonal_on_a_box(rng)
    yield linear_on_a_box(rng)
    yield drawn(rng)


def scale(rng: np.random.Generator) -> float:
    return float(10.0 ** rng.uniform(*SCALES))


def fractions(values: np.ndarray) -> list[Any]:
    """The numbers of an array, exactly."""
    return [fractions(v) if np.ndim(v) else Fraction(float(v)) for v in np.asarray(values, dtype=float)]


def solved(matrix: list[Exact], right: Exact) -> Exact | None:
    """The solution of a square system by elimination; None where it is singular."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def least_squares(rng: np.random.Generator, offset: float) -> Model:
    """Means of squares with columns of any scale, and one far from 0; nearly collinear ones among them."""
    n, d = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    x = rng.normal(size=(n, d)) * [scale(rng) for _ in range(d)]
    if d > 1 and rng.random() < 0.3:
        x[:, 1] = x[:, 0] * (1 + 10.0 ** rng.uniform(-12, -2) * rng.normal(size=n))
    x[:, 0] += offset
    y, factor, constant = scale(rng) * rng.normal(size=n), scale(rng), float(rng.choice([0.0, 1.0, 1e6]))
    rows, targets, one = fractions(x), fractions(y), Fraction(factor)

    def value(point: dict[str, np.ndarray]) -> Fraction:
        w, b = fractions(point["w"]), Fraction(float(point["b"]))
        off = [
            sum(a * c for a, c in zip(row, w, strict=True)) + b - t
            for row, t in zip(rows, targets, strict=True)
        ]
        return one * sum(o * o for o in off) / n + Fraction(constant)

    wide = [[*row, Fraction(1)] for row in rows]
    size = d + 1
    normal = [[sum((row[i] * row[j] for row in wide), Fraction(0)) for j in range(size)] for i in range(size)]
    right = [
        sum((row[i] * t for row, t in zip(wide, targets, strict=True)), Fraction(0)) for i in range(size)
    ]
    best = solved(normal, right)
    found = np.linalg.lstsq(np.column_stack([x, np.ones(n)]), y, rcond=None)[0]
    if best is not None:
        found = np.array([float(v) for v in best])
    points = [{"w": found[:d] * m, "b": found[d] * m} for m in (1.0, 0.0, 0.5, 1 + 1e-9, 1 + 1e-4)]
    points.append({"w": found[:d] * (1 + 1e-6 * rng.normal(size=d)), "b": found[d]})
    text = (
        f"dim d; data D : table(x: real[d], y: real); const s = {factor!r}; var w[d]; var b; "
        f"minimize f: s * E[z ~ D] (dot(w, z.x) + b - z.y)^2 + {constant!r};"
    )
    exact = {"w": np.zeros(d), "b": np.zeros(())}
    if best is None:
        best = [Fraction(float(v)) for v in found]
    least = least_of(one, wide, targets, best) + Fraction(constant)
    assert value(exact) >= least
    return Model(
        name="least squares",
        text=text,
        optimum=least,
        value=value,
        points=points,
        data={"D": {"x": x, "y": y}},
    )


def least_of(factor: Fraction, rows: list[Exact], targets: Exact, w: Exact) -> Fraction:
    """The mean of squares at exact coefficients."""
    off = [sum(a * c for a, c in zip(row, w, strict=True)) - t for row, t in zip(rows, targets, strict=True)]
    return factor * sum(o * o for o in off) / len(rows)


def form_on_a_box(rng: np.random.Generator) -> Model:
    """x'Sx for two nearly equal rows on a box: nearly semidefinite, of either sign."""
    r, size = scale(rng), scale(rng)
    a = size * float(rng.choice([1.0, rng.uniform(0.5, 2)]))
    off = a * (1 + float(rng.choice([0.0, 1.0, -1.0])) * 10.0 ** rng.uniform(-16, -8))
    S = np.array([[a, off], [off, a]])
    p, q, edge = Fraction(a), Fraction(off), Fraction(r)
    corners = [p * x * x + 2 * q * x * y + p * y * y for x, y in itertools.product((-edge, edge), repeat=2)]
    sides = [p * (edge**2) - q * q * edge**2 / p] if abs(q) <= p else []
    return _form(S, r, min([Fraction(0), *corners, *sides]), "two rows")


def diagonal_on_a_box(rng: np.random.Generator) -> Model:
    """Sums of squares of which one has the other sign, and is small."""
    d, r = int(rng.integers(2, 25)), scale(rng)
    values = np.array([scale(rng) for _ in range(d)])
    values[-1] = float(rng.choice([0.0, -1.0, 1.0])) * values.max() * 10.0 ** rng.uniform(-18, -9)
    lowest = sum((min(Fraction(0), v) for v in fractions(values)), Fraction(0)) * Fraction(r) ** 2
    return _form(np.diag(values), r, lowest, "diagonal")


def _form(S: np.ndarray, r: float, optimum: Fraction, name: str) -> Model:
    d, rows = len(S), fractions(S)

    def value(point: dict[str, np.ndarray]) -> Fraction:
        x = fractions(point["x"])
        return sum((x[i] * rows[i][j] * x[j] for i in range(d) for j in range(d)), Fraction(0))

    text = f"data S : real[{d}, {d}]; var x[{d}] >= -{r!r}, <= {r!r}; minimize f: dot(x, S @ x);"
    points = [{"x": np.zeros(d)}, {"x": r * np.ones(d) / 3}, {"x": 1e-9 * r * np.ones(d)}]
    return Model(name=f"form: {name}", text=text, optimum=optimum, value=value, points=points, data={"S": S})


def linear_on_a_box(rng: np.random.Generator) -> Model:
    """A linear function of any scale on a box."""
    d, r = int(rng.integers(1, 5)), scale(rng)
    c = np.array([scale(rng) * rng.choice([-1.0, 1.0]) for _ in range(d)])
    exact = fractions(c)

    def value(point: dict[str, np.ndarray]) -> Fraction:
        return sum((a * b for a, b in zip(exact, fractions(point["x"]), strict=True)), Fraction(0))

    text = f"data c : real[{d}]; var x[{d}] >= -{r!r}, <= {r!r}; minimize f: dot(c, x);"
    best = -r * np.sign(c)
    points = [{"x": best}, {"x": best * (1 - 1e-12)}, {"x": np.zeros(d)}]
    least = -sum(abs(a) for a in exact) * Fraction(r)
    return Model(name="linear", text=text, optimum=Fraction(least), value=value, points=points, data={"c": c})


def drawn(rng: np.random.Generator) -> Model:
    """Means over a normal distribution, whose optima are known: of squares, and of a composition."""
    m, s, factor = float(rng.normal()), 10.0 ** float(rng.uniform(-3, 2)), scale(rng)
    mean, variance, one = Fraction(m), Fraction(s) ** 2, Fraction(factor)
    composed = rng.random() < 0.5
    inside = (
        f"(E[e ~ normal({m!r}, {s!r})] (w - e))^2" if composed else f"E[e ~ normal({m!r}, {s!r})] (w - e)^2"
    )
    least = Fraction(0) if composed else one * variance

    def value(point: dict[str, np.ndarray]) -> Fraction:
        return one * (Fraction(float(point["w"])) - mean) ** 2 + least

    points = [{"w": np.array(m)}, {"w": np.array(m + s / 100)}, {"w": np.array(0.0)}]
    text = f"var w; minimize f: {factor!r} * {inside};"
    return Model(name="drawn", text=text, optimum=least, value=value, points=points, drawn=True)
