"""The canonical layout of a model: one statement a line; comments, brackets and spelling stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lark import Token

from fccomodel.core.source import Source
from fccomodel.language import lexer, statements
from fccomodel.language.parse import declared_indices, parse
from fccomodel.language.splitter import split

#: Columns of a line, comments excepted.
WIDTH = 100
#: Columns that a broken line has at least, if it can.
SHORTEST_LINE = WIDTH // 3
_INDENT = "  "
_CONTINUED = "    "
#: Types of the words before which a long line breaks, with their ranks: breaks of low rank come first.
_BREAK_BEFORE = {
    "OR": 1,
    "AND": 2,
    "CMP": 3,
    "VBAR": 3,
    "_DOTS": 4,
    "ADD": 5,
    "MUL": 6,
}
#: Types of the words after which a long line breaks, with their ranks.
_BREAK_AFTER = {"COMMA": 0, "SEMICOLON": 0, "COLON": 0, "EQUAL": 1}
#: Rank of a clause of a statement.
_BREAK_AT_CLAUSE = 0
#: Rank of the body of a reduction.
_BREAK_AT_BODY = 7
#: Types of the words after which a value begins, so that `+` and `-` are signs.
_OPERATORS = frozenset(
    {"ADD", "MUL", "POW", "CMP", "EQUAL", "COLON", "COMMA", "SEMICOLON", "VBAR", "TILDE", "_DOTS", "SENSE"}
)
#: Types of such words that look like names.
_KEYWORDS = frozenset({"IN", "AND", "OR", "NOT", "BY"})


def format(source: Source) -> str:
    """The model's text in canonical layout.

    It reads as the same abstract syntax, and formatting it again changes nothing. Raises ``FccoError``
    if the model does not parse.
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
        if constrained and kind not in statements.by_token():
            indent = _INDENT
        else:
            indent = ""
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
    """The ``;`` of the statement whose words end before ``k``, or nothing if ``s.t.`` follows."""
    while k < len(tokens) and tokens[k].type in lexer.SPACE:
        k += 1
    if k < len(tokens) and tokens[k].type == "SEMICOLON":
        return ";"
    return ""


@dataclass(kw_only=True)
class _Page:
    """The lines of the layout so far.

    lines    the lines so far
    waiting  comments that wait for the indentation of the statement that follows
    ends     the line ends since the last word or comment
    """

    lines: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    ends: int = 0

    def between(self, token: Token) -> None:
        """Take a token between statements: space, a comment, or a ``;`` that was already written."""
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
        """Keep one blank line if there were some since the last word or comment."""
        if self.ends > 1 and (self.lines or self.waiting):
            self.waiting.append("")

    def statement(self, lines: list[str], indent: str) -> None:
        """Add the lines of a statement, after the comments that wait for it."""
        self.paragraph()
        self.lines += [indent + line if line else "" for line in self.waiting] + lines
        self.waiting, self.ends = [], 0

    def text(self) -> str:
        """The text of all lines."""
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
    """The lines of a statement, as few as the width allows; a comment ends its line.

    end  what follows the last word
    """
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
    """A word to lay out.

    text   the word
    space  whether a space stands before it
    rank   the rank of a line break before it, open brackets first; None: no break
    """

    text: str
    space: bool
    rank: tuple[int, int] | None


def _wrap(words: Sequence[_Word], first: str, following: str) -> list[str]:
    """Words on lines, each broken at the lowest rank within the width, at the last place among equals."""
    lines: list[str] = []
    rest, indent = list(words), first
    while rest:
        columns = [len(indent)]
        for k, word in enumerate(rest):
            columns.append(columns[-1] + len(word.text) + (word.space and k > 0))
        cut = len(rest)
        if columns[-1] > WIDTH:
            cut = _best_break(rest, columns, len(indent))
        spaced = [f" {word.text}" if word.space else word.text for word in rest[:cut]]
        lines.append(indent + "".join(spaced).removeprefix(" "))
        rest, indent = rest[cut:], following
    return lines


def _best_break(words: Sequence[_Word], columns: Sequence[int], indent: int) -> int:
    """The index to break before; ``columns[k]`` is the width of the first ``k`` words."""
    possible = [k for k in range(1, len(words)) if words[k].rank is not None]
    within = [k for k in possible if columns[k] <= WIDTH]
    late = [k for k in within if columns[k] >= indent + SHORTEST_LINE]
    for places in (late, within):
        if places:
            return min(places, key=lambda k: (words[k].rank, -k))
    if possible:
        return possible[0]
    return len(words)


def _spaced(tokens: Sequence[Token], end: str, indices: frozenset[str]) -> list[_Word]:
    """Each word with the space and the line break that may stand before it; ``end`` follows the last."""
    spacing = _Spacing(tokens, indices)
    words = [spacing.take(k) for k in range(len(tokens))]
    return [*words[:-1], replace(words[-1], text=words[-1].text + end)]


class _Spacing:
    """Goes through the words of a statement and finds the spaces and line breaks before them.

    brackets  for each open bracket, whether it holds the index of a reduction or of a family
    operand   whether a value begins at the next word, so that ``-`` is a sign
    tight     whether no space stands before the next word
    body      whether the body of a reduction begins at the next word
    """

    def __init__(self, tokens: Sequence[Token], indices: frozenset[str]):
        self.tokens = tokens
        self.indices = indices
        self.break_before = _BREAK_BEFORE | dict.fromkeys(statements.clauses(), _BREAK_AT_CLAUSE)
        self.keywords = _KEYWORDS | statements.clauses()
        statement = statements.by_token().get(tokens[0].type)
        self.spaced_colon = statement is not None and statement.spaced_colon
        self.brackets: list[bool] = []
        self.operand = True
        self.tight = True
        self.body = False

    def take(self, k: int) -> _Word:
        """Word ``k``, which follows the words taken before."""
        token = self.tokens[k]
        sign = token.type == "ADD" and self.operand
        if k > 0:
            before = self.tokens[k - 1]
        else:
            before = None
        spaced_colon = self.spaced_colon and not self.brackets
        space = not self.tight and not _sticks(token, before, self.operand, spaced_colon)
        rank = self.rank(token, before, sign)
        word = _Word(text=token, space=space, rank=None if rank is None else (len(self.brackets), rank))
        self.go_on(k, sign)
        return word

    def rank(self, token: Token, before: Token | None, sign: bool) -> int | None:
        """The rank of a line break before a word, or None if none may stand there."""
        if before is not None:
            if token.type in self.break_before and not sign and not self.operand:
                return self.break_before[token.type]
            separates = not self.brackets or before.type in ("COMMA", "SEMICOLON")
            if before.type in _BREAK_AFTER and separates:
                return _BREAK_AFTER[before.type]
        if self.body:
            return _BREAK_AT_BODY
        return None

    def go_on(self, k: int, sign: bool) -> None:
        """Set the state for the word after word ``k``."""
        kind = self.tokens[k].type
        self.tight = sign or kind in lexer.OPEN or kind == "POW"
        self.body = False
        if kind in lexer.OPEN:
            holds_index = k + 2 < len(self.tokens) and self.tokens[k + 2].type in ("IN", "TILDE")
            self.brackets.append(kind == "LSQB" and holds_index)
            self.operand = True
        elif kind in lexer.OPEN.values():
            self.operand = self.body = self.brackets.pop()
        else:
            self.body = kind == "NAME" and lexer.subscript(self.tokens[k]) in self.indices
            begins = kind == "START_AT" and k > 1 and not self.operand and self.tokens[0].type == "VAR"
            self.operand = sign or self.body or begins or kind in _OPERATORS or kind in self.keywords


def _sticks(token: Token, before: Token | None, operand: bool, spaced_colon: bool) -> bool:
    """Whether a word follows the one before it without a space."""
    kind = token.type
    if kind in ("COMMA", "SEMICOLON", "FIELD", "POW") or kind in lexer.OPEN.values():
        return True
    if kind == "COLON":
        return not spaced_colon
    if before is None:
        return False
    return kind in ("LSQB", "LPAR") and not operand
