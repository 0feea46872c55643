"""Affine functions of several expectations over one draw, where they stand as an argument of a
function that is not affine."""

from __future__ import annotations

import dataclasses
from typing import TypeGuard

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import substitute
from fccomodel.library import atoms, reductions
from fccomodel.library.reductions.expectation import E


def merged(node: ir.Expr) -> ir.Expr | None:
    """The node with each argument that is an affine function of expectations as few of them as can be;
    None: nothing to do."""
    if isinstance(node, ir.Reduce):
        if reductions.of(node).additive:
            return None
        return _body(node)
    if not isinstance(node, ir.Apply) or _affine(node):
        return None
    new = tuple(argument(child) for child in node.args)
    if all(a is b for a, b in zip(new, node.args, strict=True)):
        return None
    return dataclasses.replace(node, args=new)


def _body(node: ir.Reduce) -> ir.Expr | None:
    body = argument(node.body)
    if body is node.body:
        return None
    return dataclasses.replace(node, body=body)


def argument(expr: ir.Expr) -> ir.Expr:
    """An affine function of expectations with one expectation per draw, and those below an expectation
    drawn with it."""
    terms = [(sign, factors, _flat(leaf)) for sign, factors, leaf in _terms(expr, 1, ())]
    groups: list[list[tuple[int, tuple[tuple[str, ir.Expr], ...], ir.Reduce]]] = []
    rest: list[tuple[int, tuple[tuple[str, ir.Expr], ...], ir.Expr]] = []
    for sign, factors, leaf in terms:
        if not _is_expectation(leaf):
            rest.append((sign, factors, leaf))
            continue
        group = next((g for g in groups if _renamed(leaf, g[0][2]) is not None), None)
        if group is None:
            groups.append([(sign, factors, leaf)])
        else:
            group.append((sign, factors, leaf))
    unchanged = all(new is old for (_, _, new), (_, _, old) in zip(terms, _terms(expr, 1, ()), strict=True))
    if unchanged and all(len(group) == 1 for group in groups):
        return expr
    whole = [_scaled(*group[0]) if len(group) == 1 else _one(group, expr) for group in groups]
    total = whole[0]
    for term in (*whole[1:], *(_scaled(*term) for term in rest)):
        total = make("add", total, term, span=expr.span)
    return total


def _terms(
    expr: ir.Expr, sign: int, factors: tuple
) -> list[tuple[int, tuple[tuple[str, ir.Expr], ...], ir.Expr]]:
    """The leaves of an affine function: sign, constant factors from the inside, expression."""
    if not expr.shape:
        signed = atoms.signed(expr)
    else:
        signed = None
    if signed is not None:
        return [term for part_sign, part in signed for term in _terms(part, sign * part_sign, factors)]
    match expr:
        case ir.Apply(op="mul", args=(a, b)) if _fixed(a) != _fixed(b):
            return _terms(b if _fixed(a) else a, sign, (("mul", a if _fixed(a) else b), *factors))
        case ir.Apply(op="div", args=(a, b)) if _fixed(b):
            return _terms(a, sign, (("div", b), *factors))
    return [(sign, factors, expr)]


def _affine(node: ir.Apply) -> bool:
    """A sum, a multiple, a quotient by what is fixed."""
    atom = atoms.of(node)
    return isinstance(atom, atoms.ScalarAtom) and atom.linear([not _fixed(a) for a in node.args])


def _fixed(node: ir.Expr) -> bool:
    """Known before any draw and without variables."""
    return not any(isinstance(n, ir.Reduce | ir.Var | ir.NetCall | ir.LetRef) for n in ir.walk(node))


def _flat(leaf: ir.Expr) -> ir.Expr:
    """``E[z] (a E[j] X + b)`` as ``E[z, j] (a X + b)``, where the draw of j does not depend on z."""
    if not _is_expectation(leaf) or leaf.shape:
        return leaf
    terms = _terms(leaf.body, 1, ())
    inner = [e for _, _, e in terms if isinstance(e, ir.Reduce)]
    others = [e for _, _, e in terms if not inner or e is not inner[0]]
    outer = set(leaf.binders)
    if len(inner) != 1 or not _is_expectation(inner[0]) or any(map(_reduces, others)):
        return leaf
    (below,) = inner
    if below.condition is not None and not outer.isdisjoint(ir.free_binders(below.condition)):
        return leaf
    body = _sum([_scaled(s, f, below.body if e is below else e) for s, f, e in terms], leaf.body)
    both = [c for c in (leaf.condition, below.condition) if c is not None]
    if len(both) == 2:
        condition = make("and", *both)
    elif both:
        condition = both[0]
    else:
        condition = None
    return dataclasses.replace(
        leaf, kind=E.name, binders=(*leaf.binders, *below.binders), body=body, condition=condition
    )


def _is_expectation(node: ir.Expr) -> TypeGuard[ir.Reduce]:
    """A mean over draws, or over the rows of tables."""
    if not isinstance(node, ir.Reduce) or not reductions.of(node).average or node.options:
        return False
    return node.kind == E.name or all(isinstance(b.domain, ir.RowSet) for b in node.binders)


def _reduces(node: ir.Expr) -> bool:
    return any(isinstance(n, ir.Reduce | ir.LetRef) for n in ir.walk(node))


def _renamed(leaf: ir.Reduce, to: ir.Reduce) -> ir.Reduce | None:
    """An expectation over the same draw as another one, in the other's names; None where the draws differ."""
    if (
        len(leaf.binders) != len(to.binders)
        or (leaf.condition is None) != (to.condition is None)
        or leaf.shape != to.shape
    ):
        return None
    for a, b in zip(leaf.binders, to.binders, strict=True):
        if a.domain is not b.domain or isinstance(a.domain, ir.Distribution):
            return None
    names = {a: ir.Element(binder=b) for a, b in zip(leaf.binders, to.binders, strict=True)}
    if leaf.condition is None:
        condition = None
    else:
        condition = substitute(leaf.condition, names)
    if condition is not None and to.condition is not None and not ir.same(condition, to.condition):
        return None
    return dataclasses.replace(
        leaf, binders=to.binders, condition=to.condition, body=substitute(leaf.body, names)
    )


def _one(group: list[tuple[int, tuple[tuple[str, ir.Expr], ...], ir.Reduce]], expr: ir.Expr) -> ir.Expr:
    """The expectation of the sum of the bodies."""
    first = group[0][2]
    bodies = []
    for sign, factors, leaf in group:
        renamed = _renamed(leaf, first)
        assert renamed is not None
        bodies.append(_scaled(sign, factors, renamed.body))
    return dataclasses.replace(first, body=_sum(bodies, expr), span=expr.span)


def _sum(terms: list[ir.Expr], like: ir.Expr) -> ir.Expr:
    total = terms[0]
    for term in terms[1:]:
        total = make("add", total, term, span=like.span)
    return total


def _scaled(sign: int, factors: tuple[tuple[str, ir.Expr], ...], expr: ir.Expr) -> ir.Expr:
    for op, factor in factors:
        expr = make(op, expr, factor, span=expr.span)
    if sign > 0:
        return expr
    return make("neg", expr, span=expr.span)
