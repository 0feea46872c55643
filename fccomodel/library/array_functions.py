"""Functions that make arrays by their entries: ``ones(n)``, ``diag(x)``; the checks write them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ArrayFunction:
    """A function that makes an array.

    signature  a call of it
    meaning    the value, in one line
    example    a model with it
    sizes      whether its arguments are sizes
    least      the least number of arguments
    most       the largest number of arguments
    axes       the numbers of axes that its argument may have, if it is an array
    """

    signature: str
    meaning: str
    example: str
    sizes: bool = False
    least: int = 1
    most: int = 1
    axes: tuple[int, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments."""
        inside = self.signature.partition("(")[2].removesuffix(")")
        return tuple(inside.split(", "))


FUNCTIONS: Mapping[str, ArrayFunction] = {
    "ones": ArrayFunction(
        signature="ones(n, m)",
        meaning="an array of ones with these sizes",
        example="data A : real[3, 4]; var x[3]; minimize sumsq(x - A @ ones(4));",
        sizes=True,
        most=3,
    ),
    "zeros": ArrayFunction(
        signature="zeros(n, m)",
        meaning="an array of zeros with these sizes",
        example="var x[4]; minimize sumsq(x) - x[1]; subject to up: x[2 .. 4] >= zeros(3);",
        sizes=True,
        most=3,
    ),
    "eye": ArrayFunction(
        signature="eye(n)",
        meaning="the identity matrix",
        example="data S : real[4, 4]; var x[4]; minimize sumsq((S + eye(4)) @ x - ones(4));",
        sizes=True,
    ),
    "diag": ArrayFunction(
        signature="diag(x)",
        meaning="the matrix with the vector x on its diagonal, or the diagonal of the matrix x",
        example="data S : real[4, 4]; var x[4]; minimize sumsq(x - diag(S));",
        axes=(1, 2),
    ),
    "trace": ArrayFunction(
        signature="trace(A)",
        meaning="the sum of the diagonal of a matrix",
        example="var X[4, 4]; minimize norm_fro(X) - trace(X);",
        axes=(2,),
    ),
    "lambda_min": ArrayFunction(
        signature="lambda_min(A)",
        meaning="the smallest eigenvalue of a square matrix, -lambda_max(-A)",
        example="data S : real[3, 3]; var x[3]; maximize lambda_min(diag(x) - S) - sumsq(x);",
        axes=(2,),
    ),
    "cumsum": ArrayFunction(
        signature="cumsum(x)",
        meaning="the sums of the entries of a vector up to each one",
        example="data y : real[5]; var x[5]; minimize sumsq(cumsum(x) - y);",
        axes=(1,),
    ),
    "diff": ArrayFunction(
        signature="diff(x)",
        meaning="the differences x[2] - x[1], x[3] - x[2], ... of a vector",
        example="data y : real[5]; var x[5]; minimize sumsq(x - y) + norm1(diff(x));",
        axes=(1,),
    ),
}


def all() -> Mapping[str, ArrayFunction]:
    """Every function that makes an array, by name."""
    return FUNCTIONS
