"""Indexing and sorting as loops of C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from fccomodel.execution.backends._base import Unfit
from fccomodel.execution.backends.c.values import Node, View, kind, named

if TYPE_CHECKING:
    from fccomodel.execution.backends.c import Loops

#: The largest number of entries that are sorted, by insertion.
LARGEST_SORT = 256


def rows(loops: Loops, node: Node) -> None:
    """``index_select``: entries along one dim, by their indices."""
    x, dim, index = loops.view(node.args[0]), int(node.args[1]), loops.view(node.args[2])
    out = loops.own(node.meta["val"].shape, node.meta["val"].dtype)
    dim %= len(x.shape)
    strides = tuple(index.strides[0] if k == dim else 0 for k in range(len(out.shape)))
    picked = replace(index, shape=out.shape, strides=strides)
    n, step = x.shape[dim], x.strides[dim]
    strides = tuple(0 if k == dim else stride for k, stride in enumerate(x.strides))
    rest = replace(x, shape=out.shape, strides=strides)
    loops.loop(
        [out, rest, picked],
        out.shape,
        lambda at: f"{at(out)} = (&{at(rest)})[{step} * placed({at(picked)}, {n})];",
        False,
    )
    loops.values[node] = out


def places(loops: Loops, node: Node) -> tuple[View, list[tuple[View, int, int]], tuple[int, ...]]:
    """The operands of an index by several arrays for the first dims.

    They are the indexed array, each index array with its dim's size and stride, and their shape.
    """
    x, given = loops.view(node.args[0]), list(node.args[1])
    if any(g is None for g in given):
        raise Unfit("no loops for places of later dims alone")
    index_views = [loops.view(g) for g in given]
    if any(f.dtype != torch.int64 for f in index_views):
        raise Unfit("no loops for places by truths")
    shape = tuple(torch.broadcast_shapes(*(f.shape for f in index_views)))
    places = [(view.spread(shape), x.shape[k], x.strides[k]) for k, view in enumerate(index_views)]
    return x, places, shape


def picked(loops: Loops, node: Node) -> None:
    """``index``: entries by indices along the first dims."""
    x, index, shape = places(loops, node)
    like = node.meta["val"]
    out, line = loops.own(like.shape, like.dtype), scattered(x, index, shape)
    views = [out, *line.views]
    loops.loop(views, out.shape, lambda at: f"{at(out)} = {line.text(at)};", False)
    loops.values[node] = out


@dataclass(frozen=True)
class Scattered:
    """An indexed entry inside a loop: the views that it reads, and its text."""

    views: list[View]
    text: Callable[[Callable[[View], str]], str]


def scattered(x: View, index: list[tuple[View, int, int]], shape: tuple[int, ...]) -> Scattered:
    """An entry by indices for the first dims, within loops over the indices' shape and the other dims."""
    tail = x.shape[len(index) :]
    whole = (*shape, *tail)
    not_along_indices = [0] * len(shape)
    not_along_tail = [0] * len(tail)
    rest = replace(x, shape=whole, strides=(*not_along_indices, *x.strides[len(index) :]))
    spread = []
    for indices, length, stride in index:
        along_all = replace(indices, shape=whole, strides=(*indices.strides, *not_along_tail))
        spread.append((along_all, length, stride))

    def text(at: Callable[[View], str]) -> str:
        """The entry in C."""
        steps = [f"{stride} * placed({at(indices)}, {length})" for indices, length, stride in spread]
        return f"(&{at(rest)})[{' + '.join(steps)}]"

    return Scattered([rest, *(indices for indices, _, _ in spread)], text)


def put(loops: Loops, node: Node) -> None:
    """``index_put``: set or add entries by indices along the first dims."""
    x, index, shape = places(loops, node)
    loops.written(x.buffer)
    new = loops.view(node.args[2])
    adds = len(node.args) > 3 and bool(node.args[3])
    if not named(node).startswith("index_put") or not node.target._schema.name.endswith("_"):
        copied = loops.own(x.shape, x.dtype)
        loops.copied(copied, x)
        x = copied
        index = [(f, n, s) for (f, n, _), s in zip(index, x.strides, strict=False)]
    line = scattered(x, index, shape)
    whole = (*shape, *x.shape[len(index) :])
    new = new.spread(whole)
    loops.loop(
        [new, *line.views], whole, lambda at: f"{line.text(at)} {'+' if adds else ''}= {at(new)};", False
    )
    loops.values[node] = x


def gathered(loops: Loops, node: Node) -> None:
    """``gather``: entries along one dim, each by its own index."""
    x, dim, index = loops.view(node.args[0]), int(node.args[1]), loops.view(node.args[2])
    if not x.shape:
        raise Unfit("no loops for entries of a number")
    dim %= len(x.shape)
    out = loops.own(index.shape, x.dtype)
    strides = tuple(0 if k == dim else stride for k, stride in enumerate(x.strides))
    rest = replace(x, shape=index.shape, strides=strides)
    n, step = x.shape[dim], x.strides[dim]
    loops.loop(
        [out, rest, index],
        out.shape,
        lambda at: f"{at(out)} = (&{at(rest)})[{step} * placed({at(index)}, {n})];",
        False,
    )
    loops.values[node] = out


def ordered(loops: Loops, node: Node) -> None:
    """``sort`` of a few numbers, with their places, by insertion.

    Equal numbers stay in their order; NaN is the largest.
    """
    options = {
        "dim": -1,
        "descending": False,
        **dict(zip(("dim", "descending"), node.args[1:], strict=False)),
        **node.kwargs,
    }
    x, values = loops.view(node.args[0]), node.meta["val"][0]
    if not x.shape or x.shape[options["dim"]] > LARGEST_SORT:
        raise Unfit("no loops for orders of many numbers")
    dim = options["dim"] % len(x.shape)
    results = [loops.own(values.shape, dtype) for dtype in (x.dtype, torch.int64)]
    order = [*(k for k in range(len(x.shape)) if k != dim), dim]
    turned = [v.turned(order) for v in (x, *results)]
    heads = [replace(v, shape=v.shape[:-1], strides=v.strides[:-1]) for v in turned]
    s, r, _ = (v.strides[-1] for v in turned)
    before = "v > q[(j - 1) * R] || (v != v && q[(j - 1) * R] == q[(j - 1) * R])"
    if not options["descending"]:
        before = "q[(j - 1) * R] > v || (q[(j - 1) * R] != q[(j - 1) * R] && v == v)"
    text = (
        "const {t} *p = &{0}; {t} *q = &{1}; long *o = &{2}; for (long k = 0; k < {n}; k++) {{ {t} v = "
        "p[k * {s}]; long j = k; "
        "while (j > 0 && (" + before.replace("R", str(r)) + ")) "
        "{{ q[j * {r}] = q[(j - 1) * {r}]; o[j * {r}] = o[(j - 1) * {r}]; j--; }} "
        "q[j * {r}] = v; o[j * {r}] = k; }}"
    )
    loops.loop(
        heads,
        heads[0].shape,
        lambda at: text.format(*map(at, heads), t=kind(x.dtype), n=x.shape[dim], s=s, r=r),
        False,
    )
    loops.values[node] = results
