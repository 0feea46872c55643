"""The schedule of an algorithm's theorem: the problem's constants with their standing, the
hyper-parameters from them, the number of steps, and the accuracy that fewer steps are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from math import inf, isfinite, sqrt
from typing import Any

from fccomodel import structure
from fccomodel.algorithms import Algorithm, Constants
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.searching import least
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import members
from fccomodel.plan import errors
from fccomodel.plan.assumptions import Block, Setting, modulus
from fccomodel.plan.settings import BATCHES
from fccomodel.structure.facts import Fact, Standing

#: Value in place of a constant that is zero, since formulas divide by it.
FOR_ZERO = 1e-12
#: Constants that may be zero, with the meaning.
ZERO = {
    "C_f": "C_f = 0: the outer functions are constant",
    "C_g": "C_g = 0: the expectations do not depend on the variables",
    "L_g": "L_g = 0: the expectations are affine",
    "delta0": "F(w_0) - inf F = 0: the start is optimal",
}
#: Constants that may be infinite, with the meaning.
INFINITE = {
    "L_f": "L_f is infinite: outer functions have kinks",
    "L_g": "L_g is infinite: expectations have kinks inside",
}
#: Hyper-parameters that must be positive.
POSITIVE = ("eta", "inner_eta", "nu", "lam", "beta", "gamma", "stage", "inner_steps")
#: A schedule is refused if a hyper-parameter grows by more than this factor with a smaller ``FOR_ZERO``.
DEPENDS = 2.0
#: The least accuracy in the search for the one that some steps are worth.
FINEST = 1e-9
#: The largest accuracy in that search.
COARSEST = 1e9
Known = tuple[float, Standing]
Seen = Mapping[str, Fact]
UNKNOWN: Known = (1.0, Standing.ASSUMED)


@dataclass(frozen=True, eq=False, kw_only=True)
class TheoremSchedule:
    """The schedule of the theorem about an algorithm and its update ``step`` of w, for a problem's
    constants."""

    record: Algorithm
    step: str
    constants: Constants

    @cached_property
    def _values(self) -> dict[str, float]:
        return numbers_of(self.record, self.step, self.constants) or {}

    @property
    def hyper(self) -> dict[str, float]:
        """The values of the hyper-parameters, with ``lam`` if f is smoothed."""
        return {n: value for n, value in self._values.items() if n not in (*BATCHES, "iterations")}

    @property
    def batches(self) -> dict[str, int]:
        """The batch sizes that the theorem sets, by option."""
        return {name: int(self._values[name]) for name in BATCHES if name in self._values}

    @property
    def steps(self) -> float | None:
        """The steps that the theorem asks for to reach ``constants.eps``; None if it does not say."""
        return self._values.get("iterations")

    def _steps_to(self, eps: float) -> float:
        """The steps that the theorem asks for to reach eps: infinite if eps is too small for
        floating-point numbers, 0 if it is too large."""
        steps = (numbers_of(self.record, self.step, replace(self.constants, eps=eps)) or {}).get("iterations")
        if steps is None or not isfinite(steps):
            if eps <= self.constants.eps:
                return inf
            return 0.0
        return steps

    def worth(self, steps: float) -> float:
        """The accuracy for which the theorem asks for this many steps."""
        return least(lambda eps: self._steps_to(eps) <= steps, FINEST, COARSEST)

    def sentences(self, taken: int | None = None) -> list[str]:
        """``the theorem asks for 3.1e+09 steps to eps = 0.001; ...``, and what the steps taken are worth."""
        if self.steps is None:
            return []
        sentence = f"the theorem asks for {self.steps:.2g} steps to eps = {self.constants.eps:g}"
        if taken is None or taken >= self.steps:
            return [sentence]
        return [f"{sentence}; the {taken:,} taken are what it asks for eps = {self.worth(taken):.2g}"]


def numbers_of(record: Algorithm, step: str, constants: Constants) -> dict[str, float] | None:
    """The numbers of a theorem's schedule, or None if its formulas divide by 0 or overflow."""
    try:
        return dict(record.scheduled(step, constants) or {})
    except (ArithmeticError, ValueError):
        return None


def of_theorem(record: Algorithm, step: str, numbers: Constants, problem: ir.Problem) -> TheoremSchedule:
    """The schedule of the theorem about the algorithm and its update of w. Raises F0613 if there is none,
    or none with finite and positive numbers."""
    if record.theory is None:
        refuse(errors.no_schedule(record), source=problem.source)
    values = numbers_of(record, step, numbers)
    if values is None:
        wrong = {}
    else:
        wrong = _not_usable(values)
    infinite = [words for name, words in INFINITE.items() if not isfinite(getattr(numbers, name))]
    if values is None or wrong:
        made = [f"{name} = {value:.3g}" for name, value in wrong.items()]
        refuse(errors.no_finite_schedule(record, [*infinite, *_zeros(numbers)], made), source=problem.source)
    if (zeros := _zeros(numbers)) and (changed := _depends_on_zeros(record, step, numbers, values)):
        refuse(errors.no_finite_schedule(record, zeros, [f"{changed} = infinity"]), source=problem.source)
    return TheoremSchedule(record=record, step=step, constants=numbers)


def _not_usable(values: Mapping[str, float]) -> dict[str, float]:
    """The numbers of a schedule that are not finite, or not positive as they must be."""
    return {name: v for name, v in values.items() if not isfinite(v) or name in POSITIVE and v <= 0}


def _zeros(numbers: Constants) -> list[str]:
    """The constants that are zero, in words."""
    return [words for name, words in ZERO.items() if getattr(numbers, name) <= FOR_ZERO]


def _depends_on_zeros(record: Algorithm, step: str, numbers: Constants, values: Mapping[str, float]) -> str:
    """A hyper-parameter that tends to infinity as constants that are zero tend to 0; "" if there is none."""
    smaller: dict[str, Any] = {name: FOR_ZERO**2 for name in ZERO if getattr(numbers, name) <= FOR_ZERO}
    others = numbers_of(record, step, replace(numbers, **smaller))
    if others is None:
        return "its step size"
    return next((n for n in POSITIVE if n in values and others[n] > DEPENDS * values[n]), "")


def constants(
    setting: Setting, *, n: int, B1: int, B2: int, eps: float, rows: int = 1, sample: bool = False
) -> Constants:
    """The constants of a setting: proved by the analysis, else estimated if ``sample``, else 1 and
    assumed."""
    bound = setting.bound if sample else None
    estimates: dict[ir.Expr, Seen] = {
        g.expr: structure.estimate(setting.reformed, bound, g.expr) if bound is not None else {}
        for b in setting.blocks
        for g in b.inner
    }
    inner = [g for b in setting.blocks for g in b.inner]
    over = [_over(setting, b, estimates) for b in setting.blocks]
    numbers: dict[str, Known] = {
        "C_f": _largest([b.f.lipschitz for b in setting.blocks], [f.get("lipschitz") for f in over]),
        "L_f": _largest([b.f.gradient for b in setting.blocks], [f.get("gradient") for f in over]),
        "rho_f": _largest([b.f.below for b in setting.blocks], [f.get("below") for f in over]),
        "C_g": _largest(
            [g.sample.lipschitz for g in inner], [estimates[g.expr].get("lipschitz") for g in inner]
        ),
        "L_g": _largest([g.mean.gradient for g in inner], [estimates[g.expr].get("gradient") for g in inner]),
        "rho_g": _largest([g.mean.below for g in inner], [estimates[g.expr].get("gradient") for g in inner]),
        "sigma": _root(_largest([], [estimates[g.expr].get("value noise") for g in inner])),
        "zeta": _root(_largest([], [estimates[g.expr].get("gradient noise") for g in inner])),
        "mu": (modulus(setting)[0], Standing.PROVED),
    }
    if B2 >= rows > 1:  # every row in every step: no noise
        numbers |= {"sigma": (0.0, Standing.PROVED), "zeta": (0.0, Standing.PROVED)}
    if any(not b.f.smooth for b in setting.blocks):
        numbers["L_f"] = (inf, Standing.PROVED)
    if any(not g.mean.smooth for g in inner):
        numbers["L_g"] = (inf, Standing.PROVED)
    if bound is None:
        numbers["delta0"] = UNKNOWN
    else:
        numbers["delta0"] = _to_fall(setting, bound)
    numbers["diameter"] = _far(setting, numbers["mu"][0], numbers["delta0"])
    floor = ("C_f", "C_g", "L_g", "delta0")
    return Constants(
        n=n,
        B1=B1,
        B2=B2,
        eps=eps,
        rows=rows,
        d1=max((b.arguments for b in setting.blocks), default=1) or 1,
        standing={name: str(standing) for name, (_, standing) in numbers.items()},
        **{name: max(value, FOR_ZERO) if name in floor else value for name, (value, _) in numbers.items()},
    )


def _over(setting: Setting, block: Block, seen: Mapping[ir.Expr, Seen]) -> dict[str, Fact]:
    """Facts about f, by kind, if its arguments stay in the ranges that were seen."""
    ranges = {g.hole: seen[g.expr]["interval"].value for g in block.inner if "interval" in seen[g.expr]}
    if not ranges:
        return {}
    f = structure.seer(setting.reformed, setting.bound, ranges)(block.f.lipschitz.subject)
    kinds = {"lipschitz": f.lipschitz, "gradient": f.gradient, "below": f.below}
    return {kind: replace(fact, standing=Standing.ESTIMATED) for kind, fact in kinds.items()}


def _to_fall(setting: Setting, bound: Bound) -> Known:
    """F(w_0) - inf F of the objective with its penalties: the value at the start less the proved lower
    bound or, if F is strongly convex without constraints, |grad F(w_0)|^2 / (2 mu), if that is
    smaller."""
    objective, penalties = setting.reformed.objective.expr, list(_penalties(setting, bound))
    at = [
        structure.estimate(setting.reformed, bound, e, radius=0.0)
        for e in (objective, *(p for p, _ in penalties))
    ]
    if any("interval" not in facts for facts in at):
        return UNKNOWN
    values = [facts["interval"].value.hi for facts in at]
    start = values[0] + sum(count * value for (_, count), value in zip(penalties, values[1:], strict=True))
    bounds, mu = [start - _least(setting)], modulus(setting)[0]
    if mu and not penalties and "lipschitz" in at[0]:
        bounds.append(at[0]["lipschitz"].value.value ** 2 / (2 * mu))
    if isfinite(min(bounds)):
        return (min(bounds), Standing.ESTIMATED)
    return UNKNOWN


def _least(setting: Setting) -> float:
    """A proved lower bound of the minimised objective."""
    interval = setting.analysis.objective.interval.value
    reformed = setting.see.see(setting.reformed.objective.expr).interval.value
    minimised = setting.problem.objective.sense == "minimize"
    return max(reformed.lo, interval.lo if minimised else -interval.hi)


def _penalties(setting: Setting, bound: Bound) -> Iterable[tuple[ir.Expr, int]]:
    """The penalty of each family of constraints, and the number of its members."""
    if setting.penalty is None:
        return
    for c in setting.reformed.constraints:
        yield setting.penalised(c.body, c.kind), len(members.of(bound, c))


def _far(setting: Setting, mu: float, fall: Known) -> Known:
    """A bound of |w_0 - w*|: twice the size of a bounded domain, or by strong convexity."""
    sizes = [
        setting.analysis.see(ir.Var(name=name, shape=v.shape)).size.value
        for name, v in setting.problem.variables.items()
    ]
    if sizes and all(s.known and s.finite for s in sizes):
        return 2 * sqrt(sum(s.value**2 for s in sizes)), Standing.PROVED
    if mu:
        return (sqrt(2 * fall[0] / mu), fall[1])
    return UNKNOWN


def _largest(proved: Iterable[Fact | None], estimated: Iterable[Fact | None]) -> Known:
    """The largest of some constants, proved or estimated; 1 (assumed) if one of them is neither."""
    best = [
        next((f for f in pair if f is not None and f.value.finite and f.value.known), None)
        for pair in zip_longest(proved, estimated)
    ]
    facts = [f for f in best if f is not None]
    if not facts or len(facts) < len(best):
        return UNKNOWN
    return max(f.value.value for f in facts), max(f.standing for f in facts)


def _root(square: Known) -> Known:
    """The square root of a constant, with its standing."""
    return sqrt(square[0]), square[1]
