"""Helpers of the statements that declare names."""

from __future__ import annotations

import re

from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    Scope,
)

#: The scope of a declaration: no local names.
HERE = Scope()


def name_span(ctx: Context, node: syntax.Node, name: str) -> Span:
    """The place of the name that a statement declares."""
    text = ctx.source.text[node.span.start : node.span.end]
    match = re.search(rf"(?<=\W){re.escape(name)}\b", text)
    if match is None:
        return node.span
    return Span(start=node.span.start + match.start(), end=node.span.start + match.end())


def broken(ctx: Context, node: syntax.Node, name: str) -> None:
    """Declare a name whose declaration has an error, so that its uses report nothing."""
    ctx.declare(BrokenSymbol(name=name, what="a declaration with an error", span=name_span(ctx, node, name)))


def taken(ctx: Context, name: str, span: Span) -> None:
    """Report that the language has a function of this name."""
    ctx.report(errors.names.function_of_the_language(name, span))
