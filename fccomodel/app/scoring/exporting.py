"""The score of rows, with its scaling, as a separate program: ONNX, or an exported program of torch."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fccomodel.app.scoring import errors, rows, scoring
from fccomodel.app.scoring.rows import Quantity
from fccomodel.app.scoring.scoring import Fitted
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.files import whole
from fccomodel.data.bound import BoundTable

#: Random rows at which a score is compared with a linear one.
LINEARITY_ROWS = 16
#: The relative difference that counts as linear.
LINEARITY_TOLERANCE = 1e-9


class Score(torch.nn.Module):
    """The scores of rows as in the data, (rows, columns): scaling, intercept, net or linear map."""

    mean: torch.Tensor
    divisor: torch.Tensor

    def __init__(self, body: torch.nn.Module, mean: np.ndarray, divisor: np.ndarray, intercept: bool):
        super().__init__()
        self.body, self.intercept = body.double(), intercept
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("divisor", torch.as_tensor(divisor))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores of rows (rows, columns)."""
        scaled = (x - self.mean) / self.divisor
        if self.intercept:
            scaled = torch.cat([scaled, torch.ones_like(scaled[:, :1])], 1)
        return self.body(scaled)


class Linear(torch.nn.Module):
    """``x A + b``, for one score or several."""

    weights: torch.Tensor
    constant: torch.Tensor

    def __init__(self, weights: np.ndarray, constant: np.ndarray):
        super().__init__()
        self.register_buffer("weights", torch.as_tensor(weights))
        self.register_buffer("constant", torch.as_tensor(constant))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The map at rows (rows, columns)."""
        return x @ self.weights + self.constant


def export(known: Fitted, path: Path) -> Path:
    """Write the score to ``path``, which ends in ``.onnx`` or ``.pt2``.

    Raises F0815 for other endings, and for scores that cannot be exported.
    """
    if path.suffix not in WRITERS:
        refuse(errors.no_export_kind(path, list(WRITERS)))
    score, samples = module(known)
    with whole(path) as temporary:
        WRITERS[path.suffix](score.eval(), samples, temporary)
    return path


def module(known: Fitted) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The score with its scaling as a module in float64, and two rows of each of its inputs."""
    score = rows.score(known.compiled)
    if (network := _net(known, score)) is not None:
        return network
    if len(score.columns) != 1 or score.others or not score.table.columns[score.columns[0]].shape:
        refuse(errors.no_export(score.name, "it is no function of one vector of the row"))
    record = known.encoding[score.table.name][score.columns[0]]
    body, inner = _body(known, score, record)
    intercept = bool(record.get("intercept"))
    width = inner - intercept
    scale = record.get("scale") or {"mean": np.zeros(width), "divisor": np.ones(width)}
    return Score(body, np.asarray(scale["mean"], float), np.asarray(scale["divisor"], float), intercept), (
        torch.zeros((2, width), dtype=torch.float64),
    )


def _net(known: Fitted, wanted: Quantity) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]] | None:
    """A net of columns that are bound as they are (images, token ids), with two rows of each; None for
    another score."""
    top = wanted.outermost
    if not isinstance(top, ir.NetCall) or top.params is None or top.column is None or wanted.others:
        return None
    net = known.compiled.problem.nets[top.net]
    if len(net.inputs) == 1 and not net.inputs[0].whole and len(net.inputs[0].shape) == 1:
        return None
    samples = []
    for column, declared in zip(top.columns, net.inputs, strict=True):
        if (known.encoding[wanted.table.name].get(column) or {}).get("scale"):
            refuse(errors.no_export(wanted.name, f"its column `{column}` is scaled"))
        shape = [dim if isinstance(dim, int) else known.sizes[dim] for dim in declared.shape]
        kind = torch.int64 if declared.whole else torch.float64
        samples.append(torch.zeros((2, *shape), dtype=kind))
    return scoring.module(known, top.params.name).double(), tuple(samples)


def _body(known: Fitted, wanted: Quantity, record: Mapping[str, Any]) -> tuple[torch.nn.Module, int]:
    """The net or linear map of a row's vector, and the length of the vector."""
    dim = wanted.table.columns[wanted.columns[0]].shape
    if len(dim) != 1:
        refuse(errors.no_export(wanted.name, "its rows are not vectors"))
    top, width = wanted.outermost, _width(known, dim[0], record)
    if isinstance(top, ir.NetCall) and top.params is not None and top.column is not None:
        return scoring.module(known, top.params.name), width
    points = np.concatenate(
        [np.zeros((1, width)), np.eye(width), np.random.default_rng(0).normal(size=(LINEARITY_ROWS, width))]
    )
    columns = {wanted.columns[0]: points}
    scores = scoring.at(known, wanted, BoundTable(name=wanted.table.name, n=len(points), columns=columns))
    constant, weights = scores[0], scores[1 : width + 1] - scores[0]
    linear, tolerance = points[width + 1 :] @ weights + constant, LINEARITY_TOLERANCE
    if not np.allclose(linear, scores[width + 1 :], rtol=tolerance, atol=tolerance):
        refuse(errors.no_export(wanted.name, "it is neither a net of the row's vector nor linear in it"))
    return Linear(weights, constant), width


def _width(known: Fitted, dim: ir.Dim, record: Mapping[str, Any]) -> int:
    """The length of a row's vector."""
    if record.get("names"):
        return len(record["names"])
    if isinstance(dim, int):
        return dim
    if dim in known.sizes:
        return known.sizes[dim]
    return len(known.labels[dim])


# -------------------------------------------------------------------------------------------- files
def _exported(score: torch.nn.Module, samples: tuple[torch.Tensor, ...]) -> Any:
    shapes = tuple({0: torch.export.Dim("rows", min=1)} for _ in samples)
    if len(inspect.signature(score.forward).parameters) != len(samples):
        shapes = (shapes,)  # type: ignore[assignment]  # forward(*inputs) is one parameter to torch
    return torch.export.export(score, samples, dynamic_shapes=shapes)


def _torch(score: torch.nn.Module, samples: tuple[torch.Tensor, ...], path: Path) -> None:
    content = io.BytesIO()  # torch warns of names that do not end in .pt2
    torch.export.save(_exported(score, samples), content)
    path.write_bytes(content.getvalue())


def _onnx(score: torch.nn.Module, samples: tuple[torch.Tensor, ...], path: Path) -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        refuse(errors.no_onnx())
    names = ["x"] if len(samples) == 1 else [f"x{k + 1}" for k in range(len(samples))]
    program = torch.onnx.export(
        _exported(score, samples), input_names=names, output_names=["score"], verbose=False
    )
    assert program is not None
    program.save(path)


WRITERS: dict[str, Callable[[torch.nn.Module, tuple[torch.Tensor, ...], Path], None]] = {
    ".onnx": _onnx,
    ".pt2": _torch,
}
