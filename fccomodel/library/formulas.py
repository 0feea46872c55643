"""Apply atoms to expressions of a model or to values of a program's graph.

Constants are simplified, and formulas of derivatives, given as text, are evaluated.
"""

from __future__ import annotations

import ast
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from fccomodel.library import atoms

V = TypeVar("V")


def atom_of(name: str) -> atoms.Atom:
    """The atom of a name that is known to exist."""
    atom = atoms.get(name)
    assert atom is not None, name
    return atom


class Algebra(ABC, Generic[V]):
    """The values to which atoms are applied."""

    @abstractmethod
    def const(self, value: float) -> V:
        """The value that stands for a number."""

    @abstractmethod
    def number(self, value: V) -> float | None:
        """The number that a value stands for, or None."""

    @abstractmethod
    def parts(self, value: V) -> tuple[str, tuple[V, ...]]:
        """The name and the arguments of the scalar atom that made a value; an empty name if there
        is none."""

    @abstractmethod
    def entrywise(self, name: str, args: tuple[V, ...]) -> V:
        """Apply a scalar atom to arguments that do not fold."""

    def fold(self, name: str, args: tuple[V, ...], value: float) -> V:
        """The value of a scalar atom at constants, which is ``value``."""
        return self.const(value)

    def array(self, name: str, args: Iterable[V]) -> V:
        """Apply an array atom."""
        raise NotImplementedError

    def apply(self, name: str, *args: V) -> V:
        """Apply a scalar atom entry by entry; constants are folded."""
        name = atom_of(name).name
        numbers = [self.number(a) for a in args]
        values = [n for n in numbers if n is not None]
        if len(values) == len(args):
            with np.errstate(all="ignore"):
                value = float(atom_of(name).value(*(np.float64(n) for n in values)))
            return self.fold(name, args, value)
        if name in FOLDS:
            folded = FOLDS[name](self, *args)
        else:
            folded = None
        if folded is None:
            return self.entrywise(name, args)
        return folded

    def evaluate(self, text: str, names: Mapping[str, V]) -> V:
        """Evaluate a derivative's formula, such as ``y*(1 - y)``, on values."""
        return self._read(_parsed(text), names)

    def _read(self, node: ast.expr, names: Mapping[str, V]) -> V:
        match node:
            case ast.Constant(value=int() | float() as value):
                return self.const(value)
            case ast.Name(id="pi"):
                return self.const(math.pi)
            case ast.Name(id=name):
                return names[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.apply("neg", self._read(operand, names))
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self.array("matmul", [self._read(left, names), self._read(right, names)])
            case ast.BinOp(left=left, op=op, right=right):
                return self.apply(
                    atoms.symbols()[type(op)], self._read(left, names), self._read(right, names)
                )
            case ast.Call(func=ast.Name(id=name), args=args):
                inner = [self._read(a, names) for a in args]
                if isinstance(atom_of(name), atoms.ScalarAtom):
                    return self.apply(name, *inner)
                return self.array(name, inner)
        raise ValueError(f"not a derivative formula: {ast.dump(node)}")


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.replace("^", "**"), mode="eval").body


# ------------------------------------------------------------------- arithmetic with some constants
def _neg(g: Algebra[V], u: V) -> V | None:
    name, inner = g.parts(u)
    if name == "neg":
        return inner[0]
    return None


def _add(g: Algebra[V], u: V, v: V) -> V | None:
    if g.number(u) == 0:
        return v
    if g.number(v) == 0:
        return u
    return None


def _sub(g: Algebra[V], u: V, v: V) -> V | None:
    if g.number(v) == 0:
        return u
    if g.number(u) == 0:
        return g.apply("neg", v)
    return None


def _mul(g: Algebra[V], u: V, v: V) -> V | None:
    """The product with its constant, if there is one, on the left."""
    a, b = g.number(u), g.number(v)
    if a == 0 or b == 0:
        return g.const(0.0)
    if b is not None:
        return g.apply("mul", v, u)
    if a is not None and (scaled := _scaled(g, v)):
        return g.apply("mul", g.apply("mul", u, scaled[0]), scaled[1])
    if a == 1:
        return v
    if a == -1:
        return g.apply("neg", v)
    return None


def _div(g: Algebra[V], u: V, v: V) -> V | None:
    b = g.number(v)
    if b == 1:
        return u
    if b and (scaled := _scaled(g, u)):
        return g.apply("mul", g.apply("div", scaled[0], v), scaled[1])
    if g.number(u) == 0:
        return g.const(0.0)
    return None


def _pow(g: Algebra[V], u: V, v: V) -> V | None:
    b = g.number(v)
    if b == 1:
        return u
    if b == 0:
        return g.const(1.0)
    return None


def _scaled(g: Algebra[V], value: V) -> tuple[V, V] | None:
    """The constant c and the value x of a product c x, or None."""
    name, args = g.parts(value)
    if name != "mul" or g.number(args[0]) is None:
        return None
    return args[0], args[1]


FOLDS: dict[str, Callable[..., Any]] = {
    "neg": _neg,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
}
