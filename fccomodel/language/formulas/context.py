"""What checking carries along: the names declared so far, the scope of local names, and the findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.source import Source, Span
from fccomodel.language import errors, syntax
from fccomodel.language.errors.words import Quote
from fccomodel.library.ranges import Ranges

# -------------------------------------------------------------------------------------- local names
#: What a local name stands for: a binder, an argument of the ``def`` being inlined, or None after an error.
Local = ir.Binder | ir.Expr | None


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The names visible in one place of the text, besides the declared ones.

    locals   binders around this place and parameters of the ``def`` whose body it is
    indices  the binder that each declared index stands for here; it reaches into the bodies of the
             ``def``s that are called
    opened   the declared indices that a reduction around this place binds
    """

    locals: Mapping[str, Local] = field(default_factory=dict)
    indices: Mapping[str, ir.Binder | None] = field(default_factory=dict)
    opened: frozenset[str] = frozenset()

    def with_local(self, name: str, value: Local) -> Scope:
        return replace(self, locals={**self.locals, name: value})

    def with_index(self, name: str, binder: ir.Binder | None, *, opened: bool = False) -> Scope:
        if opened:
            more = self.opened | {name}
        else:
            more = self.opened
        return replace(self, indices={**self.indices, name: binder}, opened=more)


# ----------------------------------------------------------------------------------- declared names
@dataclass(frozen=True, kw_only=True)
class Symbol:
    """A declared name: ``what`` it is in a message, and where it was declared."""

    name: str
    what: str
    span: Span


@dataclass(frozen=True, kw_only=True)
class BrokenSymbol(Symbol):
    """A declaration with an error: its uses are silent."""


@dataclass(frozen=True, kw_only=True)
class DimSymbol(Symbol):
    pass


@dataclass(frozen=True, kw_only=True)
class Rule:
    """``{name in .. | condition}`` kept as text, with the scope it stands in: turned into a condition
    for each binder."""

    name: str
    condition: syntax.Expr
    scope: Scope


@dataclass(frozen=True, kw_only=True)
class FamilyRule(Rule):
    """The condition that a row belongs to one table of a family."""

    place: ir.Element | ir.Const


@dataclass(frozen=True, kw_only=True)
class Domain:
    """What a binder ranges over: a set, and conditions that go into the condition of the reduction."""

    set: ir.Set
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetSymbol(Symbol):
    """``base`` gives the set as elements of another under conditions; ``set`` is the set where it has
    a size of its own."""

    set: ir.Set | None
    base: Domain


@dataclass(frozen=True, kw_only=True)
class SetFamilySymbol(Symbol):
    """``set N[i in P] = ...``: ``names`` and ``binders`` of the family; ``value`` is read anew for
    each use."""

    names: tuple[str, ...]
    binders: tuple[ir.Binder, ...]
    value: syntax.Expr


@dataclass(frozen=True, kw_only=True)
class TableSymbol(Symbol):
    rows: ir.RowSet


@dataclass(frozen=True, kw_only=True)
class NumberSymbol(Symbol):
    """A param, an array or a variable: ``node`` is copied to each place of use."""

    node: ir.Param | ir.Var


@dataclass(frozen=True, kw_only=True)
class ConstSymbol(Symbol):
    value: float


@dataclass(frozen=True, kw_only=True)
class NetSymbol(Symbol):
    net: ir.Net


@dataclass(frozen=True, kw_only=True)
class DefSymbol(Symbol):
    params: tuple[str, ...]
    body: syntax.Expr
    symbols: frozenset[str]  # the declared names visible to the body


@dataclass(frozen=True, kw_only=True)
class LetSymbol(Symbol):
    let: ir.Let


@dataclass(frozen=True, kw_only=True)
class IndexSymbol(Symbol):
    binder: syntax.Binder


# ------------------------------------------------------------------------------------------ context
#: An inlined model may not grow beyond this many nodes.
LARGEST = 100_000


@dataclass(kw_only=True)
class Context:
    """One run of ``check``: declarations collected in order, findings, and what is being looked at."""

    source: Source
    symbols: dict[str, Symbol] = field(default_factory=dict)
    later: dict[str, Span] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    reported: set[tuple] = field(default_factory=set)
    statement: syntax.Node | None = None
    binders: tuple[syntax.Node | None, dict[str, syntax.Binder]] | None = None  # those written in a statement
    calls: list[tuple[str, Span]] = field(default_factory=list)
    inlined: dict[tuple, ir.Expr | None] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)  # keeps the objects alive whose ids key ``inlined``
    pending: dict[ir.Binder, ir.Expr | None] = field(
        default_factory=dict
    )  # free index binders and the conditions of their sets
    ranges: Ranges | None = None
    nodes: int = 0
    overgrown: bool = False
    missing: set[str] = field(default_factory=set)  # names reported as unknown

    dims: list[str] = field(default_factory=list)
    sets: dict[str, ir.Set] = field(default_factory=dict)
    tables: dict[str, ir.Table] = field(default_factory=dict)
    arrays: dict[str, ir.Array] = field(default_factory=dict)
    params: dict[str, ir.Parameter] = field(default_factory=dict)
    nets: dict[str, ir.Net] = field(default_factory=dict)
    variables: dict[str, ir.Variable] = field(default_factory=dict)
    lets: dict[str, ir.Let] = field(default_factory=dict)

    name: str = "model"
    first_objective: syntax.Statement | None = None
    objective: ir.Objective | None = None
    constraints: list[ir.Constraint] = field(default_factory=list)
    labels: dict[str, Span] = field(default_factory=dict)  # of the objective and the constraints so far
    reserved_labels: set[str] = field(default_factory=set)  # those written anywhere in the model
    last_number: int = 0  # of constraints without a label
    options: dict[str, object] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------- findings
    def report(self, diagnostic: Diagnostic) -> None:
        """Note a finding once; inside an inlined ``def`` the reason of an error says which call led there."""
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
        return [d for d in self.diagnostics if d.severity == "error"]

    # ----------------------------------------------------------------------------------------- text
    def text(self, span: Span, limit: int = 60) -> str:
        """The user's text on one line, shortened in the middle where it is long."""
        text = " ".join(self.source.text[span.start : span.end].split())
        if len(text) <= limit:
            return text
        return f"{text[: limit // 2 - 2]} ... {text[-(limit // 2 - 3) :]}"

    def line(self, span: Span) -> str:
        """The number of a line; in another file than the model's own with its name."""
        source, local_span = self.source.at(span)
        return str(source.place(local_span)[0]) + (
            "" if source.name == self.source.name else f" of {source.name}"
        )

    def quote(self, place: Span | syntax.Node | ir.Expr | ir.Binder, limit: int = 60) -> Quote:
        """What is written at a place, for a message."""
        span = place if isinstance(place, Span) else place.span
        return Quote(text=self.text(span, limit), span=span, line=self.line(span))

    # ---------------------------------------------------------------------------------------- names
    def declare(self, symbol: Symbol) -> bool:
        """Add a name; False (and an error) where it exists already."""
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
