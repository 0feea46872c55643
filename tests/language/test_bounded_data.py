"""Data that say more: bounds of columns and arrays, matrices in psd; facts, checks, mock data, notations."""

import numpy as np
import pytest

import fccomodel as fc
from fccomodel.core.source import Source
from fccomodel.language.format import format as formatted

TABLE = "data D : table(x: real, p: real >= 0);\nvar b;\nminimize E[z ~ D] z.p * (z.x - b)^2;\n"
ARRAY = "set K = 1 .. 3;\ndata c : real[K] >= 0;\nvar x[K];\nminimize sum[k in K] c[k] * (x[k] - 1)^2;\n"
MATRIX = "dim n;\ndata S : real[n, n] in psd;\nvar x[n];\nminimize dot(x, S @ x) + sum(x);\n"
WHOLE = "data D : table(m: int in [0, 9]);\nvar b;\nminimize E[z ~ D] z.m * b^2 - b;\n"
TEXTS = [TABLE, ARRAY, MATRIX, WHOLE]


@pytest.mark.parametrize("text", TEXTS)
def test_declarations_prove_convexity(text: str) -> None:
    assert "A convex problem" in str(fc.compile(text).explain())


@pytest.mark.parametrize("text", TEXTS)
def test_without_its_bound_the_model_is_not_proved_convex(text: str) -> None:
    for bound in (" >= 0", " in psd", " in [0, 9]"):
        text = text.replace(bound, "", 1)
    assert "A convex problem" not in str(fc.compile(text).explain())


@pytest.mark.parametrize("text", TEXTS)
def test_format_keeps_bounds(text: str) -> None:
    assert formatted(Source(text=text)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_mock_data_keep_bounds(text: str) -> None:
    assert fc.Model.parse(text).mock(rows=40).bound is not None


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        (TABLE, {"D": {"x": [1.0, 2.0], "p": [1.0, -2.0]}}, "D.p must be at least 0; the data have -2"),
        (WHOLE, {"D": {"m": [1, 10]}}, "D.m must be in [0, 9]; the data have 10"),
        (WHOLE, {"D": {"m": [1, 2.5]}}, "D.m must be whole numbers"),
        (ARRAY, {"c": [1.0, -1.0, 0.0]}, "c must be at least 0"),
        (ARRAY.replace(">= 0", "> 0"), {"c": [1.0, 1.0, 0.0]}, "c must be above 0; the data have 0"),
        (ARRAY.replace(">= 0", "< 1"), {"c": [1.0, 0.0, 0.0]}, "c must be below 1"),
        (MATRIX, {"S": np.diag([1.0, -0.5])}, "its least eigenvalue is -0.5"),
        (MATRIX, {"S": np.array([[1.0, 0.2], [0.0, 1.0]])}, "S must be symmetric"),
    ],
)
def test_data_beyond_bounds_are_refused(text: str, data: dict, message: str) -> None:
    with pytest.raises(fc.FccoError) as caught:
        fc.compile(text).bind(**data)
    assert caught.value.diagnostics[0].code == "F0513"
    assert message in str(caught.value)


def test_integer_is_another_word_for_int() -> None:
    assert fc.compile(WHOLE.replace("int", "integer")).name
    assert fc.compile('set integer = {"a", "b"}; data D : table(m: integer); var b; minimize b^2;').name


def test_a_definite_matrix_is_symmetric() -> None:
    text = "dim n; data S : real[n, n] in psd; var t; minimize t; subject to c: S << t * eye(n);"
    assert fc.compile(text).name


def test_python_notation() -> None:
    m = fc.Model("m")
    m.n = fc.dim()
    m.K = fc.values(1, 2, 3)
    m.D = fc.table(x=fc.real, p=fc.real(ge=0), q=fc.integer(ge=0, le=9))
    m.c = fc.array(fc.real[m.K](gt=0))
    m.S = fc.array(fc.real[m.n, m.n](domain=fc.psd()))
    text = str(m)
    for line in ("p: real >= 0, q: int in [0, 9]", "c : real[K] > 0", "S : real[n, n] in psd;"):
        assert line in text


@pytest.mark.parametrize("text", TEXTS)
def test_python_of_a_text_is_the_text(text: str) -> None:
    model = fc.Model.parse(text)
    names: dict[str, object] = {}
    exec(model.to_python(), names)
    written = next(one for one in names.values() if type(one) is type(model))
    assert str(written) == str(model)
