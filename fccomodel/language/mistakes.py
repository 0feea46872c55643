"""What to say about words that make no statement: each kind of slip has its own diagnostic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lark import Token

from fccomodel.core.diagnostics import Diagnostic, error, nearest
from fccomodel.core.source import Span
from fccomodel.language import lexer, syntax
from fccomodel.language.statements import STARTS, Piece

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
    "subject to": "subject to",
    "options": "options { algorithm = sonex; seed = 1; }",
}
_CONSTRAINT = "label[k in K]: left <= right;"
#: Words of other languages, and of haste.
_OTHER_WORDS = {
    **dict.fromkeys(("minimise", "min", "minimum"), "minimize"),
    **dict.fromkeys(("maximise", "max", "maximum"), "maximize"),
    **dict.fromkeys(("st", "subject", "subjectto", "such", "constraints", "constraint"), "subject to"),
    **dict.fromkeys(("variable", "variables"), "var"),
    **dict.fromkeys(("parameter", "parameters"), "param"),
    **dict.fromkeys(("table", "dataset"), "data"),
    **dict.fromkeys(("function", "func", "define"), "def"),
    **{"constant": "const", "dimension": "dim", "import": "include", "network": "net", "option": "options"},
}
_COMPARISONS = "The comparisons are <= >= == != < >."
#: Names of reductions elsewhere, and how these are written here.
_REDUCTIONS = {
    **dict.fromkeys(("logsumexp", "lse"), "log(sum{0} exp(u))"),
    **dict.fromkeys(("softmax", "smax"), "logmeanexp{0} u"),
    **dict.fromkeys(("average", "avg"), "mean{0} u"),
    **dict.fromkeys(("expectation", "expect", "ex"), "E{0} u"),
    **dict.fromkeys(("std", "sd", "stdev"), "sqrt(variance{0} u)"),
    **dict.fromkeys(("var",), "variance{0} u"),
    **dict.fromkeys(("norm1",), "sum{0} abs(u)"),
    **dict.fromkeys(("norm2", "norm"), "sqrt(sum{0} u^2)"),
    **dict.fromkeys(("count", "cardinality"), "sum{0} 1"),
}
_PAIRS = {
    "**": ("F0101", "A power is written with `^`.", "write `^`"),
    "//": ("F0101", "A comment begins with `#`; a quotient has one `/`.", "write `#`, or one `/`"),
    "/*": ("F0101", "A comment begins with `#` and goes to the end of its line.", "write `#`"),
    "||": ("F0101", "`|` begins a condition.", "write `or` for a choice, `norm2(u)` for a length"),
    "<>": ("F0109", _COMPARISONS, "write `!=`"),
    "=>": ("F0109", _COMPARISONS, "write `>=`"),
    "=<": ("F0109", _COMPARISONS, "write `<=`"),
    "===": ("F0109", _COMPARISONS, "write `==`"),
    "<-": ("F0101", "A name gets its meaning by `=`.", "write `=`, or put a space between `<` and `-`"),
    ":=": ("F0101", "A name gets its meaning by `=`.", "write `=`, or `default` for a parameter"),
    "+=": ("F0101", "Nothing changes its value: a name has one meaning.", "give the sum a name of its own with `let`"),
}


# ------------------------------------------------------------------------------------------------------- whole statements
def not_closed(piece: Piece) -> Diagnostic:
    """A good statement without its ``;``."""
    why = "Every statement ends in `;`, the last one too."
    last = piece.words[-1]
    return error("F0105", "`;` is missing after this", span=lexer.span(last), reason=why, fix=f"write `{_short(last)};`")


def too_long(words: Sequence[Token], limit: int) -> Diagnostic:
    """A statement that no person wrote."""
    return error(
        "F0108",
        f"this statement has {len(words):,} words, more than {limit:,}",
        span=lexer.span(words[0]),
        reason="A model is mathematics: its text is short, and its data are bound to it from files of their own.",
        fix="write long sums as `sum[k in K] ...`, and declare lists of numbers as `data`",
    )


def unknown_statement(words: Sequence[Token], constrained: bool) -> Diagnostic:
    """A statement that begins with no statement word, where none but a declaration can stand."""
    first, at = str(words[0]), lexer.span(words[0])
    if "".join(words[:2]) in ("//", "/*"):
        return _of_pair("".join(words[:2]), Span(start=at.start, end=at.end + 1))
    known = _OTHER_WORDS.get(first.lower()) or (nearest(first, FORMS) if lexer.is_name(words[0]) else None)
    if known is None and not constrained and any(word.type in ("CMP", "EQUAL") for word in words):
        return error(
            "F0114",
            "a constraint before `subject to`",
            span=at,
            reason="Constraints come after the heading `subject to` (or `s.t.`), which comes after the objective.",
            fix="write `subject to` on a line of its own before the first constraint",
        )
    reason = "A statement begins with one of: " + ", ".join(FORMS) + "."
    fix = "begin the statement with one of these words"
    if known is not None:
        fix = (
            f"Did you mean `{known}`? It is written like `{FORMS[known]}`"
            if FORMS[known] != known
            else f"Did you mean `{known}`?"
        )
    return error("F0106", f"no statement begins with `{_short(words[0])}`", span=at, reason=reason, fix=fix)


def order(statements: Sequence[syntax.Statement]) -> list[Diagnostic]:
    """``model`` comes first, ``options`` last, and neither twice."""
    found: list[Diagnostic] = []
    for k, statement in enumerate(statements):
        start = statement.span.start
        if isinstance(statement, syntax.ModelDecl) and k > 0:
            at = Span(start=start, end=start + len("model"))
            why = "The name of a model is its first statement, and it has one name."
            found.append(
                error("F0114", "`model` is not the first statement", span=at, reason=why, fix="move it to the top, or remove it")
            )
        if isinstance(statement, syntax.Options) and k < len(statements) - 1:
            at = Span(start=start, end=start + len("options"))
            why = "Options come last, and once, so that they can be taken away without touching the problem."
            found.append(error("F0114", "`options` is not the last statement", span=at, reason=why, fix="move it to the end"))
    return found


def subscripts(statements: Sequence[syntax.Statement], indices: frozenset[str]) -> list[Diagnostic]:
    """Names given to something that would afterwards read as a reduction: ``let mean_i = 1;`` beside ``index i in P;``."""
    found: list[Diagnostic] = []
    for statement in statements:
        names = (*getattr(statement, "names", ()), *getattr(statement, "params", ()), getattr(statement, "name", ""))
        for name in names:
            kind, _, index = name.partition("_")
            if lexer.subscript(name) in indices:
                why = f"`{index}` is declared as an index, so that `{name} u` is `{kind}[{index} ...] u`."
                fix = "choose another name for the one or the other"
                found.append(error("F0110", f"`{name}` reads as a reduction", span=statement.span, reason=why, fix=fix))
    return found


# ------------------------------------------------------------------------------------------------------ inside a statement
@dataclass(frozen=True, kw_only=True)
class _Slip:
    """Word ``k`` of a statement stands where only words of the ``expected`` types can."""

    words: Sequence[Token]
    k: int
    expected: frozenset[str]

    @property
    def word(self) -> Token:
        return self.words[self.k]

    @property
    def at(self) -> Span:
        return lexer.span(self.word)

    @property
    def before(self) -> Token | None:
        return self.words[self.k - 1] if self.k else None

    @property
    def after(self) -> Token | None:
        return self.words[self.k + 1] if self.k + 1 < len(self.words) else None


def unexpected(words: Sequence[Token], k: int, expected: Iterable[str]) -> Diagnostic:
    """What is wrong at word ``k``, or at the statement's end if there are only ``k`` words."""
    kinds = frozenset(expected)
    if k == len(words):
        last = words[-1]
        at = Span(start=last.end_pos or 0, end=(last.end_pos or 0) + 1)
        return error("F0101", "the statement ends too early", span=at, reason=_reason(last, kinds), fix=_form(words))
    slip = _Slip(words=words, k=k, expected=kinds)
    for explain in _EXPLANATIONS:
        found = explain(slip)
        if found is not None:
            return found
    return error(
        "F0101", f"did not expect `{_short(words[k])}` here", span=slip.at, reason=_reason(slip.before, kinds), fix=_form(words)
    )


def _pair(s: _Slip) -> Diagnostic | None:
    """An operator of another language: the scanner took its two characters apart."""
    for first, second in ((s.before, s.word), (s.word, s.after)):
        if first is not None and second is not None and first.end_pos == second.start_pos and f"{first}{second}" in _PAIRS:
            return _of_pair(f"{first}{second}", lexer.span(first, second))
    return None


def _of_pair(pair: str, at: Span) -> Diagnostic:
    code, reason, fix = _PAIRS[pair]
    return error(code, f"`{pair}` is not used here", span=at, reason=reason, fix=fix)


def _equals(s: _Slip) -> Diagnostic | None:
    if s.word.type == "EQUAL" and "CMP" in s.expected and s.words[0].type not in ("VAR", "PARAM"):
        why = "`=` gives a name its meaning, in `let`, `def`, `const` and named arguments; `==` compares."
        return error(
            "F0109", "`=` does not compare", span=s.at, reason=why, fix="write `==`, or `<=` if one side bounds the other"
        )
    if s.word == "==" and "EQUAL" in s.expected:
        return error("F0109", "`==` compares", span=s.at, reason="A name gets its meaning by `=`.", fix="write `=`")
    return None


def _reserved(s: _Slip) -> Diagnostic | None:
    """A word of the language as a label, an index or a value."""
    before, word, after = s.before, s.word, s.after
    label = s.k == 0 and word.type in STARTS and after is not None and after.type in ("COLON", "LSQB")
    index = after is not None and after.type in ("IN", "TILDE") and word.type != "NAME" and lexer.is_name(word)
    value = word.type in STARTS | {"TABLE"} and "NUMBER" in s.expected
    if not (label or index or value):
        if before is None or before.type != "RED" or word.type in ("LPAR", "LBRACE", "IN", "TILDE"):
            return None
        word = before
    why = "Statement words, `in`, `and`, `E`, `sum` and the like can name nothing but a table's columns."
    fix = f"choose another name, such as `{word}1`"
    if word.type == "RED":
        fix += f"; a reduction is written `{word}[i in I] ...`"
    return error("F0110", f"`{word}` is a word of the language", span=lexer.span(word), reason=why, fix=fix)


def _subscript(s: _Slip) -> Diagnostic | None:
    """``mean_i body`` without a declaration of ``i``."""
    before = s.before
    index = lexer.subscript(before) if before is not None and before.type == "NAME" else None
    if before is None or not index or not (lexer.is_name(s.word) or s.word.type == "NUMBER"):
        return None
    why = f"`{before}` is a reduction only if `{index}` is declared as an index."
    kind = "~" if before.startswith(("E_", "variance_", "prob_")) else "in"
    return error(
        "F0113", f"no index is called `{index}`", span=lexer.span(before), reason=why, fix=f"declare `index {index} {kind} D;`"
    )


def _brackets_of_index(s: _Slip) -> Diagnostic | None:
    """``sum{i in I} e`` and ``sum(i in I) e``."""
    reduction = s.words[s.k - 3] if s.k >= 3 and s.word.type in ("IN", "TILDE") and s.words[s.k - 2].type == "LPAR" else s.before
    if reduction is None or reduction.type != "RED" or s.word.type not in ("IN", "TILDE", "LBRACE"):
        return None
    why = "Round brackets hold arguments, braces hold sets; what a reduction goes over stands in square brackets."
    return error("F0113", "an index in the wrong brackets", span=s.at, reason=why, fix=f"write `{reduction}[i in I] ...`")


def _no_reduction(s: _Slip) -> Diagnostic | None:
    """``logsumexp[k in K] u``: an index behind a word that is no reduction."""
    if s.k < 3 or s.word.type not in ("IN", "TILDE") or s.words[s.k - 2].type != "LSQB" or s.words[s.k - 3].type != "NAME":
        return None
    name = s.words[s.k - 3]
    index = f"[{s.before} {s.word} ...]"
    written = _REDUCTIONS.get(str(name).lower())
    reductions = sorted(lexer.grammar().reductions)
    close = nearest(str(name), reductions)
    fix = f"write `{written.format(index)}`" if written else f"did you mean `{close}`?" if close else "use one of these"
    why = f"What goes over a set is one of {', '.join(reductions)}."
    return error("F0113", f"`{name}` is no reduction", span=lexer.span(name), reason=why, fix=fix)


def _parameter_in_body(s: _Slip) -> Diagnostic | None:
    """``cvar[z ~ D](0.1, u)``: a comma in the body of a reduction."""
    if s.word.type != "COMMA" or (opened := _opening(s.words, s.k)) is None or s.words[opened - 1].type != "RSQB":
        return None
    bracket = _opening(s.words, opened - 1)
    if bracket is None or s.words[bracket - 1].type != "RED":
        return None
    kind = str(s.words[bracket - 1])
    why = f"`{kind}[...]` has one expression behind its brackets; parameters of a reduction stand before them."
    form = {"cvar": "cvar(tail = 0.1)", "topk": "topk(k = 3)", "pmean": "pmean(p = 4)"}.get(kind, kind)
    return error("F0113", f"two expressions behind `{kind}[...]`", span=s.at, reason=why, fix=f"write `{form}[z ~ D] u`")


def _opening(words: Sequence[Token], k: int) -> int | None:
    """The place of the bracket that is open at word k (that closes there, if one does)."""
    depth = 1
    for j in range(k - 1, 0, -1):
        depth += (words[j].type in ("RPAR", "RSQB")) - (words[j].type in ("LPAR", "LSQB"))
        if depth == 0:
            return j
    return None


def _range_type(s: _Slip) -> Diagnostic | None:
    """``table(k: 1 .. 3)``: a column of numbers from a range."""
    if str(s.words[0]) != "data" or s.before is None or s.before.type != "COLON" or s.word.type != "NUMBER":
        return None
    column = s.words[s.k - 2]
    why = "The type of a column is `real`, `int`, a name declared by `set`, or numbers in braces, `{-1, 1}`."
    fix = f"declare `set K = 1 .. 3 by 1;` before it, and write `{column}: K`"
    return error("F0101", f"no type: `{s.word}`", span=s.at, reason=why, fix=fix)


def _function_by_let(s: _Slip) -> Diagnostic | None:
    """``let f(z) = u``: functions are declared by ``def``."""
    if s.k != 2 or s.word.type != "LPAR" or str(s.words[0]) != "let":
        return None
    why = "`let` names one quantity, or a family `[k in K]` of them; what has arguments is a function."
    return error("F0101", "arguments after `let`", span=s.at, reason=why, fix=f"write `def {s.before}(...) = ...`")


def _expectation_closed(s: _Slip) -> Diagnostic | None:
    """``E[u] v``: brackets without a binder hold the body already."""
    if s.before is None or s.before.type != "RSQB" or not (lexer.is_name(s.word) or s.word.type in ("NUMBER", "LPAR")):
        return None
    k = _opening(s.words, s.k - 1)
    if k is None or s.words[k - 1].type != "RED":
        return None
    kind = s.words[k - 1]
    why = f"`{kind}[u]` names no draw, so that its brackets hold all of its body; `{kind}[z ~ D] u` names one."
    fix = f"write `{kind}[z ~ D]`, or an operator here"
    return error("F0113", f"`{kind}[...]` has its body already", span=s.at, reason=why, fix=fix)


def _product(s: _Slip) -> Diagnostic | None:
    before = s.before
    if before is None or "MUL" not in s.expected or _labels(s) or s.word.type not in ("NAME", "NUMBER", "LPAR", "RED", "STRING"):
        return None
    if s.word.type == "NAME" and before.type == "NUMBER" and before.end_pos == s.word.start_pos:
        at, why = lexer.span(before, s.word), "A name does not begin with a digit, and a product is written with `*`."
        return error(
            "F0111", "neither a number nor a name", span=at, reason=why, fix=f"write `{before} * {s.word}`, or another name"
        )
    if str(s.word).lower() in ("such", "subject", "st"):
        return error(
            "F0101", f"did not expect `{s.word}` here", span=s.at, reason=_reason(before, s.expected), fix="write `subject to`"
        )
    why = "Two values side by side are no product: it is written with `*`."
    return error(
        "F0101", "an operator is missing before this", span=s.at, reason=why, fix="put `*` or another operator before it"
    )


def _bar(s: _Slip) -> Diagnostic | None:
    if s.word.type != "VBAR":
        return None
    why = "`|` begins the condition of an index or of a set: `E[z ~ D | z.y == 1]`."
    fix = "write `abs(u)` for an absolute value, `or` for a choice"
    return error("F0101", "`|` is not used here", span=s.at, reason=why, fix=fix)


def _semicolon(s: _Slip) -> Diagnostic | None:
    ends = "$END" in s.expected and (s.word.type in STARTS or _labels(s) or _misspelt_start(s))
    if s.before is None or not (ends or s.word.type == "RBRACE" and "SEMICOLON" in s.expected):
        return None
    fix = f"write `{_short(s.before)};`"
    return error(
        "F0105",
        "`;` is missing after this",
        span=lexer.span(s.before),
        reason="Every statement ends in `;`, and every option.",
        fix=fix,
    )


_EXPLANATIONS: tuple[Callable[[_Slip], Diagnostic | None], ...] = (
    _pair,
    _semicolon,
    _equals,
    _reserved,
    _subscript,
    _brackets_of_index,
    _no_reduction,
    _parameter_in_body,
    _range_type,
    _function_by_let,
    _expectation_closed,
    _product,
    _bar,
)


def _labels(s: _Slip) -> bool:
    """Whether the word reads like the label of a constraint, ``name:`` or ``name[k in K]:``."""
    if s.word.type != "NAME" or s.after is None:
        return False
    indexed = s.after.type == "LSQB" and s.k + 3 < len(s.words) and s.words[s.k + 3].type in ("IN", "TILDE")
    return s.after.type == "COLON" or indexed


def _misspelt_start(s: _Slip) -> bool:
    """Whether the word begins a line like a statement would, were it spelt well: ``pram lam ...``."""
    if s.before is None or s.after is None or s.before.line == s.word.line or not lexer.is_name(s.after):
        return False
    return str(s.word) in _OTHER_WORDS or nearest(str(s.word), FORMS) is not None


def _form(words: Sequence[Token]) -> str:
    """How this kind of statement is written."""
    return f"write it like `{FORMS.get(str(words[0]), _CONSTRAINT)}`"


def _short(word: Token) -> str:
    return str(word) if len(word) <= 30 else str(word)[:29] + "…"


# ------------------------------------------------------------------------------------------------------- expected words
_SPELL = {
    **{"LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`", "COMMA": "`,`"},
    **{"COLON": "`:`", "EQUAL": "`=`", "SEMICOLON": "`;`", "$END": "`;`", "TILDE": "`~`", "VBAR": "`|`", "_ARROW": "`->`"},
    **{"_DOTS": "`..`", "POW": "`^`", "NAME": "a name", "NUMBER": "a number", "STRING": "a string in double quotes"},
    **{"CMP": "a comparison", "FIELD": "a field such as `.x`", "SENSE": "`minimize`"},
}
_VALUE = frozenset({"NAME", "NUMBER", "LPAR"})
_OPERATOR = frozenset({"ADD", "MUL"})


def _reason(before: Token | None, expected: frozenset[str]) -> str:
    """What can come after a word."""
    parts: list[str] = []
    rest = set(expected) - {"SUBRED"}
    if rest >= _VALUE:
        parts.append("a value (a name, a number, `(`, or a reduction such as `sum[k in K]`)")
        rest -= _VALUE | {"RED", "STRING", "LBRACE", "ADD", "NOT"}
    if rest >= _OPERATOR:
        parts.append("an operator")
        rest -= _OPERATOR | {"POW", "CMP", "AND", "OR", "_DOTS", "FIELD", "LSQB", "LPAR"}
    parts += sorted({_SPELL.get(kind) or f"`{kind.lower()}`" for kind in rest - {"RED"}})
    listed = ", ".join(parts[:-1]) + (" or " if len(parts) > 1 else "") + parts[-1] if parts else "nothing"
    return f"After `{_short(before)}` comes {listed}." if before is not None else f"Here comes {listed}."
