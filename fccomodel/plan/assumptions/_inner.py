"""Assumptions of theorems about the inner functions g_i, the tracked expectations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements
from fccomodel.plan.assumptions._base import (
    WEIGHTS,
    Assumption,
    Block,
    Finding,
    Inner,
    Setting,
    assumed,
    every,
    holds,
    lacks,
    lost,
    short,
)
from fccomodel.plan.assumptions._outer import convex_block as f_convex
from fccomodel.plan.assumptions._outer import monotone_block as f_monotone
from fccomodel.plan.assumptions._smoothed import replaced
from fccomodel.structure import why as derivation
from fccomodel.structure.facts import Fact, Facts, Standing

NO_INNER = "the model has no expectation"
#: what is run where inner functions have kinks, of algorithms that need smooth ones, and of the others
ENVELOPES = "kinks of inner functions are replaced by their Moreau envelopes, which no theorem here covers"
SUBGRADIENTS = "steps take subgradients of inner functions with kinks, which no theorem here covers"
#: what is run where a net is not proved to be smooth
NETS = "steps take the gradients of torch, which chooses one at each kink of a net: no theorem is claimed"


def _inner(setting: Setting) -> Iterator[tuple[Block, Inner]]:
    return ((b, g) for b in setting.blocks for g in b.inner)


def _of(setting: Setting, decide: Callable[[Setting, Block, Inner], Finding]) -> Finding:
    return every((decide(setting, b, g) for b, g in _inner(setting)), NO_INNER)


def _about(
    setting: Setting, g: Inner, why: str, *facts: Fact, standing: Standing = Standing.PROVED
) -> Finding:
    text = setting.reformed.text(g.expr)
    reasons_text = "".join(f": {reason}" for reason in assumed(facts)[:1])
    return holds(
        f"{short(text)}: {why}{reasons_text}", *facts, standing=standing, subject=text, span=g.expr.span
    )


def _lacking(
    setting: Setting, g: Inner, failures: list[derivation.Failure], what: str, practice: str = ""
) -> Finding:
    words, span, fix = lost(setting.see, failures)
    where = span if failures else g.expr.span
    return lacks(f"{what}: {words}", setting.reformed.text(g.expr), where, fix, practice)


def _practice(failures: list[derivation.Failure]) -> str:
    """The sentence on steps through nets if each failure is that of a net, else "".

    Torch differentiates a net anywhere, so such a model can be run although the property is lost.
    """
    if failures and all(isinstance(node, ir.NetCall) for node, _, _ in failures):
        return NETS
    return ""


def _unbound(setting: Setting, failures: list[derivation.Failure]) -> list[str]:
    """The nets that all failures are about, where no module is bound to any of them."""
    nets = [node.net for node, _, _ in failures if isinstance(node, ir.NetCall)]
    if setting.bound is not None:
        modules = setting.bound.nets
    else:
        modules = {}
    if nets and len(nets) == len(failures) and not any(n in modules for n in nets):
        return nets
    return []


def smooth(setting: Setting) -> Finding:
    """Whether every inner function is smooth."""
    return _of(setting, _smooth)


def _smooth(setting: Setting, block: Block, g: Inner) -> Finding:
    return _smooth_as(setting, g, g.mean)


def _smooth_as(setting: Setting, g: Inner, f: Facts) -> Finding:
    if f.smooth:
        if f.gradient.value.finite:
            constant = f.gradient.value
            if constant.known:
                number = f", constant {constant.value:.4g}"
            else:
                number = ""
            if constant.zero:
                property_text = "affine"
            else:
                property_text = f"its gradient is Lipschitz{number}"
            return _about(setting, g, property_text, f.differentiable, f.gradient)
        return _about(
            setting, g, f"its gradient is Lipschitz {WEIGHTS}", f.differentiable, standing=Standing.ASSUMED
        )
    failures = derivation.kinks(setting.see, f)
    if nets := _unbound(setting, failures):
        return _about(
            setting, g, f"net {nets[0]} is not bound yet, and taken for smooth", standing=Standing.ASSUMED
        )
    rough = [one for one in failures if isinstance(one[0], ir.NetCall)]
    smoothed = {id(n) for s in setting.normal.smoothed for n in ir.walk(s.stated)}
    left = rough or [one for one in failures if id(one[0]) not in smoothed]
    if left:
        others = [one for one in failures if one not in rough and id(one[0]) not in smoothed]
        return _lacking(setting, g, left, "not smooth", _practice([*rough, *others]))
    return _replaced(setting, g, setting.reformed.text(failures[0][0]))


def _replaced(setting: Setting, g: Inner, kink: str) -> Finding:
    """The finding for a g with kinks, which is not smooth.

    No theorem here has an envelope inside an expectation. The algorithm is run in practice if the problem
    is smooth after the replacement: the functions that take the envelopes, and those of which the envelopes
    are made.
    """
    after, once = replaced(setting, g.expr), f"once {kink} is replaced by its Moreau envelope"
    text = setting.reformed.text(g.expr)
    if not after.smooth:
        words, span, fix = lost(after.analysis, derivation.kinks(after.analysis, after.rough[0]))
        return lacks(f"not smooth, not even {once}: {words}", text, span, fix)
    return lacks(f"{short(text)} has a kink: {kink}", text, g.expr.span, practice=ENVELOPES)


def convex(setting: Setting) -> Finding:
    """Whether every inner function is convex."""
    return _of(setting, _convex)


def _convex(setting: Setting, block: Block, g: Inner) -> Finding:
    if g.signed.convex:
        if g.mean.affine:
            property_text = "affine"
        elif g.flipped:
            property_text = "concave, and subtracted"
        else:
            property_text = "convex"
        return _about(setting, g, property_text, g.signed.below)
    return _lacking(setting, g, derivation.lost_convexity(setting.see, g.mean, g.flipped), "g is not convex")


def lipschitz(setting: Setting) -> Finding:
    """Whether samples of every inner function are Lipschitz."""
    return _of(setting, _lipschitz)


def _lipschitz(setting: Setting, block: Block, g: Inner) -> Finding:
    f = g.sample
    if f.is_lipschitz:
        value = f.lipschitz.value
        return _about(
            setting, g, f"Lipschitz{f', constant {value.value:.4g}' if value.known else ''}", f.lipschitz
        )
    if f.smooth or f.weakly_convex or f.weakly_concave:
        return _about(setting, g, f"Lipschitz {WEIGHTS}", standing=Standing.ASSUMED)
    failures = derivation.unknown(setting.see, f)
    if nets := _unbound(setting, failures):
        return _about(
            setting, g, f"net {nets[0]} is not bound yet, and taken for Lipschitz", standing=Standing.ASSUMED
        )
    smoothness = _smooth(setting, block, g)
    if smoothness.holds or smoothness.practice == ENVELOPES:
        return _about(
            setting, g, f"once its kinks are replaced, Lipschitz {WEIGHTS}", standing=Standing.ASSUMED
        )
    return _lacking(setting, g, failures, "not known to be Lipschitz", _practice(failures))


def weakly_convex(setting: Setting) -> Finding:
    """Whether every inner function is weakly convex."""
    return _of(setting, _weakly_convex)


def _weakly_convex(setting: Setting, block: Block, g: Inner) -> Finding:
    f = g.signed
    if f.weakly_convex:
        if f.convex:
            property_text = "convex"
        elif f.below.value.known:
            property_text = f"{f.below.value.value:.3g}-weakly convex"
        else:
            property_text = "weakly convex"
        return _about(setting, g, property_text, f.below)
    if f.smooth:
        return _about(
            setting, g, f"smooth, hence weakly convex {WEIGHTS}", f.differentiable, standing=Standing.ASSUMED
        )
    failures = derivation.unknown(setting.see, f)
    if nets := _unbound(setting, failures):
        return _about(
            setting,
            g,
            f"net {nets[0]} is not bound yet, and taken for weakly convex",
            standing=Standing.ASSUMED,
        )
    return _lacking(setting, g, failures, "g is not weakly convex", _practice(failures))


def weakly_monotone(setting: Setting) -> Finding:
    """Whether every inner function is smooth, or weakly convex under a convex non-decreasing f."""
    return _of(setting, _weakly_monotone)


def _weakly_monotone(setting: Setting, block: Block, g: Inner) -> Finding:
    """g smooth, or else g weakly convex and f convex and non-decreasing in it."""
    first = _smooth(setting, block, g)
    if first.holds:
        return first
    weak = every([_weakly_convex(setting, block, g), f_monotone(block, g), f_convex(block)], NO_INNER)
    if weak.holds or not first.practice:
        return weak
    if first.practice == NETS:
        return first
    return dataclasses.replace(weak, why=f"{first.why}; {weak.why}", practice=SUBGRADIENTS)


def bounded_variance(setting: Setting) -> Finding:
    """Whether samples of the inner functions have bounded variance."""
    return _of(setting, _bounded_variance)


def _bounded_variance(setting: Setting, block: Block, g: Inner) -> Finding:
    f = g.sample
    random_binders = [
        b
        for n in ir.walk(g.expr)
        if isinstance(n, ir.Reduce)
        for b in n.binders
        if isinstance(b.domain, ir.Distribution)
    ]
    if random_binders:
        if isinstance(random_binders[0].domain, ir.Distribution):
            name = random_binders[0].domain.family
        else:
            name = ""
        return _about(setting, g, f"a finite variance under {name} is assumed", standing=Standing.ASSUMED)
    if f.compact and f.is_lipschitz and f.size.value.finite:
        return _about(
            setting, g, "bounded on the variables' bounded sets, and so is its variance", f.size, f.lipschitz
        )
    return _about(
        setting, g, f"of bounded variance {WEIGHTS}, its table being finite", standing=Standing.ASSUMED
    )


def samples_smooth(setting: Setting) -> Finding:
    """Whether inner functions are smooth in the mean square, sample by sample. A mean over a density may be
    smooth although no sample is.
    """
    return _of(setting, lambda setting, block, g: _smooth_as(setting, g, g.sample))


def independent(setting: Setting) -> Finding:
    """The inner functions' gradients near stationary points; no more than variables have entries can be."""
    tracked = [t for t in setting.normal.terms if t.kind == "composition" and t.label == "objective"]
    if not tracked:
        return holds("no outer function is nonlinear")
    bound = setting.bound
    if bound is not None and all(t.n is not None for t in tracked):
        functions = sum((t.n or 0) * t.d1 * max(entries(bound, m.shape) for m in t.means) for t in tracked)
        numbers = sum(unknowns(bound, v) for v in setting.normal.variables.values())
        if functions > numbers:
            return lacks(
                f"{functions:,} inner functions of {numbers:,} numbers have gradients that depend on one "
                "another"
            )
    sentence = "that the inner functions' gradients are independent near stationary points is not checked"
    return holds(sentence, standing=Standing.ASSUMED)


def entries(bound: Bound, shape: ir.Shape) -> int:
    """The number of entries of an array of that shape."""
    return math.prod(elements.size(bound, dim) for dim in shape)


def unknowns(bound: Bound, variable: ir.Variable) -> int:
    """The number of entries of a variable; of a net, its parameters."""
    if variable.net is None:
        return entries(bound, variable.shape)
    return sum(p.numel() for p in bound.nets[variable.net].parameters())


def kinkless(setting: Setting) -> Finding:
    """Whether every inner function is smooth as it is, without envelopes in place of kinks."""
    return _of(setting, _kinkless)


def _kinkless(setting: Setting, block: Block, g: Inner) -> Finding:
    if g.mean.smooth:
        return _smooth(setting, block, g)
    failures = derivation.kinks(setting.see, g.mean)
    return _lacking(setting, g, failures, "not smooth as it is", _practice(failures))


ASSUMPTIONS = (
    Assumption(name="inner smooth", meaning="smooth inner functions g", decide=smooth),
    Assumption(
        name="smooth samples",
        meaning="samples of g that are smooth in the mean square",
        decide=samples_smooth,
    ),
    Assumption(
        name="independent inner", meaning="inner functions with independent gradients", decide=independent
    ),
    Assumption(
        name="kinkless inner", meaning="inner functions g that are smooth as they are", decide=kinkless
    ),
    Assumption(name="inner convex", meaning="convex inner functions g", decide=convex),
    Assumption(name="inner Lipschitz", meaning="Lipschitz inner functions g", decide=lipschitz),
    Assumption(name="inner weakly convex", meaning="weakly convex inner functions g", decide=weakly_convex),
    Assumption(
        name="weakly monotone",
        meaning="g smooth, or g weakly convex with f convex and non-decreasing",
        decide=weakly_monotone,
    ),
    Assumption(
        name="bounded variance",
        meaning="samples of g and of its Jacobian of bounded variance",
        decide=bounded_variance,
    ),
)
