"""What to say about text whose characters the language has no use for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from lark import Token

from fccomodel.core.diagnostics import Diagnostic, error
from fccomodel.core.source import Span
from fccomodel.language import lexer

#: What a character of print or of another language stands for.
_INSTEAD = {
    **dict.fromkeys("≤⩽≦", "<="),
    **dict.fromkeys("≥⩾≧", ">="),
    **dict.fromkeys("·×∗⋅", "*"),
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("∼～", "~"),
    **dict.fromkeys("“”„‘’'", '"'),
    **{"≠": "!=", "÷": "/", "∈": "in", "→": "->", "∧": "and", "∨": "or", "¬": "not", "…": "..", "&": "and", "!": "not"},
    **{"∑": "sum[i in I]", "∏": "prod[i in I]", "√": "sqrt(u)", "‖": "norm2(u)", "𝔼": "E", "ℝ": "real", "²": "^2", "³": "^3"},
    **{"；": ";", "，": ",", "（": "(", "）": ")", "：": ":", "\N{NO-BREAK SPACE}": " "},
}
_GREEK = {"λ": "lam", "Λ": "Lam"}


def unreadable(text: str, limit: int) -> Diagnostic | None:
    """A text that is no model at all: binary, or longer than ``limit`` characters."""
    at = text.find("\0")
    if at >= 0:
        return error(
            "F0116",
            "a zero byte: this is no text",
            span=Span(start=at, end=at + 1),
            reason="A model is a text file in UTF-8; data are bound to it from files of their own.",
            fix="give the .fcco file here, and the table with --data NAME=FILE",
        )
    if len(text) > limit:
        return error(
            "F0108",
            f"the file has {len(text):,} characters, more than {limit:,}",
            span=Span(start=limit, end=limit + 1),
            reason="A model is mathematics: its text is short, and its data are bound to it from files of their own.",
            fix="declare the numbers as `data`, and bind them with --data or a binding file",
        )
    return None


def empty(text: str) -> Diagnostic:
    """A file without a statement."""
    return error(
        "F0117",
        "there is no statement in this file",
        span=Span(start=0, end=0),
        reason="A model declares its data and variables, and says what to minimize."
        + (" Comments say nothing." if text.strip() else ""),
        fix="begin with `data D : table(x: real[d], y: real);`, `var w[d];` and `minimize ...;`",
    )


def all_junk(words: Sequence[Token], limit: int) -> list[Diagnostic]:
    """One diagnostic for each name or sign that means nothing, at its first place; the first ``limit`` of them."""
    places: dict[str | int, list[int]] = {}
    for k, word in enumerate(words):
        if word.type.startswith(lexer.JUNK):
            places.setdefault(str(word) if word.type == lexer.JUNK_NAME or word[0] in _INSTEAD else k, []).append(k)
    return [_junk(words, at[0], len(at)) for at in list(places.values())[:limit]]


def _junk(words: Sequence[Token], k: int, times: int) -> Diagnostic:
    word, at = words[k], lexer.span(words[k])
    text = str(word)
    shown = text if len(text) <= 30 else text[:29] + "…"
    often = f" ({times} times in this file)" if times > 1 else ""
    if word.type == lexer.JUNK_STRING:
        start = Span(start=at.start, end=at.start + 1)
        why = "A string begins and ends with a double quote on the same line."
        return error("F0103", "this string has no end", span=start, reason=why, fix='add the closing `"`')
    if word.type == lexer.JUNK_NAME:
        message, why = f"`{shown}` has letters beyond a to z{often}", "Names are made of a-z, A-Z, 0-9 and _."
        return error("F0102", message, span=at, reason=why, fix=f"write `{_ascii(shown)}`")
    before = words[k - 1] if k and words[k - 1].end_pos == word.start_pos else None
    after = words[k + 1] if k + 1 < len(words) and words[k + 1].start_pos == word.end_pos else None
    if text == "." and after is not None and after.type == "NUMBER":
        return _point(at, f"0.{after}")
    if text == "." and before is not None and before.type == "NUMBER":
        return _point(at, f"{before}.0")
    if text == "%":
        why = "A comment begins with `#`; there is no remainder of a division."
        return error("F0102", f"`%` means nothing here{often}", span=at, reason=why, fix="write `#` to begin a comment")
    if text[0] in _INSTEAD:
        why = "Models are written in the characters of a keyboard." if not text.isascii() else "It is a sign of other languages."
        fix = f"write `{_INSTEAD[text[0]]}`"
        return error("F0102", f"`{text if text.isprintable() else ' '}` means nothing here{often}", span=at, reason=why, fix=fix)
    if len(text) == 1 and text.isprintable():
        why = "Models are written in the characters of a keyboard, and not every one has a meaning."
        return error(
            "F0102", f"`{text}` means nothing here{often}", span=at, reason=why, fix="remove it, or put it into a comment"
        )
    name = unicodedata.name(text[0], f"U+{ord(text[0]):04X}")
    message = f"{len(text)} characters that mean nothing, the first is {name}" if len(text) > 1 else f"{name} means nothing here"
    why = "A model is a text file in UTF-8, in the characters of a keyboard outside its comments."
    return error("F0102", message + often, span=at, reason=why, fix="remove them" if len(text) > 1 else "remove it")


def _point(at: Span, number: str) -> Diagnostic:
    why = "So that `1..3` is a range."
    return error("F0111", "a number has digits on both sides of its point", span=at, reason=why, fix=f"write `{number}`")


def _ascii(name: str) -> str:
    """A spelling of a name in ASCII letters."""
    return "".join(c if c.isascii() else _letter(c) for c in name)


def _letter(c: str) -> str:
    if c in _GREEK or c in _INSTEAD:
        return _GREEK.get(c) or _INSTEAD[c]
    described = unicodedata.name(c, "").split()
    if described[:1] == ["GREEK"] and "LETTER" in described:
        letter = described[described.index("LETTER") + 1]
        return letter.capitalize() if "CAPITAL" in described else letter.lower()
    return "".join(x for x in unicodedata.normalize("NFKD", c) if x.isascii() and x.isalnum()) or "_"
