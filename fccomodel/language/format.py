"""The canonical layout of a model: one statement per line, comments where they were, the user's own
brackets and spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lark import Token

from fccomodel.core.source import Source
from fccomodel.language import lexer, statements
from fccomodel.language.parse import declared_indices, parse
from fccomodel.language.splitter import split

#: Columns of a line, comments excepted.
WIDTH = 100
_INDENT = "  "
_CONTINUED = "    "
# Where a long line breaks, loosest first: before clauses and these words, or after those. Brackets
# count first.
_BREAK_BEFORE = {
    "OR": 1,
    "AND": 2,
    "CMP": 3,
    "VBAR": 3,
    "_DOTS": 4,
    "ADD": 5,
    "MUL": 6,
}
_BREAK_AFTER = {"COMMA": 0, "SEMICOLON": 0, "COLON": 0, "EQUAL": 1}
_BREAK_AT_BODY = 7
# After these a `+` or `-` is a sign.
_OPERATORS = frozenset(
    {"ADD", "MUL", "POW", "CMP", "EQUAL", "COLON", "COMMA", "SEMICOLON", "VBAR", "TILDE", "_DOTS", "SENSE"}
)
_KEYWORDS = frozenset({"IN", "AND", "OR", "NOT", "BY"})


def format(source: Source) -> str:
    """The model's text in canonical layout; it reads as the same abstract syntax, and formatting it
    again changes nothing.

    Raises ``FccoError`` where the model does not parse.
    """
    parse(source)
    tokens = lexer.tokens(source.text)
    pieces, _ = split([t for t in tokens if t.type not in lexer.SPACE], source.text, max_errors=1)
    indices = declared_indices(pieces)
    page = _Page()
    constrained = False
    k = 0
    for piece in pieces:
        kind = piece.words[0].type
        while tokens[k] is not piece.words[0]:
            page.between(tokens[k])
            k += 1
        end = k + 1
        while tokens[end - 1] is not piece.words[-1]:
            end += 1
        constrained = constrained or kind == "SUBJECT"
        indent = _INDENT if constrained and kind not in statements.by_token() else ""
        if kind == "SUBJECT":
            lines = ["s.t." if piece.words[0].startswith("s.") else "subject to"]
        elif kind == "OPTIONS":
            lines = _options(tokens[k:end], indices)
        else:
            lines = _lay_out(tokens[k:end], _end(tokens, end), indent, indices)
        page.statement(lines, indent)
        k = end
    for token in tokens[k:]:
        page.between(token)
    return page.text()


def _end(tokens: Sequence[Token], k: int) -> str:
    """The ``;`` of the statement whose words end before ``k``; an objective that ``s.t.`` follows has
    none."""
    while k < len(tokens) and tokens[k].type in lexer.SPACE:
        k += 1
    return ";" if k < len(tokens) and tokens[k].type == "SEMICOLON" else ""


@dataclass(kw_only=True)
class _Page:
    """Lines so far, the comments waiting for the indentation of what follows them, and the line ends
    since the last word."""

    lines: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    ends: int = 0

    def between(self, token: Token) -> None:
        """What stands between statements: a space, a comment, or the ``;`` that has already been written."""
        if token.type == "COMMENT":
            if self.ends == 0 and self.lines and not self.waiting:
                self.lines[-1] += _INDENT + token.rstrip()
            else:
                self.paragraph()
                self.waiting.append(token.rstrip())
            self.ends = 0
        elif token.type == "WS":
            self.ends += token.count("\n")

    def paragraph(self) -> None:
        """Keep one blank line of those since the last word or comment."""
        if self.ends > 1 and (self.lines or self.waiting):
            self.waiting.append("")

    def statement(self, lines: list[str], indent: str) -> None:
        self.paragraph()
        self.lines += [indent + line if line else "" for line in self.waiting] + lines
        self.waiting, self.ends = [], 0

    def text(self) -> str:
        lines = self.lines + self.waiting
        if lines:
            return "\n".join(lines) + "\n"
        return ""


# ------------------------------------------------------------------------------------ one statement
def _options(tokens: Sequence[Token], indices: frozenset[str]) -> list[str]:
    """``options {``, one option per line, ``}``."""
    opened = next(k for k, t in enumerate(tokens) if t.type == "LBRACE")
    page = _Page(lines=["options {"])
    for token in tokens[1:opened]:
        page.between(token)
    k, closed = opened + 1, len(tokens) - 1
    while k < closed:
        if tokens[k].type in (*lexer.SPACE, "SEMICOLON"):
            page.between(tokens[k])
            k += 1
            continue
        end = _semicolon(tokens, k)
        while tokens[end - 1].type in lexer.SPACE:
            end -= 1
        page.statement(_lay_out(tokens[k:end], ";", _INDENT, indices), _INDENT)
        k = end
    return [*page.lines, *(_INDENT + line if line else "" for line in page.waiting), "}"]


def _semicolon(tokens: Sequence[Token], k: int) -> int:
    """The index of the first ``;`` outside brackets from ``k`` on."""
    depth = 0
    while depth or tokens[k].type != "SEMICOLON":
        depth += (tokens[k].type in lexer.OPEN) - (tokens[k].type in lexer.OPEN.values())
        k += 1
    return k


def _lay_out(tokens: Sequence[Token], end: str, indent: str, indices: frozenset[str]) -> list[str]:
    """Words, spaced, on as few lines as the width allows; a comment ends its line. ``end`` follows the
    last word."""
    words = _spaced([t for t in tokens if t.type not in lexer.SPACE], end, indices)
    lines: list[str] = []
    run: list[_Word] = []
    k = 0
    own_line = False
    for token in tokens:
        if token.type == "COMMENT":
            lines += _wrap(run, indent + _CONTINUED if lines else indent, indent + _CONTINUED)
            run = []
            if own_line:
                lines.append(indent + _CONTINUED + token.rstrip())
            else:
                lines[-1] += _INDENT + token.rstrip()
        elif token.type == "WS":
            own_line = "\n" in token
        else:
            run.append(words[k])
            k += 1
            own_line = False
    return lines + _wrap(run, indent + _CONTINUED if lines else indent, indent + _CONTINUED)


@dataclass(frozen=True, kw_only=True)
class _Word:
    """A word to lay out: ``space`` before it or not; ``rank`` of a line break before it (brackets,
    then looseness), or None."""

    text: str
    space: bool
    rank: tuple[int, int] | None


def _wrap(words: Sequence[_Word], first: str, following: str) -> list[str]:
    """One line, or several: each break is the loosest within reach, and the last among equals."""
    lines: list[str] = []
    rest, indent = list(words), first
    while rest:
        columns = [len(indent)]
        for k, word in enumerate(rest):
            columns.append(columns[-1] + len(word.text) + (word.space and k > 0))
        if columns[-1] <= WIDTH:
            cut = len(rest)
        else:
            cut = _best_break(rest, columns, len(indent))
        lines.append(
            indent + "".join((" " if w.space and k else "") + w.text for k, w in enumerate(rest[:cut]))
        )
        rest, indent = rest[cut:], following
    return lines


def _best_break(words: Sequence[_Word], columns: Sequence[int], indent: int) -> int:
    """The index to break before; ``columns[k]`` is the width of the first ``k`` words."""
    possible = [k for k in range(1, len(words)) if words[k].rank is not None]
    within = [k for k in possible if columns[k] <= WIDTH]
    late = [k for k in within if columns[k] >= indent + WIDTH // 3]
    if late or within:
        return min(late or within, key=lambda k: (words[k].rank, -k))
    if possible:
        return possible[0]
    return len(words)


def _spaced(tokens: Sequence[Token], end: str, indices: frozenset[str]) -> list[_Word]:
    """Each word with the space and the line break that may stand before it."""
    break_before = _BREAK_BEFORE | dict.fromkeys(statements.clauses(), 0)
    keywords = _KEYWORDS | statements.clauses()
    words: list[_Word] = []
    brackets: list[bool] = []  # whether each open bracket holds the index of a reduction or of a family
    operand = True  # whether a value begins here, so that `-` is a sign
    statement = statements.by_token().get(tokens[0].type)
    spaced_colon = statement is not None and statement.spaced_colon
    tight = True  # no space after what came before
    body = False
    for k, token in enumerate(tokens):
        kind = token.type
        sign = kind == "ADD" and operand
        if k:
            before = tokens[k - 1]
        else:
            before = None
        space = not tight and not _sticks(token, before, operand, spaced_colon and not brackets)
        rank: int | None = None
        if before is not None and not sign and not operand and kind in break_before:
            rank = break_before[kind]
        elif (
            before is not None
            and before.type in _BREAK_AFTER
            and (not brackets or before.type in ("COMMA", "SEMICOLON"))
        ):
            rank = _BREAK_AFTER[before.type]
        elif body:
            rank = _BREAK_AT_BODY
        words.append(
            _Word(
                text=token + (end if k == len(tokens) - 1 else ""),
                space=space,
                rank=None if rank is None else (len(brackets), rank),
            )
        )
        body = False
        tight = sign or kind in lexer.OPEN or kind == "POW"
        if kind in lexer.OPEN:
            brackets.append(kind == "LSQB" and k + 2 < len(tokens) and tokens[k + 2].type in ("IN", "TILDE"))
            operand = True
        elif kind in lexer.OPEN.values():
            operand = body = brackets.pop()
        else:
            subscripted = kind == "NAME" and lexer.subscript(token) in indices
            operand = sign or subscripted or kind in _OPERATORS or kind in keywords
            body = subscripted
    return words


def _sticks(token: Token, before: Token | None, operand: bool, spaced_colon: bool) -> bool:
    """Whether a word follows the one before it without a space."""
    kind = token.type
    if kind in ("COMMA", "SEMICOLON", "FIELD", "POW") or kind in lexer.OPEN.values():
        return True
    if kind == "COLON":
        return not spaced_colon
    if before is None or kind not in ("LPAR", "LSQB"):
        return False
    return not operand if kind == "LPAR" else True
