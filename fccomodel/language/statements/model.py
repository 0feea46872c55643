"""``model name;``: the name of the model, in its first statement."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.formulas.context import Context
from fccomodel.language.printing import TextWriter
from fccomodel.language.statements import StatementKind, no_names


@dataclass(frozen=True, kw_only=True)
class ModelDecl(syntax.Statement):
    """``model name;``."""

    name: str


def _read(c: list, at: Span) -> ModelDecl:
    return ModelDecl(name=str(c[0]), span=at)


def _check(ctx: Context, node: ModelDecl) -> None:
    ctx.name = node.name


def _write(writer: TextWriter, node: ModelDecl) -> None:
    writer("model ", node.name)


model = StatementKind(
    name="model",
    order=10,
    node=ModelDecl,
    forms={"model": "model name;"},
    token="MODEL",
    follows="NAME",
    group="name",
    included=False,
    rules={"model": _read},
    check=_check,
    names=no_names,
    write=_write,
)
