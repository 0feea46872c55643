"""How full passes avoid pairs of rows, in words for ``explain``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation import distributed
from fccomodel.evaluation.sets import elements
from fccomodel.library import identities
from fccomodel.library.identities.comonotone import comonotone_tails
from fccomodel.normal_form.separation import Separation


def without_pairs(
    problem: ir.Problem, bound: Bound | None, constant: Callable[[ir.Expr], float | None]
) -> Iterator[tuple[str, str, str]]:
    """(text, how, cost) for reductions that a full pass computes without pairs of rows.

    Linear maps that it computes once per row are included.
    """
    separation = Separation(constant)
    for node in problem.expressions():
        if not isinstance(node, ir.Reduce):
            continue
        tables = [b for b in (*node.binders, *ir.free_binders(node)) if isinstance(b.domain, ir.RowSet)]
        if len(tables) < 2 or separation.form(node) is None and separation.run(node) is None:
            continue
        if separation.sorts(node):
            yield problem.text(node), "sorted", f"from sums over sorted rows: {cost(node, bound)}"
        else:
            yield problem.text(node), "separated", f"each row enters alone: {cost(node, bound)}"
    if bound is not None:
        yield from mapped_once(problem, bound)
    yield from in_one_order(problem)


def in_one_order(problem: ir.Problem) -> Iterator[tuple[str, str, str]]:
    """(text, how, why) for means of tail means that equal a tail mean of means."""
    facts = identities.known(problem)
    for node in problem.expressions():
        if isinstance(node, ir.Reduce) and comonotone_tails.apply(node, facts) is not None:
            inner = node.body
            assert isinstance(inner, ir.Reduce)
            kind, of = inner.kind, ", ".join(b.name for b in node.binders)
            elements_of = ", ".join(b.name for b in inner.binders)
            yield (
                problem.text(node),
                "one order",
                f"by {elements_of} alone, whatever {of}: it is the {kind} of means over {of}",
            )


def mapped_once(problem: ir.Problem, bound: Bound) -> Iterator[tuple[str, str, str]]:
    """(text, how, cost) for linear maps of sums of rows, which are computed term by term.

    Squared distances, which are computed from norms and products of rows, are included.
    """
    rows, seen = distributed.of(bound), set[str]()
    for node in problem.expressions():
        if rows.form(node) is None and rows.sides(node) is None:
            continue
        text = problem.text(node)
        if text and text not in seen:
            seen.add(text)
            if rows.sides(node) is None:
                way = "each row is mapped once"
            else:
                way = "by norms and products of rows"
            sizes = [
                len(elements.ids(bound, b.domain))
                for b in rows.free(node)
                if not isinstance(b.domain, ir.Distribution)
            ]
            numbers = f"{' + '.join(f'{n:,}' for n in sizes)} rows, not {math.prod(sizes):,} pairs"
            yield text, "mapped once", f"{way}: an exact pass maps {numbers}"


def cost(node: ir.Reduce, bound: Bound | None) -> str:
    """The number of rows that an exact pass reads, in words."""
    if bound is None:
        return "an exact pass forms no pairs"
    binders = dict.fromkeys((*node.binders, *ir.free_binders(node)))
    sizes = [len(elements.ids(bound, b.domain)) for b in binders]
    rows = " + ".join(f"{n:,}" for n in sizes)
    return f"an exact pass meets {rows} rows, not {math.prod(sizes):,} pairs"
