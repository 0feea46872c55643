"""Remarks on the model as a whole: names that nothing uses."""

from __future__ import annotations

from fccomodel.language import errors
from fccomodel.language.formulas.context import BrokenSymbol, Context


def unused(ctx: Context) -> None:
    """Add a remark for each declared name that is never read."""
    for name, symbol in ctx.symbols.items():
        if name in ctx.used or isinstance(symbol, BrokenSymbol):
            continue
        ctx.report(errors.problem.unused(name, symbol.what, symbol.span))
