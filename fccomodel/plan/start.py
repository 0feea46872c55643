"""Where a run begins, if not at zero: at values that somebody gave, or where another run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False, kw_only=True)
class Kept:
    """What a run ends with, by the names of its program: all variables, those that reformulations
    added among them; the centres of smoothed functions; the estimates u of inner expectations;
    settings that it found; ``pairs`` (2, m, entries of w): changes of w and of the residual, by
    which a finish knew the curvature."""

    variables: Mapping[str, np.ndarray] = field(default_factory=dict)
    centres: Mapping[str, np.ndarray] = field(default_factory=dict)
    estimates: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    pairs: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Start:
    """Where a run begins.

    values       variables of its program by name; others begin as ever
    multipliers  by label of the constraints
    kept         what else a run of the same program ended with
    found        it is the answer of a run, of this model or of one like it: passes over all rows go
                 on from there at once
    answered     it is the answer to this very problem, as far as the model and its params say: a
                 report may find nothing to gain
    patience     counted seconds that this run had, where an interior-point method could take over
    """

    values: Mapping[str, np.ndarray]
    multipliers: Mapping[str, float] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    found: bool = False
    answered: bool = False
    patience: float | None = None
