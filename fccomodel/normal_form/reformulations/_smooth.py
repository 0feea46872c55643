"""Replacement of non-smooth functions by their Moreau envelopes."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.library.kinks import kinked
from fccomodel.library.proximal import Entropic
from fccomodel.normal_form.reformulations._base import Constant, Recover, same
from fccomodel.normal_form.smoothing import Smoothed, Smoother, envelopes


def smooth(
    problem: ir.Problem, constant: Constant, *, inner: bool, entropy: bool = False, curves: bool = False
) -> tuple[ir.Problem, Recover, list[str]]:
    """The problem with envelopes in its objective and constraints.

    inner    whether functions inside sampled expectations are replaced, otherwise outer ones
    entropy  whether outer maxima are smoothed by entropy
    curves   whether smooth outer functions are replaced too
    """
    first = len(envelopes(*problem.roots))
    smoother = Smoother(
        constant=constant, outer=not inner, inside=inner, entropy=entropy, curves=curves, first=first
    )
    objective = dataclasses.replace(problem.objective, expr=smoother(problem.objective.expr))
    constraints = tuple(dataclasses.replace(c, body=smoother(c.body)) for c in problem.constraints)
    new = dataclasses.replace(problem, objective=objective, constraints=constraints)
    smoothed_ids = {id(s) for s in smoother.made}
    smoothed = [s for s in envelopes(*new.roots) if id(s) in smoothed_ids]
    return new, same, list(dict.fromkeys(f"{problem.text(s.stated)} {_by(s)}" for s in smoothed))


def _by(envelope: Smoothed) -> str:
    """How a function is smoothed, in words."""
    if not kinked(envelope.original):
        return "by its conjugate"
    if isinstance(envelope.function, Entropic):
        return "by entropy on the simplex"
    return "by its Moreau envelope"
