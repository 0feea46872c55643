"""The course: every session runs as it stands, and the answers to its exercises are right."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

import pytest
from support.places import ROOT

COURSE = ROOT / "tutorials" / "course"
SESSIONS = sorted(COURSE.glob("[0-9]*.py"))
#: Reads the package anew, from a copy: it needs a process of its own.
APART = "10_extending.py"
RUN = "import sys; sys.path[:0] = [sys.argv[1], '.']; import test_course; test_course.taught(sys.argv[2])"


def taught(session: str) -> None:
    """Runs a session, where its files are, and answers its exercises."""
    from answers import ANSWERS
    from checks import CHECKS, check

    number = session.split("_")[0].lstrip("0")
    runpy.run_path(session)
    own = [name for name in CHECKS if name.split(".")[0] == number]
    assert own and all(check(name, ...) is None for name in own)
    assert all(check(name, ANSWERS[name]) for name in own), own


@pytest.fixture
def classroom(monkeypatch):
    """The folder of the course, whose helpers a session imports, and pictures that nobody sees."""
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    monkeypatch.chdir(COURSE)
    monkeypatch.syspath_prepend(COURSE)
    yield
    pyplot.close("all")
    for helper in ("answers", "checks", "data"):
        sys.modules.pop(helper, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "session", [path for path in SESSIONS if path.name != APART], ids=lambda path: path.stem
)
def test_a_session_runs_and_its_exercises_are_answered(session, classroom, capsys):
    taught(session.name)
    assert "not yet right" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_session_with_a_copy_of_the_package_runs():
    pytest.importorskip("matplotlib")
    env = {
        **os.environ,
        "MPLBACKEND": "agg",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-c", RUN, str(ROOT / "tests"), APART]
    done = subprocess.run(command, cwd=COURSE, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "not yet right" not in done.stdout


def test_wrong_answers_are_not_right(classroom):
    from checks import check

    assert check("1.1", 0.8) is False and check("2.1", 0.1) is False and check("5.1", 1.0) is False


#: Wrong models, each with what is said of it.
WRONG_MODELS = [
    ("1.2", "var w >= -2, <= 2; minimize (w - 1)^2; # normal(1, 1)", "No expectation"),
    ("1.2", "var w >= -2, <= 2; minimize (E[x ~ normal(1, 1)] (w * x) - 1)^2;", "not affine"),
    ("1.2", "var w >= -2, <= 2; minimize E[x ~ normal(1, 1)] (w * x);", "not strictly convex"),
    ("1.3", "var w >= -2, <= 2; minimize E[x ~ normal(1, 1)] (w * x - 1)^2;", "objective"),
    ("4.3", "data D : table(a: real); var w; minimize E[z ~ D] abs(w - z.a);", "absolute value"),
    ("5.3", "data c : real[3]; var x[3]; maximize dot(c, x) - sumsq(x); subject to sum(x) <= 1;", "variable x"),
    ("7.3", "var w; minimize w", "F0105"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name, text, said", WRONG_MODELS)
def test_wrong_models_are_told_what_is_wrong(name, text, said, classroom, capsys):
    from checks import check

    assert check(name, text) is False
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_models_are_judged_by_their_mathematics(classroom):
    from checks import check

    assert check("1.2", "var w >= -2, <= 2; minimize E[x ~ normal(1,1)] (w - x)^2;")
    assert check("2.2", [1, 2]) is False and check("2.2", [0.1, 0.9]) is True
    assert check("5.3", "data c : real[3]; var y[3]; minimize dot(y, y) - dot(y, c); subject to y >= 0; 1 - sum(y) >= 0;")
    assert check("7.2", """dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];
        minimize mean[z in D] log(1 + exp(0.1 * norm1(w) - z.y * dot(z.x, w)));""")


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_says_what_it_is_for(session):
    text = session.read_text(encoding="utf-8")
    assert (
        "After this session you can" in text and text.count("## Exercise") == 3 and "What to remember" in text
    )
    assert session.name in (COURSE / "README.md").read_text(encoding="utf-8")
