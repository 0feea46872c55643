"""A folder of results: written as a whole or not at all, by one process at a time, and read only as it
was written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import kills

import fccomodel
from fccomodel.app import cli
from fccomodel.app.python.session import Result
from fccomodel.app.stored import results, store
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.files import digest


@pytest.fixture(scope="module")
def answers() -> list[Result]:
    return kills.answers()


@pytest.fixture
def folder(answers: list[Result], tmp_path: Path) -> Path:
    return answers[1].save(tmp_path / "out")


def refusal(folder: Path) -> str:
    with pytest.raises(FccoError) as found:
        fccomodel.load(folder)
    assert {d.code for d in found.value.diagnostics} == {"F0810"}
    return str(found.value)


def test_its_files(folder: Path, answers: list[Result]) -> None:
    assert {p.name for p in folder.iterdir()} == {
        "result.json",
        "variables.npz",
        "solver.py",
        "data.pt",
        "scores.npz",
    }
    record = json.loads((folder / "result.json").read_text())
    assert record["files"] == {p.name: digest(p) for p in sorted(folder.iterdir()) if p.name != "result.json"}
    assert kills.read_as(folder, answers) == 1
    answers[0].save(folder)
    assert {p.name for p in folder.iterdir()} == {"result.json", "variables.npz", "solver.py", "data.pt"}


def test_other_files_stay(folder: Path, answers: list[Result]) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / ".hidden").mkdir()
    answers[0].save(folder)
    assert (folder / "notes.txt").read_text() == "mine" and (folder / ".hidden").is_dir()


@pytest.mark.parametrize("name", ["variables.npz", "solver.py", "data.pt", "scores.npz", "result.json"])
@pytest.mark.parametrize("damage", ["cut", "bit", "other", "empty"])
def test_a_damaged_file(folder: Path, answers: list[Result], tmp_path: Path, name: str, damage: str) -> None:
    path, content = folder / name, (folder / name).read_bytes()
    other = answers[0].save(tmp_path / "other")
    if damage == "other" and not (other / name).exists():
        return
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    shown = {"cut": content[: len(content) // 2], "bit": bytes(flipped), "empty": b""}
    path.write_bytes((other / name).read_bytes() if damage == "other" else shown[damage])
    if name == "result.json" and damage == "other":  # its own hash is right; the others are not
        name = "data.pt"
    assert name in refusal(folder) or "F0804" in refusal(folder)


def test_a_changed_number(folder: Path) -> None:
    record = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(record))  # laid out in another way
    assert fccomodel.load(folder).record == record
    (folder / "result.json").write_text(json.dumps(record | {"objective": 0.0}))
    assert "changed after it was written" in refusal(folder)


def test_the_model_is_the_one_that_was_solved(folder: Path) -> None:
    """A record with hashes that are right and another model's text."""
    record = json.loads((folder / "result.json").read_text())
    record["source"]["text"] += "subject to c: 1 <= 2;"
    (folder / "result.json").unlink()
    (folder / "result.json").write_text(store.json_text(store.sealed(record, folder)))
    assert record["model_hash"] in refusal(folder)


@pytest.mark.parametrize("missing", ["solver.py", "data.pt", "scores.npz"])
def test_what_was_taken_elsewhere_is_not_asked_for(folder: Path, answers: list[Result], missing: str) -> None:
    (folder / missing).unlink()
    assert kills.read_as(folder, answers) == 1


def test_variables_are(folder: Path) -> None:
    (folder / "variables.npz").unlink()
    assert "variables.npz" in refusal(folder)


def reseal(folder: Path, change: Any = None) -> None:
    """The folder as if a solve had written it so: every hash is right."""
    record = json.loads((folder / "result.json").read_text())
    if change is not None:
        change(record)
    if isinstance(record.get("files"), dict):
        record["files"] = {
            name: digest(folder / name) if (folder / name).is_file() else "" for name in record["files"]
        }
    text = store.json_text({name: entry for name, entry in record.items() if name != "sha256"})
    record["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "result.json").write_text(store.json_text(record))


ODD = {
    "complex": lambda v: v * 1j,
    "no number": lambda v: v * np.nan,
    "infinite": lambda v: v * np.inf,
    "shorter": lambda v: v[:-1],
    "with an axis": lambda v: v[None],
    "texts": lambda v: v.astype(str),
    "times": lambda v: v.astype("M8[s]"),
    "not there": lambda v: None,
}


@pytest.mark.parametrize("odd", ODD)
def test_variables_of_another_kind_behind_right_hashes(
    answers: list[Result], tmp_path: Path, odd: str
) -> None:
    folder = answers[0].save(tmp_path / "out")
    (name, value), *_ = fccomodel.load(folder).variables.items()
    made = ODD[odd](np.asarray(value))
    np.savez(folder / "variables.npz", **({} if made is None else {name: made}))
    reseal(folder)
    assert name in refusal(folder)
    bound = fccomodel.compile(kills.MODELS[0]).bind(data={"D": {"x": np.ones((3, 5)), "y": np.ones(3)}})
    rows = {"x": np.ones((3, 5)), "y": np.ones(3)}
    for use in (lambda: fccomodel.evaluate(folder, D=rows), lambda: bound.solve(start=folder)):
        with pytest.raises(FccoError, match="F0810"):
            use()


def test_arrays_that_are_no_variables(answers: list[Result], tmp_path: Path) -> None:
    folder = answers[0].save(tmp_path / "out")
    np.savez(folder / "variables.npz", **fccomodel.load(folder).variables, other=np.ones(2))
    reseal(folder)
    assert "no variable of the model" in refusal(folder)


CHANGES = {
    "no numbers of the report": lambda r: r.pop("kkt"),
    "a text for a number": lambda r: r.update(objective="low"),
    "a seed without end": lambda r: r.update(seed=10**30),
    "axes of another shape": lambda r: r["axes"]["variables"].update(w=[["d", None], ["e", None]]),
    "names that are too few": lambda r: r["axes"]["variables"].update(w=[["d", ["a"]]]),
    "a list for a mapping": lambda r: r.update(sources=[]),
    "a binding of numbers": lambda r: r["binding"].update(data={"D": 3}),
    "sizes of texts": lambda r: r.update(sizes={"d": "5"}),
    "a file upwards": lambda r: r["files"].update({"../secret": ""}),
    "a file elsewhere": lambda r: r["files"].update({"/etc/passwd": ""}),
    "files in a list": lambda r: r.update(files=["variables.npz"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_record_of_another_kind_behind_a_right_hash(
    answers: list[Result], tmp_path: Path, change: str
) -> None:
    folder = answers[0].save(tmp_path / "out")
    reseal(folder)
    fccomodel.load(folder)
    reseal(folder, CHANGES[change])
    refusal(folder)


@pytest.mark.parametrize("name", ["variables.npz", "data.pt", "result.json"])
def test_a_pipe_in_place_of_a_file(answers: list[Result], tmp_path: Path, name: str) -> None:
    folder = answers[0].save(tmp_path / "out")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(FccoError, match="pipe or a device"):
        fccomodel.load(folder)


@pytest.mark.parametrize("name", [".written", ".writing", "result.json", "solver.py"])
def test_links_in_the_folder_lead_nowhere(answers: list[Result], tmp_path: Path, name: str) -> None:
    """What they point to is neither read as the folder's, nor moved into it, nor written to."""
    folder, outside = answers[0].save(tmp_path / "out"), tmp_path / "outside"
    outside.mkdir()
    for file in ("result.json", "solver.py", "kept.txt"):
        (outside / file).write_text("kept")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside if name.startswith(".") else outside / name)
    try:
        answers[1].save(folder)
    except FccoError as error:
        assert {d.code for d in error.diagnostics} == {"F0806"} and name.startswith(".")
    assert {p.name: p.read_text() for p in outside.iterdir()} == dict.fromkeys(
        ("result.json", "solver.py", "kept.txt"), "kept"
    )


def test_included_files_and_odd_names(tmp_path: Path) -> None:
    """The hash of a model that includes others, in a folder whose name is not UTF-8, is that of its
    stored text."""
    odd = Path(os.fsdecode(bytes(tmp_path) + b"/\xff\xe9"))
    odd.mkdir()
    (odd / "head.fcco").write_text("param p default 2; # a head\nvar x;\n")
    (odd / "m.fcco").write_text(
        'include "head.fcco";\nminimize (x - p)^2;\nsubject to c: x <= 1;\noptions { seed = 2; }\n'
    )
    assert (
        cli.main(["solve", str(odd / "m.fcco"), "--out", str(odd / "out"), "--quiet", "--budget", "50it"])
        == 0
    )
    stored = fccomodel.load(odd / "out")
    assert stored.record["objective"] == pytest.approx(1, abs=0.1)
    assert cli.main(["evaluate", str(odd / "out")]) == 0


# --------------------------------------------------------------------------------------- one writer
def test_one_process_writes(
    folder: Path, answers: list[Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.fcco").write_text("var x; minimize x^2;")
    with store.claim(folder):
        with pytest.raises(FccoError, match="F0806"):
            answers[0].save(folder)
        assert cli.main(["solve", str(tmp_path / "m.fcco"), "--out", str(folder)]) == 2
        assert "another process is writing" in capsys.readouterr().err
        assert kills.read_as(folder, answers) == 1
    answers[0].save(folder)
    assert kills.read_as(folder, answers) == 0


def test_a_dead_process_claims_nothing(folder: Path, answers: list[Result]) -> None:
    def work() -> None:
        with store.claim(folder):
            os._exit(3)

    assert os.waitstatus_to_exitcode(os.waitpid(kills.child(work), 0)[1]) == 3
    answers[0].save(folder)


# ----------------------------------------------------------------------------- kills and full disks
def test_kills(tmp_path: Path, answers: list[Result]) -> None:
    found = kills.kills_at_each_operation(tmp_path / "a", answers)
    assert (
        sum(count for (how, _), count in found.items() if how == "killed") > 10
        and found["lived", 0] + found["lived", 1] == 1
    )
    assert found["killed", 0] and found["killed", 1]
    assert sum(kills.kills_at_random(tmp_path / "b", answers, 10).values()) == 10


def test_full_disks(tmp_path: Path, answers: list[Result]) -> None:
    found = kills.full_disks(tmp_path, answers, 20)
    assert found["full", 0] and found["full", 1] and found["enough", 0] + found["enough", 1]


def test_the_answer_is_shown_where_it_cannot_be_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.fcco").write_text("var x; minimize (x - 1)^2;")
    program = (
        "import resource, signal, sys; sys.dont_write_bytecode = True; from fccomodel.app import cli;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100, "
        "100));"
        f"sys.exit(cli.main(['solve', {str(tmp_path / 'm.fcco')!r}, '--out', {str(tmp_path / 'out')!r}, "
        "'--budget', '20it']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2 and "error[F0806]" in done.stderr and "Traceback" not in done.stderr
    assert "minimize objective" in done.stdout and "verdict" in done.stdout
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_read(folder: Path, answers: list[Result]) -> None:
    """Even between the two last steps of a process that was killed there."""
    written = folder / store.WRITTEN
    written.mkdir()
    for path in list(folder.iterdir()):
        if path.is_file():
            path.rename(written / path.name)
    for path in shutil.copytree(answers[0].save(folder.parent / "old"), folder, dirs_exist_ok=True).iterdir():
        path.chmod(0o444) if path.is_file() else None
    folder.chmod(0o555)
    try:
        assert kills.read_as(folder, answers) == 1
    finally:
        folder.chmod(0o755)
    answers[0].save(folder)
    assert not written.exists() and kills.read_as(folder, answers) == 0


# ----------------------------------------------------------------------------------------- programs
@pytest.fixture
def programs(answers: list[Result], tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Two programs in one folder, of different models."""
    paths = {"a.py": tmp_path / "a.py", "b": tmp_path / "b"}
    for path, answer in zip(paths.values(), answers, strict=True):
        results.write_program(answer.outcome.program, path)
    yield paths


def run(path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, path.name, "--iterations", "3", *args]
    return subprocess.run(call, cwd=path.parent, capture_output=True, text=True)


def test_programs_of_one_folder_have_their_own_data(programs: dict[str, Path]) -> None:
    assert {p.name for p in programs["a.py"].parent.iterdir()} == {"a.py", "a.data.pt", "b", "b.data.pt"}
    for path in programs.values():
        done = run(path)
        assert done.returncode == 0 and done.stdout.count("objective") >= 1, done.stderr


@pytest.mark.parametrize("damage", ["other", "cut", "missing", "named"])
def test_a_program_reads_its_own_data_alone(programs: dict[str, Path], damage: str) -> None:
    data = programs["a.py"].with_name("a.data.pt")
    args: tuple[Any, ...] = ()
    if damage == "other":
        shutil.copy(programs["b"].with_name("b.data.pt"), data)
    elif damage == "missing":
        data.unlink()
    else:
        data.write_bytes(data.read_bytes()[:1000])
        args = ("--data", "a.data.pt") if damage == "named" else ()
    done = run(programs["a.py"], *args)
    assert (
        done.returncode == 1
        and done.stderr.startswith("error[F0810] result: ")
        and "a.data.pt" in done.stderr
    )
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


def test_arrays_of_other_rows_may_be_named(answers: list[Result], tmp_path: Path) -> None:
    folder = answers[0].save(tmp_path / "out")
    shutil.copy(folder / "data.pt", folder / "mine.pt")
    done = run(folder / "solver.py", "--data", "mine.pt")
    assert done.returncode == 0, done.stderr
    assert np.isfinite(float(done.stdout.split("objective ")[-1].split()[0]))
