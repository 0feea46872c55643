"""Rows of variables that could change places, and runs that begin where none does what another does."""

import numpy as np
import pytest

import fccomodel
from fccomodel.structure.exchange import exchangeable

HEAD = (
    "dim d; dim k; data D : table(x: real[d], y: real); data c : real[k]; var M[k, d]; var p[k] in "
    "simplex(k); var a[k]; "
)
MODELS = {
    "E[z ~ D] -log(sum[j in k] p[j] * exp(-sumsq(z.x - M[j])))": {"M"},
    "E[z ~ D] square(z.y - (sum[j in k] a[j] * tanh(dot(M[j], z.x)))) + 0.1 * norm_fro(M)": {"M"},
    "E[z ~ D] min[j in k] sumsq(z.x - M[j])": {"M"},
    "E[z ~ D] -log(sum[j in k] c[j] * exp(-sumsq(z.x - M[j])))": set(),
    "E[z ~ D] sumsq(z.x - M[1]) + (sum[j in k] sumsq(M[j]))": set(),
    "E[z ~ D] sum[j in k | j > 1] sumsq(z.x - M[j])": set(),
    "E[z ~ D] sum[j in k] sumsq(z.x - j * M[j])": set(),
    "E[z ~ D] norm2(M @ z.x - c)": set(),
    "E[z ~ D] sum[j in 1 .. k] sumsq(z.x - M[j])": {"M"},
    "E[z ~ D] sum[j in 2 .. k] sumsq(z.x - M[j])": set(),
    "E[z ~ D] sum[j in k | j < k] sumsq(M[j + 1] - M[j] + z.x)": set(),
}


@pytest.mark.parametrize("text", MODELS)
def test_rows_that_could_change_places(text):
    assert (
        exchangeable(fccomodel.compile(f"{HEAD} minimize {text} + 0 * sum(a) + 0 * sum(p);").compiled.problem)
        == MODELS[text]
    )


def test_a_mixture_parts_its_centres():
    random = np.random.default_rng(0)
    x = np.array([[-3.0, 0.0], [3.0, 1.0]])[random.integers(2, size=200)] + random.normal(size=(200, 2))
    text = f"{HEAD.partition('data')[0]} data D : table(x: real[d]); var M[k, d];"
    text += "minimize E[z ~ D] -log(mean[j in k] exp(-0.5 * sumsq(z.x - M[j])));"
    found = fccomodel.compile(text).bind(D={"x": x}, spec={"dims": {"k": 2}}).solve(budget="60it")
    centres = found.variables["M"]
    assert abs(centres[0, 0] - centres[1, 0]) > 5


def test_factors_beside_an_offset_leave_zero():
    """The derivative by some of the variables is zero at the start, by others it is not; what has no
    influence stays."""
    text = (
        "data c: real; data idle: real; var x; var y; var b; var z; minimize square(x * y - c) + "
        "square(b + idle * z - 1);"
    )
    found = fccomodel.compile(text).bind(c=2.0, idle=0.0).solve(budget="60it")
    assert found.objective < 1e-6 and found.variables["z"] == 0
