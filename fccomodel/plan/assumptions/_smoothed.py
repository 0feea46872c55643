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
from fccomodel.plan.assumptions._base import FAR, NEAR, Setting, boxed
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Facts


@dataclass(frozen=True, eq=False, kw_only=True)
class Replaced:
    """An expression with envelopes in the place of kinks.

    made       the envelopes
    see        where facts are looked up
    facts      of the expression in its variables and in the values of the envelopes, anywhere
               between the least and the largest
    arguments  of what the envelopes are of
    whole      the expression is one envelope, of an affine array
    """

    made: tuple[Smoothed, ...]
    see: Analysis
    facts: Facts
    arguments: tuple[Facts, ...]
    whole: bool = False

    @property
    def linear(self) -> bool:
        """A sum of envelopes of affine functions: the envelope of a sum of functions of one argument each."""
        return self.facts.affine and all(f.affine for f in self.arguments)

    @property
    def smooth(self) -> bool:
        """Continuously differentiable, and defined: an envelope is smooth, and it is met by and made
        of smooth functions."""
        return all(f.smooth and not f.domain for f in (self.facts, *self.arguments))

    @property
    def rough(self) -> list[Facts]:
        """The parts that are not smooth after the replacement."""
        return [f for f in (self.facts, *self.arguments) if not f.smooth or f.domain]


def replaced(
    setting: Setting, expr: ir.Expr, holes: Mapping[str, Interval] | None = None, *, inside: bool = False
) -> Replaced:
    """An expression of the reformed problem with envelopes wherever they are known.

    holes   the intervals of the expression's holes
    inside  whether arguments with envelopes are assumed to stay away from the ends of the domains of
            roots, logarithms and fractions
    """
    shapes = {node.name: node.shape for node in ir.walk(expr) if isinstance(node, ir.Hole)}
    moving = {
        name: ir.Var(name=f"value of {name}", shape=shapes.get(name, ())) for name in holes or {}
    }  # variables are smoothed
    smoother = Smoother(constant_values(setting.problem, setting.bound))
    smoothed = smoother(Rewriter(lambda n: moving.get(n.name) if isinstance(n, ir.Hole) else None)(expr))
    made = tuple(envelopes(smoothed))
    free = structure.seer(setting.reformed, setting.bound, {})
    names = {node.name: f"{node.name} of an envelope" for node in made} | {
        v.name: name for name, v in moving.items()
    }
    lies = {names[node.name]: _range(node, free) for node in made}

    def held(node: ir.Expr) -> ir.Expr | None:
        """A hole for a smoothed function or a variable with this name."""
        if isinstance(node, Smoothed | ir.Var) and node.name in names:
            return ir.Hole(name=names[node.name], shape=node.shape, span=node.span)
        return None

    cut = Rewriter(held)
    argument = smoothed.argument if isinstance(smoothed, Smoothed) else None
    analyser = structure.seer(setting.reformed, setting.bound, {**(holes or {}), **lies})
    whole = cut(smoothed)
    if inside:
        ends = [*(d.subject for d in analyser(whole).domain), *structure.steep_at_0(whole)]
        away = {end: Interval(NEAR, FAR) for end in ends}
        analyser = structure.seer(
            boxed(setting.reformed), setting.bound, {**(holes or {}), **lies}, within=away
        )
    return Replaced(
        made=made,
        see=dataclasses.replace(setting.analysis, problem=setting.reformed, see=analyser),
        facts=analyser(whole),
        whole=argument is not None and analyser(cut(argument)).affine,
        arguments=tuple(
            analyser(cut(argument))
            for node in made
            for argument in _arguments(node)
            if ir.variables_of(argument)
        ),
    )


def _arguments(node: Smoothed) -> tuple[ir.Expr, ...]:
    """The arguments of an envelope: for a maximum over a set, the members."""
    args = node.args
    return tuple(
        a.body if isinstance(a, ir.Reduce) and isinstance(node.original, ir.Reduce) else a for a in args
    )


def _range(node: Smoothed, free: Callable[[ir.Expr], Facts]) -> Interval:
    """The range of an envelope: between the least and the largest value of its function."""
    parts: Sequence[ir.Expr | None] = node.original.children
    if node.argument is not None:
        parts = [node.argument]
    elif isinstance(node.original, ir.Reduce):
        parts = [node.original.body]
    held = {id(p): ir.Hole(name=f"argument {k}", shape=p.shape) for k, p in enumerate(parts) if p is not None}
    return free(Rewriter(lambda n: held.get(id(n)))(node.original)).interval.value
