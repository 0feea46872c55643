"""Statements about new rows: margins of sampled constraints, and the interval of the optimality gap."""

import dataclasses
import io
import json
import pickle

import numpy as np
import pytest

import fccomodel
from fccomodel import FccoError
from fccomodel.app import cli, new_rows
from fccomodel.data import subsets
from fccomodel.report.new_rows import margins, population
from fccomodel.report.new_rows.intervals import student

MEAN = (
    "data D : table(x: real); var w; minimize f: square(w) + 2 * w; subject to above: E[z ~ D] z.x - w <= 0;"
)
GROUPS = (
    "set G; data D : table(x: real, g: G); var w[G]; minimize f: sum[k in G] square(w[k]) + 2 * sum(w);"
    "subject to above[k in G]: (E[z ~ D | z.g == k] z.x)^2 / E[z ~ D] z.x - w[k] <= 0;"
    "small: norm2(w) <= 100; fixed: sum(w) >= -99;"
)


def normal(n, seed=0, mean=1.0):
    return np.random.default_rng(seed).normal(mean, 2.0, size=n)


def model(text, **columns):
    return fccomodel.compile(text).bind(data={"D": columns})


# --------------------------------------------------------------------------------- order statistics
def test_the_next_draw_is_between_as_often_as_is_said():
    rng = np.random.default_rng(0)
    for count, level in ((39, 0.95), (19, 0.9), (79, 0.95), (12, 1 - 2 / 13)):
        draws = rng.normal(size=(4000, count + 1))
        held = [population.between(row[:-1]) for row in draws]
        assert held[0][2] == pytest.approx(level)
        inside = np.mean([low <= row[-1] <= high for (low, high, _), row in zip(held, draws, strict=True)])
        assert inside == pytest.approx(level, abs=0.02)


def test_the_next_draw_is_above_as_seldom_as_is_said():
    rng = np.random.default_rng(1)
    assert (
        population.above(rng.normal(size=18), 0.95) is None
        and population.above(rng.normal(size=19), 0.95) is not None
    )
    draws = rng.normal(size=(4000, 40))
    assert np.mean([row[-1] > population.above(row[:-1], 0.95) for row in draws]) == pytest.approx(
        0.05, abs=0.015
    )


def test_the_gap_of_a_mean_is_covered():
    """F(w) = E (w - z)^2: the answer is the mean of the rows, and its gap the square of the mean's error."""
    rng, hits = np.random.default_rng(2), 0
    for _ in range(500):
        rows = rng.normal(size=80)
        means = rng.choice(rows, size=(39, 80)).mean(axis=1)
        made = population.population(
            (means - rows.mean()) ** 2, np.zeros(39), failed=0, seconds=0.0, convex=True
        )
        hits += made.low <= rows.mean() ** 2 <= made.high
    assert 0.93 <= hits / 500 <= 0.97


def test_an_answer_that_rows_do_not_move_is_known_to_its_accuracy():
    """w = 0 for any of these rows: gaps are what rounding leaves, and the interval says no more."""
    x = normal(40, mean=0.0)
    made = model(
        "data D : table(x: real); var w; minimize E[z ~ D] huber(z.x, delta = 1) + 9 * abs(w - E[z ~ D] "
        "0 * z.x);",
        x=x,
    )
    planned = made.plan()
    bag = new_rows.bagged(planned, planned.bound, 60.0, 9)
    found = new_rows.interval(planned, {"w": np.array(0.0)}, bag)
    assert found.low == 0 and population.ACCURACY <= found.high < 1e-5 and not found.why


def test_rows_without_an_answer_count():
    gaps, one = np.linspace(0.0, 1.0, 38), {"seconds": 0.0, "convex": True}
    sure = population.population(gaps, gaps, failed=0, **one, accuracy=0.01, least=0.0)
    assert (sure.low, sure.high) == (0.0, 1.01)
    lost = population.population(gaps, gaps, failed=1, **one)
    assert (
        lost.why == "1 of 39 problems on resampled rows had no answer: other rows may have none"
        and np.isnan(lost.high)
    )
    more = np.linspace(0.0, 1.0, 78)
    enough = population.population(more, more, failed=1, **one)
    assert not enough.why and enough.high == 1.0 and enough.level == pytest.approx(0.95)
    assert population.population(more, more, failed=2, **one).why


# --------------------------------------------------------------------------------------------- rows
def test_rows_drawn_again_keep_families_and_classes():
    text = "set G = {0, 1}; data D[k in G] : table(x: real, y: {-1, 1}); var w;"
    text += "minimize mean[k in G] E[z ~ D[k]] square(w - z.x);"
    table = {"x": normal(40), "y": np.where(np.arange(40) % 20 == 3, 1.0, -1.0), "k": np.repeat([0, 1], 20)}
    bound = fccomodel.compile(text).bind(spec={"D": {"family": {"column": "k"}}}, data={"D": table}).bound
    rng, counts = np.random.default_rng(0), np.zeros(40)
    for _ in range(200):
        rows = subsets.drawn(bound, rng)["D"]
        part = subsets.part(bound, {"D": rows})
        assert np.array_equal(np.bincount(part.tables["D"].columns["__family"].astype(int)), [20, 20])
        assert all(
            (part.tables["D"].columns["y"][part.tables["D"].columns["__family"] == k] == 1).any()
            for k in (0, 1)
        )
        assert np.array_equal(part.tables["D"].numbers, rows)
        counts += np.bincount(rows, minlength=40)
    assert np.ptp(counts[table["y"] < 0]) < 100 and counts.sum() == 8000


# ------------------------------------------------------------------------------------------ margins
def test_a_margin_is_a_quantile_of_standard_errors():
    x = normal(400)
    made = model(MEAN, x=x)
    planned = made.plan()
    found = new_rows.estimated_margins(planned, {"w": np.array(x.mean())}, 0.95, 0.0)
    assert not found.bagged and found.factor == pytest.approx(student(0.95, 99))
    assert found.errors["above"] == pytest.approx(x.std() / 20, rel=0.25)
    tight = new_rows.tight(planned, found.factor, found.errors)
    reached = new_rows.answer(tight, tight.bound, 60.0)
    assert float(reached["w"]) == pytest.approx(x.mean() + found.factor * found.errors["above"], rel=1e-6)


def test_margins_hold_as_often_as_they_say():
    """w >= mean of the rows + margin is at least the true mean."""
    held = 0
    for seed in range(60):
        x = normal(60, seed)
        made = new_rows.estimated_margins(model(MEAN, x=x).plan(), {"w": np.array(x.mean())}, 0.95, 0.0)
        held += x.mean() + made.factor * made.errors["above"] >= 1.0
    assert 53 <= held <= 59


def test_a_margin_that_other_rows_cannot_have_is_refused():
    """The rows' variance is the least of the left side: a bound little above it leaves no room for
    margins."""
    text = "data D : table(x: real); var w; minimize -w; subject to near: E[z ~ D] square(w - z.x) <= {};"
    x = normal(60)
    tight, loose = (model(text.format(x.var() * share), x=x) for share in (1.3, 4.0))
    best = {"w": np.array(x.mean() + 0.5 * x.std())}
    with pytest.raises(FccoError, match="F0706") as caught:
        new_rows.estimated_margins(tight.plan(), best, 0.95, 60.0, 19)
    assert "cannot be promised for new rows" in " ".join(str(caught.value).split())
    assert new_rows.estimated_margins(loose.plan(), best, 0.95, 60.0, 19).bagged


def test_a_family_has_margins_by_member_and_by_bonferroni():
    """(mean of a group)^2 / mean: the delta method's errors, all three together."""
    x, g = normal(900, mean=3.0), np.repeat(["a", "b", "c"], [100, 200, 600])
    made = model(GROUPS, x=x, g=g)
    point = {"w": np.full(3, 3.0)}
    found = new_rows.estimated_margins(made.plan(), point, 0.95, 0.0)
    assert found.untouched == {"small": "of no rows", "fixed": "of no rows"}
    assert found.factor == pytest.approx(student(1 - 0.05 / 3, 99))
    means, whole = np.array([x[g == k].mean() for k in "abc"]), x.mean()
    for k, name in enumerate("abc"):
        own = (x - means[k]) * (g == name) / (g == name).mean()
        influence = 2 * means[k] / whole * own - (means[k] / whole) ** 2 * (x - whole)
        assert found.errors[f"above[{name}]"] == pytest.approx(influence.std() / 30, rel=0.25)
    tight = margins.tightened(made.bound, {"above[b]": 0.5, "above[c]": 0.25})
    values, labels, _ = new_rows.values(tight, point)
    before = new_rows.values(made.bound, point)[0]
    assert labels[:3] == ["above[a]", "above[b]", "above[c]"]
    assert np.allclose(values - before, [0, 0, 0.5, 0.25, 0, 0])


def test_solving_with_margins(tmp_path):
    x = normal(400)
    made = model(MEAN, x=x)
    result = made.solve(margin=0.95, population=True, holdout=0.25)
    found, row = result.margins, result.margins.rows["above"]
    assert (
        found.how == "bagging"
        and found.solves == 99
        and found.level == 0.95
        and found.factor >= student(0.95, 99)
    )
    held = np.setdiff1d(np.arange(400), result.heldout_rows["D"])
    assert row.margin == pytest.approx(found.factor * row.error) and row.value == pytest.approx(
        -row.margin, abs=1e-5
    )
    assert float(result.variables["w"]) == pytest.approx(x[held].mean() + row.margin, abs=1e-5)
    assert found.plain == pytest.approx(x[held].mean() ** 2 + 2 * x[held].mean(), rel=1e-5)
    assert result.objective - found.plain == pytest.approx(found.cost) and found.cost > 0
    others = x[result.heldout_rows["D"]].mean()
    assert result.heldout.constraints["above"].value == pytest.approx(others - float(result.variables["w"]))
    assert result.population.mean > 0  # the margin costs for new rows too
    assert result.options["margin"] == (0.95, "keyword argument")
    text = " ".join(str(result).split())
    assert (
        "for new rows, all with 95%" in text
        and "the objective without them is" in text
        and "gap to the best" in text
    )
    result.save(tmp_path)
    stored = fccomodel.load(tmp_path)
    assert (
        stored.record["margins"]["rows"]["above"]["margin"] == row.margin
        and "margin" not in stored.record["source"]["text"]
    )
    assert stored.record["population"]["solves"] == 99 and result.population.level == pytest.approx(0.96)
    assert fccomodel.evaluate(result, D={"x": x}).report.constraints["above"].value < 0
    assert str(pickle.loads(pickle.dumps(result))) == str(result)


def test_the_gap_for_new_rows():
    """Between the quantiles of s^2 chi^2 / n."""
    x = normal(500)
    result = model("data D : table(x: real); var w; maximize g: -E[z ~ D] square(w - z.x);", x=x).solve(
        population="60s", seed=3
    )
    found, scale = result.population, x.var() / 500
    assert (found.solves, found.failed, found.level, found.convex) == (39, 0, 0.95, True)
    assert found.low == 0 and 2 * scale < found.high < 12 * scale
    assert found.mean == pytest.approx(scale, rel=0.6) and found.optimism == pytest.approx(2 * scale, rel=2)
    assert result.margins is None and "0 to" in str(result) and "one-sided" in str(result)


def test_two_replications_on_rows_held_out():
    """Each half has the gap (w - its mean)^2, whose mean is the true one and s^2 / n; and a wrong
    answer has a large gap."""
    x = normal(800)
    made = model(
        "data D : table(x: real); var w; minimize E[z ~ D] square(w - z.x) ; subject to c: w <= 50;", x=x
    )
    planned = made.plan(holdout=0.5)
    held, near, far = x[planned.held["D"]], {"w": np.array(1.0)}, {"w": np.array(3.0)}
    most = new_rows.replicated(planned, near, 60.0)
    assert 0 < most < 20 * x.var() / 200
    error = 2 * 2 * x.std() / np.sqrt(len(held))  # of (w - mean)^2 at w = 3, to first order
    assert new_rows.replicated(planned, far, 60.0) == pytest.approx(
        (3 - held.mean()) ** 2 + 1.69 * error, rel=0.15
    )
    assert np.isnan(new_rows.replicated(model(MEAN, x=x).plan(holdout=0.5), near, 60.0))
    assert np.isnan(new_rows.replicated(made.plan(), near, 60.0))


def test_too_few_answers_say_so():
    made = population.population(np.ones(5), np.ones(5), failed=1, seconds=2.0, convex=False)
    assert made.why == "5 answers on resampled rows, fewer than 9" and np.isnan(made.low)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("var w; minimize E[z ~ D] square(w - z.x);", "no constraints"),
        ("var w; minimize E[z ~ D] square(w - z.x); subject to c: 1 <= w;", "`c` is of no rows"),
        ("var w; minimize E[z ~ D] square(w - z.x); subject to c: E[z ~ D] z.x == w;", "`c` is an equality"),
        ("var w; minimize E[z ~ D] square(w - z.x); subject to c: max[z in D] z.x <= w;", "the worst rows"),
        ("var w; minimize E[z ~ D] square(w - z.x); subject to c[z in D]: z.x <= w;", "one by one"),
    ],
)
def test_what_can_have_no_margin(text, words):
    with pytest.raises(FccoError, match="F0706") as caught:
        model(f"data D : table(x: real); {text}", x=normal(30)).solve(margin=0.95)
    assert words in " ".join(str(caught.value).split())


def test_what_is_no_sample():
    text = "data D : table(x: real); var t[D]; minimize mean[z in D] (t[z] - z.x)^2;"
    with pytest.raises(FccoError, match="F0811"):
        model(text, x=normal(5)).solve(population=True)
    few = model(MEAN, x=normal(9))
    with pytest.raises(FccoError, match="F0706"):
        few.solve(margin=0.95)


@pytest.mark.parametrize(
    "given", [{"margin": 1.0}, {"margin": True}, {"population": "40it"}, {"population": "soon"}]
)
def test_what_is_no_option(given):
    with pytest.raises(FccoError, match="F0808"):
        model(MEAN, x=normal(30)).solve(**given)


def test_what_takes_a_solve():
    made = model(MEAN, x=normal(30))
    with pytest.raises(FccoError, match="an option of solve, not of emit"):
        made.emit(margin=0.95)
    with pytest.raises(FccoError, match="an option of solve, not of compare"):
        fccomodel.compare(made, algorithms=["sonex"], holdout=0.2)
    assert "def step" in made.emit(holdout=0.2)


def test_the_command_line(tmp_path, capsys):
    (tmp_path / "m.fcco").write_text("model m;\n" + MEAN)
    np.savez(tmp_path / "D.npz", x=normal(100))
    args = [
        "solve",
        str(tmp_path / "m.fcco"),
        "--data",
        f"D={tmp_path / 'D.npz'}",
        "--json",
        "--quiet",
        "--budget",
        "3s",
    ]
    assert cli.main([*args, "--margin", "0.9", "--population", "30s", "--holdout", "0.2"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["margins"]["level"] == 0.9 and record["population"]["solves"] >= 39
    assert record["holdout"]["rows"] == {"D": 20} and record["options"]["margin"]["origin"] == "command line"


def test_a_net_is_run_again():
    """No conic program: each answer is a run with the budget of the first."""
    torch = pytest.importorskip("torch")
    text = "dim d; data D : table(x: real[d], y: real); net s : real[d] -> real; var w = params(s);"
    text += "minimize E[z ~ D] square(s(w; z.x) - z.y);"
    rng = np.random.default_rng(0)
    made = fccomodel.compile(text).bind(
        data={"D": {"x": rng.normal(size=(60, 2)), "y": rng.normal(size=60)}},
        nets={"s": torch.nn.Linear(2, 1)},
    )
    planned = made.plan(budget="20it")
    bag = new_rows.bagged(planned, planned.bound, 2.0)
    assert len(bag.whole) and bag.failed == 0
    few = dataclasses.replace(bag, whole=bag.whole[:3], inside=bag.inside[:3])
    assert new_rows.interval(planned, made.solve(budget="20it").variables, few).why


@pytest.mark.parametrize("value, said", [(-0.3, "they cost 0.5"), (-0.1, "no point with them was found")])
def test_margins_that_no_point_keeps_have_no_cost(value, said):
    from rich.console import Console

    from fccomodel.app.shown.display._new_rows import margins as shown

    rows = {"misses": margins.Margin(value=value, error=0.1, margin=0.3)}
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(
        shown(margins.Margins(level=0.95, factor=3.0, how="bagging", rows=rows, plain=1.0, cost=0.5))
    )
    assert said in console.export_text()
