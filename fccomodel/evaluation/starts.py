"""Where the model says that runs begin: the numbers of ``var c[K, d] start normal(0, 1);``."""

from __future__ import annotations

import zlib

import numpy as np

from fccomodel.core import ir
from fccomodel.core.lazy import torch
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret.evaluator import Evaluator
from fccomodel.evaluation.sets import draws, elements
from fccomodel.library import distributions


def declared(bound: Bound, seed: int) -> dict[str, np.ndarray]:
    """The first value of each variable that has one in the model; the seed moves those that are drawn."""
    return {
        name: _first(bound, variable, seed)
        for name, variable in bound.problem.variables.items()
        if variable.start is not None
    }


def _first(bound: Bound, variable: ir.Variable, seed: int) -> np.ndarray:
    """The first value of a variable."""
    shape, start = elements.shape(bound, variable.shape), variable.start
    if isinstance(start, ir.Distribution):
        return _drawn(bound, variable.name, start, shape, seed)
    assert isinstance(start, ir.Expr)
    return np.broadcast_to(_value(bound, start), shape).copy()


def _drawn(bound: Bound, name: str, domain: ir.Distribution, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A draw for each entry of a variable; variables of different names are independent."""
    known = distributions.all()[domain.family]
    generator = torch.Generator().manual_seed(zlib.crc32(f"start {name} {seed}".encode()))
    noise = distributions.noise(known.standard, shape, generator, "cpu", torch.float64)
    parameters = [torch.as_tensor(_value(bound, arg)) for arg in domain.args]
    value = draws.made(known.torch, len(parameters))(noise, *parameters)
    return np.broadcast_to(value.to(torch.float64).numpy(), shape).copy()


def _value(bound: Bound, expr: ir.Expr) -> np.ndarray:
    """The numbers of a formula of constants, params and arrays."""
    value: np.ndarray = Evaluator(bound, {}).value(expr, {}).data.numpy()
    return value
