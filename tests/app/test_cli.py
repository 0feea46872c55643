"""The command line from end to end, on models and data that come with a dependency."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from support.places import EXAMPLES

from fccomodel import pipeline
from fccomodel.app import cli

MODEL, BINDING = str(EXAMPLES / "neyman_pearson.fcco"), str(EXAMPLES / "neyman_pearson.toml")
SHORT = ["--budget", "300it", "--quiet"]
KEYS = {
    "model",
    "algorithm",
    "objective",
    "constraints",
    "kkt",
    "seed",
    "wall_s",
    "iterations",
    "options",
    "epsilon",
    "verdict",
}


@pytest.fixture(autouse=True)
def no_configuration(tmp_path, monkeypatch):
    """The caller's own defaults play no part."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(cli.DEBUG, raising=False)


@pytest.fixture(scope="module")
def solved(tmp_path_factory) -> Path:
    """A solved model's folder."""
    folder = tmp_path_factory.mktemp("solved") / "deep" / "out"
    assert cli.main(["solve", MODEL, "--bind", BINDING, "--seed", "3", "--out", str(folder), *SHORT]) == 0
    return folder


def own_values(w: np.ndarray, rows=None) -> tuple[float, float]:
    """Objective and constraint of the example by their formulas; scaling is that of all rows."""
    data = load_breast_cancer()
    x = np.column_stack([(data.data - data.data.mean(0)) / data.data.std(0), np.ones(len(data.data))])
    y = 1 - data.target
    keep = np.ones(len(y), bool) if rows is None else rows(data)
    x, y = x[keep], y[keep]
    objective = np.logaddexp(0, x[y == 0] @ w).mean() + 0.005 * w @ w
    return float(objective), float(np.logaddexp(0, -x[y == 1] @ w).mean() - 0.05)


# -------------------------------------------------------------------------------------------- check
def test_check_names_objective_and_constraints(capsys):
    assert cli.main(["check", MODEL]) == 0
    assert "neyman_pearson: minimize false_alarms subject to misses" in capsys.readouterr().out


def test_check_goes_on_after_a_bad_file(tmp_path, capsys):
    bad = tmp_path / "bad.fcco"
    bad.write_text("model bad;\ndim d\nvar w[d];\nminimize sumsq(v);\n")
    assert cli.main(["check", str(bad), MODEL]) == 2
    out, err = capsys.readouterr()
    assert "neyman_pearson" in out and "bad.fcco:2" in err and "Fix:" in err
    assert err.strip().splitlines()[-1].startswith(("1 error", "2 errors"))


def test_a_model_from_standard_input(monkeypatch, capsys):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO(Path(MODEL).read_text()))
    assert cli.main(["check", "-"]) == 0
    assert "<stdin>: ok" in capsys.readouterr().out


def test_lint_notes_unless_quiet(tmp_path, capsys):
    model = tmp_path / "m.fcco"
    model.write_text(Path(MODEL).read_text().replace("misses: ", ""))
    assert cli.main(["check", str(model)]) == 0
    assert "warning[" in capsys.readouterr().err
    assert cli.main(["check", "--quiet", str(model)]) == 0
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------ explain
@pytest.mark.parametrize("binding", [[], ["--bind", BINDING]])
def test_explain_json(binding, capsys):
    assert cli.main(["explain", MODEL, *binding, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["objective"]["curvature"] == found["constraints"]["misses"]["curvature"] == "convex"
    assert found["objective"]["smooth"] and found["algorithm"]
    assert found["algorithm"] not in found["rejected"] and all(map(len, found["rejected"].values()))


def test_explain_in_words(capsys):
    assert cli.main(["explain", MODEL]) == 0
    text = capsys.readouterr().out
    assert "convex" in text and "misses" in text
    assert len(text.splitlines()) <= 24 and "chosen by" in text and "Its theorem assumes" not in text
    assert cli.main(["explain", MODEL, "--all"]) == 0
    assert "Its theorem assumes" in capsys.readouterr().out
    assert cli.main(["explain", MODEL, "--why", "misses"]) == 0
    assert "log1pexp" in capsys.readouterr().out


def test_explain_with_parameters_and_no_data(tmp_path, capsys):
    """What is given is checked and used, or refused."""
    model = tmp_path / "m.fcco"
    model.write_text(
        "dim d; data D : table(x: real[d], y: real); param mu; param a; var w[d];\n"
        "minimize E[z ~ D] huber(dot(w, z.x) - z.y, a) + mu * sumsq(w);\n"
    )

    def explained(*given: str) -> tuple[int, str, str]:
        status = cli.main(["explain", str(model), "--json", *given])
        return (status, *capsys.readouterr())

    for value, curvature in (("1", "convex"), ("-1", "weakly convex")):
        status, out, _ = explained("--param", f"mu={value}")
        assert status == 0 and json.loads(out)["objective"]["curvature"] == curvature
    for given, code in (
        (["--param", "a=-1"], "F0533"),
        (["--param", "b=1"], "F0518"),
        (["--net", "s=mlp(3)"], "F0523"),
    ):
        status, _, err = explained(*given)
        assert status == 2 and code in err
    assert (
        cli.main(["algorithms", "--model", str(model), "--param", "a=0"]) == 2
        and "F0533" in capsys.readouterr().err
    )


# -------------------------------------------------------------------------------------------- solve
def test_solve_writes_its_files(solved):
    assert {p.name for p in solved.iterdir()} == {"result.json", "variables.npz", "solver.py", "data.pt"}
    result = json.loads((solved / "result.json").read_text())
    assert result.keys() >= KEYS
    assert result["model"] == "neyman_pearson" and result["seed"] == 3 and result["iterations"] == 300
    assert result["options"]["seed"] == {"value": 3, "origin": "command line"}
    assert result["options"]["device"]["origin"] == "automatic"
    assert result["kkt"].keys() >= {"stationarity", "feasibility", "complementarity"}
    assert result["constraints"]["misses"].keys() >= {"value", "multiplier"}


def test_the_reported_values_are_those_of_the_formulas(solved):
    result = json.loads((solved / "result.json").read_text())
    w = np.load(solved / "variables.npz")["w"]
    assert w.shape == (31,) and w.dtype == np.float64
    assert (result["objective"], result["constraints"]["misses"]["value"]) == pytest.approx(
        own_values(w), rel=1e-9, abs=1e-9
    )


def test_the_same_seed_gives_the_same_answer(solved, tmp_path):
    assert cli.main(["solve", MODEL, "--bind", BINDING, "--seed", "3", "--out", str(tmp_path), *SHORT]) == 0
    assert np.array_equal(np.load(tmp_path / "variables.npz")["w"], np.load(solved / "variables.npz")["w"])


def test_the_report(capsys):
    assert cli.main(["solve", MODEL, "--bind", BINDING, "--budget", "300it"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for word in (
        "false_alarms",
        "misses",
        "multiplier",
        "stationarity",
        "verdict",
        "569",
        "assumptions: ",
        "--out DIR",
    ):
        assert word in text


def test_json_and_quiet(capsys):
    assert cli.main(["solve", MODEL, "--bind", BINDING, "--json", *SHORT]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out).keys() >= KEYS and err == ""
    assert cli.main(["solve", MODEL, "--bind", BINDING, *SHORT]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 and out.startswith("neyman_pearson: ") and err == ""


def test_parameters_and_the_configuration_file(tmp_path, capsys):
    config = tmp_path / "config" / "fccomodel" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('budget = "200it"\nseed = 9\n')
    assert cli.main(["solve", MODEL, "--bind", BINDING, "--seed", "1", "--param", "tau=0.1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["options"]["budget"] == {"value": "200it", "origin": "user configuration"}
    assert result["options"]["seed"] == {"value": 1, "origin": "command line"}
    assert result["binding"]["params"] == {"tau": 0.1} and result["iterations"] == 200


# --------------------------------------------------------------------------------------------- emit
def test_the_emitted_program_runs_by_itself(tmp_path):
    target = tmp_path / "a" / "solver.py"
    assert (
        cli.main(["emit", MODEL, "--bind", BINDING, "-o", str(target), "--budget", "300it", "--quiet"]) == 0
    )
    moved = tmp_path / "b"
    moved.mkdir()
    for path in target.parent.iterdir():
        path.rename(moved / path.name)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "solver.py"],
        cwd=moved,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "fccomodel" not in [
        line.split()[1]
        for line in (moved / "solver.py").read_text().splitlines()
        if line.startswith("import ")
    ]


# ----------------------------------------------------------------------------------------- evaluate
def test_evaluate_on_the_same_rows_repeats_the_report(solved, capsys):
    assert cli.main(["evaluate", str(solved), "--json"]) == 0
    again, result = json.loads(capsys.readouterr().out), json.loads((solved / "result.json").read_text())
    for key in ("objective", "kkt", "epsilon", "constraints"):
        assert again[key] == result[key]


def test_evaluate_on_other_rows_keeps_the_scaling(solved, capsys):
    assert cli.main(["evaluate", str(solved), "--where", "`mean radius` > 12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = own_values(np.load(solved / "variables.npz")["w"], lambda data: data.data[:, 0] > 12)
    assert (found["objective"], found["constraints"]["misses"]["value"]) == pytest.approx(expected, rel=1e-9)
    assert found["rows"]["D"] < 569


def test_evaluate_prints_a_report(solved, capsys):
    assert cli.main(["evaluate", str(solved)]) == 0
    assert "stationarity" in capsys.readouterr().out


def test_evaluate_on_another_file(solved, tmp_path, capsys):
    frame = load_breast_cancer(as_frame=True).frame.iloc[:200]
    frame.to_parquet(tmp_path / "some.parquet")
    assert cli.main(["evaluate", str(solved), "--data", f"D={tmp_path / 'some.parquet'}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = own_values(
        np.load(solved / "variables.npz")["w"], lambda data: np.arange(len(data.target)) < 200
    )
    assert found["objective"] == pytest.approx(expected[0], rel=1e-9)


# ------------------------------------------------------------------------------------------- format
def test_format_prints_rewrites_and_compares(tmp_path, capsys):
    path = tmp_path / "m.fcco"
    path.write_text("model   m;var w;  # the one\nminimize w^2;\n")
    assert cli.main(["format", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("model m;") and "# the one" in text
    assert cli.main(["format", "--check", str(path)]) == 1
    assert cli.main(["format", "--write", str(path)]) == 0
    assert path.read_text() == text
    assert cli.main(["format", "--check", str(path)]) == 0


def test_the_examples_are_in_the_canonical_layout(capsys):
    assert cli.main(["format", "--check", *map(str, sorted(EXAMPLES.glob("*.fcco")))]) == 0


# ---------------------------------------------------------------------------------------- catalogue
@pytest.mark.parametrize(
    ("args", "word"), [(["atoms"], "log1pexp"), (["atoms", "huber"], "delta"), (["algorithms"], "sonex")]
)
def test_lists(args, word, capsys):
    assert cli.main(args) == 0
    assert word in capsys.readouterr().out


def test_an_algorithm_card_cites(capsys):
    assert cli.main(["algorithms", "sonex"]) == 0
    text = capsys.readouterr().out
    assert "theorem" in text and "needs" in text and "sonex-alexr2-2025, Assumption 3.2" in text


# ---------------------------------------------------------------------------------------- bad input
HERE = {"M": MODEL, "B": BINDING}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check nowhere.fcco", "F0801"),
        ("check .", "F0802"),
        ("check long.fcco", "F0803"),
        ("check binary.fcco", "F0804"),
        ("solve {M} --bind nowhere.toml", "F0505"),
        ("solve {M} --bind {B} --data D", "F0805"),
        ("solve {M} --bind {B} --param tau=much", "F0805"),
        ("solve {M} --bind {B} --param nope=1", "F05"),
        ("solve {M} --bind {B} --param tau=-1", "F05"),
        ("solve {M} --bind {B} --out taken", "F0806"),
        ("solve {M} --bind {B} --budget soon", "F0808"),
        ("solve {M} --bind {B} --seed -1", "F0808"),
        ("solve {M} --bind {B} --device gpu", "F0808"),
        ("solve {M} --bind {B} --precision float16", "F0808"),
        ("solve {M} --bind {B} --algorithm magic", "F06"),
        ("solve {M} --bind {B} --option nothing=1", "F06"),
        ("solve {M} --bind {B} --option algorithm=magic", "F06"),
        ("solve {M} --bind {B} --option inner_batch=0", "F0808"),
        ("solve {M}", "F0504"),
        ("emit {M} --bind {B} -o .", "F0806"),
        ("evaluate nowhere", "F0810"),
        ("evaluate .", "F0801"),
        ("evaluate broken", "F0810"),
        ("explain {M} --why nothing", "F0"),
        ("format nowhere.fcco", "F0801"),
        ("atoms nothing", "F0805"),
        ("algorithms nothing", "F0805"),
    ],
)
def test_bad_input_has_a_code_and_no_traceback(command, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("long.fcco").write_text("model m; # " + "x" * 20_000_000)
    Path("binary.fcco").write_bytes(b"PAR1\xff\xfe\x00")
    Path("taken").write_text("")
    Path("broken").mkdir()
    Path("broken/result.json").write_text('{"format": 1}')
    assert cli.main(command.format(**HERE).split()) == 2
    out, err = capsys.readouterr()
    assert f"[{code}" in err and "Traceback" not in err and out == ""
    assert code in err.strip().splitlines()[-1]


@pytest.mark.parametrize(
    "command", ["", "solve", "nonsense", "solve a b --seed x", "format --write --check x"]
)
def test_a_bad_command_line_shows_the_usage(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(command.split())
    assert stop.value.code == 2
    assert "usage: fccomodel" in capsys.readouterr().err


def test_a_defect_asks_for_a_report(monkeypatch, capsys):
    def broken(source):
        raise RuntimeError("inner\nlines")

    monkeypatch.setattr(pipeline, "compile_model", broken)
    assert cli.main(["check", MODEL]) == 2
    err = capsys.readouterr().err
    assert "F0001" in err and "RuntimeError: inner" in err and "report" in err and "Traceback" not in err
    monkeypatch.setenv(cli.DEBUG, "1")
    assert cli.main(["check", MODEL]) == 2
    assert "Traceback" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------ signals
def start(folder: Path) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "fccomodel",
        "solve",
        MODEL,
        "--bind",
        BINDING,
        "--budget",
        "600s",
        "--out",
        str(folder),
    ]
    command += ["--no-polish", "--option", "patience=1000000"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_progress(process: subprocess.Popen) -> None:
    """Until the first line of progress: the solver is running."""
    assert process.stderr is not None
    while "step" not in (line := process.stderr.readline()):
        assert line, process.stderr.read()


def test_ctrl_c_ends_with_the_best_point_so_far(tmp_path):
    process = start(tmp_path)
    wait_for_progress(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["interrupted"] is True and "verdict" in out
    assert result["objective"] == pytest.approx(
        own_values(np.load(tmp_path / "variables.npz")["w"])[0], rel=1e-9
    )


def test_a_second_ctrl_c_ends_at_once(monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(pipeline, "solve", interrupted)
    try:
        assert cli.main(["solve", MODEL, "--bind", BINDING]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.endswith("fccomodel: interrupted\n")


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m fccomodel atoms | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stderr == ""


def test_a_budget_of_oracle_calls(tmp_path, capsys):
    assert (
        cli.main(
            ["solve", MODEL, "--bind", BINDING, "--budget", "1e5oracles", "--out", str(tmp_path), "--quiet"]
        )
        == 0
    )
    result = json.loads((tmp_path / "result.json").read_text())
    assert 5e4 < result["history"][-1]["oracles"] <= 1e5 and result["stopped"] == "the budget is used up"
    target = tmp_path / "again" / "solver.py"
    given = ["--seed", "0", "--budget", "1e5oracles", "--quiet"]
    assert cli.main(["emit", MODEL, "--bind", BINDING, "-o", str(target), *given]) == 0
    done = subprocess.run([sys.executable, str(target)], capture_output=True, text=True, timeout=120)
    assert f"{result['iterations']} steps" in done.stdout
