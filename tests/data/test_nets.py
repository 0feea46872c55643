"""Nets: built by name, loaded, checked, and walked for what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fccomodel
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data import nets
from fccomodel.data.nets import _layers

torch.set_num_threads(1)
NET = ir.Net(name="s", inputs=(ir.NetInput(shape=("d",)),), output=())
DIMS = {"d": 4, "k": 3}


def build(given: Any, net: ir.Net = NET, **keywords: Any) -> nn.Module:
    return nets.build(net, given, DIMS, **keywords)[0]


def layers(module: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in module]  # type: ignore[attr-defined]


def test_built_in_nets():
    assert layers(build("mlp(64, 32, activation = elu)")) == [
        "Linear",
        "ELU",
        "Linear",
        "ELU",
        "Linear",
        "Flatten",
    ]
    assert layers(build("mlp(8,activation=relu)")) == ["Linear", "ReLU", "Linear", "Flatten"]
    assert layers(build("mlp(8)"))[1] == "ELU"
    assert layers(build("linear()")) == layers(build("linear")) == ["Linear", "Flatten"]
    assert build("linear(bias = false)")[0].bias is None
    assert nets.size(build("mlp(5)")) == 4 * 5 + 5 + 5 + 1


@pytest.mark.parametrize("output", [(), (3,), ("k",), (2, 3)])
@pytest.mark.parametrize("input", [(4,), ("d",), (2, 4), ()])
def test_shapes_of_built_in_nets(input, output):
    module = build("mlp(7)", ir.Net(name="s", inputs=(ir.NetInput(shape=input),), output=output))
    sizes = lambda shape: tuple(DIMS.get(dim, dim) for dim in shape)  # noqa: E731
    for rows in (1, 6):
        assert module(torch.zeros(rows, *sizes(input))).shape == (rows, *sizes(output))


def test_modules_of_torchs_own_layers_are_written_and_read():
    parts = nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Dropout(0.2), nn.Flatten(), nn.Linear(32, 1)
    module = nn.Sequential(*parts, nn.Flatten(0))
    again = build(nets.written(module), ir.Net(name="s", inputs=(ir.NetInput(shape=(1, 4, 4)),), output=()))
    assert repr(nets.own(again)) == repr(module)
    frozen = nn.Linear(4, 1)
    frozen.weight.requires_grad_(False)
    for other in (frozen, type("Mine", (nn.Linear,), {})(4, 1), nn.MultiheadAttention(4, 2)):
        assert nets.written(other) is None


def test_first_weights_come_from_the_seed():
    before = torch.random.get_rng_state()
    first, again, other = (build("mlp(8)", seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first[0].weight, again[0].weight) and not torch.equal(first[0].weight, other[0].weight)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ("mlp(64", "F0522", "is not a net"),
        ("mlp(0)", "F0522", "width"),
        ("mlp(2.5)", "F0522", "width"),
        ("mlp(True)", "F0522", "width"),
        ("mlp(8, activation = eluu)", "F0522", "Did you mean `elu`?"),
        ("mlp(8, activatoin = elu)", "F0522", "Did you mean `activation`?"),
        ("mlp(8, bias = 3)", "F0522", "neither true nor false"),
        ("linear(3)", "F0522", "no hidden layers"),
        ("resnet(3)", "F0522", "no built-in net named resnet"),
        ("os.system('x')", "F0522", "is not a net"),
        ("(" * 3000, "F0522", "is not a net"),
        ("mlp(1000000, 1000000)", "F0522", "parameters"),
        ("torch.nn.Linear(open('x'), 1)", "F0522", "no layer of torch.nn"),
        ("torch.nn.Linear(4, 1", "F0522", "makes no module"),
        ("torch.nn.Linear(4, 2)", "F0526", "gives (2,) per row, declared real"),
        (3, "F0522", "is not a net"),
        (None, "F0523", "no net is bound to s"),
        ("nets.py:Mlp", "F0524", "--allow-python"),
        (nn.Linear(3, 1), "F0526", "cannot be applied to rows of real[4]"),
        (nn.Linear(4, 2), "F0526", "gives (2,) per row, declared real"),
        (nn.Flatten(), "F0526", "no free parameters"),
        (nn.LSTM(4, 1), "F0526", "gives a tuple"),
        (lambda: 3, "F0526", "gives a int"),
        (lambda: 1 / 0, "F0526", "ZeroDivisionError"),
        (lambda a, b: None, "F0526", "needs a, b"),
        (
            nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 1)).eval(),
            "F0525",
            "BatchNorm1d",
        ),
    ],
)
def test_what_is_refused(given, code, words):
    with pytest.raises(FccoError) as caught:
        build(given)
    assert [d.code for d in caught.value.diagnostics] == [code], str(caught.value)
    assert words in " ".join(str(caught.value).split())


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5), nn.Linear(2, 1)), "Dropout (layer 1) in train mode"),
        (nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1)), "BatchNorm1d (layer 0) in train mode"),
        (nn.Sequential(nn.Linear(4, 1), nn.RReLU()), "RReLU"),
    ],
)
def test_a_net_in_train_mode_is_bound_in_evaluation_mode(module, words):
    text = (
        "model m; dim d; data D : table(x: real[d]); net s : real[d] -> real; var w = params(s);"
        "minimize E[z ~ D] square(s(w; z.x) - 1);"
    )
    x = np.random.default_rng(0).normal(size=(40, 4))
    problem = fccomodel.compile(text).bind(D={"x": x}, nets={"s": module})
    layers = nn.Dropout | nn.BatchNorm1d | nn.RReLU
    random = [part for part in problem.bound.nets["s"].modules() if isinstance(part, layers)]
    assert random
    assert not any(part.training for part in random)
    assert module.training
    with pytest.raises(FccoError, match="F0525") as caught:
        problem.emit(unverified=True)
    assert words in " ".join(str(caught.value).split())
    assert problem.criterion(batch=8) is not None


def test_layers_with_statistics_are_taken_in_eval_mode():
    module = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2), nn.Dropout(0.5), nn.Linear(2, 1)).eval()
    assert build(module)[0] is module  # a real output of size 1 is taken as a number


class Centred(nn.Module):
    """Looks at the other rows of its batch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x - x.mean(0)).squeeze(-1)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return F.dropout(self.layer(x), training=True).squeeze(-1) + torch.randn(())


@pytest.mark.parametrize("module", [Centred(), Noisy()])
def test_a_net_is_a_function_of_one_row(module):
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 4)))
    with pytest.raises(FccoError, match="F0525"):
        build(module, rows=[rows])


def test_values_that_are_not_finite():
    module = nn.Linear(4, 1)
    nn.init.constant_(module.weight, float("nan"))
    with pytest.raises(FccoError, match="not finite"):
        build(module)


def test_frozen_parameters_stay_as_they_are():
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1), nn.Flatten(-2))
    module[0].weight.requires_grad_(False)
    made, notes = nets.build(NET, module, DIMS)
    assert nets.size(made) == 3 + 4 and isinstance(module[0].weight, nn.Parameter)
    assert torch.equal(made(torch.ones(2, 4)), module(torch.ones(2, 4)))
    assert any("1 frozen parameters" in note for note in notes)


FILE = """
import torch
from torch import nn

class Mlp(nn.Module):
    def __init__(self, d, width=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, width), nn.SiLU(), nn.Linear(width, 1))
    def forward(self, x):
        return self.body(x).squeeze(-1)

class Anonymous(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = nn.Linear(features, 1)
    def forward(self, x):
        return self.layer(x).squeeze(-1)

def make(input, output):
    return nn.Linear(input, 1)

ready = nn.Linear(4, 1)
"""


@pytest.mark.parametrize("name", ["Mlp", "Anonymous", "make", "ready"])
def test_nets_of_a_file(name, tmp_path):
    (tmp_path / "zoo.py").write_text(FILE)
    module = build(f"zoo.py:{name}", allow_python=True, folders=(tmp_path,))
    assert module(torch.zeros(2, 4)).shape == (2,)


def test_files_that_cannot_be_used(tmp_path):
    (tmp_path / "zoo.py").write_text(FILE)
    (tmp_path / "broken.py").write_text("def (:")
    for given, code, words in [
        ("zoo.py:Mpl", "F0526", "Did you mean `Mlp`?"),
        ("zoo.py:", "F0526", "it has Mlp, Anonymous, make"),
        ("broken.py:Mlp", "F0526", "SyntaxError"),
        ("nothing.py:Mlp", "F0505", "there is no file nothing.py"),
    ]:
        with pytest.raises(FccoError) as caught:
            build(given, allow_python=True, folders=(tmp_path,))
        assert [d.code for d in caught.value.diagnostics] == [code] and words in " ".join(
            str(caught.value).split()
        )


# ----------------------------------------------------------------------------------------- the walk
class Written(nn.Module):
    """A forward in torch's own functions."""

    def __init__(self, function):
        super().__init__()
        self.first, self.second, self.function = nn.Linear(4, 3), nn.Linear(3, 1), function
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.function(self, x)


def sequence(*parts: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), *parts)


SMOOTH = [
    sequence(nn.ELU(), nn.Linear(3, 1)),
    sequence(nn.SiLU(), nn.LayerNorm(3), nn.GELU(), nn.Linear(3, 1)),
    sequence(nn.Softplus(), nn.Dropout(0.0), nn.Linear(3, 1), nn.Sigmoid(), nn.Flatten(-2)),
    nn.Sequential(
        nn.Unflatten(-1, (1, 4)),
        nn.Conv1d(1, 2, 3),
        nn.Tanh(),
        nn.AvgPool1d(2),
        nn.Flatten(),
        nn.Linear(2, 1),
    ),
    Written(lambda self, x: self.second(torch.tanh(self.first(x))).squeeze(-1) * self.scale + 1),
    Written(lambda self, x: self.second(F.elu(self.first(x.view(x.size(0), -1)))) / 2 - x.mean()),
    Written(lambda self, x: (self.second(F.silu(self.first(x))) ** 2).sum(-1)),
]
AFFINE = [
    nn.Linear(4, 1),
    nn.Sequential(nn.ReLU(), nn.Linear(4, 1)),
    Written(lambda self, x: self.first(torch.abs(x)).sum(-1) + self.scale),
]
WEAK = [
    sequence(nn.ReLU()),
    sequence(nn.Tanh(), nn.Linear(3, 3), nn.LeakyReLU(0.1), nn.ReLU()),
    sequence(nn.ELU(alpha=0.5)),
    Written(lambda self, x: F.relu(self.first(x)).sum(-1) * 2 + self.scale),
    Written(lambda self, x: torch.abs(self.first(x)).mean(-1)),
]
UNKNOWN = [
    sequence(nn.ReLU(), nn.Linear(3, 1)),
    sequence(nn.SELU()),
    sequence(nn.ELU(alpha=2.0)),
    sequence(nn.Hardtanh()),
    sequence(nn.PReLU()),
    Written(lambda self, x: -F.relu(self.first(x)).sum(-1)),
    Written(lambda self, x: self.scale - F.relu(self.first(x)).sum(-1)),
    Written(lambda self, x: self.second(F.relu(self.first(x)))),
    Written(lambda self, x: F.relu(self.first(x)).sum(-1) * self.scale),
    Written(lambda self, x: F.relu(self.first(x)).sum(-1) * -2),
    Written(lambda self, x: 1 / self.first(x).sum(-1)),
    Written(lambda self, x: torch.sort(self.first(x))[0].sum(-1)),
    Written(lambda self, x: self.first(x).sum(-1) if x.sum() > 0 else self.scale),
]


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (module, kind)
        for group, kind in (
            (SMOOTH, "smooth"),
            (AFFINE, "affine"),
            (WEAK, "weakly convex"),
            (UNKNOWN, "unknown"),
        )
        for module in group
    ],
)
def test_walk(module, kind):
    facts = nets.walk(module)
    assert ("affine" if facts.affine else facts.kind) == kind, facts
    assert facts.reasons and facts.smooth == (kind in ("smooth", "affine"))


@pytest.mark.parametrize("module", WEAK)
def test_weakly_convex_nets_have_no_downward_kink(module):
    """g(w) + rho/2 |w|^2 is convex on segments: midpoints lie below chords, for kinks too."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 4, generator=generator)
    start = torch.nn.utils.parameters_to_vector(module.parameters()).detach()

    def value(w: torch.Tensor) -> torch.Tensor:
        torch.nn.utils.vector_to_parameters(w, module.parameters())
        return module(x).reshape(5, -1).sum() + 10 * (w @ w)

    with torch.no_grad():
        for _ in range(200):
            a, b = (torch.randn(len(start), generator=generator) * 0.5 for _ in range(2))
            assert value((a + b) / 2) <= (value(a) + value(b)) / 2 + 1e-4
        value(start)


def test_reasons_name_the_layers():
    relu = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    (reason,) = nets.walk(relu).reasons
    assert "ReLU (layers 1, 3)" in reason and "Linear (layer 2)" in reason
    assert "Hardtanh (layer 1)" in nets.walk(sequence(nn.Hardtanh())).reasons[0]
    assert "cannot be followed" in nets.walk(UNKNOWN[-1]).reasons[0]


@pytest.mark.parametrize(
    "layer",
    [torch.nn.AvgPool1d(3, 1, 1, count_include_pad=False), torch.nn.Linear(3, 1).double()],
    ids=["a setting that its text leaves out", "a type of numbers"],
)
def test_a_layer_that_its_text_does_not_make_again_has_none(layer: torch.nn.Module) -> None:
    assert nets.written(torch.nn.Sequential(layer)) is None


def test_a_text_of_impossible_sizes_is_refused() -> None:
    with pytest.raises(ValueError, match="GroupNorm"):
        _layers.read("torch.nn.GroupNorm(0, 3)")
