"""The statements of the language: one file each, found by itself.

A file of this package holds a statement's syntax node and a record ``StatementKind`` that says how the
statement is written, read, checked and printed. The splitter, the parser, the checks, the layout, both
notations and the messages about syntax read these records. To add a statement, add its rule to the
grammar, a file here and, if Python writes it as a call, a method to ``notation/model.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fccomodel.core import ir, registry
from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.formulas.context import Context
from fccomodel.language.latex import LatexPrinter, Row, aligned, quantities
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter

#: How a statement is found in a model: ``("name", "w")``, ``("constraint", "gap")``, ``("objective", "")``.
Key = tuple[str, str]


def names_of(statement: syntax.Statement) -> tuple[str, ...]:
    """The names that a statement declares."""
    return of(statement).names(statement)


def own_name(node: Any) -> tuple[str, ...]:
    """The name of a statement that declares one name."""
    return (node.name,)


def no_names(node: Any) -> tuple[str, ...]:
    """No name: the statement declares nothing."""
    return ()


def keys_by_name(node: Any) -> frozenset[Key]:
    """A key for each name that the statement declares."""
    return frozenset(("name", name) for name in names_of(node))


def nothing(ctx: Context, node: Any) -> None:
    """Do nothing in this step of the checks."""


@dataclass(frozen=True, kw_only=True)
class StatementKind:
    """A statement of the language.

    name            its rule of the grammar
    order           where it stands in lists of statements
    node            its syntax node
    forms           by each word that begins it, how it is written; by the empty text where no word
                    begins it
    elsewhere       words of other languages, and of haste, by the word that they stand for here
    token           type of the word that begins it, if any
    follows         type of the word that must follow that word for the statement to begin there:
                    ``NAME`` (any word that reads as a name), another type, or empty
    clauses         types of the words that begin its clauses; a long line breaks before them
    spaced_colon    whether a space stands before its ``:``
    ends            what ends it
    group           statements of one group stand together, others have an empty line between them
    included        whether a model that includes this file takes the statement
    rules           from the children of a tree and their place to a node, by rule of the grammar
    announce        first step of the checks, made for all statements before any is checked
    check           second step of the checks: adds what the statement says to the context
    names           the names that it declares
    keys            how it is found in a model
    without         the statement with some of its names alone, or None if it has one name
    stands_for      what its names stand for in Python: ``number``, ``index``, ``dim``, ``set``,
                    ``table``, ``net`` or ``define``
    write           writes it as text, without its end
    python          Python code for it and its comment, or None if it is no statement of a model in Python
    latex           the rows of a problem that such statements give, as LaTeX
    """

    name: str
    order: int
    node: type[syntax.Statement]
    forms: Mapping[str, str]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    follows: str = ""
    clauses: tuple[str, ...] = ()
    spaced_colon: bool = False
    ends: str = ";"
    group: str = "declarations"
    included: bool = True
    rules: Mapping[str, Callable[[list, Span], Any]]
    announce: Callable[[Context, Any], None] = nothing
    check: Callable[[Context, Any], None] = nothing
    names: Callable[[Any], tuple[str, ...]] = own_name
    keys: Callable[[Any], frozenset[Key]] = keys_by_name
    without: Callable[[Any, list[str]], syntax.Statement | None] = lambda node, names: None
    stands_for: Callable[[Any], str] = lambda node: "number"
    write: Callable[[TextWriter, Any], None]
    python: Callable[[PythonWriter, Any, str], str] | None = None
    latex: Callable[[LatexPrinter, ir.Problem], list[Row]] = lambda printer, problem: []


@cache
def all() -> Mapping[str, StatementKind]:
    """Every statement of the language by its rule, in the order of lists."""
    kinds = registry.records(__name__, StatementKind)
    return dict(sorted(kinds.items(), key=lambda item: item[1].order))


@cache
def _by_node() -> Mapping[type[syntax.Statement], StatementKind]:
    return {kind.node: kind for kind in all().values()}


def of(node: syntax.Statement) -> StatementKind:
    """The record of a statement."""
    return _by_node()[type(node)]


@cache
def by_token() -> Mapping[str, StatementKind]:
    """The statements by the type of the word that begins them."""
    return {kind.token: kind for kind in all().values() if kind.token}


@cache
def forms() -> Mapping[str, str]:
    """How each statement is written, by the word that begins it."""
    return {word: form for kind in all().values() for word, form in kind.forms.items() if word}


def form(word: str) -> str:
    """How a statement that begins with this word is written; a constraint, if it begins no other."""
    return forms().get(word, all()["constraint"].forms[""])


@cache
def elsewhere() -> Mapping[str, str]:
    """Words that begin statements in other languages, with the word that stands for each here."""
    return {word: own for kind in all().values() for word, own in kind.elsewhere.items()}


@cache
def clauses() -> frozenset[str]:
    """The types of the words that begin clauses of statements."""
    return frozenset(word for kind in all().values() for word in kind.clauses)


@cache
def rules() -> Mapping[str, Callable[[list, Span], Any]]:
    """The functions for the statements' rules of the grammar."""
    return {rule: build for kind in all().values() for rule, build in kind.rules.items()}


# --------------------------------------------------------------------------------------------- text
def write(writer: TextWriter, node: syntax.Statement) -> None:
    """Write a statement with its end."""
    kind = of(node)
    with writer.marked(node.span):
        kind.write(writer, node)
        writer(kind.ends)


def text(node: syntax.Statement) -> str:
    """The text of a statement with its end."""
    writer = TextWriter()
    write(writer, node)
    return writer.text


def latex(problem: ir.Problem) -> str:
    """A problem as an ``align*`` block: the rows of its statements, and the quantities in them."""
    printer = LatexPrinter(problem)
    rows = [row for kind in all().values() for row in kind.latex(printer, problem)]
    return aligned(rows + quantities(printer))
