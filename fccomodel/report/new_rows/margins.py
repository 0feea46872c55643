"""Constraints on expectations over rows, tightened so that they hold for new rows with a given
confidence.

A constraint c(w) <= 0 on means over rows becomes c_n(w) + m <= 0 on the rows at hand, with the margin
m = q s. s is the standard error of c_n(w) by the delta method (``report/new_rows/intervals.py``, also
for functions of several means). The factor q comes from one of two methods:

bagging      the order statistic of max_k c_n,k(w_b) / s_k + q_0 over answers w_b to problems on
             resampled rows with margins q_0 s. All constraints hold together, whatever their
             correlation, and it counts that answers suit their own rows. q is at least the quantile of
             a single constraint, since it is not known which are active for all rows. Rows for which
             no answer has these margins count as a violated constraint. If they are too many, the
             answers that exist are the lucky ones, and there is no margin (F0706)
Bonferroni   if there are too few answers: the quantile of Student's distribution at
             1 - (1 - level) / K for K constraints

The confidence is the one asked for if a single constraint is active, and higher if several may be
active.

Sources: J. Romano, M. Wolf, Exact and approximate stepdown methods for multiple hypothesis testing,
Journal of the American Statistical Association 100, 2005, for the largest studentised deviation; J.
Luedtke, S. Ahmed, A sample approximation approach for optimization with probabilistic constraints,
SIAM Journal on Optimization 19, 2008, for margins in sampled programs.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.rewrite import apply
from fccomodel.data import subsets
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, members
from fccomodel.library import reductions
from fccomodel.report import errors
from fccomodel.report.errors import no_answers as no_answers
from fccomodel.report.errors import no_errors as no_errors


@dataclass(frozen=True, kw_only=True)
class Margin:
    """The margin of one constraint.

    value    left minus right side at the answer
    error    the standard error of the value
    margin   the margin asked for
    held     share of the answers on resampled rows with which the constraint holds on the rows at
             hand; None if there are too few
    """

    value: float
    error: float
    margin: float
    held: float | None = None


@dataclass(frozen=True, kw_only=True)
class Margins:
    """The margins of a solve.

    level       confidence with which all of the constraints hold for new rows
    factor      the margins in standard errors
    how         ``bagging``, or ``Bonferroni``
    rows        the margins by the constraints' labels
    untouched   why other constraints have no margin, by label
    plain       the objective without margins
    cost        how much worse the objective is with margins
    solves      problems on resampled rows, which took ``seconds``; ``failed`` of them had no answer
    """

    level: float
    factor: float
    how: str
    rows: Mapping[str, Margin] = field(default_factory=dict)
    untouched: Mapping[str, str] = field(default_factory=dict)
    plain: float
    cost: float
    solves: int = 0
    failed: int = 0
    seconds: float = 0.0


def sampled(bound: Bound) -> tuple[list[str], dict[str, str]]:
    """The labels of inequalities on expectations over rows, and for other constraints the reason why
    they have no margin. Raises F0706 if none has one."""
    subsets.sampled(bound)
    labels: list[str] = []
    without: dict[str, str] = {}
    for constraint in bound.problem.constraints:
        if why := _exempt(constraint):
            without[constraint.label] = why
        else:
            labels += members.of(bound, constraint).labels(constraint.label)
    if not labels:
        refuse(errors.nothing_sampled(without, bound.problem.objective.span), source=bound.problem.source)
    return labels, without


def _exempt(constraint: ir.Constraint) -> str:
    """Why a constraint has no margin; '' if it can have one."""
    if constraint.kind == "eq":
        return "an equality"
    if any(isinstance(binder.domain, ir.RowSet) for binder in constraint.binders):
        return "of the rows at hand, one by one"
    over_rows = [r for r in ir.walk(constraint.body) if isinstance(r, ir.Reduce) and _rows(r)]
    if not over_rows:
        return "of no rows"
    if any(_extreme(r) for r in over_rows):
        return "of the worst rows, whose error no mean tells"
    return ""


def of_rows(constraint: ir.Constraint) -> bool:
    """Whether the constraint depends on rows."""
    over = [b for r in ir.walk(constraint.body) if isinstance(r, ir.Reduce) for b in r.binders]
    return any(isinstance(binder.domain, ir.RowSet) for binder in (*constraint.binders, *over))


def _rows(reduce: ir.Reduce) -> bool:
    """Whether a reduction is over rows."""
    return any(isinstance(binder.domain, ir.RowSet) for binder in reduce.binders)


def _extreme(reduce: ir.Reduce) -> bool:
    """Whether a few elements may have all the weight, however many there are."""
    kind = reductions.all()[reduce.kind]
    if kind.cap is None:
        return False
    if kind.option is not None:
        options = {kind.option.name: 1.0}
    else:
        options = {}
    many = torch.tensor(1e12, dtype=torch.float64)
    return float(kind.cap(many, options)) > 1e-6


def tightened(bound: Bound, margins: Mapping[str, float]) -> Bound:
    """The problem with ``left <= right - margin`` for these constraints, by label. The margins become
    arrays of the problem."""
    problem = bound.problem
    arrays, declared, constraints = dict(bound.arrays), dict(problem.arrays), []
    for constraint in problem.constraints:
        family = members.of(bound, constraint)
        own = np.array([margins.get(label, 0.0) for label in family.labels(constraint.label)])
        if not own.any():
            constraints.append(constraint)
            continue
        shape = tuple(elements.extent(bound, binder.domain) for binder in constraint.binders)
        name = _unused(problem, constraint.label)
        arrays[name] = np.zeros(shape)
        if shape:
            arrays[name][family.ids] = own
        else:
            arrays[name][family.ids] = own[0]
        declared[name] = ir.Array(
            name=name, type=ir.ColumnType(kind="real", shape=shape), span=constraint.span
        )
        constraints.append(dataclasses.replace(constraint, body=_less(constraint, name, shape)))
    tight = dataclasses.replace(problem, arrays=declared, constraints=tuple(constraints))
    return dataclasses.replace(bound, problem=tight, arrays=arrays)


def _less(constraint: ir.Constraint, name: str, shape: tuple[int, ...]) -> ir.Expr:
    """left - (right - margin)"""
    body, span = constraint.body, constraint.body.span
    margin: ir.Expr = ir.Param(name=name, shape=shape, span=span)
    if shape:
        places = tuple(ir.Element(binder=binder, span=span) for binder in constraint.binders)
        margin = ir.Item(base=margin, indices=places, span=span)
    if isinstance(body, ir.Apply) and body.op == "sub":
        left, right = body.args
        return apply("sub", left, apply("sub", right, margin, span=right.span), span=span)
    return apply("add", body, margin, span=span)


def _unused(problem: ir.Problem, label: str) -> str:
    """A name that the model does not use."""
    names = {
        *problem.arrays,
        *problem.params,
        *problem.variables,
        *problem.tables,
        *problem.sets,
        *problem.lets,
        *problem.dims,
    }
    name = "margin_" + re.sub(r"\W", "_", label)
    while name in names:
        name += "_"
    return name
