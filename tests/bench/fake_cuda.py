"""Every emitted program on a device that is not there: its fake tensors fail what a GPU would fail, or
wait for.

    python tests/bench/fake_cuda.py [--only conformance language examples] [--names a,b]
    [--algorithms a,b] [--record FILE] python tests/bench/fake_cuda.py --page FILE ...

Programs of the conformance set by every algorithm that takes them, of the models that use every
feature of the language, and of the examples; each is prepared, draws, steps, has its steps
captured, is evaluated, runs, finishes and is restored, gradients by autograd
(``tests/support/fake_device.py``). It wants no GPU, nor a torch for one. ``--page`` writes
``fake_cuda.md`` from records.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conformance import runs  # noqa: E402
from conformance.problems import ALL  # noqa: E402
from support.emitted_models import CASES, make  # noqa: E402
from support.fake_device import MISSING, WAITS, Device, outcome  # noqa: E402
from support.places import ROOT  # noqa: E402

from fccomodel import algorithms, pipeline  # noqa: E402
from fccomodel.core.diagnostics import FccoError  # noqa: E402
from fccomodel.core.files import model_source  # noqa: E402
from fccomodel.program import emit  # noqa: E402
from fccomodel.program.lower import lower  # noqa: E402

SECONDS = 90
Job = tuple[str, str, Callable[[], Any]]


def conformance(names: list[str], chosen: list[str]) -> Iterator[Job]:
    """Each problem by each algorithm that takes it."""

    def program(problem: Any, name: str) -> Any:
        bound = runs.bound_problem(problem)
        return emit.emit(lower(bound.problem, bound, runs.planned(problem, algorithm=name)))

    for problem in ALL:
        for name in sorted(algorithms.all()):
            if (
                (not names or problem.name in names)
                and (not chosen or name in chosen)
                and not runs.refusal(problem, name)
            ):
                yield problem.name, name, lambda problem=problem, name=name: program(problem, name)


def language(names: list[str], chosen: list[str]) -> Iterator[Job]:
    """Every feature of the language, by the algorithm that tests of programs take."""
    for name in CASES:
        if not names or name in names:
            yield name, "as in tests", lambda name=name: make(name).program


def examples(names: list[str], chosen: list[str]) -> Iterator[Job]:
    """Those that have their data here, as they are solved by default."""

    def program(path: Path) -> Any:
        compiled = pipeline.compile_model(model_source(path))
        bound = pipeline.bind(compiled, pipeline.Binding(spec=path.with_suffix(".toml")))
        return emit.emit(
            lower(compiled.problem, bound, pipeline.decide(pipeline.analyse(compiled.problem, bound)))
        )

    for path in sorted((ROOT / "examples").rglob("*.fcco")):
        spec = path.with_suffix(".toml")
        if spec.is_file() and tomllib.loads(spec.read_text()) and (not names or path.stem in names):
            yield path.stem, "by default", lambda path=path: program(path)


SETS = {"conformance": conformance, "language": language, "examples": examples}


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """A TimeoutError after so long: made-up numbers may lead round and round."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s, perhaps round and round by made-up numbers")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def ran(job: Job) -> tuple[dict[str, str], Device]:
    """What failed of each part of a program; which of its functions read numbers, and why no graph
    takes its steps."""
    program, module = job[2](), ModuleType("solver")
    module.__dict__["MODULES"] = {name: kept.module for name, kept in program.modules.items()}
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    with limited(SECONDS):
        return outcome(module, dict(program.data), "solver.py")


def told(records: list[dict[str, Any]]) -> Iterator[str]:
    """The table by algorithm, what failed, and who reads numbers."""
    by_algorithm: dict[str, list[dict[str, Any]]] = defaultdict(list)
    reads: Counter[str] = Counter()
    for record in records:
        by_algorithm[record["algorithm"]].append(record)
        reads.update(record["reads"])
    yield "| algorithm | programs | pass | captured | the others' steps: why no graph takes them |"
    yield "|---|---|---|---|---|"
    for name, those in sorted(by_algorithm.items()):
        why = Counter(record["uncaptured"] for record in those if record["uncaptured"])
        said = "; ".join(f"{count}: {reason}" for reason, count in why.most_common())
        yield (
            f"| {name} | {len(those)} | {sum(not record['why'] for record in those)} | "
            f"{len(those) - why.total()} | {said} |"
        )
    failed = [record for record in records if record["why"]]
    if failed:
        yield "\nWhat failed:\n"
        yield from (f"- {record['problem']} by {record['algorithm']}: {record['why']}" for record in failed)
    yield "\nWithin a step, taken one by one, these alone wait for a number:\n"
    yield from (f"- `{name}`: {why}." for name, why in WAITS.items() if name in reads)
    yield (
        "\nBetween stages and after the steps the host reads what decides how a run goes on: "
        "objective, violations, step sizes,"
    )
    yield (
        "smoothing, that the last 64 steps were finite, lengths in line searches. These do, the most "
        "frequent first:"
    )
    yield ", ".join(f"`{name}`" for name, _ in reads.most_common() if name not in WAITS) + "."
    yield (
        "\nThe report is made on the host, in float64, from the point alone: what a program hands "
        "over is moved there."
    )


def recorded(job: Job) -> dict[str, Any] | None:
    """What became of one program, where there is one."""
    began = time.perf_counter()
    reads, uncaptured = Counter[str](), ""
    try:
        said, device = ran(job)
        reads, uncaptured = device.reads, device.uncaptured
    except FccoError as error:  # refused, and nothing to run
        print(f"{job[0]:24}{job[1]:18}{error.diagnostics[0].code}: no program", flush=True)
        return None
    except TimeoutError as error:
        said = {"all": str(error)}
    why = "; ".join(f"{part}: {reason}" for part, reason in said.items() if reason)
    print(f"{job[0]:24}{job[1]:18}{time.perf_counter() - began:6.1f} s  {why or 'ok'}", flush=True)
    return {"problem": job[0], "algorithm": job[1], "why": why, "reads": reads, "uncaptured": uncaptured}


def page(files: list[str]) -> None:
    """Writes what several runs recorded, the last of each program."""
    lines = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    last = {(record["problem"], record["algorithm"]): record for record in lines}
    models = sorted({problem for problem, _ in last})
    head = (__doc__ or "").split("\n", 5)[5].split(" It wants")[0].strip()
    lead = [
        "# Programs on a device that is not there",
        "",
        head,
        "",
        f"With torch {torch.__version__}, {len(last)} programs of {len(models)} models: {', '.join(models)}.",
        "",
    ]
    Path(__file__).with_suffix(".md").write_text(
        "\n".join([*lead, *told(list(last.values()))]) + "\n", encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--names", default="")
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--record", help="append what became of every program to this file")
    parser.add_argument("--page", nargs="*", help="of records, and nothing is run")
    asked = parser.parse_args()
    if asked.page:
        page(asked.page)
        return
    if MISSING:
        sys.exit(f"skipped: {MISSING}")
    names, chosen = ([x for x in given.split(",") if x] for given in (asked.names, asked.algorithms))
    records = []
    for job in (job for kind in asked.only for job in SETS[kind](names, chosen)):
        record = recorded(job)
        if record is None:
            continue
        records.append(record)
        if asked.record:
            with open(asked.record, "a") as out:
                out.write(json.dumps(record) + "\n")
    print("\n".join(told(records)))


if __name__ == "__main__":
    main()
