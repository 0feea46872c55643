"""Every emitted gradient is that of the minibatch value, to the last digits: torch's autograd goes
through the same graph."""

from __future__ import annotations

import math
import types
from typing import Any

import pytest
import torch
from support.emitted_models import CASES, HEAD, Made, compiled, finish, made, make, settings, table
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fccomodel import pipeline
from fccomodel.algorithms.runtime.helpers import support
from fccomodel.core.diagnostics import FccoError
from fccomodel.library import reductions
from fccomodel.library.proximal import maps
from fccomodel.program.emit.flatnet import batched
from fccomodel.program.emit.printer import FunctionPrinter
from fccomodel.program.emit.sampling import StepDraws
from fccomodel.program.emit.smoothing import smoothing_of
from fccomodel.program.operations.base import Val, sizes


class StandIn:
    """A net that autograd can go through, in the parameters' flat vector."""

    def __init__(self, flat: Any):
        self.flat = flat

    def taped(self, w: torch.Tensor, rows: Any) -> torch.Tensor:
        module = self.flat.module.double()
        parts = zip(module.named_parameters(), w.split(self.flat.sizes), strict=True)
        named = {name: part.view(p.shape) for (name, p), part in parts}
        ranks = getattr(self.flat, "ranks", None) or (self.flat.rank,)
        (along,), inputs = batched([rows], ranks, getattr(self.flat, "whole", ()))
        out = torch.func.functional_call(module, named, tuple(inputs))
        return out.view(along + out.shape[1:])

    __call__ = taped


def plugged_in(printer: FunctionPrinter) -> FunctionPrinter:
    """Estimates replaced by the minibatch values themselves."""

    def value(val: Val) -> str:
        return f"{printer.ref(val.args[0], val.axes, len(val.event))}.expand({sizes(val.axes, val.event)})"

    printer.estimator = value
    return printer


def value_of(case: Made, data: Any) -> Any:
    """The minibatch value as a function of w and of positions, differentiable by torch."""
    steps = case.lowered.steps
    samples = StepDraws(steps.state.draws)
    smoothing = smoothing_of(case.lowered)
    printer = plugged_in(FunctionPrinter(layout=case.program.layout, smoother=smoothing.call))
    samples.introduce(printer)
    printer.print([steps.root])
    result = printer.ref(steps.root)
    lines = "\n".join(f"    {line}" for line in [*samples.unpacked, *printer.body, f"return {result}"])
    text = "def prepare(data):\n" + "".join(
        f"    {line}\n" for line in [*printer.prepared.lines, "return data"]
    )
    text += f"{smoothing.text}\n\n\ndef value(data, w, c, batch, h):\n{lines}\n"
    scope: dict[str, Any] = {
        "torch": torch,
        "math": math,
        **vars(maps),
        **vars(support),
        **reductions.programs(),
    }
    scope |= {
        name: StandIn(net) if hasattr(net, "taped") else net
        for name, net in vars(case.solver).items()
        if name.startswith("net_")
    }
    exec(text, scope)  # noqa: S102
    scope["prepare"](data)
    return scope["value"]


def check(case: Made, seed: int = 0, tolerance: float = 1e-9) -> None:
    """One sampled batch at a random point, with random centres of smoothing."""
    solver, rng = case.solver, torch.Generator().manual_seed(seed)
    tensors = dict(case.program.data)
    data = solver.prepare(solver.as_namespace(tensors, "cpu", torch.float64))
    w, w_prev = case.point(seed), case.point(seed + 100)
    u, c = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64)
    for name, centre in vars(c).items():
        setattr(c, name, torch.rand(centre.shape, generator=rng, dtype=torch.float64))
    again = rng.clone_state()
    batch = [part[0] for part in solver.draw(data, rng, 1)]
    h = settings(solver, gamma=1.0, gamma_prime=0.0)
    found = solver.gradient(data, w, w_prev, u, c, batch, h)
    assert found.shape == w.shape
    fresh = solver.as_namespace(tensors, "cpu", torch.float64)
    value = value_of(case, fresh)
    leaf = w.clone().requires_grad_()
    result = value(fresh, leaf, c, [part[0] for part in case.positions(fresh, again, 1).values()], h)
    (expected,) = torch.autograd.grad(result, leaf, allow_unused=True)
    expected = torch.zeros_like(w) if expected is None else expected
    size = max(float(expected.abs().max()), 1e-6)
    assert float((found - expected).abs().max()) <= tolerance * size, (found, expected)
    for name, buffer in vars(u).items():
        assert not bool(buffer.isinf().any()), name


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    for seed in (0, 1):
        check(made(name), seed)


@pytest.mark.parametrize(
    "name", ["composition", "risk_set", "let_family", "constraint_family", "d1_is_2", "vector_tracked_rows"]
)
def test_gradient_of_other_algorithms(name: str) -> None:
    """The same gradients under SOX (where it applies), and with momentum steps."""
    smooth = not CASES[name].text.count("subject to")
    check(make(name, algorithm="sox" if smooth else "sonex", step="momentum"))


class NoWaiting(TorchDispatchMode):
    """Refuses what makes the host wait for the device: numbers read back, shapes that depend on data,
    copies to and fro."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        assert name not in (
            "aten::_local_scalar_dense",
            "aten::nonzero",
            "aten::masked_select",
            "aten::lift_fresh",
        ), name
        if name in ("aten::index", "aten::index_put_", "aten::_index_put_impl_"):
            assert all(k is None or k.dtype != torch.bool for k in args[1]), "an index by a mask"
        return func(*args, **(kwargs or {}))


FACTORIES = [
    torch.tensor,
    torch.zeros,
    torch.ones,
    torch.full,
    torch.empty,
    torch.arange,
    torch.linspace,
    torch.eye,
]
FACTORIES += [torch.rand, torch.randn, torch.randint, torch.randperm]


class OnItsDevice(TorchFunctionMode):
    """Refuses tensors that are made on no device in particular, which would be the host."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func not in FACTORIES or "device" in (kwargs or {}), f"{func.__name__} without a device"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", CASES)
def test_a_step_never_waits_for_the_device(name: str) -> None:
    """Nor does anything make a tensor elsewhere."""
    case = made(name)
    solver, rng = case.solver, torch.Generator().manual_seed(0)
    with OnItsDevice():
        data = solver.prepare(solver.as_namespace(dict(case.program.data), "cpu", torch.float32))
        full = solver.prepare_full(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    w = case.point().float()
    state = types.SimpleNamespace(w=w, w_prev=w.clone())
    u, c = solver.buffers("cpu", torch.float32), solver.centres("cpu", torch.float32)
    h = solver.Settings()
    with torch.no_grad(), OnItsDevice():
        batch = [part[0] for part in solver.draw(data, rng, 1)]
        solver.SOLVER.begin(state, h)
        solver.advance(solver.SOLVER, data, state, u, c, batch, h)
        with NoWaiting():
            solver.advance(solver.SOLVER, data, state, u, c, batch, h)
        solver.evaluate(full, state.w.double())
        solver.blocks(full, state.w.double())
        if solver.SOLVER.whole is not None and not solver.SOLVER.inside:
            solver.whole(full, state.w.double(), solver.centres("cpu", torch.float64), h)
    assert state.w.dtype == torch.float32 and bool(state.w.isfinite().all())


REFUSED = {
    "sampler_of_an_index": "minimize mean[k in K] (E[e ~ wind(k)] (e * w[1])^2);",
    "filtered_draw": "minimize E[e ~ normal(0, 1) | e > 0] (e * w[1])^2;",
    "product_of_rows": "minimize prod[z in D] (1 + dot(w, z.x)^2);",
    "minimum_of_rows": "minimize min[z in D] dot(w, z.x)^2;",
    "inner_problem": "minimize max[q in ball(1)] (sum[k in K] q[k]^2 * w[1]);",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_in_a_solver_is_refused(name: str) -> None:
    """With a code, a place and a way out; never by an assertion."""
    data = {"D": table(6000 if name.endswith("rows") else 60)}
    samplers = {"wind": lambda rng, n, a: rng.normal(size=n)} if name.startswith("sampler") else {}
    with pytest.raises(FccoError) as found:
        model = compiled(f"model m;{HEAD}{REFUSED[name]}")
        bound = pipeline.bind(model, pipeline.Binding(data=data, samplers=samplers))
        finish(name, model.problem, bound, {})
    assert all(d.code[:3] in ("F04", "F06") and d.fix for d in found.value.diagnostics)


def test_plug_in_values_are_told() -> None:
    assert any("plug-in" in line for line in made("outer_draw").plan.summary)
    assert not any("plug-in" in line for line in made("risk_set").plan.summary)
