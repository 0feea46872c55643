"""From a plan to the text of a standalone solver, and the data that it reads."""

from fccomodel.emit.program import Program, emit

__all__ = ["Program", "emit"]
