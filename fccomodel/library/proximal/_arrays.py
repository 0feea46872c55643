"""The rule that gives the prox of a scalar function of a whole array."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.piecewise import PiecewiseLQ
from fccomodel.library.proximal._affine import AffineForm, affine, flat_terms
from fccomodel.library.proximal._base import FactsOf, Proximal
from fccomodel.library.proximal._numbers import NoProx, entrywise, literals, scalar, summed
from fccomodel.library.proximal.balls import Norm
from fccomodel.library.proximal.logsumexp import LogSumExp
from fccomodel.library.proximal.operations import Composed, Perturbed, Scaled, Separable, Tilted
from fccomodel.library.proximal.piecewise import Piecewise
from fccomodel.library.proximal.radial import Radial


def whole(expr: ir.Expr, hole: ir.Hole, facts: FactsOf) -> Proximal:
    """The prox of a scalar function of an array.

    It may be a norm, a sum over entries or the like of an affine argument, scaled, tilted or
    perturbed.
    """
    rank, size = len(hole.shape), _size(hole.shape)
    part, rest = _quadratic_part(flat_terms(expr), hole, size)
    if abs(part.constant) == inf:
        raise NoProx("a constant that the size of the argument decides")
    if not rest:
        square = PiecewiseLQ(points=((0.0, 0.0),), left=part.curvature, right=part.curvature)
        function: Proximal = Separable.of(Piecewise.of(square), size, rank)
    else:
        function = _norms(rest, hole, rank, size, facts)
        if part.curvature:
            function = Perturbed.of(function, part.curvature)
    if part.tilt:
        function = Tilted.of(function, part.tilt)
    if part.constant:
        return Scaled.of(function, 1.0, part.constant)
    return function


@dataclass
class _Quadratic:
    """curvature/2 |u|^2 + tilt (sum of u) + constant."""

    curvature: float = 0.0
    tilt: float = 0.0
    constant: float = 0.0


def _quadratic_part(
    terms: list[tuple[float, ir.Expr]], hole: ir.Hole, size: float
) -> tuple[_Quadratic, list[tuple[float, ir.Expr]]]:
    """The sum of those terms that are quadratic, and the other terms with their factors."""
    part = _Quadratic()
    rest: list[tuple[float, ir.Expr]] = []
    for factor, term in terms:
        assert not isinstance(term, ir.Hole)
        if isinstance(term, ir.Const):
            part.constant += factor * term.value
            continue
        form = None
        if isinstance(term, ir.Apply) and term.op in ("sum", "mean", "sumsq"):
            form = affine(term.args[0], (hole,))
        if form is None or not isinstance(term, ir.Apply):
            rest.append((factor, term))
            continue
        a, b = form.coefficients[0], form.constant
        if term.op == "mean":
            times = factor / size
        else:
            times = factor
        if term.op == "sumsq":
            part.curvature += 2 * times * a * a
            part.tilt += 2 * times * a * b
            if b:
                part.constant += times * b * b * size
            else:
                part.constant += 0.0
        else:
            part.tilt += times * a
            if b:
                part.constant += times * b * size
            else:
                part.constant += 0.0
    return part, rest


def _norms(
    terms: list[tuple[float, ir.Expr]], hole: ir.Hole, rank: int, size: float, facts: FactsOf
) -> Proximal:
    """The prox of positive multiples of one function; sums over entries are joined into one
    function."""
    sums = [(f, t) for f, t in terms if isinstance(t, ir.Apply) and t.op in ("sum", "mean")]
    if sums:
        if len(sums) < len(terms):
            raise NoProx("a sum over entries plus another function of the same array: no rule adds them")
        number = ir.Hole(name=hole.name, span=hole.span)
        parts = [
            (f / size if t.op == "mean" else f, entrywise(t.args[0], hole, number))
            for f, t in sums
            if isinstance(t, ir.Apply)
        ]
        if any(f == 0 for f, _ in parts):
            raise NoProx("a mean over a number of entries that is not known")
        return Separable.of(scalar(summed(parts), number, facts), size, rank)
    (factor, term), *more_terms = terms
    if (
        isinstance(term, ir.Apply)
        and factor > 0
        and not more_terms
        and (norm := _named(term, hole)) is not None
    ):
        if factor == 1:
            return norm
        return Scaled.of(norm, factor)
    return _radial(summed(terms), hole, rank, facts)


def _named(term: ir.Apply, hole: ir.Hole) -> Proximal | None:
    """The prox of a norm, a log-sum-exp, ... of an affine argument, or None for anything else."""
    form = affine(term.args[0], (hole,))
    if form is None or not form.coefficients[0]:
        return None
    inner: Proximal | None = None
    atom = atoms.of(term)
    ball = atom.ball if isinstance(atom, atoms.ArrayAtom) else None
    if ball is not None:
        if isinstance(atom, atoms.ArrayAtom) and atom.in_groups:
            size = literals(term.args[-1])
        else:
            size = 0.0
        if size is None:
            inner = None
        else:
            inner = Norm.of(ball, hole.shape, int(size))
    elif term.op == "logsumexp":
        inner = LogSumExp.of()
    if inner is None:
        return None
    if form == AffineForm(coefficients=(1.0,), constant=0.0):
        return inner
    return Composed.of(inner, form.coefficients[0], form.constant)


def _radial(expr: ir.Expr, hole: ir.Hole, rank: int, facts: FactsOf) -> Proximal:
    """The prox of phi(|u|) with phi(|.|) convex or weakly convex on the reals."""
    number = ir.Hole(name=hole.name, span=hole.span)
    length: ir.Expr = ir.Apply(op="abs", args=(number,), span=hole.span)
    images: dict[int, ir.Expr] = {}
    for node in ir.walk(expr):
        atom = atoms.of(node)
        if isinstance(atom, atoms.ArrayAtom) and not atom.in_groups:
            ball = atom.ball
        else:
            ball = None
        if ball is not None and ball.kind == "ball" and node.children[0] is hole:
            images[id(node)] = length
        elif isinstance(node, ir.Apply) and node.op == "sumsq" and node.args[0] is hole:
            images[id(node)] = ir.Apply(op="square", args=(number,), span=node.span)
        elif isinstance(node, ir.Apply) and not node.shape:
            if any(id(a) not in images for a in node.args):
                raise NoProx(f"`{node.op}` of this array: no rule for it")
            images[id(node)] = ir.Apply(
                op=node.op, args=tuple(images[id(a)] for a in node.args), span=node.span
            )
        elif isinstance(node, ir.Const):
            images[id(node)] = node
    if id(expr) not in images:
        raise NoProx("no rule for this function of an array")
    return Radial.of(scalar(images[id(expr)], number, facts), rank)


def _size(shape: ir.Shape) -> float:
    total = 1.0
    for n in shape:
        total *= n if isinstance(n, int) else inf
    return total
