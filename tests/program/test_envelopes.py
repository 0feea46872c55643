"""The emitted envelope of a function is the library's, to the last digits, and its gradient the slope."""

from __future__ import annotations

import types

import pytest
import torch

from fccomodel.core import ir
from fccomodel.library import proximal
from fccomodel.library.proximal import maps
from fccomodel.library.proximal.largest import Largest
from fccomodel.library.proximal.operations import Scaled
from fccomodel.program.emit.smoothing import Smoothing
from fccomodel.program.operations.base import MoreauEnvelope
from fccomodel.structure import facts_of

#: atoms with the shape of their argument, and whether the slope alone gives the envelope
FUNCTIONS = {
    "pos": ((), True),
    "abs": ((), True),
    "norm1": ((4,), True),
    "norm2": ((4,), True),
    "max": ((4,), True),
    "sumsq": ((4,), False),
}
LAM, RHO = 0.3, 2.5


def function_of(atom: str, shape: tuple[int, ...]) -> proximal.Proximal:
    if atom == "max":
        return Largest.of()
    u = ir.Hole(name="u", shape=shape)
    function = proximal.of(ir.Apply(op=atom, args=(u,)), (u,), facts_of)
    assert not isinstance(function, str), function
    return function


@pytest.mark.parametrize("atom", FUNCTIONS)
@pytest.mark.parametrize("scale", [None, "rho"])
@pytest.mark.parametrize("centred", [True, False])
def test_an_envelope_is_the_librarys(atom, scale, centred):
    shape, from_slope = FUNCTIONS[atom]
    function = function_of(atom, shape)
    record = MoreauEnvelope(
        function=function, name="y1", scale=scale, dims=function.dims if shape else (), centred=centred
    )
    smoothing = Smoothing(lambda envelope: atom)
    name = smoothing.name("value", record)
    if from_slope:
        assert "y = slope_y1(t," in smoothing.texts[name]
    program = {**vars(maps), "torch": torch}
    exec(smoothing.text, program)  # noqa: S102
    draw = torch.Generator().manual_seed(3)
    t = torch.randn(50, *shape, generator=draw, dtype=torch.float64).requires_grad_()
    c = torch.rand(50, *shape, generator=draw, dtype=torch.float64)
    settings = types.SimpleNamespace(lam_y1=LAM, rho=RHO)
    arguments = (t, c, settings) if centred else (t, settings)
    value = program[name](*arguments)
    whole = function if scale is None else Scaled.of(function, RHO)
    expected = whole.envelope(t, LAM, c if centred else None)
    assert torch.allclose(value, expected, rtol=1e-12, atol=1e-12)
    (gradient,) = torch.autograd.grad(value.sum(), t)
    slope = whole.slope(t.detach(), LAM, c if centred else None)
    assert torch.allclose(gradient, slope, rtol=1e-12, atol=1e-12)
