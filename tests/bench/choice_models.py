"""The models that ``choice.py`` measures: shipped ones with their bindings or with rows of their
papers' data, and those of the conformance tests."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conformance.problems import ALL  # noqa: E402
from support.places import EXAMPLES, SHARED  # noqa: E402

from fccomodel import pipeline  # noqa: E402
from fccomodel.core.source import Source  # noqa: E402

#: rows of the papers' data sets, which are larger
ROWS = 1500


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model, what binds it, the options of its runs, and its optimal value where one is known."""

    name: str
    source: Callable[[], Source]
    binding: Callable[[], pipeline.Binding]
    options: dict[str, Any] = field(default_factory=dict)
    optimum: Callable[[], float] | None = None


def models() -> dict[str, Model]:
    """All of them by name; those whose data are not there are left out."""
    folders = {"examples": EXAMPLES, "applications": EXAMPLES / "applications", "shared": SHARED / "models"}
    shipped = (m for group, folder in folders.items() for m in _bound(group, folder))
    return {m.name: m for m in (*shipped, *_papers(), *_conformance())}


def _read(path: Path) -> Source:
    return Source(text=path.read_text(), name=str(path))


def _bound(group: str, folder: Path) -> Iterator[Model]:
    for path in sorted(folder.glob("*.fcco")):
        spec = functools.partial(pipeline.Binding, spec=path.with_suffix(".toml"), data_dir=SHARED / "data")
        yield Model(name=f"{group}/{path.stem}", source=functools.partial(_read, path), binding=spec)


def _conformance() -> Iterator[Model]:
    for problem in ALL:
        yield Model(
            name=f"conformance/{problem.name}",
            source=functools.partial(Source, text=problem.text, name=problem.name),
            binding=lambda p=problem: pipeline.Binding(data=p.data()),
            options=problem.options,
            optimum=problem.optimum and (lambda p=problem: p.optimum(p.data())[0]),
        )


# ------------------------------------------------------------------------------------------- papers
def _papers() -> Iterator[Model]:
    for name, (needed, data) in DATA.items():
        path = EXAMPLES / "papers" / f"{name}.fcco"
        if (SHARED / "data" / needed).is_file():
            source = functools.partial(_read, path)
            yield Model(
                name=f"papers/{path.stem}", source=source, binding=lambda d=data: pipeline.Binding(**d())
            )


def _frame(name: str) -> Any:
    """Some rows of a data set, drawn once and for all."""
    import pandas as pd

    frame = pd.read_parquet(SHARED / "data" / name)
    return frame.iloc[np.sort(np.random.default_rng(0).permutation(len(frame))[:ROWS])]


def _ijcnn(positive: int = 1, negative: int = -1) -> dict[str, Any]:
    frame = _frame("ijcnn1.parquet")
    return {
        "x": frame.filter(regex=r"^f\d+$").to_numpy(float),
        "y": np.where(frame["label"] == 1, positive, negative),
    }


def _portfolios() -> dict[str, Any]:
    import pandas as pd

    frame = pd.read_parquet(SHARED / "data" / "ff25_developed_daily.parquet")
    _, part = next(iter(frame.groupby(["region", "sort"], observed=True)))
    returns = part.filter(regex=r"^ME\d+_Q\d+$").dropna().to_numpy(float)[-ROWS:]
    return {"data": {"R": {"r": returns}}, "params": {"rho": 0.2, "lam": 0.01}}


def _digits() -> dict[str, Any]:
    frame = _frame("usps.parquet")[:600]
    x, c = frame.filter(regex=r"^p\d+$").to_numpy(float) / 1000, frame["label"].to_numpy(int)
    x, counts = x - x.mean(0), np.bincount(c)
    x = x / np.sqrt((x**2).sum(1).mean())
    return {"data": {"D": {"x": x, "c": c, "share": (counts[c] - 1) / (len(c) - 1)}}}


def _grouped() -> dict[str, Any]:
    data = _ijcnn()
    groups = np.argsort(np.argsort(data["x"][:, 12], kind="stable")) * 12 // len(data["y"])
    return {"data": {"D": {**data, "g": groups}}}


def _scored() -> dict[str, Any]:
    data = _ijcnn(1, 0)
    share = float(data["y"].mean())
    shares = {"positive": share, "own": 1 / float(data["y"].sum())}
    return {"data": {"D": data}, "params": shares, "nets": {"s": "mlp(16, activation=elu)"}}


#: model -> the file that it needs, and what binds it
DATA: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "average_precision/average_precision": ("ijcnn1.parquet", _scored),
    "group_dro/group_dro": ("ijcnn1.parquet", _grouped),
    "group_dro_net/group_dro_net": (
        "ijcnn1.parquet",
        lambda: {**_grouped(), "nets": {"s": "mlp(16, activation=elu)"}},
    ),
    "largest_of_losses/largest_of_losses": ("ijcnn1.parquet", lambda: {"data": {"D": _ijcnn()}}),
    "nca/nca": ("usps.parquet", _digits),
    "partial_auc/partial_auc": ("ijcnn1.parquet", lambda: {"data": {"D": _ijcnn(1, 0)}}),
    "pnorm_push/pnorm_push": ("ijcnn1.parquet", lambda: {"data": {"D": _ijcnn()}}),
    "portfolios/portfolio": ("ff25_developed_daily.parquet", _portfolios),
}
