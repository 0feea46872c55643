"""Grading by mathematics: whether a model states the same problem as a key, and where it does not.

Two models state the same problem if they have the same feasible points and the same order of these by
their objectives. Their names and their order do not count, and neither does the way they are written.
The comparison goes by values at random points, on the given data and on random data of the declared
types. What it cannot decide it calls undecided.
"""

from fccomodel.app.grading.judging import grade
from fccomodel.app.grading.record import KINDS, CostOfDifferences, Difference, Grade

__all__ = ["KINDS", "CostOfDifferences", "Difference", "Grade", "grade"]
