"""The memory that a program's passes and steps will take, foreseen from its values before any of them
is computed.

A value has as many numbers as its axes and dims say; one along an axis of slices has those of a
slice. What is known of the data alone is kept for the whole run; a pass that is differentiated
keeps its values too; of any other pass a few are there at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.data.bound import mapped
from fccomodel.program.graph import below
from fccomodel.program.lower.lowered import BlockSteps, Lowered
from fccomodel.program.lower.state import State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import truth
from fccomodel.program.operations.reductions import reduce

#: Bytes of a number in full passes, of one in a step, and of a truth value.
DOUBLE = 8
SINGLE = 4
TRUTH = 1
#: Values of one size that a pass holds at once, its own and what its operations need.
AT_ONCE = 3
#: Arrays as large as its elements that a tail needs for their order.
OF_ORDER = 4
#: Numbers in a slice of a full pass.
SLICE = 1 << 18
#: Copies of the data's arrays: of full passes, of steps.
COPIES = 2
#: Copies of the state that an algorithm keeps for blocks: now, before, and at the best point.
STATES = 3


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """Bytes that a run takes at most at once (``total``), those of its largest array, and of which
    expression that is."""

    total: float
    largest: float
    of: ir.Expr | None = None


def foreseen(lowered: Lowered) -> Foreseen:
    """The memory that a lowered plan takes."""
    kept, most, largest, of = 0.0, 0.0, 0.0, None
    for state, roots, differentiated, each in _passes(lowered):
        values = list(below(roots).values())
        found = {val.id: numbers(val) * (TRUTH if truth(val) else each) for val in values}
        kept += sum(found[val.id] for val in values if val.static and not val.op.kept(val))
        held = AT_ONCE * max(found.values(), default=0.0)
        if differentiated:
            held += 2 * sum(found[val.id] for val in values if val.varying and not _sliced(val))
        ordered = max((found[val.args[0].id] for val in values if val.op is reduce), default=0.0)
        most = max(most, held + OF_ORDER * ordered)
        for val in values:
            if found[val.id] > largest:
                largest, of = found[val.id], _expression(val, state)
    data = sum(array.nbytes for array in lowered.data.values() if not mapped(array))
    return Foreseen(total=kept + most + COPIES * data + _of_blocks(lowered), largest=largest, of=of)


def numbers(val: Val) -> float:
    """The numbers that a value has at once: along an axis of slices those of a slice."""
    width = math.prod([*(axis.size for axis in val.axes if axis.kind != "chunk"), *val.event])
    length = math.prod(axis.size for axis in val.axes if axis.kind == "chunk")
    return float(min(width * length, max(width, SLICE)) if length > 1 else width * length)


def _sliced(val: Val) -> bool:
    """Whether a value is computed slice by slice, again for its derivative."""
    return any(axis.kind == "chunk" for axis in val.axes)


def _passes(lowered: Lowered) -> Iterator[tuple[State, list[Val], bool, int]]:
    """The functions of a program: where they are lowered, their values, whether they are
    differentiated, bytes of a number."""
    exact, whole = lowered.exact, lowered.whole
    arguments = [block.argument for block in exact.blocks]
    yield (
        exact.state,
        [exact.objective, *(v for _, v in exact.constraints.values()), *arguments],
        False,
        DOUBLE,
    )
    if whole is not None and whole.affordable:
        yield whole.state, [whole.root, *(block.argument for block in whole.blocks)], True, DOUBLE
    if lowered.constrained is not None:
        yield (
            lowered.constrained.state,
            [v for _, v in lowered.constrained.constraints.values()],
            True,
            DOUBLE,
        )
    if isinstance(lowered.steps, BlockSteps):
        yield lowered.steps.state, lowered.steps.roots, False, SINGLE
    else:
        yield lowered.steps.full, lowered.steps.values, True, DOUBLE
        yield lowered.steps.state, lowered.steps.samples, True, SINGLE


def _of_blocks(lowered: Lowered) -> float:
    """Bytes of what an algorithm keeps for every block: estimates and centres."""
    state = lowered.steps.state
    shapes: Iterable[tuple[int, ...]] = [b.shape for b in state.buffers.values()] + [*state.centres.values()]
    return float(STATES * SINGLE * sum(math.prod(shape) for shape in shapes))


def _expression(val: Val, state: State) -> ir.Expr | None:
    """The expression that a value, or the nearest that is made of it, is the value of."""
    if val.id in state.spans:
        return state.spans[val.id]
    made = (other for other in state.graph.vals[val.id :] if val in other.args and other.id in state.spans)
    first = next(made, None)
    if first is None:
        return None
    return state.spans[first.id]
