"""Whole programs on a GPU, as far as it shows without one: nothing is left on the host, and no step
waits for a number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import fake_device

pytestmark = pytest.mark.skipif(bool(fake_device.MISSING), reason=fake_device.MISSING)

PROGRAMS = ["net_and_more", "affine_set"]
#: lines of a step by which it waits
WAITS = [
    "float(w.sum())", "x_z + torch.zeros(1, 3)", "x_z[x_z > 0]", "data.D_y[torch.zeros(2, dtype=torch.long)]",
    "w.new_tensor([1.0])",
]  # fmt: skip


def tried(*cases: str) -> list[dict]:
    """Outcomes; the device belongs to a process of its own."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(Path(fake_device.__file__)), *cases], env=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_programs_run_and_what_waits_is_found() -> None:
    """All of a program, with its steps as they are captured; all programs that there are:
    ``tests/bench/fake_cuda.py``."""
    found = tried(*PROGRAMS, *(f"logistic|{line}" for line in WAITS))
    for one in found[: len(PROGRAMS)]:
        assert not any(one["said"].values()) and not one["uncaptured"], one
    assert all(one["said"]["step"] for one in found[len(PROGRAMS) :])
