"""Text to words: the scanner of the language, whose words are those of ``fcco.lark``."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import lark
from lark import Lark, Token
from lark.lexer import PatternStr, TerminalDef

from fccomodel.core import version
from fccomodel.core.source import Span
from fccomodel.library import reductions

#: Type of characters that the language has no word for.
JUNK = "JUNK"
#: Type of a name with letters beyond ASCII.
JUNK_NAME = "JUNK_NAME"
#: Type of a string without an end.
JUNK_STRING = "JUNK_STRING"
#: The start symbols of the grammar.
START = ["statement", "constraint"]
#: Types of the text between words.
SPACE = ("WS", "COMMENT")
#: Types of opening brackets, each with the type of the closing one.
OPEN = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
#: Opening brackets, each with the closing one.
CLOSER = {"(": ")", "[": "]", "{": "}"}


def grammar_text() -> str:
    """The text of the grammar with the reductions of the library.

    An installed package holds the file, in a checkout it lies beside the package.
    """
    package = Path(__file__).parents[1]
    written = "|".join(reductions.named(lambda kind: kind.written))
    spelled = "|".join(map(_before_index, reductions.spelled()))
    for place in (package / "grammar" / "fcco.lark", package.parent / "grammar" / "fcco.lark"):
        if place.is_file():
            text = place.read_text(encoding="utf-8")
            return text.replace("REDUCTIONS", written).replace("|SPELLED/", f"|{spelled}/")
    raise FileNotFoundError("grammar/fcco.lark is neither in the installed package nor beside it")


def _before_index(word: str) -> str:
    """The pattern of a word that is one only before an index, so that data and columns may have its name."""
    index = r"\[\s*[A-Za-z_]\w*\s*(?:~|in\b)"
    return rf"{word}(?=\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)?{index})"


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The grammar, ready for use.

    parser      the parser
    pattern     the pattern of every word
    words       the words of the language that look like names, with their types
    reductions  the words of the reductions: ``E mean sum ...``
    """

    parser: Lark
    pattern: re.Pattern[str]
    words: dict[str, str]
    reductions: frozenset[str]


def _kept() -> str | None:
    """The file that keeps the parser's tables from one process to the next, or None if none can be written.

    Its name holds the versions that the tables depend on. The parser rewrites it if the grammar differs.
    """
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
    """The grammar, built once.

    A test builds it with lark's ``strict``, which needs one more package and takes twice as long.
    """
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
    for terminal in sorted(parser.terminals, key=_precedence):
        pattern = terminal.pattern
        if isinstance(pattern, PatternStr) and name.fullmatch(pattern.value):
            words[pattern.value] = terminal.name
        else:
            parts.append(f"(?P<{terminal.name}>{pattern.to_regexp()})")
        if terminal.name in ("RED", "SENSE"):
            alternatives = re.findall(r"\w+", pattern.value.split(")")[0])
            words.update(dict.fromkeys(alternatives, terminal.name))
    # Text that is no word of the language.
    parts.insert(0, rf"(?P<{JUNK_NAME}>(?![A-Za-z0-9_]+(?!\w))[^\W\d]\w*)")
    parts += [rf'(?P<{JUNK_STRING}>"[^"\r\n]*)', rf"(?P<{JUNK}>.)"]
    reductions = frozenset(word for word, kind in words.items() if kind == "RED")
    return Grammar(
        parser=parser, pattern=re.compile("|".join(parts), re.DOTALL), words=words, reductions=reductions
    )


def _precedence(terminal: TerminalDef) -> tuple[int, int, int, str]:
    """The key by which the scanner tries words first."""
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name


def tokens(text: str) -> list[Token]:
    """Every word of a text and the text between them, in order.

    A word of the language that looks like a name has its own type. Neighbouring characters that mean
    nothing are one token of type ``JUNK``, a name with letters beyond ASCII is a ``JUNK_NAME``, a string
    without an end a ``JUNK_STRING``.
    """
    types, pattern = grammar().words, grammar().pattern
    words: list[Token] = []
    line = 1
    for match in pattern.finditer(text):
        kind, value = str(match.lastgroup), match.group()
        if kind == "NAME":
            kind = types.get(value, kind)
        elif kind == JUNK and words and words[-1].type == JUNK:
            value = words.pop().value + value
        words.append(Token(kind, value, match.end() - len(value), line, end_pos=match.end()))
        line += value.count("\n")
    return words


def is_name(token: Token) -> bool:
    """Whether a word reads as a name: a ``NAME``, or a word of the language that looks like one."""
    word = str(token)
    return token.type == "NAME" or word in grammar().words or word in reductions.spelled()


def subscript(word: str) -> str | None:
    """The ``i`` of ``mean_i``, or None if a word is not of this form."""
    kind, bar, index = word.partition("_")
    spelled = reductions.spelled().get(kind)
    plain = spelled is not None and spelled.option is None and not spelled.bounded
    if bar and (kind in grammar().reductions or plain):
        return index
    return None


def span(first: Token, last: Token | None = None) -> Span:
    """The text from one word to another, both included."""
    return Span(start=first.start_pos or 0, end=(last or first).end_pos or 0)
