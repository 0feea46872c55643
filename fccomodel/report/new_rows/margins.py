"""Constraints on expectations over rows, tightened so that they hold for new rows with a given
confidence.

A constraint c(w) <= 0 of means over rows is asked of the rows at hand as c_n(w) + m <= 0, with m =
q s: s is the standard error of c_n(w) by the delta method (``report/new_rows/intervals.py``, for
functions of several means alike), and q

    by bagging   the order statistic of  max_k c_n,k(w_b) / s_k + q_0  over answers w_b to problems
                 with margins q_0 s on
                 resampled rows: all constraints hold together, however correlated, and that answers
                 suit their own rows counts. It is no less than the quantile of a single one: which
                 constraints are active for all rows is not known. Rows for which no answer has
                 these margins count as a constraint that is missed; where they are too many the
                 answers that exist are the lucky ones, and there is no margin (F0706)
    by Bonferroni, where there are too few answers: the quantile of Student's distribution at 1 - (1
    - level) / K of K
                 constraints

The confidence is 95%, say, of a single active constraint, and more of several that may be active.

(J. Romano, M. Wolf, Exact and approximate stepdown methods for multiple hypothesis testing, Journal
of the American Statistical Association 100, 2005, of the largest studentised deviation; for margins
in sampled programs J. Luedtke, S. Ahmed, A sample approximation approach for optimization with
probabilistic constraints, SIAM Journal on Optimization 19, 2008).
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
    """Of one constraint: left minus right side at the answer, the standard error of that, and the
    margin asked for.

    held   the share of answers on resampled rows for which it holds on the rows at hand; None where
           there are too few
    """

    value: float
    error: float
    margin: float
    held: float | None = None


@dataclass(frozen=True, kw_only=True)
class Margins:
    """What was tightened: by label; ``untouched`` says of other constraints why not.

    level       all of them hold for new rows with this confidence
    factor      the margins in standard errors
    how         ``bagging``, or ``Bonferroni``
    plain       the objective without margins, and ``cost`` by how much it is worse with them
    solves      on resampled rows, in ``seconds``; ``failed`` of them had no answer
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
    """The labels of inequalities on expectations over rows, and of other constraints why they have no
    margin; F0706 where none has one."""
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
    """Why a constraint has no margin."""
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
    """Other rows make it another constraint."""
    over = [b for r in ir.walk(constraint.body) if isinstance(r, ir.Reduce) for b in r.binders]
    return any(isinstance(binder.domain, ir.RowSet) for binder in (*constraint.binders, *over))


def _rows(reduce: ir.Reduce) -> bool:
    return any(isinstance(binder.domain, ir.RowSet) for binder in reduce.binders)


def _extreme(reduce: ir.Reduce) -> bool:
    """A few elements may have all the weight, however many there are."""
    kind = reductions.all()[reduce.kind]
    if kind.option is None:
        options = {}
    else:
        options = {kind.option.name: 1.0}
    return kind.cap is not None and float(kind.cap(torch.tensor(1e12, dtype=torch.float64), options)) > 1e-6


def tightened(bound: Bound, margins: Mapping[str, float]) -> Bound:
    """The same problem with ``left <= right - margin`` for these constraints, by label; the margins
    are arrays of it."""
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
    taken = {
        *problem.arrays,
        *problem.params,
        *problem.variables,
        *problem.tables,
        *problem.sets,
        *problem.lets,
        *problem.dims,
    }
    name = "margin_" + re.sub(r"\W", "_", label)
    while name in taken:
        name += "_"
    return name
