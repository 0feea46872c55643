"""What stands beside the verdict: data that are not as an analyst takes them to be, each found, and
nothing on clean ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fccomodel
from fccomodel import pipeline
from fccomodel.core import files
from fccomodel.report import cautions

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = """dim d; set G;
param mu >= 0 default 0.1;
data D : table(x: real[d], y: {0, 1}, g: G);
var w[d];
minimize mean[k in G] E[z ~ D | z.g == k] log1pexp((1 - 2 * z.y) * dot(w, z.x)) + mu * sumsq(w);
"""
ROWS = 400


def frame(**changed: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {"age": rng.normal(size=ROWS), "pay": rng.normal(size=ROWS), "y": np.arange(ROWS) % 2}
    return pd.DataFrame({**columns, "g": [str(k % 4) for k in range(ROWS)], **changed})


def found(data: pd.DataFrame, columns: tuple[str, ...] = ("age", "pay"), **section: Any) -> dict[str, str]:
    spec = {"D": {"x": {"columns": list(columns)}, **section}}
    bound = fccomodel.compile(MODEL).bind(D=data, spec=spec).bound
    return {one.name: one.message for one in cautions.of(cautions.Subject(bound=bound))}


def test_clean_data_have_none() -> None:
    assert found(frame()) == {}


def test_rows_with_missing_values() -> None:
    age = np.where(np.arange(ROWS) < 40, 1.0 + np.arange(ROWS), np.nan)
    said = found(frame(age=age), missing="drop")
    assert said["rows left out"] == "Only 40 of 400 rows of D are used (360 have a missing value in `age`)."
    few = np.where(np.arange(ROWS) < 390, np.arange(ROWS), np.nan)
    assert "rows left out" not in found(frame(age=few), missing="drop")


def test_rows_that_a_condition_leaves() -> None:
    assert found(frame(), where="age > 2")["rows left out"].startswith("Only ")
    assert "rows left out" not in found(frame(), where="age > 0")


def test_groups_without_rows() -> None:
    age = np.where(np.arange(ROWS) % 4 == 0, np.arange(ROWS), np.nan)
    said = found(frame(age=age), missing="drop")
    assert said["groups left out"] == "Only 1 of 4 groups of D.g are left: the others have no row in use."


def test_a_label_with_one_class() -> None:
    assert found(frame(y=1))["one class"] == "D.y is 1 in all 400 rows."


def test_a_group_of_a_few_rows() -> None:
    g = ["rare" if k < 3 else str(k % 3) for k in range(ROWS)]
    assert "`rare` has fewer than 10 rows (3 rows at least" in found(frame(g=g))["small groups"]
    assert "small groups" not in found(
        frame(g=[str(k % 200) for k in range(ROWS)])
    )  # all are small, as in ranking


def test_constant_features() -> None:
    assert found(frame(pay=3.0))["constant features"] == "D.x: `pay` has the same value in every row."
    assert "constant features" not in found(frame(pay=1.0))  # an intercept


def test_scales_apart() -> None:
    data = frame()
    assert "`pay` varies" in found(data.assign(pay=1e7 * data.pay))["scales"]
    assert "scales" not in found(data.assign(pay=1e3 * data.pay))


def test_repeated_rows() -> None:
    data = frame()
    doubled = pd.concat([data, data[:50]], ignore_index=True)
    assert found(doubled)["repeated rows"] == "50 rows of D repeat another exactly (450 in all)."


@pytest.mark.parametrize("scale", [{}, {"scale": "standard"}])
def test_codes_of_missing_values(scale: dict[str, str]) -> None:
    data = frame()
    coded = data.assign(pay=np.where(np.arange(ROWS) % 10 == 0, -999.0, data.pay))
    spec = {"D": {"x": {"columns": ["age", "pay"], **scale}}}
    bound = fccomodel.compile(MODEL).bind(D=coded, spec=spec).bound
    (said,) = [
        one for one in cautions.of(cautions.Subject(bound=bound)) if one.name == "codes for missing values"
    ]
    assert "`pay` is -999 in 40 rows" in said.message


def test_more_variables_than_rows() -> None:
    wide = {f"f{k}": np.random.default_rng(k).normal(size=ROWS) for k in range(401)}
    assert "401 variables and 400 rows" in found(frame(**wide), tuple(wide))["more variables than rows"]


def test_they_stand_in_the_report_and_in_the_record() -> None:
    problem = fccomodel.compile(MODEL).bind(D=frame(y=1), spec={"D": {"x": {"columns": ["age", "pay"]}}})
    result = problem.solve(budget="50it")
    assert "D.y is 1 in all 400 rows." in str(result)
    assert {"name": "one class", "message": "D.y is 1 in all 400 rows."} in result.json["cautions"]
    explained = problem.explain()
    assert (
        "D.y is 1 in all 400 rows." in str(explained)
        and "D.y is 1 in all 400 rows." in explained.json["warnings"]
    )


def test_examples_have_none_but_what_is_true_of_them() -> None:
    """Pictures of digits have corners that are black in all of them."""
    for spec in sorted(EXAMPLES.glob("*.toml")) + sorted(EXAMPLES.glob("applications/*.toml")):
        compiled = pipeline.compile_model(files.read_model(spec.with_suffix(".fcco")))
        bound = pipeline.bind(compiled, pipeline.Binding(spec=spec))
        said = {one.name for one in cautions.of(cautions.Subject(bound=bound))}
        assert said <= {"constant features"}, spec
        assert not said or "digits" in str(bound.sources), spec
