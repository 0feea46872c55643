"""Confidence intervals on a sample of rows: against the delete-one formulas, and by their coverage."""

import numpy as np
import pytest
from test_kkt import D, N, X, Y, bound

import fccomodel
from fccomodel.data.subsets import dealt
from fccomodel.report.new_rows.intervals import intervals, student

MEAN = (
    'var w[d]; minimize E[z ~ D] z.y * sum(w); subject to a: E[z ~ D | z.g == "a"] z.y * sum(w) <= '
    "9; e: E[z ~ D] z.y == 0;"
)


def many(n, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, D))
    return {
        "data": {
            "D": {
                "x": x,
                "y": x[:, 0] + 0.3 * random.normal(size=n),
                "g": np.array(["a", "b", "c"])[np.arange(n) % 3],
            }
        }
    }


def test_a_mean_has_its_standard_error():
    data = many(4000)
    y, g = data["data"]["D"]["y"], data["data"]["D"]["g"]
    found = intervals(bound(MEAN, **data), {"w": np.array([1.0, 0, 0, 0])})
    assert found.groups == 20 and found.objective.value == pytest.approx(y.mean())
    assert found.objective.half == pytest.approx(student(0.975, 19) * y.std() / 4000**0.5, rel=0.4)
    own = y[g == "a"]
    assert found.constraints["a"].half == pytest.approx(
        student(0.975, 19) * own.std() / len(own) ** 0.5, rel=0.4
    )
    assert found.constraints["a"].holds is True


def test_how_many_rows_a_class_has_is_a_part_of_the_error():
    """All of the variance is between the classes."""
    y = np.sign(np.random.default_rng(1).normal(size=2000) + 0.3)
    model = fccomodel.compile(
        "data D : table(y: {-1, 1}); var w; minimize E[z ~ D] z.y * w + square(w);"
    ).bind(D={"y": y})
    assert intervals(model.bound, {"w": np.array(1.0)}).objective.half == pytest.approx(
        2.09 * y.std() / 2000**0.5, rel=0.4
    )


@pytest.mark.parametrize("sizes", [(1, 1, 2, 3, 60), (2,) * 40, (1, 99), (200,)])
def test_no_class_is_lost_with_a_group(sizes):
    strata = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    for seed in range(20):
        group = dealt(strata, 8, np.random.default_rng(seed))
        for left_out in range(8):
            assert len(np.unique(strata[group != left_out])) == len(sizes)
        assert np.ptp(np.bincount(group[group >= 0], minlength=8)) <= 1 + 2 * sum(size < 4 for size in sizes)


def test_what_is_said_of_a_constraint_is_what_its_interval_says():
    """A one-sided test may not contradict the interval shown."""
    data = many(900)
    y = data["data"]["D"]["y"]
    half = intervals(
        bound("var w[d]; minimize E[z ~ D] z.y * w[1];", **data), {"w": np.eye(D)[0]}
    ).objective.half
    for shift in (-1.1, -0.95, 0.95, 1.1):
        text = (
            "var w[d]; minimize sumsq(w); subject to c: E[z ~ D] z.y * w[1] <= "
            f"{float(y.mean() - shift * half)!r};"
        )
        found = intervals(bound(text, **data), {"w": np.eye(D)[0]}).constraints["c"]
        assert found.holds is {-1.1: True, 1.1: False}.get(shift)


def teststudent_quantiles():
    stats = pytest.importorskip("scipy.stats")
    for freedom in (7, 12, 39):
        for share in (0.95, 0.975):
            assert student(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-3)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    # a ratio of means
    text = "var w[d]; minimize sqrt(E[z ~ D] square(z.y)) / (1 + E[z ~ D] square(dot(w, z.x)));"
    w, truth, hits = np.array([1.0, 0, 0, 0]), 1.09**0.5 / 2, 0
    for seed in range(60):
        own = intervals(bound(text, **many(300, seed)), {"w": w}).objective
        hits += abs(own.value - truth) <= own.half
    assert 50 <= hits <= 60


def test_what_the_rows_can_tell():
    data = many(900)
    for limit, holds in ((0.3, True), (-0.3, False), (0.01, None)):
        text = (
            f"var w[d]; minimize sumsq(w); subject to c: E[z ~ D] z.y * sum(w) <= {limit} + "
            f"{data['data']['D']['y'].mean()};"
        )
        assert intervals(bound(text, **data), {"w": np.array([1.0, 0, 0, 0])}).constraints["c"].holds is holds


def test_where_there_are_none_it_says_why():
    drawn = intervals(bound("var w[d]; minimize sumsq(w);"), {"w": np.ones(D)})
    assert drawn.why == "nothing is averaged over rows" and np.isnan(drawn.objective.half)
    few = {"data": {"D": {"x": X[:9], "y": Y[:9], "g": np.array(list("abcabcabc"))}}}
    assert (
        "has 9 rows"
        in intervals(bound("var w[d]; minimize E[z ~ D] z.y * w[1];", **few), {"w": np.ones(D)}).why
    )


def test_rows_held_out_of_a_solve():
    split = np.where(np.arange(N) < 40, "train", "test")
    model = fccomodel.compile(
        "model m; dim d; data D : table(x: real[d], y: real); var w[d]; let size = E[z ~ D] "
        "square(dot(w, z.x));"
        "minimize E[z ~ D] square(dot(w, z.x) - z.y); subject to small: E[z ~ D] square(dot(w, z.x)) <= 0.5;"
    )
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({f"x{k}": X[:, k] for k in range(D)} | {"y": Y, "split": split})
    made = model.bind(spec={"D": {"x": {"columns": [f"x{k}" for k in range(D)]}}}, D=frame)
    result = made.solve(budget="2000it", holdout="split == 'test'", sensitivity=True, show=["size"])
    w, held = result.variables["w"], split == "test"
    assert result.objective == pytest.approx(np.mean((X[~held] @ w - Y[~held]) ** 2))
    assert result.heldout.objective.value == pytest.approx(np.mean((X[held] @ w - Y[held]) ** 2))
    assert result.heldout.constraints["small"].value == pytest.approx(np.mean((X[held] @ w) ** 2) - 0.5)
    text = str(result)
    assert "held out: split == 'test'" in text and "± (95%)" in text and "if moved" in text
    assert "of the rows solved on" in text and "rows solved on" not in str(
        made.solve(budget="200it", show=["size"])
    )
    record = result.json
    assert record["heldout"]["objective"]["half"] > 0 and record["sensitivity"]["objective"]["small"] < 0


def test_a_share_of_the_rows_held_out():
    """The same share of each class; scaling learned from the others alone; the same rows for the same
    seed."""
    rng = np.random.default_rng(3)
    table = {"x": rng.normal(2.0, 3.0, size=(200, 2)), "y": np.where(np.arange(200) < 30, 1.0, -1.0)}
    table["g"] = np.array(["a"] * 199 + ["b"])
    model = fccomodel.compile(
        "model m; dim d; set G; data D : table(x: real[d], y: {-1, 1}, g: G); var w[d];"
        "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);"
    )
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"x1": table["x"][:, 0], "x2": table["x"][:, 1], "y": table["y"], "g": table["g"]}
    )
    spec = {"D": {"where": "x1 > -3", "x": {"columns": ["x1", "x2"], "scale": "standard"}}}
    bound = model.bind(spec=spec, D=frame)
    result = bound.solve(budget="200it", holdout=0.2)
    used, held = np.flatnonzero(table["x"][:, 0] > -3), result.heldout_rows["D"]
    assert set(held) < set(used) and 199 not in held
    assert (table["y"][held] == 1).sum() == round(0.2 * (table["y"][used] == 1).sum())
    inside = np.setdiff1d(used, held)
    scale = result.outcome.bound.tables["D"].encoding["x"]["scale"]
    assert np.allclose(scale["mean"], table["x"][inside].mean(0))
    x = (table["x"][held] - scale["mean"]) / scale["divisor"]
    w = result.variables["w"]
    expected = np.mean(np.log1p(np.exp(-table["y"][held] * (x @ w)))) + 0.01 * w @ w
    assert result.heldout.objective.value == pytest.approx(expected)
    text = " ".join(str(result).split())
    assert (
        "held out: 0.2 of the rows, seed 0" in text
        and "held out at random, the same share of each of" in text
    )
    assert result.options["holdout"] == (0.2, "keyword argument")
    assert np.array_equal(bound.plan(holdout=0.2).held["D"], held)
    assert not np.array_equal(bound.plan(holdout=0.2, seed=1).held["D"], held)


def test_rows_held_out_are_stored(tmp_path):
    model = fccomodel.compile("data D : table(x: real); var w; minimize E[z ~ D] square(w - z.x);").bind(
        D={"x": np.arange(50.0)}
    )
    result = model.solve(budget="100it", holdout=0.1)
    result.save(tmp_path)
    record = fccomodel.load(tmp_path).record["holdout"]
    assert record == {"given": 0.1, "seed": 0, "rows": {"D": 5}, "file": "heldout.npz"}
    with np.load(tmp_path / "heldout.npz") as stored:
        assert np.array_equal(stored["D"], result.heldout_rows["D"])


@pytest.mark.parametrize("share", [0.0, 1.0, 2, True, float("nan")])
def test_what_is_no_share(share):
    model = fccomodel.compile("data D : table(x: real); var w; minimize E[z ~ D] square(w - z.x);").bind(
        D={"x": np.arange(50.0)}
    )
    with pytest.raises(fccomodel.FccoError, match="F0808"):
        model.solve(holdout=share)


def test_what_has_an_entry_for_each_row_is_not_held_out():
    model = fccomodel.compile("data D : table(x: real); var t[D]; minimize mean[z in D] (t[z] - z.x) ^ 2;")
    with pytest.raises(fccomodel.FccoError, match="F0811"):
        model.bind(D={"x": np.arange(5.0)}).solve(holdout=0.2)
    with pytest.raises(fccomodel.FccoError, match="F0811"):
        fccomodel.compile("var w; minimize E[z ~ normal(0, 1)] square(w - z);").solve(holdout=0.2)


def test_rows_that_no_group_can_spare_have_no_error():
    """Each row is the only one of its group: without any of them nothing changes, which is no certainty."""
    text = """
set G;
data D : table(x: real, g: G);
var w >= -1, <= 1;
minimize f: mean[i in D] (E[j ~ D | j.g == i.g] (j.x - w))^2;
"""
    rows = {"D": {"x": np.linspace(0, 1, 64), "g": np.array([f"g{k}" for k in range(64)])}}
    alone = fccomodel.compile(text).bind(data=rows).bound
    found = intervals(alone, {"w": np.array(0.2)})
    assert found.groups == 0 and "too few to leave any out" in found.why
    assert np.isnan(found.objective.half)
