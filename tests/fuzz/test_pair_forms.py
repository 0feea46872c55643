"""Random forms over pairs and triples of rows: values as by brute force, budgets and memory kept.

``FUZZ=100000 pytest tests/fuzz/test_pair_forms.py`` solves 200 of them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fuzz.pair_forms import WIDTH, Case, Form, Forms, case, tables

import fccomodel
from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.interpret import evaluate
from fccomodel.execution.run.loading import loaded
from fccomodel.program.emit import printer
from fccomodel.program.lower.binders import runs, segments
from fccomodel.program.lower.reductions import reductions, sizes

FUZZ = int(os.environ.get("FUZZ", "1000"))
#: Forms whose values are compared, and those that are solved as commands.
VALUES = max(FUZZ // 50, 1)
SOLVED = max(FUZZ // 500, 1)
#: A budget, and what a command may take of the processor with it.
BUDGET_S = 3.0
MOST_S = 1.3 * BUDGET_S + 5.0
#: Rows of the tables of those that are solved, where these are few.
FEW_ROWS = 1500
#: Address space that a command has, and the memory that it may take of it.
SPACE = 8_000_000_000
MOST_BYTES = 1_500_000_000
#: Seconds of the clock after which a command is ended: a busy machine is no fault of it.
PATIENCE_S = 240.0
#: What a constraint's right side is moved by, so that it holds anywhere.
FAR = 1e6


def bound_of(form: Form, data: dict[str, Any]) -> Any:
    return fccomodel.compile(form.model(FAR)).bind(data=data)


def made(seed: int) -> tuple[Form, dict[str, Any], np.ndarray, np.ndarray]:
    """A form, few rows, a point, and the form's value there by all pairs."""
    form = Forms(seed).form()
    data = (
        tables(20, 4, seed, huge=seed % 3 == 0) if form.triples else tables(40, 5, seed, huge=seed % 3 == 0)
    )
    w = 0.7 * np.random.default_rng(seed).normal(size=WIDTH)
    return form, data, w, form.value(w, data)


def compared(found: np.ndarray, wanted: np.ndarray, form: Form) -> None:
    assert np.allclose(found, wanted, rtol=1e-8, atol=1e-8), form.text


@pytest.mark.parametrize("seed", range(VALUES))
def test_values(seed: int) -> None:
    """The interpreter's, all at once and in blocks; without a value where a group is empty."""
    form, data, w, wanted = made(seed)
    bound = bound_of(form, data).bound
    problem, env = bound.problem, {}
    expr = problem.objective.expr
    if form.place == "objective":
        wanted = wanted + 0.01 * (w**2).sum()
    else:
        (constraint,) = problem.constraints
        expr, wanted = constraint.body, wanted - FAR
        env = {b: np.arange(len(np.unique(data["D"]["g"]))) for b in constraint.binders}
    for chunk in (1 << 21, 50):
        if not np.isfinite(wanted).all():
            with pytest.raises(FccoError, match="F0705"):
                evaluate(bound, expr, {"w": torch.tensor(w)}, env, chunk=chunk)
            continue
        compared(
            evaluate(bound, expr, {"w": torch.tensor(w)}, env, chunk=chunk).numpy().reshape(-1), wanted, form
        )


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("seed", range(VALUES))
def test_full_passes(seed: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of programs: dense, flat, by runs, in slices (``few``: as of large tables)."""
    if few:
        for module, name, value in (
            (reductions, "DENSE", 60), (runs, "AT_ONCE", 60), (segments, "AT_ONCE", 60), (sizes, "AT_ONCE", 60),
            (runs, "LEAST_GAIN", 1), (sizes, "LEAST_GAIN_OF_FLAT", 1), (printer, "SLICE", 200),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, value)
    form, data, w, wanted = made(seed)
    try:
        program = pipeline.emit(bound_of(form, data).plan())
    except FccoError as error:
        code = error.diagnostics[0].code
        assert code in ("F0605", "F0608") or code == "F0705" and not np.isfinite(wanted).all(), (
            f"{code}: {form.text}"
        )
        return
    module = loaded(program)
    full = module.SOLVER.prepare_full(module.SOLVER.as_namespace(dict(program.data), "cpu", torch.float64))
    x = torch.zeros(max(stop for _, stop, _ in program.layout.values()), dtype=torch.float64)
    start, stop, _ = program.layout["w"]
    x[start:stop] = torch.tensor(w)
    centres = module.SOLVER.centres("cpu", torch.float64)
    for name, (index, t, slope, _) in module.SOLVER.blocks(full, x).items():
        centre = getattr(centres, name)[index or (...,)]
        assert slope(t, centre, module.Settings()).shape == centre.shape, form.text
    objective, constraints = module.SOLVER.evaluate(full, x)
    if form.place == "objective":
        compared(np.array([float(objective) - 0.01 * (w**2).sum()]), wanted, form)
    else:
        compared(constraints["c"][1].reshape(-1).numpy(), wanted - FAR, form)


def command(made: Case, folder: Path) -> list[str]:
    """The files of a model with its data, and the command that solves it."""
    (folder / "m.fcco").write_text(made.text)
    lines = []
    for name, columns in made.data.items():
        np.savez(folder / f"{name}.npz", **columns)
        lines += [f"[{name}]", f'source = "{name}.npz"']
    (folder / "m.toml").write_text("\n".join(lines) + "\n")
    files = [str(folder / "m.fcco"), "--bind", str(folder / "m.toml")]
    return [sys.executable, "-m", "fccomodel", "solve", *files, "--quiet", "--budget", f"{BUDGET_S:g}s"]


def peak_of(pid: int) -> int:
    """The most bytes that a process has held so far; 0 once it has ended. (``ru_maxrss`` counts what
    its parent held, too.)"""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="memory and processor seconds of a child are measured on Linux"
)
@pytest.mark.parametrize("seed", range(SOLVED))
def test_budgets_and_memory_are_kept(seed: int, tmp_path: Path) -> None:
    """Of a command: it ends with an answer, or a coded error, within its seconds of the processor and
    its memory."""
    made = case(seed, 12000 if SOLVED > 10 else FEW_ROWS)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (tmp_path / "said").open("wb") as said:
        child = subprocess.Popen(
            command(made, tmp_path), stdout=said, stderr=subprocess.STDOUT, env=env, preexec_fn=limited
        )
        began, pid, peak = time.monotonic(), 0, 0
        while not pid:
            if time.monotonic() - began > PATIENCE_S:
                child.kill()
            time.sleep(0.05)
            peak = max(peak, peak_of(child.pid))
            pid, status, used = os.wait4(child.pid, os.WNOHANG)
    child.returncode = os.waitstatus_to_exitcode(status)
    text = (tmp_path / "said").read_text(errors="replace")
    seconds = used.ru_utime + used.ru_stime
    what = f"seed {seed}, {made.size}: {seconds:.1f} s, {peak / 1e9:.2f} GB\n{made.text}\n{text[-600:]}"
    assert seconds <= MOST_S and peak <= MOST_BYTES, what
    assert child.returncode in (0, 2) and "F0001" not in text, what
