"""The typed problem: an expression DAG with resolved names and shapes, independent of data and of any algorithm.

Expressions are compared by identity, so that a quantity used twice is one node. Sizes are numbers or names: a declared
``dim``, or a set's name standing for its number of elements; binding resolves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fccomodel.core.source import NOWHERE as NOWHERE
from fccomodel.core.source import Source, Span

Dim = int | str
Shape = tuple[Dim, ...]


# ------------------------------------------------------------------------------------------------------------- index sets
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
    """Numbers: listed in ``items``, or ``low .. high by step`` (expressions of constants, params and dims)."""

    items: tuple[Expr, ...] | None = None
    low: Expr | None = None
    high: Expr | None = None
    step: Expr | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSet(Set):
    """Labels: listed in the model (``labels``), or coming with the data (None). Elements are numbered by position."""

    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Set):
    """``family(args)[shape]``: one of ``fccomodel.library.distributions``, or a ``sampler`` that is bound from Python."""

    family: str
    args: tuple[Expr, ...] = ()
    shape: Shape = ()
    sampler: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorSet(Set):
    """A simple set of vectors: ``box simplex capped_simplex ball ball1 nonneg affine``.

    It is a variable's domain, or what ``max[q in ..]`` ranges over. ``centre`` moves it (a constraint's set alone has one).
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


# ------------------------------------------------------------------------------------------------------------ expressions
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
    """A declared ``param``, or a data array without rows (``data c : real[A]``); see ``Problem.params``, ``Problem.arrays``."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Var(Expr):
    """A decision variable; for ``params(s)`` the shape is ``("params(s)",)``."""

    name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Column(Expr):
    """``z.x``: a column at the row drawn or iterated by ``binder``; ``name`` None is the draw of a distribution itself."""

    binder: Binder
    name: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Element(Expr):
    """The binder itself: a number (value set), a label's position (label set), a row's identity (row set), or a vector."""

    binder: Binder


@dataclass(frozen=True, eq=False, kw_only=True)
class Item(Expr):
    """``base[indices]``: each index is an Element (used by position in its set) or a Const (counted from 1 for dims, matched
    by value or label for sets; ``check`` has turned those into positions counted from 0)."""

    base: Expr
    indices: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.base, *self.indices)


@dataclass(frozen=True, eq=False, kw_only=True)
class Apply(Expr):
    """An atom applied: ``add sub mul div neg pow matmul``, ``le lt ge gt eq ne and or not``, or any atom by its name."""

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
    """Some element of ``binder`` satisfies the condition: a condition on the binders around it (made by ``check``)."""

    binder: Binder
    condition: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.condition,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Let:
    """A named quantity, or a family of them over ``binders``: its members are those that ``condition`` accepts."""

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
    """An argument u of an outer function f(u): where a normal form cut an inner expectation out (never made by ``check``)."""

    name: str
    args: tuple[Expr, ...] = ()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


# ----------------------------------------------------------------------------------------------------------- declarations
@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnType:
    """``kind``: ``real``, ``int``, ``values`` (one of ``domain``, a ValueSet or LabelSet)."""

    kind: str
    shape: Shape = ()
    domain: Set | None = None
    span: Span = NOWHERE


#: the hidden column of a family of tables
FAMILY = "__family"


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """``data D[family] : table(columns)``. A family is stored as one table with a hidden column ``FAMILY``,
    the element of the family's set that a row belongs to: a number, or a label's 0-based position."""

    name: str
    columns: Mapping[str, ColumnType]
    family: Binder | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Array:
    """``data c : real[A, B];``: an array without rows."""

    name: str
    type: ColumnType
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Parameter:
    """``param``: its bounds are part of its type. ``strict_*`` mark ``>`` and ``<``."""

    name: str
    shape: Shape = ()
    lower: float = float("-inf")
    upper: float = float("inf")
    strict_lower: bool = False
    strict_upper: bool = False
    default: Expr | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Net:
    """``net s : real[d] -> real assume ...``; an assumption is (name, arguments)."""

    name: str
    input: Shape
    output: Shape
    assume: tuple[tuple[str, tuple[float, ...]], ...] = ()
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Variable:
    """``var``: its simple sets are projected on. Bounds arrive as a ``box`` (args: lower, upper; infinite where absent)."""

    name: str
    shape: Shape = ()
    sets: tuple[VectorSet, ...] = ()
    net: str | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Objective:
    """``sense label: expr`` as the user wrote it (``maximize`` is not yet negated)."""

    sense: str
    expr: Expr
    label: str | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Constraint:
    """``label[binders | condition]: body <= 0`` (``kind`` ``le``) or ``== 0`` (``eq``), left minus right side.

    A two-sided ``lo <= e <= hi`` arrives as two, labelled ``label.lower`` and ``label.upper``. ``written`` is the relation as it
    stands in the text: left side, ``<=``, ``>=`` or ``==``, right side.
    """

    label: str
    body: Expr
    written: tuple[Expr, str, Expr]
    kind: str = "le"
    binders: tuple[Binder, ...] = ()
    condition: Expr | None = None
    options: Mapping[str, Expr] = field(default_factory=dict)
    span: Span = NOWHERE


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A checked model; ``sizes`` are those of dims that are given before any data."""

    name: str
    source: Source
    objective: Objective
    constraints: tuple[Constraint, ...] = ()
    dims: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
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
        """The objective, and of each constraint its left side less its right one."""
        return (self.objective.expr, *(c.body for c in self.constraints))

    def text(self, expr: Expr) -> str:
        """The user's own text of an expression, on one line."""
        return " ".join(self.source.text[expr.span.start : expr.span.end].split())


# ---------------------------------------------------------------------------------------------------------------- walking
def walk(*roots: Expr, lets: bool = True) -> Iterator[Expr]:
    """Every node of some expressions once, children before parents; through ``let`` bodies unless ``lets`` is False.

    Not recursive.
    """
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        inner = (*node.children, node.let.body) if lets and isinstance(node, LetRef) else node.children
        stack.extend((child, False) for child in reversed(inner))


def free_binders(expr: Expr, *, lets: bool = True) -> tuple[Binder, ...]:
    """The binders that an expression's value depends on and that it does not bind itself, in order of first use.

    ``lets=False``: every ``let`` in it binds all that its body uses, and is not walked through.
    """
    memo: dict[int, tuple[Binder, ...]] = {}
    for node in walk(expr, lets=lets):
        if isinstance(node, Column | Element):
            free: list[Binder] = [node.binder]
        else:
            free = []
        for child in node.children:
            free.extend(memo[id(child)])
        if isinstance(node, Reduce):
            for binder in node.binders:
                if isinstance(binder.domain, Distribution | VectorSet):
                    for arg in binder.domain.args:
                        free.extend(free_binders(arg))
            free = [b for b in free if all(b is not bound for bound in node.binders)]
        elif isinstance(node, Exists):
            free = [b for b in free if b is not node.binder]
        elif lets and isinstance(node, LetRef):
            free.extend(b for b in memo[id(node.let.body)] if all(b is not bound for bound in node.let.binders))
        unique: dict[int, Binder] = {id(b): b for b in free}
        memo[id(node)] = tuple(unique.values())
    return memo[id(expr)]


def variables_of(expr: Expr) -> frozenset[str]:
    """Names of the decision variables that an expression uses; each node knows its own, once asked."""
    stack = [expr]
    while stack:
        node = stack[-1]
        inner = (*node.children, node.let.body) if isinstance(node, LetRef) else node.children
        if "_variables" in vars(node):
            stack.pop()
        elif unknown := [child for child in inner if "_variables" not in vars(child)]:
            stack.extend(unknown)
        else:
            names = {vars(child)["_variables"] for child in inner} | {frozenset({node.name} if isinstance(node, Var) else ())}
            vars(node)["_variables"] = frozenset().union(*names) if len(names) > 2 else max(names, key=len)
            stack.pop()
    return vars(expr)["_variables"]


def same(a: Expr, b: Expr) -> bool:
    """Equal as written (the same nodes over the same binders); False for anything but atoms, items, columns and numbers."""
    if a is b:
        return True
    if type(a) is not type(b) or len(a.children) != len(b.children):
        return False
    match a, b:
        case (Const(), Const()):
            return a.value == b.value
        case (Label(), Label()):
            return a.text == b.text
        case (Size(), Size()):
            return a.dim == b.dim
        case (Param(), Param()):
            return a.name == b.name
        case (Var(), Var()):
            return a.name == b.name
        case (Column(), Column()):
            return a.name == b.name and a.binder is b.binder
        case (Element(), Element()):
            return a.binder is b.binder
        case (Apply(), Apply()):
            alike = a.op == b.op
        case (NetCall(), NetCall()):
            alike = a.net == b.net
        case (Item(), Item()):
            alike = True
        case _:
            return False
    return alike and all(same(x, y) for x, y in zip(a.children, b.children, strict=True))
