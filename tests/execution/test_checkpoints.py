"""Runs that are killed and go on: the same end to the bit, and checkpoints that are refused."""

from __future__ import annotations

import errno
import json
import math
import os
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel.algorithms.runtime.loops.settings import BlockSettings
from fccomodel.app.python.session import BoundModel
from fccomodel.app.stored.comparison.runs import Bench
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution import checkpoints
from fccomodel.execution.checkpoints.keeper import Keeper
from fccomodel.execution.checkpoints.state import packed, put_back

HINGE = """dim d; data D : table(x: real[d], y: real); param tau default 0.5; var w[d];
minimize E[z ~ D] pos(1 - z.y * dot(w, z.x)) + 0.05 * norm2(w)^2;
subject to size: E[z ~ D] abs(dot(w, z.x)) <= tau;"""
PAIRS = """dim d; data D : table(x: real[d], y: real); var w[d];
set P = {p in D | p.y > 0}; set N = {n in D | n.y < 0};
minimize mean[p in P] log(E[n ~ N] exp(dot(w, n.x) - dot(w, p.x))) + 0.1 * norm2(w)^2;"""
SHARED = """dim d; data D : table(x: real[d], y: real); var w[d];
minimize log(E[z ~ D] exp(-z.y * dot(w, z.x))) + 0.05 * norm2(w)^2;"""
MEDIAN = """dim d; data D : table(x: real[d], y: real); var w[d];
minimize mean[z in D] abs(E[e ~ D] dot(w, e.x) + dot(w, z.x) - z.y) + 0.01 * norm2(w)^2;"""
NET = """dim d; data D : table(x: real[d], y: real); net s : real[d] -> real; var v = params(s);
minimize E[z ~ D] sigmoid(-z.y * s(v; z.x)); subject to centred: abs(E[z ~ D] s(v; z.x)) <= 0.05;"""


class Killed(Exception):
    """A process that is no more."""


def posed(text: str, rows: int = 120, scale: float = 1.0, **more: Any) -> BoundModel:
    rng = np.random.default_rng(0)
    x = scale * rng.normal(size=(rows, 4))
    return fccomodel.compile(text).bind(
        data={"D": {"x": x, "y": np.where(x[:, 0] + x[:, 1] > 0, 1.0, -1.0)}}, **more
    )


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A list: after so many checkpoints, of which the last alone is on a disk, the run is killed;
    nothing in it: never."""
    left: list[int] = []
    write = Keeper.write

    def written(self: Keeper, stage: str, run: Any) -> None:
        if not left or left[0] == 1:
            write(self, stage, run)
        elif left[0] == 0:
            raise Killed(stage)
        if left:
            left[0] -= 1

    monkeypatch.setattr(Keeper, "write", written)
    yield left


def same(one: Any, other: Any) -> bool:
    """Two ends, to the bit, and the way to them but for its seconds."""
    a, b = one.outcome.solution, other.outcome.solution
    histories = [[{k: v for k, v in e.items() if k != "seconds"} for e in s.history] for s in (a, b)]
    points = all(np.array_equal(a.variables[name], b.variables[name]) for name in a.variables)
    return (
        points
        and dict(a.multipliers) == dict(b.multipliers)
        and a.stopped == b.stopped
        and histories[0] == histories[1]
    )


CASES = {
    "sonex": (HINGE, {"algorithm": "sonex", "budget": "240it", "precision": "float64"}),
    "adam, float32": (PAIRS, {"algorithm": "sox", "budget": "240it", "step": "adam"}),
    "inner loop": (HINGE, {"algorithm": "icppac", "budget": "240it"}),
    "two points": (PAIRS, {"algorithm": "msvr", "budget": "240it"}),
    "decay": (PAIRS, {"algorithm": "sox", "budget": "240it", "schedule": "decay"}),
    "theory": (PAIRS, {"algorithm": "sox", "budget": "240it", "schedule": "theory"}),
    "last stage": (MEDIAN, {"algorithm": "alexr2_final", "budget": "240it", "unverified": True}),
    "vector": (SHARED, {"algorithm": "ascvrg", "budget": "30000oracles"}),
    "hybrid": (HINGE, {"algorithm": "hscg", "budget": "12000oracles", "precision": "float64"}),
    "finish": (PAIRS, {"budget": "500s"}),
    "restore": (NET, {"budget": "500s", "stage": 30, "longest": 30, "patience": 1}),
    "race": (PAIRS, {"algorithm": "race", "budget": "400it"}),
}


#: those that are asked for once more after their end
ENDED = ("sonex", "last stage", "vector", "finish")


@pytest.mark.parametrize("name", CASES)
def test_a_killed_run_goes_on_to_the_same_bits(name: str, kill: list[int], tmp_path: Path) -> None:
    text, options = CASES[name]
    problem = posed(text, nets={"s": "mlp(3)"} if "net s" in text else None)
    first, kills = problem.solve(**options), 0
    for after in (1, 100):
        kill[:] = [after]
        try:
            problem.solve(**options, checkpoint=tmp_path, every=0)
        except Killed:
            kills += 1
    kill[:] = []
    assert kills and same(first, problem.solve(**options, checkpoint=tmp_path))
    if name in ENDED:
        again = problem.solve(**options, checkpoint=tmp_path)
        assert same(first, again) and any("resumed at step" in note for note in again.outcome.solution.notes)


def test_a_terminated_run_writes_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem, options = posed(HINGE), {"algorithm": "sonex", "budget": "700it"}
    with pytest.raises(SystemExit) as end:
        problem.solve(
            **options, checkpoint=tmp_path, progress=lambda now: os.kill(os.getpid(), signal.SIGTERM)
        )
    assert end.value.code == 143 and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert "terminated at step" in capsys.readouterr().err
    messages: list[str] = []
    last = problem.solve(**options, checkpoint=tmp_path, progress=lambda now: messages.append(now.message))
    assert same(problem.solve(**options), last) and messages[0].startswith("resumed at step")


def test_an_interrupted_run_goes_on_where_it_was_whole(tmp_path: Path) -> None:
    problem, options = posed(HINGE), {"algorithm": "sonex", "budget": "700it"}
    asked = iter([signal.SIGINT])
    cut = problem.solve(
        **options, checkpoint=tmp_path, progress=lambda now: [os.kill(os.getpid(), s) for s in asked]
    )
    assert cut.outcome.solution.interrupted and cut.outcome.solution.iterations < 700
    assert same(problem.solve(**options), problem.solve(**options, checkpoint=tmp_path))


def test_a_longer_budget_goes_on(tmp_path: Path) -> None:
    problem = posed(HINGE)
    problem.solve(algorithm="sonex", budget="300it", checkpoint=tmp_path)
    longer = problem.solve(algorithm="sonex", budget="500it", checkpoint=tmp_path)
    assert (
        longer.outcome.solution.iterations == 500
        and "resumed at step 300" in longer.outcome.solution.notes[0]
    )


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda: (posed(HINGE.replace("0.05 *", "0.06 *")), {}), r"model \("),
        (lambda: (posed(HINGE, scale=1.1), {}), "data "),
        (lambda: (posed(HINGE, params={"tau": 0.4}), {}), r"param tau \(0.5 there, 0.4 here\)"),
        (lambda: (posed(HINGE), {"seed": 1}), r"option seed \(0 there, 1 here\)"),
        (lambda: (posed(HINGE), {"rho": 7.5}), r"option rho \(none there, 7.5 here\)"),
        (lambda: (posed(HINGE), {"algorithm": "alexr2"}), r'algorithm \("sonex" there, "alexr2" here\)'),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(other: Any, difference: str, tmp_path: Path) -> None:
    options = {"algorithm": "sonex", "budget": "10it"}
    posed(HINGE).solve(**options, checkpoint=tmp_path)
    problem, more = other()
    with pytest.raises(FccoError, match=f"(?s)F0817.*{difference}"):
        problem.solve(**{**options, **more}, checkpoint=tmp_path)
    fresh = problem.solve(**{**options, **more}, checkpoint=tmp_path, fresh=True)
    assert not any("resumed" in note for note in fresh.outcome.solution.notes)


def test_what_was_left_of_other_runs_is_gone(tmp_path: Path) -> None:
    """A race and a comparison of another model in the same folder, and a checkpoint that was not
    written to its end."""
    posed(PAIRS).solve(algorithm="race", budget="60it", checkpoint=tmp_path)
    own = tmp_path / "own" / "202601" / "notes.txt"
    own.parent.mkdir(parents=True)
    own.write_text("not ours")
    fccomodel.compare(
        posed(HINGE), algorithms=["sonex"], seeds=1, budget="10it", checkpoint=tmp_path, fresh=True
    )
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("lap-")} >= {
        "comparison.json",
        "own",
    }
    assert not list(tmp_path.glob("lap-*"))
    posed(HINGE).solve(algorithm="sonex", budget="10it", checkpoint=tmp_path, fresh=True)
    assert {path.name for path in tmp_path.iterdir()} == {"own", "run"} and own.read_text() == "not ours"
    (tmp_path / "run" / ".000009.77").mkdir()
    posed(HINGE).solve(algorithm="sonex", budget="20it", checkpoint=tmp_path, every=0)
    assert not list((tmp_path / "run").glob(".*"))


def test_comments_make_no_other_run(tmp_path: Path) -> None:
    posed(HINGE).solve(algorithm="sonex", budget="10it", checkpoint=tmp_path)
    again = posed("# a word\n" + HINGE).solve(algorithm="sonex", budget="10it", checkpoint=tmp_path)
    assert "resumed at step 10" in again.outcome.solution.notes[0]


def _places(folder: Path) -> list[Path]:
    return sorted((folder / "run").iterdir())


@pytest.mark.parametrize("file", ["tensors.npz", "state.json", "manifest.json"])
def test_a_damaged_checkpoint_is_left_for_the_one_before(file: str, tmp_path: Path) -> None:
    problem, options = posed(HINGE), {"algorithm": "sonex", "budget": "60it"}
    first = problem.solve(**options, checkpoint=tmp_path, every=0)
    before, last = _places(tmp_path)
    content = bytearray((last / file).read_bytes())
    content[len(content) // 2] ^= 1
    (last / file).write_bytes(content)
    again = problem.solve(**options, checkpoint=tmp_path)
    assert same(first, again) and any(
        "is damaged: this goes on from the one before" in n for n in again.outcome.solution.notes
    )
    for place in _places(tmp_path):
        (place / file).write_bytes(b"")
    with pytest.raises(FccoError, match="(?s)F0817.*damaged"):
        problem.solve(**options, checkpoint=tmp_path)


def test_the_manifest_says_what_it_is_of(tmp_path: Path) -> None:
    posed(HINGE).solve(algorithm="sonex", budget="60it", checkpoint=tmp_path, every=0)
    assert len(_places(tmp_path)) == 2
    manifest = json.loads((_places(tmp_path)[-1] / "manifest.json").read_text())
    assert manifest["format"] == 1 and manifest["step"] == 60 and manifest["stage"] == "steps"
    assert manifest["shapes"]["steps.state.w"] == ["float32", [4]]
    assert {"model", "fccomodel", "option seed", "param tau", "data D_x", "program"} <= manifest[
        "identity"
    ].keys()
    with np.load(_places(tmp_path)[-1] / "tensors.npz", allow_pickle=False) as arrays:
        assert set(arrays.files) == set(manifest["shapes"])


def test_a_full_disk_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, options = posed(HINGE), {"algorithm": "sonex", "budget": "60it"}
    problem.solve(**{**options, "budget": "30it"}, checkpoint=tmp_path)
    kept = _places(tmp_path)

    def full(*args: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints.np, "savez", full)
    assert problem.solve(**options, checkpoint=tmp_path, every=0).outcome.solution.iterations == 60
    assert capsys.readouterr().err.count("No space left on device; the run goes on") == 1
    assert _places(tmp_path) == kept
    with pytest.raises(FccoError, match="(?s)F0806.*No checkpoint could be"):
        problem.solve(
            algorithm="sonex",
            budget="700it",
            checkpoint=tmp_path,
            progress=lambda now: os.kill(os.getpid(), signal.SIGTERM),
        )


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    problem, options = posed(HINGE), {"algorithm": "sonex", "budget": "60it", "checkpoint": tmp_path}
    refusals: list[str] = []

    def second(now: Any) -> None:
        with pytest.raises(FccoError, match="F0806") as refusal:
            problem.solve(**options)
        refusals.append(str(refusal.value))

    problem.solve(**options, progress=second)
    assert refusals


@pytest.mark.parametrize(
    "given",
    [
        {"every": "60s"},
        {"fresh": True},
        {"checkpoint": ".", "every": "soon"},
        {"checkpoint": ".", "every": "5it"},
    ],
)
def test_what_checkpoints_are_not(given: dict[str, Any], tmp_path: Path) -> None:
    if "checkpoint" in given:
        given = {**given, "checkpoint": tmp_path}
    with pytest.raises(FccoError, match="F0805"):
        posed(HINGE).solve(**given)


def test_a_state_is_put_back_as_it_was() -> None:
    rng, shared = torch.Generator().manual_seed(3), torch.arange(3.0)
    inner = SimpleNamespace(x=shared, y=None)
    run = SimpleNamespace(
        w=shared, inner=inner, again=inner, rng=rng, numbers=(1, math.inf, -0.0, float("nan")), h=BlockSettings(eta=0.1),
        waiting={"D": [torch.tensor([4, 5])], ("D_rows", 0): [torch.tensor([6])]}, counts={1: 2.5}, ahead=[(torch.tensor([[True]]),)], said="x", flag=True,
    )  # fmt: skip
    tensors: dict[str, torch.Tensor] = {}
    text = json.loads(json.dumps(packed(run, "run", tensors)))
    expected = torch.rand(2, generator=rng)
    waiting: dict[str, Any] = {}
    other = torch.Generator()
    back = put_back(text, tensors, "cpu", BlockSettings, SimpleNamespace(rng=other, waiting=waiting, gone=1))
    assert torch.equal(torch.rand(2, generator=other), expected) and waiting["D"][0].tolist() == [4, 5]
    assert waiting[("D_rows", 0)][0].tolist() == [6] and back.counts == {1: 2.5}  # keys that JSON does not have
    assert back.again is back.inner and back.inner.x is back.w and not hasattr(back, "gone")
    assert repr(back.numbers) == repr(run.numbers) and back.h == run.h and back.flag is True
    shared.zero_()
    assert back.w.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"run\.f is a function"):
        packed(SimpleNamespace(f=posed), "run", {})


@pytest.mark.parametrize("tune", [False, True])
def test_a_killed_comparison_goes_on_with_the_others(
    tune: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, options = (
        posed(HINGE),
        {"algorithms": ["sonex", "alexr2"], "seeds": 2, "budget": "20it", "precision": "float64"},
    )
    if tune:
        problem, options = (
            posed(PAIRS, rows=40),
            {**options, "algorithms": ["bsgd"], "seeds": 1, "tune": True},
        )
    first, judged = fccomodel.compare(problem, **options), []
    judge = Bench.judge

    def killed(self: Bench, job: Any, solution: Any) -> Any:
        judged.append(job)
        if len(judged) == 3:
            raise Killed
        return judge(self, job, solution)

    monkeypatch.setattr(Bench, "judge", killed)
    with pytest.raises(Killed):
        fccomodel.compare(problem, **options, checkpoint=tmp_path)
    again = fccomodel.compare(problem, **options, checkpoint=tmp_path)
    done = len(judged) - 3
    assert done == len(first.runs) + len(first.trials) - 2
    assert _figures(first) == _figures(again) and first.chosen == again.chosen
    record = next(tmp_path.glob("*/run.json"))
    record.write_text(record.read_text().replace("e", "f", 1))
    assert _figures(first) == _figures(fccomodel.compare(problem, **options, checkpoint=tmp_path))
    assert len(judged) == 3 + done + 1
    with pytest.raises(FccoError, match="(?s)F0817.*option tol"):
        fccomodel.compare(problem, **{**options, "tol": 1e-4}, checkpoint=tmp_path)
    assert not list(tmp_path.glob("*/run"))


def _figures(comparison: Any) -> list[Any]:
    return [
        (run.job, run.objective, run.violation, run.kkt, run.iterations, run.stopped)
        for run in comparison.runs
    ]


ALONE = {
    "estimates": (PAIRS, {"algorithm": "sox", "step": "adam", "polish": False}),
    "vector": (SHARED, {"algorithm": "ascvrg", "polish": False}),
    "finish": (PAIRS, {"budget": "900s"}),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_program_by_itself_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Its file alone: terminated, killed and begun again, it ends with the same bits; another seed is
    refused."""
    text, options = ALONE[name]
    program = pipeline.emit(posed(text).plan(**options))
    text = program.text.replace("\nWAY = None\n", "\nWAY = 'finish'\n") if name == "finish" else program.text
    (tmp_path / "solver.py").write_text(text)
    torch.save(program.data, tmp_path / "data.pt")
    saved, save = [], torch.save

    def run(out: str, *more: str, fatal: dict[int, Any] | None = None) -> Any:
        def saving(value: Any, path: Any) -> None:
            saved.append(path)
            save(value, path)
            ends = [end for when, end in (fatal or {}).items() if when == len(saved) or when in value]
            for end in ends:
                end()

        saved.clear()
        monkeypatch.setattr(torch, "save", saving)
        arguments = ["--iterations", "40", "--seconds", "900", "--out", str(tmp_path / out), *more]
        monkeypatch.setattr(sys, "argv", ["solver.py", *arguments])
        runpy.run_path(str(tmp_path / "solver.py"), run_name="__main__")
        return torch.load(tmp_path / out)["w"]

    def killed() -> None:
        raise Killed

    def full() -> None:
        raise RuntimeError("No space left on device")

    keep = ["--checkpoint", str(tmp_path / "kept"), "--every", "0s"]
    handler = signal.getsignal(signal.SIGTERM)
    try:
        first = run("first.pt")
        with pytest.raises(SystemExit) as end:
            run("w.pt", *keep, fatal={3: full, 5: lambda: os.kill(os.getpid(), signal.SIGTERM)})
        said = capsys.readouterr().err
        assert (
            end.value.code == 143
            and "goes on from there" in said
            and "No space left on device; the run goes on" in said
        )
        with pytest.raises(Killed):
            run("w.pt", *keep, fatal={"finish" if name == "finish" else 20: killed})
        again = run("w.pt", *keep)
        assert "resumed at step" in capsys.readouterr().out and torch.equal(first, again)
        with pytest.raises(SystemExit, match="F0817.*seed"):
            run("w.pt", *keep, "--seed", "5")
        newest, _ = sorted((tmp_path / "kept").iterdir(), reverse=True)
        (newest / "state.pt").write_bytes(b"")
        assert torch.equal(first, run("w.pt", *keep))
        for place in (tmp_path / "kept").iterdir():
            (place / "manifest.json").write_text("{}")
        with pytest.raises(SystemExit, match="F0817.*damaged"):
            run("w.pt", *keep)
        assert torch.equal(first, run("w.pt", *keep[:2], "--fresh"))
    finally:
        signal.signal(signal.SIGTERM, handler)
