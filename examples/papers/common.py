"""What the papers' experiments share: where the data is, random splits, scores on other rows, tables
of figures."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import fccomodel

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def arguments(about: str, **defaults: Any) -> argparse.ArgumentParser:
    """``--data FOLDER`` and the given options, each with its default; of a mapping, its keys, and
    nothing else is taken."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=BESIDE, help="the folder with the data files")
    for name, value in defaults.items():
        several = isinstance(value, (list, Mapping))
        default = list(value) if several else value
        more = {"nargs": "*"} if several else {}
        more |= {"choices": default} if isinstance(value, Mapping) else {}
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default[0] if several else value),
            default=default,
            **more,
        )
    return parser


def read(folder: Path, name: str) -> pd.DataFrame:
    """A parquet file of the data folder; ends the program, saying what is missing, where it is not there."""
    path = folder / name
    if not path.is_file():
        raise SystemExit(f"{path} is not there: give the folder that holds {name} with --data")
    return pd.read_parquet(path)


def split(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers in two parts, the first with ``share`` of the rows, at random."""
    order = np.random.default_rng(seed).permutation(n)
    cut = int(round(share * n))
    return np.sort(order[:cut]), np.sort(order[cut:])


def elsewhere(result: fccomodel.Result, **tables: Any) -> Any:
    """The report of a solved model on other rows."""
    with tempfile.TemporaryDirectory() as folder:
        return fccomodel.evaluate(result.save(folder), data=tables).report


def spread(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation."""
    values = np.asarray(values, dtype=float)
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> None:
    """A table on the terminal."""
    table = Table(title=title, caption=note or None, title_justify="left", caption_justify="left")
    for k, name in enumerate(columns):
        table.add_column(name, justify="left" if k == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


def auc(scores: np.ndarray, positive: np.ndarray) -> float:
    """The area under the ROC curve: the share of pairs in the right order, ties counted half."""
    from scipy.stats import rankdata

    ranks, n = rankdata(scores), int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def scores(result: fccomodel.Result, x: np.ndarray) -> np.ndarray:
    """The outputs of the model's network ``s``, whose parameters are ``w``, on some rows."""
    import torch

    net = result.outcome.bound.nets["s"]
    names = [name for name, _ in net.named_parameters()]
    sizes = [p.numel() for p in net.parameters()]
    parts = torch.tensor(result.variables["w"]).split(sizes)
    values = {n: part.view(p.shape) for n, part, p in zip(names, parts, net.parameters(), strict=True)}
    with torch.no_grad():
        return torch.func.functional_call(net.double(), values, (torch.tensor(x),)).reshape(-1).numpy()


def least(grid: Sequence[float], score: Callable[[float], float]) -> float:
    """The value of the smallest score; a score that is not a number counts as infinite."""
    return grid[int(np.argmin(np.nan_to_num([score(value) for value in grid], nan=np.inf)))]


def attempt(model: Any, **options: Any) -> fccomodel.Result | str:
    """A run, or what the algorithm lacks on this model."""
    try:
        return model.solve(**options)
    except fccomodel.FccoError as error:
        return error.diagnostics[0].reason


def tuned(
    objective: Callable[..., float], grid: Mapping[str, Sequence[float]], sweeps: int = 1
) -> dict[str, float]:
    """The values of a grid by which an objective is least, chosen one name after the other, all names
    ``sweeps`` times."""
    chosen: dict[str, float] = {}
    known: dict[frozenset[tuple[str, float]], float] = {}

    def tried(point: dict[str, float]) -> float:
        key = frozenset(point.items())
        if key not in known:
            known[key] = objective(**point)
        return known[key]

    for name, values in [*grid.items()] * sweeps:
        chosen[name] = min(values, key=lambda value: tried({**chosen, name: value}))  # noqa: B023
    return chosen


def reached(history: Sequence[dict[str, Any]], optimum: float, gap: float, key: str = "oracles") -> float:
    """Oracle calls (or another entry of the history) until the objective is within ``gap`` of the
    optimum; inf if never."""
    return next((entry[key] for entry in history if entry["objective"] - optimum <= gap), float("inf"))


def at(history: Sequence[dict[str, Any]], calls: float) -> float:
    """The best objective after so many oracle calls."""
    seen = [entry["objective"] for entry in history if entry["oracles"] <= calls]
    return min(seen, default=float("nan"))
