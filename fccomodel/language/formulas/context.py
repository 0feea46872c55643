"""The state of the checks: declared names, local names, and what has been reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.source import Source, Span
from fccomodel.language import errors, syntax
from fccomodel.language.errors.words import Quote
from fccomodel.library.ranges import Ranges

#: From an index of each axis, as it would stand in brackets, to the entry there; None after an error.
Entry = Callable[[tuple[ir.Expr, ...]], ir.Expr | None]
#: Makes an array as one expression, without its entries; None after an error.
Whole = Callable[[], ir.Expr | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class FormulaArray(ir.Expr):
    """An array by formula. It never leaves the checks.

    axes   the set that indexes each axis
    entry  the entry at some indices
    named  names for the indices of the first axes, for what the user reads
    whole  the same array as one expression, if functions of arrays make it: ``diag(x) + A``
    """

    axes: tuple[ir.Set, ...]
    entry: Entry
    named: tuple[str, ...] = ()
    whole: Whole | None = None


# -------------------------------------------------------------------------------------- local names
#: What a local name stands for: a binder, an argument of the ``def`` that is inlined, or None after an error.
Local = ir.Binder | ir.Expr | None


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The names visible in one place of the text, besides the declared ones.

    locals   binders around this place, and parameters of the ``def`` whose body it is
    indices  the binder that each declared index stands for here, and in the bodies of the ``def``s
             that are called here
    opened   the declared indices that a reduction around this place binds
    """

    locals: Mapping[str, Local] = field(default_factory=dict)
    indices: Mapping[str, ir.Binder | None] = field(default_factory=dict)
    opened: frozenset[str] = frozenset()

    def with_local(self, name: str, value: Local) -> Scope:
        """The scope with one more local name."""
        return replace(self, locals={**self.locals, name: value})

    def with_index(self, name: str, binder: ir.Binder | None, *, opened: bool = False) -> Scope:
        """The scope with a binder for a declared index; ``opened`` if a reduction binds it."""
        if opened:
            names = self.opened | {name}
        else:
            names = self.opened
        return replace(self, indices={**self.indices, name: binder}, opened=names)


# ----------------------------------------------------------------------------------- declared names
@dataclass(frozen=True, kw_only=True)
class Symbol:
    """A declared name: what it is, in the words of messages, and where it was declared."""

    name: str
    what: str
    span: Span


@dataclass(frozen=True, kw_only=True)
class BrokenSymbol(Symbol):
    """A declaration with an error. Its uses report nothing."""


@dataclass(frozen=True, kw_only=True)
class DimSymbol(Symbol):
    """A size that the data decide."""


@dataclass(frozen=True, kw_only=True)
class SetCondition:
    """The condition of ``{name in D | condition}`` as syntax, with its scope.

    It becomes a typed condition for each binder over the set.
    """

    name: str
    condition: syntax.Expr
    scope: Scope


@dataclass(frozen=True, kw_only=True)
class FamilyRule(SetCondition):
    """The condition that a row belongs to the table at one place of a family."""

    place: ir.Element | ir.Const


@dataclass(frozen=True, kw_only=True)
class BinderRange:
    """The range of a binder: a set, and conditions that join the condition of the reduction."""

    set: ir.Set
    rules: tuple[SetCondition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetSymbol(Symbol):
    """A named set.

    set   the set, if it has a size of its own
    base  the set as the elements of another one under conditions
    """

    set: ir.Set | None
    base: BinderRange


@dataclass(frozen=True, kw_only=True)
class SetFamilySymbol(Symbol):
    """``set N[i in P] = value;``: the names and the binders of the family, and the value as syntax.

    The value is checked anew for each use.
    """

    names: tuple[str, ...]
    binders: tuple[ir.Binder, ...]
    value: syntax.Expr


@dataclass(frozen=True, kw_only=True)
class TableSymbol(Symbol):
    """A table, or a family of tables, with the set of all its rows."""

    rows: ir.RowSet


@dataclass(frozen=True, kw_only=True)
class NumberSymbol(Symbol):
    """A param, an array or a variable, with the node that is copied to each place of use."""

    node: ir.Param | ir.Var


@dataclass(frozen=True, kw_only=True)
class ConstSymbol(Symbol):
    """A constant."""

    value: float


@dataclass(frozen=True, kw_only=True)
class ArraySymbol(Symbol):
    """An array of constants."""

    value: ir.Expr


@dataclass(frozen=True, kw_only=True)
class NetSymbol(Symbol):
    """A torch module."""

    net: ir.Net


@dataclass(frozen=True, kw_only=True)
class DefSymbol(Symbol):
    """A function: its parameters, its body, and the declared names that the body sees."""

    params: tuple[str, ...]
    body: syntax.Expr
    symbols: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class LetSymbol(Symbol):
    """A quantity, or a family of quantities."""

    let: ir.Let


@dataclass(frozen=True, kw_only=True)
class IndexSymbol(Symbol):
    """A declared index, with its binder as syntax."""

    binder: syntax.Binder


# --------------------------------------------------------------------------------------- recursions
@dataclass(kw_only=True)
class Recursion:
    """A family whose members are made of earlier ones, and its steps so far.

    name     the name of the family
    binders  the binders of the family
    place    the place among them of the index that counts the steps
    numbers  the numbers that this index goes through, in the order of the steps
    steps    the quantity of each number, or its family over the other indices
    """

    name: str
    binders: tuple[ir.Binder, ...]
    place: int
    numbers: tuple[float, ...]
    steps: dict[float, ir.Let] = field(default_factory=dict)

    @property
    def counter(self) -> ir.Binder:
        """The index that counts the steps."""
        return self.binders[self.place]

    @property
    def others(self) -> tuple[ir.Binder, ...]:
        """The other indices."""
        return self.binders[: self.place] + self.binders[self.place + 1 :]

    @property
    def next_number(self) -> float | None:
        """The number of the step that is being made, or None if all are known."""
        if len(self.steps) == len(self.numbers):
            return None
        return self.numbers[len(self.steps)]


# ------------------------------------------------------------------------------------------ context
#: Nodes of a model with its definitions written out.
MAX_NODES = 100_000


@dataclass(kw_only=True)
class Context:
    """The state of one run of the checks.

    source           the text of the model
    symbols          the names declared so far
    later            where the names are declared that the model declares below
    declaring        the statement that declares each name
    used             the declared names that something reads
    diagnostics      errors and remarks, in the order in which they were found
    reported         what identifies each of them, so that none is reported twice
    missing          the names that were reported as unknown
    statement        the statement that is being checked
    binders          the first binder of each name in that statement, with the statement
    calls            the ``def``s whose bodies are being inlined: name and place of the call
    inlined          the bodies inlined so far, by function, arguments and indices
    kept             the objects whose ids occur in the keys of ``inlined``, kept alive
    pending          the open index binders with the conditions of their sets
    ranges           interval arithmetic, once something needed it
    nodes            the number of formulas typed so far
    open_axes        the names of the indices of arrays by formula whose entries are being made
    recursions       the families that are made of their own earlier members
    known_sizes      the sizes of some dims, once the data have said them
    counting         the dims without a size that say how many steps a recursion has
    assumed          the sizes that stand for these dims in the steps of a recursion
    overgrown        whether the model was reported as too large
    first_objective  the first objective statement
    labels           the labels of the objective and the constraints so far
    reserved_labels  the labels of constraints anywhere in the model
    last_number      the last number given to a constraint without a label

    The other fields are those of the problem.
    """

    source: Source
    symbols: dict[str, Symbol] = field(default_factory=dict)
    later: dict[str, Span] = field(default_factory=dict)
    declaring: dict[str, syntax.Statement] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    reported: set[tuple] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    statement: syntax.Node | None = None
    binders: tuple[syntax.Node | None, dict[str, syntax.Binder]] | None = None
    calls: list[tuple[str, Span]] = field(default_factory=list)
    inlined: dict[tuple, ir.Expr | None] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)
    pending: dict[ir.Binder, ir.Expr | None] = field(default_factory=dict)
    ranges: Ranges | None = None
    nodes: int = 0
    open_axes: list[str] = field(default_factory=list)
    recursions: dict[str, Recursion] = field(default_factory=dict)
    known_sizes: Mapping[str, int] = field(default_factory=dict)
    counting: set[str] = field(default_factory=set)
    assumed: dict[str, int] = field(default_factory=dict)
    overgrown: bool = False
    first_objective: syntax.Statement | None = None
    labels: dict[str, Span] = field(default_factory=dict)
    reserved_labels: set[str] = field(default_factory=set)
    last_number: int = 0

    name: str = "model"
    objective: ir.Objective | None = None
    constraints: list[ir.Constraint] = field(default_factory=list)
    dims: list[str] = field(default_factory=list)
    sets: dict[str, ir.Set] = field(default_factory=dict)
    tables: dict[str, ir.Table] = field(default_factory=dict)
    arrays: dict[str, ir.Array] = field(default_factory=dict)
    params: dict[str, ir.Parameter] = field(default_factory=dict)
    nets: dict[str, ir.Net] = field(default_factory=dict)
    variables: dict[str, ir.Variable] = field(default_factory=dict)
    lets: dict[str, ir.Let] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)

    # ---------------------------------------------------------------------------------- diagnostics
    def report(self, diagnostic: Diagnostic) -> None:
        """Add a diagnostic, unless it was reported before.

        Inside an inlined ``def`` the reason of an error says which call led there.
        """
        if self.calls and diagnostic.severity == "error":
            name, place = self.calls[-1]
            call = (
                f"This is the body of `{name}`, as called in `{self.text(place)}` (line {self.line(place)})."
            )
            diagnostic = replace(diagnostic, reason=f"{diagnostic.reason} {call}".lstrip())
        assert diagnostic.span is not None
        key = (diagnostic.code, diagnostic.span.start, diagnostic.span.end)
        if key not in self.reported:
            self.reported.add(key)
            self.diagnostics.append(diagnostic)

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors among the diagnostics."""
        return [d for d in self.diagnostics if d.severity == "error"]

    # ----------------------------------------------------------------------------------------- text
    def text(self, span: Span, limit: int = 60) -> str:
        """The user's text on one line, shortened in the middle to ``limit`` characters."""
        text = " ".join(self.source.text[span.start : span.end].split())
        if len(text) <= limit:
            return text
        return f"{text[: limit // 2 - 2]} ... {text[-(limit // 2 - 3) :]}"

    def line(self, span: Span) -> str:
        """The number of a line, with the name of its file if that is not the model's own."""
        source, local_span = self.source.at(span)
        number = str(source.place(local_span)[0])
        if source.name == self.source.name:
            return number
        return f"{number} of {source.name}"

    def quote(self, place: Span | syntax.Node | ir.Expr | ir.Binder, limit: int = 60) -> Quote:
        """The text at a place, for a message."""
        span = place if isinstance(place, Span) else place.span
        return Quote(text=self.text(span, limit), span=span, line=self.line(span))

    # ---------------------------------------------------------------------------------------- names
    def declare(self, symbol: Symbol) -> bool:
        """Add a name: whether it was new. Reports an error if it was not."""
        earlier = self.symbols.get(symbol.name)
        self.later.pop(symbol.name, None)
        if earlier is not None:
            self.report(
                errors.names.declared_twice(symbol.name, earlier.what, self.line(earlier.span), symbol.span)
            )
            return False
        self.symbols[symbol.name] = symbol
        return True

    def visible(self, scope: Scope) -> list[str]:
        """Every name that may be written here."""
        return [*scope.locals, *self.symbols]
