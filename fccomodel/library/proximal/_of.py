"""Recognition: the rule that gives the prox of an expression."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, with_children
from fccomodel.library import reductions
from fccomodel.library.atoms.base import REALS, Interval
from fccomodel.library.proximal._arrays import whole
from fccomodel.library.proximal._base import FactsOf, Proximal
from fccomodel.library.proximal._numbers import Constants, NoProx, entries, literals, on_line, scalar, several
from fccomodel.library.proximal.largest import Largest


def of(
    expr: ir.Expr,
    arguments: Sequence[ir.Expr],
    facts: FactsOf,
    constants: Constants = literals,
    where: Interval = REALS,
) -> Proximal | str:
    """The expression as a function of ``arguments`` (nodes of it) with its prox, or the reason why
    none is known.

    ``facts`` gives the curvature of a function of one number: ``structure.facts_of``. ``constants``
    gives the number of a subexpression without arguments (None: unknown). Several scalar arguments
    are the entries of one vector; a single array argument is taken whole; a reduction over the
    argument takes its elements as one. A single number may be known to lie in ``where``: the
    function is restricted to it, if only that makes it convex.
    """
    try:
        if isinstance(expr, ir.Reduce) and len(arguments) == 1 and expr.body is arguments[0]:
            return reduction(expr, constants)
        closed, holes = close(expr, arguments, constants)
        if all(not hole.shape for hole in holes):
            if len(holes) == 1:
                return scalar(closed, holes[0], facts, where)
            return several(closed, holes, facts)
        if len(holes) == 1:
            if closed.shape:
                return entries(closed, holes[0], facts)
            return whole(closed, holes[0], facts)
    except NoProx as reason:
        return str(reason)
    return "a function of several arrays together"


def close(
    expr: ir.Expr, arguments: Sequence[ir.Expr], constants: Constants
) -> tuple[ir.Expr, tuple[ir.Hole, ...]]:
    """The expression over holes u1, u2, ... for its arguments, with numbers for the rest."""
    holes = tuple(ir.Hole(name=f"u{k}", shape=a.shape, span=a.span) for k, a in enumerate(arguments, 1))
    images: dict[int, ir.Expr] = {id(a): h for a, h in zip(arguments, holes, strict=True)}
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in images:
            stack.pop()
            continue
        value = constants(node)
        if value is not None:
            images[id(node)] = ir.Const(value=value, span=node.span)
        elif not isinstance(node, ir.Apply):
            raise NoProx("it depends on more than its arguments and numbers")
        elif missing := [c for c in node.children if id(c) not in images]:
            stack += missing
            continue
        else:
            images[id(node)] = with_children(node, tuple(images[id(c)] for c in node.children))
        stack.pop()
    return images[id(expr)], holes


def line(
    expr: ir.Expr, arguments: Sequence[ir.Expr], facts: FactsOf, constants: Constants = literals
) -> tuple[ir.Expr, Proximal] | str:
    """The linear form and the function of it, for an expression that depends on one linear form
    a.u; else why not."""
    try:
        reduced = on_line(*close(expr, arguments, constants))
        if reduced is None:
            return "it depends on more than one linear form of its arguments"
        (part, hole), coefficients = reduced
        function = scalar(part, hole, facts)
    except NoProx as reason:
        return str(reason)
    form: ir.Expr | None = None
    for c, argument in zip(coefficients, arguments, strict=True):
        if abs(c) == 1:
            term = argument
        else:
            term = make("mul", const(abs(c)), argument, span=argument.span)
        if form is None:
            if c > 0:
                form = term
            else:
                form = make("neg", term, span=argument.span)
        elif c:
            form = make("add" if c > 0 else "sub", form, term, span=expr.span)
    assert form is not None
    return form, function


def reduction(node: ir.Reduce, constants: Constants) -> Proximal:
    """The prox of a maximum or tail mean over all elements of a set."""
    rank = len(node.binders)
    kind = reductions.of(node)
    if not kind.coupling:
        raise NoProx(f"`{node.kind}` over a set: no rule for it")
    level = 1.0 if kind.option is None else constants(node.options[kind.option.name])
    if level is None:
        raise NoProx("its tail is not a number here")
    return Largest.of(kind, level, rank)
