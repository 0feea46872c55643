"""A graph of torch's operations on arrays of fixed sizes as loops of C, one after another.

Views are strides into their arrays. An entrywise operation with one user stands inside the loop of
that user. An operation that is unknown here raises ``Unfit``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from fccomodel.execution.backends._base import Unfit
from fccomodel.execution.backends.c import parts
from fccomodel.execution.backends.c.entries import CALLS, COPIES, ENTRIES, EXTRA, TRUTHS, inner
from fccomodel.execution.backends.c.operations import added, arange, full, joined, multiplied, padded, reduced
from fccomodel.execution.backends.c.places import gathered, ordered, picked, put, rows
from fccomodel.execution.backends.c.values import (
    Buffer,
    FusedOperation,
    Node,
    View,
    flat,
    key,
    kind,
    literal,
    span,
)

#: Arrays begin at multiples of so many bytes: a line of the cache.
LINE = 64
#: Operations that are not entrywise, by their names in torch.
OTHERS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("sum", "mean", "amax", "amin"), reduced),
    **dict.fromkeys(("mm", "mv", "bmm", "addmm", "addmv", "dot", "baddbmm"), multiplied),
    **dict.fromkeys(
        (
            "full",
            "new_full",
            "zeros",
            "new_zeros",
            "ones",
            "new_ones",
            "zeros_like",
            "ones_like",
            "full_like",
            "scalar_tensor",
            "empty",
            "new_empty",
            "empty_like",
        ),
        full,
    ),
    "arange": arange,
    "cat": joined,
    "constant_pad_nd": padded,
    "index_select": rows,
    "index": picked,
    "index_put": put,
    "gather": gathered,
    "cumsum": added,
    "sort": ordered,
}
#: Operations that are not entrywise and may change an argument.
WRITES = {"index_put"}
#: Operations that may change the shape of an argument.
SHAPES = {"squeeze", "unsqueeze", "transpose", "t"}


@dataclass
class Loops:
    """The lines of a C function. ``room``: bytes for its intermediate arrays."""

    lines: list[str] = field(default_factory=list)
    values: dict[Any, Any] = field(default_factory=dict)
    waiting: dict[Any, FusedOperation] = field(default_factory=dict)
    room: int = 0
    products: float = 0.0
    count: int = 0

    # --------------------------------------------------------------------------------------- arrays
    def own(self, shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None) -> View:
        """A new intermediate array."""
        if strides is None:
            strides = flat(shape)
        else:
            strides = tuple(strides)
        self.count += 1
        buffer = Buffer(f"t{self.count}", dtype, span(shape, strides))
        size = buffer.length * torch.empty((), dtype=dtype).element_size()
        self.lines.append(f"{kind(dtype)} *{buffer.name} = ({kind(dtype)} *)(room + {self.room});")
        self.room += -(-size // LINE) * LINE
        return View(buffer, tuple(shape), strides)

    def view(self, value: Any) -> Any:
        """An argument as an array; an operation that waits is computed now."""
        if not isinstance(value, torch.fx.Node):
            return value
        if value in self.waiting:
            entry = self.waiting.pop(value)
            self.values[value] = self.stored(entry, value.meta["val"])
        return self.values[value]

    def stored(self, entry: FusedOperation, like: torch.Tensor) -> View:
        """The result of an entrywise operation in an array of its own."""
        out = self.own(entry.shape, entry.dtype, like.stride())
        self.fill(out, entry)
        return out

    def fill(self, out: View, entry: FusedOperation) -> None:
        """Add the loop that puts an entrywise operation into an array."""
        self.loop([out, *entry.leaves()], out.shape, lambda at: f"{at(out)} = {entry.printed(at)};", True)

    def copied(self, into: View, x: View) -> None:
        """Add the loop that copies an array into another."""
        self.loop([into, x], x.shape, lambda at: f"{at(into)} = {at(x)};", True)

    def written(self, buffer: Buffer) -> None:
        """Compute the operations that wait for an array, before it changes."""
        readers = []
        for node, entry in self.waiting.items():
            if any(leaf.buffer is buffer for leaf in entry.leaves()):
                readers.append(node)
        for node in readers:
            self.view(node)

    # ---------------------------------------------------------------------------------------- loops
    def loop(
        self,
        views: Sequence[View],
        shape: Sequence[int],
        body: Callable[[Callable[[View], str]], str],
        many: bool,
    ) -> None:
        """Add nested loops over a shape. Dims without gaps between them are merged.

        ``many``: entries do not depend on each other, so the innermost loop is vectorised.
        """
        dims = [(n, [v.strides[k] for v in views]) for k, n in enumerate(shape) if n != 1]
        if any(n == 0 for n, _ in dims):
            return
        merged: list[tuple[int, list[int]]] = []
        for n, strides in dims:
            follows_on = merged and all(s == n * t for s, t in zip(merged[-1][1], strides, strict=True))
            if follows_on:
                merged[-1] = (merged[-1][0] * n, strides)
            else:
                merged.append((n, strides))
        places = {id(v): k for k, v in enumerate(views)}
        keys = {key(v): k for v, k in ((v, places[id(v)]) for v in views)}

        def at(view: View) -> str:
            """The entry of a view in the innermost loop."""
            k = keys[key(view)]
            terms = [f"{s[k]} * i{d}" if s[k] != 1 else f"i{d}" for d, (_, s) in enumerate(merged) if s[k]]
            if view.start or not terms:
                start = [str(view.start)]
            else:
                start = []
            return f"{view.buffer.name}[{' + '.join([*start, *terms])}]"

        for d, (n, _) in enumerate(merged):
            if many and d == len(merged) - 1:
                self.lines.append('_Pragma("omp simd")')
            self.lines.append(f"for (long i{d} = 0; i{d} < {n}; i{d}++)")
        self.lines.append("{ " + body(at) + " }")

    # ----------------------------------------------------------------------------------- operations
    def run(self, node: Node) -> None:
        """Add one operation."""
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        way, name, write = way_of(node.target)
        if way == "look":
            self.look(node, write)
        elif way == "entries":
            self.entrywise(node, name, write)
        elif way == "other":
            OTHERS[name](self, node)
        else:
            raise Unfit(f"no loops for {node.target}")

    def look(self, node: Node, write: bool) -> None:
        """Add a view, at the place that torch gives."""
        source = self.view(node.args[0])
        value, base = node.meta["val"], node.args[0].meta["val"]
        several = isinstance(value, tuple | list)
        if several:
            many = value
        else:
            many = [value]
        shift = source.start - base.storage_offset()
        views = []
        for x in many:
            start = x.storage_offset() + shift
            views.append(View(source.buffer, tuple(x.shape), tuple(x.stride()), start))
        if several:
            self.values[node] = views
        else:
            self.values[node] = views[0]
        if write:  # ``squeeze_`` changes the shape of what it is given, too
            self.values[node.args[0]] = views[0]

    def entrywise(self, node: Node, name: str, write: bool) -> None:
        """Add an entrywise operation: it waits for its only user, or gets an array of its own."""
        like, target = node.meta["val"], self.view(node.args[0]) if write else None
        entry = self.entry(node, name, like)
        if target is not None:
            self.written(target.buffer)
            if any(leaf.buffer is target.buffer and key(leaf) != key(target) for leaf in entry.leaves()):
                copied = self.stored(entry, torch.empty(entry.shape, dtype=entry.dtype))
                entry = FusedOperation("{a}", (copied,), entry.shape, entry.dtype)
            self.fill(target, entry)
            self.values[node] = target
            return
        users = list(node.users)
        once = len(users) == 1 and sum(arg is node for arg in users[0].args) == 1
        if once and name not in ("clone",) and shaped(users[0]) == tuple(like.shape) and inner(users[0]):
            if len(entry.printed(lambda view: "x")) < 200:
                self.waiting[node] = entry
                return
        self.values[node] = self.stored(entry, like)

    def entry(self, node: Node, name: str, like: torch.Tensor) -> FusedOperation:
        """The expression of an entrywise operation."""
        args, given = list(node.args), dict(node.kwargs)
        dtype = like.dtype
        if name in COPIES:
            x = args[1 if name == "copy" else 0]
            truth = dtype == torch.bool and value(x).dtype != torch.bool
            inside = self.operand(x, value(x).dtype if truth else dtype)
            return FusedOperation("({a} != 0)" if truth else "{a}", (inside,), tuple(like.shape), dtype)
        if name in EXTRA:
            return EXTRA[name](self, node, like)
        text = ENTRIES[name]
        at = dtype
        if name in TRUTHS:
            if len(args) > 1:
                at = torch.result_type(*map(value, args))
            else:
                at = value(args[0]).dtype
        kinds = [torch.bool if name == "where" and k == 0 else at for k in range(len(args))]
        if name == "elu":
            if len(args) > 2 and set(map(float, args[2:])) != {1.0}:
                raise Unfit("no loops for a scaled elu")
            args = [*args, 1.0][:2]
        if "rounding_mode" in given:
            raise Unfit("no loops for rounded quotients")
        alpha = given.get("alpha", 1)
        if alpha != 1:
            args[1] = Scaled(args[1], alpha)
        text = text.replace("{S}", kind(at)).replace("{F}", "f" if at == torch.float32 else "")
        guarded = name == "where"
        parts = tuple(self.operand(a, k, guarded) for a, k in zip(args, kinds, strict=False))
        return FusedOperation(text, parts, tuple(like.shape), dtype)

    def operand(self, arg: Any, dtype: torch.dtype, guarded: bool = False) -> Any:
        """An argument inside a loop. ``guarded``: behind a condition, where no function is called."""
        if isinstance(arg, Scaled):
            inside = self.operand(arg.node, dtype)
            return FusedOperation(f"({literal(arg.by, dtype)} * {{a}})", (inside,), shape_of(arg.node), dtype)
        if not isinstance(arg, torch.fx.Node):
            return literal(arg, dtype)
        entry = self.waiting.get(arg)
        if entry is not None and not (
            guarded and any(call in entry.printed(lambda view: "x") for call in CALLS)
        ):
            del self.waiting[arg]
            if entry.dtype == dtype:
                return entry
            return FusedOperation(f"(({kind(dtype)}){{a}})", (entry,), entry.shape, dtype)
        found = self.view(arg)
        if found.dtype == dtype:
            return found
        return FusedOperation(f"(({kind(dtype)}){{a}})", (found,), found.shape, dtype)


def way_of(target: Any) -> tuple[str, str, bool]:
    """The way an operation is written in C ("" if it is not), its name, and whether it writes in place."""
    name = target._schema.name.split("::")[1]
    write = name.endswith("_") and not name.endswith("__")
    if write:
        name = name.rstrip("_")
    returned = target._schema.returns
    if name in SHAPES if write else bool(returned) and returned[0].alias_info is not None:
        return "look", name, write
    if name in ENTRIES or name in EXTRA or name in COPIES:
        return "entries", name, write
    return "other" if name in OTHERS and (not write or name in WRITES) else "", name, write


def part_of(operation: Any) -> Callable | None:
    """The formula of an operation without loops; None for one that has some."""
    return parts.part_of(operation, lambda one: way_of(one)[0] != "")


@dataclass(frozen=True)
class Scaled:
    """An argument times a number."""

    node: Any
    by: float


def value(arg: Any) -> Any:
    """An argument's recorded value, or the number that it is."""
    if isinstance(arg, torch.fx.Node):
        return arg.meta["val"]
    return arg


def shape_of(arg: Any) -> tuple[int, ...]:
    """The shape of an argument; () for a number."""
    if isinstance(arg, torch.fx.Node):
        return tuple(arg.meta["val"].shape)
    return ()


def shaped(node: Node) -> tuple[int, ...]:
    """The shape of a result; () for several."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    return ()
