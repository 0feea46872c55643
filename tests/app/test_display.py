"""Reports and progress: a tiny model's report with some entries replaced, and progress made by hand."""

from __future__ import annotations

import dataclasses
import functools
import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import fccomodel
from fccomodel.app.shown import display
from fccomodel.app.shown.display._variables import variable_lines
from fccomodel.execution.run import Progress
from fccomodel.report import Row, report


@functools.cache
def tiny_report():
    """The report of a model whose optimum is the origin."""
    bound = fccomodel.compile("var x[2]; minimize cost: sumsq(x);").bind().bound
    return report(bound, {"x": np.zeros(2)})


def made_report(constraints, **changes):
    """That report with these constraints, each given as the fields of a ``Row``."""
    rows = {label: Row(*row) for label, row in constraints.items()}
    changes = {"objective": 0.25, "stationarity": 2e-4, "verdict": "good", "notes": (), "gap": None} | changes
    return dataclasses.replace(tiny_report(), constraints=rows, **changes)


@functools.cache
def made_problem(*kinds):
    """A model with a constraint of each label and kind."""
    relations = {"le": "<=", "eq": "=="}
    stated = " ".join(f"{label}: x[1] {relations[kind]} 1;" for label, kind in kinds)
    subject = f"subject to {stated}" if stated else ""
    return fccomodel.compile(f"var x[2]; minimize cost: sumsq(x); {subject}").bind().bound.problem


def shown(found, problem, **how) -> str:
    from rich.console import Group

    return display.to_text(Group(*filter(None, display.report(found, problem, **how))))


def test_a_report_fits_eighty_columns_and_says_everything():
    row = (-1e-3, 2.5, 2.5e-3, 0.499, "<=", 0.5)
    text = shown(made_report({"misses": row}, notes=("a long note " * 20,)), made_problem(("misses", "le")))
    assert max(map(len, text.splitlines())) <= display.WIDTH
    for word in (
        "minimize",
        "cost",
        "0.25",
        "misses",
        "0.499 <= 0.5",
        "-1.0e-03",
        "2.5",
        "2.0e-04",
        "good",
        "✓",
    ):
        assert word in text


def test_the_solvers_own_multipliers_and_advice_are_shown():
    own = {"stationarity": 0.5, "complementarity": 0.25, "multipliers": {}}
    text = shown(
        made_report({"c": (0.0, 1.0, 0.0)}, own=own, advice="run longer"), made_problem(), verbose=True
    )
    said = " ".join(text.split())
    assert (
        "with the solver's own multipliers: stationarity 5.0e-01, complementarity 2.5e-01" in said
        and "run longer" in said
    )


@pytest.mark.parametrize(
    ("kind", "value", "mark"), [("le", -5.0, "✓"), ("le", 0.1, "✗"), ("eq", -0.1, "✗"), ("eq", 1e-4, "✓")]
)
def test_the_mark_of_a_constraint(kind, value, mark):
    assert mark in shown(made_report({"c": (value, 0.0, 0.0)}), made_problem(("c", kind)))


def test_many_constraints_fold_to_the_worst_of_each_family():
    rows = {f"a[{k}]": (k / 100, 0.0, 0.0) for k in range(30)} | {
        f"b[{k}]": (-1.0, 0.0, 0.0) for k in range(30)
    }
    text = shown(made_report(rows), made_problem(("a", "le"), ("b", "le")))
    assert "a[29]" in text and "a[3]" not in text
    assert "24 more a, at most" in text and "+2.3e-01" in text
    assert len(text.splitlines()) < 25


def test_a_dozen_constraints_are_all_shown():
    text = shown(made_report({f"a[{k}]": (0.0, 0.0, 0.0) for k in range(12)}), made_problem())
    assert all(f"a[{k}]" in text for k in range(12)) and "more a" not in text


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
    ("seconds", "text"),
    [(None, ""), (float("inf"), ""), (5.4, "5 s"), (59.6, "1:00"), (61, "1:01"), (3723, "1:02:03")],
)
def test_duration(seconds, text):
    assert display.duration(seconds) == text


def test_numbers():
    assert (display.number(None), display.number(0.14368220), display.number(float("nan"))) == (
        "-",
        "0.143682",
        "nan",
    )
    assert (display.residual(0.0), display.residual(None), display.residual(1.234e-5)) == (
        "0",
        "-",
        "1.2e-05",
    )
    assert (display.rate(None), display.rate(12_345), display.rate(6543), display.rate(123.4)) == (
        "-",
        "12.3k",
        "6.54k",
        "123",
    )


def step(**changes):
    fields = {
        "stage": 3,
        "iteration": 1200,
        "objective": 0.5,
        "violation": 1e-3,
        "kkt": None,
        "kkt_error": None,
        "steps_per_second": 900.0,
        "seconds_left": 30.0,
    }
    return Progress(**(fields | changes))


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


def test_progress_says_that_it_is_the_finish():
    file = io.StringIO()
    with display.progress(Console(file=file, force_terminal=True, width=80)) as callback:
        callback(step(passes=1234))
    assert "finish, 1,234 passes" in file.getvalue() and "stage 3" not in file.getvalue()
    seen = []
    text = (
        "data D : table(x: real[3], y: {-1, 1}); var w[3]; minimize E[z ~ D] log1pexp(-z.y * dot(w, "
        "z.x)) + 0.1 * sumsq(w);"
    )
    x = np.random.default_rng(0).normal(size=(50, 3))
    bound = fccomodel.compile(text).bind(D={"x": x, "y": np.where(x[:, 0] > 0, 1, -1)})
    result = bound.solve(budget="5s", progress=seen.append)
    assert seen[0].passes is None and 0 < seen[-1].passes <= result.outcome.solution.passes


def test_quiet_progress_is_none():
    with display.progress(Console(file=io.StringIO()), quiet=True) as callback:
        assert callback is None


def test_variables_by_their_names():
    """Small ones whole, of long ones the largest entries by the names of their columns or labels."""
    text = "set A; dim d; data R : table(r: real[A], x: real[d]); var p[A]; var w[d]; var B[A, 2]; var t;"
    text += "minimize E[z ~ R] t * (dot(z.r, p) + dot(z.x, w) + sum(B));"
    rows = {"a": [1.0], "b": [1.0], **{f"c{k}": [1.0] for k in range(9)}}
    spec = {"R": {"r": {"columns": ["a", "b"]}, "x": {"columns": "*"}}}
    bound = fccomodel.compile(text).bind(spec=spec, R=pd.DataFrame(rows)).bound
    w = np.array([0, 0, 3.0, -7, 0, 1, 2, 5, 0.5])
    point = {"p": np.array([0.25, 0.75]), "w": w, "B": np.eye(2), "t": np.array(2.0)}
    assert [line.plain for line in variable_lines(bound, point)] == [
        "p  a 0.25, b 0.75",
        "w  9 entries, 3 are 0; largest: c3 -7, c7 5, c2 3, c6 2",
        "B  [a,1] 1, [a,2] 0, [b,1] 0, [b,2] 1",
        "t  2",
    ]


SIDES = {
    "E[z ~ R] z.r*t >= 1 + x[1]": (2.0, ">=", 1.5),
    "x[1] >= 0": (0.5, ">=", 0.0),
    "t == 3": (2.0, "==", 3.0),
    "0 <= t": (0.0, "<=", 2.0),
    "x[1] - x[2] <= 0": (0.25, "<=", 0.0),
    "E[z ~ R] t*z.r <= E[z ~ R] t^2*z.r": (None, "", None),
}


@pytest.mark.parametrize("text", SIDES)
def test_sides_of_constraints_as_written(text):
    model = fccomodel.compile(
        f"data R : table(r: real); var x[2]; var t; minimize E[z ~ R] z.r*t; subject to c: {text};"
    )
    found = report(
        model.bind(R={"r": np.ones(3)}).bound, {"x": np.array([0.5, 0.25]), "t": np.array(2.0)}
    ).constraints["c"]
    assert found[3:] == SIDES[text]
    if found.left is not None:
        difference = found.left - found.right
        assert found.value == (-difference if found.relation == ">=" else difference)


def test_a_report_in_a_notebook_is_a_text(monkeypatch):
    """rich would show it as a cell's output in place of writing it."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "misses" in shown(made_report({"misses": (0.0, 1.0, 0.0)}), made_problem(("misses", "le")))
    file = io.StringIO()
    display.terminal(file).print("a line")
    assert file.getvalue() == "a line\n"


def test_a_small_model_fits_one_screen():
    model = fccomodel.compile("var x[2] in simplex(2); minimize cost: sumsq(x); subject to c: x[1] <= 0.25;")
    result = model.solve(budget="200it")
    assert len(str(result).splitlines()) <= 24 and len(result.details.splitlines()) > 24
    assert " <= 0.25" in str(result) and "--verbose" in str(result)


def test_results_are_shown_in_notebooks(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    bound = fccomodel.compile(
        "var x[2] in simplex(2); minimize cost: sumsq(x); subject to c: x[1] <= 0.25;"
    ).bind()
    result = bound.solve(budget="50it")
    for shown, word in ((result, "the whole report"), (fccomodel.evaluate(result), "verdict")):
        html = shown._repr_html_()
        assert html.startswith(("<pre", "<style")) and "cost" in html and word in html and "<span" in html
    compared = fccomodel.compare(bound, algorithms=["sonex"], seeds=1, budget="50it")
    assert "sonex" in compared._repr_html_() and "sonex" in str(compared)


def test_a_title_that_fills_the_line_keeps_its_parts_apart():
    from fccomodel.app.shown.display import _layout

    for words in range(10, 30):
        file = io.StringIO()
        _layout.terminal(file).print(_layout.title("reserve", ["hscg", *"s" * words]))
        assert file.getvalue().startswith("reserve  ")


def test_a_small_model_is_reported_on_a_screen_and_the_rest_when_asked_for():
    """24 lines; the algorithm's theorem and the options stand in the whole report."""
    result = fccomodel.compile(
        "var w[2] in ball(1); minimize sumsq(w - 1) subject to least: sum(w) <= 0.5;"
    ).solve()
    brief, whole = str(result), result.details
    assert len(brief.strip().splitlines()) <= 24 and "proved" in brief.partition("--verbose")[2]
    assert all(
        f"\n {name} " in whole and f"\n {name} " not in brief for name in ("how", "assumes", "options")
    )
