"""A solved problem as files: ``result.json``, ``variables.npz``, ``solver.py`` with ``data.pt``, the
nets' scores; and back.

``result.json`` holds what it takes to judge the answer on other rows, and to score them: the
model's text, the binding, the statistics learned from the rows it was solved on (scaling,
categories, groups), the names of entries; and the hashes of the files that belong to it, among them
``arrays.npz`` with the arrays of the model, ``statistics.npz`` with the running statistics of its nets.
"""

from fccomodel.app.stored.results.evaluating import Evaluation, evaluate
from fccomodel.app.stored.results.reading import Stored, at_hand, load
from fccomodel.app.stored.results.record import RESULT, plain, to_json, versions
from fccomodel.app.stored.results.recorded import Recorded
from fccomodel.app.stored.results.writing import emitted, repeating, save, write_program

__all__ = [
    "RESULT",
    "Evaluation",
    "Recorded",
    "Stored",
    "at_hand",
    "emitted",
    "evaluate",
    "load",
    "plain",
    "repeating",
    "save",
    "to_json",
    "versions",
    "write_program",
]
