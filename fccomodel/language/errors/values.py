"""F0404, F0410, F0411, F0413, F0415, F0417, F0421, F0424: values that are not defined, not fixed, or
out of their bounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, listed
from fccomodel.library.atoms import WHOLE, Interval

COMPARISON = Code("F0404", "comparison")
NO_VALUE_LEFT = Code("F0410", "no value left")
DEFAULT = Code("F0411", "default")
DOMAIN = Code("F0413", "domain")
NEVER_TRUE = Code("F0415", "never true")
NOT_FIXED = Code("F0417", "not fixed")
OPTION_VALUE = Code("F0421", "value of an option")
NOT_CONSTANT = Code("F0424", "not constant")


# ------------------------------------------------------------------------------------------- bounds
def bound_of_number(op: str, name: str, value: float, span: Span, what: str) -> Diagnostic:
    """A param, or data (``what``), are bounded by inequalities."""
    fixed = "Use one of these."
    if what == "a param":
        fixed = f"For a fixed value write `const {name} = {value:g};`."
    return COMPARISON.error(
        f"`{op}` does not bound",
        span=span,
        reason="Bounds are `>=`, `>`, `<=`, `<`.",
        fix=fixed if op in ("==", "=") else "Use one of these.",
    )


def bound_of_variable(op: str, span: Span) -> Diagnostic:
    """A variable has closed bounds: the solution may lie on them."""
    fix = {
        "<": "Write `<=`.",
        ">": "Write `>=`.",
        "=": "Write `==` in a constraint.",
        "==": "Fix it in a constraint, or use a `param`.",
        ">>": "Write `var P[n, n] in psd;`.",
        "<<": "Write a constraint, `P << 0`.",
    }
    return COMPARISON.error(
        f"`{op}` does not bound a variable",
        span=span,
        reason="Bounds are closed: the solution may lie on them."
        if op in "<>"
        else "Bounds are `>=` and `<=`.",
        fix=fix.get(op, "Use `>=` or `<=`."),
    )


def no_value_left(what: str, name: str, low: float, high: float, span: Span) -> Diagnostic:
    """There is a value that satisfies all bounds; ``what`` is ``number``, ``whole number`` or ``value``."""
    fix = "Correct them." if low < high else "Swap or correct them."
    return NO_VALUE_LEFT.error(
        f"no {what} keeps the bounds of `{name}`",
        span=span,
        reason=f"They ask for at least {low:g} and at most {high:g}.",
        fix=fix,
    )


def empty_set(written: str, title: str, lies: Interval, needs: str, span: Span) -> Diagnostic:
    """The low end of an interval is at most its high end."""
    return NO_VALUE_LEFT.error(
        f"`{written}` is empty",
        span=span,
        reason=f"{title[0].upper()}{title[1:]} {_lies(lies)}, and needs {needs}.",
        fix="Swap or correct its ends.",
    )


def default_out_of_bounds(value: float, bounds: str, span: Span) -> Diagnostic:
    """Every value of a param is within its bounds, and so is its default."""
    return DEFAULT.error(
        f"the default {value:g} breaks `{bounds}`",
        span=span,
        reason="The bounds of a param are part of its type: every value keeps them.",
        fix="Change the default or the bounds.",
    )


# ------------------------------------------------------------------------------------------ domains
def out_of_domain(argument: Quote, lies: Interval, title: str, needs: str) -> Diagnostic:
    """An argument of an atom is in the atom's domain; ``lies`` is the known interval of the argument."""
    return DOMAIN.error(
        f"{argument} {_lies(lies)}, outside of what {title} is defined for",
        span=argument.span,
        reason=f"{title[0].upper()}{title[1:]} needs {needs}.",
        fix="Check the sign, or the bounds declared for the names in it.",
    )


def _lies(enclosure: Interval) -> str:
    if enclosure.is_point:
        return f"is {enclosure.lo:g}"
    return f"lies in {enclosure}"


def division_by_zero(written: Quote, denominator: Span) -> Diagnostic:
    """A quotient by 0 has no value."""
    return DOMAIN.error(
        f"{written} divides by 0",
        span=denominator,
        reason="The quotient has no value.",
        fix="Correct the denominator.",
    )


def constant_without_value(written: Quote, *, by_zero: bool) -> Diagnostic:
    """An operation on constants gives a real number of 64 bits."""
    return DOMAIN.error(
        f"{written} has no finite value",
        span=written.span,
        reason="Division by 0." if by_zero else "Its value is not a real number that fits 64 bits.",
        fix="Correct the constant.",
    )


def not_allowed(title: str, lies: Interval, needs: str, span: Span, *, ordered: bool) -> Diagnostic:
    """An option, or an argument of a distribution or a set, is in its domain."""
    if needs == WHOLE:
        fix = "Round it."
    elif ordered:
        fix = "Swap or correct them."
    else:
        fix = "Correct it, or the bounds of its param."
    return OPTION_VALUE.error(f"{title} {_lies(lies)}", span=span, reason=f"It needs {needs}.", fix=fix)


def more_than_all(reduction: str, option: str, value: float, elements: int, span: Span) -> Diagnostic:
    """The largest k of a set are at most all of its elements."""
    return OPTION_VALUE.error(
        f"`{option}` of `{reduction}` is {value:g}",
        span=span,
        reason=f"Its set has {elements} elements.",
        fix=f"Use a `{option}` from 1 to {elements}.",
    )


# --------------------------------------------------------------------------------------- never true
def never_equal(
    column: Quote, value: float, op: str, domain: str, values: Sequence[float], span: Span
) -> Diagnostic:
    """A column is compared with a value that it can take."""
    return NEVER_TRUE.error(
        f"{column} is never {value:g}",
        span=span,
        reason=f"It takes its values in {domain}, so this condition is always "
        f"{'false' if op == '==' else 'true'}.",
        fix=f"Compare with {' or '.join(f'{v:g}' for v in values[:4])}, or correct the declared values.",
    )


def no_such_label(label: str, domain: str, labels: Collection[str], span: Span) -> Diagnostic:
    """A column is compared with a label that it can have."""
    return NEVER_TRUE.error(
        f'"{label}" is not a label of `{domain}`',
        span=span,
        reason=f"Its labels are {listed(labels)}.",
        fix=did_you_mean(label, labels),
    )


# ------------------------------------------------------------------------------- fixed and constant
def parameter_on_variable(value: Quote, parameter: str, atom: str, signature: str) -> Diagnostic:
    """The parameter of an atom is fixed."""
    return NOT_FIXED.error(
        f"{value} depends on a variable",
        span=value.span,
        reason=f"`{parameter}` of `{signature}` must be fixed: {atom} is known for a given {parameter}.",
        fix="Use a constant, a param, or data.",
    )


def exponent_on_variable(exponent: Quote) -> Diagnostic:
    """u^p needs a p that is fixed."""
    return NOT_FIXED.error(
        f"the exponent {exponent} depends on a variable",
        span=exponent.span,
        reason="u^p needs a p that is fixed.",
        fix="For a positive base b write `exp(p * log(b))`.",
    )


def not_fixed(value: Quote) -> Diagnostic:
    """A variable's set, and an option of a reduction, depends on no variable and no draw."""
    return NOT_CONSTANT.error(
        f"{value} is not fixed",
        span=value.span,
        reason="A variable's set, and an option of a reduction, is made of constants, params and arrays.",
        fix="Write the condition as a labelled constraint after `subject to`.",
    )


def member_not_known(value: Quote) -> Diagnostic:
    """The members of a set are known before any data."""
    return NOT_CONSTANT.error(
        f"{value} cannot be a member of a set",
        span=value.span,
        reason="Members are numbers known before any data: constants, params, dims and their arithmetic.",
        fix="Use a constant or a param.",
    )


def end_not_known(value: Quote) -> Diagnostic:
    """The ends and the step of a range are known before any data."""
    return _not_known(
        value,
        "The ends and the step of a range are made of constants, params and dims.",
        "Use a constant or a param.",
    )


def default_not_known(value: Quote) -> Diagnostic:
    """A default is known before any data."""
    return _not_known(value, "A default is made of constants, params and dims.", "Use a number.")


def _not_known(value: Quote, reason: str, fix: str) -> Diagnostic:
    return NOT_CONSTANT.error(
        f"{value} is not known before the data is", span=value.span, reason=reason, fix=fix
    )


def const_not_constant(value: Quote) -> Diagnostic:
    """A ``const`` has its value in the model and cannot be given later."""
    return _not_constant(
        value,
        "A `const` is baked into the solver: numbers alone.",
        "Use `param` for a value that is given later, `let` for a quantity, or `def` for a function.",
    )


def bound_not_constant(value: Quote, what: str) -> Diagnostic:
    """The bounds of a param, or of data (``what``), are part of the type."""
    whose = "its" if what == "a param" else "their"
    return _not_constant(value, f"The bounds of {what} are part of {whose} type.", "Use a number.")


def _not_constant(value: Quote, reason: str, fix: str) -> Diagnostic:
    return NOT_CONSTANT.error(f"{value} is not a constant", span=value.span, reason=reason, fix=fix)
