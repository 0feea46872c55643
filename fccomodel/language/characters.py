"""What to say about text whose characters the language has no use for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from lark import Token

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.language import errors, lexer
from fccomodel.language.errors.words import short

#: What a character of print or of another language stands for.
_INSTEAD = {
    **dict.fromkeys("≤⩽≦", "<="),
    **dict.fromkeys("≥⩾≧", ">="),
    **dict.fromkeys("·×∗⋅", "*"),
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("∼～", "~"),
    **dict.fromkeys("“”„‘’'", '"'),
    **{
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
    },
    **{
        "∑": "sum[i in I]",
        "∏": "prod[i in I]",
        "√": "sqrt(u)",
        "‖": "norm2(u)",
        "𝔼": "E",
        "ℝ": "real",
        "²": "^2",
        "³": "^3",
    },
    **{"；": ";", "，": ",", "（": "(", "）": ")", "：": ":", "\N{NO-BREAK SPACE}": " "},
}
_GREEK = {"λ": "lam", "Λ": "Lam"}


def unreadable(text: str, limit: int) -> Diagnostic | None:
    """A text that is no model at all: binary, or longer than ``limit`` characters."""
    at = text.find("\0")
    if at >= 0:
        return errors.text.zero_byte(at)
    if len(text) > limit:
        return errors.text.long_file(len(text), limit)
    return None


def all_junk(words: Sequence[Token], limit: int) -> list[Diagnostic]:
    """One diagnostic for each name or sign that means nothing, at its first place; the first ``limit``
    of them."""
    places: dict[str | int, list[int]] = {}
    for k, word in enumerate(words):
        if word.type.startswith(lexer.JUNK):
            places.setdefault(
                str(word) if word.type == lexer.JUNK_NAME or word[0] in _INSTEAD else k, []
            ).append(k)
    return [_junk(words, at[0], len(at)) for at in list(places.values())[:limit]]


def _junk(words: Sequence[Token], k: int, times: int) -> Diagnostic:
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
    if text[0] in _INSTEAD:
        return errors.text.sign_of_another_language(text, _INSTEAD[text[0]], often, at)
    if len(text) == 1 and text.isprintable():
        return errors.text.meaningless_sign(text, often, at)
    return errors.text.meaningless_characters(
        len(text), unicodedata.name(text[0], f"U+{ord(text[0]):04X}"), often, at
    )


def _number(words: Sequence[Token], k: int) -> str | None:
    """The number that a point makes with the digits on one side of it, written with a zero on the other."""
    if words[k] != ".":
        return None
    if k + 1 < len(words) and words[k + 1].start_pos == words[k].end_pos:
        after = words[k + 1]
    else:
        after = None
    if after is not None and after.type == "NUMBER":
        return f"0.{after}"
    if k and words[k - 1].end_pos == words[k].start_pos:
        before = words[k - 1]
    else:
        before = None
    if before is not None and before.type == "NUMBER":
        return f"{before}.0"
    return None


def _ascii(name: str) -> str:
    """A spelling of a name in ASCII letters."""
    return "".join(c if c.isascii() else _letter(c) for c in name)


def _letter(c: str) -> str:
    if c in _GREEK or c in _INSTEAD:
        return _GREEK.get(c) or _INSTEAD[c]
    described = unicodedata.name(c, "").split()
    if described[:1] == ["GREEK"] and "LETTER" in described:
        letter = described[described.index("LETTER") + 1]
        if "CAPITAL" in described:
            return letter.capitalize()
        return letter.lower()
    return "".join(x for x in unicodedata.normalize("NFKD", c) if x.isascii() and x.isalnum()) or "_"
