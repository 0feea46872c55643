"""Exact means over many pairs in O(n log n), where a pair enters through a sum of one-row terms.

With u = a_i + b_j:

    mean_j exp(u)          = exp(a_i) mean_j exp(b_j); over the rows after row i in some order: a
                           cumulative sum
    mean_j (u)_+^2         = (a_i^2 n_i + 2 a_i B_i + C_i) / n, with n_i, B_i, C_i the count and the
                           sums of b_j and b_j^2 over
                             b_j > -a_i, from the sorted b
    mean_j (u)_+, |u|, u^2   likewise

and means of sums of such functions times factors that do not depend on j, and log mean exp(u). All
operations are differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from fccomodel.core import ir
from fccomodel.evaluation.interpret.reductions import collapse
from fccomodel.evaluation.interpret.spaces import Listing, Product, Runs
from fccomodel.evaluation.sets.axes import Env, Named, align, apply_atom
from fccomodel.library import atoms, reductions
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP
from fccomodel.library.reductions.mean import MEAN

if TYPE_CHECKING:
    from fccomodel.evaluation.interpret.evaluator import Evaluator

#: Rows that all different runs may have together.
MOST_IN_RUNS = 1 << 24


def value(evaluator: Evaluator, node: ir.Reduce, space: Product | Listing, inner: Env) -> Named | None:
    """A sum, a mean or a log mean exp over a space, or None if it has no closed form here."""
    kind = reductions.of(node)
    if not (kind.additive or kind.logarithmic) or node.shape:
        return None
    if isinstance(space, Product) and kind.logarithmic:
        log = _log_mean(evaluator, node.body, space, inner)
        if log is None:
            return None
        if kind.total:
            return Named(log.data + math.log(float(space.count)), log.axes)
        return log
    if isinstance(space, Product):
        mean = _mean(evaluator, node.body, space, inner)
        if mean is None:
            return None
        if kind.total:
            return Named(mean.data * float(space.count), mean.axes)
        return mean
    return _runs(evaluator, node, space, inner)


# --------------------------------------------------------------------------------- products of axes
def _mean(evaluator: Evaluator, body: ir.Expr, space: Product, inner: Env) -> Named | None:
    """The mean of a body over the reduced axes, or None if it has no closed form here.

    Sums and constant factors are taken apart until known functions are left.
    """
    over = frozenset(space.over)
    mine = over.intersection(evaluator.axes(body, inner))
    if not mine:
        return evaluator.value(body, inner)
    if len(mine) == 1 and not evaluator.heavy(body, inner):
        return _average(evaluator.value(body, inner), over)
    if not isinstance(body, ir.Apply):
        return None
    if atoms.signed(body) is not None:
        return _from_parts(body.op, [_mean(evaluator, arg, space, inner) for arg in body.args])
    if body.op in ("mul", "div"):
        fixed = [not over.intersection(evaluator.axes(arg, inner)) for arg in body.args]
        if fixed[1] or fixed[0] and body.op == "mul":
            return _from_parts(body.op, [_mean(evaluator, arg, space, inner) for arg in body.args])
        return None
    kernel = _kernel(body)
    if kernel is None:
        return None
    name, argument = kernel
    terms = _terms(evaluator, argument, inner, over)
    if terms is None:
        return None
    if name != "exp":
        return _sorted(PIECES[name], terms, space)
    log = _log_mean_exp(terms, space)
    return Named(log.data.exp(), log.axes)


def _from_parts(op: str, parts: Sequence[Named | None]) -> Named | None:
    """An atom of the values of its arguments, or None if one of them is None."""
    values = [part for part in parts if part is not None]
    if len(values) == len(parts):
        return apply_atom(op, values, [None] * len(values))
    return None


def _average(part: Named, over: frozenset[int]) -> Named:
    """The mean of a value over some of its axes."""
    dims = tuple(k for k, axis in enumerate(part.axes) if axis in over)
    if not dims:
        return part
    axes_left = tuple(axis for axis in part.axes if axis not in over)
    return Named(part.data.mean(dims), axes_left)


def _kernel(node: ir.Apply) -> tuple[str, ir.Expr] | None:
    """The name of the function if a node is exp or a piecewise polynomial, and its argument; or None."""
    atom = atoms.of(node)
    name = node.op
    if atom is not None:
        name = atom.name
    if (base := atoms.squared(node)) is not None:
        inner = atoms.of(base)
        if inner is not None and inner.squared in PIECES:
            return inner.squared, base.children[0]
        return "square", base
    if name == "exp" or name in PIECES:
        return (name, node.args[0])
    return None


def _is(node: ir.Apply, name: str) -> bool:
    """Whether a node is a use of the atom with this name."""
    atom = atoms.get(node.op)
    return atom is not None and atom.name == name


Parts = Mapping[frozenset[int], Named]


def _terms(evaluator: Evaluator, argument: ir.Expr, inner: Env, over: frozenset[int]) -> Parts | None:
    """The terms of a sum, added up by the reduced axes that they depend on.

    None if a term depends on two reduced axes, or on a reduced axis and a kept one.
    """
    terms: dict[frozenset[int], list[Named]] = {}
    stack: list[tuple[ir.Expr, float]] = [(argument, 1.0)]
    while stack:
        node, sign = stack.pop()
        signed = atoms.signed(node)
        if signed is not None:
            stack.extend((part, part_sign * sign) for part_sign, part in signed)
            continue
        axes = frozenset(evaluator.axes(node, inner))
        reduced = axes & over
        mixes_axes = bool(reduced) and axes != reduced
        if mixes_axes:
            form = evaluator.rewritten(node)
            if form is None:
                return None
            stack.append((form, sign))
            continue
        if len(reduced) > 1 or evaluator.heavy(node, inner):
            return None
        part = evaluator.value(node, inner)
        terms.setdefault(reduced, []).append(Named(sign * part.data, part.axes))
    return {reduced: _added(parts) for reduced, parts in terms.items()}


def _added(parts: Sequence[Named]) -> Named:
    """The sum of some values over their common axes."""
    total = parts[0]
    for part in parts[1:]:
        (left, right), axes = align([total, part], entrywise=True)
        total = Named(left + right, axes)
    return total


ZERO = Named(torch.zeros((), dtype=torch.float64))


def _log_mean(evaluator: Evaluator, argument: ir.Expr, space: Product, inner: Env) -> Named | None:
    """The log mean exp over the reduced axes of a sum of one-row terms, or of a logaddexp of such sums."""
    if isinstance(argument, ir.Apply) and _is(argument, "logaddexp"):
        return _from_parts("logaddexp", [_log_mean(evaluator, arg, space, inner) for arg in argument.args])
    terms = _terms(evaluator, argument, inner, frozenset(space.over))
    if terms is None:
        return None
    return _log_mean_exp(terms, space)


def _log_mean_exp(terms: Parts, space: Product) -> Named:
    """The terms without a reduced axis, plus the log mean exp of the others over each reduced axis.

    Nothing overflows unless the result does.
    """
    alone = terms.get(frozenset(), ZERO)
    log = alone.data
    for reduced, part in terms.items():
        if reduced:
            (axis,) = reduced
            log = log + part.data.logsumexp(0) - math.log(space.lengths[axis])
    return Named(log, alone.axes)


#: kernel -> for u > 0 and for u < 0, the coefficients of 1, u, u^2
Quadratic = tuple[float, float, float]
PIECES: Mapping[str, tuple[Quadratic, Quadratic]] = {
    "sqhinge": ((0, 0, 1), (0, 0, 0)),
    "pos": ((0, 1, 0), (0, 0, 0)),
    "abs": ((0, 1, 0), (0, -1, 0)),
    "square": ((0, 0, 1), (0, 0, 1)),
}


def _sorted(pieces: tuple[tuple[float, float, float], ...], terms: Parts, space: Product) -> Named | None:
    """The mean over j of a piecewise quadratic of a_i + b_j for every i; and over i, if i is reduced.

    b is sorted downwards, so that a_i + b_j > 0 for the first ``count`` of the b_j. Both are shifted by
    the median of b, which keeps the sums of b and b^2 small.
    """
    parts = {next(iter(reduced)): part for reduced, part in terms.items() if reduced}
    if not 1 <= len(parts) <= 2:
        return None
    last = max(parts, key=lambda axis: space.lengths[axis])
    others = [part for axis, part in parts.items() if axis != last]
    a = _added([terms.get(frozenset(), ZERO), *others])
    b = parts[last].data
    centre = b.detach().median()
    order = b.detach().argsort(descending=True)
    shifted = (b - centre)[order]
    from_top = a.data + centre
    count = torch.searchsorted(-shifted.detach(), from_top.detach().contiguous())
    n = len(b)
    total = torch.zeros_like(from_top)
    above, below = pieces
    sides = ((above, _heads, count), (below, _tails, n - count))
    for piece, sums, number in sides:
        constant, linear, square = piece
        if not any(piece):
            continue
        sum_of_b = sums(shifted, count)
        total = total + constant * number + linear * (from_top * number + sum_of_b)
        if square:
            sum_of_squares = sums(shifted.square(), count)
            expanded = from_top * (from_top * number + 2 * sum_of_b) + sum_of_squares
            total = total + square * expanded
    return _average(Named(total / n, a.axes), frozenset(space.over))


def _heads(values: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Sums of the first ``count`` values."""
    return torch.cat([values.new_zeros(1), values.cumsum(0)])[count]


def _tails(values: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Sums of the values after the first ``count``."""
    sums_of_tails = values.flip(0).cumsum(0).flip(0)
    return torch.cat([sums_of_tails, values.new_zeros(1)])[count]


# ------------------------------------------------------------------------ runs of one binder's rows
def _runs(evaluator: Evaluator, node: ir.Reduce, space: Listing, inner: Env) -> Named | None:
    """A sum, a mean or a log mean exp over runs, or None if it needs more than functions of one row.

    Each different run is summed once. If all runs start, or all end, where the order does, they are
    cumulative sums.
    """
    if not space.alone or space.over or bool((space.runs.size == 0).any()):
        return None
    kind = reductions.of(node)
    if kind.logarithmic:
        mean = _run_log(evaluator, node.body, space, inner)
    else:
        mean = _run_mean(evaluator, node.body, space, inner)
    if mean is None or not kind.total:
        return mean
    sizes_of_runs = torch.from_numpy(space.runs.size).to(torch.float64)
    sizes = space.finish(sizes_of_runs.expand(space.shape))
    if kind.logarithmic:
        return _added([mean, Named(sizes.data.log(), sizes.axes)])
    return apply_atom("mul", [mean, sizes], [None, None])


def _run_mean(evaluator: Evaluator, body: ir.Expr, space: Listing, inner: Env) -> Named | None:
    """The mean of a body over every run, or None if it has no closed form here."""
    axes = frozenset(evaluator.axes(body, inner))
    if space.last_axis not in axes:
        return evaluator.value(body, inner)
    if axes == {space.last_axis}:
        if evaluator.heavy(body, inner):
            return None
        return _over_runs(evaluator.value(body, inner), space, torch.cumsum, MEAN)
    if not isinstance(body, ir.Apply):
        return None
    varying = [space.last_axis in evaluator.axes(arg, inner) for arg in body.args]
    atom = atoms.of(body)
    if isinstance(atom, atoms.ScalarAtom) and atom.linear(varying):
        return _from_parts(body.op, [_run_mean(evaluator, arg, space, inner) for arg in body.args])
    kernel = _kernel(body)
    if kernel is None:
        return None
    name, argument = kernel
    if name != "exp":
        return None
    log = _run_log(evaluator, argument, space, inner)
    if log is None:
        return None
    return Named(log.data.exp(), log.axes)


def _run_log(evaluator: Evaluator, argument: ir.Expr, space: Listing, inner: Env) -> Named | None:
    """The log mean exp over every run of a sum of one-row terms, or of a logaddexp of such sums."""
    mine = frozenset({space.last_axis})
    if not mine & frozenset(evaluator.axes(argument, inner)):
        return evaluator.value(argument, inner)
    if isinstance(argument, ir.Apply) and _is(argument, "logaddexp"):
        return _from_parts("logaddexp", [_run_log(evaluator, arg, space, inner) for arg in argument.args])
    terms = _terms(evaluator, argument, inner, mine)
    if terms is None or mine not in terms:
        return None
    logs = _over_runs(terms[mine], space, torch.logcumsumexp, LOGMEANEXP)
    if logs is None:
        return None
    return _added([terms.get(frozenset(), ZERO), logs])


def _over_runs(
    part: Named, space: Listing, cumulate: Callable[..., torch.Tensor], kind: Reduction
) -> Named | None:
    """The mean or the log mean exp over every run, of values along the last axis."""
    shape = [space.lengths[axis] for axis in space.cells]
    sums = _cumulated(part, space.runs, cumulate)
    if sums is None:
        listing, run_of_cell = space.distinct()
        if listing.total_size > MOST_IN_RUNS:
            return None
        whole = replace(listing, kept=()).whole()
        of_run = collapse(kind, whole, whole.take(part), {"theta": 1.0})
        return Named(of_run.data[run_of_cell].reshape(shape), space.cells)
    size = torch.from_numpy(space.runs.size).to(torch.float64)
    means = sums - size.log() if kind.logarithmic else sums / size
    return Named(means.reshape(shape), space.cells)


def _cumulated(part: Named, runs: Runs, cumulate: Callable[..., torch.Tensor]) -> torch.Tensor | None:
    """The sum over every run by one cumulative sum, or None unless all runs start or all end with the order.

    The longest run has every element of the others. Elements in no run (a censored patient whom no
    death follows) come before or after it.
    """
    ends = runs.start + runs.size
    if (ends == len(runs.order)).all():
        first = runs.start.min(initial=len(runs.order))
        longest = torch.from_numpy(runs.order[first:])
        sums_from_here = cumulate(part.data[longest].flip(0), 0).flip(0)
        return sums_from_here[torch.from_numpy(runs.start - first)]
    if (runs.start == 0).all():
        longest = torch.from_numpy(runs.order[: ends.max()])
        sums_to_here = cumulate(part.data[longest], 0)
        return sums_to_here[torch.from_numpy(ends - 1)]
    return None
