"""The same seed gives the same answer to the bit, however fast the clock goes: stages follow each
other by counted work."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.app.stored import results
from fccomodel.core.work import Meter, priced
from fccomodel.execution import run

RNG = np.random.default_rng(7)
X = RNG.normal(size=(300, 4))
ROWS = {
    "D": {
        "x": X,
        "y": np.where(X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=300) > 0, 1, -1),
        "g": np.arange(300) % 3,
    }
}
HEAD = "dim d; set K; data D : table(x: real[d], y: {-1, 1}, g: K); var w[d]; "
LOSS = "log1pexp(-z.y * dot(w, z.x))"
MODELS = {
    "logistic": f"minimize E[z ~ D] {LOSS} + 0.01 * sumsq(w);",
    "constrained": f"minimize E[z ~ D | z.y == 1] {LOSS}; subject to c: E[z ~ D | z.y == -1] {LOSS} <= 0.6;",
    "worst group": f"minimize max[k in K] E[z ~ D | z.g == k] {LOSS} + 0.01 * sumsq(w);",
    "kinks": "minimize E[z ~ D] abs(z.y - dot(w, z.x)) + 0.01 * norm1(w);",
    "pairs": "minimize mean[p in D | p.y == 1] log(E[q ~ D | q.y == -1] exp(dot(w, q.x) - dot(w, p.x))) "
    "+ 0.01 * sumsq(w);",
    "not convex": "minimize E[z ~ D] tanh(-z.y * dot(w, z.x)) + 0.05 * sumsq(w);",
}


def bound(name: str) -> fccomodel.BoundModel:
    return fccomodel.compile(HEAD + MODELS[name]).bind(data=ROWS)


@pytest.mark.parametrize("name", MODELS)
def test_a_fast_clock_changes_nothing(name, monkeypatch):
    """The clock goes three times as fast, and unevenly; nothing but seconds differs."""
    calm = bound(name).solve(budget="60s")
    clock = time.perf_counter
    began = clock()
    monkeypatch.setattr(
        time, "perf_counter", lambda: began + 3 * (clock() - began) + 0.01 * np.sin(50 * clock())
    )
    hasty = bound(name).solve(budget="60s")
    assert not calm.outcome.solution.timed and not hasty.outcome.solution.timed
    for key, value in calm.variables.items():
        np.testing.assert_array_equal(value, hasty.variables[key])
    assert same(calm.outcome.report.to_json(), hasty.outcome.report.to_json())


def same(first: Any, second: Any) -> bool:
    return repr({**first, "wall_s": 0}) == repr({**second, "wall_s": 0})


def test_a_run_that_the_clock_ends_says_so_and_can_be_repeated(tmp_path):
    """Its program, with the numbers of its steps, goes the same way; the report names what does not
    depend on the clock."""
    text = HEAD + "minimize E[z ~ D] tanh(-z.y * dot(w, z.x)) + 0.05 * sumsq(w);"
    planned = fccomodel.compile(text).bind(data=ROWS).plan(budget="0.3s", polish=False, patience=1000)
    from fccomodel import pipeline

    outcome = pipeline.solve(planned)
    assert outcome.solution.timed and "--budget" in outcome.stopped and "oracles" in outcome.stopped
    program = results.repeating(outcome.program, outcome.solution)
    module: dict[str, Any] = {"__name__": "solver"}
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), module)
    with module["no_grad"]():
        again = module["solve"](
            module["SOLVER"],
            dict(program.data),
            seconds=None,
            iterations=module["ITERATIONS"],
            planned=module["PLANNED"],
        )
    name, (first, last, shape) = next(iter(program.layout.items()))
    np.testing.assert_array_equal(again.w[first:last].view(shape).numpy(), outcome.solution.variables[name])


def test_work_is_counted_by_what_is_asked_for():
    """Twice the same costs the same; a hundred times the rows cost more; differentiation counts."""
    small, large = torch.ones(10, 3), torch.ones(100_000, 3)
    w = torch.ones(3, requires_grad=True)
    prices = [priced(lambda x=x: (x @ w).exp().sum())[1] for x in (small, small, large)]
    assert prices[0] == prices[1] > 0 and prices[2] > 10 * prices[0]
    assert priced(lambda: torch.autograd.grad((small @ w).exp().sum(), w))[1] > prices[0]


def test_counting_loads_no_compiler():
    code = "import sys, torch; from fccomodel.core.work import priced; priced(lambda: torch.ones(3) + 1); "
    code += "sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_a_meter_tells_whether_work_or_the_clock_ended_it():
    meter = Meter(1.0)
    meter.spend(2.0)
    assert meter.over and not meter.timed
    late = Meter(1.0, until=time.perf_counter() - 1.0)
    assert late.over and late.timed


def test_counted_patience_ends_a_run() -> None:
    planned = bound("not convex").plan(budget="60s")
    from fccomodel import pipeline

    program = pipeline.emit(planned)
    ended = [
        run.run(program, planned.bound, run.RunSettings(seconds=60, room=60, patience=0.05, polish=True))
        for _ in range(2)
    ]
    assert ended[0].iterations == ended[1].iterations and ended[0].worked < 2
