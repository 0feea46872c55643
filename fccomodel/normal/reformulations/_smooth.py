"""Non-smooth functions by their Moreau envelopes."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.normal.reformulations._base import Constant, Recover, same
from fccomodel.normal.smoothing import Smoother, envelopes


def smooth(problem: ir.Problem, constant: Constant, *, inner: bool) -> tuple[ir.Problem, Recover, list[str]]:
    """The objective and the constraints with envelopes, of outer functions or of those inside sampled expectations."""
    smoother = Smoother(constant=constant, outer=not inner, inside=inner, first=len(envelopes(*problem.roots)))
    objective = dataclasses.replace(problem.objective, expr=smoother(problem.objective.expr))
    constraints = tuple(dataclasses.replace(c, body=smoother(c.body)) for c in problem.constraints)
    new = dataclasses.replace(problem, objective=objective, constraints=constraints)
    made = {id(s) for s in smoother.made}
    smoothed = [s for s in envelopes(*new.roots) if id(s) in made]
    return new, same, list(dict.fromkeys(f"{problem.text(s.stated)} by its Moreau envelope" for s in smoothed))
