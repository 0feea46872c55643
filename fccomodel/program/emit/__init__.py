"""Printing: from the values of a program to its text, and to the data that it reads."""

from fccomodel.program.emit.program import Program, emit

__all__ = ["Program", "emit"]
