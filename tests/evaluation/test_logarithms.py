"""Expectations of exponentials by their logarithms: the same values and steps at ordinary
temperatures, finite ones at any."""

from __future__ import annotations

import importlib.util
import types
from typing import Any

import numpy as np
import pytest
import torch
from support.emitted_models import HEAD, Case, make, table

from fccomodel import algorithms
from fccomodel.evaluation import interpret, logarithms
from fccomodel.program.operations.estimates import track

needs_cvxpy = pytest.mark.skipif(importlib.util.find_spec("cvxpy") is None, reason="cvxpy gives the optima")

#: objectives with exponentials of t times scores
FORMS = {
    "mean": "mean[i in P] log(E[j ~ N] exp(t * (dot(w, j.x) - dot(w, i.x))))",
    "temperature": "mean[i in P] log(E[j ~ N] exp(dot(w, j.x - i.x) * t)) / t",
    "sum": "mean[i in P] log(sum[j in D | j.time >= i.time] exp(t * dot(w, j.x - i.x)))",
    "one_more": "mean[i in P] log(1 + sum[j in N] exp(t * dot(w, j.x - i.x)))",
    "log1p": "mean[i in P] log1p(E[j ~ N] exp(t * dot(w, j.x - i.x)))",
    "ratio": "mean[i in P] (sum[j in D | j.g == i.g and j != i] exp(t * dot(w, j.x - i.x)))"
             " / (sum[j in D | j != i] exp(t * dot(w, j.x - i.x)))",
    "ratio_of_let": "let r[i in P] = E[j ~ N] exp(t * dot(w, j.x));"
                    " minimize mean[i in P] exp(t * dot(w, i.x)) / (exp(t * dot(w, i.x)) + r[i])",
    "weights": "mean[i in P] log(E[j ~ N] (1 + j.time^2) * exp(t * dot(w, j.x - i.x)))",
    "positive_factor": "mean[i in P] log(E[j ~ N] sqhinge(1 + dot(w, j.x - i.x)) * exp(t * dot(w, j.x - "
                       "i.x)))",
    "leading_power": "mean[i in P] (E[j ~ N] exp(t * dot(w, j.x - i.x)))^0.1",
    "root": "sqrt(E[i ~ P] exp(E[j ~ N] sqhinge(t * dot(w, j.x - i.x))))",
    "p_norm": "mean[i in P] (E[j ~ N] log1pexp(t * dot(w, j.x - i.x))^5)^(1/5)",
    "p_norm_nested": "(mean[i in P] (E[j ~ N] exp(t * dot(w, j.x - i.x)))^4)^(1/4)",
    "nested": "log(E[i ~ P] E[j ~ N] exp(t * dot(w, j.x - i.x)))",
    "three_levels": "log(E[i ~ P] exp(E[j ~ N] sqhinge(t * dot(w, j.x - i.x))))",
    "groups": "log(mean[k in G] exp(t * E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)))) / t",
    "divided": "log(mean[i in P] exp(t * dot(w, i.x)) / (E[j ~ N] exp(t * dot(w, j.x))))",
    "masked": "mean[i in D] log(1 + E[j ~ D | j.time + i.time > 3] exp(t * dot(w, j.x)))",
    "dependent": "log(E[i ~ P, j ~ D | j.g == i.g and j.time > i.time] exp(t * dot(w, j.x - i.x)))",
    "kl": "max[q in simplex(G)] (sum[k in G] q[k] * (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)))"
          " - (1 / t) * kl(q, uniform(G)))",
    "pmean": "pmean(p = 6)[i in P] (E[j ~ N] log1pexp(t * dot(w, j.x - i.x)))",
    "bound": "sumsq(w); subject to c: logmeanexp(theta = 0.5)[z ~ D] (t * dot(w, z.x)) <= 0.3",
}  # fmt: skip
SMALL = {"outer_batch": 5, "inner_batch": 7, "unverified": True}


def case(name: str, t: float = 1.0, **options: Any) -> Case:
    body = FORMS[name]
    body = body if body.startswith("let") else f"minimize {body}"
    text = f"model m;{HEAD}param t > 0 default 1;{body};"
    return Case(text=text, params={"t": t}, options={**SMALL, **options})


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Switches the stable forms off."""

    def off() -> None:
        monkeypatch.setattr(logarithms.StableForms, "stable", lambda self, node: None)
        monkeypatch.setattr(logarithms.StableForms, "logged", lambda self, node: None)

    return off


def exact(made: Any, w: torch.Tensor) -> tuple[list[float], torch.Tensor]:
    """Objective and constraints by the interpreter, the former with its gradient."""
    leaves = {
        name: w[a:b].reshape(shape).clone().requires_grad_()
        for name, (a, b, shape) in made.program.layout.items()
    }
    value = interpret.evaluate(made.bound, made.bound.problem.objective.expr, leaves)
    value.backward()
    bodies = [interpret.evaluate(made.bound, c.body, leaves) for c in made.bound.problem.constraints]
    grads = [leaf.grad.reshape(-1) for leaf in leaves.values() if leaf.grad is not None]
    return [float(v.detach()) for v in (value, *bodies)], torch.cat(grads)


@pytest.mark.parametrize("name", FORMS)
def test_forms_have_the_plain_value(name: str, plain: Any) -> None:
    stable = make("m", case(name))
    w = stable.point()
    found, evaluated = exact(stable, w), stable.solver.evaluate(stable.solver.prepare_full(data(stable)), w)
    vals = stable.lowered.exact.state.graph.vals
    assert any(v.attrs.get("log") or v.op.name.startswith("log_") for v in vals), "no logarithm was taken"
    plain()
    values, gradient = exact(make("m", case(name)), w)
    assert found[0] == pytest.approx(values, rel=1e-10)
    torch.testing.assert_close(found[1], gradient, rtol=1e-8, atol=1e-12)
    emitted = [float(evaluated[0]), *(float(v) for _, v in evaluated[1].values())]
    assert emitted == pytest.approx(values, rel=1e-10)


def data(made: Any, dtype: torch.dtype = torch.float64) -> Any:
    return made.solver.as_namespace(dict(made.program.data), "cpu", dtype)


@pytest.mark.parametrize("name", FORMS)
def test_extremes_are_finite(name: str) -> None:
    """Exponents of several thousands: values in both evaluators, and steps in single precision."""
    made = make("m", case(name, t=2000.0))
    w = made.point()
    found, gradient = exact(made, w)
    value, constraints = made.solver.evaluate(made.solver.prepare_full(data(made)), w)
    if name in ("p_norm_nested", "leading_power", "root"):
        return  # the value itself may be beyond every number
    assert np.isfinite(found).all() and bool(gradient.isfinite().all())
    assert [float(value), *(float(v) for _, v in constraints.values())] == pytest.approx(
        found, rel=1e-9, abs=1e-9
    )
    for algorithm in ("sonex", "sox"):
        if algorithm == "sox" and name == "bound":
            continue
        u, w_end = steps(make("m", case(name, t=2000.0), algorithm=algorithm), 30, torch.float32, scale=0.01)
        assert bool(w_end.isfinite().all())
        assert all(not bool(b.isinf().any()) for b in vars(u).values())


def steps(made: Any, count: int, dtype: torch.dtype, scale: float = 1.0) -> tuple[Any, torch.Tensor]:
    """The estimates and the point after some steps of the emitted program, small ones."""
    solver = made.solver
    rng, h = torch.Generator().manual_seed(3), solver.Settings()
    kept = solver.prepare(data(made, dtype))
    h.eta = h.peak = 0.02 * scale
    for name in ("inner_eta", "nu"):  # what a loop sets where it is 0
        setattr(h, name, getattr(h, name, 0.0) or 0.02)
    w = made.point().to(dtype)
    state = types.SimpleNamespace(w=w, w_prev=w.clone())
    solver.SOLVER.begin(state, h)
    u, c = solver.buffers("cpu", dtype), solver.centres("cpu", dtype)
    parts = solver.draw(kept, rng, count)
    for k in range(count):
        solver.advance(solver.SOLVER, kept, state, u, c, [part[k] for part in parts], h)
    return u, state.w


#: two of them for each algorithm, in turns
TRACKED = ("mean", "one_more", "ratio", "p_norm", "three_levels", "nested", "divided")


TURNED = [
    (TRACKED[(k + j) % len(TRACKED)], name) for k, name in enumerate(sorted(algorithms.all())) for j in (0, 3)
]


@pytest.mark.parametrize(("name", "algorithm"), TURNED)
def test_steps_are_those_of_the_plain_form(name: str, algorithm: str, plain: Any) -> None:
    record = algorithms.all()[algorithm]
    dual = record.outer == "dual" or "conjugate prox" in record.requires
    if record.surrogate or not hasattr(record.estimator, "track_log") or dual:
        pytest.skip("it tracks no expectation by its logarithm")
    stable = make("m", case(name, 0.5, inner_batch=20), algorithm=algorithm)
    assert any(v.attrs.get("log") for v in stable.lowered.steps.state.graph.vals)
    _, found = steps(stable, 10, torch.float64, scale=0.1)
    plain()
    other = make("m", case(name, 0.5, inner_batch=20), algorithm=algorithm)
    other.solver.Settings = stable.solver.Settings  # whose defaults are others for exponentials
    _, expected = steps(other, 10, torch.float64, scale=0.1)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def cold(n: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(n, 3)),
        "y": np.where(np.arange(n) % 4 == 0, 1, -1),
        "s": rng.uniform(-50, 50, size=n),
    }


COLD = """model cold; dim d; data D : table(x: real[d], y: {-1, 1}, s: real);
set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1}; param theta > 0 default 0.01; var w[d];
minimize mean[i in P] theta * log(E[j ~ N] exp((j.s + dot(w, j.x) - i.s - dot(w, i.x)) / theta)) + 0.05 * sumsq(w);"""


@needs_cvxpy
def test_a_temperature_of_a_hundredth_with_scores_of_fifty() -> None:
    """In single precision: finite, every block's estimate kept, and the optimum reached (exponents up
    to 10,000)."""
    import cvxpy as cp

    rows, theta = cold(), 0.01
    cold_case = Case(text=COLD, data=lambda: {"D": rows}, options={"outer_batch": 5, "inner_batch": 20})
    made = make("cold", cold_case, algorithm="sonex")
    point = cp.Variable(3)
    scores, high, low = (
        rows["s"] + rows["x"] @ point,
        np.flatnonzero(rows["y"] == 1),
        np.flatnonzero(rows["y"] == -1),
    )
    blocks = [theta * (cp.log_sum_exp((scores[low] - scores[i]) / theta) - np.log(len(low))) for i in high]
    best = cp.Problem(cp.Minimize(sum(blocks) / len(high) + 0.05 * cp.sum_squares(point))).solve(
        solver=cp.CLARABEL
    )
    found = made.solver.solve(
        made.solver.SOLVER, dict(made.program.data), iterations=8000, seconds=None, dtype=torch.float32
    )
    value = float(made.solver.evaluate(found.exact, found.w)[0])
    assert best - 1e-6 <= value <= best * (1 + 1e-3)
    u, _ = steps(made, 200, torch.float32)
    (estimates,) = vars(u).values()
    assert bool(estimates[high].isfinite().all()), "no block lost its estimate"
    assert float(estimates[high].max() - estimates[high].min()) > 5000, (
        "plain estimates would be 0 or infinite"
    )


@needs_cvxpy
def test_partial_auc_at_the_temperature_where_libauc_fails() -> None:
    """One-way partial AUC by the KL form, mean_i theta log E_j exp(loss_ij / theta), at theta = 0.02."""
    import cvxpy as cp

    rng = np.random.default_rng(1)
    y = np.where(np.arange(60) % 3 == 0, 1, -1)
    x, theta = rng.normal(size=(60, 3)) + 0.8 * (y == 1)[:, None], 0.02
    text = """model pauc; dim d; data D : table(x: real[d], y: {-1, 1});
set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1}; param theta > 0 default 0.02; var w[d];
minimize mean[i in P] logmeanexp(theta = theta)[j ~ N] sqhinge(2 + dot(w, j.x) - dot(w, i.x)) + 0.01 * sumsq(w);"""
    made = make(
        "pauc",
        Case(text=text, data=lambda: {"D": {"x": x, "y": y}}, options={"outer_batch": 10, "inner_batch": 30}),
    )
    point = cp.Variable(3)
    scores, high, low = x @ point, np.flatnonzero(y == 1), np.flatnonzero(y == -1)
    blocks = [
        theta * (cp.log_sum_exp(cp.square(cp.pos(2 + scores[low] - scores[i])) / theta) - np.log(len(low)))
        for i in high
    ]
    best = cp.Problem(cp.Minimize(sum(blocks) / len(high) + 0.01 * cp.sum_squares(point))).solve(
        solver=cp.CLARABEL
    )
    found = made.solver.solve(
        made.solver.SOLVER, dict(made.program.data), iterations=4000, seconds=None, dtype=torch.float32
    )
    value = float(made.solver.evaluate(found.exact, found.w)[0])
    assert best - 1e-6 <= value <= best * 1.02
    loss = torch.as_tensor(
        np.maximum(2 + x[low] @ found.w.numpy() - (x[high] @ found.w.numpy())[:, None], 0) ** 2
    )
    assert float(loss.max()) / theta > 88.8, "single precision would overflow"


def test_a_let_has_one_estimate_in_all_its_uses() -> None:
    """Under a logarithm and as it is: one buffer, of the logarithm."""
    text = f"model m;{HEAD}let r = E[z ~ D] exp(dot(w, z.x)); minimize log(r) + 0.1 * r^2;"
    made = make("m", Case(text=text, options=SMALL))
    assert len(made.lowered.steps.state.buffers) == 1
    assert [v.attrs.get("log") for v in made.lowered.steps.state.graph.vals if v.op is track] == [True]


@pytest.mark.parametrize("body", ["(E[z ~ D] exp(dot(w, z.x)))^2", "log(E[z ~ D] (1 + dot(w, z.x)^2))",
                                  "(E[z ~ D] dot(w, z.x))^2", "log(2 + E[z ~ D] dot(w, z.x) * exp(dot(w, "
                                                              "z.x)))"])  # fmt: skip
def test_others_stay_plain(body: str) -> None:
    """No exponentials, a factor of unknown sign, or a power that overflows anyway."""
    made = make("m", Case(text=f"model m;{HEAD}minimize {body};", options=SMALL))
    assert not any(v.attrs.get("log") for v in made.lowered.steps.state.graph.vals)


def test_ranges_come_from_the_data() -> None:
    """A column is known to be positive once data is bound, and so is what it multiplies."""
    rows = table()
    text = f"model m;{HEAD}minimize mean[i in P] log(E[j ~ N] j.time * exp(dot(w, j.x - i.x)));"
    for shift, log in ((1.0, True), (-3.0, False)):
        made = make(
            "m",
            Case(text=text, data=lambda s=shift: {"D": {**rows, "time": rows["time"] + s}}, options=SMALL),
        )
        assert any(v.attrs.get("log") for v in made.lowered.steps.state.graph.vals) is log
