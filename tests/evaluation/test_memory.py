"""What is remembered of a bound problem goes with it: nothing keeps its data alive, not even until
garbage is collected."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from fccomodel import pipeline, report, structure
from fccomodel.core.source import Source
from fccomodel.evaluation.values import lets, values
from fccomodel.report.new_rows.intervals import intervals

TEXT = """dim d; set K; data D : table(x: real[d], y: {-1, 1}, g: K); param p default 2; var w[d] >= -5;
let loss[k in K] = E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x));
minimize max[k in K] loss[k] + mean[a in D | a.y == 1] log(E[b ~ D | b.y == -1] exp(dot(w, b.x) - dot(w, a.x))) + log(p) * sumsq(w);
subject to c[k in K]: loss[k] <= 5; e: cvar(tail = 0.1)[z ~ D] abs(dot(w, z.x)) <= 10;"""  # noqa: E501
POINT = {"w": np.zeros(3)}
USES = {
    "bound": lambda bound: None,
    "analysed": lambda bound: structure.analyse(bound.problem, bound),
    "lets": lambda bound: values(bound, POINT, lets(bound.problem, ["loss"]), seed=0),
    "reported on": lambda bound: report.report(bound, POINT),
    "as a sample": lambda bound: intervals(bound, POINT),
}


@pytest.mark.parametrize("use", USES)
def test_data_are_let_go(use):
    x = np.random.default_rng(0).normal(size=(60, 3))
    compiled = pipeline.compile_model(Source(text=TEXT, name="m"))
    data = {"D": {"x": x, "y": np.where(x[:, 0] > 0, 1, -1), "g": np.arange(60) % 3}}

    def used() -> weakref.ref:
        bound = pipeline.bind(compiled, pipeline.Binding(data=data))
        USES[use](bound)
        return weakref.ref(bound)

    used()  # what is imported for the first time may keep frames
    gc.collect()
    gc.disable()
    try:
        assert used()() is None
    finally:
        gc.enable()
