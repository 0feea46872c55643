"""The choice of algorithm by its theorem's assumptions: refusals at their place, runs without a
theorem, rates, schedules."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.places import EXAMPLES

from fccomodel import algorithms, pipeline, plan, structure
from fccomodel.algorithms import Constants
from fccomodel.app import cli, registry
from fccomodel.app.python import session
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.plan import candidates as considered
from fccomodel.plan import choice, measured, ranking, rates

HEAD = "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\n"
LOSS = "square(dot(w, z.x) - z.y)"
RISK = f"(E[z ~ D | z.g == k] {LOSS})"
SMOOTH = f"var w[d];\nminimize mean[k in K] square{RISK};"
WORST = f"var w[d];\nminimize max[k in K] {RISK};"
BEST = f"var w[d];\nminimize min[k in K] sqrt({RISK});"
BOUNDED = f"var w[d];\nminimize E[z ~ D] {LOSS};\nsubject to c: E[z ~ D | z.g == 0] {LOSS} <= 1;"


def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(60, 3)), "y": rng.normal(size=60), "g": np.arange(60) % 3.0}


def made(text: str, **options: Any) -> plan.Plan:
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    bound = pipeline.bind(compiled, pipeline.Binding(data={"D": data()}))
    return pipeline.decide(
        pipeline.analyse(compiled.problem, bound), {k: (v, "command line") for k, v in options.items()}
    )


def found(text: str) -> dict[str, considered.Candidate]:
    problem = pipeline.compile_model(Source(text=HEAD + text, name="m")).problem
    return considered.candidates(structure.analyse(problem))


def bound(text: str, **options: Any) -> dict[str, considered.Candidate]:
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    analysis = pipeline.analyse(
        compiled.problem, pipeline.bind(compiled, pipeline.Binding(data={"D": data()}))
    )
    return considered.candidates(analysis, {name: (value, "command line") for name, value in options.items()})


def test_equal_expressions_and_equal_penalties_are_analysed_once(monkeypatch):
    analysed: list[object] = []
    whole = structure.Analyser._all_facts

    def counted(self, node):
        """Note the node, and analyse it."""
        analysed.append(node)
        return whole(self, node)

    monkeypatch.setattr(structure.Analyser, "_all_facts", counted)
    rows = "".join(f"\n c{k}: E[z ~ D] square(dot(w, z.x) - {k + 2}) <= {k + 9};" for k in range(3))
    text = f"var w[d];\nminimize E[z ~ D] {LOSS};\nsubject to{rows}"
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    analysis = pipeline.analyse(
        compiled.problem, pipeline.bind(compiled, pipeline.Binding(data={"D": data()}))
    )
    everyone = considered.candidates(analysis)
    before = len(analysed)
    assert everyone["sonex"].setting is everyone["sonx"].setting  # one penalty, smoothed and not
    setting = everyone["sonex"].setting
    bodies = [c.body for c in setting.reformed.constraints]
    again = [setting.see.see(body) for body in bodies]
    assert len(analysed) == before
    fresh = structure.seer(setting.reformed, setting.bound)
    for body, known in zip(bodies, again, strict=True):
        assert known.expr is body
        assert [str(fact) for fact in known.facts()] == [str(fact) for fact in fresh(body).facts()]


# ----------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("name", "text", "needed", "clause", "place"),
    [
        ("alexr", f"var w[d];\nminimize mean[k in K] log(1 + {RISK});", "a convex outer", "Assumption 3", "log"),
        ("alexr", f"var w[d];\nminimize mean[k in K] exp(-{RISK});", "non-decreasing", "Assumption 3", "E[z ~ D"),
        ("alexr", "var w[d];\nminimize square(E[z ~ D] sigmoid(dot(w, z.x)));", "convex inner", "Assumption 2", "sigmoid"),
        ("sox", WORST, "a smooth outer", "sox-2022, Assumption 1 (i)", "max"),
        ("sox", BOUNDED, "without constraints", "sox-2022, section 2", "c"),
        ("ascvrg", "var t;\nminimize square(E[z ~ normal(0, 1)] (t - z));", "finite tables", "ascvrg-2021", "E["),
        ("ascvrg", "var w[d];\nminimize E[z ~ D] sigmoid(dot(w, z.x));", "a convex problem", "ascvrg-2021", "sigmoid"),
        ("sonex", BEST, "a weakly convex f", "sonex-alexr2-2025, Assumption 3.2", "sqrt"),
    ],
)  # fmt: skip
def test_an_algorithm_that_is_named_is_checked_all_the_same(
    name: str, text: str, needed: str, clause: str, place: str
) -> None:
    source = Source(text=HEAD + text, name="m")
    with pytest.raises(FccoError) as caught:
        made(text, algorithm=name)
    assert {d.code for d in caught.value.diagnostics} == {"F0604"}
    (one,) = [d for d in caught.value.diagnostics if needed in d.message]
    assert clause in one.reason and one.fix
    assert one.span is not None and source.text[one.span.start : one.span.end].startswith(place)


def test_every_lacking_assumption_is_an_error_of_its_own() -> None:
    text = BOUNDED.replace("minimize E[z ~ D]", "minimize max[k in K] ").replace(
        f"max[k in K]  {LOSS}", f"max[k in K] {RISK}"
    )
    with pytest.raises(FccoError) as caught:
        made(text, algorithm="sox")
    assert len({d.message for d in caught.value.diagnostics}) == len(caught.value.diagnostics) == 2


# --------------------------------------------------------------------------------------- unverified
def test_a_model_that_no_theorem_covers_is_refused_with_the_way_out() -> None:
    with pytest.raises(FccoError) as caught:
        made(BEST)
    (one,) = caught.value.diagnostics
    assert one.code == "F0605" and "--unverified" in one.fix


def test_unverified_takes_the_nearest_and_says_what_fails() -> None:
    chosen = made(BEST, unverified=True)
    assert chosen.unverified and all("(" in words for words in chosen.unverified)
    assert len(chosen.unverified) == min(len(c.lacking) for c in ranking.direct(found(BEST)) if c.can_run)


def test_unverified_changes_nothing_where_a_theorem_covers_the_model() -> None:
    chosen, plain = made(SMOOTH, unverified=True), made(SMOOTH)
    assert chosen.algorithm == plain.algorithm and chosen.unverified == plain.unverified == ()


def test_an_algorithm_without_a_form_for_the_model_cannot_run_unverified_either() -> None:
    with pytest.raises(FccoError, match="F0604"):
        made(BOUNDED, algorithm="sox", unverified=True)


def test_the_report_of_an_unverified_run_says_so_first(tmp_path, capsys) -> None:
    bound = session.compile(HEAD + BEST).bind(D=data())
    with pytest.raises(FccoError):
        bound.plan()
    result = bound.solve(unverified=True, budget="20it", algorithm="sox")
    first = str(result).lstrip().splitlines()[0]
    assert first.startswith("UNVERIFIED: no theorem covers this run") and "smooth" in " ".join(
        str(result).split()[:20]
    )
    told = json.loads(json.dumps(result.json))
    assert told["unverified"] and not told["assumptions"]["outer smooth"]["holds"]
    assert told["options"]["unverified"] == {"value": True, "origin": "keyword argument"}


def test_unverified_on_the_command_line(tmp_path, capsys) -> None:
    model, table = tmp_path / "m.fcco", tmp_path / "D.npz"
    model.write_text(HEAD + BEST)
    np.savez(table, **data())
    given = ["solve", str(model), "--data", f"D={table}", "--budget", "10it"]
    assert cli.main(given) == 2 and "--unverified" in capsys.readouterr().err
    assert cli.main([*given, "--unverified"]) == 0
    assert capsys.readouterr().out.lstrip().startswith("UNVERIFIED")


# -------------------------------------------------------------------------------------------- order
def test_guarantees_go_before_rates_and_rates_before_names() -> None:
    theorems = ranking.rank(bound(SMOOTH)).theorems
    places = [considered.GUARANTEES.index(c.guarantee) for c in theorems]
    assert places == sorted(places) and {"optimum", "stationarity"} <= {c.guarantee for c in theorems}
    for one, other in zip(theorems, theorems[1:], strict=False):
        if one.guarantee == other.guarantee:
            assert one.calls <= other.calls and one.order < other.order


def test_what_a_theorem_does_not_cover_has_no_guarantee() -> None:
    text = "var w[d] in simplex;\nminimize mean[k in K] square(E[z ~ D | z.g == k] (dot(w, z.x) - z.y));"
    ranked = ranking.rank(bound(text)).theorems
    assert any(c.adds() for c in ranked), "steps of theorems about the whole space project"
    assert [c.guarantee == "nothing" for c in ranked] == sorted(not c.covered for c in ranked)


def test_rates_count_whole_at_the_problems_own_numbers() -> None:
    """The second terms of theorems, and what a step takes, decide where the first terms are small."""
    few, many = (bound(SMOOTH, outer_batch=1, inner_batch=size) for size in (2, 30))
    for name in ("sox", "msvr", "sonex", "alexr"):
        candidate = few[name]
        n, B1, B2 = (candidate.numbers[key] for key in ("n", "B1", "B2"))
        assert (n, B1, B2) == (3, 1, 2) and many[name].numbers["B2"] == 30
        per_step = {"sox": 1, "msvr": 2, "sonex": 2, "alexr": 3}[name]
        steps = rates.value(candidate.promise.rate, candidate.numbers)
        assert candidate.calls == pytest.approx(per_step * B1 * B2 * steps)
    assert many["sox"].calls > 2 * few["sox"].calls, (
        "max(n / (B1 B2), 1 / min(B1, B2)): larger batches of one block gain nothing"
    )
    rough = bound(SMOOTH, epsilon=0.5)
    assert (
        rough["apg"].calls < bound(SMOOTH)["apg"].calls
        and rough["ascvrg"].calls < bound(SMOOTH)["ascvrg"].calls / 10
    )


def test_batches_that_grow_with_the_accuracy_count() -> None:
    """BSGD's 1 / eps^2 steps take 1 / eps inner samples each; HSCG's values with kinks 1 / eps^2
    (Theorem 3.3)."""
    text = "var w[d];\nminimize mean[k in K] abs(E[z ~ D | z.g == k] (dot(w, z.x) - z.y));"
    smooth, kinks = bound(SMOOTH), bound(text)
    assert smooth["bsgd"].calls == pytest.approx(1e9) and rates.order(smooth["bsgd"].record.rate)[0] == 6
    assert smooth["hscg"].calls == pytest.approx(3e9) and kinks["hscg"].calls == pytest.approx(3e15)
    assert kinks["hscg_restarts"].calls == kinks["hscg"].calls


def test_passes_are_counted_by_the_rows() -> None:
    assert bound(SMOOTH)["apg"].calls == pytest.approx(3 * 60 / math.sqrt(1e-3)), (
        "n blocks, 60 rows, N / sqrt(eps)"
    )
    assert all(c.calls is None for c in found(SMOOTH).values()), "nothing is counted before there are data"


MEASURED = {
    "convex": True,
    "constrained": False,
    "kinks": False,
    "nets": False,
    "sampled": False,
    "few": True,
    "maxima": False,
}


def overruled(monkeypatch: pytest.MonkeyPatch, theorems: float = 10.0, **times: float) -> ranking.Ranking:
    row = measured.Measurement(problems=MEASURED, models=("one", "another"), times=times, theorems=theorems)
    monkeypatch.setattr(measured, "rows", lambda: (row,))
    return ranking.rank(bound(SMOOTH))


def test_measurements_decide_where_they_speak_against_the_theorems(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = ranking.rank(bound(SMOOTH)).theorems[0].record.name
    told = overruled(monkeypatch, **{alone: 3.0, "sox": 1.1, "sonex": 1.3})
    assert [c.record.name for c in told.order[:3]] == ["sox", "sonex", alone] and told.theorems[
        0
    ].record.name == alone
    first, second = told.reasons()
    assert "convex, without constraints, smooth" in first and "2 models" in first
    assert "it was the fastest" in first and "sonex 1.2" in first
    assert f"by the theorems alone it would be {alone}" in second
    assert overruled(monkeypatch, **{alone: 1.4, "sox": 1.0}).row is None, "within what measurements can tell"
    assert overruled(monkeypatch, sox=1.0).order[0].record.name == "sox", (
        "the theorems' first was not measured"
    )
    assert overruled(monkeypatch, **{alone: 3.0, "sox": 1.1}, theorems=1.5).row is None, (
        "they choose well for each model"
    )


def test_those_without_a_finish_are_not_named_beside_one_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = overruled(monkeypatch, **{"sox": 2.0, "sonex": 7.0, "hscg": 20.0})
    finished = dataclasses.replace(told, finishing=True)
    kept = [c.record.name for c in told.order if ranking.finishable(c.record)]
    assert set(finished._named) == set(kept) < set(told._named)


def test_another_class_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    overruled(monkeypatch, sonex=1.0)
    row = measured.rows()[0]
    maxima = {**MEASURED, "kinks": True, "maxima": True}
    monkeypatch.setattr(measured, "rows", lambda: (dataclasses.replace(row, problems=maxima),))
    assert ranking.rank(bound(SMOOTH)).row is None and ranking.rank(bound(WORST)).row is not None
    assert ranking.class_of(ranking.rank(found(SMOOTH)).theorems) is None, "without data no class is known"


def test_a_maximum_is_told_from_other_kinks() -> None:
    """The largest of groups' losses couples them; a kink of each group by itself does not."""

    def told(text: str) -> measured.Class:
        return ranking.class_of(ranking.rank(bound(text)).theorems) or {}

    assert told(WORST)["kinks"] and told(WORST)["maxima"]
    alone = told(f"var w[d];\nminimize mean[k in K] pos({RISK} - 1);")
    assert alone["kinks"] and not alone["maxima"] and not told(SMOOTH)["maxima"]


def test_what_was_measured_is_of_algorithms_that_there_are() -> None:
    rows = measured.rows()
    assert rows and len({tuple(sorted(row.problems.items())) for row in rows}) == len(rows)
    for row in rows:
        assert row.problems.keys() <= MEASURED.keys() and row.models and min(row.times.values()) >= 1
        assert row.times.keys() <= algorithms.all().keys()


def test_runs_that_are_finished_begin_with_what_a_finish_can_follow() -> None:
    limits = bound(BOUNDED)
    assert limits["sonx"].admitted and not considered.finishable(limits["sonx"].record)
    finished = ranking.rank(limits, finishing=True)
    at = {c.record.name: place for place, c in enumerate(finished.order)}
    assert at["sonex"] < at["sonx"] and at["hscg"] < at["sonx"]
    assert (
        "only without the final full-data phase"
        in ranking.rejected(limits, finished.order[0], finished)["sonx"][0]
    )
    assert not made(BOUNDED, polish=False).ranking.finishing and made(BOUNDED).ranking.finishing


def test_runs_that_are_finished_begin_with_what_smooths_all_kinks() -> None:
    risks = bound("var w[d];\nminimize E[z ~ D] abs(dot(w, z.x) - z.y);")
    finished, plain = (ranking.rank(risks, finishing=wanted) for wanted in (True, False))
    left = [c.left for c in finished.order if considered.finishable(c.record)]
    assert left == sorted(left) and left[0] == 0 < left[-1]
    kinked = next(
        c.record.name for c in finished.order if c.left and c.covered and considered.finishable(c.record)
    )
    assert "by subgradients at kinks" in ranking.rejected(risks, finished.order[0], finished)[kinked][0]
    assert kinked in plain._named and kinked not in finished._named


def test_an_explanation_tells_why() -> None:
    told = " ".join(str(session.compile(HEAD + SMOOTH).bind(D=data()).explain()).split())
    assert "chosen by" in told and (
        "by the theorems alone it would be" in told or "chosen by its theorem: an optimum" in told
    )
    named = session.compile(HEAD + SMOOTH).bind(D=data()).explain(algorithm="sox")
    assert "chosen by name" in str(named) and named.json["choice"]["named"] and named.json["choice"]["order"]


def test_another_problem_is_never_chosen() -> None:
    for text in (SMOOTH, WORST):
        assert all(c.record.surrogate is None for c in ranking.rank(found(text)).order)


MODELS = sorted(EXAMPLES.glob("*.fcco"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_examples_are_covered_by_an_algorithm(path: Path) -> None:
    problem = pipeline.compile_model(Source(text=path.read_text(), name=path.name)).problem
    assert ranking.rank(considered.candidates(structure.analyse(problem))).order


def test_all_rejected_algorithms_are_told_once() -> None:
    chosen = made(WORST)
    told = [name.partition(" ")[0] for names, _ in chosen.others for name in names]
    assert sorted([*told, chosen.algorithm]) == sorted(algorithms.all())


# -------------------------------------------------------------------------------------------- rates
@pytest.mark.parametrize("name", sorted(algorithms.all()))
def test_every_rate_is_a_formula(name: str) -> None:
    record = algorithms.all()[name]
    numbers = dict.fromkeys(rates.names(record.rate), 10.0)
    coarse, fine = (rates.value(record.rate, {**numbers, "eps": eps}) for eps in (1e-1, 1e-3))
    assert coarse is not None and fine is not None and 0 < coarse < fine
    assert rates.order(record.rate)[0] > 0


def test_the_order_of_rates() -> None:
    ordered = [
        "log(1/eps)",
        "1 / sqrt(eps)",
        "1 / eps^4",
        "n / (B1 B2 eps^4)",
        "n / (B1 sqrt(B2) eps^4)",
        "n / (B1 sqrt(B2) eps^5)",
    ]
    assert sorted(reversed(ordered), key=rates.order) == ordered
    assert rates.order("max(n / (B1 eps^4), 1 / eps^5)")[0] == 5


def test_a_rate_in_the_problems_own_numbers() -> None:
    text = rates.in_numbers("n / (B1 B2 eps^4)", {"n": 1797, "B1": 512, "B2": 512}, 1e-3)
    assert text == "1,797 / (512 * 512 * eps^4) = 6.9e-03 / eps^4: 6.9e+09 at eps = 0.001"
    assert "mu is not known" in rates.in_numbers("n / (mu eps)", {"n": 3}, 1e-3)
    chosen = made(SMOOTH, algorithm="sox", outer_batch=2, inner_batch=5)
    sampled = "max(3 / (2 * 5), 1 / min(2, 5)) / eps^4 = 5.0e-01 / eps^4"
    assert chosen.rate.startswith(sampled), "labels are sampled where outer_batch is given"
    chosen = made(SMOOTH, algorithm="sox", inner_batch=5)
    assert chosen.rate.startswith("max(3 / (3 * 5), "), "and visited all in each step where it is not"


# ---------------------------------------------------------------------------------------- schedules
THEORIES = [name for name, a in algorithms.all().items() if a.theory is not None]


@pytest.mark.parametrize("name", THEORIES)
def test_a_theorems_schedule_shrinks_with_the_accuracy(name: str) -> None:
    theory = algorithms.all()[name].theory
    assert theory is not None
    k = Constants(n=100, B1=10, B2=5, eps=1e-2, C_f=2, C_g=3, L_f=1.5, L_g=0.5, rows=1000)
    coarse, fine = theory(k), theory(dataclasses.replace(k, eps=1e-3))
    assert all(math.isfinite(v) and v >= 0 for v in (*coarse.values(), *fine.values()))
    assert all(fine[key] <= coarse[key] for key in ("eta", "lam") if key in coarse)


def test_sonex_by_its_theorem() -> None:
    theory = algorithms.all()["sonex"].theory
    assert theory is not None
    k = Constants(n=100, B1=10, B2=5, eps=1e-2, C_f=2)
    h = theory(k)
    assert h["lam"] == pytest.approx(k.eps / k.C_f)
    assert h["gamma_prime"] == pytest.approx(1 - h["gamma"] + (k.n - k.B1) / (k.B1 * (1 - h["gamma"])))
    smaller = theory(dataclasses.replace(k, eps=1e-3))
    assert smaller["gamma"] / h["gamma"] == pytest.approx(1e-4, rel=1e-6), "gamma = Theta(B2 eps^4)"
    assert smaller["beta"] / h["beta"] == pytest.approx(1e-2, rel=1e-6), "beta = Theta(eps^2)"
    assert smaller["eta"] / h["eta"] == pytest.approx(1e-3, rel=0.05), "eta = Theta(eps^3)"


def test_a_plan_by_theory() -> None:
    chosen = made(SMOOTH, algorithm="sox", schedule="theory", epsilon=1e-2, beta=0.5, inner_batch=5)
    assert chosen.pace == "theory" and chosen.step == "momentum" and chosen.constants is not None
    assert (
        chosen.options["beta"] == (0.5, "command line")
        and chosen.options["eta"][1] == "theory, epsilon = 0.01"
    )
    standing = chosen.constants.standing
    assert standing["L_g"] == "bounded from data" and standing["sigma"] == standing["delta0"] == "estimated"
    assert made(SMOOTH).pace == "practical"


SCAD = "var w[d];\nminimize mean[k in K] scad(E[z ~ D | z.g == k] (dot(w, z.x) - z.y), 2.25, 1);"


def test_smoothing_stays_below_the_inverse_of_the_weak_convexity() -> None:
    assert made(SCAD).smoothing < 1.25, "1/rho of scad is a - 1"
    assert made(SCAD, algorithm="sonex", schedule="theory", epsilon=5).smoothing < 1.25
    with pytest.raises(FccoError, match="F0612") as caught:
        made(SCAD, algorithm="sonex", lam=5)
    assert "1.25" in caught.value.diagnostics[0].fix
    steep = SCAD.replace("scad", "20 * scad")
    assert made(steep, algorithm="sonex").smoothing == pytest.approx(0.5 * 1.25 / 20)


def test_a_batch_of_all_rows_has_no_noise() -> None:
    chosen = made(SMOOTH, algorithm="sox", schedule="theory", inner_batch=60)
    assert (
        chosen.constants is not None
        and chosen.constants.sigma == chosen.constants.zeta == chosen.constants.spread == 0
    )
    assert chosen.hyper["beta"] == 2 / 7 and chosen.hyper["gamma"] == 1 / 5, (
        "no term of the variance is left in them"
    )


def test_a_theory_that_is_not_there_is_refused() -> None:
    without = [name for name, c in found(SMOOTH).items() if c.covered and c.record.theory is None]
    for name in without[:1]:
        with pytest.raises(FccoError, match="F0613"):
            made(SMOOTH, algorithm=name, schedule="theory")


# ---------------------------------------------------------------------------------------- catalogue
def test_algorithms_and_what_they_need_on_a_model(tmp_path, capsys) -> None:
    model = tmp_path / "m.fcco"
    model.write_text(HEAD + BOUNDED)
    assert cli.main(["algorithms", "--model", str(model)]) == 0
    lines = capsys.readouterr().out
    assert "covers the model" in lines and "cannot run; needs a problem without constraints" in " ".join(
        lines.split()
    )
    assert cli.main(["algorithms", "sox", "--model", str(model), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["sox"] and not told["sox"]["covered"] and not told["sox"]["can_run"]
    assert told["sox"]["requires"]["unconstrained"]["holds"] is False
    assert cli.main(["algorithms", "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == algorithms.all().keys()


def test_what_is_not_proved_to_be_defined_is_in_the_report() -> None:
    bound = session.compile(HEAD + "var w[d];\nminimize log(2 + E[z ~ D] dot(w, z.x)) + sumsq(w);").bind(
        D=data()
    )
    assert "not proved: log needs an argument in (0, inf)" in " ".join(
        str(bound.solve(budget="5it", unverified=True)).split()
    )


def test_codes_are_registered() -> None:
    assert {"F0604", "F0605", "F0612", "F0613"} <= registry.codes().keys()


# ------------------------------------------------------------------------- other numbers in a model
WEIGHED = f"param c default 1;\nvar w[d];\nminimize mean[k in K] square{RISK} + c * sumsq(w);"


def test_for_other_numbers_the_algorithm_is_kept_while_its_guarantee_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It alone is checked then; what the others lack is found when it is asked for."""
    ranked = []
    monkeypatch.setattr(choice, "rank", lambda *args: ranked.append(1) or ranking.rank(*args))
    compiled = pipeline.compile_model(Source(text=HEAD + WEIGHED, name="m"))

    def analysed(c: float) -> structure.Analysis:
        binding = pipeline.Binding(data={"D": data()}, params={"c": c})
        return pipeline.analyse(compiled.problem, pipeline.bind(compiled, binding))

    first = pipeline.decide(analysed(1.0))
    assert len(ranked) == 1
    second = pipeline.decide(analysed(2.0), like=first)
    assert second.algorithm == first.algorithm and len(ranked) == 1
    checked = [name for name, one in second.choice.candidates.items() if "findings" in vars(one)]
    assert checked == [first.algorithm]
    alone = pipeline.decide(analysed(2.0))
    assert (
        second.rejected == alone.rejected
        and second.findings == alone.findings
        and second.hyper == alone.hyper
    )
    fewer = pipeline.decide(analysed(-2.0), like=first)
    assert len(ranked) == 4 and fewer.algorithm == pipeline.decide(analysed(-2.0)).algorithm
    assert fewer.promise != first.promise or fewer.algorithm != first.algorithm


def test_draws_of_a_distribution_have_no_end():
    """Steps sample them, and an estimate of one minibatch at a time is no method for a composition."""
    text = "var w; minimize f: (log(E[e ~ normal(0, 1)] exp(w + 3 * e)) - 3)^2;"
    compiled = pipeline.compile_model(Source(text=text, name="m"))
    bound = pipeline.bind(compiled, pipeline.Binding())
    found = considered.candidates(pipeline.analyse(compiled.problem, bound))
    assert all(one.sampled for one in found.values())
    assert found["bsgd"].biased and not found["sox"].biased
    order = ranking.rank(found, finishing=True).order
    assert not order[0].biased and order[-1].biased >= order[0].biased


def test_a_net_under_a_nonlinear_function_gets_estimates_that_are_kept() -> None:
    """Steps take some of the rows, and passes over all of them may never follow: one minibatch at a time
    is biased."""
    text = (
        "dim d; data D : table(x: real[d], y: real); net s : real[d] -> real; var v = params(s);"
        "minimize mean[p in D] log(E[q ~ D | q.y < p.y] exp(s(v; q.x) - s(v; p.x)));"
    )
    compiled = pipeline.compile_model(Source(text=text, name="m"))
    chosen = {}
    for rows in (60, 600):
        x = np.random.default_rng(0).normal(size=(rows, 3))
        binding = pipeline.Binding(data={"D": {"x": x, "y": x[:, 0]}}, nets={"s": "mlp(4)"})
        analysis = pipeline.analyse(compiled.problem, pipeline.bind(compiled, binding))
        chosen[rows] = considered.candidates(analysis)["bsgd"].biased, pipeline.decide(analysis).algorithm
    assert not chosen[60][0] and chosen[600][0] and chosen[600][1] != "bsgd"


# ----------------------------------------------------------------------------------- nets with kinks
@pytest.mark.parametrize(
    "objective",
    [
        "minimize log(1 + E[z ~ D] exp(-z.y * s(v; z.x)));",
        "minimize E[z ~ D] log1pexp(-z.y * s(v; z.x)); subject to c: E[z ~ D | z.g == 0] s(v; z.x) <= 0;",
        "minimize max[k in K] E[z ~ D | z.g == k] square(s(v; z.x) - z.y);",
    ],
    ids=["composition", "constraint", "worst group"],
)
def test_a_net_with_kinks_is_solved_as_a_smooth_one_without_a_theorem(objective: str) -> None:
    plans = {}
    for activation in ("relu", "elu"):
        text = f"{HEAD}net s : real[d] -> real; var v = params(s); {objective}"
        compiled = pipeline.compile_model(Source(text=text, name="m"))
        nets = {"s": f"mlp(4, activation = {activation})"}
        bound = pipeline.bind(compiled, pipeline.Binding(data={"D": data()}, nets=nets))
        plans[activation] = pipeline.decide(pipeline.analyse(compiled.problem, bound))
    kinked, smooth = plans["relu"], plans["elu"]
    assert kinked.algorithm == smooth.algorithm
    assert kinked.guarantee == "nothing" != smooth.guarantee
    assert not kinked.unverified and not smooth.of_nets
    (said,) = kinked.of_nets
    assert "ReLU" in said and "no theorem is claimed" in said
    assert "no theorem covers the run" in kinked.summary[0]


def test_a_model_that_trains_nets_runs_where_no_theorem_holds() -> None:
    """Outputs of length 1: nothing is known of u / |u| near u = 0. Its estimates are kept."""
    text = (
        f"{HEAD}dim k; net s : real[d] -> real[k]; var v = params(s); def unit(x) = s(v; x) / norm2(s(v; x));"
        "minimize log(E[p ~ D, q ~ D] exp(dot(unit(p.x), unit(q.x))));"
    )
    compiled = pipeline.compile_model(Source(text=text, name="m"))
    nets = {"s": "mlp(4)"}
    binding = pipeline.Binding(data={"D": data()}, nets=nets, params={"k": 2})
    bound = pipeline.bind(compiled, binding)
    found = pipeline.decide(pipeline.analyse(compiled.problem, bound))
    assert found.unverified and found.guarantee == "nothing"
    assert found.algorithm_record.oracle == "blocks" and found.algorithm != "bsgd"
