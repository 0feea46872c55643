"""Errors about words that make no statement; each kind of mistake has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lark import Token

from fccomodel.core.diagnostics import Diagnostic, nearest
from fccomodel.core.source import Span
from fccomodel.language import errors, lexer, statements, syntax
from fccomodel.language.errors.words import short
from fccomodel.language.splitter import Piece
from fccomodel.language.statements.model import ModelDecl
from fccomodel.language.statements.options import Options
from fccomodel.library import reductions

#: How reductions of other languages are written here, by their names there; ``{0}`` is the index.
_REDUCTIONS = {
    **dict.fromkeys(("logsumexp", "lse"), "log(sum{0} exp(u))"),
    **dict.fromkeys(("softmax", "smax"), "logmeanexp{0} u"),
    **dict.fromkeys(("average", "avg"), "mean{0} u"),
    **dict.fromkeys(("expectation", "expect", "ex"), "E{0} u"),
    **dict.fromkeys(("sd", "stdev"), "std{0} u"),
    "var": "variance{0} u",
    "norm1": "sum{0} abs(u)",
    **dict.fromkeys(("norm2", "norm"), "sqrt(sum{0} u^2)"),
    "median": "E{0} abs(v - u), whose least u is a median",
    **dict.fromkeys(("quantile", "percentile"), "quantile(level = 0.05){0} u >= v"),
    "rank": "sum{0} sigmoid((v - u) / width)",
    **dict.fromkeys(("argmin", "argmax"), "min{0} u"),
    **dict.fromkeys(("count", "cardinality"), "sum{0} 1"),
    **dict.fromkeys(("pr", "p", "probability", "chance"), "prob{0} (u <= v)"),
}


#: Types of the words that begin statements with long formulas.
_FORMULAS = ("SENSE", "LET", "DEF", "NAME")


# --------------------------------------------------------------------------------- whole statements
def not_closed(piece: Piece) -> Diagnostic:
    """The error of a statement that only lacks its ``;``."""
    last = piece.words[-1]
    return errors.statements.no_semicolon(last, lexer.span(last), last=True)


def unknown_statement(words: Sequence[Token], constrained: bool) -> Diagnostic:
    """The error of a statement that begins with no word of one; ``constrained``: among constraints."""
    first, at = str(words[0]), lexer.span(words[0])
    if "".join(words[:2]) in ("//", "/*"):
        return errors.syntax.operator_elsewhere("".join(words[:2]), Span(start=at.start, end=at.end + 1))
    if first.lower() in ("group", "groups"):
        return errors.statements.groups(at)
    intended = statements.elsewhere().get(first.lower())
    if not intended and lexer.is_name(words[0]):
        intended = nearest(first, statements.forms())
    if intended is None and not constrained and any(word.type in ("CMP", "EQUAL") for word in words):
        return errors.statements.early_constraint(at)
    return errors.statements.unknown_statement(first, statements.forms(), intended, at)


def order(parsed: Sequence[syntax.Statement]) -> list[Diagnostic]:
    """The errors of a ``model`` that is not the first statement, and of ``options`` that are not the last."""
    diagnostics: list[Diagnostic] = []
    for k, statement in enumerate(parsed):
        if isinstance(statement, ModelDecl) and k > 0:
            diagnostics.append(errors.statements.model_not_first(statement.span.start))
        if isinstance(statement, Options) and k < len(parsed) - 1:
            diagnostics.append(errors.statements.options_not_last(statement.span.start))
    return diagnostics


def subscripts(parsed: Sequence[syntax.Statement], indices: frozenset[str]) -> list[Diagnostic]:
    """The errors of declared names that read as reductions: ``let mean_i = 1;`` after ``index i in P;``."""
    diagnostics: list[Diagnostic] = []
    for statement in parsed:
        names = (
            *getattr(statement, "names", ()),
            *getattr(statement, "params", ()),
            getattr(statement, "name", ""),
        )
        for name in names:
            kind, _, index = name.partition("_")
            if lexer.subscript(name) in indices:
                diagnostics.append(errors.syntax.reads_as_reduction(name, kind, index, statement.span))
    return diagnostics


# ------------------------------------------------------------------------------- inside a statement
@dataclass(frozen=True, kw_only=True)
class Slip:
    """Word ``k`` of a statement, in the place of words of the ``expected`` types."""

    words: Sequence[Token]
    k: int
    expected: frozenset[str]

    @property
    def word(self) -> Token:
        """The word."""
        return self.words[self.k]

    @property
    def at(self) -> Span:
        """The place of the word."""
        return lexer.span(self.word)

    @property
    def before(self) -> Token | None:
        """The word before it, or None for the first."""
        if self.k > 0:
            return self.words[self.k - 1]
        return None

    @property
    def after(self) -> Token | None:
        """The word after it, or None for the last."""
        if self.k + 1 < len(self.words):
            return self.words[self.k + 1]
        return None


def unexpected(words: Sequence[Token], k: int, expected: Iterable[str]) -> Diagnostic:
    """The error at word ``k``, or at the statement's end if there are only ``k`` words."""
    kinds = frozenset(expected)
    form = statements.form(str(words[0]))
    if k == len(words):
        if words[-1].type in _AWAITS_VALUE:
            form = ""
        return errors.syntax.ends_early(words[-1], words[-1].end_pos or 0, _reason(words[-1], kinds), form)
    slip = Slip(words=words, k=k, expected=kinds)
    for mistake in MISTAKES:
        diagnostic = mistake.explained(slip)
        if diagnostic is not None:
            return diagnostic
    if words[0].type in _FORMULAS and (kinds >= _VALUE or kinds >= _OPERATOR):
        form = ""  # inside a formula the statement's form does not help
    return errors.syntax.unexpected(words[k], _reason(slip.before, kinds), form, slip.at)


@dataclass(frozen=True)
class Mistake:
    """A common mistake.

    words    the types of the words up to the wrong one, with ``|`` between alternatives. ``any`` is any
             word, ``name`` a word that reads as a name, ``[]`` a pair of brackets with its content,
             ``...`` all that follows the innermost open bracket
    explain  from the place and the words that the pattern names to the error, or to None if it is not
             this mistake after all
    example  a statement with the mistake
    """

    words: str
    explain: Callable[..., Diagnostic | None]
    example: str

    def explained(self, s: Slip) -> Diagnostic | None:
        """The error, or None if it is not this mistake."""
        named = _match(self.words.split(), s.words, s.k)
        if named is None:
            return None
        return self.explain(s, *named)


def _match(pattern: Sequence[str], words: Sequence[Token], k: int) -> list[Token] | None:
    """The words that a pattern names if it ends at word ``k``, else None."""
    named: list[Token] = []
    for item in reversed(pattern):
        if item in ("...", "[]"):
            opening = _opening(words, k + 1 if item == "..." else k)
            if opening is None or (item == "[]" and words[k].type != "RSQB"):
                return None
            k = opening - (item == "[]")
            continue
        if k < 0 or not _is(words[k], item):
            return None
        named.insert(0, words[k])
        k -= 1
    return named


def _is(word: Token, kinds: str) -> bool:
    """Whether a word is of one of some types."""
    alternatives = kinds.split("|")
    if "any" in alternatives or word.type in alternatives:
        return True
    return "name" in alternatives and lexer.is_name(word)


def _opening(words: Sequence[Token], k: int) -> int | None:
    """The index of the bracket that is open before word ``k``, or None without one."""
    depth = 1
    for j in range(k - 1, 0, -1):
        depth += (words[j].type in ("RPAR", "RSQB")) - (words[j].type in ("LPAR", "LSQB"))
        if depth == 0:
            return j
    return None


def _operator(s: Slip, *_: Token) -> Diagnostic | None:
    """An operator of another language, whose two characters are two words here."""
    for first, second in ((s.before, s.word), (s.word, s.after)):
        if first is None or second is None or first.end_pos != second.start_pos:
            continue
        if f"{first}{second}" in errors.syntax.ELSEWHERE:
            return errors.syntax.operator_elsewhere(f"{first}{second}", lexer.span(first, second))
    return None


def _semicolon(s: Slip, before: Token, word: Token) -> Diagnostic | None:
    """A missing ``;``."""
    begins = word.type in statements.by_token() or _labels(s) or _misspelt_start(s)
    if "$END" in s.expected and begins or "SEMICOLON" in s.expected and word.type == "RBRACE":
        return errors.statements.no_semicolon(before, lexer.span(before))
    return None


def _equals(s: Slip, word: Token) -> Diagnostic | None:
    """``=`` for ``==``."""
    if "CMP" in s.expected and s.words[0].type not in ("VAR", "PARAM"):
        return errors.syntax.compared_by_equals(s.at)
    return None


def _compares(s: Slip, word: Token) -> Diagnostic | None:
    """``==`` for ``=``."""
    if word == "==" and "EQUAL" in s.expected:
        return errors.syntax.named_by_comparison(s.at)
    return None


def _reserved(s: Slip, word: Token) -> Diagnostic | None:
    """A word of the language as a label, an index or a value."""
    after = s.after.type if s.after is not None else ""
    starts = word.type in statements.by_token()
    label = s.k == 0 and starts and after in ("COLON", "LSQB")
    index = after in ("IN", "TILDE") and word.type != "NAME" and lexer.is_name(word)
    value = (starts or word.type == "TABLE") and "NUMBER" in s.expected
    if label or index or value:
        return errors.syntax.reserved(word, s.at, reduction=word.type == "RED")
    return None


def _choice(s: Slip, word: Token) -> Diagnostic:
    """``if`` without round brackets around the choice."""
    return errors.syntax.choice_without_brackets(s.at)


def _bound_of_data(s: Slip, word: Token) -> Diagnostic | None:
    """``p: real >= 0, <= 1``, ``real[n, n] psd``: a second bound, or one without ``in``."""
    if s.words[0].type != "DATA" or s.before is None:
        return None
    second = word.type == "CMP" and s.before.type == "COMMA"
    last = word.type == "COMMA" and any(earlier.type == "CMP" for earlier in s.words[: s.k])
    if second or last or word == "psd":
        return errors.syntax.bound_of_data(s.at, matrix=word == "psd")
    return None


def _several_names(s: Slip, word: Token, *_: Token) -> Diagnostic:
    """``param x, y;``, ``var x, y >= 0;``."""
    return errors.syntax.several_names(word, s.at)


def _name_after_bounds(s: Slip, *_: Token) -> Diagnostic | None:
    """``var x >= 0, y;``."""
    if s.words[0].type not in ("VAR", "PARAM"):
        return None
    return errors.syntax.several_names(s.words[0], s.at)


def _bounds_first(s: Slip, var: Token, number: Token) -> Diagnostic:
    """``var 0 <= y <= 1;``."""
    return errors.syntax.bounds_before_the_name(var, s.at)


def _reduction_as_name(s: Slip, reduction: Token, word: Token) -> Diagnostic | None:
    """The name of a reduction as that of a quantity."""
    if word.type in ("LPAR", "LBRACE", "IN", "TILDE"):
        return None
    return errors.syntax.reserved(reduction, lexer.span(reduction), reduction=True)


def _subscript(s: Slip, before: Token, word: Token) -> Diagnostic | None:
    """A reduction with a subscript that is not declared."""
    index = lexer.subscript(before)
    kind = reductions.get(before.partition("_")[0])
    binding = "~" if kind is not None and kind.drawn else "in"
    if index:
        return errors.syntax.undeclared_subscript(before, index, binding, lexer.span(before))
    return None


def _wrong_brackets(s: Slip, reduction: Token, *_: Token) -> Diagnostic:
    """The index of a reduction in other brackets, or in none."""
    return errors.syntax.index_in_wrong_brackets(reduction, s.at)


def _no_reduction(s: Slip, name: Token, bracket: Token, index: Token, word: Token) -> Diagnostic:
    """An index after a name that is no reduction."""
    kinds = sorted(lexer.grammar().reductions)
    written = _REDUCTIONS.get(str(name).lower(), "").format(f"[{index} {word} ...]")
    close = nearest(str(name), kinds)
    if written:
        fix = f"write `{written}`"
    elif close:
        fix = f"did you mean `{close}`?"
    else:
        fix = "use one of these"
    return errors.syntax.no_reduction(name, kinds, fix, lexer.span(name))


def _two_bodies(s: Slip, reduction: Token, *_: Token) -> Diagnostic:
    """A reduction with an argument and a body in the same brackets."""
    form = reductions.words()[reduction].head
    return errors.syntax.two_bodies(reduction, form, s.at)


def _range_type(s: Slip, column: Token, colon: Token, number: Token) -> Diagnostic | None:
    """A number as the type of a column."""
    if s.words[0] == "data":
        return errors.syntax.number_as_type(number, column, s.at)
    return None


def _function_by_let(s: Slip, let: Token, name: Token, bracket: Token) -> Diagnostic | None:
    """``let`` for ``def``."""
    if s.k == 2:
        return errors.syntax.function_by_let(name, s.at)
    return None


def _body_in_brackets(s: Slip, reduction: Token, word: Token) -> Diagnostic:
    """A second body after ``E[body]``."""
    return errors.syntax.body_in_brackets(reduction, s.at)


def _may_multiply(s: Slip) -> bool:
    """Whether ``*`` could stand before the word."""
    return "MUL" in s.expected and not _labels(s)


def _base_alone(s: Slip, let: Token, name: Token, *_: Token) -> Diagnostic:
    """``let f[1] = u;`` before the other members of a recursion."""
    return errors.syntax.base_alone(name, s.word, s.at)


def _number_or_name(s: Slip, number: Token, name: Token) -> Diagnostic | None:
    """``2u``."""
    if not _may_multiply(s) or number.end_pos != name.start_pos:
        return None
    digits = name.replace("_", "")
    if digits.isdigit():
        return errors.text.underscore_in_number(f"{number}{digits}", lexer.span(number, name))
    return errors.text.number_or_name(number, name, lexer.span(number, name))


def _heading(s: Slip, before: Token, word: Token) -> Diagnostic | None:
    """``such that`` for ``subject to``."""
    if not _may_multiply(s) or word.lower() not in ("such", "subject", "st"):
        return None
    return errors.syntax.heading_expected(word, _reason(before, s.expected), s.at)


def _product(s: Slip, *_: Token) -> Diagnostic | None:
    """Two values without an operator between them."""
    if _may_multiply(s):
        return errors.syntax.no_operator(s.at)
    return None


#: The first of these that explains the word is reported.
MISTAKES = (
    Mistake("any", _operator, "minimize u ** 2;"),
    Mistake("any any", _semicolon, "options { seed = 1 }"),
    Mistake("EQUAL", _equals, "minimize E[z ~ D | z.y = 1] u;"),
    Mistake("CMP", _compares, "let a == 1;"),
    Mistake("IF", _choice, "minimize E[z ~ D] if z.y == 1 then u else v;"),
    Mistake("any", _bound_of_data, "data D : table(p: real >= 0, <= 1);"),
    Mistake("PARAM any COMMA", _several_names, "param x, y;"),
    Mistake("PARAM any [] COMMA", _several_names, "param x[d], y;"),
    Mistake("VAR any COMMA any CMP|IN|START_AT", _several_names, "var x, y >= 0;"),
    Mistake("VAR any [] COMMA any CMP|IN|START_AT", _several_names, "var x[d], y >= 0;"),
    Mistake("CMP any COMMA NAME", _name_after_bounds, "var x >= 0, y;"),
    Mistake("VAR|PARAM NUMBER|ADD", _bounds_first, "var 0 <= y <= 1;"),
    Mistake("any", _reserved, "minimize sum[data in K] u;"),
    Mistake("RED any", _reduction_as_name, "minimize mean * u;"),
    Mistake("NAME name|NUMBER", _subscript, "minimize mean_i u;"),
    Mistake("RED LPAR any IN|TILDE", _wrong_brackets, "minimize sum(i in I) u;"),
    Mistake("RED LBRACE|IN|TILDE", _wrong_brackets, "minimize sum{i in I} u;"),
    Mistake("NAME LSQB any IN|TILDE", _no_reduction, "minimize logsumexp[k in K] u;"),
    Mistake("RED [] LPAR ... COMMA", _two_bodies, "minimize cvar[z ~ D](0.1, u);"),
    Mistake("any COLON NUMBER", _range_type, "data D : table(k: 1 .. 3);"),
    Mistake("LET any LPAR", _function_by_let, "let f(z) = u;"),
    Mistake("LET name LSQB NUMBER", _base_alone, "let f[1] = u;"),
    Mistake("RED [] name|NUMBER|LPAR", _body_in_brackets, "minimize E[u] v;"),
    Mistake("NUMBER NAME", _number_or_name, "minimize 2u;"),
    Mistake("any NAME", _heading, "minimize u such that u <= 1;"),
    Mistake("any NAME|NUMBER|LPAR|RED|STRING", _product, "minimize 2 u;"),
    Mistake("VBAR", lambda s, bar: errors.syntax.bar(s.at), "minimize |u|;"),
)


def _labels(s: Slip) -> bool:
    """Whether the word reads as the label of a constraint, ``name:`` or ``name[k in K]:``."""
    if s.word.type != "NAME" or s.after is None:
        return False
    indexed = s.after.type == "LSQB" and s.k + 3 < len(s.words) and s.words[s.k + 3].type in ("IN", "TILDE")
    return s.after.type == "COLON" or indexed


def _misspelt_start(s: Slip) -> bool:
    """Whether the word begins a line as a misspelt statement would: ``pram lam ...``."""
    if s.before is None or s.after is None or s.before.line == s.word.line or not lexer.is_name(s.after):
        return False
    return str(s.word) in statements.elsewhere() or nearest(str(s.word), statements.forms()) is not None


# ----------------------------------------------------------------------------------- expected words
#: How messages write the words of a type, where not by its name in lower case.
_SPELL = {
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "EQUAL": "`=`",
    "SEMICOLON": "`;`",
    "$END": "`;`",
    "TILDE": "`~`",
    "VBAR": "`|`",
    "_ARROW": "`->`",
    "_DOTS": "`..`",
    "POW": "`^`",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string in double quotes",
    "CMP": "a comparison",
    "FIELD": "a field such as `.x`",
    "SENSE": "`minimize`",
}
#: Types of words after which a value must stand.
_AWAITS_VALUE = frozenset({"ADD", "MUL", "POW", "CMP", "AND", "OR", "NOT", "COMMA"})
#: Types that are expected together where a value is.
_VALUE = frozenset({"NAME", "NUMBER", "LPAR"})
#: Types that are expected together where an operator is.
_OPERATOR = frozenset({"ADD", "MUL"})


def _reason(before: Token | None, expected: frozenset[str]) -> str:
    """The words that can come after a word, in a sentence."""
    parts: list[str] = []
    rest = set(expected) - {"SUBRED"}
    if rest >= _VALUE:
        parts.append("a value (a name, a number, `(`, or a reduction such as `sum[k in K]`)")
        rest -= _VALUE | {"RED", "STRING", "LBRACE", "LSQB", "ADD", "NOT"}
    if rest >= _OPERATOR:
        parts.append("an operator")
        rest -= _OPERATOR | {"POW", "CMP", "AND", "OR", "_DOTS", "FIELD", "LSQB", "LPAR"}
    parts += sorted({_SPELL.get(kind) or f"`{kind.lower()}`" for kind in rest - {"RED"}})
    if parts:
        listed = parts[-1]
    else:
        listed = "nothing"
    if len(parts) > 1:
        listed = f"{', '.join(parts[:-1])} or {listed}"
    if before is not None:
        return f"After `{short(str(before))}` comes {listed}."
    return f"Here comes {listed}."
