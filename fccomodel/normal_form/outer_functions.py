"""Outer functions in an expression: of what a non-smooth node is a function with a computable prox."""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import ScalarAtom
from fccomodel.library.proximal import Largest, Proximal, Smooth, line, of
from fccomodel.structure import facts_of


def outer_function(
    node: ir.Expr, constant: Callable[[ir.Expr], float | None]
) -> tuple[Proximal, ir.Expr | None, ir.Reduce | None] | str:
    """A non-smooth node as a function with a prox, of one argument, or (None) of its own arguments or
    of the elements of a set; or the reason why none is known. Exact convex functions come before
    weakly convex ones, and these before Newton's method."""
    reason = (
        f"no prox is known for `{node.op if isinstance(node, ir.Apply) else getattr(node, 'kind', 'it')}`"
    )
    candidates: list[tuple[Proximal, ir.Expr]] = []
    for argument in arguments(node, constant):
        function = of(node, (argument,), facts_of, constant)
        if isinstance(function, str):
            reason = function
        else:
            candidates.append((function, argument))
    below = leaves(node, constant, deep=True)
    if len(below) > 1 and not any(leaf.shape for leaf in below):
        form = line(node, below, facts_of, constant)
        if isinstance(form, str):
            candidates += []
        else:
            candidates += [form[::-1]]
    if candidates:
        return *min(candidates, key=lambda pair: (isinstance(pair[0], Smooth), pair[0].weak > 0)), None
    atom = atoms.of(node)
    if atom is not None and atom.extreme > 0 and not node.shape:
        return Largest.of(), None, None
    if isinstance(node, ir.Reduce) and not node.shape:
        whole = of(node, (node.body,), facts_of, constant)
        if isinstance(whole, str):
            return whole
        return (whole, None, node)
    return reason


def refusal(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> str:
    """Why a non-smooth node has no envelope."""
    reason = outer_function(node, constant)
    if isinstance(reason, str):
        return reason
    return "its envelope is of no use to the algorithm"


def leaves(node: ir.Expr, constant: Callable[[ir.Expr], float | None], *, deep: bool) -> list[ir.Expr]:
    """What ``node`` is composed of by piecewise linear-quadratic operations, down to where they bend
    last, or one deep."""
    below: dict[int, ir.Expr] = {}
    stack = [node]
    while stack:
        part = stack.pop()
        if constant(part) is not None:
            continue
        if (
            isinstance(part, ir.Apply)
            and _bends(part) is not None
            and (part is node or deep and _composed(part))
        ):
            stack.extend(reversed(part.args))
        else:
            below[id(part)] = part
    return list(below.values())


def arguments(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> list[ir.Expr]:
    """Expressions of which alone ``node`` may be a function with a prox: the array below a norm, the
    deepest, the nearest."""
    candidates: list[ir.Expr] = []
    for deep in (True, False):
        below = leaves(node, constant, deep=deep)
        if len(below) == 1 and below[0] is not node:
            candidates += _array(below[0], constant) + below
        elif below == [node]:
            candidates += _array(node, constant)
    return list({id(a): a for a in candidates}.values())


def _array(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> list[ir.Expr]:
    """The array that a norm or a sum is of, an affine function of which the node may be."""
    while isinstance(node, ir.Apply) and _bends(node) is False and not node.shape:
        varying = [a for a in node.args if constant(a) is None]
        if len(varying) != 1:
            return []
        node = varying[0]
    of_array = isinstance(node, ir.Apply) and not node.shape and bool(node.args) and bool(node.args[0].shape)
    if of_array and isinstance(node, ir.Apply):
        return [node.args[0]]
    return []


def _composed(part: ir.Expr) -> bool:
    """A kink further down, by operations of piecewise linear-quadratic functions alone."""
    stack = [part]
    while stack:
        node = stack.pop()
        bends = _bends(node)
        if bends:
            return True
        if bends is False:
            stack.extend(node.children)
    return False


def _bends(node: ir.Expr) -> bool | None:
    """True for an operation that is polynomial on several pieces, False for a sum, product or
    quotient; None for any other."""
    atom = atoms.of(node)
    if atom is None or not (
        atom.bent or isinstance(atom, ScalarAtom) and atom.linear([True, *[False] * (atom.min_count - 1)])
    ):
        return None
    return atom.bent
