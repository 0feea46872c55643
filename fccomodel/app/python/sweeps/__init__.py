"""One model for several values of its params, each solve from the answer before: ``sweep``; for the
weight of a regulariser from where zero is optimal, ``path``."""

from __future__ import annotations

from fccomodel.app.python.sweeps.paths import path
from fccomodel.app.python.sweeps.record import Point, Sweep
from fccomodel.app.python.sweeps.runs import sweep

__all__ = ["Point", "Sweep", "path", "sweep"]
