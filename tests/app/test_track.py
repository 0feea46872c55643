"""Values of a run for trackers: what each package is told. Stand-ins take the place of the packages."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel as fc

MODEL = """
model m; dim d; set G; data D : table(x: real[d], g: G); net s : real[d] -> real; var w = params(s);
minimize fit: E[z ~ D] square(s(w; z.x) - 1);
subject to few[k in G]: E[z ~ D | z.g == k] s(w; z.x) <= 0.5;
"""
VALUES = {
    "objective": 0.5,
    "constraints": {"few": np.array([0.1, -0.2]), "rate": 0.3},
    "violation": 0.3,
}
FLAT = {
    "objective": 0.5,
    "constraints/few/0": 0.1,
    "constraints/few/1": -0.2,
    "constraints/rate": 0.3,
    "violation": 0.3,
}


class Told:
    """A package that notes how it is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def called(*given: Any, **more: Any) -> Told:
            self.calls.append((name, given, more))
            return self

        return called


def test_numbers_by_name() -> None:
    assert fc.track.scalars(VALUES) == FLAT


@pytest.mark.parametrize(
    ("name", "package", "expected"),
    [
        ("wandb", "wandb", [("init", (), {"project": "p", "tags": ["a"]}), ("log", (FLAT,), {"step": 7}), ("finish", (), {})]),
        (
            "mlflow",
            "mlflow",
            [("set_experiment", ("p",), {}), ("start_run", (), {"tags": ["a"]}), ("log_metrics", (FLAT,), {"step": 7}), ("end_run", (), {})],
        ),
        ("trackio", "trackio", [("init", (), {"project": "p", "tags": ["a"]}), ("log", (FLAT,), {"step": 7}), ("finish", (), {})]),
    ],
)  # fmt: skip
def test_what_a_tracker_is_told(
    name: str, package: str, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setitem(sys.modules, package, told)
    tracker = getattr(fc.track, name)("p", tags=["a"])
    tracker(SimpleNamespace(values=VALUES, step=7))
    tracker.close()
    assert told.calls == expected


def test_tensorboard_has_a_curve_for_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", told)
    tracker = fc.track.tensorboard("runs")
    tracker.log(VALUES, 7)
    points = [given for name, given, _ in told.calls if name == "add_scalar"]
    assert points == [(name, value, 7) for name, value in FLAT.items()]
    assert told.calls[0] == ("SummaryWriter", ("runs",), {})


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(fc.FccoError, match="wandb is not installed"):
        fc.track.wandb("p")


def problem() -> Any:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(60, 3)), "g": np.array(["a", "b"])[rng.integers(2, size=60)]}
    net = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0))
    return fc.compile(MODEL).bind(D=data, nets={"s": net})


def test_a_criterion_writes_its_values() -> None:
    written: list[tuple[dict[str, float], int]] = []
    tracker = fc.track.Tracker(lambda values, step: written.append((values, step)))
    criterion = problem().criterion(batch=16, track=tracker)
    for k in range(45):
        criterion(range(k % 4, 60, 4), s=torch.zeros(15, requires_grad=True))
        criterion.step()
    assert [step for _, step in written] == [20, 40]
    assert written[0][0]["objective"] == pytest.approx(1.0)
    assert written[0][0]["constraints/few/1"] == pytest.approx(-0.5)


def test_a_solve_writes_its_values() -> None:
    written: list[tuple[dict[str, float], int]] = []
    tracker = fc.track.Tracker(lambda values, step: written.append((values, step)))
    problem().solve(optimizer=torch.optim.AdamW, callback=tracker, every=10, budget="30it", batch=16)
    assert [step for _, step in written] == [10, 20, 30]
    assert np.isfinite(written[-1][0]["objective"])
