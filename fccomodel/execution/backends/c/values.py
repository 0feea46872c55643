"""Arrays as loops of C see them: where numbers lie, by which strides, and expressions of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from fccomodel.execution.backends._base import Unfit

#: torch's types in C
TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.bool: "unsigned char",
    torch.int32: "int",
}

#: one of a graph of torch
Node = Any


@dataclass(eq=False)
class Buffer:
    """Where numbers lie: an argument of the function, or room of its own."""

    name: str
    dtype: torch.dtype
    length: int
    argument: bool = False


@dataclass(frozen=True, eq=False)
class View:
    """Numbers of a buffer, by strides."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int = 0

    @property
    def dtype(self) -> torch.dtype:
        return self.buffer.dtype

    def turned(self, order: Sequence[int]) -> View:
        """The same with its dims in another order."""
        return replace(
            self, shape=tuple(self.shape[k] for k in order), strides=tuple(self.strides[k] for k in order)
        )

    def spread(self, shape: tuple[int, ...]) -> View:
        """The same on more dims, repeated along them."""
        extra = len(shape) - len(self.shape)
        kept = [
            0 if n == 1 and m != 1 else s
            for n, m, s in zip(self.shape, shape[extra:], self.strides, strict=True)
        ]
        return replace(self, shape=shape, strides=(*[0] * extra, *kept))


@dataclass(frozen=True, eq=False)
class Entry:
    """An entrywise operation that stands inside the loop of another."""

    text: str
    args: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: torch.dtype

    def leaves(self) -> list[View]:
        """The arrays that it reads, spread over its shape."""
        return [view.spread(self.shape) for view in self.views()]

    def views(self) -> list[View]:
        """The same as they are."""
        inner = [a.views() if isinstance(a, Entry) else [a] for a in self.args if isinstance(a, Entry | View)]
        return [view for part in inner for view in part]

    def printed(self, at: Callable[[View], str], shape: tuple[int, ...] | None = None) -> str:
        """Its C, ``at(leaf)`` of the arrays."""
        shape = self.shape if shape is None else shape
        texts = [
            arg.printed(at, shape)
            if isinstance(arg, Entry)
            else at(arg.spread(shape))
            if isinstance(arg, View)
            else str(arg)
            for arg in self.args
        ]
        return self.text.format(**dict(zip("abc", texts, strict=False)))


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
    """Numbers from the first to the last of a view."""
    if math.prod(shape):
        return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return 1


def flat(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def kind(dtype: torch.dtype) -> str:
    """A type in C."""
    if dtype not in TYPES:
        raise Unfit(f"no loops for {dtype}")
    return TYPES[dtype]


def named(node: Node) -> str:
    if hasattr(node.target, "_schema"):
        return node.target._schema.name.split("::")[1].rstrip("_")
    return ""


def key(view: View) -> tuple:
    return (view.buffer.name, view.start, view.strides, view.shape)
