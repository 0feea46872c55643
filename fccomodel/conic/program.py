"""A problem as a conic program: its numbers, where its variables and constraints are in them, and what
solving it costs."""

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

    layout  by variable: its first column and its shape       rows   by label: its first row in the
            program, and its sign there
    sign    -1 where the model's objective is maximised
    proofs  by status, what a method ended with that proves that there is no optimum
    """

    program: Assembled
    sign: float
    layout: dict[str, tuple[int, tuple[int, ...]]]
    rows: dict[str, tuple[int, float]]
    proofs: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def parts(self) -> Arrow | None:
        """The program as one of few variables and many rows, where it is one that costs less so than
        with every row at once."""
        if self.whole > Arrow.LEAST:
            parts = arrow(self.program)
        else:
            parts = None
        return parts if parts is not None and parts.seconds < self.whole else None

    @cached_property
    def whole(self) -> float:
        """Seconds with every row at once, foreseen."""
        return cost.seconds(self.program)

    @property
    def seconds(self) -> float:
        """Seconds of one core that solving it takes, foreseen by counts."""
        return self.whole if self.parts is None else self.parts.seconds

    @property
    def finite(self) -> bool:
        """Every number in it is."""
        program = self.program
        return all(np.isfinite(part).all() for part in (program.P.data, program.q, program.A.data, program.b))
