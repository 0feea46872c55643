"""Places in Python code: where a call stands, and the text there, in files and in notebook cells."""

from __future__ import annotations

import ast
import linecache
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import NOWHERE, Source, Span

_OWN = "fccomodel."


@dataclass(frozen=True, kw_only=True)
class Caller(Span):
    """An instruction of Python code, whose line and columns are looked up when they are asked for."""

    code: CodeType = field(compare=False)
    instruction: int = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Written(Span):
    """A place in a text of its own, as that of a model file."""

    source: Source


def known(span: Span) -> bool:
    """Whether a place is one in Python code or in a file."""
    return isinstance(span, Caller | Written)


def frame() -> FrameType:
    """The innermost frame outside this package."""
    found: FrameType | None = sys._getframe(1)
    while found is not None and found.f_globals.get("__name__", "").startswith(_OWN):
        found = found.f_back
    assert found is not None
    return found


def here(of: FrameType | None = None) -> Caller:
    """The expression that is being evaluated outside this package."""
    of = of or frame()
    return Caller(start=0, end=0, code=of.f_code, instruction=of.f_lasti // 2)


def place(span: Span, shown: str = "") -> tuple[Source, Span] | None:
    """The text that a place is in, and the place there; None of what has no place.

    Where Python keeps no text of the code, ``shown`` stands for it.
    """
    if isinstance(span, Written):
        return span.source, Span(start=span.start, end=span.end)
    if not isinstance(span, Caller):
        return None
    line, end_line, column, end_column = next(
        islice(span.code.co_positions(), span.instruction, None), (None,) * 4
    )
    line = line or span.code.co_firstlineno
    text = "".join(linecache.getlines(span.code.co_filename))
    source = Source(text=text, name=span.code.co_filename)
    lines = text.split("\n")
    if line > len(lines) or not text:
        shown = " ".join(shown.split()) or "..."
        start = line - 1 + (column or 0)
        blank = Source(text="\n" * (line - 1) + " " * (column or 0) + shown, name=source.name)
        return blank, Span(start=start, end=start + len(shown))
    start = _offset(lines, line, column or 0)
    end = _offset(
        lines, end_line or line, len(lines[line - 1].encode()) if end_column is None else end_column
    )
    return source, Span(start=start, end=max(start, end))


def _offset(lines: list[str], line: int, column: int) -> int:
    """The characters before a column, which counts bytes, of a line, which counts from 1."""
    before = len(lines[line - 1].encode()[:column].decode(errors="ignore"))
    return sum(len(text) + 1 for text in lines[: line - 1]) + before


def text(span: Span) -> str:
    """What is written at a place; nothing where that is not kept."""
    found = place(span)
    if found is None:
        return ""
    return found[0].text[found[1].start : found[1].end]


def row(span: Span) -> str:
    """``line 3 of nb.py``, for a message about another place."""
    found = place(span)
    if found is None:
        return "a place unknown"
    return f"line {found[0].place(found[1])[0]} of {found[0].name}"


def construct(span: Span) -> ast.AST | None:
    """The smallest construct of Python that asks for the truth value of what stands here; None where
    the text is not kept."""
    found = place(span)
    if found is None:
        tree = None
    else:
        tree = _parsed(found[0].text)
    if found is None or tree is None:
        return None
    (line, column), end = found[0].place(found[1]), found[0].place(Span(start=found[1].end, end=found[1].end))
    inner = []
    for node in ast.walk(tree):
        if not isinstance(
            node,
            ast.BoolOp
            | ast.Compare
            | ast.UnaryOp
            | ast.IfExp
            | ast.If
            | ast.While
            | ast.Assert
            | ast.GeneratorExp,
        ):
            continue
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            or isinstance(node, ast.UnaryOp)
            and not isinstance(node.op, ast.Not)
        ):
            continue
        if (node.lineno, node.col_offset + 1) <= (line, column) and end <= (
            node.end_lineno or 0,
            (node.end_col_offset or 0) + 1,
        ):
            inner.append(node)
    if inner:
        return inner[-1]
    return None


def iterable(span: Span) -> Span:
    """What a loop or a comprehension goes through, where the text is kept: versions of Python place
    that differently."""
    found = place(span)
    if found is None:
        tree = None
    else:
        tree = _parsed(found[0].text)
    if found is None or tree is None:
        return span
    line, column = found[0].place(found[1])
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.ListComp | ast.SetComp | ast.DictComp)
    ]
    around = [
        n
        for n in loops
        if (n.lineno, n.col_offset + 1) <= (line, column) < (n.end_lineno or 0, (n.end_col_offset or 0) + 1)
    ]
    if not around:
        return span
    if isinstance(around[-1], ast.For):
        over = around[-1].iter
    else:
        over = around[-1].generators[0].iter
    lines = found[0].text.split("\n")
    start = _offset(lines, over.lineno, over.col_offset)
    end = _offset(lines, over.end_lineno or over.lineno, over.end_col_offset or 0)
    return Written(start=start, end=end, source=found[0])


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def refusal(span: Span, diagnostic: Diagnostic, shown: str = "") -> FccoError:
    """The error about a place in Python code, with the line of the code."""
    from dataclasses import replace

    found = place(span, shown)
    if found is None:
        return FccoError([replace(diagnostic, span=None)])
    return FccoError([replace(diagnostic, span=found[1])], found[0])


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
