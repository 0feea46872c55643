"""Remarks on the model as a whole: names that nothing uses."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.language import syntax
from fccomodel.language.check.context import BrokenSymbol, Context

FIXES = {
    "a variable": "Use it in the objective or in a constraint, or leave it out.",
    "a table": "Draw from it, `E[z ~ {0}] ...`, or leave it out.",
    "a param": "Leave it out.",
    "a `let`": "Leave it out, use it, or have its value reported: --show {0}.",
}


def unused(ctx: Context, statements: Sequence[syntax.Statement]) -> None:
    """A remark for each declared name that is never read."""
    for name, symbol in ctx.symbols.items():
        if name in ctx.used or isinstance(symbol, BrokenSymbol):
            continue
        ctx.warn(
            "F0433" if symbol.what in ("a variable", "the parameters of a net") else "F0432",
            f"`{name}` is {symbol.what} that nothing uses",
            symbol.span,
            reason="A variable without use is left where it starts." if symbol.what == "a variable" else "",
            fix=FIXES.get(symbol.what, "Leave it out, or use it.").format(name),
            unused=name,
        )
