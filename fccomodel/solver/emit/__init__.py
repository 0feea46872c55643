"""From a plan to the text of a standalone solver, and the data that it reads."""

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.plan import Plan
from fccomodel.solver.emit.program import Emitter, Program
from fccomodel.solver.emit.vector import VectorEmitter

__all__ = ["Emitter", "Program", "VectorEmitter", "emit", "emitter"]


def emitter(problem: ir.Problem, bound: Bound, plan: Plan) -> Emitter:
    """What writes the program: by the form that the algorithm works on."""
    return (VectorEmitter if plan.algorithm_record.oracle == "vector" else Emitter)(problem, bound, plan)


def emit(problem: ir.Problem, bound: Bound, plan: Plan) -> Program:
    """The program of a plan on bound data."""
    return emitter(problem, bound, plan).program()
