"""A model as Python code that builds it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fccomodel.language import rewriting, statements, syntax
from fccomodel.language.notation.entries import StatementEntry
from fccomodel.language.python_code import PythonWriter, doc_argument
from fccomodel.language.statements.constraint import Constraint
from fccomodel.language.statements.heading import SubjectTo


def program(name: str | None, doc: str, entries: Sequence[StatementEntry], own: Collection[str]) -> str:
    """Code that ends in a model ``m``; ``own`` are the attributes that ``Model`` has itself."""
    sorts = {
        declared: statements.of(entry.statement).stands_for(entry.statement)
        for entry in entries
        for declared in statements.names_of(entry.statement)
    }
    taken = {name for entry in entries for name in _locals(entry.statement)}
    writer = PythonWriter(sorts, taken, own)
    body = list(_statements(writer, entries))
    arguments = doc_argument(doc)
    if name is not None:
        arguments.insert(0, repr(name))
    imported = ""
    if writer.imported:
        imported = f"from fccomodel import {', '.join(sorted(writer.imported))}\n"
    head = (
        f"import fccomodel as {writer.package}\n{imported}\n{writer.model} = "
        f"{writer.package}.Model({', '.join(arguments)})\n"
    )
    return head + "".join(f"{line}\n" for line in body)


def _statements(writer: PythonWriter, entries: Sequence[StatementEntry]) -> Iterator[str]:
    """Each statement's lines; ``subject to`` by itself only where the first constraint does not imply it."""
    headings = 0
    for k, entry in enumerate(entries):
        if isinstance(entry.statement, SubjectTo):
            headings += 1
            before_constraint = k + 1 < len(entries) and isinstance(entries[k + 1].statement, Constraint)
            if headings == 1 and before_constraint and not entry.doc:
                continue
        code = statements.of(entry.statement).python
        if code is None:
            raise TypeError(entry.statement)
        yield code(writer, entry.statement, entry.doc)


def _locals(statement: syntax.Statement) -> set[str]:
    """The names that only a statement knows: its elements, its parameters, and the name of a recursion."""
    nodes = list(rewriting.walk(statement))
    binders = {node.name for node in nodes if isinstance(node, syntax.Binder)}
    own = {getattr(statement, "name", "")} & {node.id for node in nodes if isinstance(node, syntax.Name)}
    return binders | own | set(getattr(statement, "params", ()))
