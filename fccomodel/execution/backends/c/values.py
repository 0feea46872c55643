"""Arrays in loops of C: buffers, strided views, and expressions of entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fccomodel.execution.backends._base import Unfit

#: The C type of each of torch's types.
TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.bool: "unsigned char",
    torch.int32: "int",
}

#: A node of a graph of torch.
Node = Any


@dataclass(eq=False)
class Buffer:
    """Memory of an array: an argument of the function, or part of its own memory."""

    name: str
    dtype: torch.dtype
    length: int
    argument: bool = False


@dataclass(frozen=True, eq=False)
class View:
    """Entries of a buffer, by strides."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int = 0

    @property
    def dtype(self) -> torch.dtype:
        """The type of the entries."""
        return self.buffer.dtype

    def turned(self, order: Sequence[int]) -> View:
        """The view with its dims in another order."""
        shape = tuple(self.shape[k] for k in order)
        strides = tuple(self.strides[k] for k in order)
        return replace(self, shape=shape, strides=strides)

    def spread(self, shape: tuple[int, ...]) -> View:
        """The view broadcast to a shape."""
        extra = len(shape) - len(self.shape)
        strides_here = [
            0 if n == 1 and m != 1 else s
            for n, m, s in zip(self.shape, shape[extra:], self.strides, strict=True)
        ]
        return replace(self, shape=shape, strides=(*[0] * extra, *strides_here))


@dataclass(frozen=True, eq=False)
class FusedOperation:
    """An entrywise operation that stands inside the loop of another."""

    text: str
    args: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype

    def leaves(self) -> list[View]:
        """The views that it reads, broadcast to its shape."""
        return [view.spread(self.shape) for view in self.views()]

    def views(self) -> list[View]:
        """The views that it reads."""
        inner = [
            a.views() if isinstance(a, FusedOperation) else [a]
            for a in self.args
            if isinstance(a, FusedOperation | View)
        ]
        return [view for part in inner for view in part]

    def printed(self, at: Callable[[View], str], shape: tuple[int, ...] | None = None) -> str:
        """The expression in C, with ``at(leaf)`` for each view."""
        shape = self.shape if shape is None else shape
        texts = [_printed(arg, at, shape) for arg in self.args]
        return self.text.format(**dict(zip("abc", texts, strict=False)))


def _printed(arg: Any, at: Callable[[View], str], shape: tuple[int, ...]) -> str:
    """An argument of an expression in C."""
    if isinstance(arg, FusedOperation):
        return arg.printed(at, shape)
    if isinstance(arg, View):
        return at(arg.spread(shape))
    return str(arg)


def literal(value: Any, dtype: torch.dtype) -> str:
    """A number in C."""
    if dtype == torch.bool:
        return str(int(bool(value)))
    if not dtype.is_floating_point:
        return f"{int(value)}L"
    if value != value or value in (math.inf, -math.inf):
        if value != value:
            return "NAN"
        if value > 0:
            return "INFINITY"
        return "(-INFINITY)"
    text = repr(float(value)) + ("f" if dtype == torch.float32 else "")
    if value < 0:
        return f"({text})"
    return text


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """The number of entries from the first to the last of a view."""
    if math.prod(shape):
        return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return 1


def flat(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def kind(dtype: torch.dtype) -> str:
    """The C type of one of torch's types. Raises ``Unfit`` if there is none."""
    if dtype not in TYPES:
        raise Unfit(f"no loops for {dtype}")
    return TYPES[dtype]


def named(node: Node) -> str:
    """The name of a node's operation in torch, without the underscore of writing in place."""
    if hasattr(node.target, "_schema"):
        return node.target._schema.name.split("::")[1].rstrip("_")
    return ""


def key(view: View) -> tuple:
    """A key that is the same for views of the same entries."""
    return (view.buffer.name, view.start, view.strides, view.shape)
