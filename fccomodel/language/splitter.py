"""Words to statements: cuts at each ``;`` outside brackets, so that an error hides no other statement."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.language import errors, lexer, statements

#: Levels of brackets inside one another.
MAX_BRACKETS = 100


@dataclass(frozen=True, kw_only=True)
class Piece:
    """The words of one statement without its ``;``.

    closed  whether it has a ``;``
    broken  whether an error in it was reported already
    """

    words: tuple[Token, ...]
    closed: bool = True
    broken: bool = False


def split(words: list[Token], text: str, *, max_errors: int) -> tuple[list[Piece], list[Diagnostic]]:
    """The statements of a model, and the errors in its brackets.

    words  the words of the text, without spaces and comments
    """
    splitter = _Splitter(words, text)
    k = 0
    while k < len(splitter.words) and len(splitter.errors) < max_errors:
        k = splitter.step(k)
    return splitter.pieces, splitter.errors


class _Splitter:
    """One pass over the words.

    errors  the errors so far
    pieces  the statements so far
    start   the index of the first word of the current statement
    open    the indices of the open brackets in it
    broken  whether an error in it was reported already
    """

    def __init__(self, words: list[Token], text: str):
        self.words = [*words, Token("EOF", "", len(text), 0, end_pos=len(text))]
        self.text = text
        self.errors: list[Diagnostic] = []
        self.pieces: list[Piece] = []
        self.start = 0
        self.open: list[int] = []
        self.broken = False

    def step(self, k: int) -> int:
        """Take word ``k``: the index of the word to go on with."""
        kind = self.words[k].type
        if kind == "EOF" or self.begins(k):
            if self.open:
                return self.unclosed(k)
            if k > self.start:
                self.cut(k, closed=kind == "SUBJECT" and self.words[self.start].type == "SENSE")
                self.start = k
        if kind == "SUBJECT" and k == self.start:
            self.cut(k + 1)
            return self.after_subject(k + 1)
        if kind in lexer.OPEN.values():
            return self.closer(k)
        if kind == "SEMICOLON":
            return self.semicolon(k)
        if kind.startswith(lexer.JUNK):
            self.broken = True
        elif kind in lexer.OPEN:
            self.opener(k)
        return k + 1

    def begins(self, k: int) -> bool:
        """Whether a statement begins at word ``k``, even if a ``;`` or a bracket before it is missing."""
        word, after = self.words[k], self.words[min(k + 1, len(self.words) - 1)]
        kind = statements.by_token().get(word.type)
        if kind is None:
            return False
        if kind.follows == "NAME":
            if not lexer.is_name(after):
                return False
            if k == self.start + 1 and _takes_a_name(self.words[self.start]):
                return False  # `var data;`: a bad name, not a new statement
        elif kind.follows and after.type != kind.follows:
            return False
        return not self.open or self.first_on_line(k)

    def first_on_line(self, k: int) -> bool:
        """Whether word ``k`` is the first of its line."""
        return k == 0 or self.words[k - 1].line != self.words[k].line

    def cut(self, end: int, closed: bool = True) -> None:
        """End the statement before word ``end``."""
        words = tuple(self.words[self.start : end])
        if words:
            self.pieces.append(Piece(words=words, closed=closed, broken=self.broken))
        self.start, self.open, self.broken = end, [], False

    def after_subject(self, k: int) -> int:
        """Refuse a ``;`` or a ``:`` after ``subject to``: the index of the word to go on with."""
        if self.words[k].type not in ("SEMICOLON", "COLON"):
            return k
        self.errors.append(errors.statements.heading_with_end(self.words[k], lexer.span(self.words[k])))
        self.start, self.broken = k + 1, False
        return k + 1

    def opener(self, k: int) -> None:
        """Note the bracket that opens at word ``k``."""
        self.open.append(k)
        if len(self.open) == MAX_BRACKETS + 1:
            self.fault(errors.statements.deep_brackets(MAX_BRACKETS, lexer.span(self.words[k])))

    def semicolon(self, k: int) -> int:
        """End the statement at the ``;`` of word ``k``, unless it stands in a call or in options."""
        if not self.open:
            if k == self.start:
                self.errors.append(errors.statements.nothing_ends(lexer.span(self.words[k])))
            self.cut(k)
            self.start, self.broken = k + 1, False
            return k + 1
        within = self.words[self.open[-1]].type
        in_options = within == "LBRACE" and len(self.open) == 1 and self.words[self.start].type == "OPTIONS"
        if within == "LPAR" or in_options:
            return k + 1
        return self.unclosed(k)

    def closer(self, k: int) -> int:
        """Close a bracket at word ``k``: the index of the word to go on with."""
        word = self.words[k]
        if not self.open:
            self.fault(errors.statements.nothing_to_close(word, lexer.span(word)))
            return k + 1
        opener = self.words[self.open[-1]]
        if lexer.OPEN[opener.type] != word.type:
            closer, where = lexer.CLOSER[str(opener)], self.where(opener, word)
            self.fault(errors.statements.crossed_brackets(word, opener, where, closer, lexer.span(word)))
            while self.open and lexer.OPEN[self.words[self.open[-1]].type] != word.type:
                self.open.pop()
        if self.open:
            self.open.pop()
        if not self.open and word.type == "RBRACE" and self.words[self.start].type == "OPTIONS":
            self.cut(k + 1)
            if self.words[k + 1].type == "SEMICOLON":
                self.start = k + 2
        return max(k + 1, self.start)

    def unclosed(self, k: int) -> int:
        """Report an open bracket where a statement must end: the index of the word to go on with.

        The statement then ends at the first ``;`` at the end of a line, or else before word ``k``.
        """
        opener = self.open[-1]
        word = self.words[opener]
        self.fault(errors.statements.never_closed(word, lexer.CLOSER[str(word)], lexer.span(word)))
        options = word.type == "LBRACE" and self.words[self.start].type == "OPTIONS"
        for j in range(k if options else opener + 1, min(k + 1, len(self.words) - 1)):
            if self.words[j].type != "SEMICOLON":
                continue
            if j == k or self.first_on_line(j + 1) or self.words[j + 1].type == "EOF":
                self.cut(j)
                self.start = j + 1
                return j + 1
        self.cut(k)
        if self.words[k].type != "EOF":
            return k
        return k + 1

    def where(self, opener: Token, word: Token) -> str:
        """The place of a bracket, in words, relative to another word."""
        start = opener.start_pos or 0
        if opener.line != word.line:
            return f"of line {opener.line}"
        return f"of column {start - self.text.rfind(chr(10), 0, start)}"

    def fault(self, diagnostic: Diagnostic) -> None:
        """Report an error in this statement, unless one was reported."""
        if not self.broken:
            self.errors.append(diagnostic)
        self.broken = True


def _takes_a_name(word: Token) -> bool:
    """Whether a word begins a statement that gives a name."""
    kind = statements.by_token().get(word.type)
    return kind is not None and kind.follows == "NAME"
