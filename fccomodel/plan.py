"""From a normal form to a plan: the algorithm by its requirements, batch sizes and hyper-parameters with their origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

from fccomodel import diagnostics, elements, ir, logarithms, rates
from fccomodel.algorithms import Algorithm, Constants
from fccomodel.assumptions import Finding, Setting, modulus
from fccomodel.bound import Bound
from fccomodel.choice import Candidate, alike, candidates, choose, rejected
from fccomodel.constants import constants
from fccomodel.normal import NormalForm
from fccomodel.options import NUMBERS, WORDS, Budget, parse_budget
from fccomodel.schedule import Schedule, of_theorem
from fccomodel.structure import Analysis, analyse

Origins = Mapping[str, tuple[Any, str]]
AUTOMATIC = "automatic"
#: of a run where nobody gave a budget
SECONDS = 25.0
#: options that a plan reads, with their meaning
OPTIONS = {
    "algorithm": "which algorithm",
    "step": "its update of w",
    "outer_batch": "blocks i sampled each step (B1)",
    "inner_batch": "samples per inner expectation (B2)",
    "sampling": "how blocks and shared samples are drawn: epochs (each pass takes all of them once), or iid",
    "inner_sampling": "whether blocks meet the same inner samples (shared), or each its own (per_block, as theorems assume)",
    "gradient_batch": "inner samples of gradients, in ALEXR, ALEXR2: fresh (as theorems assume), or the estimates' (same)",
    "eta": "first step size; 0: the inverse of the estimated smoothness",
    "gamma": "weight of the new inner value",
    "gamma_prime": "weight of the inner difference",
    "beta": "weight of the new gradient",
    "beta_prime": "weight of the new squared gradient",
    "eps": "added to the root of the squared gradient",
    "tau": "weight of a block's dual variable y in its next value (ALEXR), of the averages' new values (NASA)",
    "theta": "weight of the extrapolation of inner values (ALEXR), of the prox point in the next iterate (HSCG)",
    "fresh": "b / b0 in the weight of fresh samples; 0: b0 is a full pass (HSCG)",
    "horizon": "T in that weight; 0: the epoch's steps (HSCG)",
    "restarts": "1: each epoch starts from exact estimates, 0: the first one alone (HSCG)",
    "epochs": "epochs that the step sizes are made for (ASCVRG)",
    "alpha_power": "decay of the step size, (1 + t / warm)^-power (SCGD, ASC-PG)",
    "beta_power": "decay of the weight of new values (SCGD, ASC-PG)",
    "warm": "steps before such decays set in",
    "inner_eta": "step of the inner loop; 0: the inverse of the estimated smoothness",
    "inner_steps": "steps of the inner loop (K), of each subproblem (prox-linear)",
    "nu": "smoothing of the nested Moreau envelope, 1 / (weight of the proximal term); 0: as far as the inner steps reach",
    "matrix": "entries of the largest Jacobian that is kept as a matrix; products with it are beyond",
    "probe": "samples by which the first step size is found (all, where they are fewer)",
    "pass_limit": "samples above which full passes are made where an algorithm is made of them alone",
    "look": "steps within an epoch from one exact evaluation to the next",
    "rho": "largest multiplier that the penalty allows, to begin with",
    "stage": "steps of the first stage",
    "longest": "steps of the longest stage",
    "patience": "stages without progress before the end",
    "growth": "how much longer each epoch is than the one before",
    "shrink": "factor on the step size after an epoch without progress",
    "gain": "relative gain of a stage that counts as progress",
    "lam": "smoothing of non-smooth outer functions, to begin with; 0: by the size of their arguments",
    "schedule": "practical: stages that adapt; theory: the theorem's; decay: eta, a tenth of it from half of the budget on and a "
    "hundredth from three quarters, all else constant, and the last iterate",
    "epsilon": "the accuracy that theory schedules and rates are for",
    "unverified": "run where no theorem covers the model",
    "polish": "finish by passes over all rows, where they are affordable",
    "tol": "KKT residual to stop at: stationarity, violation and shift of the multipliers",
}
BATCHES = ("outer_batch", "inner_batch")
EPSILON = 1e-3
TOLERANCE = 1e-6
RHO = 10.0
SMOOTHING = 0.1
SCHEDULES = {
    "practical": "practical step sizes",
    "theory": "the theorem's schedule",
    "decay": "a step divided by ten at half and three quarters of the budget",
}
SETTINGS = ("seed", "device", "precision", "budget")


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """How a problem is solved, and why.

    algorithm   identifier            via      reformulations in order
    rejected    name -> what it lacks (or why it comes later), with the clauses of its theorem
    others      the same for a reader: the names that share a reason, and the reason
    options     every value with its origin
    batch       (binder, elements, inner) -> sample size or None for all
    hyper       what the emitted program starts from
    findings    assumption of the algorithm's theorem -> how it is met
    unverified  what the theorem needs and is not so: it does not cover the run
    rate        iterations that the theorem promises, in the problem's own numbers
    schedule    the theorem's, with the constants it was made of, where that was asked for
    undefined   what must hold for the model to be defined, and is not proved
    """

    algorithm: str
    algorithm_record: Algorithm
    via: tuple[str, ...]
    rejected: Mapping[str, list[str]]
    others: list[tuple[list[str], str]]
    options: dict[str, tuple[Any, str]]
    summary: list[str]
    normal: NormalForm
    batch: Callable[[ir.Binder, int, bool], int | None]
    hyper: Mapping[str, float]
    step: str
    smoothing: float = SMOOTHING
    inner_smoothing: float = 1e-2
    block: int = 64
    budget: Budget = Budget(seconds=SECONDS)
    threads: int = 1
    findings: Mapping[str, Finding] = field(default_factory=dict)
    unverified: tuple[str, ...] = ()
    rate: str = ""
    schedule: Schedule | None = None
    undefined: tuple[str, ...] = ()
    polish: bool = False

    @property
    def surrogates(self) -> list[str]:
        """The reformulations by which another problem is solved."""
        return [step.reformulation.name for step in self.normal.chain.steps if step.reformulation.role == "surrogate"]

    @property
    def constants(self) -> Constants | None:
        """What the theorem's schedule was made of, where that was asked for."""
        return None if self.schedule is None else self.schedule.constants

    @property
    def remembers(self) -> bool:
        """Estimates ask for the values at w_{t-1} too: not where theta, the weight of the difference to them, is 0."""
        estimator = self.algorithm_record.estimator
        return bool(estimator and estimator.needs_previous and self.hyper.get("theta", 1.0))

    @property
    def resamples(self) -> bool:
        """Gradients go through inner samples of their own, not those of the estimates."""
        return bool(self.algorithm_record.independent) and self.options["gradient_batch"][0] == "fresh"

    @property
    def whole(self) -> bool:
        """The smoothed problem, with centres that may move, has a gradient on all rows."""
        record = self.algorithm_record
        return self.polish and record.outer in ("moreau", "smooth") and record.penalty in ("smoothed_hinge", None)

    @property
    def finishing(self) -> bool:
        """It can be finished by passes over all rows; of nets there are too many local solutions."""
        return self.whole and all(v.net is None for v in self.normal.variables.values())


def make(
    problem: ir.Problem, *, bound: Bound | None = None, analysis: Analysis | None = None, options: Origins | None = None
) -> Plan:
    """The plan; raises F06xx where no algorithm applies, or the one named lacks something."""
    given = {**dict(options or {})}
    unknown = [n for n in given if n not in OPTIONS and n not in SETTINGS]
    if unknown:
        raise diagnostics.FccoError([_unknown(name) for name in unknown], problem.source)
    analysis = analysis or analyse(problem, bound)
    name = str(given["algorithm"][0]) if given.get("algorithm", (None, ""))[0] not in (None, "auto") else None
    rho = float(given.get("rho", (RHO, ""))[0])
    found = candidates(problem, bound, analysis, rho=rho)
    chosen = choose(found, name, bool(given.get("unverified", (False, ""))[0]), problem)
    record, normal, setting = chosen.record, chosen.normal, chosen.setting
    settled = {name: value for name, value in given.items()}
    settled.setdefault("algorithm", (record.name, AUTOMATIC))
    settled.setdefault("schedule", (WORDS["schedule"][0], AUTOMATIC))
    for name in ("sampling", "inner_sampling"):  # theorems are about independent samples
        settled.setdefault(name, (WORDS[name][settled["schedule"][0] == "theory"], AUTOMATIC))
    if record.independent:
        settled.setdefault("gradient_batch", (WORDS["gradient_batch"][0], AUTOMATIC))
    settled.setdefault("epsilon", (EPSILON, AUTOMATIC))
    settled.setdefault("tol", (TOLERANCE, AUTOMATIC))
    nets = bool(problem.nets)
    theory, decay = (settled["schedule"][0] == word for word in ("theory", "decay"))
    if decay and budget(settled).seconds is not None:
        raise diagnostics.FccoError([_no_steps_to_divide(settled)], problem.source)
    settled.setdefault("polish", (not theory and not decay, AUTOMATIC))
    step = given.get("step", (None, ""))[0] or default_step(normal, record, theory)
    if step not in record.steps:
        raise diagnostics.FccoError([_no_step(step, record)], problem.source)
    settled.setdefault("step", (step, AUTOMATIC))
    settled |= {n: (v, AUTOMATIC) for n, v in record.hyper.items() if n in BATCHES and n not in settled}
    batch, sizes = batches(settled, nets, bound, problem)
    for name, value in sizes.items():
        settled.setdefault(name, (value, AUTOMATIC))
    counts = counted(normal, bound, batch) if bound is not None else None
    eps = float(settled["epsilon"][0])
    schedule, scheduled = None, {}
    if theory:
        known = constants(setting, eps=eps, sample=True, **(counts or {"n": 1, "B1": 1, "B2": 1}))
        schedule = of_theorem(record, known, problem)
        scheduled = schedule.hyper
    if not normal.smoothed:
        scheduled.pop("lam", None)
    lam = float(given.get("lam", (0.0, ""))[0])
    smoothing = lam or scheduled.get("lam", SMOOTHING)
    weak = max((b.f.below.value.number for b in setting.blocks if b.f.weakly_convex), default=0.0)
    if weak * smoothing >= 1 and isfinite(weak):
        if theory or lam:
            raise diagnostics.FccoError([diagnostics.smoothing_too_large(smoothing, weak)], problem.source)
        smoothing = 0.5 / weak
    between = rounds(normal, bound, batch)
    waiting = between > 1 and exponentials(normal, bound)
    defaults = {
        "eta": 0.0 if step != "adam" else 2e-3 if nets else 0.05,
        "rho": RHO,
        **({"lam": 0.0} if normal.smoothed else {}),
        "stage": 200,
        "longest": 4000,
        "gain": 1e-4,
        "patience": 12,
        **{n: v for n, v in record.hyper.items() if n not in BATCHES},
        **({} if waiting else estimates(record, between)),
    }
    hyper: dict[str, float] = {"theory": 1.0} if theory else {"decay": 1.0} if decay else {"steady": 1.0} if waiting else {}
    for name, default in {**defaults, **scheduled}.items():
        settled.setdefault(name, (default, f"theory, epsilon = {eps:g}" if name in scheduled else AUTOMATIC))
        hyper[name] = (int if NUMBERS[name][0] else float)(settled[name][0])
    rate = rates.told(record.rate, {**(counts or {}), **_modulus(setting)}, eps) if bound is not None else ""
    return Plan(
        algorithm=record.name, algorithm_record=record, via=normal.via, rejected=rejected(found, chosen),
        others=alike(found, chosen), options=settled,
        summary=summarise(normal, record, step, str(settled["schedule"][0]), rate),
        normal=normal, batch=batch, hyper=hyper, step=step,
        findings=chosen.findings, unverified=uncovered(chosen, settled), rate=rate, schedule=schedule, budget=budget(settled),
        threads=1, undefined=undefined(analysis), smoothing=smoothing, polish=bool(settled["polish"][0]),
    )  # fmt: skip


def uncovered(chosen: Candidate, settled: Origins) -> tuple[str, ...]:
    """What the theorem needs and is not so: of the model, and of the samples that were asked for."""
    lacks, where = chosen.lacks(), chosen.record.independent
    if where and settled["gradient_batch"][0] == "same":
        lacks.append(f"inner samples of gradients that are independent of the estimates' ({where}); gradient_batch = same")
    return tuple(lacks)


def _modulus(setting: Setting) -> dict[str, float]:
    """mu where the objective is strongly convex by its regularisers."""
    mu, without = modulus(setting)
    return {"mu": mu} if mu and not without else {}


def undefined(analysis: Analysis) -> tuple[str, ...]:
    """What must hold for the model to be defined, and is not proved."""
    roots = [analysis.objective, *analysis.constraints.values()]
    return tuple(dict.fromkeys(f"{f.reason}: {analysis.problem.text(f.subject)}" for root in roots for f in root.domain))


def counted(normal: NormalForm, bound: Bound, batch: Callable[[ir.Binder, int, bool], int | None]) -> dict[str, int]:
    """n blocks, B1 of them and B2 samples of each in a step, rows of the largest expectation: the largest of each."""

    def size(node: ir.Reduce | ir.Constraint, inner: bool) -> tuple[int, int]:
        whole, drawn = 1, 1
        for binder in node.binders:
            if isinstance(binder.domain, ir.RowSet | ir.ValueSet | ir.LabelSet):
                count = len(elements.ids(bound, binder.domain))
                taken = batch(binder, count, inner)
                whole, drawn = whole * count, drawn * (count if taken is None else min(taken, count))
        return whole, drawn

    reformed = normal.reformed
    reductions = [
        n
        for e in (reformed.objective.expr, *(c.body for c in reformed.constraints))
        for n in ir.walk(e)
        if isinstance(n, ir.Reduce)
    ]
    outer = [size(n, False) for n in reductions if any(isinstance(m, ir.Reduce) for m in ir.walk(n.body))]
    inner = [size(m, True) for term in normal.terms for m in term.means]
    outer += [size(c, False) for c in reformed.constraints]
    n, B1 = max(outer, default=(1, 1))
    rows, B2 = max(inner, default=(1, 1))
    return {"n": n, "B1": B1, "B2": B2, "rows": rows}


def rounds(normal: NormalForm, bound: Bound | None, batch: Callable[[ir.Binder, int, bool], int | None]) -> float:
    """n / B1, the steps between two visits of a block, of the outer reduction where they are most; infinite before binding."""
    if bound is None:
        return inf
    most = 1.0
    for node in ir.walk(normal.objective):
        if isinstance(node, ir.Reduce) and any(isinstance(n, ir.Reduce) for n in ir.walk(node.body)):
            for binder in node.binders:
                if isinstance(binder.domain, ir.RowSet | ir.ValueSet | ir.LabelSet):
                    count = len(elements.ids(bound, binder.domain))
                    most = max(most, count / (batch(binder, count, False) or count))
    return most


def exponentials(normal: NormalForm, bound: Bound | None) -> bool:
    """Some expectations are tracked by their logarithms. Where blocks with one wait for their visits, gamma stays at its default:
    the estimate of a block that has become smaller comes down by the factor 1 - gamma in each."""
    if bound is None:
        return False
    return any(logarithms.of(bound).stable(node) is not None for node in ir.walk(normal.objective))


def estimates(record: Algorithm, rounds: float) -> dict[str, float]:
    """gamma such that estimates average over about ten steps, at most the default; gamma' = 1 - gamma as of SONEX where B1 = n
    (sonex-alexr2-2025, Theorem 4.7), gamma as of ALEXR2 with theta = 1 (Theorem 4.10)."""
    if "gamma_prime" not in record.hyper:
        return {}
    gamma = min(0.1 * rounds, record.hyper["gamma"])
    return {"gamma": gamma, "gamma_prime": gamma if record.independent else 1 - gamma}


def default_step(normal: NormalForm, record: Algorithm, theory: bool = False) -> str:
    """Adam-type, unless a prox or a projection would be wrong in its metric: those that do not act entry by entry.

    Where the algorithm has neither form, its first; theorems are about momentum.
    """
    from fccomodel import regularisers, sets

    if not {"adam", "momentum"} <= set(record.steps):
        return next(iter(record.steps))
    if theory:
        return "momentum"
    proxes = [regularisers.all()[p.name].step_per_entry for p in normal.prox]
    projections = [sets.all()[s.family].entrywise for v in normal.variables.values() for s in v.sets]
    return "adam" if all(proxes + projections) else "momentum"


def budget(settled: Origins) -> Budget:
    """What the run may use; ``SECONDS`` where nobody gave a budget."""
    value = settled.get("budget", (None, ""))[0]
    return Budget(seconds=SECONDS) if value is None else parse_budget(value)


def batches(
    settled: Origins, nets: bool, bound: Bound | None, problem: ir.Problem
) -> tuple[Callable[[ir.Binder, int, bool], int | None], dict[str, int]]:
    """Sample sizes: all elements where they are few, otherwise as many as cost little beside the step itself."""
    inner = settled["inner_batch"][0] if "inner_batch" in settled else (128 if nets else 512)
    outer = settled["outer_batch"][0] if "outer_batch" in settled else (64 if nets else 512)
    fixed_inner, fixed_outer = "inner_batch" in settled, "outer_batch" in settled

    def batch(binder: ir.Binder, n: int, is_inner: bool) -> int | None:
        drawn = binder.kind == "~"
        size = int(inner if drawn else outer)
        whole = size if (fixed_inner if drawn else fixed_outer) else 2 * size
        if isinstance(binder.domain, ir.ValueSet | ir.LabelSet) and n <= 4096 and not (fixed_outer and not drawn):
            return None
        return None if n <= whole else size

    return batch, {"outer_batch": int(outer), "inner_batch": int(inner)}


def iterations(record: Algorithm, rate: str) -> str:
    """The rate of the theorem, and what it comes to here."""
    return f"O({record.rate}) iterations" + (f", here {rate}" if rate else "")


def summarise(normal: NormalForm, record: Algorithm, step: str, schedule: str, rate: str) -> list[str]:
    """The plan in a few sentences."""
    lines = [f"{record.title} ({record.theorem}), {step} steps, {SCHEDULES[schedule]}; {iterations(record, rate)}"]
    for made in normal.chain.steps:
        if made.reformulation.role != "smoothing" and made.reformulation.role != "penalty":
            lines += [f"{made.reformulation.title}: {sentence}" for sentence in made.sentences]
    lines += [f"{how}: {text} ({why})" for text, how, why in normal.treatment]
    return lines


def _unknown(name: str) -> diagnostics.Diagnostic:
    known = [*OPTIONS, *SETTINGS]
    return diagnostics.error(
        "F0606",
        f"there is no option `{name}`",
        reason=f"Options are {', '.join(known)}.",
        fix=diagnostics.did_you_mean(name, known) or "Remove it.",
    )


def _no_steps_to_divide(settled: Origins) -> diagnostics.Diagnostic:
    found = settled.get("budget", (None, ""))[0]
    return diagnostics.error(
        "F0614",
        "schedule = decay has no steps to divide",
        reason="Its step sizes fall at half and at three quarters of a budget of steps or oracle calls; "
        + (f"`{found}` is a time." if found is not None else "none was given."),
        fix="Give one: --budget 20000it, or --budget 1e6oracles.",
    )


def _no_step(step: str, record: Algorithm) -> diagnostics.Diagnostic:
    return diagnostics.error(
        "F0607",
        f"{record.name} has no step `{step}`",
        reason=f"It has {', '.join(record.steps)}.",
        fix=f"Use step = {next(iter(record.steps))}.",
    )
