"""The scripts of the page about tools, as they stand: each ranks, and keeps its bound."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

PAGE = ROOT / "tutorials" / "guide" / "training_tools.md"
#: by heading: the package that the script needs, and what runs it
SECTIONS = {
    "Several processes: DistributedDataParallel": (
        "torch",
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
    ),
    "Lightning": ("lightning", []),
    "Accelerate": ("accelerate", []),
    "Hugging Face Trainer": ("transformers", []),
}


def scripts() -> dict[str, str]:
    """The first script below each heading."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    found = {}
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        if match := re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            found[heading] = match[1]
    return found


def test_every_script_is_run() -> None:
    assert scripts().keys() == SECTIONS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("heading", SECTIONS)
def test_a_script_runs(heading: str, tmp_path: Path) -> None:
    package, run = SECTIONS[heading]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: the extra `trainers`")
    (tmp_path / "train.py").write_text(scripts()[heading])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *run, "train.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    auc, violation = re.findall(r"on all rows: auc ([\d.]+), violation ([\d.]+)", done.stdout)[0]
    assert float(auc) > 0.9
    assert float(violation) < 0.03
