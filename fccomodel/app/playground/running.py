"""Solves in a process of its own, which the page can stop.

The process gets a request on its standard input and writes lines of JSON: the progress, then the answer or an
error. It works in an empty folder that is removed afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.core.diagnostics import FccoError

if TYPE_CHECKING:
    from fccomodel.app.python.session import BoundModel

MOCK_ROWS = 200  # of each table, where data are drawn
LONGEST_SOLVE = 60  # seconds
#: Time beside its budget after which a solve is ended, in seconds.
GRACE = 60
#: Largest number of lines of progress that are kept.
MOST_LINES = 5000

Say = Callable[[Mapping[str, Any]], None]


class Job:
    """A solve in a process of its own.

    request   ``text``, ``example`` (a name, or "" for data drawn at random) and ``seconds``
    """

    def __init__(self, request: Mapping[str, Any]):
        self._folder = tempfile.TemporaryDirectory(prefix="fccomodel-playground-")
        self._lines: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "fccomodel.app.playground.running"]
        self._process = subprocess.Popen(
            command,
            cwd=self._folder.name,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request))
        self._process.stdin.close()
        self._timer = threading.Timer(float(request["seconds"]) + GRACE, self.stop)
        self._timer.daemon = True
        self._timer.start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Collect the lines until the process ends, then remove its folder."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):  # the process was ended while it wrote
                continue
            if len(self._lines) < MOST_LINES or '"progress"' not in line:
                self._lines.append(json.loads(line))
        status = self._process.wait()
        if not any("progress" not in line for line in self._lines):
            self._lines.append({"error": f"The solve was ended (exit status {status})."})
        self._timer.cancel()
        self._process.stdout.close()
        self._folder.cleanup()

    @property
    def running(self) -> bool:
        """Whether more lines may come."""
        return self._reader.is_alive()

    def since(self, count: int) -> list[dict[str, Any]]:
        """The lines after the first ``count``."""
        return self._lines[count:]

    def stop(self) -> None:
        """End the process."""
        self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; whether it came."""
        self._reader.join(seconds)
        return not self._reader.is_alive()


def bound(text: str, example: str) -> BoundModel:
    """The model with the data of an example, or with data drawn at random if ``example`` is empty."""
    from fccomodel.app.generated import mocking, templates
    from fccomodel.app.playground import answers
    from fccomodel.app.python.session import BoundModel, CompiledModel

    model = answers.compiled(text)
    if not example:
        binding, data, _ = mocking.drawn(model, rows=MOCK_ROWS, seed=0)
        return BoundModel(compiled=model, binding=binding, bound=data)
    paths = templates.write(answers.template_of(example), Path())
    spec = next(path for path in paths if path.suffix == ".toml")
    return CompiledModel(compiled=model).bind(spec=spec)


def solve(request: Mapping[str, Any], say: Say) -> None:
    """Solve, and say progress and answer."""
    from fccomodel.app.playground import answers

    def progress(now: Any) -> None:
        """Say the objective and the violation of the best point so far."""
        say({"progress": {"objective": now.objective, "violation": now.violation, "kkt": now.kkt}})

    try:
        problem = bound(str(request["text"]), str(request["example"]))
        budget = f"{min(float(request['seconds']), LONGEST_SOLVE):g}s"
        result = problem.solve(seed=0, budget=budget, progress=progress)
        say({"answer": answers.solved(result)})
    except FccoError as error:
        say({"error": str(error)})


def main() -> int:
    """Solve the request on standard input."""

    def say(line: Mapping[str, Any]) -> None:
        """Write a line of JSON; what is not finite is null."""
        out.write(json.dumps(_plain(line)) + "\n")
        out.flush()

    request = json.loads(sys.stdin.read())
    # What libraries print goes nowhere: only lines of JSON reach the page.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    solve(request, say)
    return 0


def _plain(value: Any) -> Any:
    """The value with None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


if __name__ == "__main__":
    sys.exit(main())
