"""The compiler's choice on every shipped model and conformance problem against the best of all algorithms that cover it.

    python tests/bench/choice.py measure RECORD [--models a,b] [--algorithms x,y] [--seed S] [--cpu S]
    python tests/bench/choice.py table RECORD ... > tests/bench/choice.md
    python tests/bench/choice.py preferences RECORD ... > fccomodel/plan/measured.toml

``measure`` runs every algorithm whose theorem covers a model, or whose steps go beyond it, with default options, by stochastic
steps alone (no finish, no interior point), and appends to RECORD how many oracle calls, and how much processor time of its own
steps, each took to accuracy 1e-2 and 1e-3. Iterates are looked at as steps go (at counts that grow by a tenth and more), and the
best point after every stage; what looking costs does not count, nor do calls that find the first step size. Accuracy is

    of a convex model   the larger of violation and gap, the gap relative to |optimum| or the start's gap, at most 1, if larger
    of another          epsilon of the KKT report, by the problem's scales

An algorithm ends where it needs more than ``AGAIN`` times the calls and the time of the best so far: it is out of the race.
``table`` shows what is chosen today, and why, beside the best; ``preferences`` makes the measured preferences by classes.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import signal
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from choice_models import Model, models  # noqa: E402

from fccomodel import pipeline, report  # noqa: E402
from fccomodel.algorithms.runtime.progress import thinned, value_at  # noqa: E402
from fccomodel.core.diagnostics import FccoError  # noqa: E402
from fccomodel.core.work import Meter  # noqa: E402
from fccomodel.plan import candidates, ranking  # noqa: E402
from fccomodel.plan import measured as classing  # noqa: E402
from fccomodel.solver import emit  # noqa: E402
from fccomodel.solver.lower import lower  # noqa: E402
from fccomodel.solver.run import answers  # noqa: E402

ACCURACIES = (1e-2, 1e-3)
#: how much worse than the best one may be before it is ended, and what counts as chosen well
AGAIN, WITHIN = 3.0, 2.0
#: the least ratio of one that did not get there
MISSED = 10.0
MEASURES = {
    "time": lambda calls, seconds: taken(calls, seconds),
    "oracle calls": lambda calls, seconds: max(calls, 1.0),
    "seconds": lambda calls, seconds: max(seconds, 1e-5),
}
HEAD = """# What is chosen, and how good that is

Made by `tests/bench/choice.py` (see there for what is measured): the algorithm chosen for a run by stochastic steps alone
(`--no-polish`; `by default` is that of a run that may be finished by passes over all rows), why, what it took to accuracy 1e-2
and 1e-3 in oracle calls and seconds of the processor, the best of all that cover the model, and the ratio of their times. A time
is sqrt(oracle calls * seconds), so that neither work beyond oracle calls nor what a step costs besides is left out.

Chosen within a factor 2 of the best:
"""
COLUMNS = "| model | chosen | why | by default | to 1e-2 | best | ratio | to 1e-3 | best | ratio |"


# ---------------------------------------------------------------------------------------------------------------- one run
class Done(Exception):
    """The run has shown what it was for."""


@dataclass
class Watch:
    """A run as it goes: counts, the time of its own steps, and accuracy as it is looked at; ``limit``: calls and seconds, both of
    which end it; ``cpu`` ends it by itself."""

    accuracy: Any
    limit: tuple[float, float]
    cpu: float
    growth: float
    steps: int = 0
    calls: float = 0.0
    outside: float = 0.0
    before: float | None = None
    next: float = 1.0
    last: float = 0.0
    best: float = math.inf
    reached: dict[float, tuple[float, float]] = field(default_factory=dict)

    def begin(self) -> None:
        self.began = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self.began - self.outside

    def step(self, w: torch.Tensor, calls: float) -> None:
        """After every step."""
        self.steps, self.calls = self.steps + 1, calls
        if self.steps >= self.next:
            self.next = max(self.steps + 1, self.growth * self.steps)
            self.look(w)
        if self.steps % 16 == 0:
            self.judge()

    def stage(self, w: torch.Tensor) -> None:
        """After every stage, of the best point; no more often than iterates are looked at where that is dear."""
        if self.growth < 1.3 or self.steps >= self.growth * self.last:
            self.last = self.steps
            self.look(w)
        self.judge()

    def look(self, w: torch.Tensor) -> None:
        now = time.process_time()
        found = self.accuracy(w.detach().cpu())
        self.outside += time.process_time() - now
        self.best = min(self.best, found)
        for wanted in ACCURACIES:
            if found <= wanted:
                self.reached.setdefault(wanted, (self.calls, self.seconds))

    def judge(self) -> None:
        far = self.calls > self.limit[0] and self.seconds > self.limit[1]
        if far or self.seconds > self.cpu or self.outside > 3 * self.cpu or len(self.reached) == len(ACCURACIES):
            raise Done


def watched(module: Any, program: Any, watch: Watch, seed: int) -> None:
    """The program's own run, under watch."""
    solver = module.SOLVER
    if hasattr(solver, "advance"):

        def advance(solver, data, state, *rest):
            module_advance(solver, data, state, *rest)
            watch.step(state.w, (watch.steps + 1) * solver.oracles)

        module_advance = solver.advance
        solver = replace(solver, advance=advance)
    else:

        def begin(state, F, h):
            watch.before = state.oracles if watch.before is None else watch.before
            module_begin(state, F, h)

        def update(state, F, h):
            module_update(state, F, h)
            watch.step(state.w, state.oracles - watch.before)

        module_begin, module_update = solver.begin, solver.update
        solver = replace(solver, begin=begin, update=update)

    def observe(of, solver, data, w, *rest):
        watch.stage(w)
        return {}

    def late(number, frame):
        raise Done

    module.observe = observe
    for price in ("step_price", "call_price"):  # by steps that are no part of the run
        setattr(module, price, lambda *given: 1e-5)
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 8 * watch.cpu)  # steps may take longer than that
    watch.begin()
    try:
        with module.no_grad():
            module.solve(solver, dict(program.data), seed=seed, seconds=None, iterations=10**7)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def measured(problem: Any, analysis: Any, bound: Any, name: str, options: Mapping[str, Any], seed: int, **limits: Any) -> dict:
    """One algorithm on one model."""
    given = {**options, "algorithm": name, "polish": False}
    plan = pipeline.decide(analysis, {key: (value, "bench") for key, value in given.items()})
    program = emit.emit(lower(problem, bound, plan))
    module = types.ModuleType("solver")
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    heavy = module.SOLVER.heavy or not analysis.convex
    judge = accuracy(module, program, analysis, bound, limits.pop("optimum"))
    watch = Watch(accuracy=judge, growth=1.5 if heavy else 1.1, **limits)
    try:
        watched(module, program, watch, seed)
    except Done:
        pass
    except (ArithmeticError, RuntimeError, NameError, FccoError) as error:
        return {"algorithm": name, "failed": str(error)}
    return {
        "algorithm": name, "reached": {f"{k:g}": v for k, v in watch.reached.items()}, "best": watch.best, "calls": watch.calls,
        "seconds": watch.seconds, "steps": watch.steps,
    }  # fmt: skip


def accuracy(module: Any, program: Any, analysis: Any, bound: Any, optimum: float | None) -> Any:
    """w -> how far it is from a solution."""
    if optimum is None:

        def epsilon(w: torch.Tensor) -> float:
            with torch.inference_mode(False), torch.enable_grad():
                w = w.clone()
                kkt = report.report(bound, answers.variables(program, bound, w.double()), work=Meter(0.5), analysis=analysis)
            return float(kkt.relative.get("epsilon", kkt.epsilon))

        return epsilon
    solver = module.SOLVER
    data = solver.as_namespace(dict(program.data), "cpu", torch.float64)
    data = solver.prepare_full(thinned(solver, data, seed=7) if solver.heavy and solver.thin else data)
    start = value_at(solver, data, solver.start(torch.Generator(), "cpu", torch.float64))[0]
    least = module.SIGN * optimum
    scale = max(abs(least), min(1.0, start - least if math.isfinite(start) else 1.0))

    def gap(w: torch.Tensor) -> float:
        objective, _, violation = value_at(solver, data, w.double())
        return max((objective - least) / scale, violation)

    return gap


# --------------------------------------------------------------------------------------------------------------- one model
def opened(model: Model) -> tuple[Any, Any, Any]:
    """Problem, bound data and structure."""
    compiled = pipeline.compile_model(model.source())
    bound = pipeline.bind(compiled, model.binding())
    return compiled, bound, pipeline.analyse(compiled.problem, bound)


def optimal(model: Model, compiled: Any, analysis: Any, bound: Any) -> float | None:
    """The optimal value of a convex model: by other means, or of a whole solve; None where it is not convex."""
    if not analysis.convex:
        return None
    if model.optimum is not None:
        return model.optimum()
    given = {"budget": ("40s", "bench"), "precision": ("float64", "bench")}
    solved = pipeline.solve(pipeline.plan(compiled, model.binding(), given, bound=bound))
    return solved.report.objective


def rows_of(model: Model, only: list[str], seed: int, cpu: float, known: Mapping[str, Any]) -> Iterator[dict]:
    """Every algorithm on a model, those first that are often good."""
    compiled, bound, analysis = opened(model)
    covered = {c.record.name for c in ranking.rank(candidates.candidates(analysis)).theorems}
    optimum = known.get(model.name, optimal(model, compiled, analysis, bound))
    yield {"model": model.name, "optimum": optimum, "convex": analysis.convex}
    calls, seconds = math.inf, math.inf
    first = ["sonex", "sox", "alexr", "apg", "ascvrg"]
    for name in sorted(covered, key=lambda n: (first.index(n) if n in first else len(first), n)):
        if only and name not in only:
            continue
        limit = (AGAIN * calls, AGAIN * seconds)
        found = measured(
            compiled.problem, analysis, bound, name, model.options, seed, optimum=optimum, limit=limit, cpu=cpu
        )
        if "0.001" in found.get("reached", {}):
            calls, seconds = (min(a, b) for a, b in zip((calls, seconds), found["reached"]["0.001"], strict=True))
        yield {"model": model.name, "seed": seed, **found}


def measure(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    record = Path(args.record[0])
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    known = {line["model"]: line["optimum"] for line in lines if "optimum" in line}
    finished = {line["model"] for line in lines if line.get("finished")}
    chosen = args.models.split(",") if args.models else [name for name in models() if name not in finished]
    for name in chosen:
        with record.open("a") as out:
            began = time.process_time()
            only = args.algorithms.split(",") if args.algorithms else []
            for line in rows_of(models()[name], only, args.seed, args.cpu, known):
                out.write(json.dumps(line) + "\n")
                out.flush()
            out.write(json.dumps({"model": name, "finished": time.process_time() - began}) + "\n")
        print(name, f"{time.process_time() - began:.0f} s", flush=True)


# ----------------------------------------------------------------------------------------------------- what it comes to
Ratios = dict[str, dict[str, float]]


def read(records: list[str]) -> dict[str, dict[str, dict]]:
    """model -> algorithm -> what was measured, the last where it was more than once."""
    found: dict[str, dict[str, dict]] = defaultdict(dict)
    for record in records:
        for line in map(json.loads, Path(record).read_text().splitlines()):
            if "algorithm" in line:
                found[line["model"]][line["algorithm"]] = line
    return found


def taken(calls: float, seconds: float) -> float:
    """One number of calls and seconds, so that neither work beyond oracle calls nor what a step costs besides is left out."""
    return math.sqrt(max(calls, 1.0) * max(seconds, 1e-5))


def ratios(runs: Mapping[str, dict], of: Callable[[float, float], float] = taken) -> Ratios:
    """accuracy -> algorithm -> its time over the least; of one that did not get there at least ``MISSED``. Runs that count no
    oracle calls are left out, and accuracies that none came to."""
    counted = {name: run for name, run in runs.items() if run.get("calls")}
    found: Ratios = {}
    for wanted in (f"{a:g}" for a in ACCURACIES):
        times = {name: of(*run["reached"][wanted]) for name, run in counted.items() if wanted in run["reached"]}
        if times:
            least = min(times.values())
            ends = {name: max(MISSED, of(run["calls"], run["seconds"]) / least) for name, run in counted.items()}
            found[wanted] = {name: times[name] / least if name in times else ends[name] for name in counted}
    return found


def mean(values: Iterable[float]) -> float:
    """The geometric mean."""
    logarithms = [math.log(v) for v in values]
    return math.exp(sum(logarithms) / len(logarithms))


def classes(found: Mapping[str, dict[str, dict]]) -> Iterator[tuple[dict, list[str], dict[str, float]]]:
    """The classes of the models measured: features, models, and the mean ratio of every algorithm; those of several models first,
    then wider ones, without the last feature, and without the last two."""
    named = {name: features(name) for name in found if ratios(found[name])}
    for width in (0, 1, 2):
        groups: dict[tuple, list[str]] = defaultdict(list)
        for name, problems in named.items():
            groups[tuple(problems.items())[: len(problems) - width]].append(name)
        for problems, names in sorted(groups.items()):
            if len(names) > 1 or width == 2:
                yield dict(problems), names, times_of({name: found[name] for name in names})


def times_of(found: Mapping[str, dict[str, dict]]) -> dict[str, float]:
    """The mean ratio of every algorithm that at least half of these models have."""
    each: dict[str, list[float]] = defaultdict(list)
    for runs in found.values():
        for by in ratios(runs).values():
            for algorithm, ratio in by.items():
                each[algorithm].append(ratio)
    most = max(map(len, each.values()))
    return {name: mean(r) for name, r in each.items() if 2 * len(r) >= most}


@functools.cache
def ranked(name: str, finishing: bool = False) -> Any:
    """The order that the compiler chooses by."""
    analysis = opened(models()[name])[2]
    given = {key: (value, "bench") for key, value in models()[name].options.items()}
    return ranking.rank(candidates.candidates(analysis, given), finishing)


@functools.cache
def features(name: str) -> dict[str, bool]:
    return dict(ranking.class_of(ranked(name).theorems) or {})


def covering(name: str, runs: Mapping[str, dict]) -> dict[str, dict]:
    """The runs of algorithms whose theorems cover the model; all where none does."""
    covered = {c.record.name for c in ranked(name).theorems if c.covered}
    return {algorithm: run for algorithm, run in runs.items() if algorithm in covered or not covered}


def preferences(args: argparse.Namespace) -> None:
    print("# Made by tests/bench/choice.py from measurements: by class of problems, how much longer each algorithm took than the")
    print("# best (geometric means over the models of the class); figures by model in tests/bench/choice.md.")
    for problems, names, times in classes(read(args.record)):
        print("\n[[class]]")
        print(f"problems = {{ {', '.join(f'{key} = {str(value).lower()}' for key, value in problems.items())} }}")
        print(f"models = {json.dumps(names)}")
        print("[class.times]")
        print("\n".join(f"{name} = {time:.3g}" for name, time in sorted(times.items(), key=lambda pair: pair[1])))


def table(args: argparse.Namespace) -> None:
    """The choice on every model, and by class what was measured."""
    found = {name: covering(name, runs) for name, runs in read(args.record).items()}
    lines: list[str] = []
    well: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for name, runs in found.items():
        order, by_default = ranked(name), ranked(name, finishing=True).order[0].record.name
        chosen, alone = order.order[0].record.name, order.theorems[0].record.name
        why = "theorem" if order.row is None else f"measured; the theorems: {alone}"
        cells = []
        for wanted in (f"{a:g}" for a in ACCURACIES):
            for measure, of in MEASURES.items():
                if ratio := ratios(runs, of).get(wanted, {}).get(chosen):
                    well[measure, wanted].append(ratio <= WITHIN)
                    theorem = ratios(runs, of)[wanted].get(alone, MISSED)
                    well[f"{measure}, by theorems alone", wanted].append(theorem <= WITHIN)
            both = ratios(runs).get(wanted, {})
            best = min(both, key=lambda n: both[n], default="")
            ratio = f"{both[chosen]:.1f}" if chosen in both else "-"
            cells += [figures(runs, chosen, wanted), figures(runs, best, wanted), ratio]
        lines.append(f"| {name} | {chosen} | {why} | {by_default} | {' | '.join(cells)} |")
    print(HEAD)
    for measure, wanted in well:
        share = well[measure, wanted]
        print(f"- to {wanted}, in {measure}: {sum(share)} of {len(share)} ({100 * sum(share) / len(share):.0f}%)")
    print(f"\n{COLUMNS}\n{'|---' * (COLUMNS.count('|') - 1)}|")
    print("\n".join(lines))
    print("\n## By class\n\nTimes over the best one's, geometric means over models and accuracies.\n")
    for problems, names, times in classes(read(args.record)):
        said = ", ".join(f"{name} {time:.1f}" for name, time in sorted(times.items(), key=lambda pair: pair[1]))
        print(f"- {classing.named(problems)} ({len(names)} models): {said}")


def figures(runs: Mapping[str, dict], name: str, wanted: str) -> str:
    """``sonex 1.4e+05, 0.05 s``: what it took."""
    if name not in runs or wanted not in runs[name].get("reached", {}):
        best = runs.get(name, {}).get("best")
        return f"{name} -" if best is None else f"{name} - (came to {best:.0e})"
    calls, seconds = runs[name]["reached"][wanted]
    return f"{name} {calls:.1e}, {seconds:.2g} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table", "preferences"])
    parser.add_argument("record", nargs="+")
    parser.add_argument("--models", default="")
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=float, default=5.0, help="seconds of the processor that one run may take")
    args = parser.parse_args()
    {"measure": measure, "table": table, "preferences": preferences}[args.what](args)


if __name__ == "__main__":
    main()
