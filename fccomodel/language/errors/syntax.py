"""F0101, F0109, F0110, F0112, F0113, F0115: words in an order that no statement has."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors.words import short

UNEXPECTED = Code("F0101", "unexpected")
COMPARISON = Code("F0109", "comparison")
RESERVED = Code("F0110", "reserved word")
ARGUMENTS = Code("F0112", "arguments")
REDUCTION = Code("F0113", "reduction")
CONSTRAINT = Code("F0115", "constraint")

_COMPARISONS = "The comparisons are <= >= == != < >."
_WORDS = "Statement words, `in`, `and`, `E`, `sum` and the like can name nothing but a table's columns."


# ------------------------------------------------------------------------------------ any statement
def ends_early(last: str, end: int, reason: str, form: str) -> Diagnostic:
    """A statement is complete.

    last  its last word
    form  how one of its kind is written, or an empty text inside a formula
    """
    if form:
        fix = _like(form)
    else:
        fix = f"complete the formula after `{short(last)}`, or take `{short(last)}` away"
    return UNEXPECTED.error(
        "the statement ends too early", span=Span(start=end, end=end + 1), reason=reason, fix=fix
    )


def base_alone(name: str, first: str, span: Span) -> Diagnostic:
    """The base of a recursion stands in the formula of its family."""
    return UNEXPECTED.error(
        f"`{name}[{first}]` cannot be declared alone",
        span=span,
        reason=f"One `let` declares all members of `{name}`, the first among them.",
        fix=f"write `let {name}[t in {first} .. 10] = if t == {first} then ... else ... {name}[t - 1] ...;`",
    )


def unexpected(word: str, reason: str, form: str, span: Span) -> Diagnostic:
    """A word of the language occurs only at its places in a statement.

    form  how the statement is written, or an empty text inside a formula
    """
    if form:
        fix = _like(form)
    else:
        fix = f"take `{short(word)}` away, or complete the formula before it"
    return UNEXPECTED.error(f"did not expect `{short(word)}` here", span=span, reason=reason, fix=fix)


def choice_without_brackets(span: Span) -> Diagnostic:
    """``if`` inside a formula stands in round brackets."""
    return UNEXPECTED.error(
        "`if` stands inside a formula without round brackets",
        span=span,
        reason="Brackets say where the choice ends.",
        fix="write `(if z.y == 1 then u else v)`",
    )


def several_names(word: str, span: Span) -> Diagnostic:
    """A declaration with bounds has one name, and so has every ``param``."""
    rule = "a `var` with bounds or a start declares one name"
    if word == "param":
        rule = "`param` declares one name"
    return UNEXPECTED.error(
        rule,
        span=span,
        reason="Each variable and param has its own bounds.",
        fix=f"write one statement each, as in `{word} x[d]; {word} y >= 0;`",
    )


def bounds_before_the_name(word: str, span: Span) -> Diagnostic:
    """Bounds follow the name."""
    return UNEXPECTED.error(
        "the name comes first",
        span=span,
        reason="Bounds follow the name and its shape.",
        fix=f"write `{word} y[d] in box(0, 1);`, or `{word} y >= 0;`",
    )


def _like(form: str) -> str:
    return f"write it like `{form}`"


def heading_expected(word: str, reason: str, span: Span) -> Diagnostic:
    """``such that`` and the like: the heading is ``subject to``."""
    return UNEXPECTED.error(
        f"did not expect `{word}` here", span=span, reason=reason, fix="write `subject to`"
    )


def no_operator(span: Span) -> Diagnostic:
    """A product is written with ``*``; two values side by side are not a product."""
    return UNEXPECTED.error(
        "an operator is missing before this",
        span=span,
        reason="Two values side by side are no product: it is written with `*`.",
        fix="put `*` or another operator before it",
    )


def bar(span: Span) -> Diagnostic:
    """``|`` begins a condition."""
    return UNEXPECTED.error(
        "`|` is not used here",
        span=span,
        reason="`|` begins the condition of an index or of a set: `E[z ~ D | z.y == 1]`.",
        fix="write `abs(u)` for an absolute value, `or` for a choice",
    )


def number_as_type(number: str, column: str, span: Span) -> Diagnostic:
    """``k: 1 .. 3``: a column has the type of a declared set."""
    return UNEXPECTED.error(
        f"no type: `{number}`",
        span=span,
        reason="The type of a column is `real`, `int`, a name declared by `set`, or numbers in braces, "
        "`{-1, 1}`.",
        fix=f"declare `set K = 1 .. 3 by 1;` before it, and write `{column}: K`",
    )


def interval(name: str, ends: Sequence[str], span: Span) -> Diagnostic:
    """``p in [0, 1]``: bounds are comparisons."""
    return UNEXPECTED.error(
        "an interval in square brackets",
        span=span,
        reason="Bounds are written as comparisons; after `in` comes a set by its name, such as `simplex` "
        "or `ball(2)`.",
        fix=f"write `{name} >= {ends[0]}, <= {ends[1]}`",
    )


def bound_of_data(span: Span, *, matrix: bool) -> Diagnostic:
    """Data have one bound, behind their type; ``matrix`` where the word is ``psd``."""
    return UNEXPECTED.error(
        "a set without `in`" if matrix else "a second bound of data",
        span=span,
        reason="Behind a type stands one bound: a comparison, or `in` with an interval or `psd`.",
        fix="write `real[n, n] in psd`" if matrix else "write `real in [0, 1]`",
    )


def function_by_let(name: str, span: Span) -> Diagnostic:
    """Functions are declared by ``def``."""
    return UNEXPECTED.error(
        "arguments after `let`",
        span=span,
        reason="`let` names one quantity, or a family `[k in K]` of them; what has arguments is a function.",
        fix=f"write `def {name}(...) = ...`",
    )


# ---------------------------------------------------------------------------------------- operators
#: Operators of other languages: the code, the rule, and what to write.
ELSEWHERE = {
    "**": (UNEXPECTED, "A power is written with `^`.", "write `^`"),
    "//": (UNEXPECTED, "A comment begins with `#`; a quotient has one `/`.", "write `#`, or one `/`"),
    "/*": (UNEXPECTED, "A comment begins with `#` and goes to the end of its line.", "write `#`"),
    "||": (UNEXPECTED, "`|` begins a condition.", "write `or` for a choice, `norm2(u)` for a length"),
    "<>": (COMPARISON, _COMPARISONS, "write `!=`"),
    "=>": (COMPARISON, _COMPARISONS, "write `>=`"),
    "=<": (COMPARISON, _COMPARISONS, "write `<=`"),
    "===": (COMPARISON, _COMPARISONS, "write `==`"),
    "<-": (UNEXPECTED, "A name gets its meaning by `=`.", "write `=`, or put a space between `<` and `-`"),
    ":=": (UNEXPECTED, "A name gets its meaning by `=`.", "write `=`, or `default` for a parameter"),
    "+=": (
        UNEXPECTED,
        "Nothing changes its value: a name has one meaning.",
        "give the sum a name of its own with `let`",
    ),
}


def operator_elsewhere(operator: str, span: Span) -> Diagnostic:
    """An operator of another language, one of ``ELSEWHERE``."""
    code, reason, fix = ELSEWHERE[operator]
    return code.error(f"`{operator}` is not used here", span=span, reason=reason, fix=fix)


def compared_by_equals(span: Span) -> Diagnostic:
    """``=`` gives a name its meaning."""
    return COMPARISON.error(
        "`=` does not compare",
        span=span,
        reason="`=` gives a name its meaning, in `let`, `def`, `const` and named arguments; `==` compares.",
        fix="write `==`, or `<=` if one side bounds the other",
    )


def member_of_a_named_set(span: Span) -> Diagnostic:
    """``z.y in {1, 2}`` lists its values."""
    return COMPARISON.error(
        "`in` in a condition takes a list or a range of values",
        span=span,
        reason="A named set is something that an index ranges over.",
        fix="write `z.y in {1, 2}`, `z.y in 1 .. 5`, or `z.g == k` with an index `k` of the set",
    )


def named_by_comparison(span: Span) -> Diagnostic:
    """``==`` compares."""
    return COMPARISON.error(
        "`==` compares", span=span, reason="A name gets its meaning by `=`.", fix="write `=`"
    )


# -------------------------------------------------------------------------------------------- names
def reserved(word: str, span: Span, *, reduction: bool = False) -> Diagnostic:
    """A word of the language is not a name, except of a column."""
    return RESERVED.error(
        f"`{word}` is a word of the language",
        span=span,
        reason=_WORDS,
        fix=f"choose another name, such as `{word}1`"
        + f"; a reduction is written `{word}[i in I] ...`" * reduction,
    )


def reads_as_reduction(name: str, reduction: str, index: str, span: Span) -> Diagnostic:
    """``mean_i`` is no name beside an index ``i``."""
    return RESERVED.error(
        f"`{name}` reads as a reduction",
        span=span,
        reason=f"`{index}` is declared as an index, so that `{name} u` is `{reduction}[{index} ...] u`.",
        fix="choose another name for the one or the other",
    )


# ---------------------------------------------------------------------------------------- arguments
def argument_twice(name: str, span: Span) -> Diagnostic:
    """An argument has one value."""
    return _twice(name, span, "An argument has one value.")


def option_twice(name: str, span: Span) -> Diagnostic:
    """An option has one value."""
    return _twice(name, span, "An option has one value.")


def _twice(name: str, span: Span, reason: str) -> Diagnostic:
    return ARGUMENTS.error(f"`{name}` is given twice", span=span, reason=reason)


def unnamed_after_named(span: Span) -> Diagnostic:
    """All arguments after a named one must be named."""
    return ARGUMENTS.error(
        "this argument has no name",
        span=span,
        reason="After a named argument every argument is named, since its place no longer says which one "
        "it is.",
        fix="put it before the named ones, or name it",
    )


def unnamed_option(reduction: str, option: str, span: Span) -> Diagnostic:
    """The options of a reduction are named."""
    return ARGUMENTS.error(
        f"`{reduction}` takes named arguments only",
        span=span,
        reason=f"So that a reader need not know what the number in `{reduction}(0.1)` means.",
        fix=f"{reduction}({option} = ...)[...]" if option else "name it, `name = value`",
    )


# --------------------------------------------------------------------------------------- reductions
def draw_in_round_brackets(reduction: str, binder: str, span: Span) -> Diagnostic:
    """``E(u)``: the body of an expectation is in square brackets."""
    return REDUCTION.error(
        f"`{reduction}` takes its draw in square brackets",
        span=span,
        reason=f"The draw says over what the average is taken; round brackets after `{reduction}` hold "
        "named options only.",
        fix=f"{reduction}[{binder}] (...)",
    )


def options_without_index(reduction: str, form: str, span: Span) -> Diagnostic:
    """``cvar(u)``: options, then the index, then the body."""
    return _over_nothing(
        reduction,
        span,
        f"`{reduction}` is a reduction: options in round brackets, then its index in square ones, then "
        "its body.",
        f"{form} (...)",
    )


def no_index(reduction: str, drawn: Sequence[str], span: Span) -> Diagnostic:
    """``sum[u]``: only a reduction that draws may be written without an index."""
    which = f"{', '.join(drawn[:-1])} and {drawn[-1]}"
    return _over_nothing(
        reduction,
        span,
        f"Only {which} may leave their draw out: it is then every `~` index that is free in the body.",
        f"{reduction}[i in I] (...), or for the elements of a vector {reduction}(...)",
    )


def _over_nothing(reduction: str, span: Span, reason: str, fix: str) -> Diagnostic:
    return REDUCTION.error(f"`{reduction}` does not say over what", span=span, reason=reason, fix=fix)


def undeclared_subscript(name: str, index: str, binding: str, span: Span) -> Diagnostic:
    """``mean_i`` is a reduction where ``i`` is declared as an index."""
    return REDUCTION.error(
        f"no index is called `{index}`",
        span=span,
        reason=f"`{name}` is a reduction only if `{index}` is declared as an index.",
        fix=f"declare `index {index} {binding} D;`",
    )


def index_in_wrong_brackets(reduction: str, span: Span) -> Diagnostic:
    """``sum{i in I} e`` and ``sum(i in I) e``: an index stands in square brackets."""
    return REDUCTION.error(
        "an index in the wrong brackets",
        span=span,
        reason="Round brackets hold arguments, braces hold sets; what a reduction goes over stands in "
        "square brackets.",
        fix=f"write `{reduction}[i in I] ...`",
    )


def no_reduction(name: str, reductions: Collection[str], fix: str, span: Span) -> Diagnostic:
    """``logsumexp[k in K] u``: the name before square brackets is the name of a reduction."""
    return REDUCTION.error(
        f"`{name}` is no reduction",
        span=span,
        reason=f"What goes over a set is one of {', '.join(reductions)}.",
        fix=fix,
    )


def two_bodies(reduction: str, form: str, span: Span) -> Diagnostic:
    """``cvar[z ~ D](0.1, u)``: parameters of a reduction stand before its index."""
    return REDUCTION.error(
        f"two expressions behind `{reduction}[...]`",
        span=span,
        reason=f"`{reduction}[...]` has one expression behind its brackets; parameters of a reduction "
        "stand before them.",
        fix=f"write `{form}[z ~ D] u`",
    )


def body_in_brackets(reduction: str, span: Span) -> Diagnostic:
    """``E[u] v``: square brackets without a binder contain the body."""
    return REDUCTION.error(
        f"`{reduction}[...]` has its body already",
        span=span,
        reason=f"`{reduction}[u]` names no draw, so that its brackets hold all of its body; "
        f"`{reduction}[z ~ D] u` names one.",
        fix=f"write `{reduction}[z ~ D]`, or an operator here",
    )


# -------------------------------------------------------------------------------------- constraints
def connected_constraints(op: str, span: Span) -> Diagnostic:
    """Constraints hold together, each by itself."""
    return CONSTRAINT.error(
        f"`{op}` between constraints",
        span=span,
        reason="Constraints hold together: each is a statement, and a choice between two of them is no "
        "constraint of this"
        " language.",
        fix="write each side as a constraint of its own"
        if op == "and"
        else "write a function that is small where either holds",
    )


def compares_nothing(span: Span) -> Diagnostic:
    """A constraint has two sides."""
    return CONSTRAINT.error(
        "this constraint compares nothing",
        span=span,
        reason="A constraint is `left <= right`, `left >= right`, `left == right` or `low <= value <= high`.",
        fix="add the other side, for example `... <= 0`",
    )


def several_comparisons(ops: Collection[str], span: Span) -> Diagnostic:
    """Two comparisons in one constraint are a lower and an upper bound."""
    return CONSTRAINT.error(
        f"`{' '.join(ops)}` cannot stand in one constraint",
        span=span,
        reason="Two comparisons in one constraint are a lower and an upper bound: `low <= value <= high`.",
        fix="write one constraint for each comparison",
    )


def open_constraint(op: str, span: Span) -> Diagnostic:
    """The points that satisfy a constraint are a closed set."""
    return COMPARISON.error(
        f"`{op}` cannot constrain",
        span=span,
        reason="A strict inequality leaves out its boundary, so that the minimum need not be attained."
        if op in "<>"
        else "The points where two sides differ are no closed set: no algorithm can stay in it.",
        fix="write " + {"<": "`<=`", ">": "`>=`"}.get(op, "`<=`, `>=` or `==`; of matrices `<<` or `>>`"),
    )
