"""Processes that are killed, and disks that are full, while a folder of results is written again:
``python tests/fuzz/kills.py``.

Whatever happens, the folder reads as one of the two answers that are written there in turn, whole.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import fccomodel
from fccomodel.app.python.session import Result
from fccomodel.app.stored import results
from fccomodel.core.diagnostics import FccoError

MODELS = (
    "dim d; data D : table(x: real[d], y: real); var w[d]; minimize E[z ~ D] (dot(w, z.x) - z.y)^2;",
    "dim d; data D : table(x: real[d], y: real); net s : real[d] -> real; var v = params(s); minimize "
    "E[z ~ D] s(v; z.x)^2;",
)
#: what the operating system is asked for while files are written and put in place, as Python's audit names it
OPERATIONS = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "open", "shutil.rmtree")
#: bytes of the largest file
LARGEST = 200_000


def answers(rows: int = 200) -> list[Result]:
    """Two results of different models: one has scores of a net, the other none."""
    rng = np.random.default_rng(0)
    data = {"D": {"x": rng.normal(size=(rows, 5)), "y": rng.normal(size=rows)}}
    models = [fccomodel.compile(text) for text in MODELS]
    nets: list[dict[str, str]] = [{}, {"s": "mlp(4)"}]
    return [
        m.bind(data=data, nets=n).solve(budget="3it", polish=False) for m, n in zip(models, nets, strict=True)
    ]


def read_as(folder: Path, written: list[Result]) -> int:
    """Which of the results a folder holds; an error where it is read as none of them, or as parts of
    several."""
    stored = fccomodel.load(folder)
    (k,) = (
        k for k, result in enumerate(written) if result.outcome.planned.compiled.hash == stored.compiled.hash
    )
    assert stored.record["objective"] == written[k].objective
    assert {n: v.tolist() for n, v in stored.variables.items()} == {
        n: v.tolist() for n, v in written[k].variables.items()
    }
    return k


def child(work: Callable[[], None]) -> int:
    """The process that does this, and then ends without what processes do at their end."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            work()
            status = 0
        except FccoError:
            status = 2
        finally:
            os._exit(status)
    return pid


def killed_at(operation: int) -> Callable[[str, tuple], None]:
    """An audit hook that kills its own process at the operation of this number."""
    count = 0

    def hook(event: str, _: tuple) -> None:
        nonlocal count
        if event in OPERATIONS:
            count += 1
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def kills_at_each_operation(folder: Path, written: list[Result]) -> Counter:
    """A folder is written again by processes that die at their first operation, at their second, ...
    until one lives."""
    written[0].save(folder)
    found: Counter = Counter()
    for operation in range(1, 1000):
        turn = operation % len(written)

        def work(operation: int = operation, turn: int = turn) -> None:
            sys.addaudithook(killed_at(operation))
            written[turn].save(folder)

        _, status = os.waitpid(child(work), 0)
        found[("killed" if os.WIFSIGNALED(status) else "lived", read_as(folder, written))] += 1
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return found
    raise AssertionError("it never ends")


def kills_at_random(folder: Path, written: list[Result], kills: int, seed: int = 0) -> Counter:
    """A folder is written over and over by processes that are killed at random moments."""
    rng, found = random.Random(seed), Counter()
    began = time.perf_counter()
    for result in written:
        result.save(folder)
    longest = 2 * (time.perf_counter() - began)

    def work() -> None:
        for k in range(10_000):
            written[k % len(written)].save(folder)

    for _ in range(kills):
        pid = child(work)
        time.sleep(rng.uniform(0, longest))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        found["killed", read_as(folder, written)] += 1
    return found


def full_disks(folder: Path, written: list[Result], disks: int, seed: int = 0) -> Counter:
    """A folder is written again where files end at random lengths, as on a full disk: an error, and
    the answer of before. The lengths are evenly spread, or their logarithms are, two and two."""
    rng = random.Random(seed)
    written[0].save(folder)
    found: Counter = Counter()
    for k in range(disks):
        limit = rng.randrange(LARGEST) if k % 4 > 1 else int(LARGEST ** rng.uniform(0, 1))
        before = read_as(folder, written)

        def work(limit: int = limit, turn: int = (k + 1) % len(written)) -> None:
            sys.dont_write_bytecode = True  # a module's file that ends early would stay
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            written[turn].save(folder)

        _, status = os.waitpid(child(work), 0)
        after = read_as(folder, written)
        assert os.WIFEXITED(status) and (
            after == before if os.WEXITSTATUS(status) == 2 else os.WEXITSTATUS(status) == 0
        )
        assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
        found["full" if os.WEXITSTATUS(status) else "enough", after] += 1
    return found


@contextmanager
def small_disk(size: int) -> Iterator[Path | None]:
    """A folder on a file system of so many bytes; None where none can be made."""
    with tempfile.TemporaryDirectory() as name:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", name], capture_output=True
        )
        mounted = made.returncode == 0
        try:
            yield Path(name) if mounted else None
        finally:
            if mounted:
                subprocess.run(["umount", name], check=True)


def small_disks(written: list[Result]) -> Counter:
    """The same on real file systems that are too small for both, by more and by less."""
    found: Counter = Counter()
    for size in range(96 << 10, 256 << 10, 8 << 10):
        with small_disk(size) as disk:
            if disk is None:
                return found
            try:
                written[0].save(disk / "out")
            except FccoError:
                found["full at once"] += 1
                continue
            try:
                written[1].save(disk / "out")
                found["enough"] += 1
                assert read_as(disk / "out", written) == 1
            except FccoError:
                found["full"] += 1
                assert read_as(disk / "out", written) == 0
    return found


def whole_commands(folder: Path, kills: int, seed: int = 0) -> Counter:
    """``fccomodel solve --out`` of two models in turn, killed at random moments; what was there
    before, or what is new."""
    rng, found = random.Random(seed), Counter()
    for k, text in enumerate(("minimize (x - 1)^2", "minimize (x - 2)^2")):
        (folder / f"{k}.fcco").write_text(f"var x;\n{text};\n")
    call = [
        sys.executable,
        "-m",
        "fccomodel",
        "solve",
        "--quiet",
        "--budget",
        "20it",
        "--out",
        str(folder / "out"),
    ]
    began = time.perf_counter()
    subprocess.run([*call, str(folder / "0.fcco")], check=True, capture_output=True)
    usual = time.perf_counter() - began
    for k in range(kills):
        process = subprocess.Popen(
            [*call, str(folder / f"{k % 2}.fcco")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0, 1.2 * usual))
        process.kill()
        process.wait()
        stored = fccomodel.load(folder / "out")
        answer = 1 if "x - 1" in stored.record["source"]["text"] else 2
        assert abs(float(stored.variables["x"]) - answer) < 0.5
        found["answer", answer] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--disks", type=int, default=100)
    parser.add_argument("--commands", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    written = answers()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("killed at each operation:", dict(kills_at_each_operation(folder / "a", written)), flush=True)
        print(
            "killed at random:",
            dict(kills_at_random(folder / "b", written, given.kills, given.seed)),
            flush=True,
        )
        print("full disks:", dict(full_disks(folder / "c", written, given.disks, given.seed)), flush=True)
        print("small file systems:", dict(small_disks(written)), flush=True)
        print("whole commands:", dict(whole_commands(folder, given.commands, given.seed)), flush=True)
    print(f"no folder misread ({results.RESULT} of another answer than its files: 0)")


if __name__ == "__main__":
    main()
