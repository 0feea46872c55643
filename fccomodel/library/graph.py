"""The target program before it is text: values with named axes, built with value numbering, and their reverse derivative.

A value is laid out as ``[axes in order ..., event dims ...]``. An axis is one binder made concrete: every element, a
minibatch of them, or a chunk of a full pass. Gradients are built from the same operations as values, down to the scores
``X @ w`` (and net outputs), which are the only places where the variables are met.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fccomodel.core.source import Span
from fccomodel.library import atoms


@dataclass(frozen=True, eq=False, kw_only=True)
class Axis:
    """``kind``: ``all`` (every element), ``sample`` (a minibatch), ``chunk`` (a slice of a full pass); ``order`` fixes layout."""

    name: str
    order: int
    size: int
    kind: str


@dataclass(eq=False, kw_only=True)
class Val:
    """One value: an operation on other values."""

    id: int
    op: str
    args: tuple[Val, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[Axis, ...] = ()
    event: tuple[int, ...] = ()
    varying: bool = False  # depends on a decision variable through differentiable operations
    static: bool = False  # depends on the bound data alone
    span: Span | None = None

    @property
    def number(self) -> float | None:
        """The value of a constant, else None."""
        return self.attrs["value"] if self.op == "const" else None


def merge_axes(vals: Iterable[Val]) -> tuple[Axis, ...]:
    """The union of the axes, in layout order."""
    return tuple(sorted({axis for val in vals for axis in val.axes}, key=lambda axis: axis.order))


def broadcast(events: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of an entrywise operation: scalars spread over arrays."""
    return functools.reduce(lambda a, b: a if len(a) >= len(b) else b, events, ())


def atom_of(name: str) -> atoms.Atom:
    """The atom of a name that is known to be one."""
    found = atoms.get(name)
    assert found is not None, name
    return found


#: operations whose value is fixed by the data when their arguments are
SOURCES_STATIC = {"const", "param", "array_data"}


#: operations that read a state which changes from step to step
CHANGING = {"centre", "track", "scatter_val", "unpick", "unsegment", "entry_t", "score_t", "table_score_t"}


class Graph:
    """A builder with value numbering: asking twice for the same operation gives the same value."""

    def __init__(self) -> None:
        self.vals: list[Val] = []
        self.known: dict[Any, Val] = {}
        self.axes = 0

    def axis(self, name: str, size: int, kind: str) -> Axis:
        self.axes += 1
        return Axis(name=f"{name}", order=self.axes, size=size, kind=kind)

    def make(
        self,
        op: str,
        args: Iterable[Val] = (),
        *,
        axes: tuple[Axis, ...] | None = None,
        event: tuple[int, ...] = (),
        varying: bool | None = None,
        static: bool | None = None,
        span: Span | None = None,
        **attrs: Any,
    ) -> Val:
        """The value ``op(args; attrs)``; axes default to the union of the arguments'."""
        args = tuple(args)
        key = (op, tuple(a.id for a in args), tuple(sorted((k, _key(v)) for k, v in attrs.items())), event)
        if key in self.known:
            return self.known[key]
        if axes is None:
            axes = merge_axes(args)
        if varying is None:
            varying = any(a.varying for a in args)
        if static is None:
            static = op in SOURCES_STATIC or (op not in CHANGING and bool(args) and all(a.static for a in args))
        val = Val(
            id=len(self.vals), op=op, args=args, attrs=attrs, axes=axes, event=event, varying=varying, static=static, span=span
        )
        self.vals.append(val)
        self.known[key] = val
        return val

    # ------------------------------------------------------------------------------------------------ scalar operations
    def const(self, value: float) -> Val:
        return self.make("const", value=float(value), static=True)

    def apply(self, name: str, *args: Val, span: Span | None = None) -> Val:
        """A scalar atom, entrywise; constants fold."""
        name = atom_of(name).name
        folded = self._fold(name, args)
        if folded is not None:
            return folded
        flat = name in FLAT
        return self.make(
            "ew", args, event=broadcast(a.event for a in args), varying=False if flat else None, atom=name, span=span
        )

    def _fold(self, name: str, args: tuple[Val, ...]) -> Val | None:
        numbers = [a.number for a in args]
        if all(n is not None for n in numbers) and name not in FOLDED:
            with np.errstate(all="ignore"):
                return self.const(float(atom_of(name).value(*(np.float64(n) for n in numbers))))
        if name == "neg":
            if numbers[0] is not None:
                return self.const(-numbers[0])
            if args[0].op == "ew" and args[0].attrs["atom"] == "neg":
                return args[0].args[0]
        elif name in ("add", "sub", "mul", "div", "pow") and len(args) == 2:
            a, b = numbers
            if a is not None and b is not None:
                return self.const(
                    {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b, "pow": lambda: a**b}[
                        name
                    ]()
                )
            if name == "add" and a == 0:
                return args[1]
            if name in ("add", "sub") and b == 0:
                return args[0]
            if name == "sub" and a == 0:
                return self.apply("neg", args[1])
            if name == "mul" and (a == 0 or b == 0):
                return self.const(0.0)
            if name == "mul" and a is not None and b is None and args[1].op == "ew" and args[1].attrs["atom"] == "mul":
                inner = args[1].args
                if inner[0].number is not None:
                    return self.apply("mul", self.const(a * inner[0].number), inner[1])
            if name == "mul" and b is not None:
                return self.apply("mul", args[1], args[0])
            if name == "mul" and a == 1:
                return args[1]
            if name == "mul" and a == -1:
                return self.apply("neg", args[1])
            if name == "div" and b == 1:
                return args[0]
            if (
                name == "div"
                and b is not None
                and args[0].op == "ew"
                and args[0].attrs["atom"] == "mul"
                and args[0].args[0].number is not None
            ):
                return self.apply("mul", self.const(args[0].args[0].number / b), args[0].args[1])
            if name == "div" and a == 0:
                return self.const(0.0)
            if name == "pow" and b == 1:
                return args[0]
            if name == "pow" and b == 0:
                return self.const(1.0)
        return None

    # ------------------------------------------------------------------------------------------------------- reductions
    def total(self, val: Val, axes: Iterable[Axis]) -> Val:
        """Sum over axes (those the value lacks count by their size)."""
        axes = tuple(axes)
        times = math.prod(a.size for a in axes if a not in val.axes)
        have = tuple(a for a in val.axes if a in axes)
        rest = tuple(a for a in val.axes if a not in have)
        if not have:
            result = val
        elif val.op == "array" and val.attrs["atom"] == "outer":
            result = self.make("contract", val.args, axes=rest, event=val.event)
        else:
            result = self.make("sum_axes", [val], axes=rest, event=val.event, over=have)
        return self.apply("mul", self.const(times), result)

    def average(self, val: Val, axes: Iterable[Axis]) -> Val:
        """Mean over axes."""
        have = tuple(a for a in val.axes if a in tuple(axes))
        if not have:
            return val
        return self.make("mean_axes", [val], axes=tuple(a for a in val.axes if a not in have), event=val.event, over=have)

    def sum_event(self, val: Val) -> Val:
        """Sum of all entries."""
        return val if not val.event else self.make("sum_event", [val], event=())

    def evaluate(self, text: str, names: Mapping[str, Val]) -> Val:
        """A formula of an atom's derivative, such as ``y*(1 - y)``, on values."""
        return self._ast(_parsed(text), names)

    def _ast(self, node: ast.expr, names: Mapping[str, Val]) -> Val:
        match node:
            case ast.Constant(value=int() | float() as value):
                return self.const(value)
            case ast.Name(id="pi"):
                return self.const(math.pi)
            case ast.Name(id=name):
                return names[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.apply("neg", self._ast(operand, names))
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self.array("matmul", [self._ast(left, names), self._ast(right, names)])
            case ast.BinOp(left=left, op=op, right=right):
                return self.apply(OPERATORS[type(op)], self._ast(left, names), self._ast(right, names))
            case ast.Call(func=ast.Name(id=name), args=args):
                atom = atom_of(name)
                inner = [self._ast(a, names) for a in args]
                return self.apply(name, *inner) if isinstance(atom, atoms.ScalarAtom) else self.array(name, inner)
        raise ValueError(f"not a derivative formula: {ast.dump(node)}")

    def array(self, name: str, args: Iterable[Val], span: Span | None = None) -> Val:
        """An array atom on event dims, batched over axes."""
        args = tuple(args)
        atom = atom_of(name)
        names = dict(zip(atom.names(len(args)), args, strict=True))
        sizes = atom.shape(tuple(a.event for a in args))
        event = (n if isinstance(n, int) else self.evaluate(n, names).number for n in sizes)
        return self.make("array", args, event=tuple(int(n or 0) for n in event), atom=atom.name, span=span)


#: operations whose constants fold by the rules of arithmetic
FOLDED = {"neg", "add", "sub", "mul", "div", "pow"}
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}
#: atoms with derivative zero wherever it exists
FLAT = {"step", "sign", "le", "lt", "ge", "gt", "eq", "ne", "and", "or", "not"}


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.replace("^", "**"), mode="eval").body


def _key(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_key(v) for v in value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else id(value)


def differentiable(atom: atoms.Atom, val: Val) -> list[Val]:
    """The arguments that have a derivative: all but the atom's parameters."""
    return [arg for name, arg in zip(atom.names(len(val.args)), val.args, strict=True) if name not in atom.parameters]


def site(val: Val) -> atoms.Site:
    """How the atom of a value is used."""
    numbers = tuple(a.number for a in val.args)
    return atoms.Site(
        shapes=tuple(a.event for a in val.args), numbers=numbers, python=tuple(a.op in ("const", "param") for a in val.args)
    )
