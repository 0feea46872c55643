"""Non-smooth functions by their Moreau envelopes."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.normal.reformulations._base import Constant, Recover, same
from fccomodel.normal.smoothing import Smoother, envelopes


def smooth(problem: ir.Problem, constant: Constant, *, inner: bool) -> tuple[ir.Problem, Recover, list[str]]:
    """The objective and the constraints with envelopes, of outer functions or of those inside sampled expectations."""
    roots = [problem.objective.expr, *(c.body for c in problem.constraints)]
    smoother = Smoother(constant=constant, outer=not inner, inside=inner, first=len(envelopes(*roots)))
    objective = dataclasses.replace(problem.objective, expr=smoother(problem.objective.expr))
    constraints = tuple(dataclasses.replace(c, body=smoother(c.body)) for c in problem.constraints)
    new = dataclasses.replace(problem, objective=objective, constraints=constraints)
    made = {id(s) for s in smoother.made}
    smoothed = [s for s in envelopes(objective.expr, *(c.body for c in constraints)) if id(s) in made]
    return new, same, list(dict.fromkeys(f"{problem.text(s.stated)} by its Moreau envelope" for s in smoothed))
