"""Foresees the memory of a program's passes and steps from the sizes of its values.

The size of a value is the product of its axes and dimensions; along an axis of slices it is that of a
slice. Values that depend on the data alone stay in memory for the whole run. A pass with a derivative
holds all its values, those of slices for one slice; any other pass only a few at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.data.bound import mapped
from fccomodel.data.net_costs import THRIFTY_ROWS, dear, numbers_of_a_row
from fccomodel.program.graph import below
from fccomodel.program.lower.lowered import BlockSteps, Lowered
from fccomodel.program.lower.state import State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import truth
from fccomodel.program.operations.reductions import reduce
from fccomodel.program.operations.scores import net

#: Bytes of a number in a full pass.
DOUBLE = 8
#: Bytes of a number in a step.
SINGLE = 4
#: Bytes of a truth value.
TRUTH = 1
#: Number of values of the largest size that a pass holds at once, with those inside an operation.
AT_ONCE = 3
#: Number of arrays of the size of its elements that a tail needs to sort them.
OF_ORDER = 4
#: Bytes of the heap for each byte of a pass's values: freed blocks that no other value fits into.
HEAP = 1.25
#: Numbers in a slice of a full pass.
SLICE = 1 << 18
#: Random numbers that are drawn at once, for several steps.
DRAWN_AT_ONCE = 1 << 21
#: Number of copies of the data's arrays: for full passes and for steps.
COPIES = 2
#: Number of copies of the estimates and centres of blocks: now, before, and at the best point.
STATES = 3
#: Number of arrays of the size of a smoothed function's argument that a look holds: the argument, its
#: centre before and after, and their difference.
OF_CENTRES = 4


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """The memory of a run.

    total     largest number of bytes at once
    largest   bytes of the largest array
    of        the expression that the largest array is the value of, if it is known
    """

    total: float
    largest: float
    of: ir.Expr | None = None


def foreseen(lowered: Lowered) -> Foreseen:
    """The memory that a lowered plan takes."""
    for_whole_run = 0.0
    for_a_pass = 0.0
    largest = 0.0
    of = None
    for state, roots, differentiated, number_bytes in _passes(lowered):
        values = list(below(roots).values())
        size = {val.id: numbers(val) * (TRUTH if truth(val) else number_bytes) for val in values}
        for_whole_run += sum(size[val.id] for val in values if val.static and not val.op.kept(val))
        at_once = AT_ONCE * max(size.values(), default=0.0)
        if differentiated:
            at_once += 2 * sum(size[val.id] for val in values if val.varying and not _sliced(val))
            at_once += sum(size[val.id] for val in values if val.varying and _sliced(val))
        at_once += sum(_inside_net(val, lowered, number_bytes) for val in values if val.op is net)
        sorted_size = max((size[val.args[0].id] for val in values if val.op is reduce), default=0.0)
        for_a_pass = max(for_a_pass, at_once + OF_ORDER * sorted_size)
        for val in values:
            if size[val.id] > largest:
                largest = size[val.id]
                of = _expression(val, state)
    data = sum(array.nbytes for array in lowered.data.values() if not mapped(array))
    total = for_whole_run + HEAP * for_a_pass + COPIES * data + _of_blocks(lowered)
    return Foreseen(total=total, largest=largest, of=of)


def numbers(val: Val) -> float:
    """The number of numbers of a value at once; along an axis of slices, in one slice."""
    width = math.prod([*(axis.size for axis in val.axes if axis.kind != "chunk"), *val.event])
    length = math.prod(axis.size for axis in val.axes if axis.kind == "chunk")
    if length > 1:
        return float(min(width * length, max(width, SLICE)))
    return float(width * length)


def _inside_net(val: Val, lowered: Lowered, number_bytes: int) -> float:
    """Bytes of the values between the layers of a net, with those of their gradients."""
    rows = math.prod(axis.size for axis in val.axes)
    if number_bytes == DOUBLE and dear(lowered.bound):
        rows = min(rows, THRIFTY_ROWS)
    return 2.0 * number_bytes * rows * numbers_of_a_row(lowered.bound, val.attrs["net"])


def _sliced(val: Val) -> bool:
    """Whether a value is computed slice by slice, and once more for its derivative."""
    return any(axis.kind == "chunk" for axis in val.axes)


def _passes(lowered: Lowered) -> Iterator[tuple[State, list[Val], bool, int]]:
    """The passes of a program: state, values, whether they are differentiated, and bytes of a number."""
    exact, whole, constrained = lowered.exact, lowered.whole, lowered.constrained
    values = [value for _, value in exact.constraints.values()]
    arguments = [block.argument for block in exact.blocks]
    yield exact.state, [exact.objective, *values, *arguments], False, DOUBLE
    if whole is not None and whole.affordable:
        yield whole.state, [whole.root, *(block.argument for block in whole.blocks)], True, DOUBLE
    if constrained is not None:
        yield constrained.state, [value for _, value in constrained.constraints.values()], True, DOUBLE
    if isinstance(lowered.steps, BlockSteps):
        yield lowered.steps.state, lowered.steps.roots, False, SINGLE
    else:
        yield lowered.steps.full, lowered.steps.values, True, DOUBLE
        yield lowered.steps.state, lowered.steps.samples, True, SINGLE


def steps_drawn_at_once(lowered: Lowered, most: int) -> int:
    """The number of steps, at most ``most``, for which a run draws its random numbers together."""
    each = sum(numbers(val) for val in lowered.steps.state.draws)
    return max(1, min(most, int(DRAWN_AT_ONCE / max(each, 1.0))))


def _of_blocks(lowered: Lowered) -> float:
    """Bytes of the estimates and centres of all blocks."""
    state = lowered.steps.state
    numbers_of_buffers = sum(math.prod(buffer.shape) for buffer in state.buffers.values())
    numbers_of_centres = sum(math.prod(shape) for shape in state.centres.values())
    arguments = sum(numbers(block.argument) for block in lowered.exact.blocks)
    for_looks = OF_CENTRES * DOUBLE * arguments
    if lowered.whole is not None:
        inside = sum(math.prod(shape) for shape in lowered.whole.inside.values())
        for_looks += OF_CENTRES * DOUBLE * inside
    return float(STATES * SINGLE * (numbers_of_buffers + numbers_of_centres)) + for_looks


def _expression(val: Val, state: State) -> ir.Expr | None:
    """The expression that has this value, or the next value made from it; None if there is none."""
    if val.id in state.spans:
        return state.spans[val.id]
    for other in state.graph.vals[val.id :]:
        if val in other.args and other.id in state.spans:
            return state.spans[other.id]
    return None
