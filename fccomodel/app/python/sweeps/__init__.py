"""Solves of one model for several values of its params, each from the answer before.

``sweep`` takes the values; ``path`` chooses the values of a regulariser's weight by itself.
"""

from __future__ import annotations

from fccomodel.app.python.sweeps.paths import path
from fccomodel.app.python.sweeps.record import Sweep, SweepPoint
from fccomodel.app.python.sweeps.runs import sweep

__all__ = ["SweepPoint", "Sweep", "path", "sweep"]
