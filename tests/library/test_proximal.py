"""The proximal calculus against brute force and CVXPY, its identities, and what it refuses. Errors:
``bench/prox.py``."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
import torch
from support.proximal_tools import (
    LAMBDAS,
    T,
    atoms_of_one_number,
    call,
    random_vector,
    scalar_errors,
    scalars,
    show,
    vector_errors,
)

from fccomodel.core import diagnostics, ir
from fccomodel.library import atoms
from fccomodel.library.proximal import Entropic, Largest, LogSumExp, Proximal, Smooth, of
from fccomodel.library.reductions.cvar import CVAR
from fccomodel.library.reductions.topk import TOPK
from fccomodel.structure import facts_of

POSITIVE = atoms.Interval(0.0, inf, True, True)
KNOWN = {
    name: f
    for name, e in atoms_of_one_number().items()
    if isinstance(f := of(e, (T,), facts_of, where=POSITIVE), Proximal)
}
U = ir.Hole(name="u", shape=(5,))


@pytest.mark.parametrize("name", KNOWN)
def test_atoms_of_one_number(name):
    errors = scalar_errors(atoms_of_one_number()[name], KNOWN[name], np.array([-2.1, 0.0, 0.4, 3.0]))
    assert max(errors.values()) < 1e-9, errors


def test_which_atoms_have_a_prox():
    none = {name for name in atoms_of_one_number() if name not in KNOWN}
    assert none == {
        *(
            "-abs",
            "-eps_insensitive",
            "-exp",
            "-expm1",
            "-inv",
            "-lgamma",
            "-mcp",
            "-pinball",
            "-pos",
            "-pow",
            "-scad",
            "-sign",
            "-step",
        ),
        *("clip", "-clip", "digamma", "entr", "log", "sign", "step", "sqrt"),
    }


def test_random_compositions_of_one_number():
    for node, f in scalars(np.random.default_rng(0), 20):
        errors = scalar_errors(node, f, np.array([-2.0, 0.3, 1.7]))
        assert max(errors.values()) < 1e-8, (show(node), errors)


def test_random_vector_functions():
    rng = np.random.default_rng(1)
    for _ in range(30):
        node, holes, twin = random_vector(rng)
        f = of(node, holes, facts_of)
        assert isinstance(f, Proximal), (show(node), f)
        errors = vector_errors(
            f, twin, holes[0].shape[0] if holes[0].shape else len(holes), rng, LAMBDAS[1:2]
        )
        assert max(errors.values()) < 1e-7, (show(node), errors)


# --------------------------------------------------------------------------------------- identities
def sample(seed: int = 0) -> list[Proximal]:
    rng = np.random.default_rng(seed)
    vectors = [of(call(op, U), (U,), facts_of) for op in ("norm1", "norm2", "norminf", "logsumexp")]
    tails = [Largest.of(), Largest.of(CVAR, 0.45), Largest.of(TOPK, 2), LogSumExp.of(0.3, True)]
    return [*vectors, *tails, *(f for _, f in scalars(rng, 12))]


@pytest.mark.parametrize("f", sample(), ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_envelope_and_its_gradient(f, lam):
    """The slope is the envelope's gradient, with a centre too; f_lam <= f <= f_lam + lam C^2/2 (the
    first: any f)."""
    if lam * f.weak >= 0.95:
        pytest.skip("lambda is too large")
    rng = torch.Generator().manual_seed(0)
    t = torch.randn(7, 5, generator=rng, dtype=torch.float64, requires_grad=True)
    c = 0.1 * torch.randn(7, 5, generator=rng, dtype=torch.float64)
    for centre in (None, c):
        moved = t.detach() if centre is None else t.detach() + lam * centre
        assert torch.allclose(f.prox(moved, lam), moved - lam * f.slope(t.detach(), lam, centre), atol=1e-9)
        step, direction = 1e-5, torch.randn(7, 5, generator=rng, dtype=torch.float64)
        rise = (
            f.envelope(t.detach() + step * direction, lam, centre)
            - f.envelope(t.detach() - step * direction, lam, centre)
        ) / 2
        along = f.slope(t.detach(), lam, centre) * direction * step
        assert torch.allclose(rise.sum(), along.sum(), atol=2e-8 + 1e-3 * step)
    below, value = f.envelope(t.detach(), lam), f.value(t.detach())
    assert bool((below <= value + 1e-9).all())
    if f.lipschitz < inf and not f.weak:
        size = 1 if f.rank == 0 else 5
        assert bool((value <= below + lam * min(f.lipschitz, sqrt(size) * f.lipschitz) ** 2 / 2 + 1e-9).all())


def test_entropy_in_the_place_of_half_squares():
    """Its slope is the envelope's gradient, maximises q.t - lam KL(q, c) among random points, is in
    the simplex; f - lam log n <= f_lam <= f for the uniform centre, which is c = 0; entries at -inf
    are left out; its prox is that of the maximum."""
    f, lam = Entropic.smoothing(Largest.of()), 0.3
    rng = torch.Generator().manual_seed(0)
    t, q = (
        torch.randn(7, 5, generator=rng, dtype=torch.float64),
        torch.rand(200, 7, 5, generator=rng, dtype=torch.float64),
    )
    q, uniform = q / q.sum(-1, keepdim=True), torch.full((7, 5), 0.2, dtype=torch.float64)
    assert torch.allclose(f.slope(t, lam), f.slope(t, lam, uniform))
    assert torch.allclose(f.envelope(t, lam), f.envelope(t, lam, uniform))
    for c in (uniform, q[0]):
        below, at = f.envelope(t, lam, c), t.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(f.envelope(at, lam, c).sum(), at)
        assert torch.allclose(gradient, f.slope(t, lam, c)) and torch.allclose(
            f.slope(t, lam, c).sum(-1), t.new_ones(7)
        )
        for p in (*q, f.slope(t, lam, c)):
            assert bool(((p * t).sum(-1) - lam * torch.special.xlogy(p, p / c).sum(-1) <= below + 1e-9).all())
    assert bool(
        (f.envelope(t, lam) <= f.value(t)).all()
        and (f.value(t) <= f.envelope(t, lam) + lam * np.log(5) + 1e-9).all()
    )
    left = torch.cat([t, torch.full((7, 1), -torch.inf, dtype=torch.float64)], -1)
    assert torch.allclose(f.slope(left, lam)[:, :5], f.slope(t, lam))
    assert torch.allclose(f.envelope(left, lam), f.envelope(t, lam))
    assert torch.allclose(f.prox(t, lam), Largest.of().prox(t, lam))


@pytest.mark.parametrize("f", sample(3), ids=lambda f: type(f).__name__)
def test_single_precision(f):
    """Emitted programs run in float32: the slope has errors of its rounding alone."""
    lam = 0.3
    if lam * f.weak >= 0.9:
        pytest.skip("lambda is too large")
    t = torch.linspace(-2, 3, 35, dtype=torch.float64).view(7, 5)
    exact, found = f.slope(t, lam), f.slope(t.float(), lam)
    assert found.dtype == torch.float32
    assert float(((found.double() - exact).abs() / (1 + exact.abs())).max()) < 1e-4


def test_moreaus_identity_with_the_conjugate_of_a_max():
    """prox of f plus lam times the projection on the dual set: here the capped simplex, by CVXPY."""
    import cvxpy as cp

    rng = np.random.default_rng(4)
    for f, cap in (
        (Largest.of(CVAR, 0.45), 1 / (0.45 * 6)),
        (Largest.of(TOPK, 2), 0.5),
        (Largest.of(CVAR, 1.0), 1 / 6),
    ):
        x = rng.normal(0, 1, 6)
        q = cp.Variable(6)
        cp.Problem(cp.Minimize(cp.sum_squares(q - x / 0.4)), [q >= 0, q <= cap, cp.sum(q) == 1]).solve(
            solver=cp.CLARABEL
        )
        assert np.allclose(f.slope(torch.tensor(x), 0.4).numpy(), q.value, atol=1e-6)
        ordered = np.sort(x)[::-1]
        weights = np.clip(1 / cap - np.arange(6), 0, 1)
        assert np.isclose(float(f.value(torch.tensor(x))), ordered @ weights * cap)


def test_the_conjugate_at_a_slope_that_stays():
    """sup_t s t - elu(s t) = 0, at every t > 0, whatever the rounding of the derivative there."""
    for c in np.random.default_rng(0).uniform(0, 3, 20):
        f = of(call("elu", call("add", call("mul", ir.Const(value=float(c)), T), T)), (T,), facts_of)
        found = f.conjugate(torch.tensor([f.slopes[1], 1.01 * (1 + c)], dtype=torch.float64))
        assert abs(float(found[0])) < 1e-12 and found[1] == inf


@pytest.mark.parametrize("name", ["norm2", "norm_fro", "norm_spec", "norm_nuc", "lambda_max"])
def test_the_envelope_of_a_norm_has_a_gradient_where_the_projection_has_none(name):
    """At 0 and at equal singular values; the gradient is the slope."""
    u = ir.Hole(name="u", shape=(3,) if name == "norm2" else (3, 3))
    f = of(ir.Apply(op=name, args=(u,), shape=()), (u,), facts_of)
    assert isinstance(f, Proximal), f
    for size in (0.0, 0.1, 3.0):
        if name == "norm2":
            t = torch.full((3,), size, dtype=torch.float64)
        else:
            t = size * torch.eye(3, dtype=torch.float64)
        t.requires_grad_()
        (gradient,) = torch.autograd.grad(f.envelope(t, 0.5).sum(), t)
        assert torch.allclose(gradient, f.slope(t, 0.5), atol=1e-12), (size, gradient)


def test_entries_that_are_left_out():
    """An entry at -inf gets no weight, and the tail is of the others."""
    x = torch.tensor([0.3, -0.2, 1.0, 0.5], dtype=torch.float64)
    more = torch.cat([x, x.new_full((3,), -inf)])
    for f in (Largest.of(), Largest.of(CVAR, 0.5), Largest.of(CVAR, 1.0), Largest.of(TOPK, 3)):
        assert torch.allclose(f.slope(more, 0.7)[:4], f.slope(x, 0.7)) and not f.slope(more, 0.7)[4:].any()
        assert torch.isclose(f.value(more), f.value(x))


# ----------------------------------------------------------------------------------- weak convexity
@pytest.mark.parametrize(
    ("node", "weak"),
    [
        (call("scad", T, 3.7, 0.8), 1 / 2.7),
        (call("mcp", T, 2.0, 0.9), 0.5),
        (call("mul", 3, call("mcp", call("sub", call("mul", 2, T), 1), 2.0, 0.9)), 6.0),
        (call("sub", call("abs", T), call("square", T)), 2.0),
        (call("neg", call("log1pexp", T)), 0.25),
    ],
    ids=("scad", "mcp", "mcp of an affine argument", "abs less a square", "-log1pexp"),
)
def test_lambda_must_be_below_one_over_rho(node, weak):
    f = of(node, (T,), facts_of)
    assert f.weak == pytest.approx(weak, rel=1e-6) and f.largest() == pytest.approx(1 / weak)
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)
    f.prox(x, 0.99 / f.weak)
    for lam in (1 / f.weak, 7.0 / f.weak, 0.0, -1.0):
        with pytest.raises(diagnostics.FccoError) as error:
            f.prox(x, lam)
        found = error.value.diagnostics[0]
        assert found.code == "F0612"
        assert (f"lambda < {1 / f.weak:.6g}" in found.fix) and (
            "weakly convex" in found.reason or "positive" in found.reason
        )


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (call("min", T, 1), "kink at 1 points downward"),
        (call("neg", call("abs", T)), "kink at 0 points downward"),
        (call("sqrt", T), "neither convex nor weakly convex"),
        (call("pow", T, 3), "neither convex nor weakly convex"),
        (call("mul", T, ir.Param(name="x")), "more than its arguments"),
        (call("dot", T, T), "not a function of one number"),
    ],
    ids=("min", "-abs", "sqrt", "cube", "a column", "dot"),
)
def test_reasons_why_there_is_none(node, reason):
    found = of(node, (T,), facts_of)
    assert isinstance(found, str) and reason in found


def test_reasons_for_functions_of_several_numbers():
    a, b = ir.Hole(name="a"), ir.Hole(name="b")
    assert "pieces that are not affine" in of(call("max", a, call("square", b)), (a, b), facts_of)
    assert "added" in of(
        call("add", call("max", a, b), call("abs", call("sub", a, call("mul", 2, b)))), (a, b), facts_of
    )
    assert "subtracted" in of(call("neg", call("max", a, b)), (a, b), facts_of)


# ---------------------------------------------------------------------------------------- constants
def test_constants():
    """C_f by pairs, rho_f by chords, the diameter by slopes."""
    rng = torch.Generator().manual_seed(1)
    for f in sample(5):
        a, b = (2 * torch.randn(400, 5, generator=rng, dtype=torch.float64) for _ in range(2))
        value = [f.value(v) for v in (a, b, (a + b) / 2)]
        gap = (a - b).square() if f.rank == 0 else (a - b).square().sum(-1)
        inside = value[0].isfinite() & value[1].isfinite()
        steep = ((value[0] - value[1]).abs() / gap.sqrt())[inside]
        assert float(steep.max()) <= f.lipschitz * (1 + 1e-9) + 1e-9
        chord = value[2] - (value[0] + value[1]) / 2 - f.weak / 8 * gap
        assert float(chord[inside].max()) <= 1e-9
        y = f.slope(a, 0.5 / f.weak if f.weak else 0.5)
        size = y.abs().amax() if f.rank == 0 else y.square().sum(-1).sqrt().amax()
        assert float(size) <= f.lipschitz * (1 + 1e-9) + 1e-9


def test_the_derivative_behind_newtons_method():
    """f' and f'' of a composition, by the atoms' own derivatives, against autograd."""
    f = of(call("exp", call("huber", call("mul", 2, T), 0.7)), (T,), facts_of)
    assert isinstance(f, Smooth)
    v = torch.linspace(-1, 1, 11, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(f.value(v).sum(), v)[0]
    assert torch.allclose(eval(f.first, {"torch": torch, "v": v}), first)  # noqa: S307


def test_an_algorithm_that_needs_the_prox_says_why_there_is_none():
    from fccomodel import pipeline
    from fccomodel.core.source import Source

    text = "model m; dim d; data D : table(x: real[d], g: {0, 1}); var w[d];"
    text += "minimize mean[k in 0 .. 1] clip(sqrt(E[z ~ D | z.g == k] dot(w, z.x)^2), 0, 1) + sumsq(w);"
    problem = pipeline.compile_model(Source(text=text, name="m")).problem
    with pytest.raises(diagnostics.FccoError) as error:
        pipeline.decide(pipeline.analyse(problem), {"algorithm": ("sonex", "command line")})
    found = error.value.diagnostics[0]
    assert found.code == "F0604" and "not even once clip" in found.reason
