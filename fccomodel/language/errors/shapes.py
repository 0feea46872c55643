"""F0301, F0303: scalars, vectors and matrices of wrong shapes; a shape is a text such as ``vector [d]``."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote
from fccomodel.library.array_functions import ArrayFunction

SHAPE = Code("F0301", "shape")
NOT_A_SCALAR = Code("F0303", "not a scalar")


# --------------------------------------------------------------------------------------- operations
def operands(op: str, left: Quote, right: Quote, span: Span, axes: tuple[int, int]) -> Diagnostic:
    """An entrywise operation has equal shapes, or a scalar on one side; ``axes`` are the numbers of axes."""
    fix = "Give both the same dims where they are declared."
    if op == "*" and axes == (1, 1):
        fix = "Both must belong to the same dim or set."
    if op == "*" and sorted(axes) == [1, 2]:
        fix = "For a matrix times a vector write `A @ x`."
    return SHAPE.error(
        f"{left} and {right} have different shapes",
        span=span,
        reason=f"The left side is {left.what}, the right side {right.what};"
        f" `{op}` works entry by entry, on equal shapes or with a scalar.",
        fix=fix,
    )


def matrix_product(left: Quote, right: Quote, span: Span, *, with_scalar: bool) -> Diagnostic:
    """``A @ B`` multiplies matrices and vectors whose inner sizes agree."""
    return SHAPE.error(
        f"`{left.text} @ {right.text}` does not fit",
        span=span,
        reason=f"The left side is {left.what}, the right side {right.what};"
        " `@` multiplies matrices and vectors whose inner sizes agree.",
        fix="Use `*` with a scalar."
        if with_scalar
        else "Turn one round with `transpose(A)`, or correct its declared shape.",
    )


def arguments(function: str, rule: str, values: list[Quote], others: str, span: Span) -> Diagnostic:
    """The arguments of an atom have shapes that its rule allows; ``others`` are functions that take them."""
    here = ", ".join(f"{value} is {value.what}" for value in values)
    return SHAPE.error(
        f"the arguments of `{function}` do not fit",
        span=span,
        reason=f"{rule} Here {here}." + (f"\nWhat would fit: {others}." if others else ""),
        fix="Change the arguments, or the shapes they are declared with.",
    )


# ------------------------------------------------------------------------------------- declarations
def default(value: Quote, param: str, shape: str) -> Diagnostic:
    """A default is a scalar, or has the param's shape."""
    return SHAPE.error(
        f"the default is {value.what}, and `{param}` is a {shape}",
        span=value.span,
        fix="Give a scalar: every entry has it.",
    )


def bound(value: Quote, variable: str, shape: str) -> Diagnostic:
    """A bound is a scalar, or has the variable's shape."""
    return SHAPE.error(
        f"{value} is {value.what}, and {variable} is a {shape}",
        span=value.span,
        fix="Give a scalar, or a bound for every entry.",
    )


def start(written: Quote, shape: ir.Shape, variable: ir.Variable) -> Diagnostic:
    """A start is a scalar, or has the variable's shape."""
    sizes = ", ".join(map(str, shape))
    return SHAPE.error(
        f"{written} has the shape [{sizes}], and `{variable.name}` has another one",
        span=written.span,
        fix="Give a scalar, numbers of the variable's shape, or a distribution with scalar parameters.",
    )


def parameter_of_draw(value: Quote, shape: str) -> Diagnostic:
    """A distribution's parameter is a scalar, or has the draw's shape."""
    return SHAPE.error(
        f"{value} is {value.what}, and the draw is a {shape}",
        span=value.span,
        fix="Give scalars, or arrays of the draw's shape.",
    )


def simplex(written: Quote, family: str, size: ir.Dim, shape: ir.Shape, variable: str) -> Diagnostic:
    """A simplex has the size of the variable's last axis; ``variable`` is its shape in words."""
    rest = "" if family == "simplex" else ", ..."
    return SHAPE.error(
        f"{written} has vectors [{size}], and the variable is a {variable}",
        span=written.span,
        reason="The rows of a matrix lie in a simplex each, so it has the size of its last axis."
        if len(shape) > 1
        else "A variable's set has the variable's shape.",
        fix=f"Write `{family}({shape[-1]}{rest})`." if shape else "Give the variable a shape.",
    )


def ball_of_a_scalar(span: Span) -> Diagnostic:
    """A ball is a set of vectors."""
    return SHAPE.error("a scalar variable has no ball", span=span, fix="Write bounds: `>= -1, <= 1`.")


def matrix_inequality(op: str, value: Quote) -> Diagnostic:
    """Only square matrices have eigenvalues that an inequality could bound."""
    return SHAPE.error(
        f"{value} is {value.what}, and `{op}` compares square matrices",
        span=value.span,
        reason="`A << B` says that B - A has no negative eigenvalue.",
        fix=f"Write `{op[0]}=` for numbers, and for arrays entry by entry; declare both axes of a matrix "
        "with one dim or set.",
    )


def matrices_of_two_sizes(op: str, left: Quote, right: Quote, span: Span) -> Diagnostic:
    """A matrix inequality subtracts one matrix from the other."""
    return SHAPE.error(
        f"{left} and {right} have different sizes",
        span=span,
        reason=f"The left side is {left.what}, the right side {right.what}; `{op}` compares square matrices "
        "of one size.",
        fix="Give both the same dims where they are declared.",
    )


def matrix_and_number(op: str, value: Quote) -> Diagnostic:
    """A number is no matrix, except 0."""
    return SHAPE.error(
        f"{value} is a number, and `{op}` compares square matrices",
        span=value.span,
        reason="A multiple of the identity or a matrix of equal entries could be meant.",
        fix=f"Write `{value.text} * eye(n)`; 0 may stand alone.",
    )


def matrices_compared(op: str, span: Span) -> Diagnostic:
    """A matrix inequality is a constraint, no condition."""
    return SHAPE.error(
        f"`{op}` cannot stand in a condition",
        span=span,
        reason="It compares square matrices, in a constraint.",
        fix="Write it as a labelled constraint after `subject to`: `lmi: A << B;`.",
    )


def set_of_square_matrices(family: str, variable: str, span: Span) -> Diagnostic:
    """Only square matrices are symmetric."""
    return SHAPE.error(
        f"`{family}` is a set of square matrices, and this is a {variable}",
        span=span,
        reason="A symmetric matrix has one set for its rows and its columns.",
        fix=f"Declare both axes with one dim or set: `var P[n, n] in {family};`.",
    )


def affine(written: Quote, matrix: str, right: str, variable: str) -> Diagnostic:
    """``A x = b`` needs a matrix [m, n], a vector [m] and a variable [n]."""
    return SHAPE.error(
        f"{written} does not fit a {variable}",
        span=written.span,
        reason=f"`A x = b` needs a matrix [m, n], a vector [m] and a variable [n]; these are {matrix}, "
        f"{right} and a {variable}.",
        fix="Correct the declared shapes.",
    )


# --------------------------------------------------------------------------------- arrays by formula
def array_by_formula(value: Quote) -> Diagnostic:
    """An array by formula with many axes is read by its entries; vectors and matrices can be made whole."""
    return SHAPE.error(
        f"{value} is an array by formula, which cannot stand here",
        span=value.span,
        reason="An array by formula with more than two axes stands in sums and scalar functions, in `sum mean"
        " max min dot sumsq norm1 norm2 norminf logsumexp`, before an index, and on a side of a constraint.",
        fix="Reduce it to a number, or declare `var y[n];` and write `y == ...` as a constraint.",
    )


def array_with_condition(span: Span) -> Diagnostic:
    """An array by formula has an entry for each element of its sets."""
    return SHAPE.error(
        "an array has no condition",
        span=span,
        reason="It has an entry for each element of its sets.",
        fix="Write a choice, `[i in n] (if i > 1 then u else 0)`, or reduce under the condition: "
        "`sum[i in n | i > 1] u`.",
    )


def rows_of_an_array(first: Quote, other: Quote, span: Span) -> Diagnostic:
    """The parts of an array in square brackets have one shape."""
    return SHAPE.error(
        f"{first} and {other} have different shapes",
        span=span,
        reason=f"The first part of the array is {first.what}, another one {other.what}.",
        fix="Give numbers alone, or rows of one length.",
    )


def array_function(value: Quote, function: ArrayFunction) -> Diagnostic:
    """A function that makes arrays takes a vector, a matrix, or either."""
    expected = " or ".join({1: "a vector", 2: "a matrix"}[count] for count in function.axes)
    return SHAPE.error(
        f"{value} is {value.what}, and `{function.signature}` takes {expected}",
        span=value.span,
        reason=f"`{function.signature}` is {function.meaning}.",
        fix="Change the argument, or the shape it is declared with.",
    )


def not_square(value: Quote) -> Diagnostic:
    """A diagonal has one set for rows and columns."""
    return SHAPE.error(
        f"{value} is {value.what}, which is not square",
        span=value.span,
        reason="A diagonal has the entries whose row and column are the same.",
        fix="Declare both axes with one dim or set.",
    )


def axis_without_order(value: Quote, axis: str) -> Diagnostic:
    """Neighbours and running sums need an axis of numbers."""
    return SHAPE.error(
        f"the entries of {value} have no order",
        span=value.span,
        reason=f"`{axis}` has no numbers in steps of 1.",
        fix="Index the vector by a dim, or by a range such as `1 .. 5`.",
    )


# ------------------------------------------------------------------------------------------ scalars
def not_a_scalar(place: str, value: Quote, advice: str = "", *, reason: str = "") -> Diagnostic:
    """A place that takes one number; ``place`` names it."""
    fix = advice or "Reduce it to one number: `sum(...)`, `sumsq(...)`, `norm2(...)`, `dot(..., ...)`."
    return NOT_A_SCALAR.error(
        f"{place} must be a scalar, and this is {value.what}", span=value.span, reason=reason, fix=fix
    )


def parameter_of_atom(parameter: str, signature: str, value: Quote) -> Diagnostic:
    """An atom's parameter is one number."""
    return not_a_scalar(f"`{parameter}` of `{signature}`", value, "Give one number.")


def exponent(value: Quote) -> Diagnostic:
    """All entries have one exponent."""
    return not_a_scalar("an exponent", value, "Use one exponent for all entries.")


def body(reduction: str, value: Quote, reason: str) -> Diagnostic:
    """A reduction that orders or multiplies numbers has one in its body."""
    fix = "Reduce the body to one number: `dot(x, z.r)`, `sum(...)`, or one entry `v[k]`."
    return not_a_scalar(f"the body of `{reduction}`", value, fix, reason=reason)


def compared(value: Quote) -> Diagnostic:
    """A comparison is one truth value."""
    return NOT_A_SCALAR.error(
        f"{value} is {value.what}, and a comparison needs scalars",
        span=value.span,
        reason="A condition is one truth value.",
        fix="Compare one entry, `v[k]`, or a number made of it, such as `norm2(v)`.",
    )


def radius(value: Quote) -> Diagnostic:
    """The radius of a ball is one number."""
    return NOT_A_SCALAR.error(
        f"{value} is {value.what}, and a scalar is needed", span=value.span, fix="Give one number."
    )
