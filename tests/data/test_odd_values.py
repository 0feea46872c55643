"""Values that Python reads in ways of its own, or that 64 bits do not hold: each becomes a number, or
an error with its code."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from support.bind_tools import problem

import fccomodel
from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.progressions import count, numbers
from fccomodel.data.bind import bind

MODEL = problem(
    "dim d; data D : table(x: real[d], y: real); param a default 1; var w[d]; minimize E[z ~ D] (dot(w, "
    "z.x) - a)^2;"
)
TABLE = {"x": np.ones((4, 2)), "y": np.arange(4.0)}
DEEP: Any = 1
for _ in range(3000):
    DEEP = [DEEP]


def codes(model=MODEL, **given: Any) -> list[str]:
    try:
        bind(model, **{"data": {"D": TABLE}, **given})
    except FccoError as error:
        assert all(len(d.message) < 300 and d.fix for d in error.diagnostics)
        return [d.code for d in error.diagnostics]
    return []


NO_NUMBERS = [
    *(
        10**400,
        -(10**5000),
        DEEP,
        True,
        np.True_,
        1j,
        np.complex128(2),
        "1",
        None,
        np.datetime64("2020-01-01"),
        [[1], [1, 2]],
    ),
    *(np.array(["1", "2"]), np.array([True]), {"a": 1}, Decimal("NaN"), np.timedelta64(1, "D"), object()),
]
TWO = [
    2,
    2.0,
    np.float32(2),
    np.int8(2),
    np.array(2),
    Decimal(2),
    torch.tensor(2),
    torch.tensor(2.0).bfloat16(),
]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=range(len(NO_NUMBERS)))
def test_what_is_no_number_for_a_param(value: Any) -> None:
    assert codes(params={"a": value}) == ["F0520"]


@pytest.mark.parametrize("value", TWO, ids=range(len(TWO)))
def test_what_is_a_number(value: Any) -> None:
    assert bind(MODEL, data={"D": TABLE}, params={"a": value, "d": value}).params["a"] == 2.0


@pytest.mark.parametrize("value", [True, 10**400, 0, -1, 2.5, float("inf"), "2", None, [2], 2**70])
def test_what_is_no_size(value: Any) -> None:
    assert codes(params={"d": value}) == ["F0520"]


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ([10**400, 1, 2, 3], "F0511"),
        ([Decimal("sNaN"), 1, 2, 3], "F0511"),
        ([pd.NA, 1.0, 2.0, 3.0], "F0511"),
        ([1, np.timedelta64(3, "D"), 2, 3], "F0512"),
        ([{}, 1, 2, 3], "F0512"),
    ],
)
def test_numbers_of_a_column(column: list, code: str) -> None:
    values = np.empty(4, object)
    for k, value in enumerate(column):
        values[k] = value
    assert codes(data={"D": {**TABLE, "y": values}}) == [code]
    assert codes(data={"D": pd.DataFrame({"x": [[1, 2]] * 4, "y": values})}) == [code]


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, float("nan")])
def test_lists_beside_missing_values(gap: Any) -> None:
    values = np.empty(4, object)
    for k, value in enumerate([[1, 2], gap, [3, 4], [5, 6]]):
        values[k] = value
    assert codes(data={"D": {**TABLE, "x": values}}) == ["F0512"]
    assert codes(data={"D": pd.DataFrame({"x": values, "y": range(4)})}) == ["F0512"]


@pytest.mark.parametrize("missing", ["error", "drop"])
def test_texts_that_are_all_missing(missing: str) -> None:
    spec = {"D": {"missing": missing, "x": {"columns": ["t"], "encode": "onehot"}}}
    for texts in ([None] * 4, pd.array([None] * 4, dtype="string")):
        found = codes(data={"D": pd.DataFrame({"t": texts, "y": np.arange(4.0)})}, spec=spec)
        assert set(found) <= {"F0510", "F0511"} and found


def test_keys_that_read_the_same() -> None:
    columns = {1: np.ones(4), "1": np.zeros(4), "y": np.ones(4)}
    assert codes(data={"D": columns}, spec={"D": {"x": {"columns": "*"}}}) == ["F0506"]
    assert codes(spec={"D": {1: "a", "1": "b"}}) == ["F0503"]
    family = problem(
        "set K; data D[k in K] : table(x: real); var w; minimize sum[k in K] E[z ~ D[k]] (w - z.x)^2;"
    )
    member = {"x": np.ones(2)}
    assert codes(family, data={"D": {1: member, "1": member}}) == ["F0503"]
    assert codes(family, data={"D": {1: member, 2: member}}) == []


@pytest.mark.parametrize("name", ["data", "params", "nets", "samplers", "spec"])
def test_what_is_no_mapping(name: str) -> None:
    for value in (3, np.array([1, 2]), [1, 2]):
        assert codes(**{name: value}) == ["F0503"]


NESTED = ["(" * 400 + "y" + ")" * 400, "y + " * 4000 + "1 > 0", "not " * 3000 + "y > 0", "-" * 5000 + "1 > y"]


@pytest.mark.parametrize("where", NESTED, ids=range(len(NESTED)))
def test_conditions_that_are_too_deep(where: str) -> None:
    assert codes(where=where) in (["F0509"], [])
    assert codes(where=3) == ["F0503"]


def test_numbers_of_the_command_line() -> None:
    assert files.numbers(["a=[1, 2]", "b=3"]) == {"a": [1, 2], "b": 3.0}
    for text in ("a=" + "[" * 100_000, "a=x", "a=[1,"):
        with pytest.raises(FccoError):
            files.numbers([text])


# ------------------------------------------------------------------------------------------- ranges
@pytest.mark.parametrize(
    ("low", "high", "step", "found"),
    [
        (0.0, 0.3, 0.1, [0.0, 0.1, 0.2, 0.3]),
        (0.0, 1e-320, 1e-320, [0.0, 1e-320]),
        (0.0, 3e300, 1e300, [0.0, 1e300, 2e300, 3e300]),
        (-1e308, 1e308, 1e308, [-1e308, 0.0, 1e308]),
        (3.0, 1.0, 1.0, []),
        (1.0, 0.0, -0.5, [1.0, 0.5, 0.0]),
    ],
)
def test_ranges(low: float, high: float, step: float, found: list[float]) -> None:
    assert count(low, high, step) == len(found) and numbers(low, high, step).tolist() == pytest.approx(
        found, rel=1e-12, abs=0
    )


def test_ranges_too_long_to_count() -> None:
    assert count(0.0, 1.0, 1e-320) == np.inf
    model = problem("param s; set T = 0 .. 1 by s; var x[T]; minimize sumsq(x);")
    assert codes(model, data={}, params={"s": 1e-320}) == codes(model, data={}, params={"s": 0}) == ["F0520"]


def test_members_that_come_with_the_data() -> None:
    for text in ("set A = {1, c}", "set A = 1 .. c", "set A = 1 .. 9 by c"):
        with pytest.raises(FccoError) as found:
            problem(f"data c : real; {text}; var x[A]; minimize sumsq(x);")
        assert [d.code for d in found.value.diagnostics] == ["F0424"]


def test_arguments_named_like_reductions() -> None:
    made = problem("var x; minimize E[e ~ normal(sd = 2, mean = 1)] (e - x)^2;").objective.expr
    assert [a.value for a in made.binders[0].domain.args] == [1.0, 2.0]


def test_a_table_of_times_without_rows_says_so() -> None:
    empty = np.array([], dtype="datetime64[s]")
    text = (
        "dim d; data D : table(x: real[d], y: real); var w[d]; minimize E[z ~ D] square(dot(w, z.x) - z.y);"
    )
    with pytest.raises(FccoError, match="no rows"):
        fccomodel.compile(text).bind(D={"x": np.zeros((0, 2)), "y": empty})


MARKED = pd.DataFrame({"a": ["1", "2.5", "?", "4"], "b": ["u", "v", "?", "u"], "y": [1.0, 2.0, 3.0, -9.0]})
FEATURES = {"columns": ["a", "b"], "encode": "onehot"}


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_marks_of_missing_values_are_those_of_any_source(tmp_path, kind):
    section: dict[str, Any] = {"missing": "drop", "na": ["?", "-9.0"], "x": FEATURES}
    if kind == "frame":
        bound = bind(MODEL, spec={"D": section}, data={"D": MARKED})
    else:
        section["source"] = str(tmp_path / f"D.{kind}")
        getattr(MARKED, f"to_{kind}")(section["source"], index=False)
        bound = bind(MODEL, spec={"D": section})
    assert bound.tables["D"].columns["x"].tolist() == [[1, 1, 0], [2.5, 0, 1]]


def test_other_rows_are_read_as_the_first_were():
    """Texts that spell numbers are numbers again, and codes that were texts are texts."""
    spec = {"D": {"x": FEATURES}}
    first = pd.DataFrame({"a": [1.0, 2.0], "b": ["1", "2"], "y": [0.0, 1.0]})
    learned = {"D": bind(MODEL, spec=spec, data={"D": first}).tables["D"].encoding}
    others = pd.DataFrame({"a": ["3", "4.5"], "b": [2, 1], "y": [0.0, 1.0]})
    bound = bind(MODEL, spec=spec, data={"D": others}, encoding=learned)
    assert bound.tables["D"].columns["x"].tolist() == [[3, 0, 1], [4.5, 1, 0]]
    assert codes(spec=spec, data={"D": others.assign(a=["3", "many"])}, encoding=learned) == ["F0512"]
