"""Reports and progress, on records made by hand."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from fccomodel.app import display


def made_report(constraints, **changes):
    fields = {
        "objective": 0.25,
        "stationarity": 2e-4,
        "feasibility": 0.0,
        "complementarity": 1e-6,
        "verdict": "good",
        "notes": (),
        "advice": "",
        "own": None,
        "exact": True,
        "gap": None,
        "qualification": None,
        "sensitivity": None,
    }
    return SimpleNamespace(constraints=constraints, **(fields | changes))


def made_problem(kinds=()):
    objective = SimpleNamespace(sense="minimize", label="cost", expr=None)
    return SimpleNamespace(objective=objective, constraints=[SimpleNamespace(label=n, kind=k) for n, k in kinds])


def shown(found, problem) -> str:
    from rich.console import Group

    return display.to_text(Group(*filter(None, display.report(found, problem))))


def test_a_report_fits_eighty_columns_and_says_everything():
    text = shown(made_report({"misses": (-1e-3, 2.5, 2.5e-3)}, notes=("a long note " * 20,)), made_problem([("misses", "le")]))
    assert max(map(len, text.splitlines())) <= display.WIDTH
    for word in ("minimize", "cost", "0.25", "misses", "-1.00e-03", "2.5e-03", "2.0e-04", "good", "✓"):
        assert word in text


def test_the_solvers_own_multipliers_and_advice_are_shown():
    own = {"stationarity": 0.5, "complementarity": 0.25, "multipliers": {}}
    text = shown(made_report({"c": (0.0, 1.0, 0.0)}, own=own, advice="run longer"), made_problem())
    (line,) = [line for line in text.splitlines() if "the solver's own" in line]
    assert line.split()[-2:] == ["5.0e-01", "2.5e-01"] and "run longer" in text


@pytest.mark.parametrize(("kind", "value", "mark"), [("le", -5.0, "✓"), ("le", 0.1, "✗"), ("eq", -0.1, "✗"), ("eq", 1e-4, "✓")])
def test_the_mark_of_a_constraint(kind, value, mark):
    assert mark in shown(made_report({"c": (value, 0.0, 0.0)}), made_problem([("c", kind)]))


def test_many_constraints_fold_to_the_worst_of_each_family():
    rows = {f"a[{k}]": (k / 100, 0.0, 0.0) for k in range(30)} | {f"b[{k}]": (-1.0, 0.0, 0.0) for k in range(30)}
    text = shown(made_report(rows), made_problem([("a", "le"), ("b", "le")]))
    assert "a[29]" in text and "a[3]" not in text
    assert "24 more a, at most" in text and "+2.30e-01" in text
    assert len(text.splitlines()) < 25


def test_a_dozen_constraints_are_all_shown():
    text = shown(made_report({f"a[{k}]": (0.0, 0.0, 0.0) for k in range(12)}), made_problem())
    assert all(f"a[{k}]" in text for k in range(12)) and "more" not in text


def test_options_are_grouped_by_origin_automatic_last():
    options = {
        "seed": (0, "automatic"),
        "budget": ("5s", "command line"),
        "momentum": (0.1, "options block"),
        "none": (None, "automatic"),
    }
    lines = [line.plain for line in display.option_lines(options)]
    assert lines == ["command line: budget 5s", "options block: momentum 0.1", "automatic: seed 0"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (float("inf"), ""), (5.4, "5 s"), (59.6, "1:00"), (61, "1:01"), (3723, "1:02:03")]
)
def test_duration(seconds, text):
    assert display.duration(seconds) == text


def test_numbers():
    assert (display.number(None), display.number(0.14368220), display.number(float("nan"))) == ("-", "0.143682", "nan")
    assert (display.residual(0.0), display.residual(None), display.residual(1.234e-5)) == ("0", "-", "1.2e-05")
    assert (display.rate(None), display.rate(12_345), display.rate(6543), display.rate(123.4)) == ("-", "12.3k", "6.54k", "123")


def step(**changes):
    fields = {"stage": 3, "iteration": 1200, "objective": 0.5, "violation": 1e-3, "kkt": None, "kkt_error": None}
    return SimpleNamespace(**(fields | {"steps_per_second": 900.0, "seconds_left": 30.0, "message": ""} | changes))


def test_progress_without_a_terminal_is_a_line_now_and_then(monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 4.0, 8.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    file = io.StringIO()
    with display.progress(Console(file=file, force_terminal=False)) as callback:
        assert callback is not None
        for k in range(4):
            callback(step(iteration=k))
    lines = file.getvalue().splitlines()
    assert [line.split("step ")[1].split()[0] for line in lines] == ["1", "3"]
    assert "violation 1.0e-03" in lines[0] and "30 s left" in lines[0] and "KKT" not in lines[0]


def test_progress_on_a_terminal_shows_a_panel():
    file = io.StringIO()
    with display.progress(Console(file=file, force_terminal=True, width=80)) as callback:
        assert callback is not None
        callback(step(kkt=2e-3, kkt_error=1e-4, message="polishing"))
    text = file.getvalue()
    assert "stage 3" in text and "steps/s" in text and "polishing" in text and "2.0e-03 ± 1.0e-04" in text


def test_quiet_progress_is_none():
    with display.progress(Console(file=io.StringIO()), quiet=True) as callback:
        assert callback is None
