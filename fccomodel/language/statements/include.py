"""``include "file.fcco";``: the statements of another file in this place.

``check.include`` puts them there, so that the checks meet no ``include``.
"""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.printing import TextWriter
from fccomodel.language.statements import StatementKind, no_names


@dataclass(frozen=True, kw_only=True)
class Include(syntax.Statement):
    """``include "path";``."""

    path: str


def _read(c: list, at: Span) -> Include:
    return Include(path=str(c[0])[1:-1], span=at)


def _write(writer: TextWriter, node: Include) -> None:
    writer(f'include "{node.path}"')


include = StatementKind(
    name="include",
    order=20,
    node=Include,
    forms={"include": 'include "file.fcco";'},
    elsewhere={"import": "include"},
    token="INCLUDE",
    follows="STRING",
    rules={"include": _read},
    names=no_names,
    write=_write,
)
