"""The target program before it is text: a graph of values with named axes.

Gradients are built from the same operations as values, down to the scores ``X @ w`` (and net
outputs), which are the only places where the variables are met.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from fccomodel.library.formulas import atom_of
from fccomodel.program.operations import sums
from fccomodel.program.operations.base import Arithmetic, Axes, Axis, Builder, Op, Val
from fccomodel.program.operations.base import number as number_text
from fccomodel.program.operations.entrywise import array, entrywise
from fccomodel.program.operations.sources import const

#: integers below it are exact as floats, and print without a decimal point
EXACT = 1e15
#: characters of the longest arithmetic that is kept
LONGEST_FORMULA = 40


class Graph(Builder):
    """A builder with value numbering: asking twice for the same operation gives the same value."""

    def __init__(self) -> None:
        self.vals: list[Val] = []
        self.known: dict[Any, Val] = {}
        self.wholes: dict[Axis, Axis] = {}
        self.axes = 0

    def axis(self, name: str, size: int, kind: str, elements: str = "") -> Axis:
        """A new axis, laid out behind those before it."""
        self.axes += 1
        return Axis(name=name, order=self.axes, size=size, kind=kind, elements=elements)

    def whole(self, axis: Axis) -> Axis:
        """The complete axis that one of slices goes through."""
        if axis not in self.wholes:
            self.axes += 1
            self.wholes[axis] = replace(axis, kind="all")
        return self.wholes[axis]

    def make(self, op: Op, args: Iterable[Val] = (), **attrs: Any) -> Val:
        """The value ``op(args; attrs)``: an existing one, if there is one."""
        args, attrs = tuple(args), {**op.defaults, **attrs}
        keys_of_attrs = tuple(sorted((name, _key(value)) for name, value in attrs.items()))
        key = (op, tuple(a.id for a in args), keys_of_attrs)
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
        """The value of a number; one that a folded constant has too prints as the plain number."""
        number = self.make(const, value=float(value))
        number.formula = None
        return number

    def size(self, axes: Axes) -> Val:
        """The number of elements along some axes, which prints as ``n_z`` for an axis z."""
        names = {f"n_{axis.title}": axis.size for axis in axes}
        count = math.prod(names.values())
        if count == 1 or len(names) < len(axes):
            return self.const(count)
        return self.folded(count, Arithmetic(text=" * ".join(names), sizes=names))

    def fold(self, name: str, args: tuple[Val, ...], value: float) -> Val:
        """A constant with the arithmetic that gave it, where that is short and says more than the number."""
        return self.folded(value, formula(name, args, value))

    def folded(self, value: float, formula: Arithmetic | None) -> Val:
        """The value of a number with its arithmetic; one that is known already keeps its own."""
        known = len(self.vals)
        if formula is not None and formula.sizes:
            number = self.make(const, value=float(value), sizes=formula.text)
        else:
            number = self.make(const, value=float(value))
        if number.id == known:
            number.formula = formula
        return number

    def number(self, value: Val) -> float | None:
        """The number that a constant stands for, or None."""
        if value.op is const:
            return value.attrs["value"]
        return None

    def parts(self, value: Val) -> tuple[str, tuple[Val, ...]]:
        """The atom and the arguments of an entrywise value, else nothing."""
        if value.op is entrywise:
            return (value.attrs["atom"], value.args)
        return ("", ())

    def entrywise(self, name: str, args: tuple[Val, ...]) -> Val:
        """The value of an atom; multiples of sums are simplified."""
        if name == "mul" and (product := self.scaled(*args) or self.scaled(*args[::-1])) is not None:
            return product
        return self.make(entrywise, args, atom=name)

    def scaled(self, u: Val, v: Val) -> Val | None:
        """The product of u and a constant times v, whose constant stands with what has fewer numbers;
        None of another v."""
        name, parts = self.parts(v)
        if name != "mul" or self.number(parts[0]) is None or self.number(u) is not None:
            return None
        if entries(self.lightest(u)) >= entries(parts[1]):
            return None
        return self.apply("mul", self.with_factor(parts[0], u), parts[1])

    def lightest(self, u: Val, deep: int = 4) -> Val:
        """The factor of a product, of products in it too, that has the fewest numbers."""
        name, parts = self.parts(u)
        if deep and name == "mul":
            return min((self.lightest(part, deep - 1) for part in parts), key=entries)
        return u

    def with_factor(self, c: Val, u: Val, deep: int = 4) -> Val:
        """The product of a constant c and u, with the constant at the factor that has the fewest numbers."""
        name, parts = self.parts(u)
        if name == "div" and self.number(parts[1]):
            return self.apply("mul", self.apply("div", c, parts[1]), parts[0])
        if not deep or name != "mul" or self.number(parts[0]) is not None:
            return self.apply("mul", c, u)
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
        """The sum of vectors times numbers with more axes, without the products; None for other values."""
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
    """The number of entries of a value."""
    return math.prod([*(a.size for a in val.axes), *val.event])


def formula(name: str, args: tuple[Val, ...], value: float) -> Arithmetic | None:
    """The arithmetic of a folded constant, or None where the number alone reads as well.

    Python evaluates it to the same float: operands are floats, or integers small enough to be exact,
    and a sign in front changes no rounding.
    """
    if name not in FOLDED or not math.isfinite(value) or abs(value) >= EXACT:
        return None
    operands = [operand(arg) for arg in args]
    sizes = {size: count for part in operands for size, count in part.sizes.items()}
    if value == int(value) and not sizes:
        return None
    unsigned = FOLDED[name](*operands, abs(value))
    if not unsigned or len(unsigned) > LONGEST_FORMULA:
        return None
    if value < 0:
        return Arithmetic(text=f"-{unsigned}", sizes=sizes)
    return Arithmetic(text=unsigned, sizes=sizes)


def operand(number: Val) -> Arithmetic:
    """The arithmetic of a constant's absolute value."""
    if number.formula is None:
        return Arithmetic(text=number_text(abs(number.attrs["value"])))
    return number.formula.unsigned


def product(left: Arithmetic, right: Arithmetic, value: float) -> str:
    """The text of a product: of a number and a quotient 1 / n it is a quotient, where that rounds alike."""
    if is_number(right.text):
        left, right = right, left
    if left.text == "1":
        if is_number(right.text) and not right.sizes:
            return ""
        return right.text
    if right.text.startswith("1 / ") and is_number(left.text) and is_quotient(right.text):
        divisors = right.in_numbers().split(" / ")[1:]
        if functools.reduce(operator.truediv, map(float, divisors), float(left.in_numbers())) == value:
            return f"{left.text}{right.text.removeprefix('1')}"
    return f"{enclosed(left.text)} * {enclosed(right.text)}"


def quotient(left: Arithmetic, right: Arithmetic, value: float) -> str:
    """The text of a quotient; one division after another needs no parentheses."""
    if right.text == "1":
        return left.text
    if is_quotient(left.text):
        return f"{left.text} / {enclosed(right.text)}"
    return f"{enclosed(left.text)} / {enclosed(right.text)}"


def negative(operand: Arithmetic, _: float) -> str:
    """The text of minus a constant, without its sign."""
    if is_number(operand.text) and not operand.sizes:
        return ""
    return operand.text


def is_number(text: str) -> bool:
    """Whether an operand is a single number."""
    return " " not in text


def is_quotient(text: str) -> bool:
    """Whether an operand is one number divided by others in turn."""
    return all(sign == "/" for sign in text.split(" ")[1::2]) and "(" not in text


def enclosed(text: str) -> str:
    """An operand in parentheses, unless it is a single number."""
    if is_number(text):
        return text
    return f"({text})"


#: the operations whose constants keep their arithmetic, with how it is written
FOLDED: dict[str, Callable[..., str]] = {"mul": product, "div": quotient, "neg": negative}


def below(roots: Iterable[Val]) -> dict[int, Val]:
    """Some values and all values that they depend on, by their ids."""
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
