"""Emitted programs whose nets are differentiated by ``backward()``: the same gradients, and hooks run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel import pipeline
from fccomodel.execution.run import loading

torch.set_num_threads(1)

MODEL = """
model ranking;
dim d;
data D : table(x: real[d], y: {0, 1});
net s : real[d] -> real;
var w = params(s);
maximize auc: E[p ~ D, n ~ D | p.y == 1 and n.y == 0] sigmoid(s(w; p.x) - s(w; n.x));
subject to centred: abs(E[z ~ D] s(w; z.x)) <= 0.1;
"""


class Gated(torch.nn.Module):
    """Not a sequence of layers, so that steps differentiate it by autograd."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 5), torch.nn.Linear(6, 5)
        self.out = torch.nn.Linear(5, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.a(x)) * torch.sigmoid(self.b(x)))


def made(net):
    """An emitted program as a module, and what its first steps take."""
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.4).astype(int)
    data = {"x": rng.normal(size=(1500, 6)) + y[:, None], "y": y}
    problem = fc.compile(MODEL).bind(D=data, nets={"s": net})
    program = pipeline.emit(problem.plan(precision="float64", unverified=True, algorithm="sonex"))
    module = loading.loaded(program)
    return module, program


def gradients(module, program, change=None, steps=3):
    """The gradients of some steps by Adam's direction, after the net of the program is changed."""
    solver = module.SOLVER
    with torch.no_grad():
        data = solver.prepare(solver.as_namespace(dict(program.data), "cpu", torch.float64))
        rng = torch.Generator().manual_seed(0)
        w, h = solver.start(rng, "cpu", torch.float64), solver.settings()
        state = SimpleNamespace(w=w, w_prev=w.clone())
        u, c = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64)
        if change is not None:
            module.net_s = change(module)
        found = []
        for batch in zip(*(part.unbind() for part in solver.draw(data, rng, steps)), strict=True):
            g = module.gradient(data, state.w, state.w_prev, u, c, batch, h)
            state.w_prev.copy_(state.w)
            state.w -= 0.1 * g
            found.append(g)
    return found


NETS = {
    "layers": lambda: torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ELU(), torch.nn.Linear(5, 1)),
    "gated": Gated,
}


@pytest.mark.parametrize("kind", NETS)
def test_gradients_by_backward_are_those_of_the_program(kind):
    torch.manual_seed(0)
    net = NETS[kind]()
    plain, hooked = gradients(*made(net)), []

    def change(module):
        """The net of the program by its own class, with a hook on every parameter."""
        net = module.HookedNet(module.net_s)
        for parameter in net.own:
            parameter.register_post_accumulate_grad_hook(lambda p: hooked.append(p.grad.shape))
        return net

    by_backward = gradients(*made(net), change)
    assert max(float((a - b).abs().max()) for a, b in zip(plain, by_backward, strict=True)) <= 1e-10
    assert len(hooked) == 3 * len(list(net.parameters()))


def test_a_program_trains_under_distributed_data_parallel(tmp_path):
    torch.manual_seed(0)
    net = Gated()
    plain = gradients(*made(net))
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    try:
        wrapped = torch.nn.parallel.DistributedDataParallel
        found = gradients(*made(net), lambda m: m.HookedNet(m.net_s, wrapped(m.net_s.module)))
    finally:
        torch.distributed.destroy_process_group()
    assert max(float((a - b).abs().max()) for a, b in zip(plain, found, strict=True)) <= 1e-10


def test_the_program_says_how(tmp_path):
    _, program = made(Gated())
    assert (
        "# net_s = HookedNet(net_s, torch.nn.parallel.DistributedDataParallel(net_s.module))" in program.text
    )
