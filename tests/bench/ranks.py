"""Several ranks beside one process: equality, bytes per step, lost ranks, kills.

    python tests/bench/ranks.py equal | bytes | lost | kills [COUNT] | report | reshard        (figures: ranks.md)

``equal``: w after 200 steps in float64 on 2 and 3 gloo ranks beside the program of one process, by
algorithm, and the estimates.
``bytes``: what a step sends, as rows and blocks grow. ``lost``: one of three ranks is killed.
``kills``: one of two ranks is killed at random instants, the run goes on each time, and ends at the
bits of one that was not. ``report``: the numbers of reports and comparisons over ranks beside those
of one process. ``reshard``: two ranks' state gone on with by others.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import pkgutil
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fccomodel
from fccomodel.app.cli import main

HEAD = "dim d; set K; data D : table(x: real[d], y: {-1, 1}, g: K); var w[d]; "
LOSS = "log1pexp(-z.y * dot(w, z.x))"
PAIRS = "mean[p in D | p.y == 1] log(1 + E[q ~ D | q.y == -1] exp(0.3 * (dot(w, q.x) - dot(w, p.x))))"
TAIL = "cvar(tail = 0.5)[p in D | p.y == 1] (E[q ~ D | q.y == -1] sqhinge(1 + dot(w, q.x) - dot(w, p.x)))"
MODELS = {
    "pairs": f"minimize {PAIRS} + 0.01 * sumsq(w);",
    "tail": f"minimize {TAIL} + 0.01 * sumsq(w);",
    "fair": f"minimize E[z ~ D] {LOSS} + 0.01 * sumsq(w); subject to c[k in K]: E[z ~ D | z.g == k] "
    f"{LOSS} <= 0.66;",
    "variance": "minimize E[z ~ D] square(z.y - dot(w, z.x)) + variance[z ~ D] dot(w, z.x) + 0.01 * "
    "sumsq(w);",
}
CASES = [
    ("pairs", "sonex"), ("tail", "sonex"), ("fair", "sonex"), ("pairs", "alexr"), ("tail", "alexr2"), ("fair", "alexr2"),
    ("pairs", "msvr"), ("variance", "hscg"), ("fair", "hscg"), ("variance", "ascvrg"), ("pairs", "sox"), ("pairs", "soap"),
]  # fmt: skip
#: algorithms whose cases draw samples and no blocks
ALL_BLOCKS = ("hscg", "ascvrg")


def table(rows: int) -> dict:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=rows) > 0, 1, -1)
    return {"D": {"x": X, "y": y, "g": rng.integers(0, 5, rows)}}


def run(name: str, algorithm: str, ranks: bool, rows: int = 401, steps: int = 200):
    """The variables, the estimates, and what was shared."""
    from fccomodel import pipeline

    batches = {"inner_batch": 16} if algorithm in ALL_BLOCKS else {"outer_batch": 31, "inner_batch": 16}
    given = {"budget": f"{steps}it", "polish": False, "precision": "float64", **batches}
    planned = (
        fccomodel.compile(HEAD + MODELS[name])
        .bind(data=table(rows))
        .plan(ranks=ranks, algorithm=algorithm, unverified=True, **given)
    )
    _, program, solution = pipeline.run(planned)
    return solution.kept.variables, solution.kept.estimates, program.shares


def apart(one, other) -> float:
    return max((float(np.nanmax(np.abs(one[k] - other[k]), initial=0)) for k in one), default=0.0)


def member(rank: int, size: int, path: str) -> None:
    """One rank of several, for all cases; those but the first end with each run (``SystemExit``)."""
    import torch

    torch.set_num_threads(1)
    found = {}
    for k, case in enumerate(CASES):
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{path}.{k}", rank=rank, world_size=size
        )
        try:
            found[case] = run(*case, True)
        except SystemExit:
            pass
        torch.distributed.destroy_process_group()
    if rank == 0:
        Path(path).write_bytes(pickle.dumps({case: x[:2] for case, x in found.items()}))


def equal() -> None:
    from torch import multiprocessing

    alone = {case: run(*case, False) for case in CASES}
    shares = {case: run(*case, True, steps=1)[2].sentence for case in CASES}
    for size in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.start_processes(
                member, args=(size, f"{folder}/x"), nprocs=size, start_method="spawn"
            )
            found = pickle.loads(Path(f"{folder}/x").read_bytes())  # noqa: S301  our own
        for case in CASES:
            w, u = apart(alone[case][0], found[case][0]), apart(alone[case][1], found[case][1])
            what = shares[case].removeprefix("ranks share ")
            print(f"| {size} | {case[1]} | {case[0]} | {w:.1e} | {u:.1e} | {what} |", flush=True)
            assert w <= 1e-12, case


def bytes_per_step() -> None:
    """By the program's own count, of two runs that differ by 100 steps within one stage."""
    from torch import multiprocessing

    for rows in (1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.start_processes(
                counting, args=(rows, f"{folder}/x"), nprocs=2, start_method="spawn"
            )
            print(f"| {rows:,} | {Path(f'{folder}/x').read_text()} |", flush=True)


def counting(rank: int, rows: int, path: str) -> None:
    import types

    import torch

    from fccomodel import pipeline

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}.store", rank=rank, world_size=2)
    given = {
        "budget": "200it",
        "polish": False,
        "outer_batch": 32,
        "inner_batch": 16,
        "stage": 1000,
        "algorithm": "sonex",
    }
    planned = (
        fccomodel.compile(HEAD + MODELS["pairs"])
        .bind(data=table(rows))
        .plan(ranks=True, unverified=True, **given)
    )
    program, sent = pipeline.emit(planned), []
    for steps in (100, 200):
        module = types.ModuleType("solver")
        exec(compile(program.text, "solver.py", "exec", dont_inherit=True), module.__dict__)
        with module.no_grad():
            module.solve(module.SOLVER, dict(program.data), seconds=None, iterations=steps)
        sent.append(module.RANKS.sent)
    if rank == 0:
        Path(path).write_text(f"{(sent[1] - sent[0]) / 100:.1f}")


# --------------------------------------------------------------------------------------- whole runs
def files(folder: Path, count: int = 2_000) -> None:
    import pandas

    rows = table(count)["D"]
    pandas.DataFrame({**{f"x{k}": rows["x"][:, k] for k in range(4)}, "y": rows["y"], "g": rows["g"]}).to_csv(
        folder / "d.csv"
    )
    (folder / "m.fcco").write_text("model m; " + HEAD + MODELS["tail"])
    (folder / "m.toml").write_text('[D]\nsource = "d.csv"\nx = { columns = ["x0", "x1", "x2", "x3"] }\n')


def launch(folder: Path, ranks: int, *more: str, steps: int = 4000) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        str(ranks),
        "--standalone",
        "-m",
        "fccomodel",
    ]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, *solving(*more, steps=steps)], cwd=folder, **silent)


def solving(*more: str, steps: int) -> list[str]:
    options = [
        "--option",
        "outer_batch=32",
        "--option",
        "inner_batch=16",
        "--budget",
        f"{steps}it",
        "--no-polish",
        "-q",
    ]
    return ["solve", "m.fcco", "--bind", "m.toml", "--precision", "float64", *options, *more]


def members(launcher: subprocess.Popen) -> list[int]:
    said = subprocess.run(
        ["ps", "--ppid", str(launcher.pid), "-o", "pid="], capture_output=True, text=True
    ).stdout
    return [int(line) for line in said.split()]


def answer(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / name / "variables.npz")["w"]


def lost() -> None:
    with tempfile.TemporaryDirectory() as name:
        files(folder := Path(name))
        launcher = launch(folder, 3, "--checkpoint", "kept", "--every", "1s", steps=10_000_000)
        while not list((folder / "kept").glob("*/[0-9]*")):
            time.sleep(0.1)
        began = time.perf_counter()
        os.kill(members(launcher)[-1], signal.SIGKILL)
        launcher.wait(60)
        print(
            f"a rank of three killed: all ended {time.perf_counter() - began:.1f} s later, status "
            f"{launcher.returncode}"
        )


def forked(folder: Path, command: list[str], size: int = 2) -> list[int]:
    """Ranks as processes of this one, which has imported everything: their numbers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    made = []
    for rank in range(size):
        if (process := os.fork()) == 0:
            os.chdir(folder)
            if size > 1:
                os.environ |= {
                    "RANK": str(rank),
                    "WORLD_SIZE": str(size),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                }
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1), os.dup2(silent, 2)
            try:
                main(command)
            finally:
                os._exit(0)
        made.append(process)
    return made


def ended(processes: list[int], within: float) -> bool:
    """Waits so long at most for all of them to end; whether they have."""
    until = time.perf_counter() + within
    while processes and time.perf_counter() < until:
        processes[:] = [one for one in processes if os.waitpid(one, os.WNOHANG)[0] == 0]
        time.sleep(0.01)
    return not processes


def warm() -> None:
    """Everything imported, which forked processes have then."""
    for module in pkgutil.walk_packages(fccomodel.__path__, "fccomodel."):
        if module.name != "fccomodel.__main__":
            importlib.import_module(module.name)


def kills(count: int, steps: int = 2000) -> None:
    """One of two ranks is killed at instants spread evenly over a run; what is begun again goes on,
    run after run."""
    warm()
    with tempfile.TemporaryDirectory() as name:
        files(folder := Path(name))
        began = time.perf_counter()
        assert ended(forked(folder, solving("--out", "whole", steps=steps)), 600)
        seconds, known, random_numbers = (
            time.perf_counter() - began,
            answer(folder, "whole"),
            random.Random(1),
        )
        met, runs, resumed, longest = 0, 0, [], 0.0
        while met < count:
            runs += 1
            kept = ("--checkpoint", f"kept{runs}", "--every", "100ms", "--out", f"killed{runs}")
            while True:
                ranks = forked(folder, solving(*kept, steps=steps))
                if ended(ranks, random_numbers.uniform(0.1, 1) * seconds if met < count else 600):
                    break
                os.kill(lost := ranks.pop(met % 2 if len(ranks) > 1 else 0), signal.SIGKILL)
                killed, met = time.perf_counter(), met + 1
                os.waitpid(lost, 0)
                if not ended(ranks, 0.2):
                    os.kill(ranks[0], signal.SIGTERM)  # what torchrun does
                assert ended(ranks, 30), "the other rank stays"
                longest = max(longest, time.perf_counter() - killed)
                found = sorted((folder / f"kept{runs}").glob("*/[0-9]*/manifest.json"))
                resumed += [json.loads(found[-1].read_text())["step"]] if found else [0]
            assert (answer(folder, f"killed{runs}") == known).all(), "ANOTHER END"
            print(
                f"{met} kills, {runs} runs of {steps} steps, each with the same bits at its end", flush=True
            )
        print(
            f"the runs went on from steps {sorted(resumed)}; the other rank ended at most {longest:.1f} s "
            "later"
        )


def report() -> None:
    """Of 4,000 rows; the largest difference, relative where numbers are above 1, and where it is."""
    warm()
    with tempfile.TemporaryDirectory() as name:
        files(folder := Path(name), 4_000)
        several = [
            "compare",
            *solving(steps=60)[1:],
            "--algorithms",
            "sonex,alexr2",
            "--seeds",
            "2",
            "--jobs",
            "1",
        ]
        for size in (1, 2, 3):
            assert ended(forked(folder, [*solving(steps=60), "--out", f"solve{size}"], size), 600)
            assert ended(forked(folder, [*several, "--out", f"compare{size}"], size), 600)
        for what, file in (("solve", "result.json"), ("compare", "compare.json")):
            one, *others = (
                figures(json.loads((folder / f"{what}{size}" / file).read_text())) for size in (1, 2, 3)
            )
            for size, other in zip((2, 3), others, strict=True):
                off = {place: abs(other[place] - x) / max(abs(x), 1.0) for place, x in one.items()}
                place = max(off, key=lambda place: off[place])
                print(f"{what}, {size} ranks, {len(off)} numbers: {off[place]:.1e} ({place})", flush=True)


def reshard() -> None:
    """150 steps on two ranks, gone on with to step 300 on others: w and the estimates row by row
    beside two ranks all the way."""
    warm()
    kept = ("--checkpoint", "kept", "--every", "1000s")
    with tempfile.TemporaryDirectory() as name:
        files(folder := Path(name))
        assert ended(forked(folder, solving(*kept, steps=150)), 600)
        (folder / "kept").rename(folder / "half")
        found = {}
        for size in (2, 1, 3, 4):
            shutil.copytree(folder / "half", folder / "kept")
            assert ended(forked(folder, solving(*kept, steps=300), size), 600)
            (last,) = sorted((folder / "kept").glob("*/[0-9]*"))[-1:]
            assert json.loads((last / "manifest.json").read_text())["step"] == 300
            tensors = np.load(last / "tensors.npz")
            found[size] = {key: tensors[key] for key in tensors.files if key.endswith((".w", ".u1", ".u2"))}
            shutil.rmtree(folder / "kept")
        for size, state in found.items():
            print(
                size,
                {key: f"{apart({0: state[key]}, {0: x}):.1e}" for key, x in found[2].items()},
                flush=True,
            )


def figures(record, place: str = "") -> dict[str, float]:
    """All numbers of a record but seconds, by where they are."""
    if isinstance(record, dict | list):
        parts = record.items() if isinstance(record, dict) else enumerate(record)
        kept = [(key, part) for key, part in parts if not str(key).endswith(("seconds", "_s"))]
        return {k: v for key, part in kept for k, v in figures(part, f"{place}.{key}").items()}
    return {place: float(record)} if isinstance(record, int | float) and not isinstance(record, bool) else {}


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["equal"]
    modes = {"equal": equal, "bytes": bytes_per_step, "lost": lost, "report": report, "reshard": reshard}
    modes[what]() if what in modes else kills(int((rest or ["10"])[0]))
