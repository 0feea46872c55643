"""The settings of steps and loops, and the options of a run. The emitter copies them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run, which ``solve`` and the stages after it take by name.

    seed        seed of the random numbers
    device      where it runs
    dtype       precision of the steps; None: float32
    seconds     seconds of the clock, which ends the run; None: no limit
    iterations  number of steps; None: no limit
    oracles     number of values g_i(w; xi) that steps may ask for; None: no limit
    room        counted seconds that the steps and the passes after them share; None: ``seconds``
    share       counted seconds that the steps may take; None: no limit
    patience    counted seconds after which the run is judged; None: no limit
    price       counted seconds of a pass; in a loop only if passes may come in place of steps
    way         what comes after the steps: ``finish``, ``restore``, or '' for nothing; None: what there
                is room for
    passes      number of passes after the steps; None: no limit
    tol         KKT residual to end at; None: none is estimated
    exact       the data in float64, if they are made already
    planned     number of steps that the stages are planned by: those of a run that was cut
    progress    progress(entry) hears of every stage
    stop        stop() says whether a person asks for the end
    keep        writes the state of the run, and puts it back
    """

    seed: int = 0
    device: str = "cpu"
    dtype: Any = None
    seconds: float | None = None
    iterations: int | None = None
    oracles: float | None = None
    room: float | None = None
    share: float | None = None
    patience: float | None = None
    price: float | None = None
    way: str | None = None
    passes: int | None = None
    tol: float | None = None
    exact: Any = None
    planned: int | None = None
    progress: Any = None
    stop: Any = None
    keep: Any = None


@dataclass(kw_only=True)
class LoopSettings:
    """The settings of all steps and loops.

    A program adds the hyper-parameters of its algorithm and, for each function that it smooths,
    ``lam_`` with the name of the function's centre.

    eta        size of a step
    rho        largest multiplier that penalties allow
    lam        smoothing to begin with; 0: by the size of the arguments
    lam_inner  smoothing inside expectations
    tau        weight of a centre in its next value, where steps move it
    stage      steps of the first stage
    longest    steps of the longest stage
    gain       relative gain of a stage that counts as progress
    patience   stages without progress before the end
    weight     weight of violations in the merit of a point
    steep      length of the penalties' gradients that their smoothing was made for
    off        by centre: error of the function's argument as steps estimate it
    annealed   whether steps fall over the budget too, to a tenth
    once       whether steps fall over the budget alone, to a hundredth: a stage goes on from where the
               one before ended
    kept       whether smoothing, rho and weight are those that another run ended with
    pass_step  size of a proximal step of full passes, where another run found it
    powers     gradients that the first estimate of curvature takes
    halvings   halvings of a first step, at most
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
        """A copy that can be changed without changing these."""
        return copy.copy(self)

    def smoothing(self, name: str) -> float:
        """The smoothing parameter of a centre's function."""
        return getattr(self, "lam_" + name)

    def smooth(self, name: str, lam: float) -> None:
        """Set the smoothing parameter of a centre's function."""
        setattr(self, "lam_" + name, lam)

    def smoothed(self, change: Callable[[float], float]) -> Self:
        """A copy in which every function's smoothing parameter is changed."""
        changed = self.copy()
        vars(changed).update({key: change(lam) for key, lam in vars(self).items() if key.startswith("lam_y")})
        return changed


@dataclass(kw_only=True)
class BlockSettings(LoopSettings):
    """The settings of the loop over blocks.

    peak         size of a stage's first step
    together     batches at one w whose mean gradient moves it
    steady       whether weights of new inner values stay as they are within a stage
    gamma        weight of new inner values; 0: there are no estimates
    gamma_prime  weight of the change of inner values between two iterates
    """

    peak: float = 0.0
    together: int = 1
    steady: bool = False
    gamma: float = 0.0
    gamma_prime: float = 0.0


@dataclass(kw_only=True)
class VectorSettings(LoopSettings):
    """The settings of the loop over all inner expectations as one vector.

    growth      ratio of an epoch's length to that of the one before
    shrink      factor of the step size after an epoch without a gain
    look        steps of an epoch between exact evaluations
    probe       samples by which the first step size is found
    matrix      entries of the largest Jacobian that is kept as a matrix
    pass_limit  samples above which F is computed exactly only by algorithms made of full passes
    """

    growth: float = 1.0
    shrink: float = 0.6
    look: int = 1000
    probe: int = 500
    matrix: float = 4e6
    pass_limit: float = 1e7
