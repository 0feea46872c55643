"""Constraints as penalties in the objective."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library import atoms
from fccomodel.library.reductions.sum import SUM
from fccomodel.normal_form.penalty import Penalty
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same
from fccomodel.normal_form.smoothing import Smoother, envelopes


@dataclass(frozen=True, kw_only=True)
class Penalised(Reformulation):
    """A penalty: a constraint's value c becomes ``rho * factor * le(c)`` or, for an equation, ``.. * eq(c)``.

    le        atom that is zero where an inequality holds
    eq        atom that is zero where an equation holds
    bounded   whether multipliers are at most ``rho`` (times the factor); otherwise rho is infinite,
              and only an envelope is finite
    smooth    whether it is replaced by its Moreau envelope, whose slope is the multiplier
    """

    le: str
    eq: str
    factor: float = 1.0
    bounded: bool = True
    smooth: bool = False

    @property
    def kinked(self) -> bool:
        """Whether the penalty has a kink where the constraint is active."""
        atom = atoms.get(self.le)
        assert atom is not None, self.le
        return atom.kinked

    @property
    def function(self) -> tuple[str, str, float, bool]:
        """A key of the function of a constraint's value that it adds; penalties that differ in the
        treatment of its kink alone share it."""
        return self.le, self.eq, self.factor, self.bounded

    def of(self, value: ir.Expr, kind: str, rho: float) -> ir.Expr:
        """The penalty of a constraint's value; the value itself if the multiplier has no bound."""
        if not self.bounded:
            return value
        return make("mul", const(rho * self.factor), make(self.op(kind), value, span=value.span))

    def op(self, kind: str) -> str:
        """The atom for an inequality (``le``) or an equation (``eq``)."""
        if kind == "le":
            return self.le
        return self.eq

    def term(self, constraint: ir.Constraint) -> Penalty:
        """The penalty of one constraint, or of one member of a family."""
        return Penalty(
            label=constraint.label,
            kind=constraint.kind,
            op=self.op(constraint.kind),
            args=(constraint.body,),
            factor=self.factor,
            scale="rho" if self.bounded else None,
            span=constraint.span,
        )


def penalty(*, name: str, le: str, eq: str, account: str, smooth: bool = False, **how: Any) -> Penalised:
    """A penalty as a reformulation; ``account`` says what it does, ``how`` are the other fields."""

    def apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
        """Add the penalties of all constraints to the objective."""
        smoother = Smoother(constant=constant, first=len(envelopes(problem.objective.expr)))
        objective = problem.objective.expr
        for constraint in problem.constraints:
            if not ir.variables_of(constraint.body):
                continue
            exact = record.term(constraint)
            term: ir.Expr
            if smooth:
                term = smoother.penalty(exact)
            else:
                term = exact
            if constraint.binders:
                term = ir.Reduce(
                    kind=SUM.name,
                    binders=constraint.binders,
                    condition=constraint.condition,
                    body=term,
                    span=constraint.span,
                )
            objective = make("add", objective, term, span=constraint.span)
        new = dataclasses.replace(
            problem, objective=dataclasses.replace(problem.objective, expr=objective), constraints=()
        )
        return new, same, [account] if problem.constraints else []

    atom = atoms.get(le)
    gives: tuple[str, ...] = ()
    if smooth:
        gives = ("envelopes",)
    elif atom is not None and atom.kinked:
        gives = ("kinks outside",)
    record = Penalised(
        name=name,
        title=f"{name} penalty".replace("_", " "),
        role="penalty",
        apply=apply,
        removes=("constraints",),
        gives=gives,
        needs="multipliers exist",
        cost=Additions(blocks=1, number=2.0),
        le=le,
        eq=eq,
        smooth=smooth,
        **how,
    )
    return record
