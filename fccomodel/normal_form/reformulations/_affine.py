"""Affine functions of several expectations over one draw, as arguments of functions that are not affine."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, TypeGuard

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import substitute
from fccomodel.library import atoms, reductions
from fccomodel.library.linear import shortened
from fccomodel.library.reductions.expectation import E


class _Leaf(NamedTuple):
    """One term of an affine function: ``sign * factors * expr``.

    factors  (operation, constant factor) from the inside to the outside
    """

    sign: int
    factors: tuple[tuple[str, ir.Expr], ...]
    expr: ir.Expr

    def of(self, expr: ir.Expr) -> ir.Expr:
        """The sign and the factors applied to another expression."""
        for op, factor in self.factors:
            expr = make(op, expr, factor, span=expr.span)
        if self.sign > 0:
            return expr
        return make("neg", expr, span=expr.span)


def merged(node: ir.Expr) -> ir.Expr | None:
    """The node with as few expectations as possible in each affine argument, or None if nothing changes."""
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
    """The reduction with its body merged, or None if nothing changes."""
    body = argument(node.body)
    if body is node.body:
        return None
    return dataclasses.replace(node, body=body)


def argument(expr: ir.Expr) -> ir.Expr:
    """An affine function of expectations with one expectation per draw.

    An expectation inside another one is merged into it.
    """
    if not _has_expectation(expr):
        return expr
    if not expr.shape:
        expr = shortened(expr, _fixed)
    original = _leaves(expr, 1, ())
    leaves = [leaf._replace(expr=_flat(leaf.expr)) for leaf in original]
    groups: list[list[_Leaf]] = []
    rest: list[_Leaf] = []
    for leaf in leaves:
        if not _is_expectation(leaf.expr):
            rest.append(leaf)
            continue
        group = next((g for g in groups if _renamed(leaf.expr, g[0].expr) is not None), None)
        if group is None:
            groups.append([leaf])
        else:
            group.append(leaf)
    unchanged = all(new.expr is old.expr for new, old in zip(leaves, original, strict=True))
    if unchanged and all(len(group) == 1 for group in groups):
        return expr
    terms = [g[0].of(g[0].expr) if len(g) == 1 else _one(g, expr) for g in groups]
    return _sum([*terms, *(leaf.of(leaf.expr) for leaf in rest)], expr)


def _has_expectation(expr: ir.Expr) -> bool:
    """Whether a mean over draws or rows is in the expression. Each node remembers it."""
    if "Reduce" not in ir.contents(expr):
        return False
    memo = "_has_expectation"
    if memo not in vars(expr):
        vars(expr)[memo] = any(_is_expectation(node) for node in ir.walk(expr))
    return vars(expr)[memo]


def _leaves(expr: ir.Expr, sign: int, factors: tuple[tuple[str, ir.Expr], ...]) -> list[_Leaf]:
    """The terms of an affine function, which has this sign and these factors around it."""
    if expr.shape:
        signed = None
    else:
        signed = atoms.signed(expr)
    if signed is not None:
        return [leaf for part_sign, part in signed for leaf in _leaves(part, sign * part_sign, factors)]
    match expr:
        case ir.Apply(op="mul", args=(a, b)) if _fixed(a) != _fixed(b):
            if _fixed(a):
                factor, varying = (a, b)
            else:
                factor, varying = (b, a)
            return _leaves(varying, sign, (("mul", factor), *factors))
        case ir.Apply(op="div", args=(a, b)) if _fixed(b):
            return _leaves(a, sign, (("div", b), *factors))
    return [_Leaf(sign, factors, expr)]


def _affine(node: ir.Apply) -> bool:
    """Whether the node is a sum, a multiple, or a quotient by a fixed number."""
    atom = atoms.of(node)
    return isinstance(atom, atoms.ScalarAtom) and atom.linear([not _fixed(a) for a in node.args])


def _fixed(node: ir.Expr) -> bool:
    """Whether the value is known before any draw and without variables."""
    return ir.contents(node).isdisjoint({"Reduce", "Var", "NetCall", "LetRef"})


def _flat(expr: ir.Expr) -> ir.Expr:
    """``E[z] (a E[j] X + b)`` as ``E[z, j] (a X + b)`` if the draw of j does not depend on z."""
    if not _is_expectation(expr) or expr.shape:
        return expr
    leaves = _leaves(expr.body, 1, ())
    inner = [leaf.expr for leaf in leaves if isinstance(leaf.expr, ir.Reduce)]
    others = [leaf.expr for leaf in leaves if not inner or leaf.expr is not inner[0]]
    if len(inner) != 1 or not _is_expectation(inner[0]) or any(map(_reduces, others)):
        return expr
    (below,) = inner
    if below.condition is not None and not set(expr.binders).isdisjoint(ir.free_binders(below.condition)):
        return expr
    bodies = [leaf.of(below.body if leaf.expr is below else leaf.expr) for leaf in leaves]
    conditions = [c for c in (expr.condition, below.condition) if c is not None]
    if len(conditions) == 2:
        conditions = [make("and", *conditions)]
    return dataclasses.replace(
        expr,
        kind=E.name,
        binders=(*expr.binders, *below.binders),
        body=_sum(bodies, expr.body),
        condition=conditions[0] if conditions else None,
    )


def _is_expectation(node: ir.Expr) -> TypeGuard[ir.Reduce]:
    """Whether the node is a mean over draws or over the rows of tables."""
    if not isinstance(node, ir.Reduce) or not reductions.of(node).average or node.options:
        return False
    return node.kind == E.name or all(isinstance(b.domain, ir.RowSet) for b in node.binders)


def _reduces(node: ir.Expr) -> bool:
    """Whether a reduction, or a name that may stand for one, is in the expression."""
    return any(isinstance(n, ir.Reduce | ir.LetRef) for n in ir.walk(node))


def _renamed(expr: ir.Expr, to: ir.Expr) -> ir.Reduce | None:
    """An expectation with the binders of another one over the same draw, or None if the draws differ."""
    assert isinstance(expr, ir.Reduce) and isinstance(to, ir.Reduce)
    if len(expr.binders) != len(to.binders) or expr.shape != to.shape:
        return None
    if (expr.condition is None) != (to.condition is None):
        return None
    for a, b in zip(expr.binders, to.binders, strict=True):
        if a.domain is not b.domain or isinstance(a.domain, ir.Distribution):
            return None
    names = {a: ir.Element(binder=b) for a, b in zip(expr.binders, to.binders, strict=True)}
    if expr.condition is not None and to.condition is not None:
        if not ir.same(substitute(expr.condition, names), to.condition):
            return None
    return dataclasses.replace(
        expr, binders=to.binders, condition=to.condition, body=substitute(expr.body, names)
    )


def _one(group: list[_Leaf], expr: ir.Expr) -> ir.Expr:
    """One expectation for the sum of several over the same draw."""
    first = group[0].expr
    bodies = []
    for leaf in group:
        renamed = _renamed(leaf.expr, first)
        assert renamed is not None
        bodies.append(leaf.of(renamed.body))
    return dataclasses.replace(first, body=_sum(bodies, expr), span=expr.span)  # type: ignore[call-arg]


def _sum(terms: list[ir.Expr], like: ir.Expr) -> ir.Expr:
    """The sum of the terms, left to right, at the place of ``like``."""
    total = terms[0]
    for term in terms[1:]:
        total = make("add", total, term, span=like.span)
    return total
