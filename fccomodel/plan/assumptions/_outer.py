"""Assumptions of theorems about the outer functions f_i."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library.proximal import Largest
from fccomodel.normal_form import constant_values, reformulations
from fccomodel.normal_form.smoothing import Smoother
from fccomodel.plan.assumptions._base import (
    RANGE,
    Assumption,
    Block,
    Finding,
    Inner,
    Setting,
    every,
    holds,
    lacks,
    lost,
    short,
)
from fccomodel.plan.assumptions._smoothed import replaced
from fccomodel.structure import why
from fccomodel.structure.facts import INCREASING, Standing

NONE_OUTER = "every outer function is affine"


def smooth(setting: Setting) -> Finding:
    """Whether outer functions are smooth. This includes compositions inside a tracked expectation, whose
    outer functions only other algorithms smooth.
    """
    stated_by_original = {id(s.original): s.stated for s in setting.normal.smoothed if not s.inner}
    for g in (g for b in setting.blocks for g in b.inner if not g.mean.smooth):
        for kink in (
            stated_by_original[id(node)] for node in ir.walk(g.expr) if id(node) in stated_by_original
        ):
            text = setting.reformed.text(kink)
            return lacks(f"not smooth: {short(text)} has a kink", text, kink.span)
    return every((_smooth(setting, b) for b in setting.blocks if b.curved), NONE_OUTER)


def _smooth(setting: Setting, block: Block) -> Finding:
    f = block.f
    if not f.smooth and not (block.edge and block.local.smooth):
        words, span, fix = lost(block.see, why.kinks(block.see, f))
        if block.label != "objective" and setting.penalty and reformulations.penalty(setting.penalty).kinked:
            words, fix = f"{block.words} has a kink where the constraint is met with equality", ""
        return lacks(
            f"not smooth: {words}", block.words, block.span if block.label != "objective" else span, fix
        )
    if f.smooth and f.gradient.value.finite:
        if f.gradient.value.known:
            property_text = f"constant {f.gradient.value.value:.4g}"
        else:
            property_text = "its constant depends on the data"
        if f.gradient.value.zero:
            property_text = "affine"
        else:
            property_text = f"its gradient is Lipschitz, {property_text}"
        return holds(
            f"{block.words}: {property_text}",
            f.differentiable,
            f.gradient,
            subject=block.words,
            span=block.span,
        )
    if block.local.gradient.value.finite:
        return holds(
            f"{block.words}: its gradient is Lipschitz {RANGE}",
            block.local.differentiable,
            standing=Standing.ASSUMED,
            subject=block.words,
            span=block.span,
        )
    return lacks(
        f"the gradient of {block.words} is not known to be Lipschitz, on a bounded range either",
        block.words,
        block.span,
    )


def prox(setting: Setting) -> Finding:
    """Whether every outer function is smooth or has a computable prox."""
    reasons = zip(setting.normal.kept, setting.normal.reasons, strict=True)
    for node, reason in ((node, reason) for (node, inner), reason in reasons if not inner):
        text = setting.reformed.text(node)
        return lacks(f"{text} has no computable prox: {reason}", text, node.span)
    rough = [b for b in setting.blocks if not b.f.smooth]
    return every((_prox(setting, b) for b in rough), "every outer function is smooth, which needs no prox")


def _prox(setting: Setting, block: Block) -> Finding:
    """The envelope of the function if it is known; otherwise a smooth function with envelopes instead of
    its kinks.
    """
    f = block.f
    after = replaced(setting, f.expr, {g.hole: g.mean.interval.value for g in block.inner})
    if not f.weakly_convex and not after.envelopes:
        return _weakly_convex(block)
    # a deterministic block is a function of the arguments of its envelopes, which are its inner functions
    exact = (
        after.linear
        or after.whole
        or not block.inner
        and after.facts.affine
        and all(a.smooth for a in after.arguments)
    )
    if not f.weakly_convex or after.envelopes and not exact:
        kink = short(setting.reformed.text(why.written(after.envelopes[0].stated)))
        once = f"once {kink} is replaced by its Moreau envelope"
        if not after.smooth and block.edge:
            after = replaced(
                setting, f.expr, {g.hole: g.mean.interval.value for g in block.inner}, inside=True
            )
        if not after.smooth:
            words, span, fix = lost(after.analysis, why.kinks(after.analysis, after.rough[0]))
            return lacks(f"{block.words} is not smooth, not even {once}: {words}", block.words, span, fix)
        if f.weakly_convex:
            what = "is not the Moreau envelope of a weakly convex function"
        else:
            what = "is not weakly convex"
        property_text = f"{block.words} {what}; it is smooth {once}"
        return lacks(
            property_text, block.words, block.span, practice="the function with that envelope is minimised"
        )
    property_text = "convex" if f.convex else "weakly convex"
    return holds(
        f"{block.words}: {property_text}, and its prox is exact",
        f.below,
        subject=block.words,
        span=block.span,
    )


def weakly_convex(setting: Setting) -> Finding:
    """Whether every outer function is weakly convex."""
    return every((_weakly_convex(b) for b in setting.blocks if b.curved), NONE_OUTER)


def _weakly_convex(block: Block) -> Finding:
    f = block.f if block.f.weakly_convex else block.local
    if f.weakly_convex:
        rho = f.below.value
        if f.convex:
            property_text = "convex"
        elif rho.known:
            property_text = f"{rho.value:.3g}-weakly convex"
        else:
            property_text = "weakly convex"
        if f is block.f:
            standing, where = (Standing.PROVED, "")
        else:
            standing, where = (Standing.ASSUMED, f" {RANGE}")
        return holds(
            f"{block.words}: {property_text}{where}",
            f.below,
            standing=standing,
            subject=block.words,
            span=block.span,
        )
    return lacks(
        f"{block.words} is not weakly convex as a function of its expectations", block.words, block.span
    )


def convex(setting: Setting) -> Finding:
    """Whether every outer function is convex."""
    return every((convex_block(b) for b in setting.blocks if b.curved), NONE_OUTER)


def convex_block(block: Block) -> Finding:
    """Whether the outer function of a block is convex."""
    if block.f.convex:
        return holds(
            f"{block.words}: convex as a function of its expectations",
            block.f.below,
            subject=block.words,
            span=block.span,
        )
    words, span, fix = lost(block.see, why.lost_convexity(block.see, block.f, False))
    return lacks(f"f is not convex: {words}", block.words, span, fix)


def monotone(setting: Setting) -> Finding:
    """Whether every outer function is non-decreasing in expectations that are not affine."""
    return every((monotone_block(b, g) for b in setting.blocks if b.curved for g in b.inner), NONE_OUTER)


def monotone_block(block: Block, g: Inner) -> Finding:
    """Whether the outer function of a block is non-decreasing in g."""
    text = block.see.problem.text(g.expr)
    if g.flipped or g.mean.affine:
        if g.flipped:
            property_text = "stands there with its sign alone"
        else:
            property_text = "is affine, so that f may fall in it"
        return holds(f"{short(text)} {property_text}", g.mean.below, subject=text, span=g.expr.span)
    sign = block.f.leaves.get(g.hole, INCREASING)
    if sign == INCREASING:
        return holds(f"{block.words}: non-decreasing in {short(text)}", subject=text, span=g.expr.span)
    how = "decreasing" if sign else "not monotone"
    return lacks(f"{block.words} is {how} in {short(text)}, which is not affine", block.words, g.expr.span)


def always_monotone(setting: Setting) -> Finding:
    """Whether f is non-decreasing even where the inner function is affine: sox-2022, Assumption 3,
    makes no exception."""
    return every((_always_monotone(b, g) for b in setting.blocks if b.curved for g in b.inner), NONE_OUTER)


def _always_monotone(block: Block, g: Inner) -> Finding:
    if block.f.leaves.get(g.hole, INCREASING) == INCREASING or not g.mean.affine:
        return monotone_block(block, g)
    text = short(block.see.problem.text(g.expr))
    practice = "steps are the same, and the problem is convex all the same, for that expectation is affine"
    return lacks(
        f"{block.words} is not non-decreasing in {text}", block.words, g.expr.span, practice=practice
    )


def lipschitz(setting: Setting) -> Finding:
    """Whether every outer function is Lipschitz."""
    return every((_lipschitz(b) for b in setting.blocks if b.curved), NONE_OUTER)


def _lipschitz(block: Block) -> Finding:
    f = block.f
    if f.is_lipschitz:
        value = f.lipschitz.value
        if value.known:
            property_text = f"constant {value.value:.4g}"
        else:
            property_text = "its constant depends on the data"
        return holds(
            f"{block.words}: Lipschitz, {property_text}", f.lipschitz, subject=block.words, span=block.span
        )
    if block.local.is_lipschitz:
        return holds(
            f"{block.words}: Lipschitz {RANGE}",
            standing=Standing.ASSUMED,
            subject=block.words,
            span=block.span,
        )
    return lacks(
        f"{block.words} is not known to be Lipschitz, on a bounded range either", block.words, block.span
    )


def bounded_divergence(setting: Setting) -> Finding:
    """Whether the Bregman divergence of the outer functions' conjugates is bounded."""
    for block in (b for b in setting.blocks if b.curved):
        sentence = (
            f"{block.words}: the Bregman divergence of its envelope's conjugate is taken to be "
            "bounded where the duals stay"
        )
        return holds(sentence, standing=Standing.ASSUMED, subject=block.words, span=block.span)
    return holds(NONE_OUTER)


def conjugates(setting: Setting) -> Smoother:
    """The outer functions by their conjugates, and the outer functions that have no such form."""
    smoother = Smoother(constant_values(setting.problem, setting.bound), inside=False, curves=True)
    smoother(setting.normal.rest)
    return smoother


def conjugate_prox(setting: Setting) -> Finding:
    """Whether the conjugates of all outer functions have a prox that can be computed.

    Then each block can have a y that is regularised by half squares. A smooth function of expectations is a
    convex function of expressions that are affine in them.
    """
    smoother = conjugates(setting)
    for node, reason in smoother.bent:
        text = setting.reformed.text(node)
        return lacks(f"the conjugate of {short(text)} has no computable prox: {reason}", text, node.span)
    known = [s for s in smoother.made if not s.inner]
    if known:
        text = setting.reformed.text(known[0].stated)
    else:
        text = ""
    return holds(f"{short(text)}: its conjugate's prox is known" if known else NONE_OUTER)


def maxima(setting: Setting) -> Finding:
    """Whether every kink outside expectations is a kink of a maximum, whose dual domain is the simplex."""
    maxima_smoothed = [s for s in setting.normal.smoothed if not s.inner]
    for s in maxima_smoothed:
        if not (isinstance(s.function, Largest) and s.function.kind.extreme):
            text = setting.reformed.text(s.stated)
            return lacks(f"{short(text)} is no maximum, whose weights are in a simplex", text, s.stated.span)
    if not maxima_smoothed:
        return lacks("no outer function has a kink")
    text = short(setting.reformed.text(maxima_smoothed[0].stated))
    return holds(f"{text}: a maximum, whose weights are in the simplex")


ASSUMPTIONS = (
    Assumption(name="outer smooth", meaning="a smooth outer function f", decide=smooth),
    Assumption(
        name="outer prox", meaning="a weakly convex f that is smooth or has a computable prox", decide=prox
    ),
    Assumption(name="outer weakly convex", meaning="a weakly convex outer function f", decide=weakly_convex),
    Assumption(name="outer convex", meaning="a convex outer function f", decide=convex),
    Assumption(
        name="outer monotone",
        meaning="f non-decreasing where the inner function is not affine",
        decide=monotone,
    ),
    Assumption(name="outer always monotone", meaning="f non-decreasing", decide=always_monotone),
    Assumption(name="maxima", meaning="outer functions with kinks that are maxima", decide=maxima),
    Assumption(
        name="conjugate prox",
        meaning="f whose conjugate has a computable prox",
        decide=conjugate_prox,
        form=True,
    ),
    Assumption(
        name="bounded divergence",
        meaning="a bounded Bregman divergence of f's conjugate",
        decide=bounded_divergence,
    ),
    Assumption(name="outer Lipschitz", meaning="a Lipschitz outer function f", decide=lipschitz),
)
