"""F0533, F0702 - F0705: values outside of domains, points that do not fit a problem, and what cannot
be evaluated."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT
from fccomodel.core.memory import in_words
from fccomodel.core.source import Span
from fccomodel.library.atoms import Broken
from fccomodel.library.domains import Use
from fccomodel.library.errors import empty_set

OUTSIDE = Code("F0533", "outside of a domain")
POINT = Code("F0702", "point")
EVALUATION = Code("F0703", "evaluation")
TOO_LARGE = Code("F0704", "too large")
EMPTY_GROUP = Code("F0705", "empty group")


# ------------------------------------------------------------------------------------------ domains
def outside(problem: ir.Problem, use: Use, broken: Broken, cells: Sequence[str]) -> Diagnostic:
    """Each argument must lie in its domain; ``cells`` gives the elements for which this one does not."""
    argument, title = use.args[broken.argument], use.titles[broken.argument]
    if broken.entry:
        entry = f"[{', '.join(str(k + 1) for k in broken.entry)}]"
    else:
        entry = ""
    fix = (
        _correct(problem, use.args if callable(use.asks.domain) else [argument])
        or _correct(problem, use.args)
        or "Correct it."
    )
    if use.kind == "set":
        reason = f"`{use.names[broken.argument]}`{entry} is {broken.value:g}, and needs {broken.needs}."
        return empty_set(use.owner, argument.span, reason, fix)
    number = ""
    if broken.of:
        number = f"{broken.of} of "
    if cells:
        where = f" for {', '.join(cells)}"
    else:
        where = ""
    if any("= row " in cell for cell in cells):
        rows = " (Rows in use, counted from 0.)"
    else:
        rows = ""
    if _are_weights(use, argument):
        return OUTSIDE.error(
            f"the weights `{problem.text(argument)}` are all 0{where}",
            span=argument.span,
            reason="An average by weight needs a positive weight of at least one element.",
            fix=fix,
        )
    if _is_unwritten_root(problem, use):
        title = "this place"
    return OUTSIDE.error(
        f"{number}`{problem.text(argument)}`{entry} is {broken.value:g}{where}",
        span=argument.span,
        reason=f"{title[0].upper()}{title[1:]} needs {broken.needs}.{rows}",
        fix=fix,
    )


def _are_weights(use: Use, argument: ir.Expr) -> bool:
    """Whether a denominator is the mean of weights, which the text has without a word for the mean."""
    return use.owner == "div" and isinstance(argument, ir.Reduce) and argument.span == argument.body.span


def _is_unwritten_root(problem: ir.Problem, use: Use) -> bool:
    """Whether a root only checks a sign: the text has none before its argument."""
    if use.owner != "sqrt" or use.args[0].span == ir.NOWHERE:
        return False
    before = problem.source.text[: use.args[0].span.start].rstrip("( \n")
    return not before.endswith("sqrt")


def unfit(problem: ir.Problem, use: Use, reason: str) -> Diagnostic:
    """A condition on all arguments together must hold."""
    last, fix = use.args[-1], _correct(problem, use.args) or "Correct it."
    if use.kind == "set":
        return empty_set(use.owner, last.span, reason, fix)
    return OUTSIDE.error(f"{use.titles[-1]} does not fit", span=last.span, reason=reason, fix=fix)


def _correct(problem: ir.Problem, arguments: Sequence[ir.Expr]) -> str:
    """Advice on what to correct: the params and the data on which some arguments depend."""
    nodes = [node for argument in arguments for node in ir.walk(argument)]
    named = [n.name for n in nodes if isinstance(n, ir.Param)]
    params = list(dict.fromkeys(name for name in named if name in problem.params))
    data = [name for name in named if name in problem.arrays]
    own_columns = [n for n in nodes if isinstance(n, ir.Column) and n.name != ir.FAMILY]
    columns = [n for n in own_columns if isinstance(n.binder.domain, ir.RowSet)]
    data += [f"{n.binder.domain.table}.{n.name}" for n in columns]  # type: ignore[attr-defined]
    if params:
        fixes = [
            f"give {' and '.join(f'`{name}`' for name in params)} another value (--param {params[0]}=...)"
        ]
    else:
        fixes = []
    if data:
        more = ", or leave such rows out by a condition" if columns else ""
        fixes.append(f"correct the data of {' and '.join(f'`{name}`' for name in dict.fromkeys(data))}{more}")
    text = "; ".join(fixes)
    if text:
        return f"{text[0].upper()}{text[1:]}."
    return ""


# ------------------------------------------------------------------------------------------- points
def no_variable(name: str, span: Span) -> Diagnostic:
    """A point has a value of every variable."""
    return POINT.error(f"the point has no `{name}`", span=span)


def shape_of_variable(name: str, given: tuple[int, ...], declared: tuple[int, ...], span: Span) -> Diagnostic:
    """A variable's value has its declared number of entries."""
    return POINT.error(f"`{name}` has shape {given}, and the model asks for {declared}", span=span)


def no_let(name: str, lets: Sequence[str]) -> Diagnostic:
    """A quantity to show is a ``let`` of the model."""
    return ARGUMENT.error(
        f"There is no `let {name}` to show",
        reason=f"Its lets are {', '.join(lets)}." if lets else "The model has none.",
        fix=did_you_mean(name, lets) or f"Add `let {name} = ...;` to the model.",
    )


# --------------------------------------------------------------------------------- sets and indices
def no_elements(domain: ir.Set) -> Diagnostic:
    """Only a finite set can be listed."""
    reason = "Only tables, sets of values and sets of labels are finite."
    return EVALUATION.error(f"`{domain.name}` has no list of elements", reason=reason)


def step_of_zero(domain: ir.Set) -> Diagnostic:
    """A range's step is not 0."""
    return EVALUATION.error(
        f"the step of `{domain.name}` is 0", fix="Give a step that leads from the first number to the last."
    )


def size_unknown(dim: ir.Dim) -> Diagnostic:
    """Data decide every size."""
    return EVALUATION.error(f"the size `{dim}` is not known", fix="Bind data that decides it.")


def not_by_data_alone(problem: ir.Problem, node: ir.Expr) -> Diagnostic:
    """Conditions and the bounds of sets are pointwise, in data."""
    return EVALUATION.error(
        f"`{problem.text(node)}` cannot be used here",
        span=node.span,
        reason="A condition and a set's bounds are decided by data alone, row by row, without variables "
        "or reductions.",
    )


def not_an_index(problem: ir.Problem, index: ir.Expr) -> Diagnostic:
    """An index is a number, an element or a column of labels."""
    return EVALUATION.error(f"`{problem.text(index)}` is not an index", span=index.span)


def group_left_empty(binder: ir.Binder, where: str) -> Diagnostic:
    """A mean needs at least one element; ``where`` says which outer elements leave none. An index by a
    formula needs an element at that place."""
    if not binder.name.isidentifier():
        return EMPTY_GROUP.error(
            f"`{binder.name}` is no index of `{binder.domain.name}`" + (f" where {where}" if where else ""),
            span=binder.span,
            reason="An entry that is not there has no value.",
            fix=_kept_inside(binder),
        )
    return EMPTY_GROUP.error(
        f"no element of `{binder.domain.name}` is left for `{binder.name}`"
        + (f" where {where}" if where else ""),
        span=binder.span,
        reason="A mean, a maximum or a minimum over no elements has no value.",
        fix="Bind data that has them, "
        + (
            "or leave this case out of the outer set; `E(empty = drop)[...]` leaves such cases out."
            if where
            else "or leave the term out (a sum of no elements is 0)."
        ),
    )


def _kept_inside(binder: ir.Binder) -> str:
    """How ``b[i + 1]`` stays within the places of ``b``: a condition on i, or a shift that is a
    multiple of the step."""
    shift = re.fullmatch(r"(\w+) ([+-]) ([0-9.]+)", binder.name)
    domain, way = binder.domain, f"by a condition where it ranges: `[i in {binder.domain.name} | ...]`."
    if shift is None or not isinstance(domain, ir.ValueSet):
        return f"Leave this case out {way}"
    name, sign, size = shift[1], shift[2], float(shift[3])
    if domain.step is None:
        step = 1.0
    elif isinstance(domain.step, ir.Const):
        step = domain.step.value
    else:
        step = None
    if step and abs(size / step - round(size / step)) > 1e-9:
        return f"Shift by a multiple of {step:g}, by which `{domain.name}` goes."
    end = domain.high if sign == "+" else domain.low
    match end:
        case ir.Const(value=value):
            if sign == "+":
                limit = f"{value - size:g}"
            else:
                limit = f"{value + size:g}"
        case ir.Size(dim=dim):
            limit = f"{dim} {'-' if sign == '+' else '+'} {size:g}"
        case _:
            return f"Leave this case out {way}"
    inside = f"{name} {'<=' if sign == '+' else '>='} {limit}"
    return f"Leave this case out where `{name}` ranges: `[{name} in {domain.name} | {inside}]`."


# ----------------------------------------------------------------------------------------- samplers
def no_sampler(family: str) -> Diagnostic:
    """A distribution of the user's own has a sampler."""
    return EVALUATION.error(
        f"there is no sampler `{family}`", fix="Bind one from Python: a function of (rng, n, *args)."
    )


def sampler_of_an_index(family: str) -> Diagnostic:
    """A sampler from Python is called once, with plain numbers."""
    return EVALUATION.error(
        f"the parameters of `{family}` depend on an outer index",
        reason="A sampler of yours gets plain numbers.",
    )


def shape_of_draws(family: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Diagnostic:
    """A sampler returns one row per draw."""
    return EVALUATION.error(
        f"the sampler `{family}` returned shape {shape}", fix=f"Return {wanted}: one row per draw."
    )


# ------------------------------------------------------------------------------------------- maxima
def over_vectors(kind: str, span: Span) -> Diagnostic:
    """An inner problem is a maximum or a minimum."""
    return EVALUATION.error(f"`{kind}` cannot go over a set of vectors", span=span, fix="Use max or min.")


def not_a_ball(problem: ir.Problem, node: ir.Expr) -> Diagnostic:
    """A condition on the weights of a maximum that is no ball of distributions."""
    return EVALUATION.error(
        f"{problem.text(node)} has a condition on its weights that is no ball of distributions",
        span=node.span,
        reason="known are `kl(q, p) <= r`, `chi2(q, p) <= r` and `norm1(q - p) <= r`, for a body that is "
        "affine in q.",
        fix="write the condition in one of these forms.",
    )


def no_distribution(problem: ir.Problem, reference: ir.Expr, total: float) -> Diagnostic:
    """The centre of a ball of distributions is a distribution."""
    return OUTSIDE.error(
        f"{problem.text(reference)} is no distribution: its entries sum to {total:.6g}, or some are below 0",
        span=reference.span,
        reason="The weights of a maximum sum to 1, and are compared with it.",
        fix="divide it by its sum.",
    )


def maximum_not_found(problem: ir.Problem, node: ir.Reduce, accuracy: float, most: int) -> Diagnostic:
    """A maximum with kinks that join entries has at most ``most`` of them."""
    return EVALUATION.error(
        f"the largest value of `{problem.text(node.body)}` is not found to {accuracy:g}",
        span=node.span,
        reason=f"It has kinks that join entries of `{node.binders[0].name}`, and more than {most} of them.",
        fix="Write it as a sum over the entries, or as a divergence (kl, chi2) of the language.",
    )


# ------------------------------------------------------------------------------------------ amounts
def too_many_to_sort(node: ir.Reduce, size: float, needed: float, left: float) -> Diagnostic:
    """A tail's elements are sorted in memory: bytes ``needed`` and ``left``."""
    return TOO_LARGE.error(
        f"`{node.kind}` over {size:.1e} elements",
        span=node.span,
        reason=f"Their order takes them all in memory: {in_words(needed)}, of {in_words(left)} available.",
        fix="Take the tail over fewer elements, of each row's mean over the others, say, or use fewer rows.",
    )


def too_many_to_list(binder: ir.Binder, size: float, needed: float, left: float, span: Span) -> Diagnostic:
    """The combinations of all binders but the last are listed: bytes ``needed`` and ``left``."""
    return TOO_LARGE.error(
        f"{size:.1e} combinations of `{binder.name}` to list",
        span=span,
        reason=f"The list takes {in_words(needed)} of memory, of {in_words(left)} available.",
        fix="Use fewer rows, or conditions that leave fewer combinations of them.",
    )


def too_many_cells(binder: ir.Binder, cells: int, needed: float, left: float) -> Diagnostic:
    """The rows that a condition leaves are listed for each combination of outer indices: bytes
    ``needed`` and ``left``."""
    return TOO_LARGE.error(
        f"the condition on `{binder.name}` has {cells:.1e} combinations of outer indices",
        span=binder.span,
        reason=f"The rows for each combination are listed: {in_words(needed)}, of {in_words(left)} "
        "available.",
        fix="Use fewer outer indices in this condition.",
    )


def too_many_tests(binder: ir.Binder, pairs: float) -> Diagnostic:
    """A condition that is no equality and no order is tested pair by pair."""
    return TOO_LARGE.error(
        f"the condition on `{binder.name}` has to be tested on {pairs:.1e} pairs",
        span=binder.span,
        reason="A condition that is neither an equality nor an order is tested pair by pair.",
        fix="Write it as equalities of keys or comparisons of one column.",
    )


def variables_too_long(length: int, vectors: int, needed: float, memory: float) -> Diagnostic:
    """The vectors of a run or a report fit into the memory; ``needed`` and ``memory`` in bytes."""
    return TOO_LARGE.error(
        f"the variables have {length:,} entries: too many for the memory",
        reason=f"It takes {vectors} vectors of this length, {needed / 2**30:,.0f} GiB, of "
        f"{memory / 2**30:,.0f}.",
        fix="Check the sizes that the variables are declared with.",
    )
