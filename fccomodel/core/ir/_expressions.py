"""Index sets, and expressions over their elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fccomodel.core.source import NOWHERE, Span

Dim = int | str
Shape = tuple[Dim, ...]


# --------------------------------------------------------------------------------------- index sets
@dataclass(frozen=True, eq=False, kw_only=True)
class Set:
    """A set that a binder ranges over; ``name`` is how the user calls it (or its text, for a literal)."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSet(Set):
    """Rows of a table: all of them, or those where ``where`` (about ``row`` alone) holds."""

    table: str
    row: Binder | None = None
    where: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueSet(Set):
    """Numbers: listed in ``items``, or ``low .. high by step`` (expressions of constants, params and
    dims)."""

    items: tuple[Expr, ...] | None = None
    low: Expr | None = None
    high: Expr | None = None
    step: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSet(Set):
    """Labels: listed in the model (``labels``), or coming with the data (None). Elements are numbered
    by position."""

    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Set):
    """``family(args)[shape]``: one of ``fccomodel.library.distributions``, or a ``sampler`` that is
    bound from Python."""

    family: str
    args: tuple[Expr, ...] = ()
    shape: Shape = ()
    sampler: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorSet(Set):
    """A simple set of vectors: ``box simplex capped_simplex ball ball1 nonneg affine``.

    It is a variable's domain, or what ``max[q in ..]`` ranges over. ``centre`` moves it (a
    constraint's set alone has one).
    """

    family: str
    args: tuple[Expr, ...] = ()
    shape: Shape = ()
    centre: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Binder:
    """``name in domain`` or ``name ~ domain``; one binder is one draw."""

    name: str
    kind: str
    domain: Set
    span: Span = NOWHERE


# -------------------------------------------------------------------------------------- expressions
@dataclass(frozen=True, eq=False, kw_only=True)
class Expr:
    """A typed expression; ``shape`` is () for a scalar."""

    shape: Shape = ()
    span: Span = NOWHERE

    @property
    def children(self) -> tuple[Expr, ...]:
        """The direct subexpressions."""
        return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Const(Expr):
    """A number that the text fixes (literals, ``const``, folded constants)."""

    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Label(Expr):
    """A label in quotes, compared with a column or an element of a label set: ``z.sex == "Female"``."""

    text: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Size(Expr):
    """The number that a ``dim`` (or a set's size) stands for, used in a formula."""

    dim: Dim


@dataclass(frozen=True, eq=False, kw_only=True)
class Param(Expr):
    """A declared ``param``, or a data array without rows (``data c : real[A]``); see
    ``Problem.params``, ``Problem.arrays``."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Var(Expr):
    """A decision variable; for ``params(s)`` the shape is ``("params(s)",)``."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Column(Expr):
    """``z.x``: a column at the row drawn or iterated by ``binder``; ``name`` None is the draw of a
    distribution itself."""

    binder: Binder
    name: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Element(Expr):
    """The binder itself: a number (value set), a label's position (label set), a row's identity (row
    set), or a vector."""

    binder: Binder


@dataclass(frozen=True, eq=False, kw_only=True)
class Item(Expr):
    """``base[indices]``: each index is an Element (used by position in its set) or a Const (counted
    from 1 for dims, matched by value or label for sets; ``check`` has turned those into positions
    counted from 0)."""

    base: Expr
    indices: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.base, *self.indices)


@dataclass(frozen=True, eq=False, kw_only=True)
class Apply(Expr):
    """An atom applied: ``add sub mul div neg pow matmul``, ``le lt ge gt eq ne and or not``, or any
    atom by its name."""

    op: str
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, eq=False, kw_only=True)
class NetCall(Expr):
    """``s(w; arg)``."""

    net: str
    params: Var
    arg: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.params, self.arg)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Expr):
    """``kind(options)[binders | condition] body``; ``fccomodel.library.reductions`` has the kinds."""

    kind: str
    binders: tuple[Binder, ...]
    body: Expr
    condition: Expr | None = None
    options: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.body, *([] if self.condition is None else [self.condition]), *self.options.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class Exists(Expr):
    """Some element of ``binder`` satisfies the condition: a condition on the binders around it (made
    by ``check``)."""

    binder: Binder
    condition: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.condition,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Let:
    """A named quantity, or a family of them over ``binders``: its members are those that ``condition``
    accepts."""

    name: str
    binders: tuple[Binder, ...]
    body: Expr
    condition: Expr | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class LetRef(Expr):
    """A use of a ``let``; ``args`` (Element or Const, one per binder) say which member."""

    let: Let
    args: tuple[Expr, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, eq=False, kw_only=True)
class Hole(Expr):
    """An argument u of an outer function f(u): where a normal form cut an inner expectation out (never
    made by ``check``)."""

    name: str
    args: tuple[Expr, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args
