"""The operations of the target program, a file for each family: what each takes, the shape of its
value, its text, its derivative."""

from fccomodel.program.operations._registry import all
from fccomodel.program.operations.base import Axis, Event, Op, Pull, Val, in_order, union

__all__ = ["Axis", "Event", "Op", "Pull", "Val", "all", "in_order", "union"]
