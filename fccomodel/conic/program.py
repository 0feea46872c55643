"""The record of a problem as a conic program: numbers, places of variables and constraints,
predicted cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fccomodel.conic import cost
from fccomodel.conic.cones import Assembled
from fccomodel.numerics.few_columns.arrow import Arrow, arrow


@dataclass(frozen=True, eq=False)
class Conic:
    """A problem as a conic program.

    layout  by variable: its first column and its shape
    rows    by label: its first row in the
            program, and its sign there
    sign    -1 where the model's objective is maximised
    proofs  by status, what a method ended with that proves that there is no optimum; as ``tried``, the
            longest time in seconds that a search for it was given
    """

    program: Assembled
    sign: float
    layout: dict[str, tuple[int, tuple[int, ...]]]
    rows: dict[str, tuple[int, float]]
    proofs: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def parts(self) -> Arrow | None:
        """The program in the form for few variables and many rows, or None if solving all rows at
        once is cheaper."""
        if self.whole > Arrow.LEAST:
            parts = arrow(self.program)
        else:
            parts = None
        if parts is not None and parts.seconds < self.whole:
            return parts
        return None

    @cached_property
    def whole(self) -> float:
        """Predicted seconds with all rows at once."""
        return cost.seconds(self.program)

    @property
    def seconds(self) -> float:
        """Predicted seconds of one core, from counts."""
        if self.parts is None:
            return self.whole
        return self.parts.seconds

    @property
    def bytes_needed(self) -> float:
        """Predicted bytes of the program and of its solution, from counts."""
        return cost.bytes_needed(self.program)

    @property
    def bytes_built(self) -> float:
        """Predicted bytes of the program alone, from counts."""
        return cost.bytes_built(self.program)

    @property
    def finite(self) -> bool:
        """Whether every number in the program is finite."""
        program = self.program
        arrays = (program.P.data, program.q, program.A.data, program.b)
        return all(np.isfinite(array).all() for array in arrays)
