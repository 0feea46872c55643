"""The problem that a model states: its declarations, objective and constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, overload

from fccomodel.core.ir._expressions import Binder, Distribution, Expr, Let, Reduce, Set, Shape, VectorSet
from fccomodel.core.ir._walking import walk
from fccomodel.core.source import NOWHERE, Source, Span

Node = TypeVar("Node", bound=Expr)


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnType:
    """The type of a column or an array.

    kind      ``real``, ``int``, or ``values``: elements of ``domain``
    domain    a ValueSet or a LabelSet
    lower     least value; ``strict_lower`` is ``>``
    upper     largest value; ``strict_upper`` is ``<``
    definite  whether the matrix is symmetric without negative eigenvalues
    """

    kind: str
    shape: Shape = ()
    domain: Set | None = None
    lower: float = float("-inf")
    upper: float = float("inf")
    strict_lower: bool = False
    strict_upper: bool = False
    definite: bool = False
    span: Span = NOWHERE

    @property
    def bounded(self) -> bool:
        """Whether a bound of its numbers is declared."""
        return self.lower > float("-inf") or self.upper < float("inf")


#: The relations of matrices: one minus the other has no positive (no negative) eigenvalue.
MATRIX_RELATIONS = ("<<", ">>")

#: The hidden column of a family of tables.
FAMILY = "__family"


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """``data D[family] : table(columns)``.

    A family is stored as one table with a hidden column ``FAMILY``. It holds the element of the
    family's set that a row belongs to: a number, or a label's position from 0.
    """

    name: str
    columns: Mapping[str, ColumnType]
    family: Binder | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Array:
    """``data c : real[A, B]``: an array without rows."""

    name: str
    type: ColumnType
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Parameter:
    """``param``: bounds are part of the type. ``strict_lower`` is ``>``, ``strict_upper`` is ``<``."""

    name: str
    shape: Shape = ()
    lower: float = float("-inf")
    upper: float = float("inf")
    strict_lower: bool = False
    strict_upper: bool = False
    default: Expr | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, kw_only=True)
class NetInput:
    """One argument of a net: ``real[d]``, or whole numbers ``int[t]``."""

    shape: Shape = ()
    whole: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Net:
    """``net s : real[d], int[t] -> real frozen assume ...``. An assumption is (name, arguments).

    A frozen net has no variable: it is a function of its inputs alone.
    """

    name: str
    inputs: tuple[NetInput, ...]
    output: Shape
    frozen: bool = False
    assume: tuple[tuple[str, tuple[float, ...]], ...] = ()
    span: Span = NOWHERE

    @property
    def whole(self) -> tuple[int, ...]:
        """The places of the inputs that are whole numbers."""
        return tuple(k for k, one in enumerate(self.inputs) if one.whole)


@dataclass(frozen=True, eq=False, kw_only=True)
class Variable:
    """``var``, with the simple sets that it is projected on.

    Bounds are a ``box`` with the arguments lower and upper; a missing bound is infinite. ``start`` is
    where runs begin: numbers, or a distribution that each entry is drawn from; None for zero.
    """

    name: str
    shape: Shape = ()
    sets: tuple[VectorSet, ...] = ()
    net: str | None = None
    start: Expr | Distribution | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Objective:
    """``sense label: expr`` as the user wrote it (``maximize`` is not yet negated)."""

    sense: str
    expr: Expr
    label: str | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Chance:
    """A bound on a probability: the event happens in at most a share of the draws.

    event      ``prob[z ~ D] (condition)``
    level      the share
    surrogate  the name of the function that stands for the probability in the constraint's body
    """

    event: Reduce
    level: Expr
    surrogate: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraint:
    """``label[binders | condition]: body <= 0`` (``kind`` is ``le``) or ``body == 0`` (``eq``).

    The body is the left minus the right side. A two-sided ``lo <= e <= hi`` becomes two constraints,
    labelled ``label.lower`` and ``label.upper``. ``written`` is the relation in the text: left side,
    ``<=``, ``>=`` or ``==``, right side. A matrix inequality, ``<<`` or ``>>``, has the largest eigenvalue
    of the difference as its body. A constraint on a probability has a surrogate as its body, and what it
    stands for as ``chance``.
    """

    label: str
    body: Expr
    written: tuple[Expr, str, Expr]
    kind: str = "le"
    binders: tuple[Binder, ...] = ()
    condition: Expr | None = None
    options: Mapping[str, Expr] = field(default_factory=dict)
    chance: Chance | None = None
    span: Span = NOWHERE

    @property
    def of_matrices(self) -> bool:
        """Whether this is a matrix inequality."""
        return self.written[1] in MATRIX_RELATIONS


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A checked model.

    sizes     the dims whose size is known before any data
    counting  the dims that say how many steps a recursion has: a few are written out until data are bound
    """

    name: str
    source: Source
    objective: Objective
    constraints: tuple[Constraint, ...] = ()
    dims: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    counting: frozenset[str] = frozenset()
    sets: Mapping[str, Set] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    params: Mapping[str, Parameter] = field(default_factory=dict)
    nets: Mapping[str, Net] = field(default_factory=dict)
    variables: Mapping[str, Variable] = field(default_factory=dict)
    lets: Mapping[str, Let] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple = ()

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The expression of the objective, then the body of each constraint."""
        return (self.objective.expr, *(c.body for c in self.constraints))

    @overload
    def expressions(self) -> Iterator[Expr]:
        """Every node once."""

    @overload
    def expressions(self, kind: type[Node]) -> Iterator[Node]:
        """Every node of a class once."""

    def expressions(self, kind: type[Expr] = Expr) -> Iterator[Expr]:
        """Every node of the objective and the constraints once, children before parents.

        Only nodes of the class ``kind``, if one is given.
        """
        return (node for node in walk(*self.roots) if isinstance(node, kind))

    def text(self, expr: Expr) -> str:
        """The user's own text of an expression, on one line."""
        return " ".join(self.source.text[expr.span.start : expr.span.end].split())
