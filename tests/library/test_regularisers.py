"""Every regulariser keeps what it declares: prox by optimality, Moreau's identity and brute force,
distances, critical values."""

import inspect
import itertools
import math

import numpy as np
import pytest
import torch
from support.conformance_tools import Book

from fccomodel.core import ir
from fccomodel.library import regularisers, sets
from fccomodel.library.atoms import Interval
from fccomodel.library.identities import Canonical, Knowledge
from fccomodel.library.regularisers import Regulariser

BOOK = Book(Regulariser)
ALL = regularisers.all()
named = pytest.mark.parametrize("r", ALL.values(), ids=ALL)
COEFFICIENTS = {"lam": 0.7, "mu": 0.4, "size": 3}


def coefficients(r: Regulariser) -> tuple[float, ...]:
    return tuple(COEFFICIENTS[name] for name in r.coefficients)


def arrays(r: Regulariser, count: int = 30) -> list[torch.Tensor]:
    """Points with zeros, zero groups and small ranks among them."""
    rng = np.random.default_rng(1)
    found = []
    for k in range(count):
        if r.name == "nuclear":
            x = rng.normal(size=(3, k % 4 + 1)) @ rng.normal(size=(k % 4 + 1, 4)) * (0.0 if k == 0 else 1.0)
        else:
            x = rng.normal(size=6) * rng.integers(0, 2, 6)
            x[:3] *= k % 3 > 0
            x *= k > 0
        found.append(torch.tensor(x))
    return found


def noise(like: torch.Tensor, seed: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=tuple(like.shape)))


@BOOK.checks("name", "meaning", "coefficients", "cite")
@named
def test_names(r):
    assert regularisers.get(r.name) is r and r.meaning and "\n" not in r.meaning + r.cite
    assert regularisers.get("nothing") is None


@BOOK.checks("value")
@named
def test_value_is_a_convex_function_least_at_zero(r):
    c = coefficients(r)
    for x, y in zip(arrays(r), reversed(arrays(r)), strict=True):
        assert r.value(0 * x, *c) == 0 and r.value(x, *c) >= 0
        assert r.value((x + y) / 2, *c) <= (r.value(x, *c) + r.value(y, *c)) / 2 + 1e-12


def test_values_are_those_of_numpy():
    w = torch.tensor([3.0, -4.0, 0.0, 1.0, 2.0, -2.0])
    values = {name: float(r.value(w, *coefficients(r))) for name, r in ALL.items() if name != "nuclear"}
    expected = {
        "l1": 8.4,
        "squared_l2": 13.6,
        "elastic_net": 22.0,
        "l2": 0.7 * math.sqrt(34),
        "group_l2": 0.7 * 8,
    }
    assert values == pytest.approx(expected)
    matrix = torch.tensor([[3.0, 0.0], [0.0, -4.0]])
    assert float(ALL["nuclear"].value(matrix, 0.5)) == pytest.approx(3.5)


@BOOK.checks("prox", "distance")
@named
def test_prox_is_optimal(r):
    """(v - p)/step lies in the subdifferential at p, and no neighbour does better."""
    c = coefficients(r)
    for step in (0.1, 1.0, 4.0):
        for k, v in enumerate(arrays(r)):
            v = v + 0.5 * noise(v, k)
            p = r.prox(v, step, *c)
            assert float(r.distance((v - p) / step, p, *c)) < 1e-9

            def objective(w, v=v, step=step):
                return step * r.value(w, *c) + (w - v).square().sum() / 2

            for scale in (1e-3, 0.1, 1.0):
                for direction in (noise(v, 100 + k), -p, v - p):
                    assert objective(p) <= objective(p + scale * direction) + 1e-12


@named
def test_prox_in_float32(r):
    c = coefficients(r)
    for v in arrays(r):
        wide, narrow = r.prox(v, 0.3, *c), r.prox(v.float(), 0.3, *c)
        assert narrow.dtype == torch.float32 and torch.allclose(wide.float(), narrow, atol=1e-5)


@named
def test_moreaus_identity(r):
    """v = prox_r(v) + prox_r*(v): the second part is the conjugate's prox, by Fenchel-Young."""
    c = coefficients(r)
    for k, v in enumerate(arrays(r)):
        v = v + noise(v, k)
        p = r.prox(v, 1.0, *c)
        q = v - p
        # q is a subgradient at p, so Fenchel-Young holds with equality: r*(q) = <p, q> - r(p) is
        # the largest over all w
        dual = (p * q).sum() - r.value(p, *c)
        for j in range(20):
            w = 3 * noise(v, 1000 + j)
            assert (w * q).sum() - r.value(w, *c) <= dual + 1e-9


@BOOK.checks("step_per_entry", "subdifferential")
@named
def test_separable_ones(r):
    c = coefficients(r)
    if r.subdifferential is None:
        assert not r.step_per_entry
        return
    for k, w in enumerate(arrays(r)):
        low, high = r.subdifferential(w, *c)
        assert bool((low <= high).all())
        s = noise(w, k)
        inside = torch.minimum(torch.maximum(s, low), high)
        assert float(r.distance(s, w, *c)) == pytest.approx(float((s - inside).norm()))
        other = noise(w, 50 + k)
        assert r.value(other, *c) >= r.value(w, *c) + (inside * (other - w)).sum() - 1e-12
    if r.step_per_entry:
        v, steps = noise(torch.zeros(6), 3), torch.tensor([0.1, 0.5, 1.0, 2.0, 0.0, 3.0], dtype=torch.float64)
        p = r.prox(v, steps, *c)
        for k in range(6):
            alone = r.prox(v[k : k + 1], float(steps[k]), *c)
            assert float(alone) == pytest.approx(float(p[k]))


@BOOK.checks("smooth")
@named
def test_smooth_ones_are_flat_at_zero(r):
    """r(0) = 0 is least: a slope there is a kink."""
    w = torch.zeros_like(next(iter(arrays(r))))
    direction = noise(w, 7)
    slope = float(r.value(w + 1e-6 * direction, *coefficients(r)) / 1e-6)
    assert (slope < 1e-4) == r.smooth


@pytest.mark.slow
@named
def test_distance_to_the_subdifferential_by_sampling(r):
    """No subgradient, among many, is nearer than the distance; and the nearest is a subgradient."""
    c = coefficients(r)
    for k, w in enumerate(arrays(r)):
        s = 0.8 * noise(w, k)
        distance = float(r.distance(s, w, *c))
        for j in range(40):
            v = w + noise(w, 300 + j) * (j % 4) / 2
            p = r.prox(v, 1.0, *c)
            if torch.equal((p.abs() > 1e-12), (w.abs() > 1e-12)) and float(r.distance(v - p, w, *c)) < 1e-12:
                assert float((s - (v - p)).norm()) >= distance - 1e-9
        if distance > 1e-9:
            # the directional derivative: for a subgradient g nearest to s, r'(w; s - g) = <g, s -
            # g>, so s beats it along s - g
            t = 1e-6
            slope = max(
                float(((s * d).sum() - (r.value(w + t * d, *c) - r.value(w, *c)) / t) / d.norm())
                for d in [noise(w, 700 + j) for j in range(40)]
            )
            assert slope <= distance + 1e-4


@BOOK.checks("critical")
@named
def test_critical_value(r):
    """0 minimises g.w + r(w) from the critical coefficient on, and not below."""
    for k, w in enumerate(arrays(r, 8)):
        g = noise(w, 20 + k)
        rest = coefficients(r)[1:]
        critical = r.critical(g, *coefficients(r))
        if critical == math.inf:
            assert float(r.distance(-g, 0 * g, 1e6, *rest)) > 0
            assert r.critical(0 * g, *coefficients(r)) == 0
            continue
        assert float(r.distance(-g, 0 * g, critical * (1 + 1e-9), *rest)) < 1e-9
        assert float(r.distance(-g, 0 * g, critical * 0.99, *rest)) > 0
        assert float(r.distance(-g, 0 * g, 0.0, *rest)) == pytest.approx(float(g.norm()))


@named
def test_prox_then_projection(r):
    """Where the two commute, the composition is optimal for both together."""
    c = coefficients(r)
    arguments = {"box": (-0.3, 0.8), "nonneg": (), "ball": (0.9,), "simplex": ()}
    for family, args in arguments.items():
        if not r.then_projected(family) or r.name == "nuclear":
            continue
        simple = sets.get(family)
        for k, v in enumerate(arrays(r)):
            v = v + noise(v, k)
            p = simple.project(r.prox(v, 0.5, *c), *args)
            best = 0.5 * r.value(p, *c) + (p - v).square().sum() / 2
            for j in range(30):
                w = simple.project(p + noise(v, 60 + j) * 10.0 ** (-(j % 4)), *args)
                assert best <= 0.5 * r.value(w, *c) + (w - v).square().sum() / 2 + 1e-10
    assert ALL["l1"].then_projected("box") and not ALL["l1"].then_projected("ball")
    assert ALL["l2"].then_projected("ball") and ALL["squared_l2"].then_projected("affine")
    assert not ALL["group_l2"].then_projected("box")


@named
def test_the_prox_stands_by_itself(r):
    """Its source runs with nothing but torch, as it does inside a solver."""
    scope = {"torch": torch}
    exec(compile(inspect.getsource(r.prox), "solver", "exec"), scope)  # noqa: S102
    v = arrays(r)[5]
    assert torch.equal(scope[r.prox.__name__](v, 0.2, *coefficients(r)), r.prox(v, 0.2, *coefficients(r)))


# -------------------------------------------------------------------------------------- recognition
W = ir.Var(name="w", shape=("d",))
A = ir.Var(name="A", shape=("k", "d"))
B = ir.Var(name="b")
LAM, NEGATIVE, OTHER = (ir.Param(name=name) for name in ("lam", "negative", "other"))


def call(op: str, *args, shape=()) -> ir.Apply:
    nodes = tuple(a if isinstance(a, ir.Expr) else ir.Const(value=float(a)) for a in args)
    return ir.Apply(op=op, args=nodes, shape=shape)


reader = Canonical(
    Knowledge(
        where=lambda node: Interval(node.value, node.value) if isinstance(node, ir.Const) else Interval()
    )
)


def constant(node: ir.Expr) -> float | None:
    match node:
        case ir.Const(value=value):
            return value
        case ir.Param(name=name):
            return {"lam": 0.1, "negative": -1.0}.get(name)
        case ir.Apply(op="div", args=(a, b)):
            return constant(a) / constant(b)
    return None


TERMS = {
    "lam * norm1(w)": (call("mul", LAM, call("norm1", W)), "w", "l1", (0.1,)),
    "norm1(w) / 4": (call("div", call("norm1", W), 4), "w", "l1", (0.25,)),
    "sum(abs(w))": (call("sum", call("abs", W, shape=("d",))), "w", "l1", (1.0,)),
    "abs(b)": (call("abs", B), "b", "l1", (1.0,)),
    "lam / 2 * sumsq(w)": (call("mul", call("div", LAM, 2), call("sumsq", W)), "w", "squared_l2", (0.05,)),
    "lam * sumsq(w) / 2": (call("div", call("mul", LAM, call("sumsq", W)), 2), "w", "squared_l2", (0.05,)),
    "dot(w, w)": (call("dot", W, W), "w", "squared_l2", (1.0,)),
    "norm2(w)^2": (call("pow", call("norm2", W), 2), "w", "squared_l2", (1.0,)),
    "square(b)": (call("square", B), "b", "squared_l2", (1.0,)),
    "b^2": (call("pow", B, 2), "b", "squared_l2", (1.0,)),
    "norm2(w) * lam": (call("mul", call("norm2", W), LAM), "w", "l2", (0.1,)),
    "norm_fro(A)": (call("norm_fro", A), "A", "l2", (1.0,)),
    "2 * group_norm(w, 3)": (call("mul", 2, call("group_norm", W, 3)), "w", "group_l2", (2.0, 3.0)),
    "norm_nuc(A)": (call("norm_nuc", A), "A", "nuclear", (1.0,)),
    "-(-1 * norm1(w))": (call("neg", call("mul", -1, call("norm1", W))), "w", "l1", (1.0,)),
    "0 * norm1(w)": (call("mul", 0, call("norm1", W)), "w", "l1", (0.0,)),
}
NOT_TERMS = {
    "of another variable": call("norm1", A),
    "negative": call("mul", NEGATIVE, call("norm1", W)),
    "of an unknown coefficient": call("mul", OTHER, call("norm1", W)),
    "of an unknown size": call("group_norm", W, OTHER),
    "smooth, without a prox": call("logsumexp", W),
    "of a difference": call("norm1", call("sub", W, W, shape=("d",))),
    "entrywise": call("abs", W, shape=("d",)),
    "times the variable": call("mul", call("norm1", W), call("norm2", W)),
    "over zero": call("div", call("norm1", W), 0),
    "to another power": call("pow", call("norm2", W), 3),
}


@BOOK.checks("forms")
@pytest.mark.parametrize(("term", "variable", "name", "values"), TERMS.values(), ids=TERMS)
def test_recognised(term, variable, name, values):
    found = regularisers.recognise(reader.expr(term), variable, constant)
    assert (found.name, found.variable) == (name, variable)
    assert tuple(found.coefficients.values()) == pytest.approx(values)
    assert tuple(found.coefficients) == ALL[name].coefficients


@pytest.mark.parametrize("term", NOT_TERMS.values(), ids=NOT_TERMS)
def test_not_recognised(term):
    assert regularisers.recognise(reader.expr(term), "w", constant) is None


@pytest.mark.parametrize("form", ["norm1", "norm2", "sumsq"])
def test_a_number_minus_an_array_is_no_number_with_a_centre(form):
    centre = ir.Param(name="c", shape=("d",))
    term = call(form, call("sub", B, centre, shape=("d",)))
    assert regularisers.recognise(term, "b", constant) is None


@BOOK.checks("round", "scales", "sum_of")
@named
def test_make_up(r):
    """A round one sees the length alone; one that scales shrinks every vector alike; one that is a sum
    is that sum."""
    c = coefficients(r)
    v = torch.tensor(np.random.default_rng(2).normal(size=6))
    if r.round:
        turned = torch.linalg.qr(torch.tensor(np.random.default_rng(3).normal(size=(6, 6)))).Q @ v
        assert float(r.value(turned, *c)) == pytest.approx(float(r.value(v, *c)))
    if r.scales:
        ratios = [r.prox(w, 0.7, *c) / w for w in (v, 10 * v, v.abs() + 1)]
        assert torch.allclose(torch.stack(ratios), ratios[0][0])
    if r.sum_of:
        parts = [ALL[name].value(v, value) for name, value in zip(r.sum_of, c, strict=True)]
        assert float(r.value(v, *c)) == pytest.approx(float(sum(parts)))


def test_combined():
    terms = [
        call("norm1", W),
        call("mul", LAM, call("sumsq", W)),
        call("mul", 2, call("norm1", W)),
        call("norm_nuc", A),
        call("abs", B),
    ]
    variables = ["w", "w", "w", "A", "b"]
    found = regularisers.combine(
        [regularisers.recognise(t, v, constant) for t, v in zip(terms, variables, strict=True)]
    )
    assert {(f.name, f.variable): tuple(f.coefficients.values()) for f in found} == {
        ("elastic_net", "w"): (3.0, 0.1),
        ("nuclear", "A"): (1.0,),
        ("l1", "b"): (1.0,),
    }
    assert regularisers.combine(found) == found


SUMS = [
    names
    for n in (2, 3, 4)
    for names in itertools.combinations(("l1", "group_l2", "l2", "squared_l2", "nuclear"), n)
]


@BOOK.checks("then")
@pytest.mark.parametrize("names", SUMS, ids=" + ".join)
def test_proxes_in_turn(names):
    """Where proxes one after the other are said to be the prox of the sum, no neighbour does better."""
    variable = A if "nuclear" in names else W
    atoms = [call(ALL[n].forms[0], variable, *[3] * (n == "group_l2")) for n in names]
    terms = [regularisers.recognise(atom, variable.name, constant) for atom in atoms]
    order = regularisers.in_turn(terms)
    assert (order is None) == ("nuclear" in names and not {"l1", "group_l2"}.isdisjoint(names))
    for k, v in enumerate(arrays(ALL[names[-1]]) if order else []):
        v = v + 3 * noise(v, k)
        p = v
        for r in order:
            p = r.regulariser.prox(p, 0.4, *r.coefficients.values())

        def objective(w, v=v):
            return (
                0.4 * sum(r.regulariser.value(w, *r.coefficients.values()) for r in order)
                + (w - v).square().sum() / 2
            )

        for scale in (1e-4, 1e-2, 0.3):
            for direction in (noise(v, 100 + k), noise(v, 200 + k), -p, v - p):
                assert objective(p) <= objective(p + scale * direction) + 1e-12


def test_proxes_around_several_points():
    """Regularisers around one point add up; around two, they have no prox together."""
    c, e = (ir.Param(name=name, shape=("d",)) for name in ("c", "e"))

    def around(op, centre):
        return regularisers.recognise(call(op, call("sub", W, centre, shape=("d",))), "w", constant)

    together = regularisers.in_turn(
        [around("norm1", c), around("norm1", ir.Param(name="c", shape=("d",))), around("sumsq", c)]
    )
    assert [(r.name, tuple(r.coefficients.values()), r.centre.name) for r in together] == [
        ("elastic_net", (2.0, 1.0), "c")
    ]
    assert regularisers.in_turn([around("norm1", c), around("norm1", e)]) is None
    assert (
        regularisers.in_turn([around("norm1", c), regularisers.recognise(call("norm1", W), "w", constant)])
        is None
    )


def test_every_declared_field_is_checked():
    assert BOOK.missing == set()
