"""What to say about text that is no sentence of the language: one function per kind of slip, each giving a diagnostic."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from lark import Token

from fccomodel import lex, syntax
from fccomodel.diagnostics import Diagnostic, did_you_mean, error
from fccomodel.source import Span
from fccomodel.split import STARTS, Piece

#: How each statement is written.
FORMS = {
    "model": "model name;",
    "include": 'include "file.fcco";',
    "dim": "dim d;",
    "set": "set P = {z in D | z.y == 1};",
    "index": "index i in P, j ~ N;",
    "data": "data D : table(x: real[d], y: {-1, 1});",
    "param": "param lam >= 0 default 1e-4;",
    "const": "const p = 4;",
    "net": "net s : real[d] -> real assume smooth;",
    "var": "var w[d] in ball(2);",
    "def": "def f(u, v) = u^2 + v;",
    "let": "let risk[k in K] = E[z ~ D | z.g == k] loss(z);",
    "minimize": "minimize risk: E[z ~ D] loss(z);",
    "maximize": "maximize score: E[z ~ D] gain(z);",
    "options": "options { algorithm = sonex; seed = 1; }",
}
_CONSTRAINT_FORM = "label[k in K]: left <= right;"
_OTHER_WORDS = {
    "minimise": "minimize", "min": "minimize", "maximise": "maximize", "max": "maximize", "parameter": "param",
    "variable": "var", "variables": "var", "constant": "const", "dimension": "dim", "table": "data", "dataset": "data",
    "import": "include", "function": "def", "func": "def", "define": "def", "st": "s.t.", "subject": "subject to",
    "subjectto": "subject to", "such": "subject to", "constraints": "subject to", "network": "net", "option": "options",
}  # fmt: skip
_CHARACTERS = {
    "≤": "<=", "⩽": "<=", "≥": ">=", "⩾": ">=", "≠": "!=", "≈": "==", "·": "*", "×": "*", "∗": "*", "÷": "/", "−": "-", "–": "-",
    "—": "-", "∈": "in", "∼": "~", "～": "~", "∑": "sum[i in I]", "∏": "prod[i in I]", "√": "sqrt(...)", "∞": "a number, or no bound",
    "→": "->", "‖": "norm2(...)", "²": "^2", "³": "^3", "∧": "and", "∨": "or", "¬": "not", "…": "..", "“": '"', "”": '"', "„": '"',
    "’": '"', "‘": '"', "'": '"', "&": "and", "!": "not", "%": "#", "；": ";", "，": ",", "（": "(", "）": ")", "：": ":",
    "$": "", "\\": "", "?": "", "`": "", "𝔼": "E", "ℝ": "real", "\N{NO-BREAK SPACE}": "a space",
}  # fmt: skip
_GREEK = {"λ": "lam", "Λ": "Lam"}


# ------------------------------------------------------------------------------------------------------------ characters
def unreadable(text: str, limit: int) -> Diagnostic | None:
    """A text that is no model at all: binary, or too large to be one."""
    at = text.find("\0")
    if at >= 0:
        return error(
            "F0116",
            "a zero byte: this is no text",
            span=Span(start=at, end=at + 1),
            reason="A model is a text file in UTF-8; data are bound to it, not named in its place.",
            fix="give the .fcco file here, and the table with --data NAME=FILE",
        )
    if len(text) > limit:
        return error(
            "F0108",
            f"{len(text):,} characters, more than {limit:,}",
            span=Span(start=limit, end=limit + 1),
            reason="A model is mathematics: its text is short, and its data are bound to it from files.",
            fix="declare the numbers as `data`, and bind them with --data or a binding file",
        )
    return None


def empty(text: str) -> Diagnostic:
    """A file without a statement."""
    return error(
        "F0117",
        "no statement in this file",
        span=Span(start=0, end=0),
        reason="A model declares its data and variables, and says what to minimize." + (" Comments say nothing." if text.strip() else ""),
        fix="begin with: data D : table(x: real[d], y: real); var w[d]; minimize ...;",
    )


def junk(words: Sequence[Token], k: int) -> Diagnostic:
    """Characters that the language has no use for."""
    word = words[k]
    at, text = lex.span(word), str(word)
    if word.type == lex.JUNK + "_STRING":
        why = "A string begins and ends with a double quote on the same line."
        return error("F0103", "this string has no end", span=Span(start=at.start, end=at.start + 1), reason=why, fix='add the closing `"`')
    if word.type == lex.JUNK + "_NAME":
        return error("F0102", f"`{text}` has letters beyond a to z", span=at, reason="Names are made of a-z, A-Z, 0-9 and _ .", fix=_ascii(text))
    before = words[k - 1] if k and words[k - 1].end_pos == word.start_pos else None
    after = words[k + 1] if k + 1 < len(words) and words[k + 1].start_pos == word.end_pos else None
    if text == "." and (before is not None and before.type == "NUMBER" or after is not None and after.type == "NUMBER"):
        number = f"0.{after}" if after is not None and after.type == "NUMBER" else f"{before}.0"
        return error("F0111", "a number has digits on both sides of its point", span=at, reason="So that `1..3` is a range.", fix=f"write `{number}`")
    if text[0] in _CHARACTERS:
        instead = _CHARACTERS[text[0]]
        fix = f"write `{instead}`" if instead and " " not in instead else f"write {instead}" if instead else "remove it"
        if text[0] == "%":
            fix = "write `#` to begin a comment"
        return error("F0102", f"`{text}` is not used here", span=at, reason="The language is written in the characters of a keyboard.", fix=fix)
    shown = text if len(text) == 1 and text.isprintable() else ""
    name = unicodedata.name(text[0], "") or f"U+{ord(text[0]):04X}"
    message = f"`{shown}` means nothing" if shown else f"{len(text)} characters that mean nothing ({name})"
    reason = "Models are text in UTF-8; outside strings and comments, in the characters of a keyboard."
    return error("F0102", message, span=at, reason=reason, fix="remove it" if len(text) == 1 else "remove them")


def _ascii(name: str) -> str:
    """A spelling of a name in ASCII letters."""
    out = []
    for c in name:
        if c.isascii():
            out.append(c)
        elif c in _GREEK:
            out.append(_GREEK[c])
        elif c in "²³":
            out.append({"²": "^2", "³": "^3"}[c])
        elif "GREEK" in unicodedata.name(c, ""):
            out.append(unicodedata.name(c).split()[-1].lower() if "WITH" not in unicodedata.name(c) else unicodedata.name(c).split()[3].lower())
        else:
            out.append("".join(x for x in unicodedata.normalize("NFKD", c) if x.isascii() and x.isalnum()) or "_")
    return f"write `{''.join(out)}`"


# ------------------------------------------------------------------------------------------------------------- statements
def not_closed(piece: Piece) -> Diagnostic:
    """A good statement without its ``;``."""
    last = piece.words[-1]
    why = "Every statement ends in `;`, the last one too."
    return error("F0105", "`;` is missing after this", span=lex.span(last), reason=why, fix=f"write `{_short(last)};`")


def too_long(words: Sequence[Token], limit: int) -> Diagnostic:
    """A statement that no person wrote."""
    return error(
        "F0108",
        f"a statement of {len(words):,} words, more than {limit:,}",
        span=lex.span(words[0]),
        reason="A model is mathematics: its text is short, and its data are bound to it from files.",
        fix="write long sums as `sum[k in K] ...`, and declare lists of numbers as `data`",
    )


def looks_declared(words: Sequence[Token]) -> bool:
    """Whether a statement reads like `word name ...`, which no constraint does."""
    return len(words) > 1 and words[0].type == "NAME" and words[1].type == "NAME"


def unknown_statement(words: Sequence[Token], constrained: bool) -> Diagnostic:
    """A statement that begins with no statement word, where none but a declaration can stand."""
    first = str(words[0])
    known = [*FORMS, "subject to"]
    other = _OTHER_WORDS.get(first.lower(), "")
    guess = f"Did you mean `{other}`?" if other else did_you_mean(first, known) if lex.is_name(words[0]) else ""
    has_relation = any(w.type == "CMP" for w in words)
    if not guess and has_relation and not constrained:
        return error(
            "F0114",
            "a constraint before `subject to`",
            span=lex.span(words[0]),
            reason="Constraints come after the heading `subject to` (or `s.t.`), which comes after the objective.",
            fix="write `subject to` on a line of its own before the first constraint",
        )
    form = FORMS.get(other or guess.removeprefix("Did you mean `").removesuffix("`?"), "")
    reason = "Each statement begins with one of: " + ", ".join(known) + "."
    fix = f"{guess} {'It is written `' + form + '`' if form else ''}".strip() or "begin the statement with its word"
    return error("F0106", f"no statement begins with `{_short(words[0])}`", span=lex.span(words[0]), reason=reason, fix=fix)


def order(statements: Iterable[syntax.Statement]) -> list[Diagnostic]:
    """`model` comes first, `options` last, and neither twice."""
    found: list[Diagnostic] = []
    listed = list(statements)
    for k, statement in enumerate(listed):
        word = Span(start=statement.span.start, end=statement.span.start + 1)
        if isinstance(statement, syntax.ModelDecl) and k > 0:
            why = "The name of a model is its first statement, and it has one."
            found.append(error("F0114", "`model` is not the first statement", span=_word(word, 5), reason=why, fix="move it to the top, or remove it"))
        if isinstance(statement, syntax.Options) and k < len(listed) - 1:
            why = "Options come last, once, so that they can be taken away without touching the problem."
            found.append(error("F0114", "`options` is not the last statement", span=_word(word, 7), reason=why, fix="move it to the end"))
    return found


def _word(at: Span, length: int) -> Span:
    return Span(start=at.start, end=at.start + length)


# ------------------------------------------------------------------------------------------------------- inside statements
def unexpected(words: Sequence[Token], k: int, expected: Iterable[str], closed: bool) -> Diagnostic:
    """Word ``k`` (the statement's end, if there is none) stands where only ``expected`` types can."""
    expected = set(expected)
    if k == len(words):
        return _too_short(words, expected)
    word, before = words[k], words[k - 1] if k else None
    special = _known_slip(words, k, expected)
    if special is not None:
        return special
    if before is not None and "$END" in expected and (word.type in STARTS or _labels(words, k)):
        why = "Every statement ends in `;`."
        return error("F0105", "`;` is missing after this", span=lex.span(before), reason=why, fix=f"write `{_short(before)};`")
    place = f"After `{_short(before)}`" if before is not None else "Here"
    reason = f"{place} can come {_list(expected)}."
    return error("F0101", f"did not expect `{_short(word)}` here", span=lex.span(word), reason=reason, fix=_form(words))


def _too_short(words: Sequence[Token], expected: set[str]) -> Diagnostic:
    last = words[-1]
    reason = f"After `{_short(last)}` can come {_list(expected)}."
    at = Span(start=last.end_pos or 0, end=(last.end_pos or 0) + 1)
    return error("F0101", "the statement ends too early", span=at, reason=reason, fix=_form(words))


def _known_slip(words: Sequence[Token], k: int, expected: set[str]) -> Diagnostic | None:
    word, at = words[k], lex.span(words[k])
    before = words[k - 1] if k else None
    glued = before is not None and before.end_pos == word.start_pos
    pair = f"{before}{word}" if glued else ""
    both = Span(start=at.start - 1, end=at.end)
    if pair in _PAIRS:
        return error("F0101", f"`{pair}` is not used here", span=both, reason=_PAIRS[pair][0], fix=_PAIRS[pair][1])
    if word.type == "EQUAL" and "CMP" in expected and words[0].type not in ("VAR", "PARAM"):
        if before is not None and k + 1 < len(words) and words[k + 1] in ("<", ">") and words[k + 1].start_pos == at.end:
            return error("F0109", "no comparison", span=Span(start=at.start, end=at.end + 1), reason="The comparisons are <= >= == != < >.", fix=f"write `{words[k + 1]}=`")
        why = "`=` gives a name its meaning, in `let`, `def`, `const` and named arguments; `==` compares."
        return error("F0109", "`=` does not compare", span=at, reason=why, fix="write `==`, or `<=` if one side bounds the other")
    if word == "==" and "EQUAL" in expected:
        return error("F0109", "`==` compares", span=at, reason="A name gets its meaning by `=`.", fix="write `=`")
    if word.type in ("NAME", "RED") and before is not None and before.type == "NUMBER" and glued:
        return error("F0111", "no number", span=Span(start=before.start_pos or 0, end=at.end), reason="A name cannot begin with a digit, and a product is written with `*`.", fix=f"write `{before} * {word}`")
    operand = {"NAME", "NUMBER", "LPAR", "RED", "STRING"}
    if (word.type in operand and "MUL" in expected and before is not None and not _labels(words, k) and word.type not in STARTS) and (
        before.type in ("NUMBER", "RPAR", "RSQB") or before.type == "NAME" and word.type == "NUMBER"
    ):
        why = "Two values side by side are no product: it is written with `*`."
        return error("F0101", "an operator is missing before this", span=at, reason=why, fix=f"write `{_short(before)} * {_short(word)}`")
    if word.type == "VBAR":
        return error("F0101", "`|` is not used here", span=at, reason="`|` begins the condition of an index or of a set: `E[z ~ D | z.y == 1]`.", fix="write `abs(u)` for an absolute value, `or` for a choice")
    if word.type == "COLON" and before is not None and before.type == "RED":
        return error("F0110", f"`{before}` is a word of the language", span=lex.span(before), reason="It cannot be a label.", fix="choose another label")
    return None


_PAIRS = {
    "**": ("A power is written with `^`.", "write `^`"),
    "//": ("A comment begins with `#`; a quotient has one `/`.", "write `#`, or `/`"),
    "/*": ("A comment begins with `#` and goes to the end of its line.", "write `#`"),
    "||": ("`|` begins a condition.", "write `or` for a choice, `norm2(u)` for a length"),
    "<>": ("The comparisons are <= >= == != < >.", "write `!=`"),
    "<-": ("A name gets its meaning by `=`.", "write `=`; or put a space between `<` and `-`"),
    "=>": ("The comparisons are <= >= == != < >.", "write `>=`"),
    "=<": ("The comparisons are <= >= == != < >.", "write `<=`"),
    ":=": ("A name gets its meaning by `=`.", "write `=`"),
    "+=": ("Nothing changes its value: a name has one meaning.", "give the sum a name of its own with `let`"),
    "===": ("The comparisons are <= >= == != < >.", "write `==`"),
}


def _labels(words: Sequence[Token], k: int) -> bool:
    """Whether word ``k`` begins a line and reads like a label `name:` or `name[k in K]:`."""
    return words[k].type == "NAME" and k + 1 < len(words) and words[k + 1].type == "COLON"


def _form(words: Sequence[Token]) -> str:
    """How this kind of statement is written."""
    form = FORMS.get(str(words[0]), _CONSTRAINT_FORM)
    return f"it is written like `{form}`"


def _short(word: Token) -> str:
    return str(word) if len(word) <= 30 else str(word)[:29] + "…"


_VALUES = {"NAME", "NUMBER", "LPAR"}
_SPELL = {
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`", "COMMA": "`,`", "COLON": "`:`",
    "EQUAL": "`=`", "SEMICOLON": "`;`", "$END": "`;`", "TILDE": "`~`", "VBAR": "`|`", "_ARROW": "`->`", "_DOTS": "`..`", "NAME": "a name",
    "NUMBER": "a number", "STRING": "a string in double quotes", "CMP": "a comparison", "FIELD": "a field such as `.x`", "POW": "`^`",
}  # fmt: skip


def _list(expected: set[str]) -> str:
    """The expected types in words."""
    parts: list[str] = []
    rest = set(expected)
    if rest >= _VALUES:
        parts.append("a value (a name, a number, `(`, a reduction such as `sum[k in K]`)")
        rest -= {"NAME", "NUMBER", "LPAR", "RED", "SUBRED", "STRING", "LBRACE", "ADD", "NOT"}
    if rest >= {"ADD", "MUL"}:
        parts.append("an operator")
        rest -= {"ADD", "MUL", "POW", "CMP", "AND", "OR", "_DOTS", "FIELD", "LSQB", "LPAR"}
    rest -= {"SUBRED", "RED"}
    parts += sorted({_SPELL.get(kind) or f"`{kind.lower()}`" for kind in rest})
    return ", ".join(parts[:-1]) + (" or " if len(parts) > 1 else "") + parts[-1]
