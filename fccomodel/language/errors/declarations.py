"""F0416, F0418, F0419: types in declarations, assumptions, options, and variables with a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, listed

TYPE = Code("F0416", "type")
ASSUMPTION_OR_OPTION = Code("F0418", "assumption or option")
VALUE_OF_VARIABLE = Code("F0419", "value of a variable")


# ----------------------------------------------------------------------------------- sets, families
def family_without_value(name: str, span: Span) -> Diagnostic:
    """Only the labels of a plain set come with the data."""
    return TYPE.error(
        f"the family `{name}` has no value",
        span=span,
        reason="Only the labels of a plain set can come with the data.",
        fix=f"Write `set {name}[...] = {{z in D | ...}};`.",
    )


def set_of_no_elements(written: Quote) -> Diagnostic:
    """``set`` names a set of elements, not a set of vectors or a distribution."""
    return TYPE.error(
        f"{written} cannot be named by `set`",
        span=written.span,
        reason="A set has elements that an index ranges over.",
        fix="Write it where it is used.",
    )


def family_with_condition(name: str, span: Span) -> Diagnostic:
    """Every combination of its indices is a member of a ``let`` family."""
    return TYPE.error(
        f"the family `{name}` has a condition",
        span=span,
        reason="Every combination of its indices is a member, so that each use finds one.",
        fix="Leave the condition out here, and restrict the reductions that use it.",
    )


def family_of_tables(name: str, span: Span) -> Diagnostic:
    """A family of tables is indexed by one set."""
    return TYPE.error(
        f"`{name}` has more than one index, or a condition",
        span=span,
        reason="A family of tables is indexed by one set.",
        fix="Use one index; further keys are columns.",
    )


def family_without_rows(name: str, span: Span) -> Diagnostic:
    """A family of numbers is an array."""
    return TYPE.error(
        f"`{name}` is a family without rows",
        span=span,
        reason="A family of numbers is an array: its sets are its shape.",
        fix=f"Write `data {name} : real[K];`.",
    )


# -------------------------------------------------------------------------------------------- sizes
def not_a_size(name: str, what: str, span: Span) -> Diagnostic:
    """A size is a dim, a set, or a whole number."""
    return TYPE.error(
        f"`{name}` is {what}, not a size",
        span=span,
        reason="A size is a dim, a set, or a whole number.",
        fix=f"Declare it as `dim {name};` or `const {name} = 3;`.",
    )


def size_not_whole(written: Quote) -> Diagnostic:
    """A size counts from 1."""
    return TYPE.error(
        f"{written} is not a size",
        span=written.span,
        reason="A size is a dim, a set, or a whole number of 1 or more.",
        fix="Declare a dim for it: it is solved from the data.",
    )


def axis_without_name(written: Quote) -> Diagnostic:
    """An axis is named after its set, so that indices can be checked."""
    return TYPE.error(
        f"{written} has no name",
        span=written.span,
        reason="An axis is named after its set, so that indices can be checked.",
        fix=f"Declare `set K = {written.text};` and write `K` here.",
    )


# ------------------------------------------------------------------------------------------ columns
def not_a_type(name: str, what: str, span: Span) -> Diagnostic:
    """A column is of numbers, of listed values, or of a set's members."""
    size = f"For a vector of that size write `real[{name}]`."
    return TYPE.error(
        f"`{name}` is {what}, not the type of a column",
        span=span,
        reason="A column is `real`, `int`, a list of values `{0, 1}`, or a set of values or labels.",
        fix=size if what == "a dim" else "Use one of these.",
    )


def unknown_type(name: str, sets: Collection[str], elsewhere: str, span: Span) -> Diagnostic:
    """A column's type is known; ``elsewhere`` is what other languages mean by the name."""
    return TYPE.error(
        f"there is no type `{name}`",
        span=span,
        reason="A column is `real`, `int`, a list of values `{0, 1}`, or a set declared before the table"
        + (f" ({listed(sets)})." if sets else "."),
        fix=f"Write {elsewhere}."
        if elsewhere
        else did_you_mean(name, ["real", "int", *sets])
        or f"Declare `set {name};` before the table: its labels come with the data.",
    )


def bound_of_members(name: str, span: Span) -> Diagnostic:
    """Only numbers have bounds; the members of a set are listed."""
    return TYPE.error(
        f"the values of `{name}` are those of a set, and have a bound beside it",
        span=span,
        reason="Only numbers have bounds; the members of a set are the values that are allowed.",
        fix="Leave the bound out, or write `real` or `int` for the type.",
    )


def not_a_range_of_data(written: Quote) -> Diagnostic:
    """Data lie in an interval; a square matrix may be positive semidefinite."""
    return TYPE.error(
        f"{written} is no range of data",
        span=written.span,
        reason="Numbers lie in an interval, `in [0, 1]`; a square matrix may be `in psd`.",
        fix="Write `real in [0, 1]`, `real >= 0`, or `real[n, n] in psd`.",
    )


def definite_column(name: str, span: Span) -> Diagnostic:
    """Arrays are declared positive semidefinite, columns of matrices are not."""
    return TYPE.error(
        f"the column `{name}` is declared `in psd`",
        span=span,
        reason="Only an array is: `data S : real[n, n] in psd;`.",
        fix="Leave `in psd` out here.",
    )


# --------------------------------------------------------------------------------------------- nets
def not_taken_by_nets(written: Quote) -> Diagnostic:
    """A net takes real or whole numbers, or arrays of them."""
    return TYPE.error(
        f"{written} is not what a net takes",
        span=written.span,
        reason="A net takes real numbers, or whole numbers such as token ids, or arrays of them.",
        fix="Write `real[d]`, or `int[t]` for token ids.",
    )


def not_given_by_nets(written: Quote) -> Diagnostic:
    """A net gives real numbers or arrays of them."""
    return TYPE.error(
        f"{written} is not what a net gives",
        span=written.span,
        reason="A net gives real numbers or arrays of them.",
        fix="Write `real` or `real[d]`.",
    )


def assumption_of_frozen_net(net: str, span: Span) -> Diagnostic:
    """Assumptions are about a net as a function of its parameters, and a frozen net has none."""
    return TYPE.error(
        f"nothing is to be assumed of the frozen net `{net}`",
        span=span,
        reason="Assumptions are about a net as a function of its parameters, and these are fixed.",
        fix="Leave the assumptions out.",
    )


def unknown_assumption(written: Quote, name: str, assumptions: Mapping[str, str]) -> Diagnostic:
    """An assumption about a net is one of ``assumptions``, which gives the names of their constants."""
    forms = [
        form
        for key, constant in assumptions.items()
        for form in (key, *([f"{key}({constant})"] if constant else []))
    ]
    return ASSUMPTION_OR_OPTION.error(
        f"{written} is no assumption about a net",
        span=written.span,
        reason=f"Known are {listed(forms)}.",
        fix=did_you_mean(name, assumptions) or "Use one of these, or leave `assume` out.",
    )


def constants_of_assumption(written: Quote, name: str, most: int) -> Diagnostic:
    """An assumption has at most ``most`` constants, none of them negative."""
    return ASSUMPTION_OR_OPTION.error(
        f"{written} does not fit",
        span=written.span,
        reason=f"`{name}` takes {'no argument' if most == 0 else 'one constant of 0 or more, or none'}.",
        fix=f"Write `{name}`.",
    )


def variable_with_value(variable: str, span: Span) -> Diagnostic:
    """The solver finds a variable's value."""
    return VALUE_OF_VARIABLE.error(
        "a variable has no value in the model",
        span=span,
        reason="The solver finds it; only `var w = params(s);` gives it a form.",
        fix=f"For a named quantity write `let {variable} = ...;`; a starting point is given to `solve`.",
    )


def not_a_net(name: str, what: str, nets: Collection[str], span: Span) -> Diagnostic:
    """``params(s)`` is the parameters of a net; ``what`` the name is, if it is declared."""
    return VALUE_OF_VARIABLE.error(
        f"`{name}` is {what}, not a net" if what else f"`{name}` is not a declared net",
        span=span,
        reason="`params(s)` is the parameters of the net `s`"
        + (f"; declared are {listed(nets)}." if nets else "."),
        fix=did_you_mean(name, nets)
        or f"Declare `net {'s' if what else name} : real[d] -> real;` before it.",
    )


def start_of_net_parameters(name: str, span: Span) -> Diagnostic:
    """The parameters of a net begin at the module's own initialisation."""
    return TYPE.error(
        f"`{name}` holds the parameters of a net, which have a start of their own",
        span=span,
        reason="They begin at the module's initialisation.",
        fix="Initialise the module, or solve with `start={...}` from Python.",
    )


def shape_of_net_parameters(variable: str, net: str, span: Span) -> Diagnostic:
    """The net that is bound has its own shapes."""
    return VALUE_OF_VARIABLE.error(
        "the parameters of a net have no shape or bounds in the model",
        span=span,
        reason="The net that is bound has its own.",
        fix=f"Write `var {variable} = params({net});`.",
    )


def parameters_of_frozen_net(net: str, span: Span) -> Diagnostic:
    """A frozen net has no parameters to choose."""
    return VALUE_OF_VARIABLE.error(
        f"the weights of `{net}` are no variables",
        span=span,
        reason=f"`{net}` is declared `frozen`: its weights stay as they are bound.",
        fix=f"Leave this variable out and write `{net}(...)` with the inputs alone, or take `frozen` away.",
    )


# ------------------------------------------------------------------------------------------ options
def not_an_option(written: Quote) -> Diagnostic:
    """Options have plain values."""
    return ASSUMPTION_OR_OPTION.error(
        f"{written} is not the value of an option",
        span=written.span,
        reason="Options are numbers, texts in quotes, words, `true` or `false`.",
        fix="Write one of these.",
    )
