"""From a normal form to a plan: the algorithm by its requirements, batch sizes and hyper-parameters with their origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fccomodel import algorithms, assumptions, diagnostics, elements, ir
from fccomodel.algorithms import Algorithm
from fccomodel.bound import Bound
from fccomodel.normal import NormalForm, normalise
from fccomodel.options import Budget, parse_budget

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
    "eta": "first step size; 0: the inverse of the estimated smoothness",
    "gamma": "weight of the new inner value",
    "gamma_prime": "weight of the inner difference",
    "beta": "weight of the new gradient",
    "beta_prime": "weight of the new squared gradient",
    "eps": "added to the root of the squared gradient",
    "tau": "weight of a block's dual variable y in its next value (ALEXR)",
    "theta": "weight of the extrapolation of inner values (ALEXR)",
    "rho": "largest multiplier that the penalty allows, to begin with",
    "stage": "steps of the first stage",
    "longest": "steps of the longest stage",
    "patience": "stages without progress before the end",
    "tol": "relative gain of a stage that counts as progress",
}
SETTINGS = ("seed", "device", "precision", "budget")


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """How a problem is solved, and why.

    algorithm   identifier            via      reformulations in order
    rejected    name -> what it lacks (or why it comes later)
    options     every value with its origin
    batch       (binder, elements, inner) -> sample size or None for all
    hyper       what the emitted program starts from
    """

    algorithm: str
    algorithm_record: Algorithm
    via: tuple[str, ...]
    rejected: Mapping[str, list[str]]
    options: dict[str, tuple[Any, str]]
    summary: list[str]
    normal: NormalForm
    batch: Callable[[ir.Binder, int, bool], int | None]
    hyper: Mapping[str, float]
    step: str
    smoothing: float = 0.1
    inner_smoothing: float = 1e-2
    block: int = 64
    budget: Budget = Budget(seconds=SECONDS)
    threads: int = 1
    facts: Mapping[str, str] = field(default_factory=dict)


def make(problem: ir.Problem, *, bound: Bound | None = None, analysis: Any = None, options: Origins | None = None) -> Plan:
    """The plan; raises F06xx where no algorithm applies, or the one named lacks something."""
    given = {**dict(options or {})}
    unknown = [n for n in given if n not in OPTIONS and n not in SETTINGS]
    if unknown:
        raise diagnostics.FccoError([_unknown(name) for name in unknown], problem.source)
    normal = normalise(problem, bound)
    facts, missing = satisfied(normal, bound, analysis)
    lacks = {name: lacking(a, missing) for name, a in algorithms.all().items()}
    chosen = choose(given, lacks, problem)
    record = algorithms.all()[chosen]
    rejected = {}
    for name, found in lacks.items():
        if name != chosen:
            a = algorithms.all()[name]
            rejected[name] = found or [f"applies too; its rate, O({a.rate}) iterations, comes after that of {record.name} here"]
    inner = "moreau" if "inner smooth" in record.requires else "subgradient"
    normal = normalise(problem, bound, outer=record.outer, inner=inner, penalty=record.penalty)
    settled = {name: value for name, value in given.items()}
    settled.setdefault("algorithm", (chosen, AUTOMATIC))
    nets = bool(problem.nets)
    step = given.get("step", (None, ""))[0] or default_step(normal, record)
    if step not in record.steps:
        raise diagnostics.FccoError([_no_step(step, record)], problem.source)
    settled.setdefault("step", (step, AUTOMATIC))
    batch, sizes = batches(settled, nets, bound, problem)
    for name, value in sizes.items():
        settled.setdefault(name, (value, AUTOMATIC))
    defaults = {
        "eta": 0.0 if step != "adam" else 2e-3 if nets else 0.05,
        "rho": 10.0,
        "stage": 200,
        "longest": 4000,
        "tol": 1e-4,
        "patience": 12,
        **record.hyper,
        **(estimates(record.hyper) if not sampled_blocks(normal, bound, batch) else {}),
    }
    hyper: dict[str, float] = {}
    for name, default in defaults.items():
        settled.setdefault(name, (default, AUTOMATIC))
        hyper[name] = (int if name in ("stage", "longest", "patience") else float)(settled[name][0])
    return Plan(
        algorithm=chosen, algorithm_record=record, via=normal.via, rejected=rejected, options=settled,
        summary=summarise(normal, record, step, settled), normal=normal, batch=batch, hyper=hyper, step=step,
        facts=facts, budget=budget(settled), threads=1,
    )  # fmt: skip


def lacking(algorithm: Algorithm, missing: set[str]) -> list[str]:
    """What an algorithm needs that does not hold, and where its theorem says so."""
    needs = [(assumptions.ALL[name], where) for name, where in algorithm.requires.items() if name in missing]
    return [f"{needed.meaning} ({where}); {needed.lacking}" for needed, where in needs]


def sampled_blocks(normal: NormalForm, bound: Bound | None, batch: Callable[[ir.Binder, int, bool], int | None]) -> bool:
    """Some outer reduction has more blocks than are visited each step."""
    if bound is None:
        return True
    for node in ir.walk(normal.objective):
        if isinstance(node, ir.Reduce) and any(isinstance(n, ir.Reduce) for n in ir.walk(node.body)):
            for binder in node.binders:
                if isinstance(binder.domain, ir.RowSet | ir.ValueSet | ir.LabelSet):
                    count = len(elements.ids(bound, binder.domain))
                    if batch(binder, count, False) is not None:
                        return True
    return False


def estimates(hyper: Mapping[str, float]) -> dict[str, float]:
    """gamma' = 1 - gamma where every block is visited each step (sonex-alexr2-2025, Theorem 4.7, B1 = n): gamma can be small."""
    return {"gamma": 0.1, "gamma_prime": 0.9} if "gamma_prime" in hyper else {}


def default_step(normal: NormalForm, record: Algorithm) -> str:
    """Adam-type, unless a prox or a projection would be wrong in its metric: those that do not act entry by entry.

    Where the algorithm has neither form, its first.
    """
    from fccomodel import regularisers, sets

    if not {"adam", "momentum"} <= set(record.steps):
        return next(iter(record.steps))
    proxes = [regularisers.all()[p.name].step_per_entry for p in normal.prox]
    projections = [sets.all()[s.family].entrywise for v in normal.variables.values() for s in v.sets]
    return "adam" if all(proxes + projections) else "momentum"


def budget(settled: Origins) -> Budget:
    """What the run may use; ``SECONDS`` where nobody gave a budget."""
    value = settled.get("budget", (None, ""))[0]
    return Budget(seconds=SECONDS) if value is None else parse_budget(value)


def satisfied(normal: NormalForm, bound: Bound | None, analysis: Any = None) -> tuple[dict[str, str], set[str]]:
    """Requirements that hold, each with why; and those that do not."""
    facts: dict[str, str] = {}
    missing: set[str] = set()

    def note(fact: str, holds: bool, why: str) -> None:
        if holds:
            facts[fact] = why
        else:
            missing.add(fact)

    note("unconstrained", not normal.problem.constraints, "the model has no constraint")
    outer = [s for s in normal.smoothed if not s.inner]
    kept = [node for node, inner in normal.kept if not inner]
    note("outer smooth", not outer and not kept, "every outer function is smooth")
    note("outer prox", not kept, "non-smooth outer functions are piecewise linear-quadratic or maxima: their prox is exact")
    rough = bool(rough_nets(normal, bound)) or any(inner for _, inner in normal.kept)
    note("inner smooth", not rough, inner_smoothness(normal, analysis))
    return facts, missing


def inner_smoothness(normal: NormalForm, analysis: Any) -> str:
    """Why the inner functions count as smooth, and what of it is an assumption."""
    smoothed = " (kinks inside expectations by nested Moreau smoothing)" if any(s.inner for s in normal.smoothed) else ""
    bodies = [g for term in normal.terms for g in term.g]
    if analysis is not None and not smoothed and all(analysis.see(g).lipschitz_smooth for g in bodies):
        return "every inner function has a Lipschitz gradient (proved)"
    return f"inner functions are continuously differentiable{smoothed}; a bound on their curvature along the run is assumed"


def rough_nets(normal: NormalForm, bound: Bound | None) -> list[str]:
    """Nets that are not known to be smooth."""
    if bound is None or not normal.problem.nets:
        return []
    from fccomodel import nets

    rough = []
    for name, net in normal.problem.nets.items():
        assumed = any(word == "smooth" for word, _ in net.assume)
        if name in bound.nets and not (assumed or nets.walk(bound.nets[name]).smooth):
            rough.append(name)
    return rough


def choose(given: Origins, lacks: Mapping[str, list[str]], problem: ir.Problem) -> str:
    """The user's algorithm if its requirements hold, else the first of those that do by the declared preference."""
    if "algorithm" in given and given["algorithm"][0] not in (None, "auto"):
        name = str(given["algorithm"][0])
        if name not in lacks:
            known = ", ".join(sorted(lacks))
            guess = diagnostics.did_you_mean(name, lacks)
            raise diagnostics.FccoError(
                [
                    diagnostics.error(
                        "F0603",
                        f"there is no algorithm `{name}`",
                        reason=f"Known are {known}.",
                        fix=guess or f"Name one of {known}.",
                    )
                ],
                problem.source,
            )
        if lacks[name]:
            raise diagnostics.FccoError(
                [
                    diagnostics.error(
                        "F0604",
                        f"`{name}` cannot be used on this model",
                        reason="It needs " + "; it needs ".join(lacks[name]) + ".",
                        fix="Leave the choice to the compiler, or change the model so that the requirement holds.",
                    )
                ],
                problem.source,
            )
        return name
    possible = sorted((a.preference, -len(a.requires), name) for name, a in algorithms.all().items() if not lacks[name])
    if not possible:
        lines = "; ".join(f"{name} needs {', '.join(found)}" for name, found in lacks.items())
        raise diagnostics.FccoError(
            [
                diagnostics.error(
                    "F0605", "no algorithm's requirements hold for this model", reason=lines + ".", fix="See `fccomodel explain`."
                )
            ],
            problem.source,
        )
    return possible[0][-1]


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
        if isinstance(binder.domain, ir.ValueSet | ir.LabelSet) and n <= 4096:
            return None
        return None if n <= whole else size

    return batch, {"outer_batch": int(outer), "inner_batch": int(inner)}


def summarise(normal: NormalForm, record: Algorithm, step: str, settled: Origins) -> list[str]:
    """The plan in a few sentences."""
    lines = [f"{record.title} ({record.theorem}), {step} steps; O({record.rate}) iterations"]
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


def _no_step(step: str, record: Algorithm) -> diagnostics.Diagnostic:
    return diagnostics.error(
        "F0607",
        f"{record.name} has no step `{step}`",
        reason=f"It has {', '.join(record.steps)}.",
        fix=f"Use step = {next(iter(record.steps))}.",
    )
