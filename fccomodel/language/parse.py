"""Text to abstract syntax; one pass finds every syntax error of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lark import Token
from lark.exceptions import UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source, Span
from fccomodel.language import characters, errors, lexer, mistakes, statements, syntax
from fccomodel.language.lexer import grammar_text
from fccomodel.language.splitter import Piece, split
from fccomodel.language.tree import Refusal, build

__all__ = ["declared_indices", "grammar_text", "parse", "statement"]

#: Characters of a model file.
MAX_CHARACTERS = 1_000_000
#: Words of a statement.
MAX_WORDS = 50_000
#: Type of the word `start`, which is a name wherever a name can stand.
START_WORD = "START_AT"
#: Errors reported at once.
MAX_ERRORS = 30
#: From the words of a statement, whether constraints may stand there, and the declared indices to its nodes.
Reading = Callable[[Piece, bool, frozenset[str]], tuple[syntax.Statement, ...]]


def parse(source: Source, read: Reading | None = None) -> syntax.Model:
    """The abstract syntax of a model; raises ``FccoError`` with all syntax errors in order.

    read  reads one statement, in place of ``statement``: an editor remembers those that it has read
    """
    read = read or statement
    text = source.text
    refused = characters.unreadable(text, MAX_CHARACTERS)
    if refused is not None:
        raise FccoError([refused], source)
    words = [word for word in lexer.tokens(text) if word.type not in lexer.SPACE]
    diagnostics = characters.all_junk(words, MAX_ERRORS)
    pieces, faults = split(words, text, max_errors=MAX_ERRORS)
    diagnostics += faults
    parsed: list[syntax.Statement] = []
    indices = declared_indices(pieces)
    constrained = False
    waiting = pieces[::-1]
    while waiting and len(diagnostics) < MAX_ERRORS:
        piece = waiting.pop()
        constrained = constrained or piece.words[0].type == "SUBJECT"
        if piece.broken:
            continue
        try:
            parsed += read(piece, constrained, indices)
        except Refusal as refusal:
            diagnostics.append(refusal.diagnostic)
            if refusal.rest is not None:
                waiting.append(replace(piece, words=piece.words[refusal.rest :]))
        else:
            if not piece.closed:
                diagnostics.append(mistakes.not_closed(piece))
    diagnostics += mistakes.order(parsed) + mistakes.subscripts(parsed, indices)
    if not words:
        diagnostics.append(errors.text.no_statement(comments=bool(text.strip())))
    if diagnostics:
        raise FccoError(_sorted(diagnostics), source)
    return syntax.Model(statements=tuple(parsed), span=Span(start=0, end=len(text)))


def _sorted(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Errors in the order of the text; after ``MAX_ERRORS`` of them, one that says that there are more."""
    diagnostics = sorted(diagnostics, key=lambda d: d.span.start if d.span else -1)
    if len(diagnostics) < MAX_ERRORS:
        return diagnostics
    return [*diagnostics[:MAX_ERRORS], errors.text.too_many_errors(MAX_ERRORS)]


def declared_indices(pieces: list[Piece]) -> frozenset[str]:
    """The names that ``index i in P, j ~ N;`` declares anywhere in the file: the subscripts of ``mean_i``."""
    return frozenset(
        str(word)
        for piece in pieces
        if piece.words[0].type == "INDEX"
        for word, after in zip(piece.words, piece.words[1:], strict=False)
        if word.type in ("NAME", START_WORD) and after.type in ("IN", "TILDE")
    )


def statement(piece: Piece, constrained: bool, indices: frozenset[str]) -> tuple[syntax.Statement, ...]:
    """The nodes of one statement, several for ``var x, y;``; raises ``Refusal``."""
    words = piece.words
    if len(words) > MAX_WORDS:
        raise Refusal(errors.text.long_statement(len(words), MAX_WORDS, lexer.span(words[0])))
    begins = _begins_with_its_word(words, constrained)
    two_names = len(words) > 1 and words[0].type == words[1].type == "NAME"
    declares = two_names and lexer.subscript(words[0]) not in indices
    if not begins and (declares or not constrained):
        raise Refusal(mistakes.unknown_statement(words, constrained))
    parser = lexer.grammar().parser.parse_interactive(start="statement" if begins else "constraint")
    k, states = 0, []
    try:
        while k < len(words):
            states = list(parser.parser_state.state_stack)
            parser.feed_token(_as_read(words[k], parser.choices(), indices))
            k += 1
        states = list(parser.parser_state.state_stack)
        tree = parser.feed_eof(words[-1])
    except UnexpectedToken:
        acceptable = _acceptable(parser, states)
        diagnostic = mistakes.unexpected(words, k, acceptable)
        missing = diagnostic.code == errors.statements.SEMICOLON.id and "$END" in acceptable
        raise Refusal(diagnostic, rest=k if missing else None) from None
    nodes = build(tree, statements.rules())
    if isinstance(nodes, tuple):
        return nodes
    return (nodes,)


def _begins_with_its_word(words: Sequence[Token], constrained: bool) -> bool:
    """Whether the first word says which statement this is, and is not the label of a constraint."""
    labelled = constrained and len(words) > 1 and words[1].type in ("COLON", "LSQB")
    return words[0].type in statements.by_token() and not labelled


def _as_read(word: Token, choices: Mapping[str, Any], indices: frozenset[str]) -> Token:
    """A word as its place reads it.

    It is a name where only a name can stand; ``mean_i`` is a reduction if ``i`` is a declared index.
    """
    kind = word.type
    if kind == "NAME":
        if "SUBRED" in choices and lexer.subscript(word) in indices:
            return Token("SUBRED", word.value, word.start_pos, word.line, end_pos=word.end_pos)
    elif kind == START_WORD and kind not in choices and "NAME" in choices:
        return Token("NAME", word.value, word.start_pos, word.line, end_pos=word.end_pos)
    elif kind not in choices and "NAME" in choices and "NUMBER" not in choices and lexer.is_name(word):
        return Token("NAME", word.value, word.start_pos, word.line, end_pos=word.end_pos)
    return word


def _acceptable(parser: InteractiveParser, before: list[int]) -> set[str]:
    """The types of the words that the parser would shift in the states ``before``.

    Its table lists more, since states share entries.
    """
    conf = parser.parser_state.parse_conf
    table, end = conf.parse_table.states, conf.end_state
    shiftable: set[str] = set()
    for kind in filter(str.isupper, table[before[-1]]):
        states = list(before)
        while kind in table[states[-1]]:
            action, rule = table[states[-1]][kind]
            if action.name == "Shift":
                shiftable.add(kind)
                break
            del states[len(states) - len(rule.expansion) :]
            states.append(table[states[-1]][rule.origin.name][1])
        if kind == "$END" and states[-1] == end:
            shiftable.add(kind)
    return shiftable
