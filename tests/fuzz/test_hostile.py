"""Whatever file is given, what comes out is an answer or a coded error, soon, in little memory, and
nothing else is written: ``FUZZ=500 pytest tests/fuzz/test_hostile.py`` for a longer look."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fuzz.hostile import Hostile, sound_files, tree

from fccomodel.core import memory
from fccomodel.core.diagnostics import FccoError

#: Cases of one run: some dozen in a usual one, at most so many in a long one, since each takes a
#: tenth of a second and more.
LONGEST_RUN = 5_000
CASES = min(int(os.environ.get("FUZZ", "60")), LONGEST_RUN)
#: Seconds of a case, and bytes of memory that all cases together may take beyond what the first took.
LONGEST_CASE = 60
LARGEST_GROWTH = 1_500_000_000
#: Bytes of memory that the machine is said to have.
MACHINE = 150_000_000


class Hangs(BaseException):
    """A case takes too long."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(action: Any) -> str:
    """``done``, the code of an error, or where an exception that is none of ours came from."""
    try:
        with limited(LONGEST_CASE):
            action()
    except FccoError as error:
        return str(error) and error.diagnostics[0].code
    except SystemExit as error:  # what an emitted program says
        return "F0810" if "error[F0810]" in str(error) else f"SystemExit at {error}"
    except Hangs as error:
        return f"hangs at {last(error)}"
    except Exception as error:
        return f"{type(error).__name__} at {last(error)}: {str(error)[:100]}"
    return "done"


def last(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "fccomodel" in f.filename]
    return ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound_files(tmp_path_factory.mktemp("hostile"))


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("start", range(0, CASES, 20))
def test_hostile_files(start: int, sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: MACHINE)
    found: Counter[str] = Counter()
    strange: list[str] = []
    around, before = tree(sound.parent), peak()
    for seed in range(start, min(start + 20, CASES)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        monkeypatch.chdir(folder)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name, action = Hostile(seed, folder, sound).case()
            said = outcome(action)
        found[said] += 1
        if " at " in said or said == "F0001":
            strange.append(f"{name}, seed {seed}: {said}")
        if tree(sound.parent) != around:
            strange.append(f"{name}, seed {seed}: wrote outside of its folder")
            around = tree(sound.parent)
        if (took := time.process_time() - began) > LONGEST_CASE / 2:
            strange.append(f"{name}, seed {seed}: took {took:.0f} s")
        shutil.rmtree(folder, ignore_errors=True)
    if (growth := peak() - before) > LARGEST_GROWTH:
        strange.append(f"seeds from {start}: {growth / 1e9:.1f} GB")
    assert not strange, "\n".join(strange)
