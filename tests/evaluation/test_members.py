"""Families against brute force: the same members, in the same order, by the same names, wherever a
family is gone through."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from support.emitted_models import Case, Made, make

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.sets import members
from fccomodel.evaluation.values import lets, level, values
from fccomodel.execution import run
from fccomodel.plan import sizes
from fccomodel.report import report
from fccomodel.report.point.system import functions

RANDOM = np.random.default_rng(7)
ROWS = 40
W = np.array([0.4, -0.3, 0.2])
HEAD = """model m; dim d; set G = {"a", "b", "c", "e"}; set K = {0, 1, 2, 3};
data D : table(x: real[d], y: {0, 1}, g: G, c: K, t: real);
set P = {z in D | z.t > 1.4}; var w[d];
"""


def rows() -> dict[str, np.ndarray]:
    """No row is of `e` or of 3, and none of `c` has y = 1."""
    g, y = np.array(["a", "b", "c"])[RANDOM.integers(0, 3, ROWS)], RANDOM.integers(0, 2, ROWS)
    x, c, t = (
        RANDOM.normal(size=(ROWS, 3)),
        RANDOM.integers(0, 3, ROWS),
        np.round(RANDOM.exponential(size=ROWS), 2),
    )
    return {"x": x, "y": np.where(g == "c", 0, y), "g": g, "c": c, "t": t}


DATA = rows()
SCORES = DATA["x"] @ W
Test = Callable[..., np.ndarray | bool]


@dataclass(frozen=True, kw_only=True)
class Set:
    """An index set's text, its elements as the tests below have them, and how they are shown."""

    text: str
    elements: tuple
    shown: tuple[str, ...]


SETS = {
    "k": Set(text="G", elements=("a", "b", "c", "e"), shown=("a", "b", "c", "e")),
    "u": Set(text="K", elements=(0, 1, 2, 3), shown=("0", "1", "2", "3")),
    "v": Set(text="{0, 1}", elements=(0, 1), shown=("0", "1")),
    "i": Set(text="P", elements=tuple(p := np.flatnonzero(DATA["t"] > 1.4)), shown=tuple(map(str, p))),
}
#: conditions of a family by the binders that they are about, and of its rows: text, and what it
#: says of elements (and rows)
FAMILIES: dict[tuple[str, ...], tuple[str, Test]] = {
    ("k",): ('k != "b"', lambda k: k != "b"),
    ("u",): ("u < 2", lambda u: u < 2),
    ("u", "v"): ("u > v", lambda u, v: u > v),
    ("i", "u"): ("i.c != u", lambda i, u: DATA["c"][i] != u),
}
CONDITIONS: dict[tuple[str, ...], list[tuple[str, Test]]] = {
    ("k",): [("z.g == k", lambda k: DATA["g"] == k)],
    ("u",): [("z.c == u", lambda u: DATA["c"] == u), ("z.t > u - 0.5", lambda u: DATA["t"] > u - 0.5)],
    ("v",): [("z.y == v", lambda v: DATA["y"] == v)],
    ("i",): [
        ("z.t > i.t", lambda i: DATA["t"] > DATA["t"][i]),
        ("z.t * i.t < 0.5", lambda i: DATA["t"] * DATA["t"][i] < 0.5),
    ],
    ("u", "v"): [("z.c + z.y == u + v", lambda u, v: DATA["c"] + DATA["y"] == u + v)],
    ("i", "k"): [("z.g == k and z != i", lambda i, k: (DATA["g"] == k) & (np.arange(ROWS) != i))],
}


@dataclass(frozen=True, kw_only=True)
class Family:
    """``name[binders | condition]: E[z ~ D | rows] .. <= 0``, with what it says by brute force."""

    binders: tuple[str, ...]
    condition: tuple[tuple[str, ...], str, Test] | None
    rows: tuple[tuple[tuple[str, ...], str, Test], ...]

    def head(self, *, condition: bool = True) -> str:
        own = f" | {self.condition[1]}" if self.condition is not None and condition else ""
        return f"[{', '.join(f'{b} in {SETS[b].text}' for b in self.binders)}{own}]"

    def body(self, empty: str = "drop") -> str:
        given = " | " + " and ".join(text for _, text, _ in self.rows) if self.rows else ""
        return f"(E(empty = {empty})[z ~ D{given}] log1pexp(dot(w, z.x)))"

    def cells(self) -> Iterator[tuple[dict[str, object], str]]:
        """Every combination of elements, and how it is shown."""
        for places in itertools.product(*(range(len(SETS[b].elements)) for b in self.binders)):
            cell = {b: SETS[b].elements[k] for b, k in zip(self.binders, places, strict=True)}
            yield cell, ",".join(SETS[b].shown[k] for b, k in zip(self.binders, places, strict=True))

    def accepts(self, cell: dict[str, object]) -> bool:
        return self.condition is None or bool(self.condition[2](*(cell[b] for b in self.condition[0])))

    def taken(self, cell: dict[str, object]) -> np.ndarray:
        keep = np.ones(ROWS, dtype=bool)
        for binders, _, test in self.rows:
            keep &= np.asarray(test(*(cell[b] for b in binders)))
        return keep

    def members(self, name: str, level: float = 0.0, *, condition: bool = True) -> dict[str, float]:
        """Labels and values of the members."""
        found = {}
        for cell, shown in self.cells():
            keep = self.taken(cell)
            if keep.any() and (not condition or self.accepts(cell)):
                found[f"{name}[{shown}]"] = float(np.logaddexp(0, SCORES[keep]).mean()) - level
        return found

    @property
    def empty(self) -> bool:
        """Some member has no rows."""
        return any(self.accepts(cell) and not self.taken(cell).any() for cell, _ in self.cells())


def families(seed: int) -> Iterator[Family]:
    """Random families of one to three binders, with conditions on members and on rows."""
    rng = np.random.default_rng(seed)
    while True:
        binders = tuple(rng.permutation(list(SETS))[: rng.integers(1, 4)].tolist())
        if np.prod([len(SETS[b].elements) for b in binders]) > 80:
            continue
        own = [(about, *FAMILIES[about]) for about in FAMILIES if set(about) <= set(binders)]
        about = [key for key in CONDITIONS if set(key) <= set(binders)]
        chosen = [about[k] for k in rng.permutation(len(about))[: rng.integers(1, 3)]]
        given = tuple((key, *CONDITIONS[key][rng.integers(len(CONDITIONS[key]))]) for key in chosen)
        condition = own[rng.integers(len(own))] if own and rng.random() < 0.5 else None
        made = Family(binders=binders, condition=condition, rows=given)
        if made.members("c"):
            yield made


def case(text: str, **options: object) -> Made:
    return make(
        "m",
        Case(
            text=HEAD + text,
            data=lambda: {"D": DATA},
            options={"inner_batch": 7, "outer_batch": 5, **options},
        ),
    )


def at(point: np.ndarray = W) -> torch.Tensor:
    return torch.tensor(point, dtype=torch.float64)


EVERY = list(itertools.islice(families(0), 24))


def shown(family: Family) -> str:
    return family.head() + " " + " and ".join(text for _, text, _ in family.rows)


@pytest.mark.parametrize("family", EVERY, ids=shown)
def test_evaluation_and_report(family: Family) -> None:
    text = f"minimize sumsq(w - 1); subject to c{family.head()}: {family.body()} <= 0.6;"
    made, expected = case(text, algorithm="squared_hinge_sox"), family.members("c", 0.6)
    (constraint,) = made.bound.problem.constraints
    found = level(made.bound, {"w": W})
    assert list(found.constraints) == list(expected) and found.constraints == pytest.approx(expected)
    own = members.of(made.bound, constraint)
    assert own.labels("c") == list(expected) and len(own) == len(expected)
    told = report(made.bound, {"w": W}, seed=0)
    assert list(told.constraints) == list(expected)
    counts = sizes.counted(made.plan.normal, made.bound, lambda binder, n, inner: None)
    assert counts["n"] >= len(expected)


@pytest.mark.parametrize("family", EVERY[:12], ids=shown)
@pytest.mark.parametrize("algorithm", ["sonex", "squared_hinge_sox"])
def test_programs_and_answers(family: Family, algorithm: str) -> None:
    text = f"minimize sumsq(w - 1); subject to c{family.head()}: {family.body()} <= 0.6;"
    made, expected = case(text, algorithm=algorithm), family.members("c", 0.6)
    solver, w = made.solver, at()
    exact = solver.prepare_full(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    (constraint,) = made.bound.problem.constraints
    grid = solver.evaluate(exact, w)[1]["c"][1]
    assert members.of(made.bound, constraint).of(grid.numpy()).tolist() == pytest.approx(
        list(expected.values())
    )
    h, c = solver.Settings(), solver.centres("cpu", torch.float64)
    for name, (index, t, slope, _) in solver.blocks(exact, w).items():
        getattr(c, name)[index or ...] = slope(t, getattr(c, name)[index or ...], h)
    found = run.multipliers(made.program, made.bound, types.SimpleNamespace(c=c, h=h), {"c": ("le", grid)})
    assert list(found) == list(expected) and all(np.isfinite(v) for v in found.values())
    for key, value in expected.items():
        assert (found[key] > 0) == (value > 0), key
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    batch = [part[0] for part in solver.draw(data, torch.Generator().manual_seed(0), 1)]
    slope = solver.gradient(data, w, w, solver.buffers("cpu", torch.float64), c, batch, h)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("family", EVERY[12:], ids=shown)
def test_means_and_lets(family: Family) -> None:
    """A mean over a family's members, by themselves and as a let; an outer function that is infinite
    at what is left out."""
    body = family.body()
    text = f"let r{family.head(condition=False)} = {body}; let a = mean{family.head()} log({body});"
    use = f"r[{', '.join(family.binders)}]"
    made = case(text + f"minimize sumsq(w) + (mean{family.head()} log({use}));", inner_batch=1000)
    everyone, own = family.members("r", condition=False), list(family.members("r").values())
    found = values(made.bound, {"w": W}, lets(made.bound.problem, ["r", "a"]))
    assert list(found["r"]) == list(everyone) and found["r"] == pytest.approx(everyone)
    assert found["a"] == pytest.approx(np.log(own).mean())
    solver, w = made.solver, at()
    exact = solver.prepare_full(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    assert float(solver.evaluate(exact, w)[0]) == pytest.approx(W @ W + np.log(own).mean())
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    batch = [part[0] for part in solver.draw(data, torch.Generator().manual_seed(0), 1)]
    c, u = solver.centres("cpu", torch.float64), solver.buffers("cpu", torch.float64)
    assert torch.isfinite(solver.gradient(data, w, w, u, c, batch, solver.Settings())).all()


@pytest.mark.parametrize("family", [f for f in EVERY if f.empty][:4], ids=shown)
def test_an_empty_member_is_an_error_where_it_is_not_left_out(family: Family) -> None:
    text = f"minimize sumsq(w - 1); subject to c{family.head()}: {family.body('error')} <= 0.6;"
    with pytest.raises(FccoError, match="is left for `z`"):
        case(text, algorithm="sonex")
    full = [f for f in itertools.islice(families(3), 60) if not f.empty and f.condition is not None]
    assert full
    for family in full[:2]:  # conditions on members leave their cells out, whatever their rows
        made = case(
            f"minimize sumsq(w - 1); subject to c{family.head()}: {family.body('error')} <= 0.6;",
            algorithm="sonex",
        )
        assert level(made.bound, {"w": W}).constraints == pytest.approx(family.members("c", 0.6))


def test_sums_over_nothing_are_zero() -> None:
    made = case("minimize sumsq(w) + (sum[k in G] (sum[z in D | z.g == k] dot(w, z.x))^2);")
    expected = W @ W + sum(SCORES[DATA["g"] == k].sum() ** 2 for k in "abce")
    solver, w = made.solver, at()
    exact = solver.prepare_full(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    assert level(made.bound, {"w": W}).objective == pytest.approx(expected)
    assert float(solver.evaluate(exact, w)[0]) == pytest.approx(expected)


def test_what_is_left_out_is_a_condition_of_the_problem() -> None:
    made = case(
        "let r[k in G] = E(empty = drop)[z ~ D | z.g == k] dot(w, z.x); minimize mean[k in G] square(r[k]);"
    )
    mean = made.bound.problem.objective.expr
    assert isinstance(mean, ir.Reduce) and isinstance(mean.condition, ir.LetRef)
    assert isinstance(made.bound.problem.lets["r"].condition, ir.Exists)
    objective, values, labels, _ = functions_of(made)
    assert labels == [] and len(values) == 0
    assert float(objective) == pytest.approx(np.mean([SCORES[DATA["g"] == k].mean() ** 2 for k in "abc"]))


def functions_of(made: Made) -> tuple:
    from fccomodel.evaluation.interpret import Evaluator

    return functions(Evaluator(made.bound, {"w": at()}))
