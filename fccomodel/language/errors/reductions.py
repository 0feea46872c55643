"""The ranges, the options and the body of a reduction.

F0403, F0406, F0408, F0414, F0425, F0426, F0427, F0434, F0437, F0439.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, listed

UNBOUND_INDEX = Code("F0403", "unbound index")
IN_OR_DRAW = Code("F0406", "in or ~")
OPTION = Code("F0408", "option of a reduction")
DEPENDS_ON_DECISION = Code("F0414", "depends on the decision")
NO_CLOSED_FORM = Code("F0425", "no closed form")
CHANCE = Code("F0426", "chance constraint")
WEIGHTS = Code("F0427", "weights of rows")
QUOTIENT = Code("F0434", "expectation of a quotient")
NO_DRAW_IN_BODY = Code("F0437", "no draw in the body")
BY_SURROGATE = Code("F0439", "surrogate of a probability")


# ----------------------------------------------------------------------------------------- in and ~
def iterates_or_draws(
    reduction: str, index: str, binding: str, domain: str, span: Span, *, instead: str, subscript: bool
) -> Diagnostic:
    """A reduction iterates by ``in``, or draws by ``~``; ``instead`` is one that goes with the binding
    as it is.

    ``subscript``: the index is declared, and written as ``mean_i``.
    """
    sign = "~" if binding == "in" else "in"
    fix = f"Write `{reduction}[{index} {sign} {domain}]`" + (
        f", or `{instead}` in place of `{reduction}`." if instead else "."
    )
    if subscript:
        if instead:
            fix = f"Write `{instead}_{index}`."
        else:
            fix = f"Declare another index by `{sign}`."
    return IN_OR_DRAW.error(
        f"`{reduction}` does not go with `{index} {binding} {domain}`",
        span=span,
        reason=f"`{reduction}` averages draws (`~`); `{index}` is bound by `in`, which iterates over all "
        "elements."
        if binding == "in"
        else f"`{reduction}` goes over all elements (`in`); `{index}` is drawn by `~`.",
        fix=fix,
    )


def iterates_and_draws(span: Span) -> Diagnostic:
    """The indices of one reduction all iterate or all draw."""
    return IN_OR_DRAW.error(
        "`in` and `~` in one pair of brackets",
        span=span,
        reason="One reduction either iterates or draws.",
        fix="Write one reduction inside the other: `mean[i in I] E[z ~ D] ...`.",
    )


def family_drawn(what: str, binder: str, domain: Quote, span: Span) -> Diagnostic:
    """The members of a family are all elements of a set."""
    return IN_OR_DRAW.error(
        f"{what} is indexed with `in`",
        span=span,
        reason="Its members are all elements of a set; `~` draws some.",
        fix=f"Write `{binder} in {domain.text}`.",
    )


def set_of_several(span: Span) -> Diagnostic:
    """A comprehension has one name and ``in``."""
    return IN_OR_DRAW.error(
        "a set is written with one name and `in`",
        span=span,
        reason="Its members are those of one set for which a condition holds.",
        fix="Write `{z in D | ...}`; for pairs, bind two names in the reduction.",
    )


def nothing_drawn(written: Quote, reduction: str, declared: Sequence[str], form: str) -> Diagnostic:
    """``E[...]`` draws the ``~`` indices that are free in its body; ``declared`` are those of the model."""
    reason = f"`{reduction}[...]` draws the `~` indices that are free in its body"
    if declared:
        indices = f"; declared are {listed(declared)}, and none is free here."
    else:
        indices = ", and no `index z ~ D;` is declared."
    return IN_OR_DRAW.error(
        f"nothing is drawn in {written}",
        span=written.span,
        reason=reason + indices,
        fix=f"Say what is drawn: `{form}`.",
    )


# ------------------------------------------------------------------------------------------ options
def no_such_option(reduction: str, option: str, allowed: Sequence[str], form: str, span: Span) -> Diagnostic:
    """A reduction has the options of its kind."""
    return OPTION.error(
        f"`{reduction}` has no option `{option}`",
        span=span,
        reason=f"Its options are {listed(allowed)} (`empty = drop` or `empty = error`, for groups without "
        "rows).",
        fix=did_you_mean(option, allowed) or f"Write `{form}`.",
    )


def value_of_empty(reduction: str, value: Quote, choices: Sequence[str]) -> Diagnostic:
    """``empty`` is one of a few words."""
    return OPTION.error(
        f"`empty` of `{reduction}` is not {value}",
        span=value.span,
        reason="For groups without rows: `drop` leaves them out, `error` refuses the model.",
        fix="Write " + " or ".join(f"`empty = {choice}`" for choice in choices) + ".",
    )


def option_on_variable(value: Quote, reduction: str, option: str) -> Diagnostic:
    """How many elements a tail has does not depend on the decision."""
    return OPTION.error(
        f"`{option}` of `{reduction}` depends on a variable: {value}",
        span=value.span,
        reason="It is made of constants, params, data and indices.",
        fix="Use a param, and solve for several of its values.",
    )


def option_not_fixed(value: Quote, reduction: str, option: str) -> Diagnostic:
    """An option is the same number for every member of a family."""
    return OPTION.error(
        f"`{option}` of `{reduction}` is not one number: {value}",
        span=value.span,
        reason="It is made of constants, params and arrays, without a variable or an index.",
        fix=f"Write one term for each number: `a[1] * {reduction}({option} = t[1])[..] u + a[2] * ...`.",
    )


def needs_option(reduction: str, option: str, form: str, span: Span) -> Diagnostic:
    """A reduction has every option that has no default."""
    return OPTION.error(
        f"`{reduction}` needs its option `{option}`",
        span=span,
        reason="Options are given by name.",
        fix=f"Write `{form}`.",
    )


# ------------------------------------------------------------------------------------- dependencies
def unbound_index(
    what: str, name: str, binding: str, domain: str, line: str, span: Span, *, family: bool
) -> Diagnostic:
    """A value depends on no index that nothing binds; ``family``: there may be one value per element
    instead."""
    is_random = binding == "~"
    if is_random:
        fix = f"Reduce over it: `E_{name}`, or `E[...]` around it."
    else:
        fix = f"Reduce over it: `mean_{name}`, `sum_{name}` or `max_{name}`."
    if family and not is_random:
        fix += f" For one value per `{name}` declare a family, `let x[{name} in {domain}] = ...`."
    return UNBOUND_INDEX.error(
        f"{what} depends on the index `{name}`, which nothing binds",
        span=span,
        reason=f"`index {name} {binding} {domain}` is declared on line {line};"
        + (" what is drawn must be averaged." if is_random else " it stands for every element of its set."),
        fix=fix,
    )


def condition_on_variable(variable: str, span: Span) -> Diagnostic:
    """A condition on the elements of a reduction does not depend on the variables."""
    return DEPENDS_ON_DECISION.error(
        f"the condition depends on the variable `{variable}`",
        span=span,
        reason="Which rows take part must not change with the decision: the result would have jumps.",
        fix="Move it into the body through a smooth function, such as `sigmoid(u / 0.1)`.",
    )


def distribution_on_variable(parameter: Quote) -> Diagnostic:
    """The parameters of a distribution do not depend on the variables."""
    return DEPENDS_ON_DECISION.error(
        f"the distribution depends on the decision variable in {parameter}",
        span=parameter.span,
        reason="A draw is taken before the decision, so its derivative would be missed.",
        fix="Draw from a fixed distribution and transform: `E[e ~ normal(0, 1)] f(m + s * e)`. For a "
        "policy, use actions that a known one took, each with its log-probability there, and weigh them "
        "(the score-function estimator): `E[z ~ D] exp(logp(w, z) - z.logp) * z.reward`. The model "
        "examples/recipes/cost_policy.fcco does this.",
    )


def no_closed_form(written: Quote, extreme: str, vector: str, part: Quote) -> Diagnostic:
    """A maximum over a ball or a box has a closed form where its vector enters as an affine number."""
    return NO_CLOSED_FORM.error(
        f"no closed form is known for `{extreme}` over `{vector}`",
        span=written.span,
        reason=f"Known is the one of g(L), with L affine in `{vector}` and g monotone in L, or even and "
        f"growing with its size. {part} is not of this form.",
        fix=f"Let `{vector}` enter through one affine number, as in `log1pexp(-z.y * dot(w, z.x + "
        f"{vector}))`; otherwise list points, `max[k in K] ...`, with the points as data.",
    )


def vectors_beside_others(written: Quote, reduction: str) -> Diagnostic:
    """Only maxima and minima range over a ball or a box, and over nothing else beside it."""
    return NO_CLOSED_FORM.error(
        f"`{reduction}` ranges over a ball or a box here",
        span=written.span,
        reason="Only `max` and `min` do, with no other kind of set in the same brackets.",
        fix="Write the vectors in a `max` of their own: `max[k in K] max[u in ball(r)] ...`. For an average "
        "over random vectors, draw them: `E[u ~ normal(0, 1)[d]] ...`.",
    )


def condition_on_vectors(condition: Quote) -> Diagnostic:
    """A ball or a box in a maximum has no further condition."""
    return NO_CLOSED_FORM.error(
        "no closed form is known under a condition",
        span=condition.span,
        reason="Known are the maxima over all of a ball or a box.",
        fix="Leave the condition out, or choose the set that says both: `ball`, `ball1` or `box`.",
    )


def recourse(minimum: Quote, name: str, domain: str) -> Diagnostic:
    """A decision after the draw is a variable with one value for each row."""
    return NO_CLOSED_FORM.error(
        f"{minimum} is a decision after the draw",
        span=minimum.span,
        reason="A minimum under a condition has no closed form; all rows' decisions are found together with "
        "the others.",
        fix=f"Write `var {name}[D] in {domain};` for the rows of D, the condition as a constraint, "
        f"`keep[z in D]: {name}[z] >= ...;`, and the cost of `{name}[z]` in place of the minimum.",
    )


def event_without_excess(event: Quote) -> Diagnostic:
    """The event of a chance constraint compares a number that depends on the variables with another."""
    return CHANCE.error(
        f"{event} says not by how much it holds",
        span=event.span,
        reason="The surrogate of a probability is a function of the excess of one side over the other, so "
        "each part of the event is a `<`, `<=`, `>` or `>=` that depends on the variables.",
        fix="Write a condition on the data behind the draw: `prob[z ~ D | z.g == k] (...)`.",
    )


def no_chance(bound: Quote, *, never: bool) -> Diagnostic:
    """The share of the draws that an event may have lies between 0 and 1."""
    if never:
        reason, fix = "No draw may have the event then.", "Write one constraint a row: `label[z in D]: ...`."
    else:
        reason, fix = "Every draw may have the event then.", "Leave the constraint out."
    return CHANCE.error(f"{bound} leaves no chance to bound", span=bound.span, reason=reason, fix=fix)


def no_surrogate(choice: Quote, known: Iterable[str]) -> Diagnostic:
    """A surrogate of a probability is named."""
    return CHANCE.error(
        f"{choice} is no surrogate of a probability",
        span=choice.span,
        reason=f"Known are {listed(known)}.",
        fix="Write `with surrogate = cvar`, which is conservative, or `with surrogate = sigmoid, width = "
        "0.1`, a smoothed step.",
    )


def width_of_a_step(written: Quote) -> Diagnostic:
    """A smoothed step has a width."""
    return CHANCE.error(
        "a smoothed step needs its width",
        span=written.span,
        reason="`sigmoid` replaces the event `e > 0` by sigmoid(e / width), width > 0.",
        fix="Write `with surrogate = sigmoid, width = 0.1`.",
    )


def quantile_outside_constraints(written: Quote) -> Diagnostic:
    """A quantile is bounded by a constraint, and stands nowhere else."""
    return CHANCE.error(
        f"{written} stands outside a constraint",
        span=written.span,
        reason="A quantile is neither convex nor smooth in the variables. As one side of a constraint it is "
        "a bound of a probability, which a surrogate keeps.",
        fix="Bound it, `quantile(level = 0.05)[z ~ D] u >= v`, or take a tail mean: `cvar(tail = 0.05)`.",
    )


def quantile_bounded_once(relation: Quote, *, has_level: bool) -> Diagnostic:
    """A quantile with a level stands on one side of one ``<=`` or ``>=``."""
    if has_level:
        reason = "A quantile is one side of one `<=` or `>=`; the other side is no quantile."
    else:
        reason = "The level says which share of the draws lies below the quantile."
    return CHANCE.error(
        f"{relation} is no bound of a quantile",
        span=relation.span,
        reason=reason,
        fix="Write `quantile(level = 0.05)[z ~ D] u >= v`, each bound as a constraint of its own.",
    )


# ------------------------------------------------------------------------------------------- weights
def negative_weight(weight: Quote) -> Diagnostic:
    """A weight is at least 0."""
    return WEIGHTS.error(
        f"the weight {weight} is negative",
        span=weight.span,
        reason="Rows are drawn with a probability that is proportional to their weights.",
        fix="Write weights of at least 0 after `by`.",
    )


def weight_on_variable(weight: Quote) -> Diagnostic:
    """A weight is made of data and params."""
    return WEIGHTS.error(
        f"the weight {weight} depends on a variable",
        span=weight.span,
        reason="Which rows are drawn may not depend on the decision.",
        fix="Multiply the body by it: `E[z ~ D] p(z) * u`, over `E[z ~ D] p(z)` if it is no density.",
    )


def weight_without_reduction(binder: Quote) -> Diagnostic:
    """Weights stand in the brackets of a reduction that draws."""
    return WEIGHTS.error(
        f"{binder} has a weight outside of a reduction that draws",
        span=binder.span,
        reason="`by` says how likely each row of an average is.",
        fix="Write the weight where rows are drawn: `E[z ~ D by z.p] u`; a sum takes it as a factor.",
    )


def no_weighted_form(written: Quote, reduction: str, known: Iterable[str]) -> Diagnostic:
    """Weights stand in averages, and in functions of averages."""
    return WEIGHTS.error(
        f"`{reduction}` takes no weights",
        span=written.span,
        reason=f"Draws by weight are known for {listed(known)}.",
        fix="Write it by averages. Of `cvar(tail = a)`: `t + (1 / a) * E[z ~ D by z.p] pos(u - t)`, with "
        "`var t;`, in an objective that is minimized.",
    )


# -------------------------------------------------------------------------------------------- notes
def chance_by_cvar(relation: Quote, level: str) -> Diagnostic:
    """A chance constraint without a named surrogate is kept by the conditional value at risk."""
    return BY_SURROGATE.warning(
        "this constraint is kept by a surrogate of the probability",
        span=relation.span,
        reason="A probability jumps or is flat in the variables. In its place stands the mean excess of the "
        f"worst share of the draws (`cvar`), for the level {level}: where it is at most 0, the excess is "
        "positive in at most that share, often in much less. An event with `>=` or `<=` happens at ties too, "
        "which this does not count. The report says how often the event happens.",
        fix="Say so: `with surrogate = cvar`; or choose `with surrogate = sigmoid, width = 0.1`, a "
        "smoothed step, which is neither conservative nor convex.",
    )


def mean_of_a_quotient(word: str, head: str, top: str, bottom: str, span: Span) -> Diagnostic:
    """``E[..] a / b`` is E(a/b), where the ratio of expectations is the common intent."""
    return QUOTIENT.warning(
        f"this is the {word} of a quotient",
        span=span,
        reason="The body of a reduction is one product, quotients included.",
        fix=f"For the quotient of the two write `({head} {top}) / ({head} {bottom})`;"
        " if this is meant, put the body in parentheses.",
    )


def body_without_draw(reduction: str, binders: Sequence[str], span: Span) -> Diagnostic:
    """The body of a reduction depends on one of its indices."""
    return NO_DRAW_IN_BODY.warning(
        f"the body of `{reduction}` does not depend on {listed(binders)}",
        span=span,
        reason="The body of a reduction is the one product that follows it.",
        fix="Put the whole body in parentheses, or leave the reduction out.",
    )
