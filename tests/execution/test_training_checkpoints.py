"""Runs in train mode keep their state: a run that was killed goes on to the same numbers."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import FccoError
from fccomodel.app import cli
from fccomodel.app.stored import checkpoints

TEXT = (
    "model m; dim d; data D : table(x: real[d], y: {0, 1}); net s : real[d] -> real; var w = params(s);"
    "minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.x)); subject to c: E[z ~ D] sigmoid(s(w; z.x)) <= 0.6;"
)
NET = """
import torch


class Net(torch.nn.Sequential):
    def __init__(self, d):
        torch.manual_seed(0)
        super().__init__(
            torch.nn.Linear(d, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Dropout(0.2),
            torch.nn.Linear(4, 1), torch.nn.Flatten(0),
        )
"""


def data() -> dict[str, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(80, 3))
    return {"x": x, "y": (x[:, 0] > 0).astype(int)}


def problem(tmp_path: Path) -> Any:
    (tmp_path / "net.py").write_text(NET)
    named = f"{tmp_path / 'net.py'}:Net"
    return fccomodel.compile(TEXT).bind(D=data(), nets={"s": named}, allow_python=True)


class Killed(BaseException):
    """The end of a process, which nothing catches."""


def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = problem(tmp_path).solve(budget="60it")

    def killing(state: Any) -> None:
        """Ends the run at once, as a kill would."""
        if state.step >= 35:
            raise Killed

    folder = tmp_path / "kept"
    how = {"optimizer": lambda p: torch.optim.Adam(p, lr=1e-3)}
    monkeypatch.setattr(checkpoints, "EVERY", "0.001s")
    with pytest.raises(Killed):
        problem(tmp_path).solve(budget="60it", checkpoint=folder, callback=killing, every=5, **how)
    assert list(folder.rglob("manifest.json"))
    again = problem(tmp_path).solve(budget="60it", checkpoint=folder, **how)
    assert any("resumed at step" in note for note in again.outcome.solution.notes)
    np.testing.assert_array_equal(again.variables["w"], whole.variables["w"])
    assert again.objective == whole.objective
    with pytest.raises(FccoError, match="F0817"):
        problem(tmp_path).solve(budget="60it", checkpoint=folder, seed=3, **how)


def test_sigterm_ends_a_run_whose_next_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def terminating(state: Any) -> None:
        """Asks this process to end in step 10."""
        if state.step == 10:
            signal.raise_signal(signal.SIGTERM)

    how = {"optimizer": lambda p: torch.optim.Adam(p, lr=1e-3), "checkpoint": tmp_path / "kept"}
    with pytest.raises(SystemExit) as ended:
        problem(tmp_path).solve(budget="20it", callback=terminating, every=5, **how)
    assert ended.value.code == 128 + signal.SIGTERM
    assert "terminated at step 10" in capsys.readouterr().err
    again = problem(tmp_path).solve(budget="20it", **how)
    assert "resumed at step 10 from a checkpoint" in again.outcome.solution.notes
    assert again.history[-1]["iteration"] == 20


def test_nets_in_train_mode_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "m.fcco").write_text(TEXT)
    rows = data()
    np.savez(tmp_path / "rows.npz", **rows)
    command = ["solve", str(tmp_path / "m.fcco"), "--data", f"D={tmp_path / 'rows.npz'}", "--allow-python"]
    command += ["--net", f"s={tmp_path / 'net.py'}:Net", "--budget", "60it"]
    assert cli.main([*command, "--holdout", "0.25"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "steps run net s in train mode" in said and "held out" in said
    assert cli.main([*command, "--margin", "0.95"]) != 0
    assert "does not go with nets in train mode" in " ".join(capsys.readouterr().err.split())


def test_a_run_goes_on_with_another_optimizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights go on; the state of the optimizer begins anew, and the notes say so."""

    def killing(state: Any) -> None:
        if state.step >= 20:
            raise Killed

    folder = tmp_path / "kept"
    monkeypatch.setattr(checkpoints, "EVERY", "0.001s")
    with pytest.raises(Killed):
        problem(tmp_path).solve(
            budget="40it",
            checkpoint=folder,
            callback=killing,
            every=5,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        )
    again = problem(tmp_path).solve(
        budget="40it", checkpoint=folder, optimizer=lambda p: torch.optim.Adam(p, lr=1e-3)
    )
    assert any("found by SGD" in note for note in again.outcome.solution.notes)
