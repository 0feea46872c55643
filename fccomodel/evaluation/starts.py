"""The start that a model declares, such as the numbers of ``var c[K, d] start normal(0, 1);``."""

from __future__ import annotations

import zlib

import numpy as np

from fccomodel.core import ir
from fccomodel.core.lazy import torch
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import draws, elements
from fccomodel.library import distributions

#: From where variables are drawn whose start the model does not say.
MEAN = ir.Const(value=0.0)
SPREAD = ir.Const(value=1.0)
STANDARD = ir.Distribution(name="normal(0, 1)", family="normal", args=(MEAN, SPREAD))


def is_drawn(variable: ir.Variable) -> bool:
    """Whether the first values of a variable differ between several starts."""
    return variable.net is None and not isinstance(variable.start, ir.Expr)


def drawn(bound: Bound, seed: int | str) -> dict[str, np.ndarray]:
    """A first value of each variable but parameters of nets: as the model says, or standard normal."""
    free = {n: v for n, v in bound.problem.variables.items() if v.start is None and v.net is None}
    normal = {
        name: _drawn(bound, name, STANDARD, elements.shape(bound, variable.shape), seed)
        for name, variable in free.items()
    }
    return {**normal, **declared(bound, seed)}


def declared(bound: Bound, seed: int | str) -> dict[str, np.ndarray]:
    """The first value of each variable that has one in the model; the seed moves those that are drawn."""
    return {
        name: _first(bound, variable, seed)
        for name, variable in bound.problem.variables.items()
        if variable.start is not None
    }


def _first(bound: Bound, variable: ir.Variable, seed: int | str) -> np.ndarray:
    """The first value of a variable."""
    shape, start = elements.shape(bound, variable.shape), variable.start
    if isinstance(start, ir.Distribution):
        return _drawn(bound, variable.name, start, shape, seed)
    assert isinstance(start, ir.Expr)
    return np.broadcast_to(_value(bound, start), shape).copy()


def _drawn(
    bound: Bound, name: str, domain: ir.Distribution, shape: tuple[int, ...], seed: int | str
) -> np.ndarray:
    """A draw for each entry of a variable; variables of different names are independent."""
    known = distributions.all()[domain.family]
    generator = torch.Generator().manual_seed(zlib.crc32(f"start {name} {seed}".encode()))
    noise = distributions.noise(known.standard, shape, generator, "cpu", torch.float64)
    parameters = [torch.as_tensor(_value(bound, arg)) for arg in domain.args]
    value = draws.transformation(known.torch, len(parameters))(noise, *parameters)
    return np.broadcast_to(value.to(torch.float64).numpy(), shape).copy()


def _value(bound: Bound, expr: ir.Expr) -> np.ndarray:
    """The numbers of a formula of constants, params and arrays."""
    from fccomodel.evaluation.interpret.evaluator import Evaluator  # which loads torch

    value: np.ndarray = Evaluator(bound, {}).value(expr, {}).data.numpy()
    return value
