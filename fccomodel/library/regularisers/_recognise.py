"""Recognition of regularisers in an objective, and of regularisers whose sum has a known prox."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.identities import equal
from fccomodel.library.regularisers._registry import all, get
from fccomodel.library.regularisers.base import Recognised, Regulariser
from fccomodel.library.sums import Constant, factored, matched


def recognise(term: ir.Expr, variable: str, constant: Constant) -> Recognised | None:
    """A canonical term as a regulariser of the variable, or of its distance from a point; or None.

    The term is one atom of the variable alone, times and over numbers: ``lam * norm1(w)``,
    ``lam / 2 * sumsq(w - c)``, ``group_norm(w, 3)``. ``constant`` gives the value of an expression
    without variables, or None if it is not known.
    """
    factors = factored(term, constant)
    if factors is None or not factors[0] >= 0:
        return None
    factor, core = factors
    if core.shape:
        return None
    for regulariser in all().values():
        for form in regulariser.forms:
            match = matched(core, form, variable)
            if match is None:
                continue
            numbers = [constant(arg) for arg in match.rest]
            if None not in numbers and len(numbers) + 1 == len(regulariser.coefficients):
                values = (factor, *(n for n in numbers if n is not None))
                return _made(regulariser.name, variable, values, match.centre)
    return None


def combine(terms: Sequence[Recognised]) -> tuple[Recognised, ...]:
    """A sum of regularisers with as few terms as possible.

    Terms of one kind, variable and centre are added; terms whose sum is a regulariser become that one.
    """
    merged: list[tuple[Recognised, float]] = []
    for item in (part for term in terms for part in _parts(term)):
        value, *others = item.coefficients.values()
        k = next((k for k, (other, _) in enumerate(merged) if _alike(item, other, others)), None)
        if k is None:
            merged.append((item, value))
        else:
            merged[k] = merged[k][0], merged[k][1] + value
    added = []
    for item, value in merged:
        _, *others = item.coefficients.values()
        added.append(_made(item.name, item.variable, (value, *others), item.centre))
    for whole in all().values():
        if whole.sum_of:
            added = _named(whole.name, whole.sum_of, added)
    return tuple(added)


def _parts(term: Recognised) -> list[Recognised]:
    """The terms of a regulariser that is a sum, or the regulariser itself."""
    if not term.regulariser.sum_of:
        return [term]
    pairs = zip(term.regulariser.sum_of, term.coefficients.values(), strict=True)
    return [_made(name, term.variable, (value,), term.centre) for name, value in pairs]


def _alike(a: Recognised, b: Recognised, others: list[float]) -> bool:
    """Whether two terms can be added; ``others`` are a's coefficients after the first."""
    return (
        a.name == b.name
        and a.variable == b.variable
        and others == list(b.coefficients.values())[1:]
        and concentric(a, b)
    )


def concentric(a: Recognised, b: Recognised) -> bool:
    """Whether two regularisers have one centre."""
    return a.centre is b.centre or a.centre is not None and b.centre is not None and equal(a.centre, b.centre)


def _named(name: str, parts: tuple[str, ...], added: list[Recognised]) -> list[Recognised]:
    """The regularisers, with those of one variable replaced by their sum if they are the parts of it.

    name   name of the sum
    parts  names of the regularisers that it adds
    """
    result: list[Recognised] = []
    for item in added:
        beside = [r for r in added if r.variable == item.variable]
        complete = len(beside) == len(parts) and {r.name for r in beside} == set(parts)
        if not complete or not concentric(*beside[:2]):
            result.append(item)
        elif item is beside[0]:
            values = {r.name: next(iter(r.coefficients.values())) for r in beside}
            result.append(_made(name, item.variable, tuple(values[part] for part in parts), item.centre))
    return result


def in_turn(terms: Sequence[Recognised]) -> tuple[Recognised, ...] | None:
    """An order of regularisers in which their successive proxes give the prox of their sum, or None.

    Functions of the length alone come after positively homogeneous functions, and the square comes
    last; functions of groups come after functions of entries (Y. Yu, On decomposing the proximal map,
    NIPS 2013, theorems 1 and 4).
    """
    combined = combine(terms)
    if len(combined) < 2:
        return combined
    names = [r.name for r in combined]
    if len(set(names)) < len(names) or any(not concentric(r, combined[0]) for r in combined[1:]):
        return None
    order = sorted(
        combined, key=lambda r: (r.regulariser.round, r.regulariser.scales, not r.regulariser.then)
    )
    for first, second in zip(order, order[1:], strict=False):
        by_length = second.regulariser.round and _positively_homogeneous(first.regulariser)
        if second.name not in first.regulariser.then and not by_length:
            return None
    return tuple(order)


def _positively_homogeneous(regulariser: Regulariser) -> bool:
    """Whether all forms of a regulariser are atoms that are homogeneous of degree 1."""
    degrees: set[float | None] = set()
    for form in regulariser.forms:
        atom = atoms.get(form)
        if atom is None:
            return False
        degrees.add(atom.homogeneous)
    return degrees == {1}


def _made(name: str, variable: str, values: tuple[float, ...], centre: ir.Expr | None = None) -> Recognised:
    regulariser = get(name)
    assert regulariser is not None
    named = dict(zip(regulariser.coefficients, values, strict=True))
    return Recognised(regulariser=regulariser, variable=variable, coefficients=named, centre=centre)
