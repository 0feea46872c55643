"""The course: every session runs as it stands, and the answers to its exercises are right."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from places import ROOT

COURSE = ROOT / "tutorials" / "course"
SESSIONS = sorted(COURSE.glob("[0-9]*.py"))
RUN = """
import runpy, sys
sys.path.insert(0, ".")
from answers import ANSWERS
from checks import CHECKS, check
number = sys.argv[1].split("_")[0].lstrip("0")
names = runpy.run_path(sys.argv[1])
own = [name for name in CHECKS if name.split(".")[0] == number]
assert own and all(check(name, ...) is None for name in own)
assert all(check(name, ANSWERS[name]) for name in own), own
"""


@pytest.mark.slow
@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_runs_and_its_exercises_are_answered(session):
    pytest.importorskip("matplotlib")
    env = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", RUN, session.name], cwd=COURSE, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "not yet right" not in done.stdout


def test_wrong_answers_are_not_right():
    sys.path.insert(0, str(COURSE))
    try:
        from checks import check
    finally:
        sys.path.remove(str(COURSE))
    assert check("1.1", 0.8) is False and check("2.1", 0.1) is False and check("5.1", 1.0) is False


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_a_session_says_what_it_is_for(session):
    text = session.read_text(encoding="utf-8")
    assert "After this session you can" in text and text.count("## Exercise") == 2 and "What to remember" in text
    assert session.name in (COURSE / "README.md").read_text(encoding="utf-8")
