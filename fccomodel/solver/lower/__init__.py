"""From typed expressions to a graph of values with named axes: a minibatch of the problem, or a full pass over it.

    _state       what is asked, and what comes of it: the graph, arrays, draws, estimates, names
    _slots _noise _cells _segments _batches _passes _binders    binders made concrete
    _separated _sizes _thinning                                 full passes over pairs of rows
    _reductions _algebra _estimates _envelopes                  means and sums, tails, what is estimated and smoothed
    _leaves _scores _atoms _families                            everything else
    _lowering    the nodes of expressions, one by one
    _vector      problems of the form phi(F(w))
"""

from fccomodel.solver.lower._lowering import Lowering
from fccomodel.solver.lower._records import Slot, Way
from fccomodel.solver.lower._state import State
from fccomodel.solver.lower._vector import Component, Entries, Phi

__all__ = ["Component", "Entries", "Lowering", "Phi", "Slot", "State", "Way"]
