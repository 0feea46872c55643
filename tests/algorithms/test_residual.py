"""The KKT residual that a run estimates as it goes: right, with honest errors, and a reason to end."""

import dataclasses
import itertools
import types
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel import report as kkt
from fccomodel.algorithms.runtime.loops import block_loop, progress, residual
from fccomodel.execution.run.loading import loaded

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(400, 5))
Y = np.sign(X @ np.ones(5) + RANDOM.normal(size=400))
HEAD = "model m; dim d; data D : table(x: real[d], y: {-1, 1});\n"
MODEL = (
    HEAD
    + """var w[d];
minimize f: E[z ~ D | z.y == -1] log1pexp(dot(w, z.x)) + 0.05 * sumsq(w);
subject to c: E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) <= 0.4;
"""
)


def program_of(text: str, **options):
    """The bound model, its program as a module, and its data."""
    nets = {"nets": {"s": "mlp(6, activation=tanh)"}} if "net s" in text else {}
    bound = fccomodel.compile(text).bind(data={"D": {"x": X, "y": Y}}, **nets)
    program = pipeline.emit(bound.plan(**options))
    return bound, program, loaded(program)


def estimate(solver, program, found, minibatches=None, tol=1e-6):
    """The residual at what a run found."""
    with torch.inference_mode(False), torch.no_grad():
        exact = solver.prepare_full(solver.as_namespace(dict(program.data), "cpu", torch.float64))
        value = progress.value_at(solver, exact, found.w)
        watch = residual.watching(tol, 0.0, 0.0)
        run = types.SimpleNamespace(value=value, c=found.c, h=found.h, watch=watch)
        return residual.residual(run, solver, exact, found.w, minibatches, np.inf)


def test_the_exact_residual_is_that_of_the_report():
    bound, program, module = program_of(MODEL)
    with module.no_grad():
        found = module.solve(module.SOLVER, dict(program.data), iterations=2000, seconds=None)
    seen = estimate(module.SOLVER, program, found)
    nu = float(found.c.y1) if hasattr(found.c, "y1") else 0.0
    report = kkt.report(bound.bound, {"w": found.w.numpy()}, multipliers={"c": nu})
    value = report.constraints["c"].value
    natural = max(report.own["stationarity"], value, abs(nu - max(nu + value, 0.0)))
    assert nu > 0.1 and seen.error == 0 and seen.residual == pytest.approx(natural, rel=1e-2)


def test_the_error_of_minibatches_covers_95_percent():
    text = HEAD + "var w[d]; minimize f: E[z ~ D] log1pexp(-z.y * dot(w, z.x));"
    _, program, module = program_of(text, algorithm="sox", inner_batch=16)
    with module.no_grad():
        found = module.solve(module.SOLVER, dict(program.data), iterations=20, seconds=None)
    exact = estimate(module.SOLVER, program, found).residual
    solver, h = dataclasses.replace(module.SOLVER, whole=None), found.h
    data = solver.prepare(solver.as_namespace(dict(program.data), "cpu", torch.float64))
    covered = []
    rng = torch.Generator()
    for seed in range(60):
        rng.manual_seed(seed)

        def minibatches(w, y, held):
            return itertools.islice(block_loop.gradients(solver, data, w, y, held, rng), 16)

        seen = estimate(solver, program, SimpleNamespace(w=found.w, c=found.c, h=h), minibatches)
        covered.append(abs(seen.residual - exact) <= seen.error)
        assert seen.error > 0
    assert np.mean(covered) >= 0.9


@pytest.mark.parametrize("algorithm", ["sox", "nasa"])
def test_a_run_without_full_passes_estimates_by_minibatches(algorithm):
    """In either loop, where the objective has no pass over all rows with derivatives."""
    body = "var w[d]; minimize f: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.1 * sumsq(w);"
    _, program, module = program_of(HEAD + body, algorithm=algorithm, inner_batch=16)
    solver = dataclasses.replace(module.SOLVER, whole=None)
    with module.no_grad():
        found = solver.solve(solver, dict(program.data), iterations=3000, seconds=None, tol=0.1)
    last = found.history[-1]
    assert found.status == "converged" and last["kkt"] + last["kkt_error"] <= 0.1 and last["kkt_error"] > 0


def test_a_loose_tolerance_ends_a_net_early():
    text = (
        "net s : real[d] -> real; var w = params(s);\nminimize f: E[z ~ D] log1pexp(-z.y * s(w; "
        "z.x)) + 0.01 * sumsq(w);"
    )
    text = HEAD + text
    bound = fccomodel.compile(text).bind(data={"D": {"x": X, "y": Y}}, nets={"s": "mlp(6, activation=tanh)"})
    found = bound.solve(seed=0, budget="20000it", tol=5e-3)
    solution = found.outcome.solution
    assert (
        solution.status == "converged"
        and "two stages running" in solution.stopped
        and solution.iterations < 20_000
    )
    assert found.report.epsilon <= 5e-3 and solution.history[-1]["kkt"] <= 5e-3


def test_a_tight_tolerance_is_not_met_by_noise():
    """Estimates are made here whatever they take, so that the speed of the machine does not matter."""
    _, program, module = program_of(MODEL)
    observe = module.observe
    module.observe = lambda *given: observe(*given[:-2], 1e9, given[-1])  # for the seconds so far
    with module.no_grad():
        found = module.solve(module.SOLVER, dict(program.data), iterations=300, seconds=None, tol=1e-6)
    assert found.status == "stopped" and found.history[-1]["kkt"] > 1e-6


SQUARE = "model m; var w >= -2, <= 2; minimize (E[x ~ normal(1, 1)] (w * x) - 1)^2;"


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["bsgd", "sox", "nasa"])
def test_what_minibatches_would_bias_is_not_estimated(algorithm):
    """Plain minibatches, which BSGD goes by, have their zero at w = 1/2, where the residual is 1."""
    options = {
        "algorithm": algorithm,
        "unverified": True,
        "inner_batch": 1,
        "budget": "400it",
        "polish": False,
    }
    planned = fccomodel.compile(SQUARE).bind().plan(**options)
    seen = []
    _, _, solution = pipeline.run(planned, lambda now: seen.append(now.kkt), watched=True)
    assert solution.ended == "stopped" and seen and set(seen) == {None}
    whole = fccomodel.compile(SQUARE).bind().plan(**{**options, "polish": True})
    _, _, solution = pipeline.run(whole, watched=True)
    found = [entry["kkt"] for entry in solution.history if entry["kkt"] is not None]
    assert found and (algorithm != "bsgd" or found[-1] > 0.5)


def test_minibatches_of_a_linear_expectation_are_not_biased():
    body = "var w[d]; minimize f: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.1 * sumsq(w);"
    _, _, module = program_of(HEAD + body, algorithm="sox", inner_batch=16, polish=False)
    assert module.SOLVER.whole is None and not module.SOLVER.biased


def test_a_biased_algorithm_is_not_told_to_run_longer():
    options = {
        "algorithm": "bsgd",
        "unverified": True,
        "inner_batch": 1,
        "budget": "2000it",
        "schedule": "decay",
    }
    advice = fccomodel.compile(SQUARE).bind().solve(seed=0, **options).report.advice
    assert "biased" in advice and "longer" not in advice and "inner_batch" in advice


def test_vectors_of_draws_are_of_the_steps_precision():
    problem = fccomodel.compile(SQUARE).bind()
    assert problem.solve(algorithm="hscg", unverified=True, budget="200it").outcome.solution.iterations == 200
