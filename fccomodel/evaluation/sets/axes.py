"""Tensors with named axes, and atoms on them.

A value is laid out as ``[axes in order ..., event dims ...]``. An axis is a serial number that
several binders may share: on an axis of pairs, each pair fixes one element of every binder.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from fccomodel.core import ir
from fccomodel.core.lazy import torch
from fccomodel.library import atoms

_serial = itertools.count()

ROOT = "sqrt"  # the atom whose slope at 0 is infinite
BESIDE_ZERO = 1e-300  # added to an argument 0 of it, so that the slope is finite
STEEPEST = 1e100  # larger slopes count as infinite


@dataclass(frozen=True, eq=False, slots=True)
class Named:
    """A tensor with named axes.

    data  the dims of ``axes`` first, then those of the event
    axes  serial numbers of the axes, increasing
    """

    data: torch.Tensor
    axes: tuple[int, ...] = ()

    @property
    def event(self) -> tuple[int, ...]:
        """The shape of the event."""
        return tuple(self.data.shape[len(self.axes) :])

    def length(self, axis: int) -> int:
        """The length of an axis."""
        return self.data.shape[self.axes.index(axis)]


Env = Mapping[ir.Binder, Named]


def new_axis() -> int:
    """The serial number of a new axis, which is laid out after all existing ones."""
    return next(_serial)


def along(ids: np.ndarray, axis: int) -> Named:
    """Numbers along one axis."""
    return Named(torch.from_numpy(np.ascontiguousarray(ids)), (axis,))


def union(values: Iterable[Named]) -> tuple[int, ...]:
    """All axes of the values, in layout order."""
    return tuple(sorted({axis for value in values for axis in value.axes}))


def spread(value: Named, axes: Sequence[int], event: int | None = None) -> torch.Tensor:
    """The value with a dim for every one of ``axes`` and with ``event`` event dims.

    Dims of axes that it does not depend on have length 1; missing event dims are padded on the left.
    """
    dims = value.data.dim() - len(value.axes)
    if event is None:
        event = dims
    if value.axes == tuple(axes) and event == dims:
        return value.data
    lengths = [value.length(axis) if axis in value.axes else 1 for axis in axes]
    padding = [1] * (event - dims)
    return value.data.reshape((*lengths, *padding, *value.event))


def align(values: Sequence[Named], *, entrywise: bool) -> tuple[list[torch.Tensor], tuple[int, ...]]:
    """The values over their common axes, and these.

    With ``entrywise`` event dims are padded on the left, so that they broadcast too.
    """
    axes = union(values)
    event: int | None = None
    if entrywise:
        dims_of_events = (value.data.dim() - len(value.axes) for value in values)
        event = max(dims_of_events, default=0)
    return [spread(value, axes, event) for value in values], axes


# -------------------------------------------------------------------------------------------- atoms
@cache
def _compiled(text: str, count: int) -> Callable[..., torch.Tensor]:
    arguments = ", ".join(f"a{k}" for k in range(count))
    code = f"lambda {arguments}: {text}"
    return eval(code, {"torch": torch, "math": math})  # noqa: S307  (the text is an atom's own)


def literal(value: float, *, whole: bool = False) -> str:
    """A number as Python text that can stand in place of a name.

    With ``whole`` a whole number is written as an integer.
    """
    text = repr(value)
    if whole and value == int(value):
        text = repr(int(value))
    if value < 0:
        return f"({text})"
    return text


def off_the_edge(u: torch.Tensor) -> torch.Tensor:
    """``u`` with zeros replaced by ``BESIDE_ZERO``, so that the slope of its root is finite.

    An argument that does not depend on the variables there (the distance of a point to itself) then
    has derivative 0 instead of 0 times infinity.
    """
    if u.requires_grad:
        return torch.where(u == 0, u + BESIDE_ZERO, u)
    return u


def apply_atom(op: str, args: Sequence[Named], numbers: Sequence[float | None]) -> Named:
    """The value of an atom at named tensors.

    ``numbers`` are the arguments known from the text, or None; they enter as Python numbers.
    """
    atom = atoms.get(op)
    assert atom is not None, op
    entrywise = isinstance(atom, atoms.ScalarAtom)
    tensors, axes = align(args, entrywise=entrywise)
    if atom.variadic and not entrywise:  # concat
        tensors = _expanded(tensors, args, len(axes))
    if op == ROOT:
        tensors = [off_the_edge(tensors[0])]
    texts = _texts(atom, numbers, entrywise)
    site = atoms.Site(
        shapes=tuple(arg.event for arg in args),
        numbers=tuple(numbers),
        python=tuple(text is not None for text in texts),
    )
    arguments = tuple(f"a{k}" if text is None else text for k, text in enumerate(texts))
    compute = _compiled(atom.lower(arguments, site), len(arguments))
    return Named(compute(*tensors), axes)


def _expanded(tensors: Sequence[torch.Tensor], args: Sequence[Named], axes: int) -> list[torch.Tensor]:
    """The tensors with their leading dims, one for each of the axes, expanded to common lengths."""
    lengths = torch.broadcast_shapes(*(tensor.shape[:axes] for tensor in tensors))
    pairs = zip(tensors, args, strict=True)
    return [tensor.expand((*lengths, *arg.event)) for tensor, arg in pairs]


def _texts(atom: atoms.Atom, numbers: Sequence[float | None], entrywise: bool) -> list[str | None]:
    """For each argument of an atom its number as text, or None if it enters as a tensor.

    Numbers enter atoms of scalars as text, and so do parameters of other atoms. At least one argument
    that is no parameter enters as a tensor.
    """
    names = atom.names(len(numbers))
    texts: list[str | None] = []
    for number, name in zip(numbers, names, strict=True):
        text = None
        if number is not None and math.isfinite(number) and (entrywise or name in atom.parameters):
            text = literal(number, whole=not entrywise)
        texts.append(text)
    without_tensor = all(
        text is not None or name in atom.parameters for text, name in zip(texts, names, strict=True)
    )
    if without_tensor:
        texts[0] = None
    return texts
