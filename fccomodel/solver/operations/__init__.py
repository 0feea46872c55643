"""The operations of the target program, a file for each family: what each takes, the shape of its value, its text, its
derivative."""

from fccomodel.solver.operations._base import Axis, Event, Op, Pull, Val, in_order, union
from fccomodel.solver.operations._registry import all

__all__ = ["Axis", "Event", "Op", "Pull", "Val", "all", "in_order", "union"]
