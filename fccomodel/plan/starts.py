"""The start of a run, if not at zero: given values, or the end of another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, kw_only=True)
class EndOfRun:
    """The end of a run, by the names of its program.

    variables   all variables, also those that reformulations added
    centres     of smoothed functions
    estimates   u of inner expectations
    moments     running means of gradients and of their squares
    settings    that the run found, such as step sizes
    pairs       changes of w and of the residual, (2, m, entries of w): the curvature that a finish knew
    training    the end of a run by somebody's optimizer (``execution.training.carried.Carried``), or None
    """

    variables: Mapping[str, np.ndarray] = field(default_factory=dict)
    centres: Mapping[str, np.ndarray] = field(default_factory=dict)
    estimates: Mapping[str, np.ndarray] = field(default_factory=dict)
    moments: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, float] = field(default_factory=dict)
    pairs: np.ndarray | None = None
    training: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Start:
    """The start of a run.

    values       variables of its program by name; others start as usual
    multipliers  by label of the constraints
    kept         the end of an earlier run of the same program
    declared     whether the model says it, and nobody else
    found        whether it is the answer of a run, of this model or of a similar one: passes over all
                 rows continue from it at once
    answered     whether it is the answer to this very problem, by the model and its params: a report
                 may find nothing to gain
    patience     counted seconds that the earlier run had before an interior-point method could take
                 over; None if none could
    """

    values: Mapping[str, np.ndarray]
    multipliers: Mapping[str, float] = field(default_factory=dict)
    kept: EndOfRun = field(default_factory=EndOfRun)
    declared: bool = False
    found: bool = False
    answered: bool = False
    patience: float | None = None
