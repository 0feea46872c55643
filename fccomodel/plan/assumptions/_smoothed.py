"""Facts about an expression after its kinks are replaced by their Moreau envelopes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter
from fccomodel.library.atoms import Interval
from fccomodel.normal_form import constant_values
from fccomodel.normal_form.smoothing import Smoothed, Smoother, envelopes
from fccomodel.plan.assumptions._base import OPEN_GAP, RANGE_END, Setting, of_holes
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Facts

#: The name of the hole that stands for each variable (a hole of the original expression).
VARIABLE = "value of {0}"
#: The name of the hole that stands for the value of each envelope.
ENVELOPE = "{0} of an envelope"


@dataclass(frozen=True, eq=False, kw_only=True)
class Replaced:
    """An expression with envelopes in the place of its kinks.

    envelopes   the Moreau envelopes
    analysis    gives the facts of other expressions of the problem
    facts       the facts of the expression as a function of its variables and of the values of the
                envelopes, which lie between their bounds
    arguments   the facts of each envelope's argument
    whole       whether the expression is a single envelope of an affine array
    """

    envelopes: tuple[Smoothed, ...]
    analysis: Analysis
    facts: Facts
    arguments: tuple[Facts, ...]
    whole: bool = False

    @property
    def linear(self) -> bool:
        """Whether the expression is a sum of envelopes of affine functions.

        It is then the envelope of a sum of functions of one argument each.
        """
        return self.facts.affine and all(f.affine for f in self.arguments)

    @property
    def smooth(self) -> bool:
        """Whether the expression is defined and continuously differentiable.

        An envelope is smooth. So is the expression if the functions inside and around its envelopes are.
        """
        return not self.rough

    @property
    def rough(self) -> list[Facts]:
        """The parts that are not smooth, or not defined everywhere, after the replacement."""
        return [f for f in (self.facts, *self.arguments) if not f.smooth or f.domain]


def replaced(
    setting: Setting, expr: ir.Expr, holes: Mapping[str, Interval] | None = None, *, inside: bool = False
) -> Replaced:
    """An expression of the reformed problem with envelopes wherever they are known.

    holes   the intervals of the expression's holes
    inside  whether arguments with envelopes are assumed to stay away from the ends of the domains of
            roots, logarithms and fractions
    """
    intervals = holes or {}
    variables = _variables_for_holes(expr, intervals)
    with_variables = Rewriter(lambda n: variables.get(n.name) if isinstance(n, ir.Hole) else None)(expr)
    smoother = Smoother(constant_values(setting.problem, setting.bound))
    smoothed = smoother(with_variables)
    inserted = tuple(envelopes(smoothed))

    hole_of = {node.name: ENVELOPE.format(node.name) for node in inserted}
    hole_of |= {variable.name: name for name, variable in variables.items()}
    ranges = {hole_of[node.name]: _range(setting, node) for node in inserted}

    def hole(node: ir.Expr) -> ir.Expr | None:
        """The hole for an envelope, or for a variable that stands for a hole."""
        if isinstance(node, Smoothed | ir.Var) and node.name in hole_of:
            return ir.Hole(name=hole_of[node.name], shape=node.shape, span=node.span)
        return None

    cut = Rewriter(hole)
    around = cut(smoothed)
    facts_of = setting.seer({**intervals, **ranges}, bound=not of_holes(around))
    if inside:
        ends = [*(d.subject for d in facts_of(around).domain), *structure.steep_at_0(around)]
        away = {end: Interval(OPEN_GAP, RANGE_END) for end in ends}
        facts_of = structure.seer(setting.boxed, setting.bound, {**intervals, **ranges}, within=away)
    moving = (a for node in inserted for a in _arguments(node) if ir.variables_of(a))
    return Replaced(
        envelopes=inserted,
        analysis=dataclasses.replace(setting.analysis, problem=setting.reformed, see=facts_of),
        facts=facts_of(around),
        whole=_is_envelope_of_affine(smoothed, cut, facts_of),
        arguments=tuple(facts_of(cut(argument)) for argument in moving),
    )


def _variables_for_holes(expr: ir.Expr, intervals: Mapping[str, Interval]) -> dict[str, ir.Var]:
    """For each hole a variable in its place: only what depends on variables is smoothed."""
    shapes = {node.name: node.shape for node in ir.walk(expr) if isinstance(node, ir.Hole)}
    return {name: ir.Var(name=VARIABLE.format(name), shape=shapes.get(name, ())) for name in intervals}


def _is_envelope_of_affine(smoothed: ir.Expr, cut: Rewriter, facts_of: Callable[[ir.Expr], Facts]) -> bool:
    """Whether an expression is a single envelope whose argument is an affine array."""
    if not isinstance(smoothed, Smoothed) or smoothed.argument is None:
        return False
    return facts_of(cut(smoothed.argument)).affine


def _arguments(node: Smoothed) -> tuple[ir.Expr, ...]:
    """The arguments of an envelope: for a maximum over a set, the members."""
    reduced = isinstance(node.original, ir.Reduce)
    return tuple(a.body if reduced and isinstance(a, ir.Reduce) else a for a in node.args)


def _range(setting: Setting, node: Smoothed) -> Interval:
    """The range of an envelope: between the least and the largest value of its function."""
    parts: Sequence[ir.Expr | None] = node.original.children
    if node.argument is not None:
        parts = [node.argument]
    elif isinstance(node.original, ir.Reduce):
        parts = [node.original.body]
    present = [part for part in parts if part is not None]
    holes = {id(p): ir.Hole(name=f"argument {k}", shape=p.shape) for k, p in enumerate(present)}
    function = Rewriter(lambda n: holes.get(id(n)))(node.original)
    return setting.seer({}, bound=not of_holes(function))(function).interval.value
