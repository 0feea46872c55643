"""Recognition of sums that are written entry by entry: ``w[1]^2 + w[2]^2`` for a vector of two
entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter
from fccomodel.library import atoms
from fccomodel.library.identities._base import Knowledge
from fccomodel.library.linear import LinearTerm, same_factors

#: The largest number of nodes of a summand that is compared with others.
MAX_NODES = 50


def gathered(summands: list[LinearTerm], known: Knowledge) -> list[LinearTerm]:
    """Terms that are alike for every entry of an array, as one: ``w[1]^2 + .. + w[n]^2 =
    sum(w^2)``."""
    groups: list[list[tuple[int, LinearTerm]]] = []
    places: dict[int, int] = {}
    for k, term in enumerate(summands):
        place = _place(term.core)
        if place is None:
            continue
        group = None
        for candidate in groups:
            first = candidate[0][0]
            if _alike(term, place, summands[first], places[first]):
                group = candidate
                break
        places[k] = place
        if group is None:
            groups.append([(k, term)])
        else:
            group.append((k, term))
    result: list[LinearTerm | None] = list(summands)
    for group in groups:
        whole = _whole(group[0][1], [places[k] for k, _ in group], known)
        if whole is not None:
            for k, _ in group:
                result[k] = None
            result[group[0][0]] = whole
    return [t for t in result if t is not None]


def _items(core: ir.Expr) -> list[ir.Item] | None:
    """The vector entries to which an expression applies scalar atoms, or None."""
    items: list[ir.Item] = []
    stack, count = [core], 0
    while stack:
        node, count = stack.pop(), count + 1
        if isinstance(node, ir.Item) and _is_entry(node):
            items.append(node)
        elif isinstance(atoms.of(node), atoms.ScalarAtom) and count <= MAX_NODES:
            stack.extend(node.children)
        elif node.shape or not isinstance(node, ir.Const | ir.Size | ir.Param):
            return None
    if any(isinstance(i.base, ir.Var) for i in items):
        return items
    return None


def _is_entry(node: ir.Item) -> bool:
    """Whether a node is a vector entry at a place that is written as a number."""
    vector = isinstance(node.base, ir.Var | ir.Param) and len(node.indices) == len(node.base.shape) == 1
    return vector and isinstance(node.indices[0], ir.Const)


def _place(core: ir.Expr) -> int | None:
    """The one place of all entries in an expression."""
    places = {_at(item) for item in _items(core) or ()}
    if len(places) == 1:
        return places.pop()
    return None


def _at(item: ir.Item) -> int:
    index = item.indices[0]
    assert isinstance(index, ir.Const)
    return int(index.value)


def _alike(term: LinearTerm, place: int, other: LinearTerm, there: int) -> bool:
    """Whether terms differ only in the place."""
    if term.sign != other.sign or not same_factors(term.factors, other.factors):
        return False
    return place != there and ir.same(_moved(term.core, there), other.core)


def _moved(core: ir.Expr, place: int) -> ir.Expr:
    """The term at another place."""

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The entry at the place, for an entry at another place."""
        if isinstance(node, ir.Item) and isinstance(node.indices[0], ir.Const):
            return replace(node, indices=(ir.Const(value=float(place)),))
        return None

    return Rewriter(rule)(core)


def _whole(term: LinearTerm, places: Sequence[int], known: Knowledge) -> LinearTerm | None:
    """The sum over all entries, if each occurs once."""
    items = _items(term.core) or []
    shapes = {item.base.shape for item in items}
    if len(shapes) == 1:
        size = known.size(next(iter(shapes))[0])
    else:
        size = None
    if size is None or size < 2 or sorted(places) != list(range(size)):
        return None

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The array for an entry of it."""
        if isinstance(node, ir.Item):
            return node.base
        if isinstance(node, ir.Apply) and any(a.shape for a in node.args):
            return replace(node, shape=max((a.shape for a in node.args), key=len))
        return None

    array = Rewriter(rule)(term.core)
    return replace(term, core=ir.Apply(op="sum", args=(array,), span=term.place))
