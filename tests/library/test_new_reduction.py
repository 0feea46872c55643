"""A kind of reduction that its own file alone knows of is parsed, checked, analysed, interpreted,
emitted and solved."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

#: kinks and no curvature; taken as it is, by the functions that programs carry
MIDRANGE = '''
"""The midrange."""

from fccomodel.library.reductions.base import ONE, Reduction, Slope, always, among


def reduce_midrange(x, dim, mask=None):
    """Halfway between the largest and the least along ``dim``."""
    high = x if mask is None else x.masked_fill(mask == 0, float("-inf"))
    low = x if mask is None else x.masked_fill(mask == 0, float("inf"))
    return (high.amax(dim) + low.amin(dim)) / 2


def slope_midrange(x, y, dim, mask=None):
    """Half for the largest, half for the least."""
    high = x if mask is None else x.masked_fill(mask == 0, float("-inf"))
    low = x if mask is None else x.masked_fill(mask == 0, float("inf"))
    ends = (high == high.amax(dim, keepdim=True)).to(x.dtype), (low == low.amin(dim, keepdim=True)).to(x.dtype)
    return sum(end / end.sum(dim, keepdim=True) for end in ends) / 2


def _value(x, options):
    x.kept["ends"] = x.top(), -x.top(-1.0)
    return (x.kept["ends"][0] + x.kept["ends"][1]) / 2


def _slope(x, y, options):
    def hits(end):
        return lambda e, here: (e == here.at(end)).to(e.dtype)

    ends = [(hits(end), x.total(hits(end))) for end in x.kept["ends"]]
    return Slope(lambda e, here: sum(hit(e, here) / here.at(ties) for hit, ties in ends) / 2)


MIDRANGE = Reduction(
    name="midrange",
    meaning="halfway between the largest and the least element",
    scalar="`midrange` orders numbers.",
    value=_value,
    slope=_slope,
    kinked=True,
    program=reduce_midrange,
    program_slope=slope_midrange,
    increasing=True,
    homogeneous=True,
    range=among,
    lipschitz=always(ONE),
    rule="midrange",
    law="A mean of the largest and the least is increasing, and neither convex nor concave.",
)
'''

#: smooth, and a function of an expectation, which algorithms take in its place
GMEAN = '''
"""The geometric mean."""

from math import inf

from fccomodel.core.rewrite import apply as make
from fccomodel.library.atoms import Interval
from fccomodel.library.reductions.base import ByMeans, Reduction, Slope, among, always
from fccomodel.library.reductions.mean import MEAN


def _value(x, options):
    return (x.total(lambda e, here: e.log()) / x.count).exp()


def _of_mean(node, mean):
    return make("exp", mean(make("log", node.body, span=node.body.span)), span=node.span)


GMEAN = Reduction(
    name="gmean",
    meaning="exp of the mean of log e, of positive elements",
    binders=("in", "~"),
    scalar="`gmean` multiplies numbers.",
    value=_value,
    slope=lambda x, y, options: Slope(lambda e, here: x.share(here) * here.at(y) / e),
    curvature=always("concave"),
    increasing=True,
    homogeneous=True,
    domain=Interval(0.0, inf, True),
    range=among,
    sampled=True,
    by_means=ByMeans(number=1, of=_of_mean, words="exp(E log e): the outer function f(u) = exp u"),
    through_log=MEAN,
    rule="geometric mean",
    law="A geometric mean is concave and increasing; its logarithm is the mean of the logarithms.",
)
'''

SCRIPT = """
import json, sys
import numpy as np

import fccomodel.library.reductions as package

package.__path__.append(sys.argv[1])

import torch

import fccomodel
from fccomodel.evaluation.interpret import evaluate

rng = np.random.default_rng(0)
x = rng.normal(size=(60, 2))
data = {"x": x, "y": x @ [1.0, -2.0] + rng.normal(size=60), "g": np.array(["a", "b", "c"])[np.arange(60) % 3]}
HEAD = '''dim d; set K; data D : table(x: real[d], y: real, g: K); var w[d];
let risk[k in K] = E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2;
'''
found = {}


def compiled(objective):
    return fccomodel.compile(HEAD + f"minimize {objective};")


for name, objective in json.loads(sys.argv[2]).items():
    problem = compiled(objective).bind(data={"D": data})
    bound, root = problem.bound, problem.bound.problem.objective.expr
    w = torch.tensor([0.3, 0.8], dtype=torch.float64, requires_grad=True)
    values = [evaluate(bound, root, {"w": w}, chunk=chunk) for chunk in (1 << 21, 20)]
    slopes = [torch.autograd.grad(v, w)[0].tolist() for v in values]
    values = [float(v.detach()) for v in values]
    result = problem.solve(seed=0, budget="3000it", unverified=True, precision="float64")
    found[name] = dict(
        values=values, slopes=slopes, explained=str(problem.explain(unverified=True)), program=result.solver,
        w=result.variables["w"].tolist(), objective=float(result.report.objective), epsilon=float(result.report.epsilon),
    )
wrong = []
for objective in ("midrange[z ~ D] z.y", "midrange[z in D] z.x", "midrange(0.5)[z in D] z.y", "midrang[z in D] z.y"):
    try:
        compiled(objective)
    except fccomodel.FccoError as error:
        wrong.append(str(error))
print(json.dumps({"found": found, "wrong": wrong}))
"""

OBJECTIVES = {
    "family": "(midrange[k in K] risk[k]) + 0.1 * sumsq(w)",
    "rows": "(midrange[z in D] (dot(w, z.x) - z.y)^2) + 0.1 * sumsq(w)",
    "geometric": "(gmean[k in K] (1 + risk[k])) + 0.1 * sumsq(w)",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "midrange.py").write_text(MIDRANGE)
    (folder / "gmean.py").write_text(GMEAN)
    command = [sys.executable, "-c", SCRIPT, str(folder), json.dumps(OBJECTIVES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def expected(name: str, w: np.ndarray) -> float:
    """The objective in NumPy."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x @ [1.0, -2.0] + rng.normal(size=60)
    squares = (x @ w - y) ** 2
    risks = np.array([squares[k::3].mean() for k in range(3)])
    e = squares if name == "rows" else risks
    mean = np.exp(np.log(1 + risks).mean()) if name == "geometric" else (e.max() + e.min()) / 2
    return float(mean + 0.1 * w @ w)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_interpreted(outcome, name):
    """At once and block by block; the derivative by differences."""
    found, w, h = outcome["found"][name], np.array([0.3, 0.8]), 1e-6
    assert found["values"] == pytest.approx([expected(name, w)] * 2, rel=1e-12)
    differences = [(expected(name, w + h * e) - expected(name, w - h * e)) / (2 * h) for e in np.eye(2)]
    assert all(slope == pytest.approx(differences, rel=1e-6) for slope in found["slopes"])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_solved(outcome, name):
    """The reported objective is that at the answer, and no step of a thousandth from there is better
    by more than 5e-4."""
    found = outcome["found"][name]
    w = np.array(found["w"])
    assert found["objective"] == pytest.approx(expected(name, w), rel=1e-6)
    around = [
        expected(name, w + 1e-3 * np.array([np.cos(a), np.sin(a)])) for a in np.linspace(0, 2 * np.pi, 12)
    ]
    assert found["objective"] <= min(around) + 5e-4 < expected(name, np.zeros(2))


def test_analysed_and_emitted(outcome):
    family, geometric = outcome["found"]["family"], outcome["found"]["geometric"]
    assert "midrange is neither convex nor concave" in family["explained"]
    assert (
        "def reduce_midrange(" in family["program"]
        and "def slope_midrange(" in outcome["found"]["rows"]["program"]
    )
    assert "exp(E log e)" in geometric["explained"] and "reduce_gmean" not in geometric["program"]
    assert geometric["epsilon"] < 1e-5


def test_checked(outcome):
    codes = [text.partition("]")[0].partition("[")[2] for text in outcome["wrong"]]
    assert codes == ["F0406", "F0303", "F0112", "F0113"]
    assert "did you mean `midrange`?" in outcome["wrong"][3]
