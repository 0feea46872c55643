"""The reverse derivative of a graph of values, built from the same operations as the values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fccomodel.library.graph import Graph, Val, atom_of, differentiable, merge_axes, site


@dataclass(frozen=True, kw_only=True)
class Pull:
    """A contribution to a variable's gradient: ``kind`` is ``add`` (an array of the variable's shape), ``score``
    (rows weighted by the adjoint of ``X @ w``), ``scatter`` (entries indexed by axes) or ``net`` (a vector-Jacobian product)."""

    kind: str
    variable: str
    source: Val
    adjoint: Val


#: operations that spread an argument over axes it lacks: the adjoint, if it lacks them too, counts once for each element
BROADCASTING = {"ew", "array", "stack", "spread", "masked", "envelope"}


def previous(graph: Graph, val: Val) -> Val:
    """The same minibatch value at the previous iterate; estimates inside it stay as they are."""
    made: dict[int, Val] = {}

    def remake(v: Val) -> Val:
        if not v.varying or v.op == "track":
            return v
        if v.id not in made:
            attrs = {**v.attrs, "previous": True} if v.op == "var" else v.attrs
            made[v.id] = graph.make(
                v.op, [remake(a) for a in v.args], axes=v.axes, event=v.event, varying=False, static=False, span=v.span, **attrs
            )
        return made[v.id]

    return remake(val)


def backward(graph: Graph, roots: Mapping[Val, Val]) -> list[Pull]:
    """Contributions to the variables' gradients of ``sum_r <adjoint_r, r>`` for roots ``{r: adjoint_r}``."""
    adjoints: dict[int, Val] = {}

    def give(val: Val, adjoint: Val) -> None:
        if not val.varying:
            return
        source = sources[-1] if sources and sources[-1].op in BROADCASTING else adjoint
        missing = [a for a in merge_axes([adjoint, source]) if a not in val.axes]
        if missing:
            adjoint = graph.total(adjoint, missing)
        if len(adjoint.event) > len(val.event):
            adjoint = graph.sum_event(adjoint)
        elif source.op == "ew" and len(source.event) > len(val.event):
            adjoint = graph.apply("mul", graph.const(math.prod(source.event)), adjoint)
        adjoints[val.id] = graph.apply("add", adjoints[val.id], adjoint) if val.id in adjoints else adjoint

    sources: list[Val] = []
    for val, adjoint in roots.items():
        give(val, adjoint)
    pulls: list[Pull] = []
    for index in range(max(adjoints, default=-1), -1, -1):
        if index not in adjoints or adjoints[index].number == 0:
            continue
        val, adjoint = graph.vals[index], adjoints[index]
        sources[:] = [val]
        RULES[val.op](graph, val, adjoint, give, pulls)
    return pulls


Give = Callable[[Val, Val], None]


def _entrywise(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    atom = atom_of(val.attrs["atom"])
    if atom.name in ("max", "min"):
        for arg, weight in _choose(graph, atom.name, val):
            give(arg, graph.apply("mul", adjoint, weight))
        return
    names = dict(zip(atom.names(len(val.args)), val.args, strict=True)) | {"y": val}
    for arg, formula in zip(differentiable(atom, val), atom.derivatives(site(val)), strict=True):
        if arg.varying:
            give(arg, graph.apply("mul", adjoint, graph.evaluate(formula, names)))


def _choose(graph: Graph, name: str, val: Val) -> Iterable[tuple[Val, Val]]:
    """Weights of max/min: the first argument that attains it."""
    attains, fails = ("ge", "lt") if name == "max" else ("le", "gt")
    before: Val = graph.const(1.0)
    for arg in val.args:
        yield arg, graph.apply("mul", before, graph.apply(attains, arg, val))
        before = graph.apply("mul", before, graph.apply(fails, arg, val))


def _array(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    atom = atom_of(val.attrs["atom"])
    names = dict(zip(atom.names(len(val.args)), val.args, strict=True)) | {"y": val, "dy": adjoint}
    whole = names | {"dy": filled(graph, adjoint, val.event)}
    for arg, formula in zip(differentiable(atom, val), atom.derivatives(site(val)), strict=True):
        if arg.varying and ("(" in formula or "@" in formula):
            give(arg, graph.evaluate(formula, whole))
        elif arg.varying:
            give(arg, graph.evaluate(formula, names))


def filled(graph: Graph, val: Val, event: tuple[int, ...]) -> Val:
    """A scalar as an array of one number."""
    return val if val.event == event else graph.make("fill", [val], event=event)


def _sum_event(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    give(val.args[0], adjoint)


def _mean_axes(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    count = math.prod(a.size for a in val.attrs["over"])
    give(val.args[0], graph.apply("div", adjoint, graph.const(count)))


def _sum_axes(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    give(val.args[0], adjoint)


def _log_mean_axes(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """Elements by their share in the mean: exp(x - log mean exp x) / n."""
    count = math.prod(a.size for a in val.attrs["over"])
    share = graph.apply("exp", graph.apply("sub", val.args[0], val))
    give(val.args[0], graph.apply("mul", graph.apply("div", adjoint, graph.const(count)), share))


def _segment(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """Rows get the adjoint of their segment."""
    arg = val.args[0]
    if val.attrs["axis"] not in arg.axes:
        weight = graph.const(1.0) if val.attrs["how"] == "mean" else graph.make("array_data", key=val.attrs["sizes"])
        give(arg, graph.apply("mul", adjoint, weight))
        return
    give(arg, graph.make("unsegment", [adjoint], axes=arg.axes, event=arg.event, onto=val.axes, **val.attrs))


def _log_segment(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """Rows by their share in their segment."""
    arg = val.args[0]
    if val.attrs["axis"] not in arg.axes:
        give(arg, adjoint)
        return
    attrs = {**val.attrs, "onto": val.axes}
    mine = graph.make("unsegment", [adjoint], axes=arg.axes, event=arg.event, **attrs)
    whole = graph.make("unsegment", [val], axes=arg.axes, event=arg.event, **{**attrs, "how": "sum"})
    give(arg, graph.apply("mul", mine, graph.apply("exp", graph.apply("sub", arg, whole))))


def _through(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """A tracked quantity: its value is the estimate u, its derivative that of a minibatch g.

    By their logarithms, d log u is g/u d log g; the weight of an estimate that was left far behind is at most e^30.
    """
    through = val.attrs.get("through", val.args[0])
    if val.attrs.get("log"):
        ratio = graph.apply("min", graph.apply("sub", through, val), graph.const(30.0))
        adjoint = graph.apply("mul", adjoint, graph.apply("exp", ratio))
    give(through, adjoint)


def _pick(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """Members of an array over axes: the adjoint goes back to those members."""
    base = val.args[0]
    spread = graph.make(
        "unpick",
        [adjoint, *val.args[1:]],
        axes=base.axes,
        event=base.event,
        over=val.attrs["over"],
        fixed=val.attrs["fixed"],
        extra=tuple(val.axes),
    )
    give(base, spread)


def _variable(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    pulls.append(Pull(kind="add", variable=val.attrs["name"], source=val, adjoint=adjoint))


def _score(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    variable = val.args[-1]
    if variable.op == "var":
        pulls.append(Pull(kind="score", variable=variable.attrs["name"], source=val, adjoint=adjoint))
    else:
        give(variable, graph.make("score_t", [val.args[0], adjoint], axes=(), event=variable.event, source=val))


def _table_score(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    variable = val.args[0]
    if variable.op == "var":
        pulls.append(Pull(kind="table_score", variable=variable.attrs["name"], source=val, adjoint=adjoint))
    else:
        give(variable, graph.make("table_score_t", [adjoint], axes=(), event=variable.event, key=val.attrs["key"]))


def _take_val(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """Scores of some rows: the adjoint goes back to the rows of the table."""
    whole, index = val.args
    give(whole, graph.make("scatter_val", [adjoint, index], axes=(), event=whole.event, onto=val.axes))


def _entry(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    base = val.args[0]
    if base.op == "var":
        pulls.append(Pull(kind="scatter", variable=base.attrs["name"], source=val, adjoint=adjoint))
    else:
        give(
            base,
            graph.make(
                "entry_t",
                [adjoint, *val.args[1:]],
                axes=merge_axes([base, adjoint, *val.args[1:]]),
                event=base.event,
                fixed=val.attrs["fixed"],
            ),
        )


def _net(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    pulls.append(Pull(kind="net", variable=val.attrs["variable"], source=val, adjoint=adjoint))


def _envelope(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """A smoothed outer function: its derivative is a point of the dual domain, an operation of its own."""
    slope = graph.make("envelope_slope", val.args, event=val.args[0].event, varying=False, **val.attrs)
    give(val.args[0], graph.apply("mul", adjoint, slope))


def _same(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """Spread over more axes, or with entries left out whose adjoint is zero."""
    give(val.args[0], adjoint)


def _reduce(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """A maximum, product, tail mean, ...: the adjoint times its derivative in each element."""
    body = val.args[0]
    slope = graph.make("reduce_slope", [*val.args, val], axes=body.axes, event=body.event, varying=False, **val.attrs)
    give(body, graph.apply("mul", adjoint, slope))


def _stack(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    for k, arg in enumerate(val.args):
        give(arg, graph.make("entry", [adjoint], event=(), fixed=(k,)))


def _couple(graph: Graph, val: Val, adjoint: Val, give: Give, pulls: list[Pull]) -> None:
    """The worst of a family by weights: they are its derivative, scaled where members are sampled."""
    body = val.args[0]
    q = graph.make("weights", val.args, axes=body.axes, event=(), varying=False, static=False, **val.attrs)
    give(body, graph.apply("mul", adjoint, graph.apply("mul", graph.const(val.attrs["share"]), q)))


RULES: dict[str, Callable[[Graph, Val, Val, Give, list[Pull]], None]] = {
    "ew": _entrywise,
    "array": _array,
    "sum_event": _sum_event,
    "mean_axes": _mean_axes,
    "sum_axes": _sum_axes,
    "log_mean_axes": _log_mean_axes,
    "segment": _segment,
    "log_segment": _log_segment,
    "track": _through,
    "pick": _pick,
    "var": _variable,
    "score": _score,
    "table_score": _table_score,
    "take_val": _take_val,
    "entry": _entry,
    "net": _net,
    "envelope": _envelope,
    "spread": _same,
    "masked": _same,
    "reduce": _reduce,
    "stack": _stack,
    "couple": _couple,
}
