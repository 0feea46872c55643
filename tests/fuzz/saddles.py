"""Random models with a known saddle, or with a pole, or with neither, and what a solve may say of them.

Each case begins at the saddle, or where its steps lead to it. ``bar`` is an objective, minimised,
that the saddle is above and that some point is below: a verdict "Solved" at or above it is false.
Of a pole it is minus infinity. Cases without either have their optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Random = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, its data, where to begin (None: where a solve does), and what is true of it."""

    text: str
    bar: float = math.inf
    optimum: float | None = None
    data: dict[str, Any] = field(default_factory=dict)
    start: dict[str, Any] | None = None

    def negated(self) -> Case:
        """The same by ``maximize``."""
        head, _, rest = self.text.partition("minimize ")
        objective, end, constraints = rest.partition(";")
        text = f"{head}maximize -({objective}){end}{constraints}"
        return Case(text=text, bar=self.bar, optimum=self.optimum, data=self.data, start=self.start)


def _number(value: float) -> str:
    return f"{value:.6f}" if value >= 0 else f"({value:.6f})"


def product(random: Random) -> Case:
    """An indefinite quadratic form around a centre, with fourth powers: -m t^2 + c t^4 along its
    most negative direction."""
    d = int(random.integers(2, 6))
    values = np.append(random.uniform(0.5, 2.0, d - 1), -random.uniform(0.3, 2.0))
    basis = np.linalg.qr(random.standard_normal((d, d)))[0]
    power = random.uniform(0.05, 0.5)
    text = (
        f"dim d; data Q : real[d, d]; data a : real[d]; var x[d]; "
        f"minimize dot(x - a, Q @ (x - a)) + {power:.6f} * sum[i in d] (x[i] - a[i])^4;"
    )
    centre = random.standard_normal(d)
    form = basis @ np.diag(values) @ basis.T
    return Case(
        text=text, data={"Q": form, "a": centre}, start={"x": centre}, bar=-(values[-1] ** 2) / (8 * power)
    )


def attracted(random: Random) -> Case:
    """A product of two shifted variables whose steps from the origin stay on the line x = y."""
    a, power = random.uniform(0.5, 2.0), random.uniform(0.05, 0.4)
    text = (
        f"var x; var y; minimize (x - {a:.6f}) * (y - {a:.6f}) + {power:.6f} * ((x - {a:.6f})^4 + (y "
        f"- {a:.6f})^4);"
    )
    return Case(text=text, bar=-1 / (16 * power))


def box(random: Random) -> Case:
    """A bilinear form on a box, begun at its saddle inside."""
    a, b, scale = random.uniform(-0.8, 0.8), random.uniform(-0.8, 0.8), random.uniform(0.2, 5.0)
    text = (
        f"var x in box(-1, 1); var y in box(-1, 1); "
        f"minimize {scale:.6f} * (x - {_number(a)}) * (y - {_number(b)});"
    )
    minima = [scale * (x - a) * (y - b) for x, y in ((-1, 1), (1, -1))]  # both are minima
    return Case(text=text, start={"x": a, "y": b}, bar=max(minima) / 2)


def factors(random: Random) -> Case:
    """A matrix as a product of two thin factors, from 0."""
    n, m, rank = (int(k) for k in random.integers((2, 2, 1), (5, 5, 3)))
    matrix = random.standard_normal((n, m))
    text = (
        f"dim n; dim m; data T : real[n, m]; var A[n, {rank}]; var B[m, {rank}]; "
        f"minimize sum[i in n, j in m] (T[i, j] - sum[k in 1 .. {rank}] A[i, k] * B[j, k])^2;"
    )
    singular = np.linalg.svd(matrix, compute_uv=False)
    whole, least = float((singular**2).sum()), float((singular[rank:] ** 2).sum())
    start = {"A": np.zeros((n, rank)), "B": np.zeros((m, rank))}
    return Case(text=text, data={"T": matrix}, start=start, bar=(whole + least) / 2)


def tensor(random: Random) -> Case:
    """A tensor of rank 1 with noise as one outer product of three vectors, from 0, where its
    derivatives vanish to order 2."""
    count, parts = 2, [random.standard_normal(2) + np.sign(random.standard_normal()) for _ in range(3)]
    exact = np.einsum("i,j,k->ijk", *parts)
    rows = [(i + 1, j + 1, k + 1) for i in range(count) for j in range(count) for k in range(count)]
    values = exact.ravel() + 0.05 * random.standard_normal(count**3)
    columns = {"t": values, **{name: np.array([row[k] for row in rows]) for k, name in enumerate("ijk")}}
    text = (
        "set I = 1 .. 2; set J = 1 .. 2; set K = 1 .. 2; data D : table(t: real, i: I, j: J, k: K); "
        "var a[I]; var b[J]; var c[K]; minimize sum[z in D] (z.t - a[z.i] * b[z.j] * c[z.k])^2;"
    )
    start = {name: np.zeros(count) for name in "abc"}
    return Case(
        text=text, data={"D": columns}, start=start, bar=float((values**2).sum() - 0.3 * (exact**2).sum())
    )


def mixture(random: Random) -> Case:
    """Two normal distributions with equal centres, of data with two that are far apart."""
    apart = random.uniform(3.0, 6.0)
    x = np.concatenate([random.normal(-apart / 2, 1, 40), random.normal(apart / 2, 1, 40)]) + random.normal()
    text = (
        "data D : table(x: real); var m; var n; "
        "minimize -mean[z in D] log(0.5 * exp(-(z.x - m)^2 / 2) + 0.5 * exp(-(z.x - n)^2 / 2));"
    )

    def loss(m: float, n: float) -> float:
        return float(-np.log(0.5 * np.exp(-((x - m) ** 2) / 2) + 0.5 * np.exp(-((x - n) ** 2) / 2)).mean())

    centre = float(x.mean())
    bar = (loss(centre, centre) + loss(x[:40].mean(), x[40:].mean())) / 2
    start = {"m": centre, "n": centre} if random.random() < 0.5 else None
    return Case(text=text, data={"D": {"x": x}}, start=start, bar=bar)


def monkey(random: Random) -> Case:
    """The real part of (x + iy)^n, n = 3 or 4, with powers that bound it, begun at its degenerate
    saddle 0."""
    n, power = int(random.integers(3, 5)), random.uniform(0.05, 0.3)
    form = {3: "x^3 - 3 * x * y^2", 4: "x^4 - 6 * x^2 * y^2 + y^4"}[n]
    text = f"var x; var y; minimize {form} + {power:.6f} * (x^2 + y^2)^3;"
    # r^n cos(n angle) falls by r^n along some angle: the least of -r^n + power r^6
    radius = (n / (6 * power)) ** (1 / (6 - n))
    return Case(text=text, start={"x": 0.0, "y": 0.0}, bar=(power * radius**6 - radius**n) / 2)


def deep(random: Random) -> Case:
    """A number as a product of three or four variables, from 0."""
    count, target = int(random.integers(3, 5)), random.uniform(0.5, 3.0) * random.choice([-1, 1])
    names = "abcd"[:count]
    declared = " ".join(f"var {name};" for name in names)
    text = f"{declared} minimize ({' * '.join(names)} - {_number(target)})^2;"
    return Case(text=text, start=dict.fromkeys(names, 0.0), bar=target**2 / 2)


def phase(random: Random) -> Case:
    """Squares of linear forms fitted from 0, a maximum."""
    x, w = random.standard_normal((20, 2)), random.standard_normal(2) + 1
    squares = (x @ w) ** 2
    text = "data D : table(x: real[2], t: real); var w[2]; minimize mean[z in D] (dot(w, z.x)^2 - z.t)^2;"
    start = {"w": np.zeros(2)}
    return Case(
        text=text, data={"D": {"x": x, "t": squares}}, start=start, bar=float((squares**2).mean()) * 0.95
    )


def network(random: Random) -> Case:
    """Two hidden units that begin equal, fitted to two that differ; their weights apart lower the
    loss where they are equal."""
    x = random.standard_normal((30, 2))
    target = np.tanh(x @ (2 * random.standard_normal(2))) - np.tanh(x @ (2 * random.standard_normal(2)))
    text = (
        "data D : table(x: real[2], t: real); var u[2]; var v[2]; var a; var b; "
        "minimize mean[z in D] (a * tanh(dot(u, z.x)) + b * tanh(dot(v, z.x)) - z.t)^2 + 1e-3 * (a^2 + b^2);"
    )
    equal, apart = _units(x, target, random)
    if apart > 0.9 * equal:
        return network(random)
    start = {"u": np.full(2, 0.5), "v": np.full(2, 0.5), "a": 0.5, "b": 0.5}
    return Case(text=text, data={"D": {"x": x, "t": target}}, start=start, bar=(equal + apart) / 2)


def _units(x: np.ndarray, target: np.ndarray, random: Random) -> tuple[float, float]:
    """The least loss of a network of two equal units, and what is found where they go apart from there."""
    from scipy.optimize import minimize

    def loss(p: np.ndarray) -> float:
        found = p[4] * np.tanh(x @ p[:2]) + p[5] * np.tanh(x @ p[2:4])
        return float(((found - target) ** 2).mean() + 1e-3 * (p[4] ** 2 + p[5] ** 2))

    def both(q: np.ndarray) -> np.ndarray:
        return np.array([q[0], q[1], q[0], q[1], q[2], q[2]])

    tries = [minimize(lambda q: loss(both(q)), random.standard_normal(3)) for _ in range(5)]
    least = min(tries, key=lambda one: one.fun)
    return float(least.fun), float(minimize(loss, both(least.x) + 1e-3 * random.standard_normal(6)).fun)


def sphere(random: Random) -> Case:
    """A quadratic form on the sphere, begun at an eigenvector that is not the least one's; on the
    ball, of negative forms."""
    d = int(random.integers(3, 6))
    values, basis = np.sort(random.uniform(-3.0, -0.5, d)), np.linalg.qr(random.standard_normal((d, d)))[0]
    values[0] -= 0.5
    form, at = basis @ np.diag(values) @ basis.T, int(random.integers(1, d))
    inside = random.random() < 0.5
    declared, constraint = (
        ("var x[d] in ball(1);", "") if inside else ("var x[d];", " subject to on: sumsq(x) == 1;")
    )
    text = f"dim d; data Q : real[d, d]; {declared} minimize dot(x, Q @ x);{constraint}"
    return Case(text=text, data={"Q": form}, start={"x": basis[:, at]}, bar=float(values[0] + values[at]) / 2)


def simplex(random: Random) -> Case:
    """Minus a sum of squares on a simplex, begun at its centre, a maximum."""
    d, scale = int(random.integers(2, 6)), random.uniform(0.5, 3.0)
    text = f"set I = 1 .. {d}; var p[I] in simplex(I); minimize -{scale:.6f} * sumsq(p);"
    return Case(text=text, start={"p": np.full(d, 1 / d)}, bar=-scale * (1 + 1 / d) / 2)


def corner(random: Random) -> Case:
    """A product that falls into the cone of two bounds at which both variables are, without multipliers."""
    scale, power = random.uniform(0.5, 3.0), random.uniform(0.1, 0.5)
    text = f"var x >= 0; var y >= 0; minimize -{scale:.6f} * x * y + {power:.6f} * (x^4 + y^4);"
    return Case(text=text, start={"x": 0.0, "y": 0.0}, bar=-(scale**2) / (16 * power))


def curved(random: Random) -> Case:
    """A form on the tangent space of an active ball, beside the multiplier's curvature: a saddle if
    it is the larger."""
    scale = random.uniform(0.2, 3.0)
    text = f"var x; var y; var z; minimize -z + {scale:.6f} * x * y; subject to c: x^2 + y^2 + z^2 <= 1;"
    start = {"x": 0.0, "y": 0.0, "z": 1.0}
    if scale < 0.9:
        return Case(text=text, start=start, optimum=-1.0)
    angles = np.linspace(0, np.pi / 2, 1000)
    least = float((-np.cos(angles) - scale * np.sin(angles) ** 2 / 2).min())
    return (
        Case(text=text, start=start, bar=-math.inf if least > -1 else (least - 1) / 2)
        if scale > 1.3
        else curved(random)
    )


def plane(random: Random) -> Case:
    """A saddle on a plane, of a form that is convex across it."""
    a = random.uniform(0.3, 2.0)
    text = (
        f"var x[3]; minimize {a:.6f} * x[1] * x[2] + (x[3] - 1)^2 + 0.1 * (x[1]^4 + x[2]^4); "
        "subject to c: x[1] + x[2] + x[3] == 1;"
    )
    return Case(text=text, start={"x": np.array([0.0, 0.0, 1.0])}, bar=-0.3 * (a**2) / 8)


def pole(random: Random) -> Case:
    """An objective that falls without end where an argument is 0."""
    a, b = random.uniform(-1.5, 1.5), random.uniform(0.05, 1.0)
    centre = _number(a)
    forms = [
        ("var x;", f"log(abs(x - {centre})) + {b:.6f} * x^2"),
        ("var x in box(-3, 3);", f"log(abs(x - {centre}))"),
        ("var x;", f"1 / (x - {centre}) + {b:.6f} * x^2"),
        ("var x;", f"-1 / abs(x - {centre}) + {b:.6f} * x^2"),
        ("var x in box(-3, 3);", f"log((x - {centre})^2) + {b:.6f} * x^2"),
        ("var x; var y;", f"log(abs(x + y - {centre})) + x^2 + {b:.6f} * y^2"),
        ("var x;", f"(x - {centre})^-3 + {b:.6f} * x^4"),
    ]
    declared, form = forms[int(random.integers(len(forms)))]
    return Case(text=f"{declared} minimize {form};", bar=-math.inf)


def rows_with_poles(random: Random) -> Case:
    """A mean of logarithms of distances, which falls without end at every row."""
    x = random.standard_normal(15)
    text = "data D : table(x: real); var m; minimize mean[z in D] log(abs(z.x - m)) + 0.5 * m^2;"
    return Case(text=text, data={"D": {"x": x}}, bar=-math.inf)


def fine(random: Random) -> Case:
    """No saddle and no pole within reach: right answers stay right."""
    a = random.uniform(0.3, 3.0)
    root = math.sqrt(a)
    forms = [
        ("var x >= 0;", f"x * log(x) + {a:.6f} * x", -math.exp(-1 - a)),
        ("var x >= 0.01;", f"x + {a:.6f} / x", 2 * root),
        ("var x;", f"x - {a:.6f} * log(x)", a - a * math.log(a)),
        ("var x; var y;", f"(x - y)^2 + {a:.6f} * (x + y - 1)^2", 0.0),
        ("var x; var y;", f"(x * y - {a:.6f})^2 + (x - y)^2", 0.0),
        ("var x in box(-1, 1); var y in box(-1, 1);", f"-{a:.6f} * x * y", -a),
    ]
    declared, form, optimum = forms[int(random.integers(len(forms)))]
    start = {"x": 0.5, "y": 0.5} if "y;" in declared or "var y" in declared else {"x": 0.5}
    return Case(text=f"{declared} minimize {form};", start=start, optimum=optimum)


KINDS: tuple[Callable[[Random], Case], ...] = (
    product, attracted, box, factors, tensor, mixture, monkey, deep, phase, network, sphere, simplex, corner, curved, plane, pole,
    rows_with_poles, fine,
)  # fmt: skip


def cases(count: int, first: int = 0) -> Iterator[tuple[str, Case]]:
    """So many cases by name, one kind after the other."""
    for seed in range(first, first + count):
        random, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
        case = kind(random)
        if random.random() < 0.3:
            case = case.negated()
        yield f"{kind.__name__}-{seed}", case
