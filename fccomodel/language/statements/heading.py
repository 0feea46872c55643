"""``subject to``, also written ``s.t.``: the heading between the objective and the constraints."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind, no_names


@dataclass(frozen=True, kw_only=True)
class SubjectTo(syntax.Statement):
    """The keyword between objective and constraints; no ``;`` ends it."""


def _read(c: list, at: Span) -> SubjectTo:
    return SubjectTo(span=at)


def _write(writer: TextWriter, node: SubjectTo) -> None:
    writer("subject to")


def _python(writer: PythonWriter, node: SubjectTo, doc: str) -> str:
    return writer.method("subject_to", [], doc)


heading = StatementKind(
    name="heading",
    order=140,
    node=SubjectTo,
    forms={"subject to": "subject to"},
    elsewhere=dict.fromkeys(
        ("st", "subject", "subjectto", "such", "constraints", "constraint"), "subject to"
    ),
    token="SUBJECT",
    ends="",
    group="problem",
    rules={"heading": _read},
    names=no_names,
    write=_write,
    python=_python,
)
