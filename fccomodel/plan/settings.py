"""The options of a plan, each with its origin.

An option that is not given follows from the algorithm, its theorem and the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from fccomodel.algorithms import Algorithm
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.options import (
    AUTOMATIC,
    HALF,
    NUMBERS,
    USER,
    WORDS,
    Budget,
    Origins,
    Unused,
    parse_budget,
)
from fccomodel.data.bound import Bound
from fccomodel.evaluation import logarithms
from fccomodel.library import regularisers, sets
from fccomodel.library.errors import smoothing_too_large
from fccomodel.normal_form import NormalForm
from fccomodel.plan import errors
from fccomodel.plan.assumptions import Setting
from fccomodel.plan.sharing import SharedStrata, Wanted, strata
from fccomodel.plan.sizes import Batch
from fccomodel.structure import Analysis

#: Seconds of a run without a given budget.
SECONDS = 25.0
#: Options that a plan reads, with their meaning.
OPTIONS = {
    "algorithm": "the algorithm; race: a few get a share of the budget each, and the best one goes on",
    "step": "its update of w",
    "outer_batch": "blocks i sampled each step (B1)",
    "inner_batch": "samples per inner expectation (B2); default for networks: fewer if many blocks "
    "draw their own, 512 in total if all share them",
    "sampling": "how blocks and shared samples are drawn: epochs (each pass takes all once; inner "
    "ones from 16 on), or iid",
    "inner_sampling": "whether blocks see the same inner samples (shared), or each its own "
    "(per_block, as theorems assume)",
    "draws": "whether expectations over a table share one batch with some rows of every group "
    "(shared; default for networks, unless the objective saturates), or each draws its own (separate, "
    "as theorems assume)",
    "gradient_batch": "inner samples of gradients in ALEXR, ALEXR2: fresh (as theorems assume), or "
    "those of the estimates (same)",
    "eta": "first step size; 0: the inverse of the estimated smoothness",
    "gamma": "weight of the new inner value",
    "gamma_prime": "weight of the inner difference",
    "beta": "weight of the new gradient",
    "beta_prime": "weight of the new squared gradient",
    "eps": "added to the root of the squared gradient",
    "tau": "weight of a block's dual variable y in its next value (ALEXR); weight of new values in "
    "the averages (NASA)",
    "theta": "weight of the extrapolation of inner values (ALEXR); weight of the prox point in the "
    "next iterate (HSCG)",
    "fresh": "b / b0 in the weight of fresh samples; 0: b0 is a full pass (HSCG)",
    "mu": "weight of |w|^2 / 2 that is added to the objective (SOX-boost; theory: if it is only convex)",
    "flat": "part of the smoothness constant that smoothing does not change (HSCG, step = diminishing)",
    "values": "minibatches for estimates of values, per minibatch for Jacobians (HSCG)",
    "horizon": "T in that weight; 0: the epoch's steps (HSCG)",
    "restarts": "1: recompute exact estimates at each epoch; 0: only at the first (HSCG)",
    "epochs": "number of epochs for which the step sizes are chosen (ASCVRG)",
    "alpha_power": "decay of the step size, (1 + t / warm)^-power (SCGD, ASC-PG)",
    "beta_power": "decay of the weight of new values (SCGD, ASC-PG)",
    "warm": "steps before these decays begin",
    "inner_eta": "step of the inner loop; 0: the inverse of the estimated smoothness",
    "inner_steps": "steps of the inner loop (K), of each subproblem (prox-linear)",
    "last": "steps of the last stage; 0: as many as before it (ALEXR2 with a final ALEXR stage)",
    "finer": "1 - theta in the last stage, relative to the inner loop",
    "nu": "smoothing of the nested Moreau envelope, 1 / (weight of the proximal term); 0: as far as "
    "the inner steps reach",
    "matrix": "entries of the largest Jacobian that is stored as a matrix; larger ones are used by products",
    "probe": "samples for the choice of the first step size (all, if there are fewer)",
    "pass_limit": "largest number of samples for which deterministic algorithms may run",
    "look": "steps between two exact evaluations within an epoch",
    "rho": "largest multiplier that the penalty allows at first",
    "stage": "steps of the first stage",
    "longest": "steps of the longest stage",
    "patience": "stages without progress before the end",
    "growth": "how much longer each epoch is than the one before",
    "shrink": "factor on the step size after an epoch without progress",
    "gain": "relative gain of a stage that counts as progress",
    "lam": "first smoothing of non-smooth outer functions; 0: from the size of their arguments",
    "schedule": "practical: stages that adapt; theory: the theorem's; decay: eta until half of the "
    "budget, a tenth of it until three quarters, then a hundredth, all else constant, and the last "
    "iterate",
    "epsilon": "accuracy for theory schedules and rates",
    "unverified": "run although no theorem covers the model",
    "ranks": "whether the program is one of several processes that torchrun starts (there: true)",
    "polish": "finish by passes over all rows, if they are affordable",
    "tol": "KKT residual to stop at: stationarity, violation and the last change of the multipliers",
}
#: Options that belong to no algorithm, with their meaning.
SETTINGS = {
    "seed": "seed of every random choice: the same seed gives the same answer on the same machine",
    "device": "where it runs; auto takes an accelerator if there is one",
    "precision": "precision of the steps; reports are in float64. bfloat16 is for nets only, by autocast",
    "backend": "what runs the steps; auto is eager, unless the budget has so many steps that another "
    "backend saves time",
    "budget": "60s, 2m or 1h for the whole command; 5000it: steps; 1e6oracles: evaluations of g_i(w; xi)",
    "starts": "number of runs from different first points, each with an equal part of the budget; the best "
    "answer is kept",
    "holdout": "rows that are left out and judge the answer: a condition on rows, or a share of them",
    "margin": "confidence with which constraints on expectations over rows shall hold for new rows",
    "population": "an interval of the optimality gap for new rows, and the time it may take: 60s",
}
BATCHES = ("outer_batch", "inner_batch")
#: Options that every algorithm's steps and loop have.
COMMON = (*BATCHES, "eta", "rho", "lam", "stage", "longest", "gain", "patience")
EPSILON = 1e-3
TOLERANCE = 1e-6
RHO = 10.0
SMOOTHING = 0.1


def finishing(given: Origins) -> bool:
    """Whether passes over all rows are wanted at the end.

    The default is yes, except for the schedules ``theory`` and ``decay``.
    """
    return bool(value(given, "polish", value(given, "schedule") not in ("theory", "decay")))


def refuse_unknown(given: Origins, problem: ir.Problem) -> None:
    """Raise F0606 for options that do not exist."""
    unknown = [name for name in given if name not in OPTIONS and name not in SETTINGS]
    if unknown:
        known = [*OPTIONS, *SETTINGS]
        refuse(
            *(errors.unknown_option(n, given[n][0], known, problem.params) for n in unknown),
            source=problem.source,
        )


def value(settled: Origins, name: str, default: Any = None) -> Any:
    """An option's value, or the default if it has no value yet."""
    return settled.get(name, (default, ""))[0]


def settle(settled: Origins, values: Mapping[str, Any], origin: str = AUTOMATIC) -> None:
    """Set the options that have no value yet."""
    for name, default in values.items():
        settled.setdefault(name, (default, origin))


def applicable(given: Origins, record: Algorithm, budget: Budget) -> tuple[Origins, tuple[Unused, ...]]:
    """The options that apply to an algorithm, and the options that do not, each with the reason.

    Only the user's own defaults are left out; other options that do not apply are refused elsewhere.
    """
    aside = []
    step, step_origin = given.get("step", (None, ""))
    kind, origin = given.get("schedule", (None, ""))
    if step_origin == USER and step not in record.steps:
        aside.append(Unused("step", step, step_origin, f"{record.title} has {', '.join(record.steps)}."))
    if origin == USER and kind == "theory" and record.theory is None:
        aside.append(
            Unused("schedule", kind, origin, f"No schedule of a theorem is written down for {record.title}.")
        )
    if origin == USER and kind == "decay" and budget.seconds is not None:
        aside.append(
            Unused("schedule", kind, origin, "Its steps fall by parts of a budget of steps or oracle calls.")
        )
    names = {one.name for one in aside}
    return {name: entry for name, entry in given.items() if name not in names}, tuple(aside)


def refuse_unsuited(given: Origins, record: Algorithm, problem: ir.Problem, budget: Budget) -> None:
    """Raise every error of given options that do not suit the algorithm, the model or the budget.

    F0606: nets in bfloat16, and steps that train none by some rows at a time. F0614: a schedule that
    divides the steps of a budget in seconds. F0607: a step that the algorithm does not have.
    """
    faults = []
    trained = any(variable.net for variable in problem.variables.values())
    if value(given, "precision") == HALF and not (trained and record.oracle == "blocks"):
        faults.append(errors.half_without_nets(record, trained))
    if value(given, "schedule") == "decay" and budget.seconds is not None:
        faults.append(errors.no_steps_to_divide(value(given, "budget")))
    step = value(given, "step")
    if step and step not in record.steps:
        faults.append(errors.no_step(step, record))
    if faults:
        refuse(*faults, source=problem.source)


def by_algorithm(given: Origins, record: Algorithm, normal: NormalForm, *, shared: bool = False) -> Origins:
    """The options, with values that follow from the algorithm and the kind of schedule.

    Batch sizes and hyper-parameters are left to ``hyper_parameters`` and to the data.
    """
    settled = dict(given)
    settle(settled, {"algorithm": record.name, "schedule": WORDS["schedule"][0]})
    schedule = value(settled, "schedule")
    theory, decay = schedule == "theory", schedule == "decay"
    step = value(given, "step") or default_step(normal, record, theory)
    # Theorems assume independent samples.
    if record.oracle == "blocks":
        settle(settled, {name: WORDS[name][theory] for name in ("sampling", "inner_sampling")})
        settle(settled, {"draws": WORDS["draws"][theory or not shared]})
    if record.independent:
        settle(settled, {"gradient_batch": WORDS["gradient_batch"][0]})
    settle(settled, {"epsilon": EPSILON, "tol": TOLERANCE, "polish": not theory and not decay, "step": step})
    settle(settled, {name: size for name, size in record.hyper.items() if name in BATCHES})
    return settled


def shared(
    settled: Origins,
    normal: NormalForm,
    bound: Bound | None,
    batch: Batch,
    record: Algorithm,
    *,
    thrifty: bool = False,
) -> tuple[SharedStrata, ...]:
    """The rows that expectations share in a step; none unless the option ``draws`` is ``shared``.

    thrifty   whether every row of the nets is expensive
    """
    if value(settled, "draws") != "shared":
        return ()
    asked = None
    number, origin = settled["inner_batch"]
    if origin != AUTOMATIC:
        asked = int(number)
    several, _ = settled.get("ranks", (False, AUTOMATIC))  # ranks share blocks, which strata do not allow
    blocks = thrifty and not several and _any_blocks(record)
    wanted = Wanted(given=asked, thrifty=thrifty, blocks=blocks)
    return strata(normal.objective, bound, batch, wanted)


def _any_blocks(record: Algorithm) -> bool:
    """Whether a step may meet blocks with unequal probabilities: nothing but their mean depends on these."""
    estimator = record.estimator
    needs_share = estimator is None or getattr(estimator, "needs_share", False)
    return not needs_share and record.outer not in ("dual", "conjugate")


def take_batches(settled: Origins, wanted: Mapping[str, int], eps: float) -> bool:
    """Set the batch sizes that a theorem asks for, if nobody gave others; whether any was set."""
    automatic = {name: size for name, size in wanted.items() if settled[name][1] == AUTOMATIC}
    settled |= {name: (size, _of_theory(eps)) for name, size in automatic.items()}
    return bool(automatic)


def _of_theory(eps: float) -> str:
    """Where a number of a theorem's schedule is from."""
    return f"theory, epsilon = {eps:g}"


def hyper_parameters(
    settled: Origins, defaults: Mapping[str, float], scheduled: Mapping[str, float]
) -> dict[str, float]:
    """The numbers that the algorithm starts from, and set them in ``settled``.

    A number is given, or of the theorem's schedule, or else a default.
    """
    theorem = _of_theory(float(value(settled, "epsilon")))
    hyper: dict[str, float] = {}
    for name, number in {**defaults, **scheduled}.items():
        origin = AUTOMATIC
        if name in scheduled:
            origin = theorem
        settle(settled, {name: number}, origin)
        whole, *_ = NUMBERS[name]
        hyper[name] = float(value(settled, name))
        if whole:
            hyper[name] = int(value(settled, name))
    return hyper


def defaults(
    record: Algorithm, normal: NormalForm, step: str, adam: float, between: float, waiting: bool, nets: bool
) -> dict[str, float]:
    """Hyper-parameters without a theorem.

    adam     size of an Adam-type step
    between  number of steps between two visits of a block
    waiting  whether blocks that are tracked by their logarithms wait for their visits
    """
    eta = 0.0
    if step == "adam":
        eta = adam
    hyper: dict[str, float] = {"eta": eta, "rho": RHO}
    if normal.smoothed:
        hyper["lam"] = 0.0
    hyper |= {"stage": 200, "longest": 4000, "gain": 1e-4, "patience": 12}
    hyper |= {name: number for name, number in record.hyper.items() if name not in BATCHES}
    if not waiting:
        hyper |= estimates(record, between, nets)
    return hyper


def annealed(settled: Origins, record: Algorithm, budget: Budget, *, nets: bool) -> bool:
    """Whether step sizes fall over the budget: Adam-type steps of nets, whose number is known."""
    counted = budget.seconds is None or bool(value(settled, "polish"))
    practical = value(settled, "schedule") == "practical" and value(settled, "step") == "adam"
    return nets and practical and record.oracle == "blocks" and counted


#: Size of Adam-type steps without nets.
ADAM_STEP = 0.05
#: Size of Adam-type steps of nets with layers of at most 64.
ADAM_STEP_OF_NETS = 2e-2
#: Size of Adam-type steps of nets with layers of at most 64, if the objective saturates.
ADAM_STEP_OF_SATURATING = 4e-3


def adam_step_size(analysis: Analysis) -> float:
    """The size of an Adam-type step; the wider the widest layer of a net, the smaller it is.

    A step changes each weight by its size, so it changes the output of a layer in proportion to the
    number of its inputs. If the objective saturates, steps are smaller, since scores beyond the slope
    do not come back (measurements: ``tests/bench/networks.py``).
    """
    problem, bound = analysis.problem, analysis.bound
    if not problem.nets:
        return ADAM_STEP
    widest = 0
    if bound is not None:
        weights = [p for net in bound.nets.values() for p in net.parameters() if p.dim() > 1]
        widest = max((p[0].numel() for p in weights), default=0)
    most = ADAM_STEP_OF_NETS
    if saturating(analysis):
        most = ADAM_STEP_OF_SATURATING
    return most * 64 / min(max(widest, 64), 640)


def saturating(analysis: Analysis) -> bool:
    """Whether a part of the objective saturates."""
    return any(saturates(analysis, node) for node in ir.walk(analysis.problem.objective.expr))


def saturates(analysis: Analysis, node: ir.Expr) -> bool:
    """Whether a node is a function of a net's outputs with a bounded range and unbounded arguments."""
    if not isinstance(node, ir.Apply) or not any(isinstance(part, ir.NetCall) for part in ir.walk(node)):
        return False
    whole, *parts = (analysis.see(part).interval.value for part in (node, *node.args))
    return isfinite(whole.hi - whole.lo) and not all(isfinite(part.hi - part.lo) for part in parts)


def smoothing(
    settled: Origins, scheduled: Mapping[str, float], setting: Setting, normal: NormalForm
) -> float:
    """The lam of the outer functions, less than 1 over their weak convexity.

    The envelope of a larger lam is not smooth. Raises F0612 if the theorem or the user wants a larger
    one and something is smoothed.
    """
    lam = float(value(settled, "lam", 0.0))
    theory = value(settled, "schedule") == "theory"
    lam_wanted = lam or scheduled.get("lam", SMOOTHING)
    weak = max((b.f.below.value.number for b in setting.blocks if b.f.weakly_convex), default=0.0)
    if weak * lam_wanted < 1 or not isfinite(weak):
        return lam_wanted
    if normal.smoothed and (theory or lam):
        refuse(smoothing_too_large(lam_wanted, weak), source=normal.problem.source)
    return 0.5 / weak


def exponentials(normal: NormalForm, bound: Bound | None) -> bool:
    """Whether some expectations are tracked by their logarithms.

    If blocks with such an expectation wait for their visits, gamma keeps its default: when a block's
    value becomes smaller, each visit multiplies its estimate by 1 - gamma only.
    """
    if bound is None:
        return False
    return any(logarithms.of(bound).stable(node) is not None for node in ir.walk(normal.objective))


def estimates(record: Algorithm, rounds: float, nets: bool) -> dict[str, float]:
    """The weights gamma and gamma' of estimates.

    With gamma, at most its default, estimates average over about ten steps. gamma' = 1 - gamma, as in
    SONEX with B1 = n (sonex-alexr2-2025, Theorem 4.7): then estimates follow the whole change of a
    step, and so of a step of ALEXR2 from z_K back to w. If nets have all their blocks visited in each
    step, gamma' = 0: evaluating a net at the previous iterate too costs as much as a quarter more steps.
    """
    if "gamma_prime" not in record.hyper:
        return {}
    gamma = min(0.1 * rounds, record.hyper["gamma"])
    gamma_prime = 1 - gamma
    if nets and rounds <= 1:
        gamma_prime = 0.0
    return {"gamma": gamma, "gamma_prime": gamma_prime}


def formulas(record: Algorithm) -> dict[str, str]:
    """The formulas of ``estimates`` for the weights that they set, by option."""
    if "gamma_prime" not in record.hyper:
        return {}
    return {"gamma": f"min({record.hyper['gamma']:g}, 0.1 n / B1)", "gamma_prime": "1 - gamma"}


def default_step(normal: NormalForm, record: Algorithm, theory: bool = False) -> str:
    """The kind of step if none is given: Adam-type, unless a prox or projection is wrong in its metric.

    It is right if the prox or projection acts entry by entry. It is right too for a set that has a
    projection for steps of any sizes, if the algorithm projects after each step and the variable has
    no prox. Theorems assume momentum steps. An algorithm that has neither kind uses its first.
    """
    if not {"adam", "momentum"} <= set(record.steps):
        return next(iter(record.steps))
    if theory:
        return "momentum"
    if not all(regularisers.all()[p.name].step_per_entry for p in normal.prox):
        return "momentum"
    with_prox = {p.variable for p in normal.prox}
    for name, variable in normal.variables.items():
        for domain in variable.sets:
            simple = sets.all()[domain.family]
            in_steps = record.projects_in_steps and simple.in_steps is not None
            if not simple.entrywise and not (in_steps and name not in with_prox):
                return "momentum"
    return "adam"


def budget_of(given: Origins) -> Budget:
    """The budget of the run; ``SECONDS`` if none is given."""
    budget = value(given, "budget")
    if budget is None:
        return Budget(seconds=SECONDS)
    return parse_budget(budget)
