"""What people write by habit from pandas, scikit-learn, CVXPY and NumPy."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fccomodel as fc

LINEAR = """dim d; data D : table(x: real[d], y: {-1, 1}); var w[d]; var b;
minimize E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + b)) + 0.1 * sumsq(w);"""
SPEC = {"D": {"x": {"columns": ["age", "job"], "encode": "onehot", "scale": "standard"}}}


def rows() -> dict[str, np.ndarray]:
    """Forty rows with a number and a text."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 60, 40)
    job = np.where(rng.random(40) < 0.4, "smith", "baker")
    return {"age": age, "job": job, "y": np.where(age + 10 * (job == "smith") > 42, 1, -1)}


@pytest.fixture(scope="module")
def result() -> fc.Result:
    """A linear score of scaled and encoded columns."""
    return fc.compile(LINEAR).bind(D=rows(), spec=SPEC).solve(seed=0)


@pytest.mark.parametrize("intercept", [False, True])
def test_coefficients_are_those_of_the_data_as_they_come(intercept: bool) -> None:
    spec = {"D": {"x": {**SPEC["D"]["x"], "intercept": intercept}}}
    solved = fc.compile(LINEAR).bind(D=rows(), spec=spec).solve(seed=0)
    coefficients = solved.coef_
    data = rows()
    by_hand = solved.intercept_ + data["age"] * coefficients.sel(column="age")
    for name in coefficients.coords["column"]:
        if name != "age":
            by_hand = by_hand + (data["job"] == name.partition("=")[2]) * coefficients.sel(column=name)
    np.testing.assert_allclose(by_hand, solved.decision_function(data), rtol=1e-9)


def test_a_net_has_no_coefficients() -> None:
    text = "data D : table(x: real[2], y: {-1, 1}); net s : real[2] -> real; var w = params(s);"
    text += "minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));"
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(20, 2)), "y": rng.choice([-1, 1], 20)}
    solved = fc.compile(text).bind(D=data, nets={"s": "mlp(3)"}).solve(seed=0, budget="5it", polish=False)
    with pytest.raises(fc.FccoError, match="F0815.*\n.*has no coefficients"):
        solved.coef_  # noqa: B018


def test_a_loaded_answer_says_what_the_result_said(result: fc.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "out")
    loaded = fc.load(tmp_path / "out")
    for name in ("algorithm", "objective", "constraints", "values", "status", "summary", "cite"):
        here, there = getattr(result, name), getattr(loaded, name)
        if callable(here):
            here, there = here(), there()
        assert here == there, name
    assert loaded.to_frame().equals(result.to_frame())
    assert loaded.constraints_frame().equals(result.constraints_frame())
    for name in ("epsilon", "stationarity", "verdict", "solved"):
        assert getattr(loaded.report, name) == getattr(result.report, name)
    assert loaded.report.gap.value == result.report.gap.value
    with pytest.raises(AttributeError, match="Did you mean `verdict`"):
        loaded.report.verdit  # noqa: B018
    assert loaded.plot.convergence().axes
    assert "<math" in loaded.html()


def test_pictures_show_themselves_in_a_notebook(result: fc.Result) -> None:
    for picture in (result.plot(), result.plot.multipliers()):
        assert picture._repr_png_().startswith(b"\x89PNG")


def test_a_notebook_shows_no_walls(result: fc.Result) -> None:
    assert repr(result.details) == result.details and repr(result.summary()).count("\n") == 3
    page = result.html()
    assert repr(page).startswith("<page of") and page._repr_html_().startswith("<iframe srcdoc=")
    assert result.in_words in page and "age" in page and ">Score<" in page
    assert len(repr(result.history).splitlines()) <= 22 and "objective" in repr(result.history)


def test_the_only_table_needs_no_name() -> None:
    model = fc.compile("data D : table(x: real); var w; minimize E[z ~ D] (w - z.x)^2;")
    x = np.array([1.0, 2.0, 6.0])
    assert model.bind({"x": x}).solve(seed=0).variables["w"] == pytest.approx(3, abs=1e-6)
    in_python = fc.Model("m")
    in_python.D = fc.table(x=fc.real)
    in_python.w = fc.var()
    in_python.minimize(fc.E((in_python.w - z.x) ** 2 for z in in_python.D))
    assert in_python.bind({"x": x}).bound.tables["D"].n == 3
    with pytest.raises(fc.FccoError, match="F0805"):
        model.bind({"x": x}, D={"x": x})
    two = fc.compile(
        "data A : table(x: real); data B : table(x: real); var w;"
        "minimize E[z ~ A] (w - z.x)^2 + E[z ~ B] (w - z.x)^2;"
    )
    with pytest.raises(fc.FccoError, match="rows can be those of 2 tables"):
        two.bind({"x": x})


def test_progress_in_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "data D : table(x: real); var w; minimize E[z ~ D] (w - z.x)^4;"
    problem = fc.compile(text).bind({"x": np.arange(50.0)})
    ticks = itertools.count(step=10.0)
    clock = SimpleNamespace(monotonic=lambda: next(ticks))  # of the display alone
    monkeypatch.setattr("fccomodel.app.shown.display._progress.time", clock)
    problem.solve(seed=0, budget="200it", polish=False)
    assert capsys.readouterr().err == ""
    problem.solve(seed=0, budget="200it", polish=False, verbose=True)
    assert "objective" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("random_state", "seed=0"),
        ("max_iter", 'budget="5000it"'),
        ("time_limit", 'budget="60s"'),
        ("learning_rate", "eta=0.1"),
        ("solver", 'algorithm="sonex"'),
    ],
)
def test_keywords_of_other_libraries(word: str, instead: str) -> None:
    problem = fc.compile("var w; minimize (w - 1)^2;").bind()
    with pytest.raises(fc.FccoError, match=f"Write `{instead}`"):
        problem.solve(**{word: 1})


@pytest.mark.parametrize(
    ("attribute", "instead"),
    [
        ("T", "A vector needs no transpose"),
        ("shape", "The declaration of `w` has its sizes"),
        ("value", r'After a solve they are `result.variables\["w"\]`'),
        ("norm", r"Write `norm2\(w\)`"),
        ("vale", "Only elements of sets have attributes"),
    ],
)
def test_attributes_of_arrays(attribute: str, instead: str) -> None:
    model = fc.Model("m")
    model.w = fc.var(3)
    for formula in (model.w, fc.Model.parse(str(model)).w):
        with pytest.raises(fc.FccoError, match=instead):
            getattr(formula, attribute)
        assert not hasattr(formula, attribute) and not hasattr(2 * formula, attribute)


def test_elements_have_columns() -> None:
    """Of a comprehension and of a declared index, in a model from a text too."""
    text = "model m;\n\nvar w;\ndata D : table(x: real);\nindex i in D;\n\nminimize mean_i (w - i.x)^2;\n"
    assert str(fc.Model.parse(text).i.x) == "i.x"


def test_functions_of_numpy_name_those_of_the_language() -> None:
    model = fc.Model("m")
    model.w = fc.var(3)
    calls = {
        "sum": lambda: np.sum(model.w),
        "max": lambda: np.max(model.w),
        "mean": lambda: np.mean(model.w),
        "exp": lambda: np.exp(model.w),
    }
    for word, call in calls.items():
        with pytest.raises(fc.FccoError, match=f"test_habits.py.*\n[\\s\\S]*write `fc.{word}"):
            call()


def test_names_of_other_libraries(result: fc.Result) -> None:
    model = fc.Model("m")
    problem = fc.compile("var w; minimize (w - 1)^2;").bind()
    cases = [
        (result, "dual_value", "result.multipliers"),
        (result, "w", r'result.variables\["w"\]'),
        (result, "predict_proba", "A score is no probability"),
        (result, "wariables", "Did you mean `variables`"),
        (problem, "fit", "problem.solve"),
        (fc.compile("var w; minimize w^2;"), "fit", "bind"),
        (model, "add_constraint", "m.subject_to"),
        (model, "minimise", "m.minimize"),
        (model, "minimze", "Did you mean `minimize`"),
        (fc, "Variable", "fc.var"),
        (fc, "lod", "Did you mean `load`|Did you mean `log`"),
    ]
    for owner, name, instead in cases:
        with pytest.raises(AttributeError, match=instead):
            getattr(owner, name)


def test_a_misspelt_option_is_named_without_the_whole_list() -> None:
    with pytest.raises(fc.FccoError, match="Did you mean `seed`") as found:
        fc.compile("var w; minimize (w - 1)^2;").bind().solve(sed=0)
    assert "outer_batch" not in str(found.value)


def test_methods_of_arrays() -> None:
    model = fc.Model("m")
    model.w = fc.var(3)
    with pytest.raises(fc.FccoError, match=r"F0125[\s\S]*Write `sum\(w\)`"):
        model.w.sum()


def test_the_traceback_of_a_script_ends_at_its_own_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text('import fccomodel as fc\nfc.compile("var w; minimize w + v;")\n')
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    frames = [line for line in run.stderr.splitlines() if line.startswith("  File")]
    assert len(frames) == 2 and "script.py" in frames[0]
    assert "F0201" in run.stderr


def test_pictures_and_sweeps_answer_names_of_other_libraries(result: fc.Result) -> None:
    with pytest.raises(AttributeError, match=r"result\.plot\(\)\.savefig"):
        result.plot.savefig  # noqa: B018
    with pytest.raises(AttributeError, match=r"plot\.variables\(\)"):
        result.plot.weights  # noqa: B018
    text = "param t default 1; var x; minimize square(x - t);"
    curve = fc.compile(text).bind().sweep(t=[1.0, 2.0])
    with pytest.raises(AttributeError, match=r"curve\.to_pandas\(\)"):
        curve.to_frame  # noqa: B018


def test_a_page_is_saved(result: fc.Result, tmp_path: Path) -> None:
    assert result.html().save(tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!")


def test_the_short_explanation_names_what_python_has(result: fc.Result) -> None:
    explained = fc.compile("var x; minimize square(x);").explain()
    assert '.why("objective")' in explained.short and "--" not in explained.short
    assert "--why objective" in explained.on_screen(in_python=False)
