"""Constants leave homogeneous functions and reductions, and signs leave even functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.library import atoms, reductions
from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.linear import Factor, LinearTerm, common, joined, terms, without


def _atom(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    """The identity for an atom, in all arguments that may vary together.

    The other summands of an affine argument of a whole variable are divided by its factor.
    """
    atom = atoms.of(node)
    if atom is None or atom.homogeneous is None and not atom.even or not isinstance(node, ir.Apply):
        return None
    moving = [k for k, name in enumerate(atom.names(len(node.args))) if name not in atom.parameters]
    listed = [terms(node.args[k]) for k in moving]
    if atom.homogeneous:
        factors = _positive(_shared(listed, known), known, even=atom.even)
    else:
        factors = ()
    turned = atom.even and _reverses_sign([t for parts in listed for t in parts])
    if not factors and not turned:
        return None
    args = list(node.args)
    for k, parts in zip(moving, listed, strict=True):
        args[k] = joined((_divided(t, factors, turned) for t in parts), args[k].span)
    new = replace(node, args=tuple(args))
    powers = tuple(Factor(f.op, _power(f.by, atom.homogeneous or 0, known)) for f in factors)
    return LinearTerm(core=new, factors=powers, place=node.span).expr


def _shared(listed: Sequence[Sequence[LinearTerm]], known: Knowledge) -> tuple[Factor, ...]:
    """The factors that every term has, zeros aside; for ``a x - c`` with a whole variable x, those
    of x."""
    every = [t for parts in listed for t in parts if not (isinstance(t.core, ir.Const) and t.core.value == 0)]
    varying = [t for t in every if ir.variables_of(t.core)]
    if len(listed) == len(varying) == 1 and isinstance(varying[0].core, ir.Var):
        if all(_nonzero(f, known) for f in varying[0].factors):
            return varying[0].factors
    if varying:
        return common([t.factors for t in every])
    return ()


def _nonzero(factor: Factor, known: Knowledge) -> bool:
    """Whether a factor is known to differ from 0."""
    return not known.where(factor.by).has(0)


def _positive(factors: tuple[Factor, ...], known: Knowledge, *, even: bool) -> tuple[Factor, ...]:
    """The factors of known sign; for an even function, all factors."""
    return tuple(f for f in factors if even or known.where(f.by).lo >= 0)


def _reverses_sign(parts: Sequence[LinearTerm]) -> bool:
    """Whether the sign should be reversed: every term is negative, or a whole variable is
    subtracted."""
    varying = [t for t in parts if ir.variables_of(t.core)]
    alone = len(varying) == 1 and isinstance(varying[0].core, ir.Var)
    return bool(varying) and all(t.sign < 0 for t in (varying if alone else parts))


def _divided(term: LinearTerm, factors: tuple[Factor, ...], turned: bool) -> LinearTerm:
    """The term divided by the factors."""
    return replace(term, sign=-term.sign if turned else term.sign, factors=without(term.factors, factors))


def _power(by: ir.Expr, degree: int, known: Knowledge) -> ir.Expr:
    """The factor that leaves a function that is homogeneous of degree 1 or 2: |by| or its square."""
    if isinstance(by, ir.Const):
        return replace(by, value=by.value**degree)
    if degree == 1:
        if known.where(by).lo >= 0:
            return by
        return make("abs", by, span=by.span)
    return make("square", by, span=by.span)


def _linear(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    """The identity for a scalar that is linear in one array."""
    atom = atoms.of(node)
    if not isinstance(atom, atoms.ArrayAtom) or not isinstance(node, ir.Apply) or node.shape:
        return None
    for k, arg in enumerate(node.args):
        if (
            atom.linear([j == k for j in range(len(node.args))])
            and (common_part := _common_part(arg)) is not None
        ):
            sign, factors, rest = common_part
            args = (*node.args[:k], rest, *node.args[k + 1 :])
            return LinearTerm(core=replace(node, args=args), sign=sign, factors=factors, place=node.span).expr
    return None


def _common_part(arg: ir.Expr) -> tuple[int, tuple[Factor, ...], ir.Expr] | None:
    """The common sign and factors of an argument's terms, and the remaining argument; None if there
    are none."""
    parts = terms(arg)
    sign = -1 if all(t.sign < 0 for t in parts) else 1
    factors = common([t.factors for t in parts])
    if sign > 0 and not factors:
        return None
    left = (replace(t, sign=sign * t.sign, factors=without(t.factors, factors)) for t in parts)
    return sign, factors, joined(left, arg.span)


def _reduction(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    """The identity for a reduction: factors that all terms of its body have leave it."""
    if not isinstance(node, ir.Reduce) or node.shape:
        return None
    kind = reductions.of(node)
    if not kind.homogeneous or kind.condition:
        return None
    common_part = _common_part(node.body)
    if common_part is None:
        return None
    linear = kind.linear
    sign, factors, rest = common_part
    if linear:
        positive_factors = factors
    else:
        positive_factors = _positive(factors, known, even=False)
    if positive_factors != factors or sign < 0 and not linear:
        if not positive_factors:
            return None
        parts = terms(node.body)
        sign = 1
        divided = (replace(t, factors=without(t.factors, positive_factors)) for t in parts)
        rest = joined(divided, node.body.span)
    return LinearTerm(
        core=replace(node, body=rest), sign=sign, factors=positive_factors, place=node.span
    ).expr


homogeneous_atom = Identity(
    name="homogeneous_atom",
    formula="f(c u) = c^p f(u) for c >= 0 and f homogeneous of degree p;  f(-u) = f(u) for even f",
    apply=_atom,
)
linear_atom = Identity(
    name="linear_atom", formula="dot(c u, v) = c dot(u, v);  sum(c u) = c sum(u)", apply=_linear
)
homogeneous_reduction = Identity(
    name="homogeneous_reduction",
    formula="E(c e) = c E(e), sum and mean alike;  max(c e) = c max(e) for c >= 0",
    apply=_reduction,
)
