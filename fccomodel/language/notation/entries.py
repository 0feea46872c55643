"""The statements of a model: in order, each with its names, its comment and its place."""

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
class Entry:
    """A statement, with the comment above it and the place where it was said."""

    statement: syntax.Statement
    at: Span = NOWHERE
    doc: str = ""

    @property
    def keys(self) -> frozenset[Key]:
        """How the statement is found in its model."""
        return statements.of(self.statement).keys(self.statement)

    def without(self, keys: frozenset[Key]) -> Entry | None:
        """What is left of the statement without some of its names."""
        left = [name for kind, name in self.keys - keys if kind == "name"]
        rest = statements.of(self.statement).without(self.statement, left)
        if rest is None:
            return None
        return replace(self, statement=rest)


def put(entries: list[Entry], new: Entry) -> None:
    """Add a statement, in the place of what it replaces: the statement of its name, its label, or the
    same without a label."""
    place = None
    for k, entry in reversed(list(enumerate(entries))):
        if entry.keys & new.keys or _same(entry, new):
            place = k
            left = entry.without(new.keys)
            if left is None:
                entries[k : k + 1] = []
            else:
                entries[k : k + 1] = [left]
            place += left is not None
    if isinstance(new.statement, Constraint) and not any(isinstance(e.statement, SubjectTo) for e in entries):
        entries.append(Entry(statement=SubjectTo(span=NOWHERE)))
    entries.insert(len(entries) if place is None else place, new)


def _same(entry: Entry, new: Entry) -> bool:
    """Whether two constraints without labels say the same, as those of a cell that is run again."""
    pair = entry.statement, new.statement
    if not all(isinstance(statement, Constraint) and statement.label is None for statement in pair):
        return False
    first, second = (statements.text(naming.named(statement, (), {})) for statement in pair)
    return first == second


def remove(entries: list[Entry], key: Key) -> Entry | None:
    """Take a statement away; the one that it was."""
    for k, entry in enumerate(entries):
        if key in entry.keys:
            left = entry.without(frozenset({key}))
            if left is None:
                entries[k : k + 1] = []
            else:
                entries[k : k + 1] = [left]
            return entry
    return None


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    """The statements in order, each after those that declare the names it uses; options at the end."""
    declares = {name: k for k, entry in enumerate(entries) for kind, name in entry.keys if kind == "name"}
    needs = [
        sorted({declares[n] for n in naming.uses(entry.statement) if n in declares} - {k})
        for k, entry in enumerate(entries)
    ]
    order: list[int] = []
    begun: set[int] = set()
    for k, entry in enumerate(entries):
        if not isinstance(entry.statement, Options):
            _after(k, needs, begun, order)
    order += [k for k in range(len(entries)) if k not in begun]
    return [entries[k] for k in order]


def _after(k: int, needs: Sequence[Iterable[int]], begun: set[int], order: list[int]) -> None:
    """Statement k, after what it needs."""
    if k not in begun:
        begun.add(k)
        for needed in needs[k]:
            _after(needed, needs, begun, order)
        order.append(k)


def named(entries: Sequence[Entry], elements: dict[str, tuple[str, Span]]) -> list[Entry]:
    """The statements with their elements under names that nothing before has."""
    taken: set[str] = set()
    indices: dict[str, syntax.Binder] = {}
    found = []
    for entry in entries:
        found.append(replace(entry, statement=naming.named(entry.statement, taken, elements, indices)))
        if isinstance(found[-1].statement, IndexDecl):
            indices |= {binder.name: binder for binder in found[-1].statement.binders}
        taken |= set(names_of(entry.statement))
    return found


def place_of(entry: Entry, name: str) -> Span:
    """The place of a name's use in a statement: of the innermost formula around it that has one."""
    waiting: list[tuple[syntax.Node, Span]] = [(entry.statement, entry.at)]
    while waiting:
        node, at = waiting.pop()
        at = node.span if type(node.span) is not Span else at
        if name in (getattr(node, "id", None), getattr(node, "func", None), getattr(node, "subscript", None)):
            return at
        if isinstance(node, syntax.TypeExpr) and node.name == name:
            return at
        waiting += [(child, at) for child in rewriting.children(node)]
    return entry.at
