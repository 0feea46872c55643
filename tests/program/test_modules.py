"""Torch modules of every origin in programs: what runs is the module that was bound, and what is
written is it again."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import fccomodel
from fccomodel import FccoError
from fccomodel.program.emit import modules
from fccomodel.program.emit.flatnet import FlatNet, FunctionalNet
from fccomodel.program.emit.layers import LayeredNet, layered

MODEL = """dim d; data D : table(x: real[d], y: {-1, 1}); net s : real[d] -> real; var w = params(s);
minimize risk: E[z ~ D] log1pexp(-z.y * s(w; z.x)) + 0.01 * sumsq(w);"""
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] > 0.2, 1, -1)


class WithArguments(nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.scale, self.first, self.last = scale, nn.Linear(3, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x))) * self.scale


class Plain(WithArguments):
    def __init__(self):
        super().__init__(4)


class ByItself(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.first, self.last = nn.Linear(3, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x))).squeeze(-1)


class NamesAHelper(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 1)

    def forward(self, x):
        return doubled(self.first(x))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 1)

    def forward(self, x):
        value = self.first(x)
        return value if value.detach().sum().item() > -1e9 else doubled(value)


class Reversed(nn.Sequential):
    def forward(self, x):
        return super().forward(-x)


def doubled(x):
    return 2 * x


def in_a_cell():
    scope = {"nn": nn, "torch": torch, "__name__": "__main__"}
    text = "class Cell(nn.Module):\n def __init__(self):\n  super().__init__(); self.a = nn.Linear(3, 1)\n"
    exec(f"{text} def forward(self, x): return torch.tanh(self.a(x))", scope)
    return scope["Cell"]()


def normalised():
    stack = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    stack(3 * torch.randn(50, 3) + 1)
    return stack.eval()


def partly_frozen():
    stack = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    stack[0].weight.requires_grad_(False)
    return stack


def hooked():
    stack = nn.Sequential(nn.Linear(3, 1))
    stack.register_forward_hook(lambda module, x, y: 3 * y)
    return stack


#: A module, and whether text makes it.
MODULES = {
    "relu": (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 1)), True),
    "layer norm": (lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 1)), True),
    "class in a file": (ByItself, True),
    "another width than by default": (lambda: ByItself(6), False),
    "arguments without defaults": (lambda: WithArguments(4), False),
    "another setting": (lambda: WithArguments(4, scale=2.0), False),
    "a subclass of the user's own": (Plain, False),
    "a helper of its file": (NamesAHelper, False),
    "a class in a cell": (in_a_cell, False),
    "statistics": (normalised, False),
    "frozen parameters": (partly_frozen, False),
    "a hook": (hooked, False),
    "a sequence with a forward of its own": (lambda: Reversed(nn.Linear(3, 1)), False),
    "branches": (Branches, False),
}


def problem(module):
    return fccomodel.compile(MODEL).bind(D={"x": X, "y": Y}, nets={"s": module})


@pytest.mark.parametrize("name", MODULES)
def test_what_runs_is_the_module(name):
    """The objective that the program states at its end is that of the module bound, which the report
    evaluates."""
    torch.manual_seed(0)
    make, written = MODULES[name]
    module = make()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    result = problem(module).solve(budget="3it", algorithm="sgd", unverified=True, polish=False)
    assert result.history[-1]["objective"] == pytest.approx(result.objective, rel=1e-5)
    assert (not result.outcome.program.modules) == written
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())


def test_a_text_makes_the_module_again_without_a_trace():
    module = ByItself()
    state = torch.random.get_rng_state()
    assert modules.text("s", module)[1] == "make_s()"
    made = modules.text("s", nn.Sequential(module, nn.Flatten(-2)))
    assert made is not None and made[1] == "make_s()" and "return torch.nn.Sequential(ByItself()," in made[0]
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.slow
def test_a_module_without_a_text_in_files(tmp_path):
    """By torch.export, where that writes it; else the answer is kept without a program, and ``emit``
    alone refuses."""
    result = problem(WithArguments(4, scale=2.0)).solve(budget="30it", unverified=True, polish=False)
    result.save(tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-W", "error", "solver.py"], cwd=tmp_path / "out", capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert f"objective {result.objective:.6g}"[:-1] in done.stdout, done.stderr
    bound = problem(Branches())
    result = bound.solve(budget="3it", unverified=True, polish=False)
    result.save(tmp_path / "branches")
    stored = fccomodel.load(tmp_path / "branches")
    assert not (tmp_path / "branches" / "solver.py").exists() and "no solver.py" in stored.record["notes"][-1]
    with pytest.raises(FccoError, match="F0608"):
        bound.emit(tmp_path / "solver.py", unverified=True)


@pytest.mark.parametrize("wrapper", [FlatNet, FunctionalNet])
def test_buffers_follow_the_parameters_to_their_device(wrapper):
    """Also those of whole numbers, which have no precision to follow."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 1)
            self.register_buffer("order", torch.tensor([2, 0, 1]))

        def forward(self, x):
            return self.first(x.index_select(-1, self.order))

    net = wrapper(Scaled(), 1)
    value = net(
        torch.empty(4, device="meta", dtype=torch.float64),
        torch.empty(5, 3, device="meta", dtype=torch.float64),
    )
    assert value.device.type == "meta" and net.module.order.device.type == "meta" and value.shape == (5, 1)


LAYERS = [kind() for kind in LayeredNet.BACK if kind not in (nn.Flatten, nn.Unflatten)]


@pytest.mark.parametrize(
    "layer", [nn.ELU(0.7), nn.GELU("tanh"), nn.LeakyReLU(0.3), nn.Softplus(2.0, 1.0), *LAYERS], ids=str
)
def test_layers_go_back_as_autograd_does(layer):
    """Values and gradients of two inputs, at parameters of their own; the second derivative by autograd."""
    torch.manual_seed(0)
    inside = nn.Sequential(
        nn.Unflatten(-1, (2, 3)), nn.Flatten(-2), nn.Linear(6, 4), layer, nn.Linear(4, 3, bias=False), layer
    )
    module = nn.Sequential(inside, nn.Linear(3, 1), nn.Flatten(-2)).double()
    assert layered(module, (6,))
    sizes, double = sum(p.numel() for p in module.parameters()), torch.float64
    w, x, z = (torch.randn(shape, dtype=double) for shape in (sizes, (7, 6), (2, 3, 6)))
    found = []
    for net in (FlatNet(module, 1), LayeredNet(module, 1)):
        with torch.no_grad():
            found.append([*net.taped(w, x, z), net.vjp(x[:, 0], z[..., 0])])
        curved = torch.autograd.functional.hvp(lambda v, net=net: net(v, x).square().sum(), w, w)[1]
        found[-1].append(curved)
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)


def test_what_layers_alone_do_not_say_goes_by_autograd():
    """Layers that write over their input, that share weights, that look at a whole row, or whose class
    is the user's own."""

    class Own(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    shared = nn.Linear(3, 3)
    others = [
        nn.ReLU(inplace=True),
        nn.ELU(-1.0),
        nn.LayerNorm(3),
        nn.Sequential(shared, nn.Tanh(), shared),
        Own(3, 3),
    ]
    assert not any(layered(nn.Sequential(nn.Linear(3, 3), other, nn.Linear(3, 1)), (3,)) for other in others)
    assert (
        not layered(nn.Linear(3, 1), (2, 3))
        and not layered(nn.Tanh(), (3,))
        and layered(nn.Linear(3, 1), (3,))
    )
