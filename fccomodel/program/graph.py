"""The target program before it is text: a graph of values with named axes.

Gradients are built from the same operations as values, down to the scores ``X @ w`` (and net
outputs), which are the only places where the variables are met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from fccomodel.library.formulas import atom_of
from fccomodel.program.operations import sums
from fccomodel.program.operations.base import Axis, Builder, Op, Val
from fccomodel.program.operations.entrywise import array, entrywise
from fccomodel.program.operations.sources import const


class Graph(Builder):
    """A builder with value numbering: asking twice for the same operation gives the same value."""

    def __init__(self) -> None:
        self.vals: list[Val] = []
        self.known: dict[Any, Val] = {}
        self.wholes: dict[Axis, Axis] = {}
        self.axes = 0

    def axis(self, name: str, size: int, kind: str) -> Axis:
        """A new axis, laid out behind those before it."""
        self.axes += 1
        return Axis(name=name, order=self.axes, size=size, kind=kind)

    def whole(self, axis: Axis) -> Axis:
        """The complete axis that one of slices goes through."""
        if axis not in self.wholes:
            self.axes += 1
            self.wholes[axis] = Axis(name=axis.name, order=axis.order, size=axis.size, kind="all")
        return self.wholes[axis]

    def make(self, op: Op, args: Iterable[Val] = (), **attrs: Any) -> Val:
        args, attrs = tuple(args), {**op.defaults, **attrs}
        key = (op, tuple(a.id for a in args), tuple(sorted((k, _key(v)) for k, v in attrs.items())))
        if key not in self.known:
            val = Val(
                id=len(self.vals),
                op=op,
                args=args,
                attrs=attrs,
                axes=op.axes(args, attrs),
                event=op.event(args, attrs),
                varying=op.varying(args, attrs),
                static=op.static(args, attrs),
            )
            self.vals.append(val)
            self.known[key] = val
        return self.known[key]

    # ---------------------------------------------------------------------------------------- atoms
    def const(self, value: float) -> Val:
        return self.make(const, value=float(value))

    def number(self, value: Val) -> float | None:
        if value.op is const:
            return value.attrs["value"]
        return None

    def parts(self, value: Val) -> tuple[str, tuple[Val, ...]]:
        if value.op is entrywise:
            return (value.attrs["atom"], value.args)
        return ("", ())

    def entrywise(self, name: str, args: tuple[Val, ...]) -> Val:
        if name == "mul" and (kept := self.scaled(*args) or self.scaled(*args[::-1])) is not None:
            return kept
        return self.make(entrywise, args, atom=name)

    def scaled(self, u: Val, v: Val) -> Val | None:
        """The product of u and a constant times v, whose constant stands with what has fewer numbers;
        None of another v."""
        name, parts = self.parts(v)
        if name == "mul":
            c = self.number(parts[0])
        else:
            c = None
        if c is None or self.number(u) is not None or not entries(self.lightest(u)) < entries(parts[1]):
            return None
        return self.apply("mul", self.with_factor(c, u), parts[1])

    def lightest(self, u: Val, deep: int = 4) -> Val:
        """The factor of a product, of products in it too, that has the fewest numbers."""
        name, parts = self.parts(u)
        if deep and name == "mul":
            return min((self.lightest(part, deep - 1) for part in parts), key=entries)
        return u

    def with_factor(self, c: float, u: Val, deep: int = 4) -> Val:
        """c u, the constant at that factor."""
        name, parts = self.parts(u)
        if name == "div" and (d := self.number(parts[1])):
            return self.apply("mul", self.const(c / d), parts[0])
        if not deep or name != "mul" or self.number(parts[0]) is not None:
            return self.apply("mul", self.const(c), u)
        a, b = (entries(self.lightest(part, deep - 1)) for part in parts)
        left, right = parts
        if a <= b:
            return self.apply("mul", self.with_factor(c, left, deep - 1), right)
        return self.apply("mul", left, self.with_factor(c, right, deep - 1))

    def array(self, name: str, args: Iterable[Val]) -> Val:
        """An array atom on event dims, batched over axes."""
        args, atom = tuple(args), atom_of(name)
        names = dict(zip(atom.names(len(args)), args, strict=True))
        sizes = atom.shape(tuple(a.event for a in args))
        event = (n if isinstance(n, int) else self.number(self.evaluate(n, names)) for n in sizes)
        return self.make(array, args, event=tuple(int(n or 0) for n in event), atom=atom.name)

    # ----------------------------------------------------------------------------------- reductions
    def total(self, val: Val, axes: Iterable[Axis]) -> Val:
        """The sum over axes; those that the value lacks count by their size."""
        return sums.total(self, val, tuple(axes))

    def weighed(self, val: Val, axes: Iterable[Axis]) -> Val | None:
        """The same of vectors times numbers that have more axes, without the products; None of another
        value."""
        return sums.weighed(self, val, tuple(axes))

    def average(self, val: Val, axes: Iterable[Axis]) -> Val:
        """The mean over axes."""
        return sums.average(self, val, tuple(axes))

    def sum_event(self, val: Val) -> Val:
        """The sum of all entries."""
        if val.event:
            return self.make(sums.sum_event, [val])
        return val


def entries(val: Val) -> int:
    """How many numbers it has."""
    return math.prod([*(a.size for a in val.axes), *val.event])


def below(roots: Iterable[Val]) -> dict[int, Val]:
    """Some values and all that they are made of, by their ids."""
    seen: dict[int, Val] = {}
    stack = list(roots)
    while stack:
        val = stack.pop()
        if val.id not in seen:
            seen[val.id] = val
            stack.extend(val.args)
    return seen


def _key(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_key(v) for v in value)
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return id(value)
