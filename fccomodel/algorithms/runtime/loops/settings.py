"""The numbers that steps and loops go by. The emitter copies it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass(kw_only=True)
class LoopSettings:
    """What all steps and loops go by. A program adds the hyper-parameters of its algorithm and, for
    each function that it smooths, ``lam_`` with the name of the function's centre.

    eta        size of a step                                    rho    largest multiplier that
               penalties allow
    lam        smoothing to begin with; 0: by the size of arguments        lam_inner    that inside
               expectations
    tau        weight of a centre in its next value, where steps move it
    stage      steps of the first stage                          longest    of the longest
    gain       of a stage that counts as progress, relative      patience   stages without any before the end
    weight     of violations in the merit of a point
    steep      length of the penalties' gradients that their smoothing was made for
    off        by centre: how far its function's argument is off as steps estimate it
    annealed   steps fall over the budget too, to a tenth
    once       over the budget alone, to a hundredth, and not within stages, which go on from where
               the one before ended
    looking    share of the steps' work that looks at all rows may take; 0: stages have their length
    kept       smoothing, rho and weight are those that another run ended with
    pass_step  size of a proximal step of full passes, where another run found it
    powers     gradients that an estimate of curvature takes to begin with        halvings   of a
               first step, at most
    """

    eta: float = 0.0
    rho: float = 10.0
    lam: float = 0.0
    lam_inner: float = 0.0
    tau: float = 0.0
    stage: int = 200
    longest: int = 4000
    gain: float = 1e-4
    patience: int = 12
    weight: float = 0.0
    steep: float = math.inf
    off: dict[str, float] = field(default_factory=dict)
    annealed: bool = False
    once: bool = False
    looking: float = 0.0
    kept: bool = False
    pass_step: float = 0.0
    powers: int = 8
    halvings: int = 40

    def copy(self) -> Self:
        """The same numbers, to be changed apart from these."""
        return copy.copy(self)

    def smoothing(self, name: str) -> float:
        """The smoothing parameter of a centre's function."""
        return getattr(self, "lam_" + name)

    def smooth(self, name: str, lam: float) -> None:
        """Sets it."""
        setattr(self, "lam_" + name, lam)

    def smoothed(self, change: Callable[[float], float]) -> Self:
        """A copy in which every function's smoothing parameter is changed."""
        changed = self.copy()
        vars(changed).update({key: change(lam) for key, lam in vars(self).items() if key.startswith("lam_y")})
        return changed


@dataclass(kw_only=True)
class BlockSettings(LoopSettings):
    """Those of the loop over blocks.

    peak       size of a stage's first step                      together   batches at one w whose
               mean gradient moves it
    steady     weights of new inner values stay as they are within a stage
    gamma      weight of new inner values; 0: estimates have none          gamma_prime    of their difference
    """

    peak: float = 0.0
    together: int = 1
    steady: bool = False
    gamma: float = 0.0
    gamma_prime: float = 0.0


@dataclass(kw_only=True)
class VectorSettings(LoopSettings):
    """Those of the loop over all inner expectations as one vector.

    growth     of an epoch's length from one to the next         shrink     of the step size where
               an epoch gains nothing
    look       steps of an epoch between exact evaluations       probe      samples that the first
               step size is found by
    matrix     entries of the largest Jacobian that is kept as a matrix
    pass_limit samples above which F is not computed exactly, but by algorithms that are made of full passes
    """

    growth: float = 1.0
    shrink: float = 0.6
    look: int = 1000
    probe: int = 500
    matrix: float = 4e6
    pass_limit: float = 1e7
