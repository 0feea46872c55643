"""An answer at new rows: scores, classes, any quantity of a row, with the scaling and the categories
of the rows solved on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.core.diagnostics import FccoError

pd = pytest.importorskip("pandas")

MODEL = """
dim d;
set G;
data D : table(x: real[d], y: {-1, 1}, g: G);
param c default 2;
data shift : real[G];
var w[d];
var v[G];
def score(x) = dot(w, x);
def chance(z) = sigmoid(score(z.x) / c);
def of_group(z) = score(z.x) + v[z.g] + shift[z.g];
def loss(w, z) = log1pexp(-z.y * score(z.x));
def pair(p, q) = score(p.x) - score(q.x);
let margin[z in D] = z.y * score(z.x);
let powers[z in D, t in {1, 2}] = t * score(z.x);
let risk = E[z ~ D] loss(w, z);
def relative(x) = score(x) - risk;
minimize risk + 0.1 * sumsq(w) + 0.1 * sumsq(v) + 0 * E[z ~ D] (of_group(z) + chance(z) + relative(z.x))
    + 0 * E[p ~ D, q ~ D] pair(p, q);
"""
FEATURES = {"columns": ["age", "income", "job"], "encode": "onehot", "scale": "standard", "intercept": True}
SPEC = {
    "D": {
        "x": FEATURES,
        "y": {"column": "good", "map": {"bad": -1, "good": 1}},
        "g": {"column": "race"},
        "missing": "drop",
    }
}
SPEC["sets"] = {"G": ["a", "b"]}


@pytest.fixture(scope="module")
def frame() -> Any:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(50, 9, 90), "income": rng.normal(3, 1, 90), "job": np.resize(["p", "q", "r"], 90)}
    )
    table["race"] = rng.choice(["a", "b"], 90)
    table["good"] = np.where(table.age / 9 + table.income + rng.normal(size=90) > 8.5, "good", "bad")
    return table


@pytest.fixture(scope="module")
def result(frame: Any) -> fccomodel.Result:
    return fccomodel.compile(MODEL).bind(D=frame, shift=[1.0, 2.0], spec=SPEC).solve(budget="300it")


@pytest.fixture(scope="module", params=["at hand", "stored"])
def answer(request: Any, result: fccomodel.Result, tmp_path_factory: Any) -> Any:
    if request.param == "at hand":
        return result
    return fccomodel.load(result.save(tmp_path_factory.mktemp("out")))


def by_hand(result: fccomodel.Result, frame: Any, rows: Any) -> np.ndarray:
    def columns(table: Any) -> np.ndarray:
        jobs = [(table.job == job).to_numpy(float) for job in ("p", "q", "r")]
        return np.column_stack([table.age, table.income, *jobs])

    x = columns(frame)
    scaled = (columns(rows) - x.mean(0)) / x.std(0)
    return np.column_stack([scaled, np.ones(len(rows))]) @ result.variables["w"]


def refusal(make: Any) -> str:
    with pytest.raises(FccoError) as found:
        make()
    return " ".join(str(found.value).split())


def test_scores_need_no_labels(answer: Any, result: fccomodel.Result, frame: Any) -> None:
    rows = frame.drop(columns=["good", "race"])[3:30]
    expected = by_hand(result, frame, rows)
    assert answer.decision_function(rows) == pytest.approx(expected, abs=1e-12)
    assert answer.decision_function(rows[:1]) == pytest.approx(expected[:1], abs=1e-12)
    assert answer.value("chance", rows) == pytest.approx(1 / (1 + np.exp(-expected / 2)), abs=1e-12)
    assert answer.value("powers", rows) == pytest.approx(np.outer(expected, [1, 2]), abs=1e-12)
    assert list(answer.predict(rows)) == ["good" if s > 0 else "bad" for s in expected]
    assert list(answer.predict(rows, threshold=1.0)) == ["good" if s > 1 else "bad" for s in expected]


def test_quantities_read_what_they_use(answer: Any, result: fccomodel.Result, frame: Any) -> None:
    scores, group = by_hand(result, frame, frame), (frame.race == "b").to_numpy(int)
    assert answer.value("margin", frame) == pytest.approx(
        np.where(frame.good == "good", 1, -1) * scores, abs=1e-12
    )
    expected = scores + result.variables["v"][group] + group + 1
    assert answer.value("of_group", frame.drop(columns="good")) == pytest.approx(expected, abs=1e-12)
    assert answer.value("loss", frame) == pytest.approx(
        np.log1p(np.exp(-answer.value("margin", frame))), abs=1e-12
    )


@pytest.mark.parametrize("name", ["pair", "risk", "relative", "nothing", "w"])
def test_what_is_no_quantity_of_a_row(answer: Any, frame: Any, name: str) -> None:
    assert "F0814" in refusal(lambda: answer.value(name, frame))


def test_rows_that_do_not_fit(answer: Any, result: fccomodel.Result, frame: Any) -> None:
    """A text that was not there has no indicator; a label that was not there, and a column that is not
    there, are refused."""
    rows = frame[:3].assign(job=["p", "new", "q"])
    with pytest.warns(UserWarning, match="1 row has a value of job that was not there") as told:
        assert answer.decision_function(rows) == pytest.approx(by_hand(result, frame, rows), abs=1e-12)
    assert told[0].filename == __file__
    assert "F0521" in refusal(lambda: answer.value("of_group", frame[:2].assign(race="c")))
    assert "F0508" in refusal(lambda: answer.predict(frame.drop(columns="income")))


def test_missing_values_are_as_in_the_binding(answer: Any, result: fccomodel.Result, frame: Any) -> None:
    rows = frame[:3].assign(income=[1.0, np.nan, 2.0])
    scores = answer.decision_function(rows)
    assert np.isnan(scores[1]) and scores[[0, 2]] == pytest.approx(
        by_hand(result, frame, rows)[[0, 2]], abs=1e-12
    )
    assert "F0814" in (text := refusal(lambda: answer.predict(rows))) and "1 rows" in text
    strict = fccomodel.compile(
        "data D : table(x: real, y: real); var w; minimize fit: E[z ~ D] (w * z.x - z.y)^2;"
    )
    solved = strict.bind(D={"x": [1.0, 2.0], "y": [1.0, 2.0]}).solve(budget="50it")
    assert "F0814" in refusal(
        lambda: solved.predict({"x": [1.0]})
    )  # no definition, no linear form of a vector
    table = (
        "data D : table(x: real[2], y: real); var w[2]; minimize fit: E[z ~ D] (dot(w, z.x) - "
        "z.y)^2 + 0.1 * sumsq(w);"
    )
    solved = fccomodel.compile(table).bind(D={"x": np.eye(2), "y": [1.0, 2.0]}).solve(budget="50it")
    assert "F0511" in refusal(lambda: solved.predict({"x": [[1.0, np.nan]]}))
    assert solved.predict({"x": [[1.0, 1.0]]}) == pytest.approx([solved.variables["w"].sum()])


def test_which_columns_and_which_table() -> None:
    text = """
    data D : table(a: real[2], b: real[2]);
    data T : table(a: real[2]);
    var w[2];
    def score(x) = dot(w, x);
    minimize E[z ~ D] (score(z.a) - score(z.b) - 1)^2 + E[z ~ T] score(z.a)^2 + sumsq(w);
    """
    rng = np.random.default_rng(0)
    data = {
        "D": {"a": rng.normal(size=(9, 2)), "b": rng.normal(size=(9, 2))},
        "T": {"a": rng.normal(size=(9, 2))},
    }
    solved = fccomodel.compile(text).bind(**data).solve(budget="50it")
    assert "F0814" in (
        text := refusal(lambda: solved.predict(data["D"]))
    ) and "score(.b), D the rows" in " ".join(text.split())
    found = solved.value("score", data["D"], columns={"x": "b"}, table="D")
    assert found == pytest.approx(data["D"]["b"] @ solved.variables["w"])
    assert "F0814" in refusal(lambda: solved.value("score", data["D"], columns={"y": "b"}))


NETS = """
dim d;
set K = {"low", "middle", "high"};
data D : table(x: real[d], y: real);
net s : real[d] -> real[K];
var w = params(s);
minimize E[z ~ D] sum[k in K] (s(w; z.x)[k] - z.y)^2 + 1e-3 * sumsq(w);
"""


def test_nets(tmp_path: Any) -> None:
    """The module comes back with its weights, also from a folder; of a vector of scores the largest is
    the class."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(30, 4)), "y": rng.normal(size=30)}
    solved = fccomodel.compile(NETS).bind(D=data, nets={"s": "mlp(3)"}).solve(budget="20it")
    stored = fccomodel.load(solved.save(tmp_path / "a"))
    rows = {"x": data["x"][:5]}
    for answer in (solved, stored):
        module = answer.module("s").double()
        expected = module(torch.as_tensor(rows["x"])).detach().numpy()
        assert answer.value("s", rows) == pytest.approx(expected, abs=1e-6)
        assert list(answer.predict(rows)) == [
            ("low", "middle", "high")[k] for k in answer.value("s", rows).argmax(1)
        ]
        assert "F0814" in refusal(lambda answer=answer: answer.module("t"))

    class Mine(torch.nn.Sequential):
        """A class of the user's own, whose code no folder has."""

    mine = Mine(torch.nn.Linear(4, 3), torch.nn.Tanh())
    solved = fccomodel.compile(NETS).bind(D=data, nets={"s": mine}).solve(budget="20it")
    solved.save(tmp_path / "b")
    assert "F0814" in refusal(lambda: fccomodel.load(tmp_path / "b").predict(rows))
    said = refusal(lambda: fccomodel.evaluate(tmp_path / "b", data={"D": data}))
    assert "F0814" in said and '--net "s=net.py:Net" --allow-python' in " ".join(said.split())
    again = fccomodel.load(tmp_path / "b", nets={"s": mine})
    assert np.array_equal(again.decision_function(rows), solved.decision_function(rows))
    assert solved.module("s") is not mine and type(solved.module("w")) is type(mine)


@pytest.mark.parametrize("kind", ["linear", "net"])
def test_export(kind: str, frame: Any, tmp_path: Any) -> None:
    body = "dot(w, x)" if kind == "linear" else "s(w; x)"
    declared = "var w[d];" if kind == "linear" else "net s : real[d] -> real; var w = params(s);"
    text = f"dim d; data D : table(x: real[d], y: real); {declared} def score(x) = {body};"
    model = fccomodel.compile(f"{text} minimize E[z ~ D] (score(z.x) - z.y)^2 + 0.01 * sumsq(w);")
    spec = {
        "D": {
            "x": {"columns": ["age", "income"], "scale": "standard", "intercept": True},
            "y": {"column": "income"},
        }
    }
    solved = model.bind(D=frame, spec=spec, nets={"s": "mlp(4)"} if kind == "net" else {}).solve(
        budget="30it"
    )
    rows = np.random.default_rng(1).normal(40, 20, (7, 2))
    with pytest.warns(UserWarning, match="`income` is on average more than 20 standard deviations"):
        expected = solved.decision_function({"age": rows[:, 0], "income": rows[:, 1]})
    program = torch.export.load(solved.export(tmp_path / "s.pt2")).module()
    assert program(torch.as_tensor(rows)).detach().numpy() == pytest.approx(expected, abs=1e-6)
    assert "F0815" in refusal(lambda: solved.export(tmp_path / "s.txt"))


def test_export_of_what_is_neither(result: fccomodel.Result, tmp_path: Any) -> None:
    text = (
        "data D : table(x: real[2]); var w[2]; def score(x) = dot(w, x)^2; minimize E[z ~ D] "
        "(score(z.x) - 1)^2;"
    )
    solved = fccomodel.compile(text).bind(D={"x": np.ones((4, 2))}).solve(budget="5it")
    assert "F0815" in (text := refusal(lambda: solved.export(tmp_path / "s.pt2"))) and "linear" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's exporter, about its own parts
def test_onnx(result: fccomodel.Result, frame: Any, tmp_path: Any) -> None:
    pytest.importorskip("onnxscript")
    reference = pytest.importorskip("onnx.reference")
    path = result.export(tmp_path / "score.onnx")
    rows = np.column_stack(
        [frame.age, frame.income, *((frame.job == job).to_numpy(float) for job in ("p", "q", "r"))]
    )
    (found,) = reference.ReferenceEvaluator(str(path)).run(None, {"x": rows})
    assert found == pytest.approx(result.decision_function(frame), abs=1e-6)


def solved_in_few_steps(text: str, **data: Any) -> fccomodel.Result:
    return fccomodel.compile(text).bind(**data).solve(budget="5it", polish=False)


def test_a_score_of_differences_is_one_of_rows() -> None:
    """Of a linear score alone: its value at a difference is the difference of its values."""
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(12, 2)), "y": np.arange(12) % 2}
    table = "data D : table(x: real[2], y: {0, 1}); var w[2]; def score(x) = "
    pairs = "minimize E[p ~ D, n ~ D | p.y == 1 and n.y == 0] log1pexp(-score(p.x - n.x)) + 0.1 * sumsq(w);"
    solved = solved_in_few_steps(f"{table} (2 * dot(w, x) - x[1]) / 4; {pairs}", D=rows)
    weights = (2 * solved.variables["w"] - [1, 0]) / 4
    assert solved.decision_function(rows) == pytest.approx(rows["x"] @ weights)
    assert solved.coef_ == pytest.approx(weights)
    without = pairs.replace("score(p.x - n.x)", "dot(w, p.x - n.x)")
    solved = solved_in_few_steps(f"data D : table(x: real[2], y: {{0, 1}}); var w[2]; {without}", D=rows)
    assert solved.decision_function(rows) == pytest.approx(rows["x"] @ solved.variables["w"])
    curved = solved_in_few_steps(f"{table} dot(w, x) + sumsq(x); {pairs}", D=rows)
    assert "F0814" in refusal(lambda: curved.decision_function(rows))


def test_scores_of_pairs_of_rows() -> None:
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(7, 2)), rng.normal(size=(5, 2))
    text = """
    data U : table(x: real[2]); data V : table(x: real[2], t: real); var M[2, 2];
    set W = {v in V | v.t > 0};
    def score(u, v) = dot(u, M @ v);
    minimize E[a ~ U, b ~ W] log1pexp(-score(a.x, b.x)) + 0.1 * sumsq(M);
    """
    solved = solved_in_few_steps(text, U={"x": users}, V={"x": items, "t": np.ones(5)})
    expected = users[:3] @ solved.variables["M"] @ items.T
    assert solved.decision_function({"x": users[:3]}, {"x": items}) == pytest.approx(expected)
    assert "decision_function(rows, others)" in refusal(lambda: solved.decision_function({"x": users}))
    one = text.replace("E[a ~ U, b ~ W]", "E[a ~ U, b ~ U]")
    solved = solved_in_few_steps(one, U={"x": users}, V={"x": items, "t": np.ones(5)})
    expected = users[:3] @ solved.variables["M"] @ users[3:].T
    assert solved.decision_function({"x": users[:3]}, {"x": users[3:]}) == pytest.approx(expected)
    assert "F0814" in refusal(lambda: solved.value("other", {"x": users}, {"x": users}))


@pytest.mark.parametrize(
    "model, added",
    [
        ("minimize E[z ~ D] (z.t - dot(w, z.x) - b)^2;", ["b"]),
        ("minimize E[z ~ D] log1pexp((1 - 2 * z.y) * (dot(w, z.x) + b)) + b^2;", ["b"]),
        ("minimize E[z ~ D] (z.t - dot(w, z.x) - b - c[z.g])^2 + sumsq(c - 1);", ["b", "c"]),
        (
            "minimize E[z ~ D] log1pexp(dot(w, z.x) + b * z.t);"
            "subject to q: E[k ~ D | k.y == 1] (dot(w, k.x) + b * k.t) >= 1;",
            ["bt"],
        ),
        ("minimize b + 4 * E[z ~ D] pos(-dot(w, z.x) - b) + sumsq(w);", []),
        ("let s[z in D] = dot(w, z.x) + b; minimize E[z ~ D] (z.t - s[z])^2;", ["b"]),
    ],
)
def test_what_is_added_to_a_linear_form_everywhere_belongs_to_the_score(model: str, added: list[str]) -> None:
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(12, 2)), "y": np.arange(12) % 2, "t": rng.normal(size=12)}
    rows["g"] = np.array(["p", "q"])[np.arange(12) // 6]
    text = "set G; data D : table(x: real[2], y: {0, 1}, t: real, g: G); var w[2]; var b; var c[G];"
    solved = solved_in_few_steps(text + model, D=rows)
    at = solved.variables
    parts = {"b": at["b"], "c": np.asarray(at["c"])[np.arange(12) // 6], "bt": at["b"] * rows["t"]}
    assert abs(at["b"]) > 1e-3 or not added
    expected = rows["x"] @ at["w"] + sum(parts[name] for name in added)
    assert solved.decision_function(rows) == pytest.approx(expected)


def test_a_score_that_is_several_is_refused() -> None:
    rows = {"x": np.eye(4)[:, :2], "y": np.arange(4) % 2}
    text = (
        "data D : table(x: real[2], y: {0, 1}); var w[2]; var b; minimize E[z ~ D] (z.y - dot(w, z.x) - b)^2;"
    )
    solved = solved_in_few_steps(text + "subject to q: E[z ~ D] log1pexp(dot(w, z.x)) <= 9;", D=rows)
    assert "`w·x` alone and" in refusal(lambda: solved.decision_function(rows))


@pytest.mark.parametrize(
    "model, refused",
    [
        ("minimize E[z ~ D] (z.y - 2 * dot(w, z.x) - b)^2;", True),
        ("minimize E[z ~ D] log1pexp(z.s * dot(w, z.x) + z.s * b);", True),
        ("minimize E[z ~ D] (z.y - z.s * dot(w, z.x) - b)^2;", False),
        ("minimize b + 4 * E[z ~ D] pos(-2 * dot(w, z.x) - b);", False),
    ],
)
def test_what_is_added_to_a_multiple_of_a_score_is_refused(model: str, refused: bool) -> None:
    """A factor of the row makes the form a part of its own; a tail's threshold does not belong to it."""
    rows = {"x": np.eye(4)[:, :2], "y": np.arange(4) % 2, "s": np.array([1.0, -1.0, 2.0, 1.0])}
    text = "data D : table(x: real[2], y: {0, 1}, s: real); var w[2] in box(-1, 1); var b in box(-1, 1);"
    solved = solved_in_few_steps(text + model, D=rows)
    if refused:
        assert "beside `" in refusal(lambda: solved.decision_function(rows))
    else:
        assert solved.decision_function(rows) == pytest.approx(rows["x"] @ solved.variables["w"])


@pytest.mark.parametrize(
    "model, score",
    [
        ("E[z ~ D] log1pexp(-(2 * z.y - 1) * (b - dot(w, z.x)))", None),
        ("E[z ~ D] log1pexp((1 - 2 * z.y) * -dot(w, z.x))", None),
        ("E[z ~ D] (b - dot(w, z.x) - z.y)^2", None),
        ("E[z ~ D] huber(z.y + dot(w, z.x), 1)", None),
        ("E[z ~ D] pos(-2 - s[z])", 1),
        ("E[z ~ D] log1pexp(-(2 * z.y - 1) * dot(w, z.x))", 1),
        ("E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) + E[z ~ D | z.y == 0] log1pexp(dot(w, z.x))", 1),
        ("E[z ~ D] abs(z.y - dot(w, z.x))", 1),
    ],
)
def test_minus_a_score_is_refused_where_its_sign_is_not_clear(model: str, score: int | None) -> None:
    rows = {"x": np.eye(4)[:, :2], "y": np.arange(4) % 2}
    text = "data D : table(x: real[2], y: {0, 1}); var w[2]; var b; let s[z in D] = dot(w, z.x);"
    if "s[z]" not in model:
        text = text.replace("let s[z in D] = dot(w, z.x);", "")
    solved = solved_in_few_steps(f"{text} minimize {model} + sumsq(w - 1) + b^2;", D=rows)
    if score is None:
        assert "takes minus `w" in refusal(lambda: solved.decision_function(rows))
    else:
        assert solved.decision_function(rows) == pytest.approx(rows["x"] @ solved.variables["w"])


@pytest.mark.parametrize(
    "difference", ["dot(w, n.x) - dot(w, p.x)", "dot(w, n.x - p.x)", "score(n.x) - score(p.x)"]
)
def test_a_score_that_only_ranks_has_no_threshold(difference: str) -> None:
    rows = {"x": np.eye(4)[:, :2], "y": np.arange(4) % 2}
    text = "data D : table(x: real[2], y: {0, 1}); var w[2]; def score(x) = dot(w, x);"
    if "score" not in difference:
        text = text.replace("def score(x) = dot(w, x);", "")
    pairs = f"minimize E[p ~ D, n ~ D | p.y == 1 and n.y == 0] log1pexp({difference}) + sumsq(w);"
    solved = solved_in_few_steps(text + pairs, D=rows)
    assert "ranks rows" in refusal(lambda: solved.predict(rows))
    assert set(solved.predict(rows, threshold=0.0)) <= {0, 1}


def test_labels_are_no_target_of_one_score() -> None:
    rows = {"x": np.eye(4)[:, :2], "y": np.array(["no", "yes", "no", "yes"])}
    text = 'data D : table(x: real[2], y: {"no", "yes"}); var w[2]; minimize E[z ~ D] dot(w, z.x)^2 + sumsq(w);'
    solved = solved_in_few_steps(text, D=rows)
    assert "labels, which have no order" in refusal(lambda: solved.predict(rows, target="y"))
