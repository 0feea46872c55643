"""What memory a process may still take: of the machine, of its control groups, by its own limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fccomodel.core import memory

GB = 1_000_000_000


def test_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 2000000 kB\n")
    monkeypatch.setattr(memory, "MEMORY_OF_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUPS_OF_PROCESS", tmp_path / "none")
    assert memory.available() <= 2_000_000 * 1024
    assert memory.lacking(3 * GB) == memory.available() and memory.lacking(1000.0) is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_control_group(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a group around counts too; what it keeps of files it can give back."""
    root = tmp_path / "memory" if version == 1 else tmp_path
    inner = root / "outer" / "inner"
    inner.mkdir(parents=True)
    limit, used = memory.LIMITS_AND_USES[2 - version]
    (root / "outer" / limit).write_text(f"{GB}\n")
    (root / "outer" / used).write_text(f"{GB // 2}\n")
    (root / "outer" / "memory.stat").write_text(f"{memory.KEPT_OF_FILES[2 - version]} {GB // 10}\n")
    (inner / limit).write_text("max\n" if version == 2 else f"{1 << 62}\n")
    (inner / used).write_text("0\n")
    (tmp_path / "cgroup").write_text(
        "0::/outer/inner\n" if version == 2 else "4:cpu,memory:/outer/inner\n2:cpuset:/\n"
    )
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "GROUPS_OF_PROCESS", tmp_path / "cgroup")
    assert memory.available() == GB // 2 + GB // 10


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read where Linux says it")
def test_a_limit_of_the_process() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))\n"
        "from fccomodel.core import memory; print(memory.available())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 0 < int(said) < GB


@pytest.mark.parametrize(
    ("size", "words"), [(12.0, "12 bytes"), (1.25e9, "1.25 GB"), (3e6, "3 MB"), (4500.0, "4.5 kB")]
)
def test_words(size: float, words: str) -> None:
    assert memory.in_words(size) == words


def test_a_stage_takes_no_more_than_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array beyond what is available is an error with a code, and the limit is taken back."""
    resource = pytest.importorskip("resource")
    torch = pytest.importorskip("torch")
    from fccomodel import pipeline
    from fccomodel.core.diagnostics import FccoError
    from fccomodel.core.source import Source
    from fccomodel.pipeline.boundary import quoted

    problem = pipeline.compile_model(Source(text="var x in box(0, 1);\nminimize x;\n")).problem
    before = resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr(memory, "available", lambda: GB // 4)

    @quoted
    def stage(problem: object, size: int) -> int:
        """Take memory in a stage within another."""
        return quoted(lambda problem, size: len(torch.empty(size, dtype=torch.uint8)))(problem, size)

    assert stage(problem, GB // 16) == GB // 16
    with pytest.raises(FccoError, match=r"F0704[\s\S]*an array of 1 GB"):
        stage(problem, GB)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert len(torch.empty(GB, dtype=torch.uint8)) == GB
