"""Text to abstract syntax. Every syntax error of a file is found in one pass."""

from __future__ import annotations

from lark import Token
from lark.exceptions import UnexpectedToken

from fccomodel import lex, slips, syntax
from fccomodel.build import Refusal, build
from fccomodel.diagnostics import Diagnostic, FccoError, error
from fccomodel.lex import grammar_text
from fccomodel.source import Source, Span
from fccomodel.split import STARTS, Piece, split

__all__ = ["declared_indices", "grammar_text", "parse"]

#: A model file's length in characters, and one statement's in words: the text is mathematics, data are bound to it.
MAX_CHARACTERS = 1_000_000
MAX_WORDS = 50_000
#: Errors reported at once.
MAX_ERRORS = 30
# Never read as names, wherever they stand: `a + in b` is a slip, not a sum with a quantity called `in`.
_FIXED = frozenset({"IN", "AND", "OR", "NOT"})


def parse(source: Source) -> syntax.Model:
    """The abstract syntax of a model; raises ``FccoError`` with all syntax errors, in the order of the text."""
    text = source.text
    refused = slips.unreadable(text, MAX_CHARACTERS)
    if refused is not None:
        raise FccoError([refused], source)
    words = [word for word in lex.tokens(text) if word.type not in lex.SPACE]
    errors = [slips.junk(words, k) for k in _first(k for k, word in enumerate(words) if word.type.startswith(lex.JUNK))]
    pieces, faults = split(words, text, max_errors=MAX_ERRORS)
    errors += faults
    statements: list[syntax.Statement] = []
    indices = declared_indices(pieces)
    constrained = False
    for piece in pieces:
        if len(errors) >= MAX_ERRORS:
            break
        constrained = constrained or piece.words[0].type == "SUBJECT"
        if not piece.broken:
            try:
                statements.append(_statement(piece, constrained, indices))
            except Refusal as refusal:
                errors.append(refusal.diagnostic)
            else:
                if not piece.closed:
                    errors.append(slips.not_closed(piece))
    errors += slips.order(statements)
    if not words:
        errors.append(slips.empty(text))
    if errors:
        raise FccoError(_sorted(errors), source)
    return syntax.Model(statements=tuple(statements), span=Span(start=0, end=len(text)))


def _first(found):
    """At most ``MAX_ERRORS`` of them."""
    return [item for _, item in zip(range(MAX_ERRORS), found, strict=False)]


def _sorted(errors: list[Diagnostic]) -> list[Diagnostic]:
    """In the order of the text, cut off at ``MAX_ERRORS``, which is then said."""
    errors = sorted(errors, key=lambda d: d.span.start if d.span else -1)
    if len(errors) < MAX_ERRORS:
        return errors
    why = "The rest of the file was not read, or its errors are not shown: many follow from the first ones."
    return [*errors[:MAX_ERRORS], error("F0118", f"stopped after {MAX_ERRORS} errors", reason=why, fix="mend the first ones and try again")]


def declared_indices(pieces: list[Piece]) -> frozenset[str]:
    """Names that `index i in P, j ~ N;` declares anywhere in the file: what may stand as a subscript in `mean_i`."""
    return frozenset(
        str(word)
        for piece in pieces
        if piece.words[0].type == "INDEX"
        for word, after in zip(piece.words, piece.words[1:], strict=False)
        if word.type == "NAME" and after.type in ("IN", "TILDE")
    )


def _statement(piece: Piece, constrained: bool, indices: frozenset[str]) -> syntax.Statement:
    """One statement's node; raises ``Refusal``."""
    words = piece.words
    if len(words) > MAX_WORDS:
        raise Refusal(slips.too_long(words, MAX_WORDS))
    labelled = constrained and len(words) > 1 and words[1].type in ("COLON", "LSQB")
    begins = words[0].type in STARTS and not labelled
    if not begins and (not constrained or slips.looks_declared(words)):
        raise Refusal(slips.unknown_statement(words, constrained))
    state = lex.grammar().parser.parse_interactive(start="statement" if begins else "constraint")
    for k, word in enumerate(words):
        try:
            state.feed_token(_as_read(word, state.choices(), indices))
        except UnexpectedToken as unexpected:
            raise Refusal(slips.unexpected(words, k, unexpected.expected, piece.closed)) from None
    try:
        tree = state.feed_eof(words[-1])
    except UnexpectedToken as unexpected:
        raise Refusal(slips.unexpected(words, len(words), unexpected.expected, piece.closed)) from None
    return build(tree)


def _as_read(word: Token, choices: dict, indices: frozenset[str]) -> Token:
    """A word as its place reads it: statement words are names where only a name can stand, `mean_i` a reduction if `i` is an index."""
    kind = word.type
    if kind == "NAME":
        if "SUBRED" in choices and lex.subscript(word) in indices:
            return Token("SUBRED", word.value, word.start_pos, end_pos=word.end_pos)
    elif kind not in choices and kind not in _FIXED and "NAME" in choices and lex.is_name(word):
        return Token("NAME", word.value, word.start_pos, end_pos=word.end_pos)
    return word
