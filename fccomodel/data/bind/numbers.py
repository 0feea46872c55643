"""Numbers that need no table: constant expressions and params."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import _by_label, errors
from fccomodel.data.bind._spec import Spec
from fccomodel.data.bind.collect import Errors

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "pow": np.power,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "square": np.square,
    "inv": np.reciprocal,
    "max": lambda *args: np.max(np.broadcast_arrays(*args), axis=0),
    "min": lambda *args: np.min(np.broadcast_arrays(*args), axis=0),
}


def as_numbers(raw: Any) -> np.ndarray | None:
    """A number, an array, a tensor or nested lists of numbers as float64; None for anything else.

    Truth values and texts do not count as numbers, although Python can convert them. None also for
    numbers beyond 64 bits.
    """
    try:
        if hasattr(raw, "detach"):
            raw = raw.detach().cpu().double()
        array = np.asarray(raw)
        if array.dtype == object:
            if all(isinstance(x, Real | Decimal) and not isinstance(x, bool) for x in array.flat):
                array = array.astype(float)
        if array.dtype.kind in "iuf":
            return array.astype(float)
        return None
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return None


def whole_number(raw: Any) -> int | None:
    """The value as an int if it is a whole number of any type, else None."""
    number = as_numbers(raw)
    if number is not None and number.ndim == 0 and float(number).is_integer():
        return int(number)
    return None


class NumberValues:
    """The values of params, given or by default, and of expressions in constants, params and sizes.

    raw_params   the given values
    size         the size of a dim; None if it is unknown
    labels       the labels of each set, for params with values by label
    arrays       the bound arrays, once they are known
    """

    def __init__(
        self,
        problem: ir.Problem,
        raw_params: Mapping[str, Any],
        size: Callable[[ir.Dim], int | None],
        labels: Mapping[str, tuple[str, ...]] | None = None,
    ):
        self.problem = problem
        self.raw_params = raw_params
        self.size = size
        self.labels = {} if labels is None else labels
        self.params: dict[str, np.ndarray] = {}
        self.arrays: dict[str, np.ndarray] = {}
        self._pending: list[str] = []

    def scalar(self, expr: ir.Expr) -> float:
        """The value of an expression as a number; F0520 if it is an array."""
        value = np.asarray(self.of(expr), float)
        if value.shape != ():
            refuse(errors.numbers.not_a_scalar(self.problem.text(expr), value.shape))
        return float(value)

    def of(self, expr: ir.Expr) -> Any:
        """The value of an expression, an array or a number. F0517 and F0519 if a part is unknown."""
        memo: dict[int, Any] = {}
        for node in ir.walk(expr):
            memo[id(node)] = self._node(node, memo)
        return memo[id(expr)]

    def _node(self, node: ir.Expr, memo: Mapping[int, Any]) -> Any:
        """The value of one node, from the values of its arguments in ``memo``."""
        match node:
            case ir.Const():
                return node.value
            case ir.Size():
                size = self.size(node.dim)
                if size is None:
                    refuse(errors.demands.size_unknown_here(node.dim))
                return float(size)
            case ir.Param():
                if node.name in self.arrays:
                    return self.arrays[node.name]
                return self.param(node.name)
            case ir.LetRef():
                return memo[id(node.let.body)]
            case ir.Item():
                index = tuple(int(memo[id(i)]) for i in node.indices)
                return np.asarray(memo[id(node.base)])[index]
            case ir.Apply() if node.op in OPERATIONS:
                args = [np.asarray(memo[id(arg)], float) for arg in node.args]
                with np.errstate(all="ignore"):
                    return OPERATIONS[node.op](*args)
        return refuse(errors.numbers.not_known_before_solving(self.problem.text(node)))

    def param(self, name: str) -> np.ndarray:
        """The value of a param, float64 of its declared shape. F0519, F0520."""
        if name in self.params:
            return self.params[name]
        parameter = self.problem.params[name]
        if name in self._pending:
            refuse(errors.numbers.defined_by_itself(name))
        self._pending.append(name)
        try:
            value = self._value(parameter)
        finally:
            self._pending.pop()
        self.params[name] = value
        return value

    def _value(self, parameter: ir.Parameter) -> np.ndarray:
        """The value of a param, checked."""
        name = parameter.name
        if name in self.raw_params:
            raw = self.raw_params[name]
        elif parameter.default is not None:
            raw = self.of(parameter.default)
        else:
            refuse(errors.numbers.no_value(name))
        order = None
        if parameter.shape and isinstance(parameter.shape[0], str):
            order = self.labels.get(parameter.shape[0])
        by_label = _by_label.labelled(raw, order)
        if by_label is not None:
            raw = _by_label.of_param(parameter, by_label, order)
        value = as_numbers(raw)
        if value is None:
            refuse(errors.numbers.not_a_number(name, errors.words.value(raw)))
        shape = tuple(self._size(dim, name) for dim in parameter.shape)
        if value.shape != shape:
            if value.shape != ():
                refuse(errors.numbers.shape(name, value.shape, shape))
            value = np.full(shape, float(value))
        self._check(parameter, value)
        return value

    def _size(self, dim: ir.Dim, name: str) -> int:
        """A size of a param; F0517 if it is unknown."""
        size = self.size(dim)
        if size is None:
            refuse(errors.demands.size_of_param(name, dim))
        return size

    def _check(self, parameter: ir.Parameter, value: np.ndarray) -> None:
        """F0520 for a value that is not finite or outside the declared bounds."""
        name = parameter.name
        if not np.isfinite(value).all():
            refuse(errors.numbers.not_finite(name, value[~np.isfinite(value)].flat[0]))
        low, high = parameter.lower, parameter.upper
        if parameter.strict_lower:
            below = value <= low
        else:
            below = value < low
        if parameter.strict_upper:
            above = value >= high
        else:
            above = value > high
        if below.any() or above.any():
            refuse(errors.numbers.out_of_bounds(parameter, float(value[below | above].flat[0])))


def bind_params(
    problem: ir.Problem, values: NumberValues, spec: Spec, keywords: Mapping[str, Any], collected: Errors
) -> dict[str, np.ndarray]:
    """The value of every declared param."""
    params: dict[str, np.ndarray] = {}
    for name, parameter in problem.params.items():
        place = ""
        if name in spec.params and name not in keywords:
            place = spec.place("params", name)
        with collected.collect(span=parameter.span, place=place):
            params[name] = values.param(name)
    return params
