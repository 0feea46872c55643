"""An algorithm at work: at chosen steps its estimates beside the true values, the bias of its
gradient, the multipliers.

The run is not disturbed: states are copied during the run and evaluated after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.rewrite import Rewriter
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import members
from fccomodel.evaluation.sets.members import Members
from fccomodel.execution import errors
from fccomodel.execution.run import answers
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program.emit import Program
from fccomodel.program.lower.records import EstimatorState

#: What can be traced: estimates, true values, the gradient of a step, multipliers.
QUANTITIES = ("u", "g", "gradient", "y")
#: The ratio of the steps of two looks, by default.
STEP_RATIO = 1.2
#: The largest number of blocks of an estimate that are kept; of more, a random choice.
LARGEST_BLOCKS = 500
#: Minibatches whose gradients are drawn at once for their mean.
SAMPLES = 100
#: The largest number of these minibatches.
LARGEST_SAMPLES = 2000
#: The standard error of the mean that is small enough, relative to the true gradient.
SMALL_ERROR = 0.03


@dataclass(frozen=True, kw_only=True)
class PointGradients:
    """The gradients at one point, each of the length of w.

    mean     of the stochastic gradients, given the estimates
    true     over all rows, of the smoothed problem with its multipliers
    noise    the root of the sum of the entries' variances for one minibatch
    samples  the number of minibatches in the mean
    """

    mean: np.ndarray
    true: np.ndarray
    noise: float
    samples: int

    @property
    def bias(self) -> float:
        """|mean - true|, which by chance alone is about ``error``."""
        return float(np.linalg.norm(self.mean - self.true))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.noise / math.sqrt(self.samples)

    @property
    def size(self) -> float:
        """|true|."""
        return float(np.linalg.norm(self.true))


@dataclass(frozen=True, kw_only=True)
class Look:
    """The state before a step.

    u, g  by estimate, an entry per block that is kept: the estimate (NaN: not seen yet), the truth
    y     by smoothed function: ALEXR's dual, or the centre of the smoothing if y follows from u
    """

    step: int
    oracles: float
    variables: Mapping[str, np.ndarray]
    u: Mapping[str, np.ndarray] = field(default_factory=dict)
    g: Mapping[str, np.ndarray] = field(default_factory=dict)
    y: Mapping[str, np.ndarray] = field(default_factory=dict)
    gradient: PointGradients | None = None
    multipliers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The looks at a run.

    estimates  texts of the expectations, by their names
    duals      texts of the smoothed functions, by their names
    blocks     labels of the blocks that are kept, of either
    """

    looks: Sequence[Look]
    estimates: Mapping[str, str]
    duals: Mapping[str, str]
    blocks: Mapping[str, Sequence[str]]


class Microscope:
    """Looks at ``wanted`` quantities at the steps ``at``, or at ever rarer ones, during one run."""

    def __init__(self, wanted: Sequence[str], at: Sequence[int] | None = None):
        for name in wanted:
            if name not in QUANTITIES:
                refuse(errors.not_a_quantity(name, QUANTITIES))
        self.wanted = tuple(wanted)
        if at is None:
            self.steps = spreading()
        else:
            self.steps = iter(sorted({int(step) for step in at}))
        self.next: float = next(self.steps, math.inf)
        self.seen: list[SimpleNamespace] = []
        self.run: Any = None

    def over(self, module: Any, bound: Bound) -> None:
        """Put the microscope into a program's loop."""
        if not hasattr(module.SOLVER, "advance"):
            refuse(errors.not_traced(), source=bound.problem.source)
        if "gradient" in self.wanted and module.SOLVER.whole is None:
            refuse(errors.gradient_not_known(), source=bound.problem.source)
        steps, advance = module.take_steps, module.SOLVER.advance

        def take_steps(run: Any, *given: Any) -> Any:
            """Take the steps with the run known to the microscope."""
            self.run = run
            try:
                return steps(run, *given)
            finally:
                self.run = None

        def advanced(solver: Any, data: Any, state: Any, u: Any, c: Any, batch: Any, h: Any) -> None:
            """Copy the state if its step is next, then take the step."""
            if self.run is not None and self.run.count >= self.next:
                self.keep(data, state, u, c, h)
            advance(solver, data, state, u, c, batch, h)

        module.take_steps, module.SOLVER = take_steps, replace(module.SOLVER, advance=advanced)

    def keep(self, data: Any, state: Any, u: Any, c: Any, h: Any) -> None:
        """Copy the state of the run."""
        count = self.run.count
        w = state.w.clone()
        u, c, h = copied(u), copied(c), h.copy()
        self.seen.append(SimpleNamespace(count=count, data=data, w=w, u=u, c=c, h=h))
        while self.next <= count:
            self.next = next(self.steps, math.inf)

    def trace(self, module: Any, program: Program, bound: Bound, seed: int) -> Trace:
        """The trace that the copies give."""
        blocks_traced = {
            name: blocks(bound, buffer.binders, seed) for name, buffer in program.estimates.items()
        }
        duals = {}
        if self.seen and "y" in self.wanted:
            centred = {name: f for name, f in program.smoothed.items() if hasattr(self.seen[0].c, name)}
            duals = {name: blocks(bound, f.binders, seed) for name, f in centred.items()}
        exact = None
        if self.seen and {"gradient", "y"} & set(self.wanted):
            device = self.seen[0].w.device
            with torch.inference_mode(False), torch.no_grad():
                tensors = module.as_namespace(dict(program.data), device, torch.float64)
                exact = module.SOLVER.prepare_full(tensors)
        looks = [self.look(module, program, bound, at, blocks_traced, duals, exact, seed) for at in self.seen]
        labels = {name: family.labels("") for name, family in (blocks_traced | duals).items()}
        texts = {name: program.estimates[name].text for name in blocks_traced}
        return Trace(
            looks=looks,
            estimates=texts,
            duals={name: program.smoothed[name].text for name in duals},
            blocks=labels,
        )

    def look(
        self,
        module: Any,
        program: Program,
        bound: Bound,
        at: Any,
        kept: Mapping[str, Members],
        duals: Mapping[str, Members],
        exact: Any,
        seed: int,
    ) -> Look:
        """The wanted quantities of one state."""
        variables = answers.variables(program, bound, at.w.cpu().double())
        parts: dict[str, Any] = {
            "step": at.count,
            "oracles": at.count * module.SOLVER.oracles,
            "variables": variables,
        }
        if "u" in self.wanted:
            parts["u"] = {name: estimate(getattr(at.u, name), family) for name, family in kept.items()}
        if "g" in self.wanted:
            evaluator = Evaluator(
                bound, {name: torch.as_tensor(value) for name, value in variables.items()}, seed=seed
            )
            parts["g"] = {
                name: truth(evaluator, program.estimates[name], family) for name, family in kept.items()
            }
        if "gradient" in self.wanted:
            parts["gradient"] = self.gradient(module, at, exact, seed)
        if "y" in self.wanted:
            parts["y"] = {name: estimate(getattr(at.c, name), family) for name, family in duals.items()}
            final = SimpleNamespace(c=at.c, h=at.h, w=at.w.double(), exact=exact)
            with torch.inference_mode(False), torch.no_grad():
                values = answers.exact_values(module, program, final)
                parts["multipliers"] = answers.multipliers(program, bound, final, values)
        return Look(**parts)

    def gradient(self, module: Any, at: Any, exact: Any, seed: int) -> PointGradients:
        """The mean over minibatches, each from the same estimates and centres, and the true gradient."""
        solver = module.SOLVER
        data = SimpleNamespace(**{**vars(at.data), "waiting": {}})
        rng = torch.Generator(device=at.w.device).manual_seed(seed + 1 + at.count)
        true = true_gradient(module, at, exact)
        small = SMALL_ERROR * float(true.norm())
        total = torch.zeros_like(true)
        squares = 0.0
        count = 0
        error = math.inf
        while count < LARGEST_SAMPLES and error > small:
            with module.no_grad():
                for batch in module.drawn(solver, data, rng, SAMPLES):
                    u = copied(at.u)
                    c = copied(at.c)
                    G = solver.gradient(data, at.w, at.w, u, c, batch, at.h).double()
                    total += G
                    squares += float(G @ G)
            count += SAMPLES
            squared_deviations = squares - float(total @ total) / count
            noise = math.sqrt(max(squared_deviations, 0.0) / (count - 1))
            error = noise / math.sqrt(count)
        mean = total / count
        return PointGradients(mean=mean.cpu().numpy(), true=true.cpu().numpy(), noise=noise, samples=count)


def spreading() -> Iterator[int]:
    """The steps 0, 1, 2, .., ever rarer."""
    step = 0
    while True:
        yield step
        step = max(step + 1, math.ceil(STEP_RATIO * step))


def copied(state: Any) -> SimpleNamespace:
    """A copy of a state and its tensors."""
    return SimpleNamespace(
        **{name: x.clone() if torch.is_tensor(x) else x for name, x in vars(state).items()}
    )


def blocks(bound: Bound, binders: Sequence[ir.Binder], seed: int) -> Members:
    """The blocks of an estimate or a dual that are kept: all, or a random choice."""
    family = members.members(bound, binders)
    if len(family) <= LARGEST_BLOCKS:
        return family
    chosen = np.sort(np.random.default_rng(seed).choice(len(family), LARGEST_BLOCKS, replace=False))
    return replace(family, places=family.places[chosen])


def estimate(u: torch.Tensor, family: Members) -> np.ndarray:
    """The entries of an estimate at the blocks that are kept, in float64."""
    if not family.ids:
        return np.asarray(u.double().cpu().numpy()[family.ids])[None]
    return u.double().cpu().numpy()[family.ids]


def truth(evaluator: Evaluator, buffer: EstimatorState, family: Members) -> np.ndarray:
    """The expectation at the blocks, over all rows, of functions as stated and not of their envelopes."""
    original = Rewriter(lambda node: node.stated if isinstance(node, Smoothed) else None)(buffer.node)
    with torch.no_grad():
        value = family.over(evaluator.value(original, family.env)).double()
    return (value.log() if buffer.log else value).numpy()


def true_gradient(module: Any, at: Any, exact: Any) -> torch.Tensor:
    """The gradient of the smoothed problem over all rows, with its current multipliers.

    If steps move the outer functions' own y, the multipliers that belong to the true values.
    """
    solver = module.SOLVER
    h = at.h.copy()
    w = at.w.double()
    centres = {name: x.double().clone() for name, x in vars(at.c).items()}
    c = SimpleNamespace(**centres)
    with torch.inference_mode(False), torch.no_grad():
        for name, shape in solver.inside.items():
            setattr(c, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
            h.smooth(name, h.lam_inner or 1e-6)
        if solver.dual:
            c, _ = module.multipliers(solver, exact, w, c, h)
            h = module.fixing(h)
        return module.slope_of(solver, exact, w, c, h)
