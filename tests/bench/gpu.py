"""Steps of emitted programs on a GPU, eager and as CUDA graphs, beside a loop by hand, and their share of a copy's bandwidth.

    python tests/bench/gpu.py [--device cuda] [--batches 64 1024 16384 65536] [--rounds 7]

One-way partial AUC by KL, linear and with an MLP, SOX; half of each batch positive rows, half negative, of 200,000 rows of 122
numbers. The program's steps one by one, those of its ``cuda-graph`` backend, and the loop by hand take turns in blocks between
synchronisations; medians. The share, of the faster of the first two, is that of the bytes of a batch's rows, read from
the table and written once, in the time of a step, against a copy of 256 MiB. ``--device cpu`` tries the script.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import backends  # noqa: E402
import steps  # noqa: E402
from emitted_models import make  # noqa: E402

from fccomodel.solver.backends import cuda_graph  # noqa: E402
from fccomodel.solver.backends._leap import Leap  # noqa: E402
from fccomodel.solver.backends._several import Several  # noqa: E402

BLOCK = 64


def emitted(net: bool, batch: int, device: str, graphs: bool) -> Callable[[], None]:
    """A block of steps of the program's own loop, draws included; one by one, or by the graphs of the ``cuda-graph`` backend (on
    the host by what they would capture)."""
    made = make("bench", steps.model(steps.PAUC, net), algorithm="sox", outer_batch=batch // 2, inner_batch=batch // 2)
    leap = None
    if graphs:
        several = Several.of(made.solver, made.program, device, torch.float32)
        on_host = Leap(several, cuda_graph.Captured(several, backends.Again))
        leap = cuda_graph.leap(several)[0] if device.startswith("cuda") else on_host
    _, on = backends.begun(made, torch.float32, math.inf, device)
    return lambda: on(BLOCK, leap)


def by_hand(net: bool, batch: int, device: str) -> Callable[[], None]:
    """The same with modules, autograd and fused Adam, draws on the device, nothing read back."""
    table = steps.data()["D"]
    x, y = torch.as_tensor(table["x"], dtype=torch.float32, device=device), torch.as_tensor(table["y"], device=device)
    positive, negative = (y == 1).nonzero()[:, 0], (y == -1).nonzero()[:, 0]
    linear = torch.nn.Sequential(torch.nn.Linear(steps.WIDTH, 1, bias=False), torch.nn.Flatten(0))
    score, half = (steps.mlp() if net else linear).to(device), batch // 2
    adam, u = torch.optim.Adam(score.parameters(), lr=1e-3, fused=True), torch.ones(steps.ROWS, device=device)

    def run() -> None:
        for _ in range(BLOCK):
            p, n = (some[torch.randint(len(some), (half,), device=device)] for some in (positive, negative))
            s = score(x[torch.cat([p, n])])
            pairs = (1 + s[half:] - s[:half, None]).relu().square().exp().mean(1)
            with torch.no_grad():
                u[p] = 0.5 * u[p] + 0.5 * pairs
            adam.zero_grad()
            (pairs / u[p]).mean().backward()
            adam.step()

    return run


def seconds(run: Callable[[], object], device: str) -> float:
    """Until the device has done it."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    began = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - began


def bandwidth(device: str) -> float:
    """Bytes read and written in a second by a copy."""
    source = torch.zeros(1 << 26, device=device)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * source.nbytes / statistics.median(seconds(lambda: target.copy_(source), device) for _ in range(9))


def measured(net: bool, batch: int, asked: argparse.Namespace) -> list[tuple[float, ...]]:
    """Seconds of a step, eager, by graphs and by hand, round by round."""
    ours = [emitted(net, batch, asked.device, graphs) for graphs in (False, True)]
    sides = [*ours, by_hand(net, batch, asked.device)]
    for side in sides:
        side()
    return [tuple(seconds(side, asked.device) / BLOCK for side in sides) for _ in range(asked.rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=int, nargs="*", default=[64, 1024, 16_384, 65_536])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    if asked.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("skipped: there is no GPU here")
    steps.ROWS, copy = asked.rows, bandwidth(asked.device)
    name = torch.cuda.get_device_name(asked.device) if asked.device.startswith("cuda") else "the host"
    print(f"{name}, torch {torch.__version__}; a copy moves {copy / 1e9:.0f} GB/s\n")
    print("| scores | batch | eager, µs | graphs, µs | by hand, µs | eager / hand | graphs / hand | share of a copy |")
    print("|---" * 8 + "|")
    for net in (False, True):
        scores = "MLP 64-64" if net else "linear"
        for batch in asked.batches:
            try:
                taken = measured(net, batch, asked)
            except torch.OutOfMemoryError:
                print(f"| {scores} | {batch:,} | skipped: beyond the device's memory | | | | | |", flush=True)
                continue
            times = [statistics.median(column) for column in zip(*taken, strict=True)]
            ratios = [statistics.median(row[k] / row[2] for row in taken) for k in (0, 1)]
            share = 2 * 4 * batch * steps.WIDTH / min(times[:2]) / copy
            shown = [*(f"{1e6 * t:.0f}" for t in times), *(f"{ratio:.2f}" for ratio in ratios), f"{share:.1%}"]
            print(f"| {scores} | {batch:,} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
