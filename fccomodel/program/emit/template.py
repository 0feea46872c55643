"""The sections of every emitted program that are the same in each."""

from fccomodel.core.quoting import literal

IMPORTS = """import argparse
import copy
import hashlib
import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import torch"""

AS_NAMESPACE = '''# ---- data: {count} arrays, from DATA_FILE
INITIAL = {{}}
{declared}

def as_namespace(tensors, device, dtype):
    """The arrays on the device, real numbers in the working precision, and the model's parameters."""
    data = SimpleNamespace(device=torch.device(device), dtype=dtype, waiting={{}})
    for key, value in tensors.items():{passing}
        if key.startswith("net_"):
            INITIAL[key] = value
        if value.is_floating_point():
            value = value.to(dtype)
        setattr(data, key, value.to(device)){params}
    return data'''

#: What becomes of the arrays that stay in their files: no array of the memory, but a view.
PASSING = """
        if key in MAPPED:
            continue"""
MAPPED = """
    for key in MAPPED:
        setattr(data, key, MappedTensor(tensors[key], device, dtype))"""

REPORT = """# ---- the command line
def main():
    parser = argparse.ArgumentParser(description="Solve the model at the head of this file.")
    parser.add_argument("--data", type=Path, help=f"the bound data (default: {DATA_FILE} beside this file)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default={device}, help="cpu, cuda or cuda:1")
    parser.add_argument("--precision", choices=["float32", "float64"], default=PRECISION)
    default = f"default: {SECONDS}, or none where another is given"
    parser.add_argument("--seconds", type=float, help=f"budget of time ({default})")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    calls = "budget of values g_i(w; xi) that steps ask for"
    parser.add_argument("--oracles", type=float, default=CALLS, help=calls)
    folder = "keep the state of the run here, and go on from that which is there"
    parser.add_argument("--checkpoint", metavar="DIR", help=folder)
    in_seconds = lambda text: float(text.removesuffix("s"))
    parser.add_argument("--every", type=in_seconds, default=60.0, help="time between them (60s)")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever checkpoints there are")
    parser.add_argument("--out", help="write the variables here (torch.save)"){backend}
    arguments = parser.parse_args()
    arguments.device = present(arguments.device)
{start}
    seconds = arguments.seconds
    if seconds is None and arguments.iterations is None and arguments.oracles is None:
        seconds = SECONDS
    torch.set_num_threads(THREADS)
    file, digest = arguments.data, None
    if file is None:
        file, digest = Path(__file__).with_name(DATA_FILE), DATA_SHA256
    tensors = read_data(file, digest{mapped}){fetched}
{equipped}
    program = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    written_by = {"program": program, "arrays": DATA_SHA256}
    keep = keeper_of_run({keeper}, arguments, written_by, [Settings, {run_class}, Watch, Work])
{shared}
    def show(entry):{silent}
        place = "stage {stage:>3}  step {iteration:>7}  objective {objective:.6g}"
        line = f"{place}  violation {{violation:.2e}}  {{seconds:.1f}} s"
        print(line.format(**entry), flush=True)

    with no_grad():
        found = {run}(
            SOLVER,
            tensors,
            seed=arguments.seed,
            device=arguments.device,
            dtype=getattr(torch, arguments.precision),
            seconds=seconds,
            iterations=arguments.iterations,
            oracles=arguments.oracles,
            progress=show,
            planned=PLANNED,
            keep=keep{passes},
        ){silent}
        objective, constraints = evaluate(found.exact, found.w)
    print(f"objective {SIGN * float(objective):.10g}   ({found.reason}, {found.iterations} steps)")
    for label, (_, values) in constraints.items():
        print(f"{label}: largest value {float(values.max()):.6g}")
    if arguments.out:
        torch.save({name: found.w[a:b].view(shape) for name, (a, b, shape) in LAYOUT.items()}, arguments.out)


if __name__ == "__main__":
    main()"""


#: What runs the steps of a program of one process, where it is asked for.
BACKEND = """
    others = "any but eager is of fccomodel, which must be installed"
    parser.add_argument("--backend", default={asked}, help=others)"""
EQUIPPED = """    if arguments.backend != "eager":
        try:
            from fccomodel.execution.backends import equip_program
        except ImportError:
            words = "any but eager is of fccomodel, which is not installed"
            raise SystemExit(f"error[F0818] backend: {words}") from None
        equip_program(sys.modules[__name__], tensors, arguments)
"""
#: What a program of one process does first, and one of several.
ALONE = """    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        words = "this program is of one process; write one of several with --option ranks=true"
        first = os.environ.get("RANK") == "0"
        raise SystemExit(f"error[F0616] not over ranks: {words}" if first else 1)"""
TOGETHER = """    arguments.device = joined(arguments.device)"""
#: What the keeper of several ranks brings together.
SHARED = """    if keep is not None:
        keep.data, keep.owners = SimpleNamespace(**tensors), OWNERS
"""
#: What ranks but the first leave to it.
SILENT = """
        if RANKS.rank > 0:
            return"""


def report(
    *,
    finishing: bool,
    solve: str = "solve",
    mapped: bool = False,
    ranks: bool = False,
    device: str = "cpu",
    backend: str = "eager",
    run_class: str = "BlockRun",
    fetched: bool = False,
) -> str:
    """The section at the end of a program.

    solve    the name of the function to call if no work follows the loop
    mapped   whether some arrays stay in their file
    ranks    whether the program is one of several processes
    device   the device, unless the command line has another
    backend  the backend, unless the command line has another
    fetched  whether some rows are drawn from a source
    """
    text = REPORT.replace("{silent}", SILENT if ranks else "").replace(
        "{keeper}", "KeeperOfAll" if ranks else "FileKeeper"
    )
    text = text.replace("{run_class}", run_class)
    text = text.replace("{fetched}", "\n    tensors |= fetched_rows()" if fetched else "")
    text = text.replace("{shared}\n", f"{SHARED}\n" if ranks else "\n")
    if finishing:
        run, passes = ("solve_then_finish", ", way=WAY, passes=PASSES")
    else:
        run, passes = (solve, "")
    text = (
        text.replace("{run}", run)
        .replace("{passes}", passes)
        .replace("{start}", TOGETHER if ranks else ALONE)
    )
    text = text.replace("{backend}", "" if ranks else BACKEND).replace(
        "{equipped}", "" if ranks else EQUIPPED
    )
    text = text.replace("{device}", literal(device)).replace("{asked}", literal(backend))
    return text.replace("{mapped}", ", mapped=True" if mapped else "")
