"""Lowers typed expressions to a graph of values with named axes: for a minibatch, or for a full pass.

binders/      the elements that binders stand for: batches, segments, runs, passes, draws
reductions/   means and sums, tails, estimates, envelopes, full passes over pairs of rows
leaves/       everything else: atoms, scores, rows, families
state         settings and results of lowering: the graph, arrays, draws, estimates, names
lowering      the nodes of expressions, one by one
vector        problems of the form phi(F(w))
program       a plan: its steps, and the full passes of its program
given         the steps of a training criterion, whose rows and scores are handed in
ranks         the steps of a program on several ranks
"""

from fccomodel.program.lower.bytes_needed import Foreseen, foreseen
from fccomodel.program.lower.lowered import (
    BlockSteps,
    Constrained,
    Constraints,
    Layout,
    Lowered,
    LoweredSteps,
    SmoothedFunction,
    SmoothedProblem,
    VectorSteps,
)
from fccomodel.program.lower.lowering import Lowering
from fccomodel.program.lower.program import lower
from fccomodel.program.lower.ranks import over_all_ranks
from fccomodel.program.lower.records import RankShares
from fccomodel.program.lower.state import State
from fccomodel.program.lower.together import together

__all__ = [
    "SmoothedFunction",
    "BlockSteps",
    "Constrained",
    "Constraints",
    "Layout",
    "Lowered",
    "LoweredSteps",
    "Lowering",
    "RankShares",
    "State",
    "VectorSteps",
    "Foreseen",
    "SmoothedProblem",
    "foreseen",
    "lower",
    "over_all_ranks",
    "together",
]
