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
from fccomodel.normal_form.reformulations._base import Constant, Cost, Recover, Reformulation, same
from fccomodel.normal_form.smoothing import Smoother, envelopes


@dataclass(frozen=True, kw_only=True)
class Penalised(Reformulation):
    """A constraint's value c becomes ``rho * factor * le(c)``, of an equation ``rho * factor *
    eq(c)``.

    le, eq    atoms that are zero where the constraint holds
    bounded   multipliers are at most ``rho`` (times the factor); elsewhere rho is infinite, and
              only an envelope is finite
    smooth    it is replaced by its Moreau envelope, whose slope is the multiplier
    """

    le: str
    eq: str
    factor: float = 1.0
    bounded: bool = True
    smooth: bool = False

    @property
    def kinked(self) -> bool:
        """The penalty itself has a kink where the constraint is met with equality."""
        atom = atoms.get(self.le)
        assert atom is not None, self.le
        return atom.kinked

    def of(self, value: ir.Expr, kind: str, rho: float) -> ir.Expr:
        """What is minimised of a constraint's value: the penalty, or the value itself, times a
        multiplier without a bound."""
        if not self.bounded:
            return value
        return make(
            "mul",
            const(rho * self.factor),
            make(self.le if kind == "le" else self.eq, value, span=value.span),
        )

    def term(self, constraint: ir.Constraint) -> Penalty:
        """The penalty of one constraint, of a family's members before they are added."""
        return Penalty(
            label=constraint.label,
            kind=constraint.kind,
            op=self.le if constraint.kind == "le" else self.eq,
            args=(constraint.body,),
            factor=self.factor,
            scale="rho" if self.bounded else None,
            span=constraint.span,
        )


def penalty(*, name: str, le: str, eq: str, account: str, smooth: bool = False, **how: Any) -> Penalised:
    """A penalty as a reformulation; ``account`` says what it does, ``how`` are the other fields."""

    def apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
        smoother = Smoother(constant=constant, first=len(envelopes(problem.objective.expr)))
        objective = problem.objective.expr
        for constraint in problem.constraints:
            if not ir.variables_of(constraint.body):
                continue
            made = record.term(constraint)
            term: ir.Expr
            if smooth:
                term = smoother.penalty(made)
            else:
                term = made
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
    gives = ("envelopes",) if smooth else ("kinks outside",) if atom is not None and atom.kinked else ()
    record = Penalised(
        name=name,
        title=f"{name} penalty".replace("_", " "),
        role="penalty",
        apply=apply,
        removes=("constraints",),
        gives=gives,
        needs="multipliers exist",
        cost=Cost(blocks=1, number=2.0),
        le=le,
        eq=eq,
        smooth=smooth,
        **how,
    )
    return record
