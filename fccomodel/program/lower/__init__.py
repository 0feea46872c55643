"""From typed expressions to a graph of values with named axes: a minibatch of the problem, or a full
pass over it.

_state       what is asked, and what comes of it: the graph, arrays, draws, estimates, names
_slots _noise _cells _segments _batches _passes _binders    binders made concrete
_separated _sizes _thinning                                 full passes over pairs of rows
_reductions _algebra _estimates _envelopes                  means and sums, tails, what is estimated and smoothed
_leaves _scores _rows _atoms _families                      everything else
_lowering    the nodes of expressions, one by one
_vector      problems of the form phi(F(w))
_program _lowered    a plan: its steps, and the full passes of its program
_ranks       the steps of a program on several ranks
_together    operations of a step made as one
"""

from fccomodel.program.lower.bytes_needed import Foreseen, foreseen
from fccomodel.program.lower.lowered import (
    Block,
    BlockSteps,
    Constrained,
    Constraints,
    Layout,
    Lowered,
    VectorSteps,
    Whole,
)
from fccomodel.program.lower.lowering import Lowering
from fccomodel.program.lower.program import lower
from fccomodel.program.lower.ranks import over_all_ranks
from fccomodel.program.lower.records import Shares
from fccomodel.program.lower.state import State
from fccomodel.program.lower.together import together

__all__ = [
    "Block",
    "BlockSteps",
    "Constrained",
    "Constraints",
    "Layout",
    "Lowered",
    "Lowering",
    "Shares",
    "State",
    "VectorSteps",
    "Foreseen",
    "Whole",
    "foreseen",
    "lower",
    "over_all_ranks",
    "together",
]
