"""Places in Python code, in files and in notebook cells: where a call stands, and the text there."""

from __future__ import annotations

import ast
import linecache
import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import NOWHERE, Source, Span

#: How the names of modules begin whose calls are not the user's: this package, and numpy, whose
#: functions ask a formula for its methods.
_INNER = ("fccomodel.", "numpy.")


@dataclass(frozen=True, kw_only=True)
class Caller(Span):
    """An instruction of Python code; its line and columns are looked up only if something needs them."""

    code: CodeType = field(compare=False)
    instruction: int = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Written(Span):
    """A place in a text of its own, as in a model file."""

    source: Source


def known(span: Span) -> bool:
    """Whether a place is one in Python code or in a file."""
    return isinstance(span, Caller | Written)


def frame() -> FrameType:
    """The innermost frame outside this package and numpy."""
    current: FrameType | None = sys._getframe(1)
    while current is not None and current.f_globals.get("__name__", "").startswith(_INNER):
        current = current.f_back
    assert current is not None
    return current


def here(of: FrameType | None = None) -> Caller:
    """The expression that is being evaluated outside this package, or in the given frame."""
    of = of or frame()
    return Caller(start=0, end=0, code=of.f_code, instruction=of.f_lasti // 2)


def place(span: Span, shown: str = "") -> tuple[Source, Span] | None:
    """The text that a place is in, and the place there; None for a span that is no place.

    shown  the text for code whose text Python does not keep
    """
    if isinstance(span, Written):
        return span.source, Span(start=span.start, end=span.end)
    if not isinstance(span, Caller):
        return None
    positions = islice(span.code.co_positions(), span.instruction, None)
    line, end_line, column, end_column = next(positions, (None, None, None, None))
    line, column = line or span.code.co_firstlineno, column or 0
    text = "".join(linecache.getlines(span.code.co_filename))
    source = Source(text=text, name=span.code.co_filename)
    lines = text.split("\n")
    if line > len(lines) or not text:
        shown = " ".join(shown.split()) or "..."
        start = line - 1 + column
        blank = Source(text="\n" * (line - 1) + " " * column + shown, name=source.name)
        return blank, Span(start=start, end=start + len(shown))
    if end_column is None:
        end_column = len(lines[line - 1].encode())
    start = _offset(lines, line, column)
    end = _offset(lines, end_line or line, end_column)
    return source, Span(start=start, end=max(start, end))


def _offset(lines: list[str], line: int, column: int) -> int:
    """The characters before a place; lines count from 1, columns count bytes from 0."""
    before = len(lines[line - 1].encode()[:column].decode(errors="ignore"))
    return sum(len(text) + 1 for text in lines[: line - 1]) + before


def text(span: Span) -> str:
    """The text at a place, or an empty text if Python does not keep it."""
    located = place(span)
    if located is None:
        return ""
    source, local = located
    return source.text[local.start : local.end]


def row(span: Span) -> str:
    """``line 3 of nb.py``, for a message about another place."""
    located = place(span)
    if located is None:
        return "a place unknown"
    source, local = located
    return f"line {source.place(local)[0]} of {source.name}"


def construct(span: Span) -> ast.AST | None:
    """The smallest construct of Python around a place that asks for its truth value.

    None if there is none, or if Python does not keep the text.
    """
    found = _tree(span)
    if found is None:
        return None
    source, local, tree = found
    start, end = source.place(local), source.place(Span(start=local.end, end=local.end))
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _ASKING) and _asks_for_truth(node) and _from(node) <= start and end <= _to(node)
    ]
    if around:
        return around[-1]
    return None


#: Constructs of Python that may ask for a truth value.
_ASKING = (
    ast.BoolOp,
    ast.Compare,
    ast.UnaryOp,
    ast.IfExp,
    ast.If,
    ast.While,
    ast.Assert,
    ast.GeneratorExp,
)


def _asks_for_truth(node: ast.AST) -> bool:
    """Whether a construct asks for a truth value; comparisons do if they are chained."""
    if isinstance(node, ast.Compare):
        return len(node.ops) > 1
    return not isinstance(node, ast.UnaryOp) or isinstance(node.op, ast.Not)


def _from(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Line and column, both from 1, where a construct begins."""
    return node.lineno, node.col_offset + 1


def _to(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Line and column, both from 1, after the end of a construct."""
    return node.end_lineno or 0, (node.end_col_offset or 0) + 1


def iterable(span: Span) -> Span:
    """The place of the iterable of the loop or comprehension around a place, if the text is kept.

    Versions of Python differ in the place that they give to an iteration.
    """
    found = _tree(span)
    if found is None:
        return span
    source, local, tree = found
    start = source.place(local)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.ListComp | ast.SetComp | ast.DictComp)
        and _from(node) <= start < _to(node)
    ]
    if not around:
        return span
    innermost = around[-1]
    if isinstance(innermost, ast.For):
        over = innermost.iter
    else:
        over = innermost.generators[0].iter
    lines = source.text.split("\n")
    first = _offset(lines, over.lineno, over.col_offset)
    last = _offset(lines, over.end_lineno or over.lineno, over.end_col_offset or 0)
    return Written(start=first, end=last, source=source)


def _tree(span: Span) -> tuple[Source, Span, ast.Module] | None:
    """The text that a place is in, the place there, and the text as a tree; None if there is none."""
    located = place(span)
    if located is None:
        return None
    source, local = located
    tree = _parsed(source.text)
    if tree is None:
        return None
    return source, local, tree


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def refusal(span: Span, diagnostic: Diagnostic, shown: str = "") -> FccoError:
    """The error with a diagnostic about a place in Python code."""
    located = place(span, shown)
    if located is None:
        return FccoError([replace(diagnostic, span=None)])
    source, local = located
    return FccoError([replace(diagnostic, span=local)], source)


__all__ = [
    "NOWHERE",
    "Caller",
    "Written",
    "construct",
    "frame",
    "here",
    "iterable",
    "known",
    "place",
    "refusal",
    "row",
    "text",
]
