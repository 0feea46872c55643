"""Piecewise linear-quadratic functions against brute force in float64, and their torch text against both."""

import math
from math import inf

import numpy as np
import pytest
import torch

from fccomodel.core import ir
from fccomodel.library import atoms, piecewise
from fccomodel.library.piecewise import PiecewiseLQ, along_line, of_atom, of_expression, of_max
from fccomodel.library.piecewise.pieces import pieces_of, weakly_convex

ATOMS = {
    "abs": (),
    "pos": (),
    "square": (),
    "sqhinge": (),
    "huber": (0.7,),
    "pinball": (0.3,),
    "eps_insensitive": (0.4,),
    "smooth_hinge": (0.5,),
}
POINT = PiecewiseLQ(points=((0.5, 0.0),), left=inf, right=inf, start=2.0)
FUNCTIONS = {
    **{name: of_atom(atoms.get(name), parameters) for name, parameters in ATOMS.items()},
    "affine": of_max((2.0, -1.0)),
    "constant": of_max((0.0, 3.0)),
    "max": of_max((-1.0, 0.5), (0.5, 0.0), (2.0, -3.0), (0.4, -9.0)),
    "interval": PiecewiseLQ(points=((-1.0, 0.0), (1.0, 0.0)), left=inf, right=inf, start=0.0),
    "half-line": PiecewiseLQ(points=((0.0, -0.5),), left=inf, right=2.0, start=1.0),
    "point": POINT,
    "long": PiecewiseLQ(
        points=((-1.0, -2.0), (-1.0, -1.0), (0.0, 0.0), (1.0, 0.0), (2.0, 3.0)),
        left=0.5,
        right=inf,
        start=1.0,
    ),
}
GRID = np.linspace(-12, 12, 24_001)
X = np.concatenate([np.linspace(-4, 4, 81), [0.5, -1.0, 1e-3]])
each = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
parameter = pytest.mark.parametrize("lam", [0.01, 0.5, 3.0])


def least(f: PiecewiseLQ, x: float, lam: float) -> tuple[float, float]:
    """The minimum over v of f(v) + (v - x)^2/(2 lam), and where it is, on a grid and at f's own points."""
    v = np.concatenate([GRID, [p for p, _ in f.points]])
    values = f.value(v) + (v - x) ** 2 / (2 * lam)
    k = int(np.argmin(values))
    return float(values[k]), float(v[k])


def run(text: str, u: torch.Tensor, **names: float) -> torch.Tensor:
    return eval(text, {"torch": torch, "u": u} | names)  # noqa: S307


# ------------------------------------------------------------------------------------- the calculus
@each
def test_value_is_the_integral_of_the_gradient(f):
    inside = X[(X > f.domain[0]) & (X < f.domain[1])]
    for a, b in zip(inside, inside[1:], strict=False):
        grid = np.linspace(a, b, 2001)
        middle = (grid[1:] + grid[:-1]) / 2
        rise = float(np.sum(f.gradient(middle)) * (b - a) / 2000)
        assert math.isclose(float(f.value(b) - f.value(a)), rise, abs_tol=5e-3 * abs(b - a) + 1e-9)
    assert np.all(np.isinf(f.value(X[(X < f.domain[0]) | (X > f.domain[1])])))


@each
@parameter
def test_prox_and_envelope_by_brute_force(f, lam):
    envelope = f.envelope(lam)
    for x in X[::3]:
        value, at = least(f, x, lam)
        assert math.isclose(float(envelope.value(x)), value, abs_tol=5e-5)
        assert abs(float(f.prox(x, lam)) - at) < 2e-3
    inside = np.isfinite(f.value(X))
    assert np.all(envelope.value(X)[inside] <= f.value(X)[inside] + 1e-12)
    assert np.allclose(envelope.gradient(X), (X - f.prox(X, lam)) / lam)
    assert envelope.smoothness <= 1 / lam + 1e-12
    if f.lipschitz < inf:
        assert np.all(f.value(X) <= envelope.value(X) + lam * f.lipschitz**2 / 2 + 1e-12)


@each
@parameter
def test_prox_is_optimal_and_moreaus_identity_holds(f, lam):
    p = f.prox(X, lam)
    for x, v in zip(X, p, strict=True):
        low, high = f.subdifferential(v)
        assert low - 1e-9 <= (x - v) / lam <= high + 1e-9
    assert np.allclose(X, p + lam * f.conjugate().prox(X / lam, 1 / lam))
    assert np.allclose(
        f.envelope(lam).value(X) + f.conjugate().envelope(1 / lam).value(X / lam), X**2 / (2 * lam)
    )


@each
def test_conjugate(f):
    dual = f.conjugate()
    s = np.linspace(-4, 4, 81)
    fenchel = f.value(X)[:, None] + dual.value(s)[None, :] - X[:, None] * s[None, :]
    assert np.all(fenchel >= -1e-9)
    for x in X[np.isfinite(f.value(X))]:
        for slope in f.subdifferential(x):
            if abs(slope) < inf:
                assert math.isclose(float(f.value(x) + dual.value(slope)), x * slope, abs_tol=1e-9)
    twice = dual.conjugate()
    assert np.allclose(np.nan_to_num(twice.value(X), posinf=1e9), np.nan_to_num(f.value(X), posinf=1e9))


@pytest.mark.parametrize("a", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize(
    "b", [FUNCTIONS["abs"], FUNCTIONS["max"], FUNCTIONS["interval"], FUNCTIONS["long"], FUNCTIONS["huber"]]
)
def test_sums(a, b):
    found = a + b
    expected = a.value(X) + b.value(X)
    assert np.allclose(np.nan_to_num(found.value(X), posinf=1e9), np.nan_to_num(expected, posinf=1e9))
    assert found.domain == (max(a.domain[0], b.domain[0]), min(a.domain[1], b.domain[1]))
    for x in X[np.isfinite(expected)]:
        both = np.add(a.subdifferential(x), b.subdifferential(x))
        assert np.allclose(found.subdifferential(x), both)


def test_sum_without_common_points():
    with pytest.raises(ValueError, match="do not meet"):
        POINT + PiecewiseLQ(points=((1.0, 0.0),), left=inf)


@each
def test_scaling_shifting_and_precomposition(f):
    close = lambda a, b: np.allclose(np.nan_to_num(a, posinf=1e9), np.nan_to_num(b, posinf=1e9))  # noqa: E731
    assert close(f.scaled(2.5).value(X), 2.5 * f.value(X))
    assert close(f.shifted(value=1.5, slope=-0.7).value(X), f.value(X) - 0.7 * X + 1.5)
    for factor in (2.0, -0.5):
        inner = f.precomposed(factor, 0.3)
        assert close(inner.value(X), f.value(factor * X + 0.3))
        for x in X[np.isfinite(f.value(factor * X + 0.3))]:
            assert np.allclose(
                inner.subdifferential(x), sorted(factor * s for s in f.subdifferential(factor * x + 0.3))
            )
    with pytest.raises(ValueError, match="positive"):
        f.scaled(-1)


def test_constants_of_known_functions():
    assert FUNCTIONS["abs"].lipschitz == 1 and FUNCTIONS["abs"].smoothness is None
    assert FUNCTIONS["sqhinge"].lipschitz == inf and FUNCTIONS["sqhinge"].smoothness == 2
    assert FUNCTIONS["huber"].smoothness == 1 and FUNCTIONS["huber"].slopes == (-0.7, 0.7)
    assert FUNCTIONS["smooth_hinge"].smoothness == 2
    assert FUNCTIONS["pos"].envelope(0.5) == of_atom(atoms.get("smooth_hinge"), (0.5,))
    assert FUNCTIONS["interval"].lipschitz == inf


@each
def test_pieces_and_back(f):
    if f.domain == (-inf, inf):
        again = weakly_convex(pieces_of(f))
        assert np.allclose(again.value(X), f.value(X))


# --------------------------------------------------------------------------------------------- text
@each
@parameter
def test_texts(f, lam):
    u = torch.tensor(X)
    envelope = f.envelope(lam)
    for given, names in ((lam, {}), ("lam", {"lam": lam}), ("2 * half", {"half": lam / 2})):
        assert np.allclose(run(f.gradient_text(given), u, **names), envelope.gradient(X))
        assert np.allclose(run(f.envelope_text(given), u, **names), envelope.value(X))
        assert np.allclose(run(f.prox_text(given), u, **names), f.prox(X, lam))


@each
def test_gradient_text_is_that_of_the_envelope_text(f):
    u = torch.tensor(X + 0.0123456, requires_grad=True)
    found = torch.autograd.grad(run(f.envelope_text(0.37), u).sum(), u)[0]
    assert torch.allclose(found, run(f.gradient_text(0.37), u).detach(), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "lam", "text"),
    [
        ("abs", 0.01, "(u / 0.01).clamp(-1, 1)"),
        ("pos", "smoothing", "(u / smoothing).clamp(0, 1)"),
        ("pos", "h.lam", "(u / h.lam).clamp(0, 1)"),
        ("pos", "(h.rho * h.lam)", "(u / (h.rho * h.lam)).clamp(0, 1)"),
        ("pos", "(a) * (b)", "(u / ((a) * (b))).clamp(0, 1)"),
        ("square", 0.5, "u"),
        ("huber", 0.5, "(u / 1.5).clamp(-0.7, 0.7)"),
        ("eps_insensitive", 0.1, "((u + 0.4) / 0.1).clamp(-1, 0) + ((u - 0.4) / 0.1).clamp(0, 1)"),
        ("affine", 0.1, "torch.full_like(u, 2)"),
    ],
)
def test_texts_read_well(name, lam, text):
    assert FUNCTIONS[name].gradient_text(lam) == text


# -------------------------------------------------------------------------------------- expressions
T = ir.Hole(name="t")
S = ir.Hole(name="s")
KAPPA = ir.Param(name="kappa")


def expr(value) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else ir.Const(value=float(value))


def call(op: str, *args) -> ir.Apply:
    return ir.Apply(op=op, args=tuple(map(expr, args)))


def constants(node: ir.Expr) -> float | None:
    match node:
        case ir.Const(value=value):
            return value
        case ir.Param(name="kappa"):
            return 0.3
        case ir.Apply(op="mul", args=args):
            values = [constants(a) for a in args]
            return None if None in values else math.prod(values)
    return None


def gap(node) -> ir.Apply:
    """|node| - kappa"""
    return call("sub", call("abs", node), KAPPA)


CONVEX = {
    "identity": (T, lambda t: t),
    "constant multiple": (call("mul", 3, call("abs", T)), lambda t: 3 * abs(t)),
    "divided": (call("div", call("pos", T), call("mul", 2, KAPPA)), lambda t: np.maximum(t, 0) / 0.6),
    "gap": (call("pos", gap(T)), lambda t: np.maximum(abs(t) - 0.3, 0)),
    "squared gap": (call("sqhinge", gap(T)), lambda t: np.maximum(abs(t) - 0.3, 0) ** 2),
    "power of a hinge": (call("pow", call("pos", call("sub", 1, T)), 2), lambda t: np.maximum(1 - t, 0) ** 2),
    "square of abs": (call("square", call("abs", T)), lambda t: t**2),
    "product": (call("mul", T, T), lambda t: t**2),
    "max": (
        call("max", T, call("neg", T), 1, call("mul", 3, call("sub", T, 2))),
        lambda t: np.maximum.reduce([t, -t, 1 + 0 * t, 3 * (t - 2)]),
    ),
    "max of squares": (call("max", call("square", T), call("abs", T)), lambda t: np.maximum(t**2, abs(t))),
    "min that is convex": (call("neg", call("min", T, 1)), lambda t: -np.minimum(t, 1)),
    "decreasing of concave": (call("pos", call("sub", 1, call("min", T, 2))), lambda t: np.maximum(1 - np.minimum(t, 2), 0)),
    "sum": (
        call("add", call("huber", T, 0.5), call("mul", 2, call("pinball", call("add", T, 1), 0.25))),
        lambda t: np.where(abs(t) <= 0.5, t * t / 2, 0.5 * (abs(t) - 0.25)) + 2 * np.maximum(0.25 * (t + 1), -0.75 * (t + 1)),
    ),
    "convex in sum alone": (call("sub", call("square", T), call("abs", call("mul", 0, T))), lambda t: t**2),
    "smooth hinge of a slope": (
        call("smooth_hinge", call("sub", 1, call("mul", 2, T)), KAPPA),
        lambda t: of_atom(atoms.get("smooth_hinge"), (0.3,)).value(1 - 2 * t),
    ),
    "insensitive of a hinge": (call("eps_insensitive", call("pos", T), KAPPA), lambda t: np.maximum(np.maximum(t, 0) - 0.3, 0)),
    "power one": (call("pow", call("abs", T), 1), abs),
}  # fmt: skip
REFUSED = {
    "concave": call("neg", call("abs", T)),
    "difference": call("sub", call("abs", T), call("abs", call("sub", T, 1))),
    "smooth": call("exp", T),
    "quartic": call("square", call("square", T)),
    "cubic": call("mul", T, call("square", T)),
    "min": call("min", T, 1),
    "over the argument": call("div", 1, T),
    "power": call("pow", T, 3),
    "unknown number": call("mul", ir.Param(name="other"), T),
    "unknown parameter": call("huber", T, ir.Param(name="other")),
    "argument as a parameter": call("huber", 1, T),
    "another hole": call("add", T, S),
    "without the argument": call("abs", KAPPA),
    "inside a reduction": ir.Reduce(kind="sum", binders=(), body=T),
}


@pytest.mark.parametrize(("expression", "function"), CONVEX.values(), ids=CONVEX)
def test_of_expression(expression, function):
    f = of_expression(expression, T, constants)
    assert np.allclose(f.value(X), function(X))
    kinks = {x for x, _ in f.points}
    smooth = np.array([min(abs(x - k) for k in kinks) > 1e-6 for x in X])
    h = 1e-7
    assert np.allclose(
        f.gradient(X)[smooth], ((function(X + h) - function(X - h)) / (2 * h))[smooth], atol=1e-5
    )


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_of_expression_refuses(expression):
    assert of_expression(expression, T, constants) is None


def test_shared_nodes_are_one():
    t = call("sub", T, 1)
    assert np.allclose(
        of_expression(call("add", call("abs", t), call("square", t)), T, constants).value(X),
        abs(X - 1) + (X - 1) ** 2,
    )
    deep = call("abs", T)
    for _ in range(3000):
        deep = call("add", deep, KAPPA)
    assert math.isclose(float(of_expression(deep, T, constants).value(1.0)), 1 + 900, rel_tol=1e-9)


def test_along_a_line():
    """|a - b| - kappa is one function of a - b; its envelope in the plane is one along that line."""
    f, line = along_line(call("pos", gap(call("sub", T, S))), (T, S), constants)
    assert np.allclose(line, (line[0], -line[0]))
    lam, rng = 0.2, np.random.default_rng(0)
    norm = line[0] ** 2 + line[1] ** 2
    for u in rng.normal(0, 1, (20, 2)):
        steps = np.stack(np.meshgrid(np.linspace(-1, 1, 401), np.linspace(-1, 1, 401)), -1).reshape(-1, 2)
        v = u + steps
        brute = np.min(np.maximum(abs(v[:, 0] - v[:, 1]) - 0.3, 0) + np.sum(steps**2, 1) / (2 * lam))
        assert -1e-12 <= brute - float(f.envelope(lam * norm).value(line @ u)) < 2e-3
    scaled, line = along_line(
        call("add", call("abs", call("add", T, S)), call("mul", 2, call("add", S, T))), (T, S), constants
    )
    assert math.isclose(float(scaled.value(np.dot(line, [0.3, 0.4]))), 0.7 + 1.4)
    assert along_line(call("add", call("abs", T), call("abs", S)), (T, S), constants) is None
    assert along_line(call("max", T, S), (T, S), constants) is None


def test_what_the_package_offers():
    offered = {
        "PiecewiseLQ",
        "Pieces",
        "along_line",
        "pieces_along",
        "downward_kink",
        "of_atom",
        "of_expression",
        "of_max",
    }
    assert set(piecewise.__all__) == offered
    assert of_atom(atoms.get("exp")) is None
