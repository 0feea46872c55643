"""F0519, F0520: params, dims and sets of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.data.bind.errors import words

NO_VALUE = Code("F0519", "parameter without value")
VALUE = Code("F0520", "parameter value")


# ------------------------------------------------------------------------------------------- params
def no_value(name: str) -> Diagnostic:
    """A param has a value or a default."""
    return NO_VALUE.error(
        f"param {name} has no value",
        fix=f"give one: --param {name}=0.1, {name} = 0.1 in [params], or `default 0.1`",
    )


def defined_by_itself(name: str) -> Diagnostic:
    """A default does not depend on the value of its param."""
    return VALUE.error(f"param {name} is defined by itself", fix="give it a number as its default")


def not_a_number(name: str, shown: str) -> Diagnostic:
    """A param is a number or an array of numbers."""
    return VALUE.error(f"param {name} = {shown} is not a number", fix=f"give a number: --param {name}=0.1")


def shape(name: str, actual: tuple[int, ...], declared: tuple[int, ...]) -> Diagnostic:
    """A param has its declared shape, or is one number."""
    return VALUE.error(
        f"param {name} has shape {actual}, declared {declared}", fix="give values of the declared shape"
    )


def no_labels(name: str, shape: tuple[int | str, ...]) -> Diagnostic:
    """Only an axis over a set of labels takes values by label."""
    axes = ", ".join(map(str, shape))
    if shape:
        what = f"param {name}[{axes}] has places, not labels"
    else:
        what = f"param {name} is one number"
    return VALUE.error(
        f"{what}: values by label do not fit it", fix="give the numbers in order: a list, or .to_numpy()"
    )


def other_labels(name: str, given: Sequence[str], labels: Sequence[str]) -> Diagnostic:
    """Values by label are of the set's labels, each once."""
    missing = [label for label in labels if label not in given]
    more = [label for label in given if label not in labels]
    if missing:
        differences = [f"lacks {words.listed(missing)}"]
    else:
        differences = []
    if more:
        differences += [f"has {words.listed(more)}, which the data do not have"]
    return VALUE.error(
        f"param {name} {' and '.join(differences)}", fix=f"give a value for each of {words.listed(labels)}"
    )


def not_finite(name: str, value: float) -> Diagnostic:
    """A param is finite."""
    return VALUE.error(f"param {name} is {value}", fix="give a finite number")


def out_of_bounds(parameter: ir.Parameter, value: float) -> Diagnostic:
    """A param is within its declared bounds."""
    rules = []
    if math.isfinite(parameter.lower):
        rules.append(f"{'>' if parameter.strict_lower else '>='} {parameter.lower:g}")
    if math.isfinite(parameter.upper):
        rules.append(f"{'<' if parameter.strict_upper else '<='} {parameter.upper:g}")
    return VALUE.error(
        f"param {parameter.name} = {value:g} is outside its declared bounds: {', '.join(rules)}",
        reason="the bounds are part of a parameter's type: curvature and signs were derived from them",
        fix="give a value within them, or change the declaration",
    )


# ------------------------------------------------------------------------------------ dims and sets
def not_a_size(dim: str, value: object) -> Diagnostic:
    """A dim is a whole number above 0."""
    return VALUE.error(f"dim {dim} = {value} is not a whole number above 0", fix=f"--param {dim}=10")


def not_a_scalar(text: str, actual: tuple[int, ...]) -> Diagnostic:
    """Bounds and elements of sets are numbers."""
    return VALUE.error(f"{text} has shape {actual} where a number is needed", fix="use one of its elements")


def not_known_before_solving(text: str) -> Diagnostic:
    """Sets, bounds and defaults are computed before solving."""
    return VALUE.error(
        f"{text} is not a number that is known before solving",
        reason="sets, bounds and defaults are computed from constants, parameters and sizes",
        fix="write the number, or declare a param",
    )


def not_a_range(name: str, low: float, high: float, step: float) -> Diagnostic:
    """A range is finite, and its step is not 0."""
    return VALUE.error(
        f"set {name}: {low:g} .. {high:g} by {step:g} is no range",
        fix="give a finite range with a step other than 0",
    )


def too_many_elements(name: str, count: float) -> Diagnostic:
    """A range has few enough elements to list."""
    if count < 1e15:
        shown = f"{count:.0f}"
    else:
        shown = "more than 1e15"
    return VALUE.error(f"set {name} has {shown} elements", fix="give a larger step")
