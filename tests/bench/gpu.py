"""Steps of emitted programs on a GPU, eager and as CUDA graphs, beside a loop by hand, and their share
of a copy's bandwidth.

    python tests/bench/gpu.py [--device cuda] [--batches 64 1024 16384 65536] [--rounds 7] [--write]

One-way partial AUC by KL, linear and with an MLP, SOX; half of each batch positive rows, half
negative, of 200,000 rows of 122 numbers, float32. The program's steps one by one, those of its
``cuda-graph`` backend, and the loop by hand take turns in blocks of 64 steps between
synchronisations, draws included; medians, ratios round by round. ``operations`` are torch's calls
of a step that compute (views are none), about as many kernels; graphs start those of four steps by
one call. The share, of the faster of the first two, is that of the bytes of a batch's rows, read
from the table and written once, in the time of a step, against a copy of 256 MiB; of ``pairs`` the
same for one pass over them, beside which rows are little where batches are large. ``--device cpu``
tries the script; ``--write`` puts a GPU's table into ``gpu.md``.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import backends  # noqa: E402
import steps  # noqa: E402
from support.emitted_models import Made, make  # noqa: E402

from fccomodel.execution.backends import cuda_graph  # noqa: E402
from fccomodel.execution.backends.steps.leap import Leap  # noqa: E402
from fccomodel.execution.backends.steps.several import Several  # noqa: E402

BLOCK = 64


def program(net: bool, batch: int) -> Made:
    """The solver."""
    body, half = steps.model(steps.PAUC, net), batch // 2
    return make("bench", body, algorithm="sox", outer_batch=half, inner_batch=half)


def emitted(made: Made, device: str, graphs: bool) -> Callable[[], None]:
    """A block of steps of the program's own loop, draws included; one by one, or by the graphs of the
    ``cuda-graph`` backend (on the host by what they would capture)."""
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
    x, y = (
        torch.as_tensor(table["x"], dtype=torch.float32, device=device),
        torch.as_tensor(table["y"], device=device),
    )
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
    return (
        2 * source.nbytes / statistics.median(seconds(lambda: target.copy_(source), device) for _ in range(9))
    )


class Calls(TorchDispatchMode):
    """Counts what computes."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += all(one.alias_info is None or one.alias_info.is_write for one in func._schema.returns)
        return func(*args, **(kwargs or {}))


def operations(side: Callable[[], None]) -> float:
    """Of a step."""
    with Calls() as calls:
        side()
    return calls.count / BLOCK


def line(net: bool, batch: int, copy: float, asked: argparse.Namespace) -> str:
    """A row of the table."""
    made = program(net, batch)
    sides = [
        *(emitted(made, asked.device, graphs) for graphs in (False, True)),
        by_hand(net, batch, asked.device),
    ]
    for side in sides:
        side()
    taken = [tuple(seconds(side, asked.device) / BLOCK for side in sides) for _ in range(asked.rounds)]
    times = [statistics.median(column) for column in zip(*taken, strict=True)]
    ratios = [statistics.median(row[k] / row[2] for row in taken) for k in (0, 1)]
    counts = [operations(side) for side in (sides[0], sides[2])]
    shares = [2 * 4 * numbers / min(times[:2]) / copy for numbers in (batch * steps.WIDTH, (batch // 2) ** 2)]
    shown = [
        *(f"{1e6 * t:.0f}" for t in times),
        *(f"{ratio:.2f}" for ratio in ratios),
        *(f"{count:.0f}" for count in counts),
    ]
    return f"| {' | '.join([*shown, *(f'{share:.1%}' for share in shares)])} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=int, nargs="*", default=[64, 1024, 16_384, 65_536])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if asked.write and not asked.device.startswith("cuda"):
        sys.exit("a page is of a GPU")
    if asked.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("skipped: there is no GPU here")
    steps.ROWS, copy = asked.rows, bandwidth(asked.device)
    name = torch.cuda.get_device_name(asked.device) if asked.device.startswith("cuda") else "the host"
    columns = ["scores", "batch", "eager, µs", "graphs, µs", "by hand, µs", "eager / hand", "graphs / hand"]
    columns += ["operations, eager", "by hand", "share of a copy: rows", "pairs"]
    text = [f"{name}, torch {torch.__version__}; a copy moves {copy / 1e9:.0f} GB/s", ""]
    text += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    print("\n".join(text), flush=True)
    for net, batch in ((net, batch) for net in (False, True) for batch in asked.batches):
        try:
            found = line(net, batch, copy, asked)
        except torch.OutOfMemoryError:
            found = "| beyond the device's memory" + " |" * (len(columns) - 2)
        text.append(f"| {'MLP 64-64' if net else 'linear'} | {batch:,} {found}")
        print(text[-1], flush=True)
        if asked.device.startswith("cuda"):
            gc.collect()
            torch.cuda.empty_cache()
    if asked.write:
        about = (__doc__ or "").split("\n\n")[2]
        page = ["# Steps on a GPU", "", about.partition("``--device cpu``")[0].strip(), "", *text, ""]
        Path(__file__).with_suffix(".md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
