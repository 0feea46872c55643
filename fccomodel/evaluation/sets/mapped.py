"""Rows of a table that stay in their file. Emitted programs carry these classes, which use torch alone."""

from __future__ import annotations

import math
from typing import Any

import torch

from fccomodel.core.pages import expect


class MappedTensor(torch.Tensor):
    """A tensor whose rows stay in their file, or in a source that fetches them when they are asked for.

    Rows that are taken have the working precision and device. Products and nets read the rows block
    by block. Any other operation loads all rows.

    rows   the rows of the file, or what fetches them: it has a ``shape``, gives itself at other rows,
           and ``to(device, dtype)`` gives these as a tensor
    at     the numbers of its rows there, or None for all
    sizes  whether it holds the absolute values of the numbers
    place  the working device and precision
    """

    MOST = 1 << 22  # numbers that are in memory at once
    BLOCK = 1 << 18  # numbers of a block of a product, which a processor's cache holds
    rows: Any
    at: torch.Tensor | None
    sizes: bool
    place: tuple[torch.device, torch.dtype]

    @staticmethod
    def __new__(cls, rows, device, dtype, at=None, sizes=False):
        if at is None:
            shape = rows.shape
        else:
            shape = (len(at), *rows.shape[1:])
        view = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=device)
        view.rows, view.at, view.sizes = rows, at, sizes
        view.place = (torch.device(device), dtype)
        return view

    def expect(self, how):
        """Tell the system how the rows will be read."""
        if isinstance(self.rows, torch.Tensor) and self.rows.device.type == "cpu":
            size = self.rows.numel() * self.rows.element_size()
            expect(self.rows.data_ptr(), size, how)

    def few(self, count):
        """Whether ``count`` rows may be in memory at once."""
        return count * max(1, self.rows[:1].numel()) <= self.MOST

    def chosen(self, index):
        """Rows by numbers, a slice or booleans, and entries of them; they are in memory if they are few."""
        if isinstance(index, tuple):
            first, *rest = index
        else:
            first, *rest = (index,)
        if not isinstance(first, slice | int | torch.Tensor):
            return self.whole()[index]
        if isinstance(first, torch.Tensor):
            first = first.to(self.rows.device)
            if first.dtype == torch.bool and first.dim() == 1:
                first = first.nonzero().squeeze(-1)
        if self.at is not None:
            first = self.at[first]
        if isinstance(first, slice):
            rows = self.rows[first]
            if rest or self.few(len(rows)):
                return self.placed(rows[(slice(None), *rest)])
            return MappedTensor(rows, *self.place, sizes=self.sizes)
        rows_alone = isinstance(first, torch.Tensor) and first.dim() == 1 and not rest
        if rows_alone and not self.few(len(first)):
            return MappedTensor(self.rows, *self.place, at=first, sizes=self.sizes)
        self.expect("scattered")
        rest = [part.to(self.rows.device) if isinstance(part, torch.Tensor) else part for part in rest]
        return self.placed(self.rows[(first, *rest)])

    def without_loading(self, name, *args):
        """The result of an operation that needs no rows, or only a few; None for others."""
        if name == "__getitem__":
            return self.chosen(args[0])
        if name == "index_select" and args[0] == 0:
            return self.chosen(args[1])
        if name == "narrow" and args[0] == 0:
            return self.chosen(slice(args[1], args[1] + args[2]))
        if name == "split" and isinstance(args[0], int):
            return self.parts(args[0])
        known = str | torch.device | torch.dtype
        if name == "to" and all(isinstance(part, known) for part in args):
            return self.moved(args)
        if name == "detach" or name == "reshape" and args == (-1, *self.shape[1:]):
            return self
        if name in ("abs", "__abs__"):
            return MappedTensor(self.rows, *self.place, at=self.at, sizes=True)
        return None

    def placed(self, rows):
        """Rows of the file in the working precision, on the working device."""
        converted = rows.to(*self.place)
        if self.sizes:
            return converted.abs()
        return converted

    def drawn(self, index, seed):
        """Rows as a step sees them, transformed anew for each seed."""
        if self.at is not None:
            index = self.at[index]
        return self.placed(self.rows.drawn(index, seed))

    def ahead(self, indices, seeds):
        """Tell the source which rows the next steps will draw, (steps, rows), with which seeds."""
        if self.at is not None:
            indices = [self.at[index] for index in indices]
        self.rows.ahead(indices, seeds)

    def parts(self, size):
        """All rows in order, some at a time, which are loaded when they are used."""
        entries_of_row = max(1, math.prod(self.shape[1:]))
        size = max(1, min(size, self.MOST // entries_of_row))
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            if self.at is None:
                yield MappedTensor(self.rows[part], *self.place, sizes=self.sizes)
            else:
                yield MappedTensor(self.rows, *self.place, at=self.at[part], sizes=self.sizes)

    def moved(self, place):
        """The rows in another precision, or on another device."""
        device, dtype = self.place
        for part in place:
            if isinstance(part, torch.dtype):
                dtype = part
            else:
                device = torch.device(part)
        return MappedTensor(self.rows, device, dtype, at=self.at, sizes=self.sizes)

    def blocks(self):
        """All rows in order, as pairs of a slice and its rows.

        A block's memory is used again for the next one, since fresh memory would fragment the heap.
        """
        self.expect("usual")
        count, (device, dtype) = len(self), self.place
        if not isinstance(self.rows, torch.Tensor):
            start = 0
            for part in self.parts(count):
                yield slice(start, start + len(part)), part.whole()
                start += len(part)
            return
        entries_of_row = max(1, self.rows[:1].numel())
        step = max(1, min(count, min(self.BLOCK, self.MOST) // entries_of_row))
        shape = (step, *self.rows.shape[1:])
        there = (self.rows.device, self.rows.dtype) == self.place
        taken = self.rows.new_empty(shape if self.at is not None else 0)
        if there:
            moved = None
        else:
            moved = torch.empty(shape, device=device, dtype=dtype)
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            size = part.stop - start
            if self.at is None:
                block = self.rows[part]
            else:
                block = torch.index_select(self.rows, 0, self.at[part], out=taken[:size])
            if moved is not None:
                block = moved[:size].copy_(block)
            yield part, block.abs() if self.sizes else block

    def whole(self):
        """All rows in memory."""
        self.expect("usual")
        return self.placed(self.rows if self.at is None else self.rows[self.at])

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name, kwargs = function.__name__, kwargs or {}
        if name == "__get__" and function.__self__.__name__ not in (
            "T",
            "mT",
            "H",
            "mH",
            "data",
            "real",
            "imag",
            "grad",
        ):
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **kwargs)
        if name in ("dim", "size", "numel", "__len__", "is_floating_point", "ndimension", "__hash__"):
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **kwargs)
        if isinstance(args[0], MappedTensor) and not kwargs:
            view = args[0].without_loading(name, *args[1:])
            if view is not None:
                return view
        if (
            name in ("__matmul__", "matmul", "mv", "mm")
            and not kwargs
            and args[0].dim() <= 2
            and args[1].dim() <= 2
        ):
            left, right = args
            if isinstance(left, MappedTensor) and left.dim() == 2 and not isinstance(right, MappedTensor):
                return MappedProducts.apply(left, right)
            if isinstance(right, MappedTensor) and right.dim() == 2 and not isinstance(left, MappedTensor):
                return Sums.apply(left, right)
        named = {key: in_memory(value) for key, value in kwargs.items()}
        return function(*map(in_memory, args), **named)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):  # type: ignore[override]
        named = {key: in_memory(value) for key, value in (kwargs or {}).items()}
        return function(*map(in_memory, args), **named)


class FetchedRows:
    """Rows that a function fetches when they are asked for: ``fetch(numbers, seed)`` gives them as a
    tensor. ``seed`` is that of a step's draw, or None for a look.

    shape  of the whole column
    at     the numbers of its rows, or None for all
    """

    def __init__(self, fetch, shape, at=None):
        self.fetch, self.event = fetch, tuple(shape[1:])
        if at is None:
            self.at = torch.arange(shape[0])
        else:
            self.at = at
        self.shape = (*self.at.shape, *self.event)
        self.device = torch.device("cpu")

    def __len__(self):
        return len(self.at)

    def numel(self):
        """The number of entries."""
        return math.prod(self.shape)

    def __getitem__(self, index):
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, torch.Tensor):
            first = first.cpu()
        view = FetchedRows(self.fetch, (len(self), *self.event), self.at[first])
        if rest:
            all_rows = (slice(None),) * view.at.dim()
            return view.to()[all_rows + tuple(rest)]
        return view

    def to(self, *place):
        """The rows as looks see them, of a type, on a device."""
        return self.fetched(None, *place)

    def drawn(self, index, seed):
        """Some rows as a step sees them."""
        return self[index].fetched(int(seed))

    def fetched(self, seed, *place):
        """The rows as a tensor."""
        rows = self.fetch(self.at.reshape(-1), seed).reshape(self.shape)
        if place:
            return rows.to(*place)
        return rows

    def ahead(self, indices, seeds):
        """Rows of the next steps: a place to begin with them."""


def in_memory(value):
    """The value with mapped rows loaded into memory."""
    if isinstance(value, tuple | list):
        return type(value)(map(in_memory, value))
    if isinstance(value, MappedTensor):
        return value.whole()
    return value


class MappedProducts(torch.autograd.Function):
    """``rows @ w`` block by block, w a vector or a matrix; its derivative is a sum over the rows."""

    @staticmethod
    def forward(ctx, rows, w):
        """The product."""
        ctx.rows = rows
        return MappedProducts.of(rows, w)

    @staticmethod
    def of(rows, w):
        """The product, without a graph."""
        product = w.new_empty((len(rows), *w.shape[1:]))
        for part, block in rows.blocks():
            product[part] = block @ w
        return product

    @staticmethod
    def backward(ctx, g):
        """The derivative in w: ``g' rows``."""
        sums = Sums.apply if torch.is_grad_enabled() else Sums.of  # ``apply`` cannot take batches of g
        if g.dim() == 2:
            return None, sums(g.mT, ctx.rows).mT
        return None, sums(g, ctx.rows)


class Sums(torch.autograd.Function):
    """``g @ rows`` block by block, g a vector or a matrix."""

    @staticmethod
    def forward(ctx, g, rows):
        """The product."""
        ctx.rows = rows
        return Sums.of(g, rows)

    @staticmethod
    def of(g, rows):
        """The product, without a graph."""
        total = g.new_zeros((*g.shape[:-1], rows.shape[1]))
        for part, block in rows.blocks():
            total += g.narrow(-1, part.start, part.stop - part.start) @ block
        return total

    @staticmethod
    def backward(ctx, g):
        """The derivative in the first factor: ``rows g``."""
        products = MappedProducts.apply if torch.is_grad_enabled() else MappedProducts.of
        if g.dim() == 2:
            return products(ctx.rows, g.mT).mT, None
        return products(ctx.rows, g), None
