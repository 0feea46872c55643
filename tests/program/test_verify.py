"""Every graph that problems are lowered to is well formed, and the verifier sees what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from conformance.problems import PROBLEMS
from support.emitted_models import CASES, HEAD, Case, compiled, made, make

from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError
from fccomodel.program.graph import Graph
from fccomodel.program.lower import lower
from fccomodel.program.operations import Op, Val
from fccomodel.program.operations.entrywise import entrywise, spread
from fccomodel.program.operations.indexing import entry
from fccomodel.program.operations.scores import score
from fccomodel.program.operations.sources import arange, const, take, variable
from fccomodel.program.operations.sums import mean_axes
from fccomodel.program.verify import verify

#: algorithms whose programs differ in what they keep: a y for each block, F as a vector, earlier
#: values, weights of a family
FORMS = ("alexr2", "civr", "msvr", "ooa")


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """Every graph that is begun."""
    found: list[Graph] = []
    begin = Graph.__init__
    monkeypatch.setattr(Graph, "__init__", lambda graph: (begin(graph), found.append(graph))[0])
    return found


def well_formed(graphs: list[Graph]) -> None:
    assert graphs
    assert [fault for graph in graphs for fault in verify(graph)] == []


@pytest.mark.parametrize("name", CASES)
def test_models(name: str, graphs: list[Graph]) -> None:
    case = made(name)
    lower(case.bound.problem, case.bound, case.plan)
    well_formed(graphs)


@pytest.mark.parametrize("name", list(CASES)[::9])
@pytest.mark.parametrize("algorithm", FORMS)
def test_forms(name: str, algorithm: str, graphs: list[Graph]) -> None:
    case = made(name)
    options = {"unverified": True, "algorithm": algorithm, **CASES[name].options}
    try:
        planned = pipeline.decide(
            pipeline.analyse(case.bound.problem, case.bound), {k: (v, "test") for k, v in options.items()}
        )
    except FccoError:
        return
    lower(case.bound.problem, case.bound, planned)
    well_formed(graphs)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_conformance_problems(problem: Any, graphs: list[Graph]) -> None:
    model = compiled(problem.text, problem.name)
    bound = pipeline.bind(model, pipeline.Binding(data=problem.data()))
    options = {name: (value, "test") for name, value in {"unverified": True, **problem.options}.items()}
    lower(model.problem, bound, pipeline.decide(pipeline.analyse(model.problem, bound), options))
    well_formed(graphs)


# ------------------------------------------------------------------------------------ what is wrong
def small() -> Graph:
    """mean_i (x_i.w)^2, by place: 0 positions, 1 rows, 2 w, 3 scores, 4 squares, 5 their mean."""
    g = Graph()
    i = g.axis("i", 5, "all")
    x = g.make(take, [g.make(arange, axis=i)], key="D_x", event=(3,))
    s = g.make(score, [x, g.make(variable, name="w", event=(3,))])
    g.make(mean_axes, [g.apply("square", s)], over=(i,))
    return g


class Unknown(Op):
    """An operation of no file."""

    name = "unknown"


def changed(place: int, **fields: Any) -> Callable[[Graph], None]:
    """One value replaced by another."""

    def change(g: Graph) -> None:
        g.vals[place] = replace(g.vals[place], **fields)

    return change


def attribute(place: int, **attrs: Any) -> Callable[[Graph], None]:
    """Other attributes; None leaves one out."""

    def change(g: Graph) -> None:
        found = {**g.vals[place].attrs, **attrs}
        g.vals[place].attrs = {k: v for k, v in found.items() if v is not None}

    return change


def add(make: Callable[[Graph], Val]) -> Callable[[Graph], None]:
    return lambda g: (make(g), None)[1]


def pair(g: Graph) -> Val:
    return g.make(variable, name="v", event=(2,))


WRONG: dict[str, tuple[Callable[[Graph], None], str]] = {
    "an unknown operation": (changed(0, op=Unknown(), attrs={}), "no such operation"),
    "another place": (changed(3, id=7), "it stands at 3"),
    "an argument of another graph": (
        lambda g: setattr(g.vals[5], "args", (small().vals[4],)),
        "not a value before it",
    ),
    "an argument behind": (
        lambda g: setattr(g.vals[3], "args", (g.vals[1], g.vals[4])),
        "not a value before it",
    ),
    "too few arguments": (
        lambda g: setattr(g.vals[3], "args", g.vals[3].args[:1]),
        "1 arguments for rows, weights",
    ),
    "too many arguments": (
        lambda g: setattr(g.vals[5], "args", g.vals[5].args * 2),
        "2 arguments for values",
    ),
    "an attribute missing": (attribute(5, over=None), "attribute over is missing"),
    "an attribute too many": (attribute(5, how="mean"), "takes no attribute how"),
    "an attribute of another type": (attribute(1, key=3), "attribute key is 3"),
    "an attribute with a wrong entry": (attribute(5, over=("i",)), "attribute over is ('i',)"),
    "axes kept": (lambda g: setattr(g.vals[5], "axes", g.vals[4].axes), "axes "),
    "another event": (lambda g: setattr(g.vals[4], "event", (3,)), "event (3,), not ()"),
    "a variable that does not vary": (
        lambda g: setattr(g.vals[2], "varying", False),
        "varying False, not True",
    ),
    "static by a variable": (lambda g: setattr(g.vals[4], "static", True), "static, and made of what is not"),
    "a mean over nothing": (attribute(5, over=()), "do not lie along its axes"),
    "weights of another length": (add(lambda g: g.make(score, [g.vals[1], pair(g)])), "do not fit"),
    "weights that are a number": (add(lambda g: g.make(score, [g.vals[1], g.const(0)])), "do not fit"),
    "too many positions": (
        add(lambda g: g.make(entry, [g.vals[2]], fixed=(0, 0))),
        "more positions than dims",
    ),
    "a position without a value": (
        add(lambda g: g.make(entry, [g.vals[2]], fixed=(None,))),
        "not as many as its arguments",
    ),
    "a spread that narrows": (add(lambda g: g.make(spread, [g.vals[4]], axes=())), "axes that it lacks"),
    "arrays of two shapes": (
        add(lambda g: g.make(entrywise, [g.vals[2], pair(g)], atom="add")),
        "shapes do not fit",
    ),
}


def test_a_right_graph() -> None:
    assert verify(small()) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_seen(name: str) -> None:
    change, words = WRONG[name]
    graph = small()
    change(graph)
    assert any(words in fault for fault in verify(graph)), verify(graph)


def test_a_constant_is_no_array() -> None:
    g = small()
    g.vals.append(Val(id=len(g.vals), op=const, attrs={"value": "1", "sizes": ""}, event=(2,), static=True))
    assert len(verify(g)) == 1


# -------------------------------------------------------------------------- models that once failed
@pytest.mark.parametrize(
    "text",
    [
        "minimize E[z ~ D] (dot(0 * w, z.x) - 1)^2 + sumsq(w);",
        "minimize E[z ~ D] (dot(w^0, z.x) - 1)^2 + sumsq(w);",
        "minimize max[k in K] sumsq(w) + max[l in T] sumsq(w);",
        "minimize norm2(0 * w) + sumsq(w) + sum(0 * w);",
    ],
)
def test_shapes_are_kept(text: str, graphs: list[Graph]) -> None:
    make("m", Case(text=f"model m;{HEAD}{text}"))
    well_formed(graphs)
