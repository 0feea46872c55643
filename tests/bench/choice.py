"""The compiler's choice on every shipped model and conformance problem against the best of all
algorithms that cover it.

    python tests/bench/choice.py measure RECORD [--models a,b] [--algorithms x,y] [--seeds 1,2,3] [--most S]
    python tests/bench/choice.py preferences RECORD --seeds 1,2 > fccomodel/plan/measured.toml
    python tests/bench/choice.py table RECORD --seeds 1,2 --fresh 3 > tests/bench/choice.md

``measure`` runs every algorithm whose theorem covers a model, or whose steps go beyond it, with
default options, by stochastic steps alone (no finish, no interior point), and appends to RECORD how
many oracle calls, and how many counted seconds of its own steps (``choice_runs.py``), each took to
accuracy 1e-2 and 1e-3. Iterates are looked at as steps go (at counts that grow by a tenth and
more), and the best point after every stage; what looking costs does not count, nor do calls that
find the first step size. With a further seed those are not run again that took more than ``FAR``
times as long as the best. Accuracy is

    of a convex model   the larger of violation and gap, the gap relative to |optimum| or the
                        start's gap, at most 1, if larger
    of another          epsilon of the KKT report, by the problem's scales

An algorithm ends where it needs more than ``AGAIN`` times the calls and the time of the best so
far: it is out of the race. A time of several seeds is the geometric mean, and the best is what is
best in that. ``preferences`` makes the measured preferences by classes; ``table`` shows what is
chosen today, and why, beside the best, by the seeds that set the preferences and by fresh ones.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from choice_models import Model, models  # noqa: E402
from choice_runs import ACCURACIES, measured  # noqa: E402

from fccomodel import pipeline  # noqa: E402
from fccomodel.plan import candidates, ranking  # noqa: E402
from fccomodel.plan import measured as classing  # noqa: E402

#: how much worse than the best one may be before it is ended, and what counts as chosen well
AGAIN, WITHIN = 3.0, 2.0
#: the least ratio of one that did not get there; and of one that need not be run with another seed
MISSED, FAR = 10.0, 5.0
#: so many features are left out of the widest classes
WIDEST = 3
MEASURES = {
    "time": lambda calls, seconds: taken(calls, seconds),
    "oracle calls": lambda calls, seconds: max(calls, 1.0),
    "seconds": lambda calls, seconds: max(seconds, 1e-5),
}
HEAD = """# What is chosen, and how good that is

Made by `tests/bench/choice.py` (see there for what is measured): the algorithm chosen for a run by stochastic steps alone
(`--no-polish`; `by default` is that of a run that may be finished by passes over all rows), why, what it took to accuracy 1e-2
and 1e-3 in oracle calls and counted seconds, the best of all that cover the model, and the ratio of their times. A time is
sqrt(oracle calls * counted seconds), so that neither work beyond oracle calls nor what a step costs besides is left out; of
several seeds it is the geometric mean, and the best is what is best in that. Most conformance problems take all rows in every
step, and seeds differ little there.
"""
COLUMNS = "| model | chosen | why | by default | to 1e-2 | best | ratio | to 1e-3 | best | ratio |"


# ---------------------------------------------------------------------------------------- one model
def opened(model: Model) -> tuple[Any, Any, Any]:
    """Problem, bound data and structure."""
    compiled = pipeline.compile_model(model.source())
    bound = pipeline.bind(compiled, model.binding())
    return compiled, bound, pipeline.analyse(compiled.problem, bound)


def optimal(model: Model, compiled: Any, analysis: Any, bound: Any) -> float | None:
    """The optimal value of a convex model: by other means, or of a whole solve; None where it is not
    convex."""
    if not analysis.convex:
        return None
    if model.optimum is not None:
        return model.optimum()
    given = {"budget": ("40s", "bench"), "precision": ("float64", "bench")}
    solved = pipeline.solve(pipeline.plan(compiled, model.binding(), given, bound=bound))
    return solved.report.objective


def rows_of(name: str, only: list[str], seed: int, most: float, known: list[dict]) -> Iterator[dict]:
    """Every algorithm on a model, those first that are often good; ``known``: what was measured of it
    before."""
    compiled, bound, analysis = opened(models()[name])
    covered = {c.record.name for c in ranking.rank(candidates.candidates(analysis)).theorems}
    earlier = ratios(together(line for line in known if "algorithm" in line and line["seed"] != seed))
    near = {k for by in earlier.values() for k, ratio in by.items() if ratio <= FAR}
    solved = [line["optimum"] for line in known if "optimum" in line]
    optimum = solved[0] if solved else optimal(models()[name], compiled, analysis, bound)
    yield {"model": name, "optimum": optimum, "convex": analysis.convex}
    calls, seconds = math.inf, math.inf
    first = ["sonex", "sox", "alexr", "apg", "ascvrg"]
    for algorithm in sorted(
        covered & near if near else covered, key=lambda n: (first.index(n) if n in first else len(first), n)
    ):
        if only and algorithm not in only:
            continue
        limit, options = (AGAIN * calls, AGAIN * seconds), models()[name].options
        found = measured(
            compiled.problem,
            analysis,
            bound,
            algorithm,
            options,
            seed,
            optimum=optimum,
            limit=limit,
            most=most,
        )
        if "0.001" in found.get("reached", {}):
            calls, seconds = (
                min(a, b) for a, b in zip((calls, seconds), found["reached"]["0.001"], strict=True)
            )
        yield {"model": name, "seed": seed, **found}


def measure(args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    record = Path(args.record[0])
    known: dict[str, list[dict]] = defaultdict(list)
    for line in map(json.loads, record.read_text().splitlines() if record.exists() else []):
        known[line["model"]].append(line)
    only = args.algorithms.split(",") if args.algorithms else []
    for seed in args.seeds:
        chosen = args.models.split(",") if args.models else [
            name for name in models() if not any("finished" in line and line["seed"] == seed for line in known[name])
        ]  # fmt: skip
        for name in chosen:
            began = time.process_time()
            with record.open("a") as out:

                def keep(line: dict, out: Any = out, name: str = name) -> None:
                    known[name].append(line)
                    out.write(json.dumps(line) + "\n")
                    out.flush()

                for line in rows_of(name, only, seed, args.most, list(known[name])):
                    keep(line)
                keep({"model": name, "seed": seed, "finished": time.process_time() - began})
            print(seed, name, f"{time.process_time() - began:.0f} s", flush=True)


# --------------------------------------------------------------------------------- what it comes to
Ratios = dict[str, dict[str, float]]


def read(records: list[str], seeds: Iterable[int]) -> dict[str, dict[str, dict]]:
    """model -> algorithm -> what was measured with these seeds."""
    lines: dict[str, list[dict]] = defaultdict(list)
    for record in records:
        for line in map(json.loads, Path(record).read_text().splitlines()):
            if "algorithm" in line and line["seed"] in seeds:
                lines[line["model"]].append(line)
    return {name: together(own) for name, own in lines.items()}


def together(lines: Iterable[dict]) -> dict[str, dict]:
    """algorithm -> its runs with several seeds as one: geometric means, of what all of them reached."""
    runs: dict[str, dict[int, dict]] = defaultdict(dict)
    for line in lines:
        if line.get("calls"):  # oracle calls are counted
            runs[line["algorithm"]][line["seed"]] = line
    return {name: pooled(list(own.values())) for name, own in runs.items()}


def pooled(runs: list[dict]) -> dict:
    """Runs with several seeds as one."""
    reached = {
        wanted: [mean(max(run["reached"][wanted][k], 1e-9) for run in runs) for k in (0, 1)]
        for wanted in runs[0]["reached"] if all(wanted in run["reached"] for run in runs)
    }  # fmt: skip
    ends = {key: mean(max(run[key], 1e-9) for run in runs) for key in ("calls", "seconds")}
    return {**runs[0], **ends, "reached": reached, "best": max(run["best"] for run in runs)}


def taken(calls: float, seconds: float) -> float:
    """One number of calls and seconds, so that neither work beyond oracle calls nor what a step costs
    besides is left out."""
    return math.sqrt(max(calls, 1.0) * max(seconds, 1e-5))


def ratios(runs: Mapping[str, dict], of: Callable[[float, float], float] = taken) -> Ratios:
    """accuracy -> algorithm -> its time over the least; of one that did not get there at least
    ``MISSED``. Accuracies that none came to are left out."""
    found: Ratios = {}
    for wanted in (f"{a:g}" for a in ACCURACIES):
        times = {name: of(*run["reached"][wanted]) for name, run in runs.items() if wanted in run["reached"]}
        if times:
            least = min(times.values())
            ends = {name: max(MISSED, of(run["calls"], run["seconds"]) / least) for name, run in runs.items()}
            found[wanted] = {name: times[name] / least if name in times else ends[name] for name in runs}
    return found


def mean(values: Iterable[float]) -> float:
    """The geometric mean."""
    logarithms = [math.log(v) for v in values]
    return math.exp(sum(logarithms) / len(logarithms))


def classes(found: Mapping[str, dict[str, dict]]) -> Iterator[tuple[dict, dict[str, dict[str, dict]]]]:
    """The classes of the models measured: features, and what was measured of each model; those of
    several models first, then wider ones, without the last feature, without the last two, and
    without the last three."""
    named = {name: features(name) for name in found if ratios(found[name])}
    for width in range(WIDEST + 1):
        groups: dict[tuple, list[str]] = defaultdict(list)
        for name, problems in named.items():
            groups[tuple(problems.items())[: len(problems) - width]].append(name)
        for problems, names in sorted(groups.items()):
            if len(names) > 1 or width == WIDEST:
                yield dict(problems), {name: found[name] for name in names}


def times_of(found: Mapping[str, dict[str, dict]]) -> dict[str, float]:
    """The mean ratio of every algorithm that at least half of these models have; one above ``MISSED``
    counts as that, so that no single model outweighs all others."""
    each: dict[str, list[float]] = defaultdict(list)
    for runs in found.values():
        for by in ratios(runs).values():
            for algorithm, ratio in by.items():
                each[algorithm].append(min(ratio, MISSED))
    most = max(map(len, each.values()))
    return {name: mean(r) for name, r in each.items() if 2 * len(r) >= most}


def by_theorems(found: Mapping[str, dict[str, dict]]) -> float:
    """The mean ratio of what the theorems choose for each of these models."""
    each = [
        (ranked(name).theorems[0].record.name, by)
        for name, runs in found.items()
        for by in ratios(runs).values()
    ]
    return mean(min(by.get(chosen, MISSED), MISSED) for chosen, by in each)


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
    found = read(args.record, args.seeds)
    print(
        "# Made by tests/bench/choice.py from measurements: by class of problems, how much longer each "
        "algorithm took than the"
    )
    print(
        "# best (geometric means over the models of the class); `theorems`: what these choose, for each "
        "model its own."
    )
    print(f"# Figures by model in tests/bench/choice.md. Of {len(found)} models, {seeded(args.seeds)}.")
    for problems, members in classes(found):
        print("\n[[class]]")
        print(
            f"problems = {{ {', '.join(f'{key} = {str(value).lower()}' for key, value in problems.items())} "
            f"}}"
        )
        print(f"models = {json.dumps(list(members))}")
        print(f"theorems = {by_theorems(members):.3g}")
        print("[class.times]")
        print(
            "\n".join(
                f"{name} = {time:.3g}"
                for name, time in sorted(times_of(members).items(), key=lambda pair: pair[1])
            )
        )


def shares(found: Mapping[str, dict[str, dict]]) -> Iterator[str]:
    """How often the chosen one is within a factor of the best, and what the theorems alone would choose."""
    for measure, of in MEASURES.items():
        for by in ("", ", by theorems alone"):
            well: dict[str, list[bool]] = {f"{a:g}": [] for a in ACCURACIES}
            for name, runs in found.items():
                chosen = (ranked(name).theorems if by else ranked(name).order)[0].record.name
                for wanted, each in ratios(covering(name, runs), of).items():
                    well[wanted].append(each.get(chosen, MISSED) <= WITHIN)
            said = (
                f"{sum(w)} of {len(w)} ({100 * sum(w) / max(len(w), 1):.0f}%) to {wanted}"
                for wanted, w in well.items()
            )
            yield f"- in {measure}{by}: {', '.join(said)}"


def row(name: str, runs: Mapping[str, dict]) -> str:
    """A model's line of the table."""
    order, by_default = ranked(name), ranked(name, finishing=True).order[0].record.name
    chosen, alone = order.order[0].record.name, order.theorems[0].record.name
    why = "theorem" if order.row is None else f"measured; the theorems: {alone}"
    cells = []
    for wanted in (f"{a:g}" for a in ACCURACIES):
        both = ratios(runs).get(wanted, {})
        best = min(both, key=lambda n: both[n], default="")
        ratio = f"{both[chosen]:.1f}" if chosen in both else "-"
        cells += [figures(runs, chosen, wanted), figures(runs, best, wanted), ratio]
    return f"| {name} | {chosen} | {why} | {by_default} | {' | '.join(cells)} |"


def table(args: argparse.Namespace) -> None:
    """The choice on every model, and by class what was measured."""
    found = read(args.record, args.seeds)
    own = {name for one in classing.rows() for name in one.models}
    part = f"{len(own & found.keys())} had a part in the preferences"
    print(f"{HEAD}\n{len(found)} models were measured {seeded(args.seeds)}; {part}.\n")
    seeds = [(f"Seeds {', '.join(map(str, args.seeds))}", args.seeds)]
    fresh = [(f"Seed {seed}, fresh", [seed]) for seed in args.fresh]
    fresh += [(f"Seeds {', '.join(map(str, args.fresh))}, fresh", args.fresh)] if len(args.fresh) > 1 else []
    for title, which in seeds + fresh:
        runs = read(args.record, which)
        print(
            f"{title}, {len(runs)} models: chosen within a factor {WITHIN:g} of the best\n\n"
            + "\n".join(shares(runs))
            + "\n"
        )
    print("\n".join(missed(found)) + "\n")
    print(f"{COLUMNS}\n{'|---' * (COLUMNS.count('|') - 1)}|")
    rows = [row(name, covering(name, runs)) for name, runs in found.items()]
    print("\n".join(rows))
    print(
        "\n## By class\n\nWhat `measured.toml` holds: times over the best one's, geometric means over "
        "models and accuracies.\n"
    )
    for one in classing.rows():
        times = sorted({**one.times, "*the theorems*": one.theorems}.items(), key=lambda pair: pair[1])
        said = ", ".join(f"{name} {time:.1f}" for name, time in times)
        print(f"- {one.name} ({len(one.models)} model{'s' * (len(one.models) > 1)}): {said}")


def seeded(seeds: list[int]) -> str:
    return f"with seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def missed(found: Mapping[str, dict[str, dict]]) -> Iterator[str]:
    """Where the chosen one is further from the best than ``WITHIN``, and how far."""
    for wanted in (f"{a:g}" for a in ACCURACIES):
        said = []
        for name, runs in found.items():
            chosen, each = ranked(name).order[0].record.name, ratios(covering(name, runs)).get(wanted, {})
            if each and each.get(chosen, MISSED) > WITHIN:
                came = wanted in runs.get(chosen, {}).get("reached", {})
                said.append(f"{name} ({chosen} {f'{each[chosen]:.1f}' if came else 'did not come to it'})")
        yield f"Further, to {wanted}: {', '.join(said) or 'none'}."


def figures(runs: Mapping[str, dict], name: str, wanted: str) -> str:
    """``sonex 1.4e+05, 0.05 s``: what it took."""
    if name not in runs or wanted not in runs[name].get("reached", {}):
        best = runs.get(name, {}).get("best")
        return f"{name} -" if best is None else f"{name} - (came to {best:.0e})"
    calls, seconds = runs[name]["reached"][wanted]
    return f"{name} {calls:.1e}, {seconds:.2g} s"


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["measure", "table", "preferences"])
    parser.add_argument("record", nargs="+")
    parser.add_argument("--models", default="")
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--seeds", type=numbers, default=[1, 2])
    parser.add_argument(
        "--fresh", type=numbers, default=[], help="of a table: seeds by which no preference was set"
    )
    parser.add_argument("--most", type=float, default=2.0, help="counted seconds that one run may take")
    args = parser.parse_args()
    {"measure": measure, "table": table, "preferences": preferences}[args.what](args)


if __name__ == "__main__":
    main()
