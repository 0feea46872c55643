"""The base of the operations of programs, and values with named axes.

A value is laid out as ``[axes in order ..., event dims ...]``. An axis is one binder made concrete:
every element, a minibatch of them, or a chunk of a full pass.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from fccomodel.library.formulas import Algebra
from fccomodel.library.proximal import Proximal

Event = tuple[int, ...]
#: An attribute's type as annotations write it; checked entry by entry where it is a tuple.
Kind = Any


@dataclass(frozen=True, eq=False, kw_only=True)
class Axis:
    """An axis of values: one binder made concrete.

    name      a name that no other axis has
    order     its place in the layout of values
    kind      ``all`` (every element), ``sample`` (a minibatch) or ``chunk`` (a slice of a full pass)
    elements  the name, in the whole program, of the set of these elements; empty for one that has none
    """

    name: str
    order: int
    size: int
    kind: str
    elements: str = ""

    @property
    def title(self) -> str:
        """How names of values say that they lie along the axis: equal sets have one title."""
        return self.elements or self.name


Axes = tuple[Axis, ...]


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """How a constant comes about, as Python text: ``2 / n_z``.

    sizes   the numbers of elements along axes that the text names
    """

    text: str
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def unsigned(self) -> Arithmetic:
        """The arithmetic without a minus sign in front."""
        return replace(self, text=self.text.removeprefix("-"))

    def with_names(self, name_of: Callable[[str], str]) -> str:
        """The text with another name, or a number, for each size."""
        return SIZE.sub(lambda size: name_of(size.group()), self.text)

    def in_numbers(self) -> str:
        """The text with its sizes as numbers."""
        return self.with_names(lambda name: str(self.sizes[name]))


#: the name of a number of elements
SIZE = re.compile(r"\bn_\w+")


@dataclass(eq=False, kw_only=True)
class Val:
    """A value of a program: an operation on other values.

    varying  depends on a decision variable through differentiable operations
    static   depends on the bound data alone
    formula  the arithmetic that gave a constant; None for a number of the model
    """

    id: int
    op: Op
    args: tuple[Val, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes = ()
    event: Event = ()
    varying: bool = False
    static: bool = False
    formula: Arithmetic | None = None


def in_order(axes: Iterable[Axis]) -> Axes:
    """The different ones of some axes, in layout order."""
    return tuple(sorted(set(axes), key=lambda axis: axis.order))


def union(vals: Iterable[Val]) -> Axes:
    """The axes of some values, in layout order."""
    return in_order(axis for val in vals for axis in val.axes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pull:
    """A contribution to a variable's gradient: the adjoint of the value ``source`` that met the variable."""

    variable: str
    source: Val
    adjoint: Val


class Builder(Algebra[Val]):
    """The interface of ``Graph`` that makes values."""

    @abstractmethod
    def make(self, op: Op, args: Iterable[Val] = (), **attrs: Any) -> Val:
        """The value ``op(args; attrs)``."""

    @abstractmethod
    def size(self, axes: Axes) -> Val:
        """The number of elements along some axes."""


class Reverse(Protocol):
    """A reverse derivative under way: see ``backward``."""

    @property
    def graph(self) -> Builder:
        """The interface for building derivatives."""

    def give(self, val: Val, adjoint: Val) -> None:
        """Adds to the adjoint of a value."""

    def pull(self, variable: str, source: Val, adjoint: Val) -> None:
        """Adds to the gradient of a variable."""


@dataclass(frozen=True, kw_only=True)
class MoreauEnvelope:
    """A Moreau envelope as emitted programs compute it.

    function  the non-smooth function f
    name      of its smoothing parameter: ``h.lam_NAME``
    scale     the hyper-parameter that multiplies f, or None
    dims      the dims that f takes as one vector, () entry by entry
    centred   whether it has a centre
    damped    whether ``h.tau`` multiplies the smoothing parameter: a step of a dual block
    """

    function: Proximal
    name: str
    scale: str | None
    dims: tuple[int, ...]
    centred: bool = True
    damped: bool = False


class Writer(Protocol):
    """Text under way: see ``Printer``."""

    layout: Mapping[str, tuple[int, int, Event]]
    autograd: bool
    dual: bool
    shared: bool

    def ref(self, val: Val, axes: Axes | None = None, event: int | None = None) -> str:
        """The text of a value, lined up with axes and a number of event dims."""

    def expanded(self, val: Val, axes: Axes, event: Event = ()) -> str:
        """The text of a tensor that has all of some axes and dims."""

    def filled(self, shape: str, number: str) -> str:
        """A tensor of one number, whose shape is given as a text."""

    def arithmetic(self, formula: Arithmetic) -> str:
        """The text of a constant's arithmetic."""

    def estimate(self, val: Val) -> str:
        """The text of the estimate that a minibatch value moves."""

    def smooth(self, kind: str, envelope: MoreauEnvelope, argument: str, centre: str) -> str:
        """The call of the function for an envelope: its ``value``, or its ``slope``."""


class Op:
    """An operation; a subclass's docstring is its meaning, and its only object is used in graphs.

    name           in messages
    arguments      their names; ``xs...`` stands for any number of them
    attributes     what else it takes, with types; those that ``defaults`` has may be left out
    source         without arguments it is known from the data alone
    changing       it reads what changes from step to step
    inline         prints inside the expression that uses it, where only one does
    python         prints as a Python number
    spreads        gives its arguments axes that they lack: an adjoint counts once for each element
    constant       why no derivative goes through it, if none does
    silent         why it has no text of its own, if it has none
    """

    name: ClassVar[str]
    arguments: ClassVar[tuple[str, ...]] = ()
    attributes: ClassVar[Mapping[str, Kind]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    source: ClassVar[bool] = False
    changing: ClassVar[bool] = False
    inline: ClassVar[bool] = False
    python: ClassVar[bool] = False
    spreads: ClassVar[bool] = False
    constant: ClassVar[str] = ""
    silent: ClassVar[str] = ""

    def __repr__(self) -> str:
        return self.name

    @property
    def signature(self) -> str:
        """The name with its arguments."""
        if self.arguments:
            return f"{self.name}({', '.join(self.arguments)})"
        return self.name

    # ---------------------------------------------------------------------------------------- shape
    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the value: ``axes`` among its attributes, or those of its arguments."""
        if "axes" in self.attributes:
            return attrs["axes"]
        return union(args)

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """The event dims of the value: ``event`` among its attributes, or those of the first argument."""
        if "event" in self.attributes:
            return attrs["event"]
        if args:
            return args[0].event
        return ()

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """The value depends on a variable in a way that has a derivative."""
        return any(a.varying for a in args)

    def static(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """The value is known from the data alone."""
        return not self.changing and all(a.static for a in args) and (bool(args) or self.source)

    def fault(self, val: Val) -> str:
        """The fault of a value beyond its arguments and the types of its attributes, or an empty text."""
        return ""

    # ----------------------------------------------------------------------------------------- text
    def text(self, writer: Writer, val: Val) -> str:
        """The torch expression."""
        raise AssertionError(self.silent)

    def kept(self, val: Val) -> str:
        """The attribute of the data that holds a static value as it is, if there is one."""
        return ""

    def stem(self, val: Val) -> str:
        """The first part of a value's name."""
        return "t1"

    # ----------------------------------------------------------------------------------- derivative
    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Gives arguments that vary their part of the adjoint of ``val``."""
        raise AssertionError(f"{self.name}: {self.constant}")

    def combines(self, val: Val) -> bool:
        """Python numbers combined are one again."""
        return False

    def pulled(self, source: Val) -> tuple[Val, ...]:
        """The values that the text of its contribution to a gradient refers to."""
        return ()

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """The contribution to the gradient of a variable, flat."""
        raise AssertionError(f"{self.name} meets no variable")


def python(val: Val) -> bool:
    """The text of a value is a Python number: one of the model's, or the sum, product, ... of such
    numbers alone."""
    return val.op.python or val.op.combines(val) and all(map(python, val.args))


def along(axes: Axes) -> str:
    """A name's end that says which axes."""
    if axes:
        return "_" + "_".join(axis.title for axis in axes)
    return ""


def dims(val: Val, over: Iterable[Axis]) -> str:
    """The torch ``dim`` of some axes of a value."""
    places = sorted(val.axes.index(a) for a in over)
    if len(places) == 1:
        return str(places[0])
    return str(tuple(places))


def einsum(writer: Writer, args: Sequence[Val], events: Sequence[str], axes: Axes, event: str) -> str:
    """The text of a sum of products, by letters of each argument's entries and of those that stay."""
    letters = {a: chr(ord("a") + k) for k, a in enumerate(union(args))}
    inputs = ("".join(letters[a] for a in arg.axes) + more for arg, more in zip(args, events, strict=True))
    outputs = "".join(letters[a] for a in axes) + event
    return f'torch.einsum("{",".join(inputs)}->{outputs}", {", ".join(map(writer.ref, args))})'


def sizes(axes: Axes, event: Event = ()) -> tuple[int, ...]:
    """The shape of a value on these axes."""
    return tuple(a.size for a in axes) + event


def length(axis: Axis) -> str:
    """The text of an axis's length; a slice is as long as its positions, whose name is the axis's."""
    if axis.kind == "chunk":
        return f"len({axis.name})"
    return str(axis.size)


def shape_text(axes: Axes, event: Event = ()) -> str:
    """The text of a value's shape on these axes, ``(600, 20, 3)``."""
    parts = [*map(length, axes), *map(str, event)]
    if len(parts) == 1:
        return f"({parts[0]},)"
    return f"({', '.join(parts)})"


def spread_text(before: Axes, axes: Axes, event: Event = ()) -> str:
    """The text of the shape to which a value on the axes ``before`` is expanded.

    Its own axes are -1, so that they stay as they are: evaluations between stages take fewer rows.
    """
    parts = ["-1" if axis in before else length(axis) for axis in axes] + [*map(str, event)]
    if len(parts) == 1:
        return f"({parts[0]},)"
    return f"({', '.join(parts)})"


def grid(axis: Axis, axes: Axes) -> str:
    """Positions along an axis, lined up with others."""
    after = len(axes) - axes.index(axis) - 1
    return f"torch.arange({length(axis)}, device=data.device)" + (f"[:{', None' * after}]" if after else "")


def number(value: float) -> str:
    """A number as Python text, integers without a decimal point."""
    if value != value or value in (float("inf"), float("-inf")):
        return f"float('{value}')"
    if value == int(value) and abs(value) < 1e15:
        if value >= 0:
            return f"{int(value)}"
        return f"({int(value)})"
    if value >= 0:
        return repr(value)
    return f"({value!r})"


def bare(text: str) -> str:
    """The text without parentheses around the whole of it."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for place, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if depth == 0 and place < len(text) - 1:
                return text
        text = text[1:-1]
    return text
