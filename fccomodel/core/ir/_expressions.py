"""Index sets, and expressions over their elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fccomodel.core.source import NOWHERE, Span

#: A size: a number, or the name of a ``dim`` or of a set.
Dim = int | str
#: The sizes of an array; () is a scalar.
Shape = tuple[Dim, ...]


# --------------------------------------------------------------------------------------- index sets
@dataclass(frozen=True, eq=False, kw_only=True)
class Set:
    """A set that a binder ranges over; ``name`` is the user's name for it (for a literal, its text)."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSet(Set):
    """Rows of a table: all of them, or those for which ``where`` (a condition on ``row``) holds."""

    table: str
    row: Binder | None = None
    where: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ValueSet(Set):
    """Numbers: a list (``items``), or ``low .. high by step``, of constants, params and dims."""

    items: tuple[Expr, ...] | None = None
    low: Expr | None = None
    high: Expr | None = None
    step: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSet(Set):
    """Labels, listed in the model, or None if the data bring them. An element is its position, from 0."""

    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Set):
    """``family(args)[shape]``: one of ``library/distributions``, or a ``sampler`` bound from Python."""

    family: str
    args: tuple[Expr, ...] = ()
    shape: Shape = ()
    sampler: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorSet(Set):
    """A simple set of vectors: ``box simplex capped_simplex ball ball1 nonneg affine``.

    It is a variable's domain, or the set of ``max[q in ..]``. ``centre`` moves the set; only the sets
    of constraints have one.
    """

    family: str
    args: tuple[Expr, ...] = ()
    shape: Shape = ()
    centre: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Binder:
    """``name in domain`` or ``name ~ domain``. One binder is one draw."""

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
    """A number that the text fixes: a literal, a ``const``, or a folded constant."""

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
    """A declared ``param``, or a data array without rows (``data c : real[A]``).

    See ``Problem.params`` and ``Problem.arrays``.
    """

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Var(Expr):
    """A decision variable; for ``params(s)`` the shape is ``("params(s)",)``."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Column(Expr):
    """``z.x``: a column at the binder's row; for a distribution ``name`` is None, and it is the draw."""

    binder: Binder
    name: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Element(Expr):
    """The binder itself: a number (value set), a label's position, a row's identity, or a vector."""

    binder: Binder


@dataclass(frozen=True, eq=False, kw_only=True)
class Item(Expr):
    """``base[indices]``: each index is an Element (its position in its set) or a Const.

    In the text, a constant index of a dim counts from 1, and one of a set is a value or a label.
    ``check`` has turned both into positions from 0.
    """

    base: Expr
    indices: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        """The base, then the indices."""
        return (self.base, *self.indices)


@dataclass(frozen=True, eq=False, kw_only=True)
class Apply(Expr):
    """An atom applied to arguments.

    ``op`` is ``add sub mul div neg pow matmul``, ``le lt ge gt eq ne and or not``, or an atom's name.
    """

    op: str
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


@dataclass(frozen=True, eq=False, kw_only=True)
class NetCall(Expr):
    """``s(w; x, m)``: a network with parameters w, applied to its inputs; a frozen one, ``t(x)``, has
    no parameters."""

    net: str
    params: Var | None
    inputs: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        """The parameters if there are any, then the inputs."""
        if self.params is None:
            return self.inputs
        return (self.params, *self.inputs)

    @property
    def column(self) -> Column | None:
        """The first input if all inputs are columns of one row, else None."""
        columns = [one for one in self.inputs if isinstance(one, Column) and one.name is not None]
        if len(columns) < len(self.inputs) or len({one.binder for one in columns}) > 1:
            return None
        return columns[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the inputs that are columns."""
        return tuple(one.name for one in self.inputs if isinstance(one, Column) and one.name is not None)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduce(Expr):
    """``kind(options)[binders | condition] body``; the kinds are in ``library/reductions``."""

    kind: str
    binders: tuple[Binder, ...]
    body: Expr
    condition: Expr | None = None
    options: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The body, the condition if there is one, then the options' values."""
        condition = () if self.condition is None else (self.condition,)
        return (self.body, *condition, *self.options.values())


@dataclass(frozen=True, eq=False, kw_only=True)
class Exists(Expr):
    """Whether some element of ``binder`` satisfies the condition; it depends on the binders around it.

    ``check`` makes it, never the user.
    """

    binder: Binder
    condition: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        """The condition."""
        return (self.condition,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Let:
    """A named quantity, or a family of them over ``binders``, with the members that ``condition`` accepts."""

    name: str
    binders: tuple[Binder, ...]
    body: Expr
    condition: Expr | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class LetRef(Expr):
    """A use of a ``let``; ``args`` (an Element or Const per binder) select the member."""

    let: Let
    args: tuple[Expr, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments; the body of the ``let`` is not among them."""
        return self.args


@dataclass(frozen=True, eq=False, kw_only=True)
class Hole(Expr):
    """The argument u of an outer function f(u): the place where a normal form cut an expectation out.

    ``check`` never makes one.
    """

    name: str
    args: tuple[Expr, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args
