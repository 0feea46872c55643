"""An atom with kinks that its own file alone knows of is checked, analysed, explained, smoothed,
solved and reported."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

ROOT = Path(__file__).parents[2]

#: convex and piecewise linear, with its graph; and its capped magnitude, which is neither, by its
#: formula alone
ATOMS = '''
"""The cup and the dent."""

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom


def _cup(x):
    return max(-x / 2, x, 3 * x - 2)


def _slopes(u):
    return [s for s, low, high in ((-0.5, -float("inf"), 0), (1.0, 0, 1), (3.0, 1, float("inf"))) if u.lo < high and low < u.hi]


cup = ScalarAtom(
    name="cup",
    meaning="the largest of -u/2, u and 3 u - 2",
    arguments=("u",),
    formula="Max(-u / 2, u, 3 * u - 2)",
    torch="torch.maximum({0}.abs() * 0.75 + {0} * 0.25, 3 * {0} - 2)",
    derivative=("-0.5 + 1.5 * step(u) + 2 * step(u - 1)",),
    graph=(((0.0, -0.5), (0.0, 1.0), (1.0, 1.0), (1.0, 3.0)), 0.0, 0.0),
    instead={"smooth": "cup(u) has kinks: use logsumexp(concat(..))."},
    properties=Properties(
        curvature=lambda u: "affine" if len(_slopes(u)) == 1 else "convex",
        monotone=lambda u: "increasing" if u.lo >= 0 else "decreasing" if u.hi <= 0 else "none",
        lipschitz=lambda u: max(abs(s) for s in _slopes(u)),
        gradient_lipschitz=0.0,
        range=lambda u: Interval(0.0 if u.lo <= 0 <= u.hi else min(_cup(u.lo), _cup(u.hi)), max(_cup(u.lo), _cup(u.hi))),
    ),
)
dent = ScalarAtom(
    name="dent",
    meaning="min(|u|, 1)",
    arguments=("u",),
    formula="Min(Abs(u), 1)",
    torch="{0}.abs().clamp(max=1)",
    derivative=("sign(u) * step(1 - abs(u))",),
    breaks=("-1", "0", "1"),
    properties=Properties(lipschitz=1.0, gradient_lipschitz=0.0, range=Interval(0.0, 1.0)),
)
'''

SCRIPT = """
import json, sys
import numpy as np

import fccomodel.library.atoms as package

package.__path__.append(sys.argv[1])

import fccomodel
from fccomodel.core.source import Source

rng = np.random.default_rng(0)
x = rng.normal(size=(40, 2))
data = {"x": x, "y": x @ [1.0, -2.0] + rng.normal(size=40)}
HEAD = "dim d; data D : table(x: real[d], y: real); var w[d]; var t >= 0; "
OBJECTIVES = {
    "rows": "(E[z ~ D] cup(dot(w, z.x) - z.y)) + t",
    "whole": "cup(E[z ~ D] (dot(w, z.x) - z.y)^2) + 0.1 * norm1(w) + t",
}
found = {}
for name, objective in OBJECTIVES.items():
    problem = fccomodel.compile(HEAD + f"minimize {objective};").bind(data={"D": data})
    explained = problem.explain()
    result = problem.solve(seed=0, budget="4000it")
    found[name] = {
        "explained": str(explained), "w": result.variables["w"].tolist(), "objective": result.objective, "report": str(result),
        "epsilon": result.report.epsilon, "notes": list(result.report.notes), "why": str(explained.why("objective")),
    }
wrong = []
for objective in ("cupp(t)", "dent(E[z ~ D] (dot(w, z.x) - z.y)) + sumsq(w) + t"):
    try:
        wrong.append(str(fccomodel.compile(HEAD + f"minimize {objective};").bind(data={"D": data}).explain()))
    except fccomodel.FccoError as error:
        wrong.append(str(error))
print(json.dumps({"found": found, "wrong": wrong}))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atoms")
    (folder / "cup.py").write_text(ATOMS)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    return x, x @ [1.0, -2.0] + rng.normal(size=40)


def cup(u: np.ndarray) -> np.ndarray:
    return np.maximum.reduce([-u / 2, u, 3 * u - 2])


def test_checked(outcome):
    assert "did you mean `cup`?" in outcome["wrong"][0].lower()


def test_analysed_and_explained(outcome):
    """Convex, with kinks: its own advice. The kinks of its neighbour, of which no graph is known,
    follow from its formula."""
    found = outcome["found"]
    assert "Not smooth" in found["rows"]["why"] and "logsumexp(concat(..))" in found["rows"]["why"]
    assert found["rows"]["why"].startswith("objective: convex")
    assert "its kink at -1 points downward" in " ".join(outcome["wrong"][1].split())


def test_smoothed(outcome):
    assert "Moreau envelope" in " ".join(outcome["found"]["whole"]["explained"].split())


def test_solved_where_it_is_a_linear_program(outcome):
    """Its mean over rows, against linear programming."""
    x, y = rows()
    n = len(y)
    cost = np.r_[np.zeros(2), np.full(n, 1 / n)]
    pieces = ((-0.5, 0.0), (1.0, 0.0), (3.0, -2.0))
    left = np.vstack([np.c_[a * x, -np.eye(n)] for a, _ in pieces])
    right = np.concatenate([a * y - b for a, b in pieces])
    best = linprog(cost, A_ub=left, b_ub=right, bounds=[(None, None)] * (2 + n)).fun
    found = outcome["found"]["rows"]
    assert found["objective"] == pytest.approx(float(cup(x @ found["w"] - y).mean()), rel=1e-5)
    assert best - 1e-6 <= found["objective"] <= best + 1e-3


def test_its_subgradients_are_chosen_in_the_report(outcome):
    """At rows on their kinks, weights are chosen: the point is recognised as an optimum."""
    found = outcome["found"]["rows"]
    assert found["epsilon"] < 2e-2
    assert all("the subgradients there are chosen" in note for note in found["notes"] if "cup" in note)


def test_solved_as_an_outer_function(outcome):
    x, y = rows()
    found = outcome["found"]["whole"]
    w = np.array(found["w"])

    def value(w: np.ndarray) -> float:
        return float(cup(np.mean((x @ w - y) ** 2)) + 0.1 * np.abs(w).sum())

    around = [value(w + 1e-2 * np.array([np.cos(a), np.sin(a)])) for a in np.linspace(0, 2 * np.pi, 12)]
    assert found["objective"] == pytest.approx(value(w), rel=1e-4) and value(w) <= min(around) + 1e-3
