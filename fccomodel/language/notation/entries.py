"""The statements of a model in Python, each with its comment and its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import rewriting, statements, syntax
from fccomodel.language.notation import naming
from fccomodel.language.statements import Key, names_of
from fccomodel.language.statements.constraint import Constraint
from fccomodel.language.statements.heading import SubjectTo
from fccomodel.language.statements.indices import IndexDecl
from fccomodel.language.statements.options import Options


@dataclass(frozen=True, kw_only=True)
class StatementEntry:
    """A statement, the place where it was said, and the comment above it."""

    statement: syntax.Statement
    at: Span = NOWHERE
    doc: str = ""

    @property
    def keys(self) -> frozenset[Key]:
        """How the statement is found in its model."""
        return statements.of(self.statement).keys(self.statement)

    def without(self, keys: frozenset[Key]) -> StatementEntry | None:
        """The statement without some of its names, or None if no name is left."""
        left = [name for kind, name in self.keys - keys if kind == "name"]
        rest = statements.of(self.statement).without(self.statement, left)
        if rest is None:
            return None
        return replace(self, statement=rest)


def put(entries: list[StatementEntry], new: StatementEntry) -> None:
    """Add a statement in the place of the one that it replaces, or at the end.

    It replaces the statement of its name or of its label, or the same constraint without a label.
    """
    place = None
    for k, entry in reversed(list(enumerate(entries))):
        if not entry.keys & new.keys and not _same(entry, new):
            continue
        left = entry.without(new.keys)
        if left is None:
            del entries[k]
            place = k
        else:
            entries[k] = left
            place = k + 1
    has_heading = any(isinstance(entry.statement, SubjectTo) for entry in entries)
    if isinstance(new.statement, Constraint) and not has_heading:
        entries.append(StatementEntry(statement=SubjectTo(span=NOWHERE)))
    entries.insert(len(entries) if place is None else place, new)


def _same(entry: StatementEntry, new: StatementEntry) -> bool:
    """Whether two constraints without labels say the same, as when a notebook cell runs again."""
    pair = entry.statement, new.statement
    if not all(isinstance(statement, Constraint) and statement.label is None for statement in pair):
        return False
    first, second = (statements.text(naming.named(statement, (), {})) for statement in pair)
    return first == second


def remove(entries: list[StatementEntry], key: Key) -> StatementEntry | None:
    """Remove a statement, or a name of it: the statement before, or None if there is none."""
    for k, entry in enumerate(entries):
        if key in entry.keys:
            left = entry.without(frozenset({key}))
            if left is None:
                del entries[k]
            else:
                entries[k] = left
            return entry
    return None


def ordered(entries: Sequence[StatementEntry]) -> list[StatementEntry]:
    """The statements in order, each after the declarations that it uses; options last."""
    declares = {name: k for k, entry in enumerate(entries) for kind, name in entry.keys if kind == "name"}
    needs = []
    for k, entry in enumerate(entries):
        used = {declares[name] for name in naming.uses(entry.statement) if name in declares}
        needs.append(sorted(used - {k}))
    order: list[int] = []
    begun: set[int] = set()
    for k, entry in enumerate(entries):
        if not isinstance(entry.statement, Options):
            _after(k, needs, begun, order)
    order += [k for k in range(len(entries)) if k not in begun]
    return [entries[k] for k in order]


def _after(k: int, needs: Sequence[Iterable[int]], begun: set[int], order: list[int]) -> None:
    """Add statement k to the order, after the statements that it needs."""
    if k not in begun:
        begun.add(k)
        for needed in needs[k]:
            _after(needed, needs, begun, order)
        order.append(k)


def named(entries: Sequence[StatementEntry], elements: dict[str, tuple[str, Span]]) -> list[StatementEntry]:
    """The statements with names for their elements that no statement before declares."""
    taken: set[str] = set()
    indices: dict[str, syntax.Binder] = {}
    result = []
    for entry in entries:
        statement = naming.named(entry.statement, taken, elements, indices)
        result.append(replace(entry, statement=statement))
        if isinstance(statement, IndexDecl):
            indices |= {binder.name: binder for binder in statement.binders}
        taken |= set(names_of(entry.statement))
    return result


def place_of(entry: StatementEntry, name: str) -> Span:
    """The place where a statement uses a name: that of the innermost formula around it that has one."""
    waiting: list[tuple[syntax.Node, Span]] = [(entry.statement, entry.at)]
    while waiting:
        node, at = waiting.pop()
        if type(node.span) is not Span:
            at = node.span
        if name in (getattr(node, attribute, None) for attribute in ("id", "func", "subscript")):
            return at
        if isinstance(node, syntax.TypeExpr) and node.name == name:
            return at
        waiting += [(child, at) for child in rewriting.children(node)]
    return entry.at
