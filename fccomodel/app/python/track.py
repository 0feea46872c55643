"""Values of a training run for a tracker: TensorBoard, Weights & Biases, MLflow, trackio.

>>> criterion = problem.criterion(track=fc.track.tensorboard("runs"))  # doctest: +SKIP
>>> result = problem.solve(optimizer=torch.optim.AdamW, callback=fc.track.wandb("ranking"))  # doctest: +SKIP

Each function imports its package when it is called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fccomodel.app import errors
from fccomodel.core.diagnostics import refuse

__all__ = ["Tracker", "mlflow", "scalars", "tensorboard", "trackio", "wandb"]


class Tracker:
    """Writes the values of a run.

    write  takes numbers by name, and the step that they belong to
    end    is called by ``close()``
    """

    def __init__(self, write: Callable[[dict[str, float], int], Any], end: Callable[[], Any] | None = None):
        self.write, self.end = write, end

    def log(self, values: Mapping[str, Any], step: int) -> None:
        """Writes values as ``criterion.values()`` gives them."""
        self.write(scalars(values), step)

    def __call__(self, state: Any) -> None:
        """Writes the values that a callback of ``solve`` sees."""
        self.log(state.values, state.step)

    def close(self) -> None:
        """Ends the run of the tracker."""
        if self.end is not None:
            self.end()


def scalars(values: Mapping[str, Any]) -> dict[str, float]:
    """Numbers by name: ``constraints/NAME``, and ``constraints/NAME/2`` of an array's entry."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            numbers |= {f"{name}/{key}": number for key, number in scalars(value).items()}
        elif np.ndim(value):
            entries = np.asarray(value).reshape(-1)
            numbers |= {f"{name}/{k}": float(number) for k, number in enumerate(entries)}
        else:
            numbers[name] = float(value)
    return numbers


def tensorboard(folder: str = "runs", **options: Any) -> Tracker:
    """Event files in a folder, for TensorBoard. Options are those of ``SummaryWriter``."""
    writer = _package("torch.utils.tensorboard", "tensorboard").SummaryWriter(folder, **options)

    def write(values: dict[str, float], step: int) -> None:
        """Add one point to the curve of each value."""
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Tracker(write, writer.close)


def wandb(project: str, **options: Any) -> Tracker:
    """A run of Weights & Biases. Options are those of ``wandb.init``."""
    run = _package("wandb").init(project=project, **options)
    return Tracker(lambda values, step: run.log(values, step=step), run.finish)


def mlflow(experiment: str, **options: Any) -> Tracker:
    """A run of MLflow. Options are those of ``mlflow.start_run``."""
    package = _package("mlflow")
    package.set_experiment(experiment)
    package.start_run(**options)
    return Tracker(lambda values, step: package.log_metrics(values, step=step), package.end_run)


def trackio(project: str, **options: Any) -> Tracker:
    """A run of trackio. Options are those of ``trackio.init``."""
    package = _package("trackio")
    package.init(project=project, **options)
    return Tracker(lambda values, step: package.log(values, step=step), package.finish)


def _package(name: str, installed: str = "") -> Any:
    """A package, imported now; an error if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        refuse(errors.no_tracker(installed or name))
