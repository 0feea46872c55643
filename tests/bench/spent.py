"""Where the time goes: in an eager step by operation, in README's solve by stage.

    python tests/bench/spent.py [--write]

Steps: KL pAUC, 32 positive and 32 negative rows of 122 numbers, by torch's profiler over 200 steps
of one thread; shares of the time within torch's operations. A solve: a process's first and third,
under Python's profiler, which makes Python some two times slower than it is: read the shares.
Stages that call others have their time in them.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from support.places import ROOT  # noqa: E402

#: a stage of a solve: the file and the name of the function in which its time is
STAGES = {
    "read and check the model": ("pipeline/__init__.py", "compile_model"),
    "bind the data": ("pipeline/__init__.py", "bind"),
    "structure": ("pipeline/__init__.py", "analyse"),
    "choice and settings": ("pipeline/__init__.py", "decide"),
    "lower and emit": ("pipeline/__init__.py", "emit"),
    "the program's run": ("execution/run/machine.py", "solved"),
    "report": ("pipeline/__init__.py", "report"),
    "in all of these: importing modules": ("<frozen importlib._bootstrap>", "_find_and_load"),
}
LEAST = 0.02


def of_a_step(net: bool, who: str) -> Iterator[str]:
    """Rows of a table: an operation, how often a step has it, its share."""
    import steps
    import torch
    from support.emitted_models import make
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    run = steps.emitted(make("bench", steps.model(steps.PAUC, net), algorithm=who))
    run()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    found = sorted(seen.key_averages(), key=lambda one: -one.self_cpu_time_total)
    whole, count = sum(one.self_cpu_time_total for one in found), run.steps  # type: ignore[attr-defined]
    for one in found:
        if one.self_cpu_time_total >= LEAST * whole:
            yield (
                f"| {one.key.removeprefix('aten::')} | {one.count / count:.1f} | "
                f"{one.self_cpu_time_total / whole:.0%} |"
            )
    calls = sum(one.count for one in found) / count
    yield f"| all | {calls:.0f} | |"


def profiled(work: Callable[[], Any]) -> tuple[dict[str, float], float]:
    """Seconds by stage, and of all."""
    profile, began = cProfile.Profile(time.process_time), time.process_time()
    profile.runcall(work)
    whole, spent = time.process_time() - began, dict.fromkeys(STAGES, 0.0)
    for (file, _, name), (_, _, _, cumulative, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        for stage, (place, function) in STAGES.items():
            if name == function and file.endswith(place):
                spent[stage] = max(spent[stage], cumulative)
    return spent, whole


def of_a_solve() -> Iterator[str]:
    """Rows of a table: a stage, its share of a first solve and of a third."""
    import torch

    torch.set_num_threads(1)
    example = str(ROOT / "examples" / "neyman_pearson")

    def solve() -> None:
        import fccomodel

        fccomodel.Model.parse(Path(f"{example}.fcco").read_text()).bind(spec=f"{example}.toml").solve(seed=0)

    first, whole = profiled(solve)
    solve()
    third, again = profiled(solve)
    for stage in STAGES:
        yield f"| {stage} | {first[stage] / whole:.0%} | {third[stage] / again:.0%} |"
    yield f"| all, seconds under the profiler | {whole:.1f} | {again:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--solve", action="store_true", help="the table of a solve alone, in this process")
    asked = parser.parse_args()
    if asked.solve:
        print("\n".join(of_a_solve()))
        return
    lines = ["# Where the time goes", "", (__doc__ or "").split("\n\n", 2)[2].strip()]
    for net in (False, True):
        for who in ("sox", "sonex"):
            lines += ["", f"**A step of {who.upper()}, {'MLP 64-64' if net else 'linear'}**", ""]
            lines += ["| operation | of a step | share |", "|---|---|---|", *of_a_step(net, who)]
    own = subprocess.run(
        [sys.executable, str(HERE), "--solve"], capture_output=True, text=True, check=True
    ).stdout
    lines += [
        "",
        "**README's solve, torch imported before**",
        "",
        "| stage | first | third |",
        "|---|---|---|",
        own.rstrip(),
    ]
    print("\n".join(lines))
    if asked.write:
        HERE.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
