"""What a step takes at a scale that no machine here has: a formula fitted to one process, and checked
on two ranks.

    python tests/bench/scale.py [--rows 1e9] [--blocks 1e8] [--ranks 64] [--variables 1e6]
    [--latency 2e-5] [--bandwidth 1e10]

Seconds of a step on R ranks, SONEX on all pairs of rows, B1 blocks and B2 samples of each, d variables:

    alone(B1 B2 / R) + draw (B1 + B2) + sums (latency log2 R + 8 d (R - 1) / (R bandwidth))    at float32

``alone`` is what a step of one process takes, measured and interpolated (beyond the last by its
slope), and ``sums`` how many vectors a step sums over the ranks; ``draw`` is the time per place of
a pass without replacement (a permutation up to 2^24 elements, a key and a count beyond them),
``latency`` and ``bandwidth`` those of sums of two gloo ranks. The formula is then set beside steps
of two ranks, of which only the number of sums was taken. For other networks give their latency
(seconds) and bandwidth (bytes per second).
"""

from __future__ import annotations

import argparse
import bisect
import math
import statistics
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ranks import HEAD, MODELS, table

STEPS, ROUNDS = 150, 5
#: sizes of steps that one process takes, and those of the check
SIZES = ((16, 16), (64, 64), (128, 128), (256, 256), (512, 512), (1024, 512), (1024, 1024))
CHECKED = ((128, 128), (512, 512), (1024, 1024))
LENGTHS = (10**5, 10**7, 10**9)
#: places that are drawn at once where nothing of a pass is kept
AHEAD = 1 << 13
VECTORS = (16, 1 << 12, 1 << 16, 1 << 20, 1 << 22)


def module(blocks: int, samples: int, ranks: bool, rows: int = 20_000) -> tuple[Any, dict[str, torch.Tensor]]:
    """A program and its data."""
    import fccomodel
    from fccomodel import pipeline

    options = {
        "budget": "100000it",
        "polish": False,
        "outer_batch": blocks,
        "inner_batch": samples,
        "algorithm": "sonex",
    }
    bound = fccomodel.compile(HEAD + MODELS["pairs"]).bind(data=table(rows))
    program = pipeline.emit(bound.plan(ranks=ranks, unverified=True, **options))
    made = types.ModuleType("solver")
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), made.__dict__)  # noqa: S102  what the compiler wrote
    return made, dict(program.data)


def steps(blocks: int, samples: int, ranks: bool, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of one step, by two runs that differ in their number of steps, the median of rounds; and
    its sums over ranks."""
    made, data = module(blocks, samples, ranks)
    taken, sums = [], [0]
    for _ in range(ROUNDS):
        ends = []
        for count in (STEPS, 3 * STEPS):
            began = clock()
            with made.no_grad():
                made.solve(made.SOLVER, dict(data), seconds=None, iterations=count)
            ends.append(clock() - began)
            sums.append(made.RANKS.calls if ranks else 0)
        taken.append((ends[1] - ends[0]) / (2 * STEPS))
    return statistics.median(taken), (sums[2] - 2 * sums[1]) / (2 * STEPS)


def draws(length: int) -> float:
    """Seconds per place of a pass over so many."""
    from fccomodel.algorithms.runtime.helpers.support import shuffled
    from fccomodel.program.emit.sampling import COUNTED_PASSES_FROM

    rng, taken, counted = torch.Generator().manual_seed(0), [], length > COUNTED_PASSES_FROM
    places = torch.arange(AHEAD)
    for _ in range(20 if counted else 3):
        began = time.process_time()
        if counted:
            shuffled(places, length, 7)
        else:
            torch.randperm(length, generator=rng)
        taken.append((time.process_time() - began) / (AHEAD if counted else length))
    return min(taken)


def member(rank: int, path: str) -> None:
    """One of two ranks: sums of vectors, and steps."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}.store", rank=rank, world_size=2)
    lines = []
    for size in VECTORS:
        x, taken = torch.zeros(size), []
        for _ in range(30):
            began = time.perf_counter()
            torch.distributed.all_reduce(x)
            taken.append(time.perf_counter() - began)
        lines.append(f"sum {size} {statistics.median(taken)}")
    for blocks, samples in CHECKED:
        lines.append(
            f"step {blocks} {samples} {' '.join(map(str, steps(blocks, samples, True, time.perf_counter)))}"
        )
    if rank == 0:
        Path(path).write_text("\n".join(lines))


def of_two() -> tuple[dict[int, float], dict[tuple[int, int], tuple[float, float]]]:
    """Seconds of sums by length, and those of steps by sizes with their numbers of sums."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(member, args=(f"{folder}/x",), nprocs=2, start_method="spawn")
        lines = [line.split() for line in Path(f"{folder}/x").read_text().splitlines()]
    sums = {int(line[1]): float(line[2]) for line in lines if line[0] == "sum"}
    return sums, {
        (int(line[1]), int(line[2])): (float(line[3]), float(line[4])) for line in lines if line[0] == "step"
    }


def line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Least squares of relative differences: (constant, slope), neither below 0."""
    a = torch.tensor([[1 / y, x / y] for x, y in points], dtype=torch.float64)
    constant, slope = (
        torch.linalg.lstsq(a, torch.ones(len(points), 1, dtype=torch.float64)).solution.flatten().tolist()
    )
    return max(constant, 0.0), max(slope, 0.0)


def between(points: dict[float, float], at: float) -> float:
    """Linear between measured points, and beyond the last two."""
    known = sorted(points)
    k = min(max(bisect.bisect_left(known, at), 1), len(known) - 1)
    low, high = known[k - 1], known[k]
    return points[low] + (points[high] - points[low]) * (max(at, known[0]) - low) / (high - low)


def terms(
    alone: dict[float, float], draw: float, link: tuple[float, float], *,
    blocks: int, samples: int, d: float, ranks: int, sums: float,
) -> dict[str, float]:  # fmt: skip
    """Seconds of a step by what they are for."""
    least, latency, bandwidth = min(alone.values()), *link
    sent = sums * (latency * math.log2(ranks) + 8 * d * (ranks - 1) / ranks / bandwidth)
    work = max(between(alone, blocks * samples / ranks) - least, 0.0)
    return {"calls": least, "work": work, "draws": draw * (blocks + samples), "sums over ranks": sent}


def main() -> None:
    parser = argparse.ArgumentParser(description="Foresee the steps of many ranks.")
    for name, value in {
        "rows": 1e9,
        "blocks": 1e8,
        "ranks": 64,
        "variables": 1e6,
        "latency": None,
        "bandwidth": None,
    }.items():
        parser.add_argument(f"--{name}", type=float, default=value)
    given = parser.parse_args()
    torch.set_num_threads(1)

    alone = {float(a * b): steps(a, b, False, time.process_time)[0] for a, b in SIZES}
    print("| blocks x samples, one process | ms |\n|---|---|")
    print("\n".join(f"| {a} x {b} | {1e3 * alone[float(a * b)]:.3f} |" for a, b in SIZES))
    permuted = {n: draws(n) for n in LENGTHS}
    print("\n| elements of a pass | ns per place |\n|---|---|")
    print("\n".join(f"| {n:,} | {1e9 * seconds:.1f} |" for n, seconds in permuted.items()))

    sums, checked = of_two()
    latency, per = line([(float(size), seconds) for size, seconds in sums.items()])
    bandwidth = 4 / per  # of two ranks: each sends and receives half of 2 (R - 1) / R times 4 bytes
    print(f"\ntwo gloo ranks: latency {1e6 * latency:.0f} us, {bandwidth / 1e9:.2f} GB/s\n")
    print(
        "| blocks x samples, two ranks | sums in a step | ms measured | ms by the formula "
        "|\n|---|---|---|---|"
    )
    for (a, b), (seconds, count) in checked.items():
        link = latency, bandwidth
        parts = terms(alone, permuted[LENGTHS[0]], link, blocks=a, samples=b, d=4, ranks=2, sums=count)
        print(f"| {a} x {b} | {count:.2f} | {1e3 * seconds:.3f} | {1e3 * sum(parts.values()):.3f} |")

    latency, bandwidth = given.latency or latency, given.bandwidth or bandwidth
    draw = draws(int(given.rows))
    ranks, d = int(given.ranks), given.variables
    print(f"\n{given.rows:.0e} rows, {given.blocks:.0e} blocks, {d:.0e} variables, {ranks} ranks, ", end="")
    print(f"{1e6 * latency:.0f} us, {bandwidth / 1e9:.1f} GB/s:\n")
    print(
        "| blocks x samples | calls | work | draws | sums over ranks | a step, ms | most of it |\n"
        + "|---" * 7
        + "|"
    )
    for a, b in ((64, 64), (1024, 256), (16_384, 1024)):
        parts = terms(alone, draw, (latency, bandwidth), blocks=a, samples=b, d=d, ranks=ranks, sums=1.0)
        cells = " | ".join(f"{1e3 * seconds:.3f}" for seconds in parts.values())
        print(
            f"| {a:,} x {b:,} | {cells} | {1e3 * sum(parts.values()):.3f} | "
            f"{max(parts, key=lambda name: parts[name])} |"
        )
    held = {"estimates u, float32": 4 * given.blocks, "state of Adam": 12 * d}
    print("\nheld by every rank: " + ", ".join(f"{name} {size / 1e9:.3g} GB" for name, size in held.items()))


if __name__ == "__main__":
    main()
