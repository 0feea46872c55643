"""The record of an algorithm: the form that it works on, assumptions, estimator, step, loop, source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from types import ModuleType
from typing import Any, NamedTuple

from fccomodel.algorithms._reading import attributes
from fccomodel.algorithms.runtime.loops import block_loop
from fccomodel.algorithms.runtime.loops import steps as _steps
from fccomodel.algorithms.runtime.loops.schedules import SCHEDULES

#: Functions of an estimator's module that programs contain.
ESTIMATES = ("track", "track_log", "extrapolate")
#: Functions of an algorithm that change settings during a run.
ADAPTING = ("falling", "next_stage")


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of a theorem's schedule. An unknown one is 1, and its standing is ``assumed``.

    n             number of blocks
    B1            number of blocks in a step
    B2            number of samples for each block in a step
    eps           the wanted accuracy
    d1            number of arguments of f
    C_f, C_g      Lipschitz constants of the outer and inner functions of a block
    L_f, L_g      Lipschitz constants of their gradients; inf for a function with kinks
    rho_f, rho_g  weak convexity of the outer and inner functions
    mu            strong convexity of the whole objective; 0 if none is known
    sigma, zeta   standard deviations of one sample of g_i and of its Jacobian
    delta0        F(w_0) - inf F, where F is the minimised function with penalties
    diameter      a bound of |w_0 - w*|
    rows          number N of terms of the largest finite sum
    standing      name -> proved, bounded from data, estimated, assumed
    """

    n: int
    B1: int
    B2: int
    eps: float
    d1: int = 1
    C_f: float = 1.0
    C_g: float = 1.0
    L_f: float = 1.0
    L_g: float = 1.0
    rho_f: float = 0.0
    rho_g: float = 0.0
    mu: float = 0.0
    sigma: float = 1.0
    zeta: float = 1.0
    delta0: float = 1.0
    diameter: float = 1.0
    rows: int = 1
    standing: Mapping[str, str] = field(default_factory=dict)

    @property
    def C_1(self) -> float:
        """Root mean square of a minibatch's Jacobian: sqrt(C_g^2 + zeta^2 / B2)."""
        return sqrt(self.C_g**2 + self.zeta**2 / self.B2)

    @property
    def spread(self) -> float:
        """Variance of the gradient over samples and sampled blocks: C_f^2 (zeta^2 / B2 + C_g^2 / B1).

        It is at most C_f^2 (zeta^2 + C_g^2) / min(B1, B2) (sox-2022, Lemma 3). The second term is 0 if
        every step takes all blocks.
        """
        of_blocks = self.C_g**2 / self.B1 if self.B1 < self.n else 0.0
        return self.C_f**2 * (self.zeta**2 / self.B2 + of_blocks)

    def smoothed(self, lam: float) -> float:
        """Lipschitz constant of the gradient of the Moreau envelope f_lam.

        It is max(1/lam, rho_f / (1 - lam rho_f)) (sonex-alexr2-2025, Lemma A.1).
        """
        if lam * self.rho_f < 1:
            return max(1 / lam, self.rho_f / (1 - lam * self.rho_f))
        return float("inf")

    def smoothness(self, L_f: float | None = None) -> float:
        """L_F = C_f L_g + C_g^2 L_f of the whole objective (sox-2022, remark to Assumption 1)."""
        if L_f is None:
            L_f = self.L_f
        return self.C_f * self.L_g + self.C_g**2 * L_f


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """The promise of one theorem.

    name    the paper and the number of the theorem
    rate    cost of the accuracy eps, as a formula in n, B1, B2, eps, mu
    gives   ``optimum``: values near the least; ``stationarity``: gradients near 0; ``smoothed
            stationarity``: near a point whose gradient of the smoothed objective F_lambda is near 0
    where   assumption beyond those of the algorithm -> its place in the theorem
    """

    name: str
    rate: str
    gives: str = "stationarity"
    where: Mapping[str, str] = field(default_factory=dict)


class Variant(NamedTuple):
    """A form of an algorithm in a paper, and its state here.

    what    the form, in a few words
    where   its place in the paper
    state   ``as in the paper``, with the option that selects it; or the difference; or ``missing``
    """

    what: str
    where: str
    state: str = "as in the paper"


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm of the papers.

    name         identifier, as ``--algorithm`` takes it
    title        its name in the paper
    requires     assumption (a name in ``assumptions.ALL``) -> its place in the theorem: "Assumption 1 (i)"
    beyond       assumption of ``requires`` -> what the steps do if it does not hold. The theorem does
                 not cover such a model; the algorithm runs on it all the same, without being asked
    adaptive     the theorem of its Adam-type steps; empty if the theorems are about momentum only
    practice     departures of the practical steps from the theorem's, besides their sizes
    rate         cost of the accuracy that the theorem speaks of: a formula in n, B1, B2, eps, mu
    counts       unit of the rate: ``iterations``, or ``oracle calls`` if the batches of the theorem grow
                 with the accuracy
    gives        ``optimum``, ``stationarity`` or ``smoothed stationarity``
    theorem      number of the theorem and the paper
    cite         authors, title, venue
    better       theorems that promise more under more assumptions, the best first
    variants     the forms that the paper gives, and their state here; empty for a baseline of the
                 papers' comparisons
    oracle       ``blocks``: ``gradient``, one estimate per sampled block i; ``vector``: ``inner`` and
                 ``outer``, all blocks at once as one vector F(w) in R^q. Then ``begin(state, F, h)`` opens
                 an epoch and ``update(state, F, h)`` is a step; F is ``vector_oracle.VectorOracle``
    samples_outer  whether steps of a vector oracle may sample the outer functions of phi
    outer        how non-smooth outer functions are treated: ``moreau`` (by envelopes, whose centres move
                 between stages), ``entropy`` (the same with entropy on the simplex, for maxima),
                 ``subgradient`` (as they are), ``dual`` (each block keeps its y, moved in every step),
                 ``conjugate`` (the same, for smooth functions too), ``smooth`` (there are none)
    surrogate    reformulation by which it solves another problem (``group_average``, ``row_average``);
                 None: it solves this one
    penalty      how constraints are treated: ``smoothed_hinge``, ``hinge``, ``squared_hinge``,
                 ``lagrangian``; None: it takes no constraint
    estimator    module with ``track`` (how u follows g), ``needs_previous`` (whether it asks for g at
                 w_{t-1} too), and ``gradient_by``: whether gradients take the ``previous`` or the
                 ``new`` u_i; None if the oracle is ``vector``
    independent  where the paper says that gradients use inner samples of their own, independent of those
                 of the estimates (the option ``gradient_batch`` can give this up); empty: they share them
    begin        state of the step besides w and the point before: ``begin(state, h)``, called at the
                 start and after the loop goes back to the best point
    advance      one step, by the ``gradient``, ``update`` and ``project`` of a ``Solver``:
                 ``advance(solver, data, state, u, c, batch, h)``
    step_sizes   chooses the step sizes that are 0: ``step_sizes(h, inverse)``; ``inverse()`` is one over
                 the gradient's Lipschitz constant
    falling      hyper-parameters within a stage: ``falling(h, share)``, with the step size at that share
                 of its first value
    next_stage   changes from one stage to the next: ``next_stage(h, gained, worst)``; ``worst`` is the
                 largest violation
    in_theory    functions that a theorem's schedule uses in place of these, by name; stages change
                 nothing else then
    own          settings that its steps change and no option sets
    points       number of points at which a step evaluates each sample: 2 if the gradient at w_{t-1} is
                 needed too (STORM)
    steps        name of the update of w -> function; the first is the default
    loop         module with the loop around the step; the program calls its ``solve``, or ``outermost``
    outermost    function that the program calls instead: the loop and a last stage after it
    hyper        default values of the hyper-parameters
    theory       their values in the theorem, from the problem's constants: with ``lam`` if f is smoothed,
                 batch sizes if the theorem sets them, and ``iterations``, the steps until eps. ``schedule =
                 theory`` takes them, and the loop changes none of them
    theories     name of an update of w -> the schedule of its own theorem, if it is not ``theory``
    updates_in_theory  name of an update of w -> the theorem's update, if practice takes another
    grid         hyper-parameter -> the values tried in the papers' experiments; ``compare --tune``
                 searches them
    """

    name: str
    title: str
    requires: Mapping[str, str]
    rate: str
    theorem: str
    cite: str
    steps: Mapping[str, Callable[..., Any]]
    better: tuple[Theorem, ...] = ()
    gives: str = "stationarity"
    counts: str = "iterations"
    practice: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    beyond: Mapping[str, str] = field(default_factory=dict)
    adaptive: str = ""
    oracle: str = "blocks"
    samples_outer: bool = False
    outer: str = "moreau"
    penalty: str | None = None
    surrogate: str | None = None
    estimator: ModuleType | None = None
    independent: str = ""
    begin: Callable[..., None] = _steps.begin
    advance: Callable[..., None] = _steps.advance
    step_sizes: Callable[..., None] = _steps.step_sizes
    falling: Callable[..., Any] = _steps.falling
    next_stage: Callable[..., None] = _steps.next_stage
    in_theory: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    own: Mapping[str, float] = field(default_factory=dict)
    points: int = 1
    loop: ModuleType = block_loop
    outermost: Callable[..., Any] | None = None
    hyper: Mapping[str, float] = field(default_factory=dict)
    theory: Callable[[Constants], Mapping[str, float]] | None = None
    theories: Mapping[str, Callable[[Constants], Mapping[str, float]]] = field(default_factory=dict)
    updates_in_theory: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickled by its name: it holds functions and modules."""
        from fccomodel import algorithms

        return algorithms.get, (self.name,)

    @property
    def theorems(self) -> tuple[Theorem, ...]:
        """The theorems under which the algorithm can run, the best first; the last is the one of its
        requirements.
        """
        return (*self.better, Theorem(name=self.theorem, rate=self.rate, gives=self.gives))

    def scheduled(self, step: str, constants: Constants) -> Mapping[str, float] | None:
        """The schedule of the theorem about this update of w, for a problem's constants; None if there is
        none.
        """
        theory = self.theories.get(step, self.theory)
        if theory is None:
            return None
        return theory(constants)

    @property
    def solve(self) -> Callable[..., Any]:
        """The function that a program calls."""
        return self.outermost or self.loop.solve  # type: ignore[no-any-return]

    def functions(self, step: str, schedule: str) -> dict[str, Callable[..., Any]]:
        """The functions of the algorithm that a program contains, by their names in it.

        They are the algorithm's own functions for an update of w and a schedule.
        """
        chosen = {"begin": self.begin, "update": self.steps[step]}
        if schedule == "theory":
            chosen["update"] = self.updates_in_theory.get(step, self.steps[step])
        if self.oracle == "blocks":
            chosen |= {"step_sizes": self.step_sizes, "advance": self.advance}
            if schedule == "practical":
                chosen |= {"falling": self.falling, "next_stage": self.next_stage}
        return {**chosen, **(self.in_theory if schedule == "theory" else {})}

    def reads(self, step: str, schedule: str) -> frozenset[str]:
        """The names of the settings that its functions read, with this update of w and this schedule."""
        own = {name: f for name, f in self.functions(step, schedule).items() if name not in ADAPTING}
        return attributes([*own.values(), self.solve, self.loop.solve, SCHEDULES[schedule]])

    def adapts(self, step: str, schedule: str) -> frozenset[str]:
        """The names of the settings that change within a stage or from one to the next."""
        functions = self.functions(step, schedule)
        return attributes([functions[name] for name in ADAPTING if name in functions])

    @property
    def estimates(self) -> frozenset[str]:
        """The names of the settings that its estimates of inner expectations read."""
        known = {} if self.estimator is None else vars(self.estimator)
        return attributes([known[name] for name in ESTIMATES if name in known])

    @property
    def practical(self) -> tuple[Any, ...]:
        """The parts of its practical steps. Algorithms with equal parts take equal steps."""
        form = (
            self.oracle,
            self.outer,
            self.penalty,
            self.surrogate,
            self.estimator,
            self.loop,
            self.points,
            self.independent,
        )
        steps = self.functions(next(iter(self.steps)), "practical").items()
        return (*form, *steps, *self.hyper.items(), *self.own.items())

    def calls(self, n: float, B1: float, B2: float) -> float:
        """Number of values g_i(w; xi) in one unit of its ``rate``: a step, or an oracle call.

        An oracle call of a vector oracle evaluates all blocks.
        """
        per_call = self.counts == "oracle calls"
        if self.oracle == "vector":
            return n * (1 if per_call else B2 * self.points)
        points = max(self.points, 1 + bool(self.estimator and self.estimator.needs_previous))
        samples = 1 if per_call else B1 * B2
        return samples * (points + bool(self.independent))

    @property
    def projects_in_steps(self) -> bool:
        """Whether prox and projections follow every update of w, with its step size, and nothing else."""
        return self.advance is _steps.advance
