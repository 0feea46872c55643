"""Assumptions of theorems about the whole problem: its constraints, domain, curvature, and regularisers."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.evaluation.sets import members
from fccomodel.library import regularisers, sets
from fccomodel.library.kinks import kinked as kinked_node
from fccomodel.library.proximal import Piecewise
from fccomodel.plan.assumptions._base import Assumption, Finding, Setting, holds, lacks, lost
from fccomodel.plan.assumptions._inner import entries, unknowns
from fccomodel.plan.assumptions._inner import smooth as inner_smooth
from fccomodel.plan.assumptions._outer import conjugates
from fccomodel.plan.assumptions._outer import smooth as outer_smooth
from fccomodel.structure import why
from fccomodel.structure.facts import Standing

NO_CONSTRAINT = "the model has no constraint"


def unconstrained(setting: Setting) -> Finding:
    """Whether no constraint is left besides simple sets."""
    if not setting.constrained:
        return holds(NO_CONSTRAINT if not setting.problem.constraints else "every constraint is a simple set")
    labels = [c.label for c in setting.constrained]
    first = setting.constrained[0]
    if len(labels) > 1:
        more = f" and {len(labels) - 1} more"
    else:
        more = ""
    return lacks(f"the model has constraints: {labels[0]}{more}", first.label, first.span)


def convex(setting: Setting) -> Finding:
    """Whether the objective and every constraint are convex."""
    analysis, problem = setting.analysis, setting.problem
    f = analysis.minimised
    if not f.convex:
        failures = why.lost_convexity(analysis, analysis.objective, problem.objective.sense == "maximize")
        words, span, fix = lost(analysis, failures)
        return lacks(f"the objective is not convex: {words}", problem.text(problem.objective.expr), span, fix)
    for c in problem.constraints:
        facts = analysis.constraints[c.label]
        if not (facts.affine if c.kind == "eq" else facts.convex):
            words, span, fix = lost(analysis, why.lost_convexity(analysis, facts, False))
            return lacks(
                f"{c.label} is not {'affine' if c.kind == 'eq' else 'convex'}: {words}", c.label, span, fix
            )
    if not problem.constraints:
        parts = "the objective"
    else:
        parts = "the objective and every constraint"
    return holds(f"{parts}: convex", f.below, *(c.below for c in analysis.constraints.values()))


def modulus(setting: Setting) -> tuple[float, str]:
    """mu of the regularisers' strong convexity in all variables, and a variable without any."""
    least, without = float("inf"), ""
    for name in setting.normal.variables:
        # r - mu/2 |w|^2 is convex: squared_l2 is mu |w|^2, elastic_net lam |w|_1 + mu |w|^2
        mu = sum(2 * p.coefficients.get("mu", 0.0) for p in setting.normal.prox if p.variable == name)
        least = min(least, mu)
        without = without or ("" if mu else name)
    return (0.0 if least == float("inf") else least), without


def coercive(setting: Setting) -> bool:
    """The objective has a minimum: each of the model's own variables is in a bounded set, or, of a
    convex objective, its squared norm is a term; and the objective is defined everywhere there."""
    squared = {p.variable for p in setting.normal.prox if p.coefficients.get("mu", 0.0) > 0}
    facts = setting.analysis.minimised
    free = [
        ir.Var(name=n, shape=v.shape)
        for n, v in setting.problem.variables.items()
        if n not in squared or not facts.convex
    ]
    return (facts.convex or not facts.domain) and all(
        setting.see.see(node).size.value.finite for node in free
    )


def strongly_convex(setting: Setting) -> Finding:
    """Whether the problem is strongly convex by its regularisers."""
    whole = convex(setting)
    if not whole.holds:
        return whole
    mu, without = modulus(setting)
    if without:
        if without in setting.problem.variables:
            added = ""
        else:
            added = ", which a reformulation added"
        return lacks(
            f"no squared norm of {without}{added} is in the objective, and nothing else is known to make "
            "it strongly convex",
            without,
        )
    text = ", ".join(p.text for p in setting.normal.prox)
    return holds(
        f"{text}: {mu:.3g}-strongly convex, and the rest is convex", standing=whole.standing, subject=text
    )


def quadratic_dual(setting: Setting) -> Finding:
    """Dual steps of smooth f are by psi = f*, others by half squares; theorems without strong
    convexity are about the latter."""
    smooth_blocks = [b for b in setting.blocks if b.curved and b.f.smooth]
    kinked = len(smooth_blocks) < sum(b.curved for b in setting.blocks)
    if not smooth_blocks:
        return holds("no outer function is smooth and curved: every dual step is by a half square")
    dual_functions = conjugates(setting)
    functions = [s.function for s in dual_functions.made if not kinked_node(s.original)]
    if not dual_functions.bent and all(isinstance(f, Piecewise) and f.graph.quadratic for f in functions):
        return holds(
            "smooth outer functions are quadratic, and so are their conjugates: dual steps are by half "
            "squares, scaled"
        )
    if not kinked and (whole := strongly_convex(setting)).holds:
        return holds("strongly convex with smooth outer functions: any psi will do", standing=whole.standing)
    block = smooth_blocks[0]
    if kinked:
        why_not = "others have kinks"
    else:
        why_not = "the objective is not strongly convex"
    return lacks(
        f"{block.words} is smooth, with dual steps by psi = f*, and {why_not}", block.words, block.span
    )


def smooth(setting: Setting) -> Finding:
    """Whether everything but the regularisers is smooth."""
    findings = [outer_smooth(setting), inner_smooth(setting)]
    for one in findings:
        if not one.holds:
            return one
    worst = max(findings, key=lambda one: one.standing)
    return holds(
        f"all but the regularisers: {worst.why}",
        standing=worst.standing,
        subject=worst.subject,
        span=worst.span,
    )


def prox_regulariser(setting: Setting) -> Finding:
    """Whether every regulariser has a known prox."""
    for block in setting.blocks:
        if not block.inner and not block.f.smooth:
            words, span, fix = lost(block.see, why.kinks(block.see, block.f))
            return lacks(f"{block.text} has no known prox: {words}", block.text, span, fix)
    text = ", ".join(f"{p.text} (the prox of {p.name})" for p in setting.normal.prox)
    domains = [name for name, v in setting.normal.variables.items() if v.sets]
    if text:
        texts = [text]
    else:
        texts = []
    if domains:
        texts += [f"the projection of {', '.join(domains)}"]
    return holds("; ".join(texts) or "the model has no regulariser, and no simple set")


def unregularised(setting: Setting) -> Finding:
    """Whether no regulariser has kinks. A smooth regulariser is a part of F."""
    for p in setting.normal.prox:
        if not regularisers.all()[p.name].smooth:
            return lacks(f"{p.text} has kinks, and its prox is taken", p.text)
    text = ", ".join(p.text for p in setting.normal.prox)
    return holds(
        f"{text}: smooth, and so a part of the function that is composed"
        if text
        else "the model has no regulariser"
    )


def whole_space(setting: Setting) -> Finding:
    """Whether no variable is in a simple set."""
    for name, variable in setting.normal.variables.items():
        for s in variable.sets:
            return lacks(f"{name} is in a simple set, {s.family}, which is projected on", name, variable.span)
    return holds("no variable is in a simple set")


def constrained(setting: Setting) -> Finding:
    """Whether the model has constraints besides simple sets."""
    if not setting.constrained:
        return lacks(NO_CONSTRAINT)
    labels = ", ".join(c.label for c in setting.constrained)
    return holds(f"the model has constraints: {labels}", subject=labels, span=setting.constrained[0].span)


def bounded_domain(setting: Setting) -> Finding:
    """Whether every variable is bounded."""
    for name, variable in setting.problem.variables.items():
        facts = setting.see.see(ir.Var(name=name, shape=variable.shape))
        if not facts.size.value.finite:
            return lacks(
                f"{name} is unbounded (bound it: `in ball(10)`, or `>= -1, <= 1`)", name, variable.span
            )
    names = ", ".join(setting.problem.variables)
    return holds(f"{names} in bounded sets")


def separable_steps(setting: Setting) -> Finding:
    """Whether every prox and projection allows a step size per entry."""
    for p in setting.normal.prox:
        if not regularisers.all()[p.name].step_per_entry:
            return lacks(f"the prox of {p.text} acts on all entries of {p.variable} at once", p.text)
    for name, variable in setting.normal.variables.items():
        for s in variable.sets:
            if not sets.all()[s.family].entrywise:
                return lacks(
                    f"the projection on {s.family} acts on all entries of {name} at once", name, variable.span
                )
    return holds("every prox and projection acts entry by entry")


#: what is run of constraints that the theorems about penalties do not cover
PENALISED = "they are penalised all the same, and the report checks the answer"


def inequalities(setting: Setting) -> Finding:
    """Whether every constraint is an inequality: theorems about penalties and multipliers here have no
    equations."""
    for c in setting.constrained:
        if c.kind == "eq":
            return lacks(f"{c.label} is an equation", c.label, c.span, practice=PENALISED)
    return holds("no constraint is an equation" if setting.constrained else NO_CONSTRAINT)


def qualified(setting: Setting) -> Finding:
    """Whether the gradients of all constraints may be independent wherever one is violated
    (sonex-alexr2-2025, Assumption 5.1): more constraints than variables, two whose gradients are
    parallel, or an equation, whose two sides have opposite gradients, exclude it."""
    if not setting.constrained:
        return holds(NO_CONSTRAINT)
    for c in setting.constrained:
        if c.kind == "eq":
            sentence = f"{c.label} is an equation: as two inequalities it has opposite gradients"
            return lacks(sentence, c.label, c.span, practice=PENALISED)
    for pair in setting.parallel:
        return lacks(pair.said, pair.second.label, pair.second.span, practice=PENALISED)
    labels, span = ", ".join(c.label for c in setting.constrained), setting.constrained[0].span
    if (bound := setting.bound) is not None:
        constraints = sum(
            len(members.of(bound, c)) * entries(bound, c.body.shape) for c in setting.constrained
        )
        numbers = sum(unknowns(bound, v) for v in setting.normal.variables.values())
        if constraints > numbers:
            sentence = (
                f"{constraints:,} constraints of {numbers:,} numbers have gradients that depend on "
                "one another"
            )
            return lacks(sentence, labels, span, practice=PENALISED)
    sentence = (
        f"that gradients of the constraints ({labels}) are independent where one is violated is not checked"
    )
    return holds(sentence, standing=Standing.ASSUMED, subject=labels, span=span)


def strictly_feasible(setting: Setting) -> Finding:
    """Whether the constraints are inequalities that some point meets strictly: of the second nothing
    is checked."""
    pairs = inequalities(setting)
    if not pairs.holds or not setting.constrained:
        return pairs
    for pair in setting.parallel:
        if pair.equation:
            sentence = f"{pair.said}; no point meets both strictly"
            return lacks(sentence, pair.second.label, pair.second.span, practice=PENALISED)
    labels = ", ".join(c.label for c in setting.constrained)
    sentence = f"that some point meets {labels} strictly is not checked"
    return holds(sentence, standing=Standing.ASSUMED, subject=labels, span=setting.constrained[0].span)


def heavy_penalty(setting: Setting) -> Finding:
    """Whether rho > (C_g + 1) / delta, of each constraint's own penalty rho [g_i]_+
    (sonex-alexr2-2025, Proposition 5.2, has m (C_g + 1) / delta, of a mean over m constraints). As
    delta is at most the Lipschitz constant of every constraint, rho must be above (largest constant
    + 1) / least constant, and above 1 in any case; beyond this, delta is not known."""
    if not setting.constrained:
        return holds(NO_CONSTRAINT)
    facts = [setting.see.see(c.body).lipschitz for c in setting.constrained]
    known = [f.value.value for f in facts if f.value.finite and f.value.known and f.value.value > 0]
    if known:
        least = (max(known) + 1) / min(known)
    else:
        least = 1.0
    labels, span = ", ".join(c.label for c in setting.constrained), setting.constrained[0].span
    if setting.rho <= least:
        sentence = f"rho = {setting.rho:g} is not above {least:.3g}, which (C_g + 1) / delta is at least"
        return lacks(
            sentence,
            labels,
            span,
            fix=f"Give rho above {least:.3g}",
            practice="the penalty has this rho all the same",
        )
    sentence = (
        f"rho = {setting.rho:g} for each constraint; delta, the least singular value of their "
        "gradients, is not known"
    )
    return holds(sentence, standing=Standing.ASSUMED, subject=labels, span=span)


ASSUMPTIONS = (
    Assumption(
        name="unconstrained", meaning="a problem without constraints", decide=unconstrained, form=True
    ),
    Assumption(name="constrained", meaning="a problem with constraints", decide=constrained),
    Assumption(name="unregularised", meaning="no regulariser with kinks", decide=unregularised),
    Assumption(name="whole space", meaning="variables in all of R^d, no simple sets", decide=whole_space),
    Assumption(
        name="regular constraints",
        meaning="inequalities with independent gradients where one is violated",
        decide=qualified,
    ),
    Assumption(
        name="strictly feasible",
        meaning="inequalities that some point meets strictly",
        decide=strictly_feasible,
    ),
    Assumption(
        name="heavy penalty",
        meaning="a weight rho of the penalty above m (C_g + 1) / delta",
        decide=heavy_penalty,
    ),
    Assumption(name="convex", meaning="a convex problem", decide=convex),
    Assumption(name="strongly convex", meaning="a strongly convex objective", decide=strongly_convex),
    Assumption(
        name="quadratic dual",
        meaning="dual steps by half squares, or strong convexity and smooth f",
        decide=quadratic_dual,
    ),
    Assumption(name="smooth", meaning="an objective that is smooth but for its regularisers", decide=smooth),
    Assumption(name="prox regulariser", meaning="regularisers with a known prox", decide=prox_regulariser),
    Assumption(name="bounded domain", meaning="a bounded domain", decide=bounded_domain),
    Assumption(
        name="separable steps",
        meaning="prox and projections that act entry by entry",
        decide=separable_steps,
        form=True,
    ),
)
