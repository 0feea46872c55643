"""Functions that grow to both sides of a number, against their values; those of which it is not known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.report.certificates.absolute_values import two_sided_growth
from fccomodel.structure import Analyser, analyse

HEAD = (
    "dim d; param tau default 0.3; data D : table(x: real[d], y: real, s: real); var w[d]; minimize E[z ~ D] "
)
U = "z.y - dot(w, z.x)"
GROWING = (
    f"max(0.9 * ({U}), -0.1 * ({U}))",
    f"max(0.9 * ({U}), 0.2 * (dot(w, z.x) - z.y))",
    f"max(({U}) * tau, ({U}) * (tau - 1))",
    f"max({U} - 0.5, dot(w, z.x) - z.y - z.s, 0)",
    f"pos(abs({U}) - 0.5)",
    f"pinball({U}, tau)",
    f"max(2 * ({U}), {U} + z.s, -({U}) / 4 + 3)",
    "max(dot(w, z.x) - 3 * w[1], 3 * w[1] - dot(w, z.x) + z.s)",
)  # fmt: skip
#: one side alone, two directions, other slopes than numbers, curved
OTHERS = (
    f"pos({U})", f"max({U}, 2 * ({U}))", f"max({U}, w[1] - z.y)", f"max(z.s * ({U}), -({U}))",
    f"max({U}, square({U}))", f"square({U})",
)  # fmt: skip


ROW = {"x": np.array([[1.5, -0.5]]), "y": np.array([0.7]), "s": np.array([-0.4])}


def made(text: str) -> tuple[Bound, Analyser, ir.Reduce]:
    """The problem of one row, what is known of it, and the mean."""
    bound = fccomodel.compile(f"{HEAD}{text};").bind(D=ROW).bound
    mean = bound.problem.objective.expr
    assert isinstance(mean, ir.Reduce)
    return bound, analyse(bound.problem, bound).see, mean


@pytest.mark.parametrize("text", GROWING)
def test_two_values_are_apart_by_no_less(text):
    """f(v) + f(w) >= 2 least + slope |u(v) - u(w)|, and far away by no more."""
    bound, see, mean = made(text)
    found = two_sided_growth(mean.body, see)
    assert found is not None

    def value(node: ir.Expr, w: np.ndarray) -> float:
        return float(
            Evaluator(bound, {"w": torch.from_numpy(w)}).value(dataclasses.replace(mean, body=node), {}).data
        )

    random = np.random.default_rng(1)
    for size in (0.1, 1.0, 10.0, 1e3):
        v, w = (size * random.normal(size=2) for _ in range(2))
        apart = found.slope * abs(value(found.u, v) - value(found.u, w))
        assert value(mean.body, v) + value(mean.body, w) >= 2 * value(found.least, v) + apart - 1e-12 * size
    unit = np.array([1.0, 0.3])
    steepness = min(value(mean.body, 1e9 * sign * unit) for sign in (1, -1)) / abs(value(found.u, 1e9 * unit))
    assert found.slope == pytest.approx(steepness, rel=1e-6)


@pytest.mark.parametrize("text", OTHERS)
def test_of_others_nothing_is_said(text):
    _, see, mean = made(text)
    assert two_sided_growth(mean.body, see) is None
