"""Text to tokens, and tokens to statements: the lexical half of the syntax. The words themselves are
those of ``fcco.lark``."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import lark
from lark import Lark, Token
from lark.lexer import PatternStr

from fccomodel.core import version
from fccomodel.core.source import Span
from fccomodel.library import reductions

#: What the scanner makes of text that the language has no word for.
JUNK = "JUNK"
JUNK_NAME = "JUNK_NAME"
JUNK_STRING = "JUNK_STRING"
#: What the grammar derives.
START = ["statement", "constraint"]
#: Text between words.
SPACE = ("WS", "COMMENT")
OPEN = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
CLOSER = {"(": ")", "[": "]", "{": "}"}


def grammar_text() -> str:
    """The grammar, inside the package in an installed one, beside it in a checkout; its reductions are
    those of the library."""
    package = Path(__file__).parents[1]
    for place in (package / "grammar" / "fcco.lark", package.parent / "grammar" / "fcco.lark"):
        if place.is_file():
            return place.read_text(encoding="utf-8").replace(
                "REDUCTIONS", "|".join(reductions.named(lambda kind: kind.written))
            )
    raise FileNotFoundError("grammar/fcco.lark is neither in the installed package nor beside it")


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The parser, the pattern of every word, and the words that look like names.

    words       ``NAME`` lookalikes that the language uses, with their token types
    reductions  ``E mean sum ...``
    """

    parser: Lark
    pattern: re.Pattern[str]
    words: dict[str, str]
    reductions: frozenset[str]


def _kept() -> str | None:
    """Where the tables of the parser are kept from one process to the next, by the versions that they
    depend on; None where nothing can be written. They are made again where they are not those of
    this grammar."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fccomodel"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    name = f"grammar-{version.__version__}-{lark.__version__}-{sys.version_info[0]}.{sys.version_info[1]}"
    if os.access(folder, os.W_OK):
        return str(folder / name)
    return None


@cache
def grammar() -> Grammar:
    """The grammar, built once. A test builds it under ``strict``, which needs one package more and
    takes twice as long."""
    parser = Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        start=START,
        propagate_positions=True,
        cache=_kept() or False,
    )
    name = next(re.compile(t.pattern.to_regexp()) for t in parser.terminals if t.name == "NAME")
    words: dict[str, str] = {}
    parts = []
    for t in sorted(
        parser.terminals, key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name)
    ):
        if isinstance(t.pattern, PatternStr) and name.fullmatch(t.pattern.value):
            words[t.pattern.value] = t.name
        else:
            parts.append(f"(?P<{t.name}>{t.pattern.to_regexp()})")
        if t.name in ("RED", "SENSE"):
            words.update({word: t.name for word in re.findall(r"\w+", t.pattern.value.split(")")[0])})
    # What follows is no word of the language.
    parts.insert(0, rf"(?P<{JUNK_NAME}>(?![A-Za-z0-9_]+(?!\w))[^\W\d]\w*)")
    parts += [rf'(?P<{JUNK_STRING}>"[^"\r\n]*)', rf"(?P<{JUNK}>.)"]
    reductions = frozenset(word for word, kind in words.items() if kind == "RED")
    return Grammar(
        parser=parser, pattern=re.compile("|".join(parts), re.DOTALL), words=words, reductions=reductions
    )


def tokens(text: str) -> list[Token]:
    """Every word of a text and the text between them, in order; a word that looks like a name has its
    own type.

    Neighbouring characters that mean nothing are one token of type ``JUNK``; a name with letters
    beyond ASCII is a ``JUNK_NAME``, a string without an end a ``JUNK_STRING``.
    """
    g = grammar()
    words: list[Token] = []
    line = 1
    for match in g.pattern.finditer(text):
        kind, value = str(match.lastgroup), match.group()
        if kind == "NAME":
            kind = g.words.get(value, kind)
        elif kind == JUNK and words and words[-1].type == JUNK:
            value = words.pop().value + value
        words.append(Token(kind, value, match.end() - len(value), line, end_pos=match.end()))
        line += value.count("\n")
    return words


def is_name(token: Token) -> bool:
    """Whether a word reads as a name: a ``NAME``, or one that the language uses itself."""
    return token.type == "NAME" or str(token) in grammar().words


def subscript(word: str) -> str | None:
    """The ``i`` of ``mean_i``, of a word that begins like that."""
    kind, bar, index = word.partition("_")
    return index if bar and kind in grammar().reductions else None


def span(first: Token, last: Token | None = None) -> Span:
    """The text from one word to another, both included."""
    return Span(start=first.start_pos or 0, end=(last or first).end_pos or 0)
