"""Several steps in one call are the steps one by one: the function that backends compile or capture,
and what they refuse."""

from __future__ import annotations

import ctypes
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.emitted_models import HEAD as DATA
from support.emitted_models import NET, Case, Made, make, mlp, table

import fccomodel
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution import backends
from fccomodel.execution.backends import compiled, cuda_graph, traced
from fccomodel.execution.backends.c import Loops, part_of
from fccomodel.execution.backends.c.head import HEAD
from fccomodel.execution.backends.c.values import Buffer, View, kind
from fccomodel.execution.backends.steps.leap import Leap
from fccomodel.execution.backends.steps.recorded import recorded
from fccomodel.execution.backends.steps.several import STEPS, Several

PAIRS = "minimize mean[p in P] log(E[n ~ N] exp(sqhinge(1 + SCORE(n) - SCORE(p)))) + 0.01 * sumsq(w);"
BOUNDED = (
    "minimize E[z ~ D] log1pexp(-z.y * SCORE(z)); subject to c[k in G]: E[z ~ D | z.g == k] "
    "log1pexp(-z.y * SCORE(z)) <= 0.5;"
)
HINGE = "minimize cvar(tail = 0.5)[p in P] (E[n ~ N] pos(1 + SCORE(n) - SCORE(p)));"


def model(body: str, net: bool = False) -> Case:
    for row in "znp":
        body = body.replace(f"SCORE({row})", f"s(w; {row}.x)" if net else f"dot(w, {row}.x)")
    nets = {"nets": lambda: {"s": mlp()}} if net else {}
    head = NET.replace("var v", "var w") if net else DATA
    return Case(text=f"model several;{head}{body}", data=lambda: {"D": table()}, **nets)


class Again:
    """In the place of a graph: the same work on the host."""

    def __init__(self, work: Callable[[], None]):
        self.replay = work


def run(made: Made, leap: Any = None, *, together: int = 1) -> Any:
    """Steps over the end of a stage, into one that is no multiple of ``STEPS``."""
    module = made.solver

    def settings() -> Any:
        h = module.Settings()
        h.together = together
        return h

    solver = replace(module.SOLVER, leap=leap, settings=settings)
    with module.no_grad():
        return module.solve(
            solver, dict(made.program.data), iterations=215, seconds=None, dtype=torch.float64
        )


def several(made: Made) -> Several:
    return Several.of(made.solver, made.program, "cpu", torch.float64)


def same(one: Any, other: Any) -> None:
    assert one.iterations == other.iterations == 215
    assert torch.allclose(one.w, other.w, rtol=0, atol=1e-9)
    for held in (one.u, one.c):
        other_held = vars(other.u if held is one.u else other.c)
        assert all(
            torch.allclose(x, other_held[name], atol=1e-9, equal_nan=True) for name, x in vars(held).items()
        )


#: With Adam-type steps a net's last bias, on which pairs do not depend, moves by rounding alone:
#: here it is momentum.
CASES = {
    "together": (BOUNDED, False, "sonex", {}, 2),
    "duals": (HINGE, False, "alexr", {}, 1),
    "decay": (PAIRS, False, "sox", {"schedule": "decay", "eta": 0.01, "budget": "215it"}, 1),
    "net": (PAIRS.partition(" + 0.01")[0] + ";", True, "sonex", {"step": "momentum"}, 1),
    "first": (
        PAIRS.partition(" + 0.01")[0] + ";",
        False,
        "msvr",
        {"schedule": "decay", "eta": 0.01, "budget": "215it"},
        1,
    ),
}
#: with numbers that tell a step's place in a round, and of one that reads numbers from arrays
COUNTED = {
    "rounds": (PAIRS, False, "alexr2", {"inner_steps": 2}, 1),
    "reads": (
        "param a[d] default 0.3; " + BOUNDED.replace(";", " + sumsq(w - a);", 1),
        False,
        "icppac",
        {"inner_steps": 2},
        1,
    ),
}


@pytest.mark.parametrize("name", [*CASES, *COUNTED])
def test_captured_and_traced_steps_are_the_steps_one_by_one(name):
    body, net, algorithm, options, together = {**CASES, **COUNTED}[name]
    made = make("several", model(body, net), algorithm=algorithm, **options)
    captured, (leap, _) = cuda_graph.Captured(steps := several(made), Again), traced.leap(several(made))
    one_by_one = run(made, together=together)
    same(one_by_one, run(made, Leap(steps, captured), together=together))
    same(one_by_one, run(made, leap, together=together))
    assert captured.made and leap.call.steps.keys() >= {(0, together > 1)}  # both have taken some
    assert len(leap.call.steps) == (2 if name in COUNTED or together > 1 else 1)


HELD = torch.arange(3.0)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda x: [x * 2 if float(x.sum()) > 0 else x], "numbers that they read from arrays"),
        (lambda x: [x[x > 0]], "numbers that they read from arrays"),
        (lambda x: [x + torch.rand(3)], "random numbers of their own"),
        (lambda x, held=HELD: [x + held], "hold arrays that are no arguments"),
    ],
)
def test_only_what_arrays_alone_decide_is_recorded(work, words):
    with pytest.raises(backends.Unfit, match=words):
        recorded(work, [torch.arange(3.0)])


def test_a_step_may_take_a_number_twice():
    """What one operation alone asks for stands in its loop, but only once."""
    graph = recorded(lambda x: [(y := x - 1) * y], [x := torch.rand(3, dtype=torch.float64)]).graph()
    loops, (given, *rest) = Loops(), graph.nodes
    loops.values[given] = View(Buffer("a", x.dtype, 3), (3,), (1,))
    for node in rest[:-1]:
        loops.run(node)
    assert loops.view(rest[-1].args[0][0]).shape == (3,)


def test_recorded_work_is_done_again_with_other_arrays():
    """Derivatives and changes in place included; what nothing asks for is not."""

    def work(x, kept):
        y = x.detach().requires_grad_()
        (kept @ y).sin()
        with torch.enable_grad():
            (slope,) = torch.autograd.grad((y.exp() * y).sum(), y)
        kept[1:].add_(slope[:2])
        return [slope, kept[0] + 1.0]

    found = recorded(work, [torch.ones(3), torch.zeros(3)])
    assert "sin" not in " ".join(str(one.function) for one in found.operations)
    x, kept = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([3.0, 0.0, 0.0])
    slope, more = found(x, kept)
    assert torch.allclose(slope, x.exp() * (1 + x)) and more == 4
    assert torch.equal(kept, torch.tensor([3.0, float(slope[0]), float(slope[1])]))


@pytest.fixture
def quickly(monkeypatch, tmp_path):
    """Libraries in a folder of their own, made without much care."""
    if compiled.missing("cpu"):
        pytest.skip(compiled.missing("cpu"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiled, "FLAGS", ("-O1", *compiled.FLAGS[1:]))


#: what is compiled has no number of a run in it: a schedule that moves them; arrays that the first
#: step makes, those of a proximal map
@pytest.mark.parametrize("name", ["together", "first", "reads", "rounds", "net"])
def test_compiled_steps_are_the_steps_one_by_one(name, quickly):
    body, net, algorithm, options, together = {**CASES, **COUNTED}[name]
    made = make("several", model(body, net), algorithm=algorithm, **options)
    leap, said = compiled.leap(several(made))
    assert "made for this run" in said
    same(run(made, together=together), run(made, leap, together=together))


def everything(x, y, b, rows, places):
    """Operations of all kinds that loops have."""
    u = x.clone()
    u.index_put_((places,), b[:, None])
    u.t().mul_(2.0).add_(y, alpha=0.5)
    z = torch.softmax(x, 1) + torch.nn.functional.elu(x) * torch.where(x > 0, x.exp(), x.tanh())
    held = torch.bmm(x.expand(2, 3, 5), torch.stack([y, -y])) + torch.addmm(b[:3], x, y)
    values, order = (x * 7).round_().sort(1, descending=True)
    more = [
        x.amin(0),
        x.mean((0, 1)),
        (x > 0).sum(1),
        x[:, ::2].clamp(-1, None),
        torch.nn.functional.pad(x, (1, 2), value=9),
    ]
    more += [
        x.cumsum(1),
        x.gather(1, order),
        y[rows, places],
        x[None, :, 1:].pow(3.0),
        x.lerp(y.t(), 0.7),
        (x @ y).logsumexp(1),
    ]
    more += [torch.cat([x, y.t()], 1).erf(), y @ b, b @ x, torch.arange(2, 8, 2) * rows, x.sign()]
    apart = x - y.t()
    return [u, z, held, values, order, apart * apart, *more]


def test_loops_do_what_torch_does(quickly, tmp_path):
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((3, 5), (5, 3)))
    given = [
        x,
        y,
        torch.randn(5, dtype=torch.float64)[:3].repeat(1),
        torch.tensor([4, 0, -1]),
        torch.tensor([2, 1, 0]),
    ]
    loops, graph = Loops(), recorded(everything, [x.clone() for x in given], part_of).graph()
    found = [*given, *(torch.empty_like(r.contiguous()) for r in everything(*given))]
    heads = []
    for k, x in enumerate(found):
        heads.append(f"{kind(x.dtype)} *a{k} = a[{k}];")
    holders = [
        View(Buffer(f"a{k}", x.dtype, x.numel()), tuple(x.shape), x.stride()) for k, x in enumerate(found)
    ]
    for node in graph.nodes:
        if node.op == "placeholder":
            loops.values[node] = holders.pop(0)
        elif node.op == "call_function":
            loops.run(node)
        elif node.op == "output":
            for result in node.args[0]:
                loops.copied(holders.pop(0), loops.view(result))
    text = "\n".join([HEAD, "PRODUCT(double)", "void all(void **a, char *room) {", *heads, *loops.lines, "}"])
    compiled.build(text, tmp_path / "all.so")
    room = torch.zeros(loops.room + 64, dtype=torch.uint8)
    ctypes.CDLL(str(tmp_path / "all.so")).all(
        compiled.pointers(found), ctypes.c_void_p(room.data_ptr() + -room.data_ptr() % 64)
    )
    for result, expected in zip(found[len(given) :], everything(*given), strict=True):
        assert torch.allclose(result, expected, rtol=1e-12, atol=1e-12), (result, expected)


@pytest.mark.slow
def test_libraries_are_kept_by_the_text_of_steps_and_by_sizes():
    made = make("several", model(PAIRS), algorithm="sonex")
    keys = [compiled.key(steps := several(made))]
    changes = [("# line 6", "# elsewhere"), ("SEED = 0", "SEED = 1")]
    changes += [("mu=0.01", "mu=0.02"), ("log_corrected(old, g, g_prev", "log_corrected(old, g_prev, g")]
    for old, new in changes:
        assert old in steps.text
        keys.append(compiled.key(replace(steps, text=steps.text.replace(old, new))))
    steps.data.D_x = steps.data.D_x[:, :2]
    keys.append(compiled.key(steps))
    assert keys[0] == keys[1] == keys[2] and len(set(keys)) == 4


def bound() -> Any:
    rows = np.random.default_rng(0).normal(size=(40, 2))
    text = "dim d; data D: table(x: real[d]); var w[d]; minimize E[z ~ D] abs(dot(w, z.x) - 1);"
    return fccomodel.compile(text).bind(D={"x": rows})


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"backend": "numba"}, "F0808", "no backend"),
        ({"backend": "cuda-graph", "device": "cpu", "algorithm": "sonex"}, "F0818", "not on a GPU"),
        ({"backend": "compiled", "algorithm": "ascvrg", "unverified": True}, "F0818", "as one vector"),
    ],
)
def test_a_backend_that_cannot_take_the_steps_says_why(given, code, words):
    if given["backend"] == "compiled" and compiled.missing("cpu"):
        pytest.skip(compiled.missing("cpu"))
    with pytest.raises(FccoError, match=f"(?s){code}.*{words}"):
        bound().solve(budget="40it", **given)


def test_explanations_name_a_backend_that_is_asked_for():
    assert "steps by the compiled backend (keyword argument)" in str(bound().explain(backend="compiled"))
    assert "backend" not in str(bound().explain())


def test_auto_is_eager_but_for_long_runs(monkeypatch):
    """By counted work: what a backend saves of the calls of the iterations asked for, less its start."""
    steps = several(make("several", model(PAIRS), algorithm="sonex"))
    starts = 0.5 * traced.backend.start, compiled.backend.start, 10 * compiled.backend.start
    counts = (int(start / steps.calls()) for start in starts)
    assert [backends.ranked(steps, count)[0] for count in counts] == ["eager", "traced", "compiled"]
    monkeypatch.setattr(compiled, "missing", lambda device: "nothing")
    found = bound().solve(budget="40it")
    assert "backend eager" in " ".join(found.details.split())


def test_auto_chooses_by_the_steps_that_seconds_have_room_for(quickly):
    """By counted work, once the run knows what a step costs and how much of the budget is for steps."""
    made = make("several", model(PAIRS), algorithm="sonex")
    given = {"device": "cpu", "dtype": torch.float64, "iterations": None}
    found = backends.equip("auto", made.solver, made.program, seconds=20.0, **given)
    solver, start = made.solver.SOLVER, compiled.backend.start
    step = 2 * several(made).calls()
    for share, name in ((0.5, "eager"), (4 * start, "compiled"), (None, "compiled")):
        with made.solver.no_grad():  # as inside a run
            after, price, begun = solver.leaping(solver, step, share)
        assert found.name == name and (after.leap is not None) == (name == "compiled")
        assert (price, begun) == ((step, 0.0) if name == "eager" else (pytest.approx(0.55 * step), start))
    assert "steps by counted work" in found.said
    assert backends.equip("auto", made.solver, made.program, seconds=None, **given).name == "eager"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("name", ["together", "duals", "net"])
def test_steps_by_graphs_on_a_gpu(name):
    """Double precision, against the loop on the same device."""
    body, net, algorithm, options, together = CASES[name]
    made = make("several", model(body, net), algorithm=algorithm, **options)
    steps = Several.of(made.solver, made.program, "cuda", torch.float64)
    leap, said = cuda_graph.leap(steps)
    assert str(STEPS) in said
    module, found = made.solver, []
    for taken in (None, leap):
        with module.no_grad():
            solver = replace(module.SOLVER, leap=taken)
            given = {"iterations": 215, "seconds": None, "dtype": torch.float64, "device": "cuda"}
            found.append(module.solve(solver, dict(made.program.data), **given))
    assert torch.allclose(found[0].w, found[1].w, rtol=0, atol=1e-9)


def test_a_program_by_itself_takes_backends_too(tmp_path, monkeypatch, capsys):
    """Those of the package, where it is installed: the same point as eager steps, and the same errors."""
    made = make("several", model(PAIRS), algorithm="sonex")
    (tmp_path / "solver.py").write_text(made.program.text)
    torch.save(dict(made.program.data), tmp_path / "data.pt")

    def solved(backend: str) -> torch.Tensor:
        out = str(tmp_path / f"{backend}.pt")
        given = ["--iterations", "41", "--precision", "float64", "--backend", backend, "--out", out]
        monkeypatch.setattr("sys.argv", [str(tmp_path / "solver.py"), *given])
        runpy.run_path(str(tmp_path / "solver.py"), run_name="__main__")
        return torch.load(out)["w"]

    fake = replace(
        cuda_graph.backend, leap=lambda steps: (Leap(steps, cuda_graph.Captured(steps, Again)), "by a graph")
    )
    known = {**backends.all(), "cuda-graph": replace(fake, missing=lambda _: "")}
    monkeypatch.setattr(backends, "all", lambda: known)
    assert torch.allclose(solved("cuda-graph"), solved("eager"), rtol=0, atol=1e-9)
    assert "by a graph" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="(?s)F0808.*no backend"):
        solved("numba")
    monkeypatch.setitem(sys.modules, "fccomodel.execution.backends", None)
    with pytest.raises(SystemExit, match="F0818.*not installed"):
        solved("compiled")
