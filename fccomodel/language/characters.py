"""Errors about characters that the language does not use."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from lark import Token

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.language import errors, lexer
from fccomodel.language.errors.words import short

#: What to write in the place of a character of print or of another language.
_INSTEAD = {
    **dict.fromkeys("≤⩽≦", "<="),
    **dict.fromkeys("≥⩾≧", ">="),
    **dict.fromkeys("·×∗⋅", "*"),
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("∼～", "~"),
    **dict.fromkeys("“”„‘’'", '"'),
    "≠": "!=",
    "÷": "/",
    "∈": "in",
    "→": "->",
    "∧": "and",
    "∨": "or",
    "¬": "not",
    "…": "..",
    "&": "and",
    "!": "not",
    "∑": "sum[i in I]",
    "∏": "prod[i in I]",
    "√": "sqrt(u)",
    "‖": "norm2(u)",
    "𝔼": "E",
    "ℝ": "real",
    "²": "^2",
    "³": "^3",
    "；": ";",
    "，": ",",
    "（": "(",
    "）": ")",
    "：": ":",
    "\N{NO-BREAK SPACE}": " ",
}
#: Greek letters whose names are not spelt by their Unicode names.
_GREEK = {"λ": "lam", "Λ": "Lam"}


def unreadable(text: str, limit: int) -> Diagnostic | None:
    """The error of a text that is binary or longer than ``limit`` characters, or None."""
    at = text.find("\0")
    if at >= 0:
        return errors.text.zero_byte(at)
    if len(text) > limit:
        return errors.text.long_file(len(text), limit)
    return None


def all_junk(words: Sequence[Token], limit: int) -> list[Diagnostic]:
    """An error for each name or sign that means nothing, at its first place; the first ``limit`` of them."""
    places: dict[str | int, list[int]] = {}
    for k, word in enumerate(words):
        if not word.type.startswith(lexer.JUNK):
            continue
        recurs = word.type == lexer.JUNK_NAME or word[0] in _INSTEAD
        places.setdefault(str(word) if recurs else k, []).append(k)
    return [_junk(words, at[0], len(at)) for at in list(places.values())[:limit]]


def _junk(words: Sequence[Token], k: int, times: int) -> Diagnostic:
    """The error about word ``k``; ``times``: how often the file has it."""
    word, at = words[k], lexer.span(words[k])
    text = str(word)
    if times > 1:
        often = f" ({times} times in this file)"
    else:
        often = ""
    if word.type == lexer.JUNK_STRING:
        return errors.text.string_without_end(at.start)
    if word.type == lexer.JUNK_NAME:
        return errors.text.name_beyond_ascii(text, _ascii(short(text)), often, at)
    number = _number(words, k)
    if number is not None:
        return errors.text.point_without_digits(number, at)
    if text == "%":
        return errors.text.percent(often, at)
    if text == "?":
        return errors.text.question_mark(often, at)
    if text[0] in _INSTEAD:
        return errors.text.sign_of_another_language(text, _INSTEAD[text[0]], often, at)
    if len(text) == 1 and text.isprintable():
        return errors.text.meaningless_sign(text, often, at)
    first = unicodedata.name(text[0], f"U+{ord(text[0]):04X}")
    return errors.text.meaningless_characters(len(text), first, often, at)


def _number(words: Sequence[Token], k: int) -> str | None:
    """The number that a point and the digits beside it stand for: ``.5`` is ``0.5``; None without digits."""
    point = words[k]
    if point != ".":
        return None
    for after in words[k + 1 : k + 2]:
        if after.type == "NUMBER" and after.start_pos == point.end_pos:
            return f"0.{after}"
    for before in words[max(k - 1, 0) : k]:
        if before.type == "NUMBER" and before.end_pos == point.start_pos:
            return f"{before}.0"
    return None


def _ascii(name: str) -> str:
    """A spelling of a name in ASCII letters."""
    return "".join(c if c.isascii() else _letter(c) for c in name)


def _letter(c: str) -> str:
    """A spelling of a character in ASCII letters."""
    if c in _GREEK:
        return _GREEK[c]
    if c in _INSTEAD:
        return _INSTEAD[c]
    described = unicodedata.name(c, "").split()
    if described[:1] == ["GREEK"] and "LETTER" in described:
        letter = described[described.index("LETTER") + 1]
        if "CAPITAL" in described:
            return letter.capitalize()
        return letter.lower()
    return "".join(x for x in unicodedata.normalize("NFKD", c) if x.isascii() and x.isalnum()) or "_"
