"""From the values of a program to its text, and the data that it reads."""

from fccomodel.program.emit.program import Program, emit

__all__ = ["Program", "emit"]
