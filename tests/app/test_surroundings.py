"""Full disks, closed outputs, read-only folders, no home, other locales, odd paths and odd ends of
lines: as if nothing were."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fccomodel
from fccomodel.app import cli
from fccomodel.core import options

MODEL = "data D : table(y: real);\nvar x;\nminimize E[z ~ D] (x - z.y)^2; # größer\n"
CALL = [sys.executable, "-m", "fccomodel"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    Path("m.fcco").write_text(MODEL, encoding="utf-8")
    Path("d.csv").write_text("y\n1\n2\n3\n")


def process(*args: str, **settings: str | None) -> subprocess.CompletedProcess[str]:
    environment = {
        k: v for k, v in {**os.environ, "OMP_NUM_THREADS": "1", **settings}.items() if v is not None
    }
    return subprocess.run([*CALL, *args], env=environment, capture_output=True, text=True, errors="replace")


# ------------------------------------------------------------------------------ where it is written
def test_closed_output() -> None:
    """``fccomodel atoms | head -1``: no traceback, and the status of a command that did its work."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*CALL, "atoms"], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize(
    "command", [["atoms"], ["check", "m.fcco"], ["format", "m.fcco"], ["explain", "m.fcco", "--json"]]
)
def test_full_output(command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*CALL, *command], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (
        done.returncode == 2
        and "F0806" in done.stderr
        and "Traceback" not in done.stderr
        and "F0001" not in done.stderr
    )


@pytest.mark.parametrize("place", ["taken", "taken/out", "/proc/nothing", "\0", "x" * 300])
@pytest.mark.parametrize(
    "command", ["solve m.fcco --data D=d.csv --budget 5it --out", "emit m.fcco --data D=d.csv -o"]
)
def test_places_that_take_no_files(command: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("")
    where = f"{place}/solver.py" if command.startswith("emit") else place
    assert cli.main([*command.split(), where]) == 2
    out, err = capsys.readouterr()
    assert "error[F0806]" in err and "Traceback" not in err and out == ""


# ------------------------------------------------------------------------------------- what is read
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_and_ends_of_lines(end: str, mark: str) -> None:
    """A model, what it includes, a binding file and a table as other systems write them."""
    files = {
        "m.fcco": 'include "h.fcco";\nvar x; # c\nminimize E[z ~ D] (x - z.y)^2;\n', "h.fcco": "data D : table(y: real);\n",
        "b.toml": "[D]\nsource = 'd.csv'\ny = { column = 'y' }\n", "d.csv": "y\n1\n2\n3\n",
    }  # fmt: skip
    for name, text in files.items():
        if not (name == "b.toml" and end == "\r"):  # TOML knows no such end of a line
            Path(name).write_bytes((mark + text.replace("\n", end)).encode())
        else:
            Path(name).write_text(text)
    bound = fccomodel.compile(Path("m.fcco")).bind(spec="b.toml")
    assert bound.bound.tables["D"].columns["y"].tolist() == [1, 2, 3]
    assert cli.main(["format", "--write", "m.fcco"]) == 0 and b"\r" not in Path("m.fcco").read_bytes()


@pytest.mark.parametrize(
    "name", ["a b;'q'", "-x {n} %s ä\u0301 汉", "a\nb\x1b[31m", os.fsdecode(b"\xff\xe9")]
)
def test_odd_paths(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the folder that a model, its table and its results are in."""
    folder = Path.cwd() / name
    folder.mkdir()
    (folder / "m.fcco").write_text(MODEL)
    (folder / "d.csv").write_text("y\n1\n2\n3\n")
    out = folder / "out"
    given = [str(folder / "m.fcco"), "--data", f"D={folder / 'd.csv'}", "--budget", "20it", "--out", str(out)]
    assert cli.main(["solve", *given]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "verdict" in shown
    assert np.isfinite(fccomodel.load(out).record["objective"])
    assert cli.main(["evaluate", str(out)]) == 0, capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", [str(out / "solver.py"), "--iterations", "2"])
        runpy.run_path(str(out / "solver.py"), run_name="__main__")
    assert "objective" in capsys.readouterr().out


def test_pipes_and_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What may have no end, or wait for ever, is neither included nor a result; a device named as a
    model is read in part."""
    os.mkfifo("pipe.fcco")
    for name in ("pipe.fcco", "/dev/zero", "/dev/stdin", "/dev/tty", "."):
        Path("a.fcco").write_text(f'include "{name}";\nvar x;\nminimize x^2;\n')
        assert cli.main(["check", "a.fcco"]) == 2
        assert "error[F0213]" in capsys.readouterr().err
    assert cli.main(["check", "/dev/zero"]) == 2 and "error[F0803]" in capsys.readouterr().err
    Path("out").mkdir()
    os.mkfifo("out/result.json")
    assert cli.main(["evaluate", "out"]) == 2 and "error[F0802]" in capsys.readouterr().err
    os.mkfifo("pipe.csv")
    assert (
        cli.main(["explain", "m.fcco", "--data", "D=pipe.csv"]) == 2
        and "error[F0505]" in capsys.readouterr().err
    )


# ---------------------------------------------------------------------------- where a process lives
def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert options.configuration() == {}
    assert cli.main(["check", "m.fcco"]) == 0


@pytest.mark.parametrize("locale", ["C", "POSIX", "de_DE.ISO-8859-1", "tr_TR.UTF-8"])
def test_other_locales(locale: str) -> None:
    """Texts are read as UTF-8 and numbers written with a point, wherever a process runs."""
    done = process("format", "m.fcco", LC_ALL=locale, LANG=locale, PYTHONUTF8="0", PYTHONIOENCODING=None)
    assert (
        done.returncode == 0
        and "minimize E[z ~ D] (x - z.y)^2;" in done.stdout
        and "Traceback" not in done.stderr
    )
    done = process("check", "nothing.fcco", LC_ALL=locale, LANG=locale, PYTHONUTF8="0")
    assert done.returncode == 2 and "F0801" in done.stderr


def test_read_only_folders(capsys: pytest.CaptureFixture[str]) -> None:
    """A result is read from one, and written into none."""
    assert cli.main(["solve", "m.fcco", "--data", "D=d.csv", "--budget", "5it", "--out", "out"]) == 0
    for path in Path("out").iterdir():
        path.chmod(0o444)
    Path("out").chmod(0o555)
    try:
        assert cli.main(["evaluate", "out"]) == 0
        if os.geteuid() != 0:  # nothing is read-only for root
            capsys.readouterr()
            assert cli.main(["solve", "m.fcco", "--data", "D=d.csv", "--budget", "5it", "--out", "out"]) == 2
            assert "error[F0806]" in capsys.readouterr().err
    finally:
        Path("out").chmod(0o755)
