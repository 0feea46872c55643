"""Reductions, matrix products, and arrays that are created or joined, as loops of C."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from fccomodel.execution.backends._base import Unfit
from fccomodel.execution.backends.c.values import Node, View, flat, kind, literal, named

if TYPE_CHECKING:
    from fccomodel.execution.backends.c import Loops


def reduced(loops: Loops, node: Node) -> None:
    """Sums, means and extremes along dims."""
    name, like = named(node), node.meta["val"]
    x = loops.view(node.args[0])
    if len(node.args) > 1:
        dims = node.args[1]
    else:
        dims = node.kwargs.get("dim")
    rank = len(x.shape)
    along: list[int] = []
    if rank:
        along = [d % rank for d in ([dims] if isinstance(dims, int) else dims or range(rank))]
    out = loops.own([1 if k in along else n for k, n in enumerate(x.shape)], like.dtype)
    whole = out.spread(x.shape)
    number = kind(like.dtype)
    sums = name in ("sum", "mean")
    if sums:
        start = "0"
    else:
        start = literal(-math.inf if name == "amax" else math.inf, like.dtype)
    loops.loop([out], out.shape, lambda at: f"{at(out)} = {start};", True)
    inside = rank and along == [rank - 1] and x.strides[-1] == 1
    if inside:
        rest = x.shape[:-1]
        head = replace(x, shape=rest, strides=x.strides[:-1])
        into = replace(out, shape=rest, strides=out.strides[:-1])
        n = x.shape[-1]
        if sums:
            sign = "+"
        elif name == "amax":
            sign = "max"
        else:
            sign = "min"

        def line(at: Callable[[View], str]) -> str:
            """The reduction of one row."""
            place = at(head)
            if sums:
                step = "s += p[k];"
            else:
                step = f"s = p[k] {'>' if name == 'amax' else '<'} s ? p[k] : s; bad |= p[k] != p[k];"
            more = "" if sums else "int bad = 0; "
            clause = f"reduction({sign}:s)" + ("" if sums else " reduction(|:bad)")
            last = f"{at(into)} = {'s' if sums else 'bad ? NAN : s'};"
            return (
                f"const {kind(x.dtype)} *p = &{place}; {number} s = {start}; {more}"
                f'_Pragma("omp simd {clause}") for (long k = 0; k < {n}; k++) {{ {step} }} {last}'
            )

        loops.loop([into, head], rest, line, False)
    else:
        order = sorted(range(rank), key=lambda k: k not in along)  # reduced dims outside: whole rows inside
        moved = [v.turned(order) for v in (whole, x)]
        if sums:
            form = "{0} += {1};"
        else:
            form = f"{{0}} = {'maximum' if name == 'amax' else 'minimum'}_{number}({{0}}, {{1}});"
        last = bool(order) and order[-1] not in along
        loops.loop(moved, moved[1].shape, lambda at: form.format(*map(at, moved)), last)
    if name == "mean":
        count = literal(math.prod(x.shape[k] for k in along), like.dtype)
        loops.loop([out], out.shape, lambda at: f"{at(out)} /= {count};", True)
    loops.values[node] = View(out.buffer, tuple(like.shape), flat(like.shape))


def multiplied(loops: Loops, node: Node) -> None:
    """Products of matrices and vectors, and such products with an array added."""
    name, like = named(node), node.meta["val"]
    plus = node.args[0] if name.startswith("add") else None
    a, b = map(loops.view, node.args[-2:])
    floats = (torch.float32, torch.float64)
    if node.kwargs or a.dtype not in floats or b.dtype not in floats:
        raise Unfit(f"no loops for {node.target} of such arrays")
    if name in ("bmm", "baddbmm"):
        batch = a.shape[0]
    else:
        batch = 1
    out = loops.own(like.shape, like.dtype)
    number = kind(like.dtype)
    left, a_by = (1, *a.shape), (0, *a.strides)
    if len(a.shape) > 1:
        left = a.shape[-2:]
        a_by = a.strides[-2:]
    right, b_by = (*b.shape, 1), (*b.strides, 0)
    if len(b.shape) > 1:
        right = b.shape[-2:]
        b_by = b.strides[-2:]
    m, k = left
    n = right[1]
    loops.products += batch * m * n * k
    pack = loops.own((k * 128,), torch.bool)
    for z in range(batch):
        starts = [v.start + (z * v.strides[0] if batch > 1 else 0) for v in (a, b)]
        first = f"{a.buffer.name} + {starts[0]}, {a_by[0]}, {a_by[1]}"
        second = f"{b.buffer.name} + {starts[1]}, {b_by[0]}, {b_by[1]}"
        results = f"{out.buffer.name} + {z * m * n}, ({number} *){pack.buffer.name}"
        loops.lines.append(f"product_{number}({m}, {n}, {k}, {first}, {second}, {results});")
    if plus is not None:
        bias = loops.view(plus).spread(tuple(like.shape))
        loops.loop([out, bias], out.shape, lambda at: f"{at(out)} += {at(bias)};", True)
    loops.values[node] = out


def full(loops: Loops, node: Node) -> None:
    """Arrays filled with one number."""
    name, like = named(node), node.meta["val"]
    numbers = {"full": 1, "new_full": 2, "full_like": 1, "scalar_tensor": 0}
    if name in numbers:
        number = node.args[numbers[name]]
    elif "ones" in name:
        number = 1
    else:
        number = 0
    out = loops.own(like.shape, like.dtype, like.stride())
    if "empty" not in name:
        text = literal(number, like.dtype)
        loops.loop([out], out.shape, lambda at: f"{at(out)} = {text};", True)
    loops.values[node] = out


def arange(loops: Loops, node: Node) -> None:
    """``arange``: numbers with a constant step."""
    like, args = node.meta["val"], list(node.args)
    start = args[0] if len(args) > 1 else 0
    step = args[2] if len(args) > 2 else 1
    out = loops.own(like.shape, like.dtype)
    n, number = like.shape[0], kind(like.dtype)
    first, by = (literal(value, like.dtype) for value in (start, step))
    loops.lines.append(
        f"for (long i = 0; i < {n}; i++) {out.buffer.name}[i] = ({number})({first} + i * {by});"
    )
    loops.values[node] = out


def joined(loops: Loops, node: Node) -> None:
    """``cat``: arrays one after another along a dim."""
    parts = [loops.view(a) for a in node.args[0]]
    dim = node.args[1] if len(node.args) > 1 else 0
    like = node.meta["val"]
    out, place = loops.own(like.shape, like.dtype), 0
    dim = int(dim) % len(like.shape)
    for part in parts:
        if part.shape == (0,):
            continue
        into = replace(out, shape=part.shape, start=place * out.strides[dim])
        loops.copied(into, part)
        place += part.shape[dim]
    loops.values[node] = out


def padded(loops: Loops, node: Node) -> None:
    """An array with a number around it."""
    x, pads = loops.view(node.args[0]), list(node.args[1])
    number, like = node.args[2] if len(node.args) > 2 else 0, node.meta["val"]
    out = loops.own(like.shape, like.dtype)
    if any(p < 0 for p in pads):
        raise Unfit("no loops for an array cut by padding")
    text = literal(number, like.dtype)
    loops.loop([out], out.shape, lambda at: f"{at(out)} = {text};", True)
    before = [0] * len(x.shape)
    for k in range(len(pads) // 2):
        before[-1 - k] = pads[2 * k]
    start = sum(b * s for b, s in zip(before, out.strides, strict=True))
    into = replace(out, shape=x.shape, start=start)
    loops.copied(into, x)
    loops.values[node] = out


def added(loops: Loops, node: Node) -> None:
    """``cumsum``: running sums along one dim."""
    x, dim = loops.view(node.args[0]), int(node.args[1])
    like = node.meta["val"]
    if x.dtype != like.dtype or not x.shape:
        raise Unfit("no loops for running counts")
    out = loops.own(like.shape, like.dtype)
    dim %= len(x.shape)
    order = [*(k for k in range(len(x.shape)) if k != dim), dim]
    a, o = x.turned(order), out.turned(order)
    head, into = (replace(v, shape=v.shape[:-1], strides=v.strides[:-1]) for v in (a, o))
    number, n = kind(like.dtype), a.shape[-1]
    text = (
        "const {t} *p = &{p}; {t} *q = &{q}; {t} s = 0; for (long k = 0; k < {n}; k++) {{ s += p[k * "
        "{s}]; q[k * {r}] = s; }}"
    )
    loops.loop(
        [into, head],
        head.shape,
        lambda at: text.format(t=number, p=at(head), q=at(into), n=n, s=a.strides[-1], r=o.strides[-1]),
        False,
    )
    loops.values[node] = out
