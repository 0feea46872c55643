"""F0206, F0207, F0302, F0313: calls of functions, distributions, sets of vectors and nets."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, are, counted, listed
from fccomodel.library.array_functions import ArrayFunction

UNKNOWN_FUNCTION = Code("F0206", "unknown function")
NOT_A_FUNCTION = Code("F0207", "not a function")
OWN_SAMPLER = Code("F0440", "sampler of one's own")
ARGUMENTS = Code("F0302", "arguments")
NET = Code("F0313", "net")


# ---------------------------------------------------------------------------------------- functions
def unknown_function(
    name: str, arguments: int, callables: Collection[str], elsewhere: str, span: Span
) -> Diagnostic:
    """Functions are atoms, and what ``def`` and ``net`` declare; ``elsewhere`` is what other languages
    mean by the name."""
    near = did_you_mean(name, callables)
    similar = sorted(n for n in callables if n.startswith(name[:3]) and len(name) >= 3)
    parameters = ", ".join("uvxyz"[: max(1, min(5, arguments))])
    return UNKNOWN_FUNCTION.error(
        f"there is no function `{name}`",
        span=span,
        reason="Functions are the atoms of the language and what `def` and `net` declare."
        + (f" Of similar names there are {listed(similar)}." if similar and not near else ""),
        fix=f"Write {elsewhere}." if elsewhere else near or f"Define it: `def {name}({parameters}) = ...;`.",
    )


def unknown_distribution(name: str, distributions: Collection[str], span: Span) -> Diagnostic:
    """The name of a distribution is not a misspelt name of a distribution of the language."""
    return UNKNOWN_FUNCTION.error(
        f"there is no distribution `{name}`",
        span=span,
        reason=f"The distributions are {listed(distributions)}.",
        fix=did_you_mean(name, distributions),
    )


def own_sampler(name: str, made_of: str, span: Span) -> Diagnostic:
    """The name of a distribution that other languages know stands for a sampler of the user's own here."""
    instead = f"Write {made_of}; or give" if made_of else "Give"
    return OWN_SAMPLER.warning(
        f"`{name}` is no distribution of the language",
        span=span,
        reason="Any other name is a sampler that you give in Python.",
        fix=f"{instead} one in `bind(samplers={{'{name}': function}})`.",
    )


def not_a_function(name: str, what: str, span: Span) -> Diagnostic:
    """A name before round brackets is a function."""
    return NOT_A_FUNCTION.error(
        f"`{name}` is {what}, not a function",
        span=span,
        reason="Round brackets after a name call it; a product needs its `*`.",
        fix=f"Write `{name} * (...)` for a product, or `{name}[...]` for an entry.",
    )


# ---------------------------------------------------------------------------------------- arguments
def function_needs_arguments(name: str, parameters: Sequence[str], span: Span) -> Diagnostic:
    """The name of a function is followed by its arguments."""
    return _needs_arguments(name, "a function", f"`{name}({', '.join(parameters)})`", span)


def net_needs_arguments(name: str, span: Span) -> Diagnostic:
    """The name of a net is followed by its arguments."""
    return _needs_arguments(name, "a net", f"`{name}(w; ...)`, with `var w = params({name});`", span)


def _needs_arguments(name: str, what: str, form: str, span: Span) -> Diagnostic:
    return ARGUMENTS.error(f"`{name}` is {what} and needs its arguments", span=span, fix=f"Write {form}.")


def no_such_parameter(call: Quote, signature: str, line: str, name: str) -> Diagnostic:
    """A named argument of a ``def`` is one of its parameters."""
    return _does_not_fit(call, signature, line, f"`{name}` is none of its parameters.")


def no_such_subscript(call: Quote, signature: str, line: str, name: str) -> Diagnostic:
    """A subscript of a ``def`` is one of its parameters."""
    return _does_not_fit(call, signature, line, f"The subscript `{name}` is none of its parameters.")


def parameter_twice(call: Quote, signature: str, line: str, name: str) -> Diagnostic:
    """A parameter of a ``def`` has one argument."""
    return _does_not_fit(call, signature, line, f"`{name}` is given twice.")


def left_out(call: Quote, signature: str, line: str, name: str, given: int) -> Diagnostic:
    """Only a declared index may be left out of the arguments of a ``def``."""
    arguments = f"{counted(given, 'argument')} {are(given)} given"
    reason = f"{arguments}, and `{name}` is left out; only an index declared by `index` may be."
    return _does_not_fit(call, signature, line, reason)


def too_many_arguments(call: Quote, signature: str, line: str, given: int, needed: int) -> Diagnostic:
    """A ``def`` has an argument for each parameter."""
    return _does_not_fit(
        call, signature, line, f"{given} arguments are given, {needed} {are(needed)} needed."
    )


def _does_not_fit(call: Quote, signature: str, line: str, reason: str) -> Diagnostic:
    return ARGUMENTS.error(
        f"{call} does not fit `{signature}`",
        span=call.span,
        reason=f"{reason} It is declared on line {line} as `{signature}`.",
        fix=f"Write `{signature}` with an expression for each name.",
    )


def arguments_of_atom(
    call: Quote, signature: str, meaning: str, candidates: Sequence[tuple[str, str]]
) -> Diagnostic:
    """An atom takes the arguments of its signature; ``candidates`` is it and others, each with why it
    does not fit."""
    return ARGUMENTS.error(
        f"{call} does not fit `{signature}`",
        span=call.span,
        reason="The candidates, nearest first:\n" + "\n".join(f"  {form}: {why}" for form, why in candidates),
        fix=f"Write `{signature}`: {meaning}.",
    )


def arguments_of_array_function(call: Quote, function: ArrayFunction) -> Diagnostic:
    """``ones``, ``diag`` and the like have the arguments of their signature, in order."""
    return ARGUMENTS.error(
        f"{call} has other arguments than `{function.signature}`",
        span=call.span,
        reason=f"It is {function.meaning}; its arguments have no names.",
        fix=f"Write it like `{function.signature}`.",
    )


def weights_of_no_set(call: Quote) -> Diagnostic:
    """``uniform(K)`` needs a set or a dim."""
    return ARGUMENTS.error(
        f"{call} is not a vector",
        span=call.span,
        reason="`uniform(K)` gives each element of a set K the weight 1/|K|.",
        fix="Name a set or a dim.",
    )


def needs_parameters(distribution: str, parameters: Sequence[str], span: Span) -> Diagnostic:
    """A distribution is named with its parameters."""
    return ARGUMENTS.error(
        f"`{distribution}` needs its parameters", span=span, fix=_written(distribution, parameters)
    )


def parameters_by_name(call: Quote, distribution: str, parameters: Sequence[str]) -> Diagnostic:
    """Named parameters of a distribution are its own, each once."""
    return ARGUMENTS.error(
        f"{call} does not fit", span=call.span, fix=_written(distribution, parameters or ("...",))
    )


def parameters_counted(distribution: str, parameters: Sequence[str], given: int, span: Span) -> Diagnostic:
    """A distribution has as many arguments as parameters."""
    return ARGUMENTS.error(
        f"`{distribution}` has {counted(len(parameters), 'parameter')}, and {given} {are(given)} given",
        span=span,
        fix=_written(distribution, parameters),
    )


def _written(distribution: str, parameters: Sequence[str]) -> str:
    return f"Write `{distribution}({', '.join(parameters)})`."


def set_arguments(call: Quote, family: str, given: int, wanted: int, form: str) -> Diagnostic:
    """A set of vectors has as many arguments as parameters."""
    return ARGUMENTS.error(
        f"{call} has {given} arguments; `{family}` takes {wanted}", span=call.span, fix=f"Write `{form}`."
    )


# --------------------------------------------------------------------------------------------- nets
def net_arguments(call: Quote, net: str, given: int, inputs: int, owner: str | None) -> Diagnostic:
    """A net is called with its parameters and its inputs; ``owner`` is the variable that holds its
    parameters."""
    expected = {1: "one input"}.get(inputs, f"{inputs} inputs")
    return NET.error(
        f"{call} does not fit the net `{net}`",
        span=call.span,
        reason=f"A net is called with its parameters and {expected}; {counted(given, 'argument')} "
        f"{are(given)} given.",
        fix=f"Write `{_net_form(net, owner)}`" + ("" if owner else f", after `var w = params({net});`") + ".",
    )


def frozen_net_arguments(call: Quote, net: str, given: int, inputs: int) -> Diagnostic:
    """A frozen net is called with its inputs alone."""
    return NET.error(
        f"{call} does not fit the frozen net `{net}`",
        span=call.span,
        reason=f"A frozen net has no parameters: it is called with {counted(inputs, 'input')}, and "
        f"{counted(given, 'argument')} {are(given)} given.",
        fix=f"Write `{net}({', '.join(['...'] * inputs)})`.",
    )


def net_input_not_whole(value: Quote, net: str, line: str) -> Diagnostic:
    """An input that is declared as whole numbers is a column of them."""
    return NET.error(
        f"`{net}` takes whole numbers here, and {value} is not known to be whole",
        span=value.span,
        reason=f"The net is declared on line {line}. Only a column of type `int`, or of listed whole "
        "numbers, is taken as such.",
        fix="Declare the column as `int[...]`, or the net's input as `real[...]`.",
    )


def net_parameters(weights: Quote, net: str, owner: str | None) -> Diagnostic:
    """The first argument of a net is the variable that holds its parameters."""
    return NET.error(
        f"{weights} is not the parameters of `{net}`",
        span=weights.span,
        reason=f"It is {weights.what}.",
        fix=f"Write `{_net_form(net, owner)}`."
        if owner
        else f"Declare `var w = params({net});` and write `{net}(w; ...)`.",
    )


def net_input(value: Quote, net: str, shape: str, line: str) -> Diagnostic:
    """The second argument of a net has the declared shape."""
    return NET.error(
        f"`{net}` takes a {shape}, and this is {value.what}",
        span=value.span,
        reason=f"The net is declared on line {line}.",
        fix="Give it an input of that shape, or correct its declaration.",
    )


def _net_form(net: str, owner: str | None) -> str:
    return f"{net}({owner or 'w'}; ...)"
