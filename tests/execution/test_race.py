"""Races: shares of the budget from one start, the best goes on from its point with what is left;
reproducible, told, stored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fccomodel import FccoError, pipeline
from fccomodel.app import cli
from fccomodel.app.python import session
from fccomodel.core.options import Budget
from fccomodel.execution import race, run
from fccomodel.execution.race import Lap, Race

TEXT = (
    "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\nvar w[d];\n"
    "minimize max[k in K] (E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) + 0.1 * sumsq(w);"
)
BOUNDED = TEXT + "\nsubject to c: E[z ~ D | z.g == 0] dot(w, z.x) <= -0.1;"


def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(90, 5)), "y": rng.normal(size=90), "g": np.arange(90) % 3.0}


def model(text: str = TEXT) -> Any:
    return session.compile(text).bind(D=data())


# ------------------------------------------------------------------------------------------ judging
def test_the_least_merit_wins_and_the_residual_where_merits_are_level() -> None:
    far, near = Lap(algorithm="far", merit=2.0, kkt=1e-9), Lap(algorithm="near", merit=1.0, kkt=1.0)
    assert race.best([far, near])[0] == "near"
    level = Lap(algorithm="level", merit=1.0005, kkt=0.1)
    winner, why = race.best([far, near, level])
    assert winner == "level" and "KKT" in why
    assert race.best([near, Lap(algorithm="nan", merit=1.0, kkt=math.nan)])[0] == "near"


@pytest.mark.parametrize(
    "budget", [Budget(seconds=20.0), Budget(iterations=1000), Budget(oracles=1e6), Budget(iterations=3)]
)
def test_shares_and_what_is_left_of_them_are_the_budget(budget: Budget) -> None:
    each = race.share(budget)
    spent = {"iterations": each.iterations or 0, "oracles": each.oracles or 0, "seconds": each.seconds or 0}
    laps = tuple(Lap(algorithm=name, **spent) for name in "abc")
    left = race.left(budget, Race(laps=laps, winner="a", reason=""), 3 * (each.seconds or 0.0))
    for whole, part, rest in zip(budget, each, left, strict=True):
        assert (whole is None) == (part is None) == (rest is None)
        assert (
            whole is None
            or whole <= 3
            or 3 * part + rest == pytest.approx(whole)
            and part == race.SHARE * whole
        )


# -------------------------------------------------------------------------------------------- races
@pytest.mark.parametrize(("text", "budget"), [(TEXT, "600it"), (BOUNDED, "3e4oracles")])
def test_a_race_goes_on_from_the_winners_point(text: str, budget: str) -> None:
    found = model(text).solve(algorithm="race", budget=budget, polish=False)
    held = found.outcome.race
    assert 2 <= len(held.laps) <= 4 and len({lap.algorithm for lap in held.laps}) == len(held.laps)
    assert found.algorithm == held.winner and not held.interrupted
    first = next(lap for lap in held.laps if lap.algorithm == held.winner)
    assert found.objective <= first.objective + 1e-9 or found.report.feasibility < first.violation
    if budget.endswith("it"):
        assert sum(lap.iterations for lap in held.laps) + found.outcome.solution.iterations <= 600
    else:
        assert sum(lap.oracles for lap in held.laps) + found.history[-1]["oracles"] <= 3e4
    told = " ".join(str(found).split())
    assert all(lap.algorithm in told for lap in held.laps) and "went on from its point" in told


def test_a_counted_race_is_the_same_to_the_bit() -> None:
    once, again = (model(BOUNDED).solve(algorithm="race", budget="500it", seed=3) for _ in range(2))
    assert np.array_equal(once.variables["w"], again.variables["w"]) and once.algorithm == again.algorithm
    same = [[{**vars(lap), "seconds": 0} for lap in found.outcome.race.laps] for found in (once, again)]
    assert same[0] == same[1]


def test_a_race_is_finished_as_other_runs_are() -> None:
    raced, plain = (model().solve(algorithm=name, budget="10s") for name in ("race", "sonex"))
    assert raced.objective == pytest.approx(plain.objective, abs=1e-5) and raced.outcome.status == "converged"


def test_what_is_stored_of_a_race(tmp_path: Path, here: Callable[[Path, list[str]], str]) -> None:
    found = model().solve(algorithm="race", budget="300it")
    found.save(tmp_path)
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["race"]["winner"] == told["algorithm"] == found.algorithm
    assert [lap["algorithm"] for lap in told["race"]["laps"]] == [
        lap.algorithm for lap in found.outcome.race.laps
    ]
    assert told["options"]["algorithm"] == {"value": found.algorithm, "origin": "race"}
    assert float(here(tmp_path, []).split("objective ")[-1].split()[0]) == pytest.approx(
        found.objective, abs=1e-6
    )
    assert json.loads(json.dumps(model().solve(budget="20it").json))["race"] is None


def test_a_race_with_nobody_else_is_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    held = race.hold(["sox"], Budget(iterations=10), lambda name, share: pytest.fail("nobody runs"), 1)
    assert held.race.winner == "sox" and not held.race.laps and held.solution is None
    assert "no other" in held.race.lines()[0]


def test_one_that_fails_is_told_and_loses() -> None:
    from fccomodel.execution import errors

    def lap(name: str, share: Budget) -> Any:
        if name == "broken":
            raise FccoError([errors.objective_not_finite()])
        planned = model().plan(algorithm=name, budget="20it", polish=False)
        _, _, solution = pipeline.run(planned)
        return solution, pipeline.report(planned, solution)

    held = race.hold(["broken", "sonex"], Budget(iterations=400), lap, 1)
    assert held.race.winner == "sonex" and held.race.laps[0].failed and held.race.laps[0].merit == math.inf
    with pytest.raises(FccoError):
        race.hold(["broken", "broken"], Budget(iterations=400), lap, 1)


@pytest.mark.parametrize("stopped", [0, 1])
def test_interrupted_the_best_point_so_far_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    runs: list[str] = []
    real = run.run

    def interrupted(*args: Any, **given: Any) -> Any:
        from dataclasses import replace

        found = real(*args, **given)
        runs.append(found.ended)
        return (
            replace(found, ended="interrupted", stopped="interrupted") if len(runs) == stopped + 1 else found
        )

    monkeypatch.setattr(run, "run", interrupted)
    found = model().solve(algorithm="race", budget="300it")
    assert len(runs) == stopped + 1 == len(found.outcome.race.laps), "nobody runs after it"
    best = min(found.outcome.race.laps, key=lambda lap: lap.merit)
    assert found.outcome.race.interrupted and found.outcome.status == "interrupted"
    assert found.objective == pytest.approx(min(lap.objective for lap in found.outcome.race.laps), abs=1e-6)
    assert best.objective == pytest.approx(found.objective, rel=1e-3) and "interrupted" in str(found)


# ----------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    "given", [{"gamma": 0.5}, {"step": "adam"}, {"schedule": "decay", "budget": "100it"}, {"tau": 1.0}]
)
def test_options_that_only_some_have_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(FccoError, match="F0615"):
        model().solve(**{"algorithm": "race", "budget": "100it", **given})


def test_options_that_all_have_are_not() -> None:
    found = model().solve(algorithm="race", budget="400it", inner_batch=10, eta=0.05, polish=False)
    assert found.options["inner_batch"] == (10, "keyword argument") and found.options["eta"][0] == 0.05


def test_a_race_has_no_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FccoError, match="F0615"):
        model().emit(algorithm="race")
    told = str(model().explain(algorithm="race"))
    assert "a race of" in told


def test_a_race_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, table = tmp_path / "m.fcco", tmp_path / "D.npz"
    file.write_text(TEXT)
    np.savez(table, **data())
    given = ["solve", str(file), "--data", f"D={table}", "--algorithm", "race", "--budget", "600it"]
    assert cli.main(given) == 0 and "went on from its point" in " ".join(capsys.readouterr().out.split())
    assert cli.main([*given, "--option", "tau=2"]) == 2 and "F0615" in capsys.readouterr().err
    assert (
        cli.main(["emit", *given[1:], "-o", str(tmp_path / "s.py")]) == 2
        and "F0615" in capsys.readouterr().err
    )
