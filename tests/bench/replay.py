"""Refactorings promise unchanged output: what every model gives is recorded before and after one, and
compared to the bit.

    python tests/bench/replay.py record FOLDER [--package PATH] [--only WORD]
    python tests/bench/replay.py compare FOLDER_A FOLDER_B [--only WORD] [--text-may-differ]
    python tests/bench/replay.py times PATH_A PATH_B [--rounds 7]

record    models of the examples and the tests (``replay_models.py``) are run under counted budgets,
          with the package of the
          checkout PATH: a folder per run with what was printed, explained, emitted, found and
          reported; some four minutes
compare   says per run what differs; exit status 1 if anything does (``--text-may-differ``: anything
          but texts)
times     of a step, of planning and of a whole solve, on three examples, the two packages in turns:
          medians and their ratios

Only what users see of the package is asked: ``compile``, ``bind``, ``explain``, ``solve``,
commands. Its modules may move. Decisions by time would not repeat: while recording, each look at
the clock is a millisecond after the one before it, and what is measured in seconds is left out. One
process and one thread; the user's configuration is not read.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import os
import pickle
import re
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from replay_compare import MARK, compare
from replay_models import BRIEF, ROOT, SHARED, Model, Options, gathered

# ----------------------------------------------------------------------------------------- recorded
TIMES = {"wall_s", "seconds", "took", "versions", "source"}
SECONDS = re.compile(r"\b\d[\d.,]*(e[+-]\d+)? (ms|s|seconds|minutes)\b")


def placeless(text: str) -> str:
    """Without the place of this checkout."""
    return text.replace(str(ROOT), "ROOT").replace(str(SHARED.resolve()), "SHARED")


def plain(text: str) -> str:
    """Without seconds too, nor the spaces that lines are filled up with beside them."""
    lines = SECONDS.sub("# s", placeless(text)).split("\n")
    return "\n".join(re.sub(" {2,}", "  ", line) if "# s" in line else line for line in lines)


def timeless(value: Any) -> Any:
    """A JSON value without what is measured in seconds."""
    if isinstance(value, dict):
        return {key: timeless(entry) for key, entry in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [timeless(entry) for entry in value]
    return plain(value) if isinstance(value, str) else value


def as_json(value: Any) -> str:
    return json.dumps(timeless(value), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def exact(value: Any) -> Any:
    """Floats in hexadecimal, at any depth."""
    if isinstance(value, dict):
        return {key: exact(entry) for key, entry in value.items()}
    return float(value).hex() if isinstance(value, float) else value


def digest(value: Any) -> Any:
    """A value's parts, arrays and tensors by their type, shape and the hash of their bytes."""
    if isinstance(value, dict):
        return {str(key): digest(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [digest(entry) for entry in value]
    if hasattr(value, "state_dict"):
        return [str(value), digest(dict(value.state_dict()))]
    if hasattr(value, "detach"):
        value = value.detach().numpy() if not value.is_sparse else value.to_dense().numpy()
    if isinstance(value, np.ndarray):
        content = (
            value.tolist().__repr__().encode()
            if value.dtype == object
            else np.ascontiguousarray(value).tobytes()
        )
        return f"{value.dtype} {value.shape} {hashlib.sha256(content).hexdigest()[:16]}"
    return plain(repr(value))


def values(result: Any, record: dict[str, Any]) -> dict[str, Any]:
    """The answer to the bit: variables, objective, constraints and multipliers."""
    variables = {
        name: {"is": digest(value), "values": [float(v).hex() for v in np.ravel(value)]}
        for name, value in result.variables.items()
    }
    own = record["kkt"].get("own")
    return {
        "objective": float(result.objective).hex(),
        "constraints": exact(record["constraints"]),
        "own": exact(own),
        "iterations": record["iterations"],
        "variables": variables,
    }


class Recorder:
    """Writes the parts of a run to its folder; an error is a part. ``spent``: seconds of the processor
    by run."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.spent: dict[str, float] = {}
        self.errors = 0

    def __call__(self, name: str, make: Callable[[], Iterable[tuple[str, str]]]) -> bool:
        """Whether all went well; ``make`` gives file names with their texts."""
        place, began = self.folder / name.replace(" ", "_"), time.process_time()
        place.mkdir(parents=True)
        try:
            for file, text in make():
                (place / file).write_text(text)
        except Exception as error:  # whatever it is, it must stay
            known = type(error).__name__ == "FccoError"
            text = str(error) if known else "".join(traceback.format_exception_only(error))
            (place / "error.txt").write_text(plain(text) + "\n")
            self.errors += 1
        self.spent[name] = time.process_time() - began
        return not (place / "error.txt").exists()

    def __str__(self) -> str:
        shares = Counter[str]()
        for name, seconds in self.spent.items():
            shares[name.partition("/")[0]] += seconds
        told = ", ".join(f"{name} {seconds:.0f}" for name, seconds in shares.most_common())
        slow = sorted(self.spent, key=lambda name: -self.spent[name])[:5]
        return (
            f"{len(self.spent)} runs, {self.errors} of them errors, in {sum(shares.values()):.0f} s of "
            f"the processor ({told})\n"
            f"slowest: {', '.join(f'{name} {self.spent[name]:.1f}' for name in slow)}"
        )


def model_parts(model: Model, compiled: Any) -> Iterator[tuple[str, str]]:
    """What the text alone says."""
    yield (
        "warnings.txt",
        plain("".join(f"{w.code}: {w.message}\n" for w in compiled.warnings) + f"hash {compiled.hash}\n"),
    )
    found = compiled.explain()
    yield "explain.txt", placeless(str(found))
    yield "explain.json", as_json(found.json)


def bound_parts(made: dict[str, Any], given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is said of a model with its data."""
    bound = made["bound"] = made["compiled"].bind(**given)
    yield "bound.txt", plain(repr(bound))
    found = made["explained"] = bound.explain(unverified=True)
    yield "explain.txt", placeless(str(found))
    yield "explain.json", as_json(found.json)


def why_parts(found: Any) -> Iterator[tuple[str, str]]:
    """The rules behind the objective and the first constraints."""
    subjects = ["objective", *found.json["constraints"]]
    yield "why.txt", placeless("\n\n".join(found.why(subject) for subject in subjects[:4]))


def run_parts(bound: Any, options: Options) -> Iterator[tuple[str, str]]:
    """What is emitted, found and reported."""
    result = bound.solve(**options)
    yield "program.py", placeless(result.solver)
    record = result.json
    yield "values.json", as_json(values(result, record))
    yield "report.json", as_json(record)
    yield "report.txt", plain(str(result))
    if options["budget"] == BRIEF["budget"]:
        return
    with tempfile.TemporaryDirectory() as folder:
        import torch

        data = torch.load(result.save(folder) / "data.pt", weights_only=True)
        yield "data.json", as_json(digest(data))


def command(*arguments: object) -> str:
    """What ``python -m fccomodel`` prints, and its exit status."""
    out, kept = io.StringIO(), sys.argv
    sys.argv = ["fccomodel", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            runpy.run_module("fccomodel", run_name="__main__")
        status: object = 0
    except SystemExit as end:
        status = end.code or 0
    finally:
        sys.argv = kept
    return plain(f"{out.getvalue()}\nexit status {status}\n")


def command_parts(model: Model) -> Iterator[tuple[str, str]]:
    assert isinstance(model.source, Path) and model.given is not None
    path, bind = model.source.relative_to(ROOT), ("--bind", model.given["spec"].relative_to(ROOT))
    budget = ("--budget", "100it", "--no-polish")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        lines: dict[str, tuple[object, ...]] = {
            "check": (path,), "format": (path,), "explain": (path, *bind, "--all"), "algorithms": (),
            "emit": (path, *bind, "-o", out / "solver.py", "-q"),
            "solve": (path, *bind, *budget, "--out", out / "found"),
            "evaluate": (out / "found", "--json"),
        }  # fmt: skip
        for name, arguments in lines.items():
            yield f"{name}.txt", command(name, *arguments).replace(folder, "OUT")
        yield "program.py", placeless((out / "solver.py").read_text())


def record_model(model: Model, record: Recorder) -> None:
    import fccomodel

    text = model.source.read_text() if isinstance(model.source, Path) else model.source
    made: dict[str, Any] = {}

    def compiled() -> Iterator[tuple[str, str]]:
        yield "inputs.json", as_json([text, digest(model.given)])
        made["compiled"] = fccomodel.compile(model.source)
        yield from model_parts(model, made["compiled"])

    record(f"{model.name}/text", compiled)
    if "compiled" not in made or model.given is None:
        return
    given = model.given
    if not record(f"{model.name}/bound", lambda: bound_parts(made, given)):
        return
    record(f"{model.name}/why", lambda: why_parts(made["explained"]))
    runs = dict(model.runs)
    if model.every is not None:
        found = made["explained"].json
        runs |= {
            f"by {name}": {**model.every, "algorithm": name}
            for name in sorted({found["algorithm"], *found["rejected"]})
        }
    for name, options in runs.items():
        record(f"{model.name}/{name}", lambda options=options: run_parts(made["bound"], options))
    if model.commands:
        record(f"{model.name}/commands", lambda: command_parts(model))


def record_all(folder: Path, package: Path) -> None:
    """In a process of its own: every model with the package that it imports."""
    ticks = itertools.count()
    time.perf_counter = lambda: next(ticks) * 1e-3
    warnings.simplefilter("ignore")
    import torch

    import fccomodel

    assert Path(fccomodel.__file__).resolve().is_relative_to(package), (
        f"{fccomodel.__file__} is not of {package}"
    )
    torch.set_num_threads(1)
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "tests")]
    models: list[Model] = pickle.load(sys.stdin.buffer)
    record = Recorder(folder)
    for model in models:
        record_model(model, record)
    print(f"{len(models)} models, {record}")


def child(package: Path, *arguments: object, **given: Any) -> subprocess.Popen:
    """This file in a process that imports the package of a checkout, on one thread, without the user's
    configuration."""
    if not (package / "fccomodel" / "__init__.py").is_file():
        raise SystemExit(f"{package} has no package fccomodel")
    own = {
        "PYTHONPATH": str(package),
        "OMP_NUM_THREADS": "1",
        "XDG_CONFIG_HOME": os.devnull,
        "PYTHONHASHSEED": "0",
    }
    own |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
    line = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(line, env={**os.environ, **own}, stdin=subprocess.PIPE, **given)


def record(folder: Path, package: Path, only: str) -> int:
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise SystemExit(f"{folder} is not empty, and no record")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("Made by tests/bench/replay.py record.\n")
    models = pickle.dumps(list(gathered(only)))
    process = child(package, "_record", folder, package)
    process.communicate(models)
    return process.returncode


# -------------------------------------------------------------------------------------------- timed
#: examples, and between how many steps the time of one is measured
TIMED = {"neyman_pearson": (500, 6500), "auc_net": (200, 1400), "group_dro": (500, 4500)}


def seconds(make: Callable[[], Any]) -> tuple[float, Any]:
    """Of the processor, which other processes disturb less than the wall's; and what was made."""
    began = time.process_time()
    made = make()
    return time.process_time() - began, made


def timed(name: str) -> dict[str, float]:
    """Seconds of a step (of the difference of two runs), of planning and emitting, and of a whole
    solve with its finish."""
    import fccomodel

    folder = ROOT / "examples"

    def bound() -> Any:
        return fccomodel.compile(folder / f"{name}.fcco").bind(spec=folder / f"{name}.toml")

    planning, _ = seconds(lambda: bound().emit())
    whole, _ = seconds(lambda: bound().solve(seed=0, device="cpu", budget="1000it"))
    made = bound()

    def run(steps: int) -> float:
        spent, result = seconds(lambda: made.solve(seed=0, device="cpu", budget=f"{steps}it", polish=False))
        assert result.json["iterations"] == steps, f"{name} ended by itself"
        return spent

    few, many = TIMED[name]
    return {"step": (run(many) - run(few)) / (many - few), "plan": planning, "solve": whole}


def timing() -> None:
    """In a process of its own: the times of each model whose name comes in."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(timed(line.strip())), flush=True)


def times(a: Path, b: Path, rounds: int) -> int:
    sides = [child(path, "_times", text=True, stdout=subprocess.PIPE, bufsize=1) for path in (a, b)]

    def ask(side: subprocess.Popen, name: str) -> dict[str, float]:
        side.stdin.write(f"{name}\n")  # type: ignore[union-attr]
        return json.loads(side.stdout.readline())  # type: ignore[union-attr]

    print(f"{'':16}{'':7}{'A':>12}{'B':>12}{'B/A':>8}   ratios of turns")
    for name in TIMED:
        for side in sides:
            ask(side, name)  # warm
        found = [[ask(side, name) for side in (sides if k % 2 == 0 else sides[::-1])] for k in range(rounds)]
        turns = [turn if k % 2 == 0 else turn[::-1] for k, turn in enumerate(found)]
        for what in ("step", "plan", "solve"):
            first, second = (statistics.median(turn[side][what] for turn in turns) for side in (0, 1))
            ratios = sorted(turn[1][what] / turn[0][what] for turn in turns)
            shown = f"{first * 1e3:9.3f} ms{second * 1e3:9.3f} ms{statistics.median(ratios):8.3f}"
            print(f"{name:16}{what:7}{shown}   {ratios[0]:.3f} .. {ratios[-1]:.3f}")
    for side in sides:
        side.communicate()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record")
    one.add_argument("folder", type=Path)
    one.add_argument("--package", type=Path, default=ROOT, help="the checkout whose fccomodel is used")
    two = commands.add_parser("compare")
    two.add_argument("a", type=Path)
    two.add_argument("b", type=Path)
    two.add_argument(
        "--text-may-differ", action="store_true", help="values, reports and data alone decide the exit status"
    )
    for command in (one, two):
        command.add_argument("--only", default="", help="runs whose name has this in it")
    three = commands.add_parser("times")
    three.add_argument("a", type=Path)
    three.add_argument("b", type=Path)
    three.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    if given.command == "record":
        return record(given.folder.resolve(), given.package.resolve(), given.only)
    if given.command == "compare":
        return compare(given.a, given.b, given.only, given.text_may_differ)
    return times(given.a.resolve(), given.b.resolve(), given.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["_record"]:
        record_all(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:2] == ["_times"]:
        timing()
    else:
        raise SystemExit(main())
