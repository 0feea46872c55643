"""Every operation of the target program: it says what it is, and its derivative is that of its text,
to the last digits."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from support.emitted_models import mlp

from fccomodel.algorithms.estimators.coupled_weights import couple as move_weights
from fccomodel.algorithms.runtime.helpers import support
from fccomodel.core import ir
from fccomodel.library import proximal, reductions
from fccomodel.library.proximal import maps
from fccomodel.program import operations
from fccomodel.program.backward import backward
from fccomodel.program.emit.flatnet import FlatNet
from fccomodel.program.emit.nets import Calls
from fccomodel.program.emit.printer import FunctionPrinter
from fccomodel.program.emit.smoothing import Smoothing
from fccomodel.program.graph import Graph
from fccomodel.program.operations.base import Axis, Op, Val, bare, sizes
from fccomodel.program.operations.entrywise import fill, masked, number, spread, stack
from fccomodel.program.operations.estimates import couple, envelope, track, weights
from fccomodel.program.operations.given import given_scores
from fccomodel.program.operations.indexing import entry, pick, take_val, within
from fccomodel.program.operations.moving_nets import moving_net
from fccomodel.program.operations.reductions import reduce
from fccomodel.program.operations.scores import net, score, table_score
from fccomodel.program.operations.segments import log_segment, segment
from fccomodel.program.operations.sources import arange, array_data, const, param, take, variable
from fccomodel.program.operations.sums import log_mean_axes, mean_axes, shares, sum_axes, sum_event
from fccomodel.program.verify import verify
from fccomodel.structure import facts_of

OPERATIONS = operations.all()


@dataclass
class Bench:
    """A graph with a vector w of four numbers and a matrix V, and a table of six rows that belong to
    three cells."""

    graph: Graph = field(default_factory=Graph)
    data: dict[str, torch.Tensor] = field(default_factory=dict)
    smoothing: Smoothing = field(default_factory=lambda: Smoothing(lambda envelope: "an example"))
    layout: dict[str, tuple[int, int, tuple[int, ...]]] = field(
        default_factory=lambda: {"w": (0, 4, (4,)), "V": (4, 16, (3, 4))}
    )

    def __post_init__(self) -> None:
        random = torch.Generator().manual_seed(1)
        self.data["D_x"] = torch.randn(6, 4, generator=random, dtype=torch.float64)
        self.data["c"] = torch.randn(6, 3, generator=random, dtype=torch.float64)
        self.data["cells"] = torch.tensor([0, 2, 1, 2, 0, 2])
        self.data["lengths"] = torch.tensor([2, 1, 3])
        self.rows = self.graph.axis("i", 6, "all")
        self.i = self.graph.make(arange, axis=self.rows)
        self.w = self.graph.make(variable, name="w", event=(4,))
        self.V = self.graph.make(variable, name="V", event=(3, 4))

    @property
    def scores(self) -> Val:
        """x_i.w along the rows."""
        return self.graph.make(score, [self.x, self.w])

    @property
    def x(self) -> Val:
        return self.graph.make(take, [self.i], key="D_x", event=(4,))

    @property
    def c(self) -> Val:
        """Numbers c_ij along rows and another axis."""
        self.columns: Axis = self.graph.axis("j", 3, "all")
        j = self.graph.make(arange, axis=self.columns)
        row = self.graph.make(take, [self.i], key="c", event=(3,))
        return self.graph.make(entry, [row, j], fixed=(None,))

    @property
    def table(self) -> Val:
        """x_i.w + c_ij x_i.w^2."""
        g, s = self.graph, self.scores
        return g.apply("add", s, g.apply("mul", self.c, g.apply("square", s)))

    def at(self, *numbers: int) -> Val:
        """Positions along an axis of their own."""
        key = f"at{len(self.data)}"
        self.data[key] = torch.tensor(numbers)
        return self.graph.make(
            take, [self.graph.make(arange, axis=self.graph.axis("k", len(numbers), "all"))], key=key, event=()
        )

    def segments(self, op: Op, how: str, rows: Val) -> Val:
        cells = self.graph.axis("cell", 3, "all")
        return self.graph.make(
            op, [rows], axis=self.rows, how=how, cells="cells", sizes="lengths", parents=(cells,)
        )

    def function(self, op: str, *shape: int) -> proximal.Proximal:
        """A function of one number, or of an array, with its prox."""
        u = ir.Hole(name="u", shape=shape)
        found = proximal.of(ir.Apply(op=op, args=(u,)), (u,), facts_of)
        assert not isinstance(found, str), found
        return found


Example = Callable[[Bench], Val]
EXAMPLES: dict[str, list[Example]] = {}


def example(op: Op) -> Callable[[Example], Example]:
    """A value of this operation that depends on variables."""

    def add(make: Example) -> Example:
        EXAMPLES.setdefault(op.name, []).append(make)
        return make

    return add


def simple(op: Op, make: Example) -> None:
    EXAMPLES.setdefault(op.name, []).append(make)


simple(variable, lambda b: b.w)
simple(variable, lambda b: b.graph.apply("exp", b.V))
for name in ("exp", "huber", "abs", "sigmoid"):
    extra = [0.3] if name == "huber" else []
    simple(OPERATIONS["ew"], lambda b, n=name, e=extra: b.graph.apply(n, b.table, *map(b.graph.const, e)))  # type: ignore[misc]
simple(OPERATIONS["ew"], lambda b: b.graph.apply("max", b.table, b.graph.apply("neg", b.scores)))
simple(OPERATIONS["ew"], lambda b: b.graph.apply("mul", b.w, b.graph.make(entry, [b.w], fixed=(0,))))
simple(OPERATIONS["ew"], lambda b: b.graph.apply("add", b.graph.make(sum_event, [b.w]), b.x))
for name in ("sumsq", "norm2", "softmax", "sum", "mean", "transpose"):
    simple(OPERATIONS["array"], lambda b, n=name: b.graph.array(n, [b.V if n == "transpose" else b.w]))  # type: ignore[misc]
simple(OPERATIONS["array"], lambda b: b.graph.array("matmul", [b.V, b.x]))
simple(OPERATIONS["array"], lambda b: b.graph.array("outer", [b.x, b.w]))
simple(OPERATIONS["array"], lambda b: b.graph.array("concat", [b.w, b.scores]))
simple(fill, lambda b: b.graph.make(fill, [b.scores], event=(3,)))
simple(spread, lambda b: b.graph.make(spread, [b.graph.make(sum_event, [b.w])], axes=(b.rows,)))
simple(
    masked,
    lambda b: b.graph.make(
        masked, [b.scores, b.graph.make(number, [b.graph.apply("gt", b.i, b.graph.const(-1))])]
    ),
)
simple(
    stack, lambda b: b.graph.make(stack, [b.scores, b.graph.apply("square", b.scores), b.graph.const(2.0)])
)
for op in (mean_axes, sum_axes, log_mean_axes):
    simple(op, lambda b, op=op: b.graph.make(op, [b.table], over=(b.rows,)))  # type: ignore[misc]
    simple(op, lambda b, op=op: b.graph.make(op, [b.scores], over=(b.rows,)))  # type: ignore[misc]
simple(sum_event, lambda b: b.graph.make(sum_event, [b.V]))


@example(log_mean_axes)
def _(b: Bench) -> Val:
    x, over = b.table, (b.rows,)
    return b.graph.make(log_mean_axes, [x, b.graph.make(shares, [x], over=over)], over=over)


@example(within)
def part_of_an_axis(b: Bench) -> Val:
    part = b.graph.axis("part", 2, "sample")
    return b.graph.make(within, [b.scores], whole=b.rows, axis=part, start=3, places="")


@example(within)
def places_along_an_axis(b: Bench) -> Val:
    part = b.graph.axis("part", 3, "sample")
    squares = b.graph.apply("square", b.scores)
    return b.graph.make(
        within, [squares], whole=b.rows, axis=part, start=1, places=b.at(1, 3, 4).attrs["key"]
    )


simple(sum_event, lambda b: b.graph.make(sum_event, [b.graph.apply("mul", b.x, b.w)]))
for op in (segment, log_segment):
    for how in ("mean", "sum"):
        simple(op, lambda b, op=op, how=how: b.segments(op, how, b.scores))  # type: ignore[misc]
        simple(op, lambda b, op=op, how=how: b.segments(op, how, b.table))  # type: ignore[misc]
        simple(op, lambda b, op=op, how=how: b.segments(op, how, b.graph.make(sum_event, [b.w])))  # type: ignore[misc]
simple(segment, lambda b: b.segments(segment, "mean", b.graph.apply("mul", b.x, b.w)))
for kind, options in {"max": [], "min": [], "prod": [], "cvar": [0.4], "topk": [2.0]}.items():
    simple(reduce, lambda b, k=kind, o=options: b.graph.make(  # type: ignore[misc]
        reduce, [b.table, *map(b.graph.const, o)], kind=k, over=(b.rows,), masked=False))  # fmt: skip
    simple(reduce, lambda b, k=kind, o=options: b.graph.make(  # type: ignore[misc]
        reduce, [b.scores, *map(b.graph.const, o), b.graph.make(number, [b.graph.apply("gt", b.i, b.graph.const(0))])],
        kind=k, over=(b.rows,), masked=True))  # fmt: skip
simple(entry, lambda b: b.graph.make(entry, [b.w], fixed=(2,)))
simple(entry, lambda b: b.graph.make(entry, [b.V, b.at(0, 2, 2)], fixed=(None, 1)))
simple(entry, lambda b: b.graph.make(entry, [b.V, b.at(1, 0)], fixed=(None,)))
simple(entry, lambda b: b.graph.make(entry, [b.graph.apply("exp", b.V), b.at(1, 0)], fixed=(1, None)))
simple(entry, lambda b: b.graph.make(entry, [b.graph.apply("mul", b.x, b.w), b.at(1, 0, 3)], fixed=(None,)))
simple(pick, lambda b: b.graph.make(pick, [b.scores, b.at(3, 0, 3)], over=(b.rows,), fixed=(None,)))
simple(pick, lambda b: b.graph.make(pick, [b.scores], over=(b.rows,), fixed=(4,)))


@example(pick)
def _(b: Bench) -> Val:
    table = b.table
    return b.graph.make(pick, [table, b.at(3, 0, 3)], over=(b.columns, b.rows), fixed=(1, None))


simple(
    take_val,
    lambda b: b.graph.make(
        take_val, [b.graph.make(table_score, [b.w], key="D_x", event=(6,)), b.at(1, 5, 1)]
    ),
)
simple(
    take_val, lambda b: b.graph.make(take_val, [b.graph.make(table_score, [b.w], key="D_x", event=(6,)), b.i])
)
simple(score, lambda b: b.scores)
simple(score, lambda b: b.graph.make(score, [b.x, b.graph.apply("exp", b.w)]))
simple(table_score, lambda b: b.graph.make(table_score, [b.w], key="D_x", event=(6,)))
simple(table_score, lambda b: b.graph.make(table_score, [b.graph.apply("exp", b.w)], key="D_x", event=(6,)))
simple(track, lambda b: b.graph.make(track, [b.scores, b.i], name="u1"))
simple(track, lambda b: b.graph.make(track, [b.graph.make(sum_event, [b.w])], name="u1", log=True))
for make_argument, function, scale in (
    (lambda b: b.table, ("pos",), None),
    (lambda b: b.w, ("norm2", 4), None),
    (lambda b: b.scores, ("abs",), "rho"),
):
    simple(envelope, lambda b, a=make_argument, f=function, s=scale: b.graph.make(  # type: ignore[misc]
        envelope, [a(b)], function=b.function(*f), over=(), name="a", scale=s, ends=None))  # fmt: skip


@example(given_scores)
def _(b: Bench) -> Val:
    b.layout = {"scores_1": (0, 6, (6,))}
    return b.graph.make(given_scores, name="scores_1", axes=(b.rows,), event=())


@example(net)
def _(b: Bench) -> Val:
    """Two calls, of which one has no part in the value."""
    b.layout = {"v": (0, 21, (21,))}
    v = b.graph.make(variable, name="v", event=(21,))
    rows = b.graph.make(take, [b.i], key="c", event=(3,))
    b.graph.make(net, [v, b.graph.apply("neg", rows)], net="s", variable="v", event=())
    return b.graph.make(net, [v, rows], net="s", variable="v", event=())


@example(moving_net)
def _(b: Bench) -> Val:
    """A net at rows that a variable moves."""
    b.layout = {"v": (0, 21, (21,)), "u": (21, 24, (3,))}
    v, u = (b.graph.make(variable, name=name, event=(size,)) for name, size in (("v", 21), ("u", 3)))
    rows = b.graph.apply("add", b.graph.make(take, [b.i], key="c", event=(3,)), u)
    return b.graph.make(moving_net, [v, rows], net="s", variable="v", event=(), full=False)


@example(couple)
def _(b: Bench) -> Val:
    everyone = b.graph.make(arange, axis=b.graph.axis("all", 6, "all"))
    return b.graph.make(couple, [b.scores, b.i, everyone, b.graph.const(0.5)], name="q1", share=2.0)


# ------------------------------------------------------------------------------------------- checks
def printer_of(bench: Bench, **given: Any) -> FunctionPrinter:
    """A printer to which an estimate is its minibatch value."""
    printer = FunctionPrinter(layout=bench.layout, smoother=bench.smoothing.call, **given)
    printer.estimator = lambda val: (
        f"{printer.ref(val.args[0], val.axes, len(val.event))}.expand({sizes(val.axes, val.event)})"
    )
    return printer


def scope(bench: Bench) -> dict[str, Any]:
    flat = FlatNet(mlp().double(), 1)
    known = {**vars(support), **vars(maps), **reductions.programs(), "couple": move_weights}
    return {**known, "torch": torch, "math": math, "net_s": flat}


def call(bench: Bench, printer: FunctionPrinter, result: str, w: torch.Tensor) -> torch.Tensor:
    """Runs emitted statements."""
    data = types.SimpleNamespace(device=torch.device("cpu"), dtype=torch.float64, **bench.data)
    c = types.SimpleNamespace(q1=torch.full((6,), 1 / 6, dtype=torch.float64))
    h = types.SimpleNamespace(lam_a=0.3, tau=1.0, rho=2.0)
    body = "\n".join("    " + line for line in [*printer.prepared.lines, *printer.body, f"return {result}"])
    found = scope(bench) | {"given": types.SimpleNamespace(scores_1=w[:6])}
    exec(bench.smoothing.text, found)  # noqa: S102
    exec(f"def run(data, w, c, h):\n{body}", found)  # noqa: S102
    return found["run"](data, w, c, h)


def weighed(bench: Bench, val: Val) -> Val:
    """One number: the value times an array without pattern, in total."""
    g = bench.graph
    if val.event:
        bench.data["mix"] = torch.rand(
            val.event, generator=torch.Generator().manual_seed(2), dtype=torch.float64
        )
        val = g.make(sum_event, [g.apply("mul", val, g.make(array_data, key="mix", event=val.event))])
    for k, axis in enumerate(val.axes):
        bench.data[f"mix{k}"] = torch.rand(
            axis.size, generator=torch.Generator().manual_seed(k), dtype=torch.float64
        )
        place = g.make(arange, axis=axis)
        val = g.apply("mul", val, g.make(take, [place], key=f"mix{k}", event=()))
    return g.total(val, val.axes)


@pytest.mark.parametrize(
    ("name", "make"), [(name, make) for name, makes in EXAMPLES.items() for make in makes]
)
def test_the_derivative_is_that_of_the_text(name: str, make: Example) -> None:
    bench = Bench()
    val = make(bench)
    root = weighed(bench, val)
    pulls = backward(bench.graph, {root: bench.graph.const(1.0)})
    assert verify(bench.graph) == []
    assert any(v.op is OPERATIONS[name] for v in bench.graph.vals)
    size = max(stop for _, stop, _ in bench.layout.values())
    w = torch.randn(size, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    printer = printer_of(bench, calls=Calls.of(bench.graph, pulls))
    printer.print([v for p in pulls for v in (p.adjoint, *p.source.op.pulled(p.source))])
    found = torch.zeros_like(w)
    parts = printer.contributions(pulls)
    texts = "[" + ", ".join(text for _, text in parts) + "]"
    with torch.no_grad():
        for (variable_name, _), part in zip(parts, call(bench, printer, texts, w), strict=True):
            start, stop, _ = bench.layout[variable_name]
            found[start:stop] += part
    leaf = w.clone().requires_grad_()
    value = printer_of(bench)
    if val.op is couple:  # it has no text: the risks at weights that stay as they are
        value.print([q := next(v for v in bench.graph.vals if v.op is weights)])
        printed = f"2.0 * ({value.ref(q)}.detach() * {value.ref(val.args[0])}).sum()"
    else:
        value.print([root])
        printed = value.ref(root)
    (expected,) = torch.autograd.grad(call(bench, value, printed, leaf), leaf)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    assert float(expected.abs().max()) > 1e-3, "the example says nothing"


@pytest.mark.parametrize(
    ("fold", "text"),
    [
        (lambda g: g.apply("div", g.const(1), g.const(357)), "1 / 357"),
        (lambda g: g.apply("div", g.apply("div", g.const(-1), g.const(174)), g.const(128)), "-1 / 174 / 128"),
        (lambda g: g.apply("mul", g.const(2), g.apply("div", g.const(1), g.const(512))), "2 / 512"),
        (lambda g: g.apply("neg", g.apply("div", g.const(3), g.const(7))), "-3 / 7"),
        (lambda g: g.apply("mul", g.const(49), g.apply("div", g.const(1), g.const(49.0001))), "49 / 49.0001"),
        (lambda g: g.apply("mul", g.const(3), g.apply("div", g.const(1), g.const(10))), "3 * (1 / 10)"),
        (lambda g: g.apply("div", g.const(4), g.const(2)), "2"),
    ],
)
def test_a_folded_constant_is_written_as_its_arithmetic(fold: Callable[[Graph], Val], text: str) -> None:
    """And Python evaluates the text to the same float."""
    graph = Graph()
    val = fold(graph)
    written = FunctionPrinter(layout={}).ref(val)
    assert bare(written) == text
    assert eval(written) == graph.number(val)  # noqa: S307


def test_a_number_of_the_model_stays_a_number() -> None:
    graph = Graph()
    quotient = graph.apply("div", graph.const(1), graph.const(8))
    assert graph.const(0.125) is quotient and FunctionPrinter(layout={}).ref(quotient) == "0.125"


def test_numbers_of_elements_have_the_names_of_their_sets() -> None:
    """Equal numbers of two sets are told apart, and the function defines those that it names."""
    graph, printer = Graph(), FunctionPrinter(layout={})
    rows, pairs = graph.axis("z", 8, "sample"), graph.axis("i", 8, "sample")
    share = graph.apply("div", graph.const(-2), graph.size((rows,)))
    shares = graph.apply("div", share, graph.size((pairs,)))
    assert [printer.ref(share), printer.ref(shares)] == ["(-2 / n_z)", "(-2 / n_z / n_i)"]
    assert printer.body == ["n_z = 8", "n_i = 8"]
    assert eval(printer.ref(shares), {"n_z": 8, "n_i": 8}) == graph.number(shares) == -1 / 32  # noqa: S307


def test_a_number_of_elements_gives_way_to_a_name_of_the_model() -> None:
    graph, printer = Graph(), FunctionPrinter(layout={})
    printer.names.claim("n_z")
    share = graph.apply("div", graph.const(1), graph.size((graph.axis("z", 8, "sample"),)))
    assert printer.ref(share) == "(1 / 8)" and not printer.body


def test_every_derivative_has_an_example() -> None:
    assert {*EXAMPLES} == {name for name, op in OPERATIONS.items() if not op.constant}


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_says_what_it_is(op: Op) -> None:
    kind = type(op)
    assert kind.__doc__ and kind.__doc__.strip() != (Op.__doc__ or "").strip()
    assert {*op.defaults} <= {*op.attributes}
    assert all(
        name.isidentifier() for name in [*(a.removesuffix("...") for a in op.arguments), *op.attributes]
    )
    assert (kind.text is Op.text) == bool(op.silent), "it has a text, or says why not"
    assert (kind.derivative is Op.derivative) == bool(op.constant), "it has a derivative, or says why not"
    assert (kind.contribution is Op.contribution) or not op.constant


def test_operations_have_names_of_their_own() -> None:
    ours = (kind for kind in subclasses(Op) if kind.__module__.startswith("fccomodel."))
    kinds = {kind.name for kind in ours if "name" in vars(kind)}
    assert kinds == {*OPERATIONS}


def subclasses(kind: type) -> list[type]:
    return [below for one in kind.__subclasses__() for below in [one, *subclasses(one)]]


def test_a_value_stands_once() -> None:
    g = Graph()
    first, second = (g.apply("exp", g.make(param, name="mu", value=1.0)) for _ in range(2))
    assert first is second and len(g.vals) == 2


def test_a_spread_is_told_apart_by_its_axes() -> None:
    g = Graph()
    v = g.make(sum_event, [g.make(variable, name="w", event=(2,))])
    i, j = g.axis("i", 2, "all"), g.axis("j", 3, "all")
    assert g.make(spread, [v], axes=(i,)).axes == (i,) and g.make(spread, [v], axes=(j,)).axes == (j,)


def test_constants_fold() -> None:
    g = Graph()
    v = g.make(variable, name="w", event=())
    two = g.const(2)
    assert g.apply("add", two, two).attrs["value"] == 4 and g.apply("mul", v, g.const(1)) is v
    assert g.apply("mul", two, g.apply("mul", two, v)) is g.apply("mul", v, g.const(4))
    assert g.apply("neg", g.apply("neg", v)) is v and g.apply("sub", g.const(0), v) is g.apply("neg", v)
    assert g.apply("pow", v, g.const(0)).op is const and g.apply("div", g.apply("mul", two, v), two) is v


def test_a_net_at_other_parameters_keeps_its_own() -> None:
    """Also those that layers share, and where it fails; its outputs are those of the same module with
    these parameters."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    second.weight = first.weight
    module = torch.nn.Sequential(first, torch.nn.Tanh(), second)
    flat, own, x = FlatNet(module, 1), list(module.parameters()), torch.randn(5, 3)
    w = torch.randn(sum(p.numel() for p in own))
    parts = zip(module.named_parameters(), w.split([9, 3, 3]), strict=True)
    named = {name: part.view(p.shape) for (name, p), part in parts}
    assert torch.equal(flat(w, x), torch.func.functional_call(module, named, (x,)))
    with pytest.raises(RuntimeError):
        flat(w, torch.randn(5, 2))
    assert (
        all(a is b for a, b in zip(own, module.parameters(), strict=True)) and second.weight is first.weight
    )
