"""The rules that give the prox of functions of one number and of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isclose

from fccomodel.core import ir
from fccomodel.core.rewrite import with_children
from fccomodel.library import atoms
from fccomodel.library.atoms.base import REALS, Interval
from fccomodel.library.piecewise import downward_kink, of_expression
from fccomodel.library.proximal._affine import affine, flat_terms, quadratic
from fccomodel.library.proximal._base import FactsOf, Proximal
from fccomodel.library.proximal.largest import Largest
from fccomodel.library.proximal.maxaffine import MaxAffine
from fccomodel.library.proximal.operations import Mapped, Perturbed, Scaled, SumOverBlocks, Tilted
from fccomodel.library.proximal.piecewise import Piecewise
from fccomodel.library.proximal.smooth import Smooth

Constants = Callable[[ir.Expr], float | None]


class NoProx(Exception):
    """The reason why a function has no computable prox here."""


def literals(node: ir.Expr) -> float | None:
    """The value of a number in the text, or None."""
    if isinstance(node, ir.Const) and not node.shape:
        return node.value
    return None


# --------------------------------------------------------------------------------------- one number
def scalar(expr: ir.Expr, hole: ir.Hole, facts: FactsOf, where: Interval = REALS) -> Proximal:
    """The prox of a function of one number: exact if piecewise linear-quadratic, else by Newton's
    method."""
    graph = of_expression(expr, hole, literals)
    if graph is not None:
        return Piecewise.of(graph)
    kink = downward_kink(expr, hole, literals)
    if kink is not None:
        raise NoProx(
            f"its kink at {kink:g} points downward: not weakly convex, so no lambda makes the prox one point"
        )
    smooth = Smooth.of(expr, hole, facts)
    if isinstance(smooth, str) and where != REALS:
        smooth = Smooth.of(expr, hole, facts, where)
    if isinstance(smooth, str):
        raise NoProx(smooth)
    return smooth


def entries(expr: ir.Expr, hole: ir.Hole, facts: FactsOf) -> Proximal:
    """The prox of an array of values, one function of one number in each entry."""
    number = ir.Hole(name=hole.name, span=hole.span)
    return scalar(entrywise(expr, hole, number), number, facts)


def entrywise(expr: ir.Expr, hole: ir.Hole, number: ir.Hole) -> ir.Expr:
    """The expression of one entry: the array hole is replaced by a number."""
    images: dict[int, ir.Expr] = {id(hole): number}
    for node in ir.walk(expr):
        if isinstance(node, ir.Apply):
            images[id(node)] = ir.Apply(
                op=node.op, args=tuple(images[id(a)] for a in node.args), span=node.span
            )
        else:
            images.setdefault(id(node), node)
    return images[id(expr)]


# ---------------------------------------------------------------------------------- several numbers
def several(expr: ir.Expr, holes: tuple[ir.Hole, ...], facts: FactsOf) -> Proximal:
    """The prox of a function of several numbers, the entries of a vector.

    Terms without common arguments form blocks.
    """
    index = {id(h): k for k, h in enumerate(holes)}
    tilt, constant = [0.0] * len(holes), 0.0
    terms: list[tuple[float, ir.Expr, frozenset[int]]] = []
    for factor, term in flat_terms(expr):
        form = affine(term, holes)
        if form is not None:
            tilt = [a + factor * c for a, c in zip(tilt, form.coefficients, strict=True)]
            constant += factor * form.constant
        else:
            used = frozenset(index[id(n)] for n in ir.walk(term) if id(n) in index)
            terms.append((factor, term, used))
    parts: list[tuple[tuple[int, ...], Proximal]] = []
    for group in _components(terms):
        places = tuple(sorted(frozenset().union(*(u for _, _, u in group))))
        parts.append(
            (places, _together([(f, t) for f, t, _ in group], tuple(holes[k] for k in places), facts))
        )
    unused = [k for k in range(len(holes)) if not any(k in used for used, _ in parts)]
    parts += [((k,), scalar(ir.Const(value=0.0), holes[k], facts)) for k in unused]
    if len(parts) == 1 and parts[0][1].rank == 1 and len(parts[0][0]) == len(holes):
        function = parts[0][1]
    else:
        function = SumOverBlocks.of(parts)
    if any(tilt):
        function = Tilted.of(function, tuple(tilt))
    if constant:
        return Scaled.of(function, 1.0, constant)
    return function


def _components(
    terms: list[tuple[float, ir.Expr, frozenset[int]]],
) -> list[list[tuple[float, ir.Expr, frozenset[int]]]]:
    """Groups of terms that are connected by common arguments."""
    groups: list[list[tuple[float, ir.Expr, frozenset[int]]]] = []
    for term in terms:
        touching = [g for g in groups if any(term[2] & joined[2] for joined in g)]
        groups = [g for g in groups if g not in touching] + [[*(t for g in touching for t in g), term]]
    return groups


def summed(terms: Sequence[tuple[float, ir.Expr]]) -> ir.Expr:
    """The sum of terms with their factors."""
    total: ir.Expr | None = None
    for factor, term in terms:
        if factor == 1:
            part = term
        else:
            part = ir.Apply(op="mul", args=(ir.Const(value=factor), term), span=term.span)
        if total is None:
            total = part
        else:
            total = ir.Apply(op="add", args=(total, part), span=term.span)
    assert total is not None
    return total


def _together(terms: list[tuple[float, ir.Expr]], holes: tuple[ir.Hole, ...], facts: FactsOf) -> Proximal:
    """The prox of connected terms: of one linear form, or a maximum of affine pieces, possibly plus
    q/2 |u|^2."""
    if len(holes) == 1:
        return scalar(summed(terms), holes[0], facts)
    line = on_line(summed(terms), holes)
    if line is not None:
        (expr, hole), coefficients = line
        return _mapped(scalar(expr, hole, facts), [coefficients], [0.0])
    squares = [quadratic(term, holes) for _, term in terms]
    if any(squares) and not all(squares):
        pairs = list(zip(terms, squares, strict=True))
        q = [sum(f * s[k] for (f, _), s in pairs if s) for k in range(len(holes))]
        if any(not isclose(q[0], factor_of_square) for factor_of_square in q):
            raise NoProx("the squares added to it have different factors")
        return Perturbed.of(_together([t for t, s in pairs if not s], holes, facts), q[0])
    if len(terms) > 1:
        raise NoProx("functions of the same arguments are added, and no rule adds them")
    ((factor, term),) = terms
    if factor <= 0:
        raise NoProx("a function of several arguments is subtracted: not known to be weakly convex")
    return _scaled(_atom(term, holes), factor)


def _scaled(function: Proximal, factor: float) -> Proximal:
    if factor == 1:
        return function
    return Scaled.of(function, factor)


def _mapped(inner: Proximal, rows: Sequence[Sequence[float]], b: Sequence[float]) -> Proximal:
    function = Mapped.of(inner, rows, b)
    if isinstance(function, str):
        raise NoProx(function)
    return function


def on_line(
    expr: ir.Expr, holes: tuple[ir.Hole, ...]
) -> tuple[tuple[ir.Expr, ir.Hole], tuple[float, ...]] | None:
    """The expression as a function of one number s = a.u, and a; None if several linear forms
    enter."""
    number, direction = ir.Hole(name="s", span=expr.span), None
    images: dict[int, ir.Expr] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in images:
            stack.pop()
            continue
        form = affine(node, holes)
        if form is None:
            if missing := [c for c in node.children if id(c) not in images]:
                stack += missing
                continue
            images[id(node)] = with_children(node, tuple(images[id(c)] for c in node.children))
        elif not any(form.coefficients):
            images[id(node)] = ir.Const(value=form.constant, span=node.span)
        else:
            direction = direction or form.coefficients
            factor = _multiple(form.coefficients, direction)
            if factor is None:
                return None
            images[id(node)] = _affine_expr(number, factor, form.constant)
        stack.pop()
    if direction is None:
        return None
    return ((images[id(expr)], number), direction)


def _multiple(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The factor c with a = c b, or None."""
    k = max(range(len(b)), key=lambda j: abs(b[j]))
    factor = a[k] / b[k]
    if all(isclose(p, factor * q, rel_tol=1e-12, abs_tol=1e-300) for p, q in zip(a, b, strict=True)):
        return factor
    return None


def _affine_expr(hole: ir.Hole, factor: float, constant: float) -> ir.Expr:
    scaled: ir.Expr
    if factor == 1:
        scaled = hole
    else:
        scaled = ir.Apply(op="mul", args=(ir.Const(value=factor), hole), span=hole.span)
    if constant == 0:
        return scaled
    return ir.Apply(op="add", args=(scaled, ir.Const(value=constant)), span=hole.span)


def _atom(term: ir.Expr, holes: tuple[ir.Hole, ...]) -> Proximal:
    """The prox of a maximum of affine pieces."""
    atom = atoms.of(term)
    if not isinstance(term, ir.Apply) or atom is None or atom.extreme <= 0:
        if isinstance(term, ir.Apply):
            name = term.op
        else:
            name = type(term).__name__
        raise NoProx(f"`{name}` of several arguments: no rule for it")
    forms = [affine(arg, holes) for arg in term.args]
    if not all(forms):
        raise NoProx("a maximum of pieces that are not affine in its arguments")
    rows = [f.coefficients for f in forms if f]
    b = [f.constant for f in forms if f]
    unit = [tuple(float(j == k) for j in range(len(holes))) for k in range(len(holes))]
    if not any(b) and sorted(rows, reverse=True) == unit:
        return Largest.of()
    function: Proximal | str = Mapped.of(Largest.of(), rows, b)
    if isinstance(function, str):
        function = MaxAffine.of(rows, b)
    if isinstance(function, str):
        raise NoProx(function)
    return function
