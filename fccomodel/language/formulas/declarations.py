"""What the declaring statements share."""

from __future__ import annotations

import re

from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    Scope,
)

HERE = Scope()


def name_span(ctx: Context, node: syntax.Node, name: str) -> Span:
    """Where a statement writes the name that it declares."""
    text = ctx.source.text[node.span.start : node.span.end]
    match = re.search(rf"(?<=\W){re.escape(name)}\b", text)
    if match is None:
        return node.span
    return Span(start=node.span.start + match.start(), end=node.span.start + match.end())


def broken(ctx: Context, node: syntax.Node, name: str) -> None:
    ctx.declare(BrokenSymbol(name=name, what="a declaration with an error", span=name_span(ctx, node, name)))


def taken(ctx: Context, name: str, span: Span) -> None:
    ctx.report(errors.names.function_of_the_language(name, span))
