"""Numbers that need no table: constant expressions, parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bind._errors import Errors, refuse
from fccomodel.data.bind._spec import Spec

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


class Values:
    """Parameters by name, given or by default, and the value of expressions in constants, parameters and sizes."""

    def __init__(self, problem: ir.Problem, given: Mapping[str, Any], size: Callable[[ir.Dim], int | None]):
        self.problem, self.given, self.size = problem, given, size
        self.known: dict[str, np.ndarray] = {}
        self.arrays: dict[str, np.ndarray] = {}
        self._pending: list[str] = []

    def scalar(self, expr: ir.Expr) -> float:
        """A number; F0520 where the expression is none."""
        value = np.asarray(self.of(expr), float)
        if value.shape != ():
            refuse(
                "F0520",
                f"{self.problem.text(expr)} has shape {value.shape} where a number is needed",
                fix="use one of its elements",
            )
        return float(value)

    def of(self, expr: ir.Expr) -> Any:
        """The value, an array or a number. F0517 and F0519 where something in it is unknown."""
        memo: dict[int, Any] = {}
        for node in ir.walk(expr):
            memo[id(node)] = self._node(node, memo)
        return memo[id(expr)]

    def _node(self, node: ir.Expr, memo: Mapping[int, Any]) -> Any:
        match node:
            case ir.Const():
                return node.value
            case ir.Size():
                size = self.size(node.dim)
                if size is None:
                    refuse(
                        "F0517", f"the size of {node.dim} is not known here", fix=f"bind data whose columns have size {node.dim}"
                    )
                return float(size)
            case ir.Param():
                return self.arrays[node.name] if node.name in self.arrays else self.param(node.name)
            case ir.LetRef():
                return memo[id(node.let.body)]
            case ir.Item():
                index = tuple(int(memo[id(i)]) for i in node.indices)
                return np.asarray(memo[id(node.base)])[index]
            case ir.Apply() if node.op in OPERATIONS:
                with np.errstate(all="ignore"):
                    return OPERATIONS[node.op](*(np.asarray(memo[id(arg)], float) for arg in node.args))
        return refuse(
            "F0520",
            f"{self.problem.text(node)} is not a number that is known before solving",
            reason="sets, bounds and defaults are computed from constants, parameters and sizes",
            fix="write the number, or declare a param",
        )

    def param(self, name: str) -> np.ndarray:
        """A parameter's value, float64 of its declared shape. F0519, F0520."""
        if name in self.known:
            return self.known[name]
        parameter = self.problem.params[name]
        if name in self._pending:
            refuse("F0520", f"param {name} is defined by itself", fix="give it a number as its default")
        self._pending.append(name)
        try:
            value = self._value(parameter)
        finally:
            self._pending.pop()
        self.known[name] = value
        return value

    def _value(self, parameter: ir.Parameter) -> np.ndarray:
        name = parameter.name
        if name in self.given:
            raw = self.given[name]
        elif parameter.default is not None:
            raw = self.of(parameter.default)
        else:
            refuse(
                "F0519",
                f"param {name} has no value",
                fix=f"give one: --param {name}=0.1, {name} = 0.1 in [params], or `default 0.1`",
            )
        raw = raw.detach().cpu() if hasattr(raw, "detach") else raw
        if isinstance(raw, bool | str) or raw is None:
            refuse("F0520", f"param {name} = {raw!r} is not a number", fix=f"give a number: --param {name}=0.1")
        try:
            value = np.asarray(raw, float)
        except (TypeError, ValueError):
            refuse("F0520", f"param {name} = {str(raw)[:60]} is not a number", fix=f"give a number: --param {name}=0.1")
        shape = tuple(self._size(dim, name) for dim in parameter.shape)
        if value.shape != shape:
            if value.shape != ():
                refuse(
                    "F0520", f"param {name} has shape {value.shape}, declared {shape}", fix="give values of the declared shape"
                )
            value = np.full(shape, float(value))
        self._check(parameter, value)
        return value

    def _size(self, dim: ir.Dim, name: str) -> int:
        size = self.size(dim)
        if size is None:
            refuse("F0517", f"param {name} has size {dim}, which is not known", fix=f"bind data whose columns have size {dim}")
        return size

    def _check(self, parameter: ir.Parameter, value: np.ndarray) -> None:
        """Finite and within the declared bounds."""
        name = parameter.name
        if not np.isfinite(value).all():
            refuse("F0520", f"param {name} is {value[~np.isfinite(value)].flat[0]}", fix="give a finite number")
        low, high = parameter.lower, parameter.upper
        below = value <= low if parameter.strict_lower else value < low
        above = value >= high if parameter.strict_upper else value > high
        if below.any() or above.any():
            bad = float(value[below | above].flat[0])
            rules = []
            if math.isfinite(low):
                rules.append(f"{'>' if parameter.strict_lower else '>='} {low:g}")
            if math.isfinite(high):
                rules.append(f"{'<' if parameter.strict_upper else '<='} {high:g}")
            refuse(
                "F0520",
                f"param {name} = {bad:g} is outside its declared bounds: {', '.join(rules)}",
                reason="the bounds are part of a parameter's type: curvature and signs were derived from them",
                fix="give a value within them, or change the declaration",
            )


def bind_params(
    problem: ir.Problem, values: Values, spec: Spec, keywords: Mapping[str, Any], errors: Errors
) -> dict[str, np.ndarray]:
    """Every declared parameter's value."""
    found: dict[str, np.ndarray] = {}
    for name, parameter in problem.params.items():
        place = "" if name in keywords or name not in spec.params else spec.place("params", name)
        with errors.collect(span=parameter.span, place=place):
            found[name] = values.param(name)
    return found
