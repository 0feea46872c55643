"""The command line as careless people use it: a code, exit status 2, no traceback; and odd models that
are right."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fccomodel.app import cli


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command(tmp_path, capsys):
    """Runs a command on a model's text: exit status, standard output, standard error."""

    def run(text: str, *args: str, name: str = "solve") -> tuple[int, str, str]:
        (tmp_path / "m.fcco").write_text(f"model m;\n{text}\n")
        budget = ["--budget", "200it"] if name == "solve" and "--budget" not in args else []
        status = cli.main([name, "m.fcco", *args, *budget])
        return (status, *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    ("text", "args", "code", "says"),
    [
        ("param p default 0;\nvar x[2];\nminimize sumsq(x - 1)/p;", [], "F0533", "other than 0"),
        ("var x[1000000000000];\nminimize sumsq(x);", [], "F0704", "1,000,000,000,000 entries"),
        ("var x;\nminimize x^2;", ["--seed", "1", "--option", "seed=2"], "F0805", "seed"),
        ("var x;\nminimize x^2;", ["--seed", "one"], "F0808", "`one` is no seed"),
        ("var x;\nminimize x^2;", ["--budget", "1e400it"], "F0808", "no budget"),
        ("var x;\nminimize x^2;", ["--budget", "1e400s"], "F0808", "no budget"),
    ],
    ids=[
        "division by a parameter",
        "more variables than memory",
        "two seeds",
        "a seed in words",
        "endless steps",
        "endless time",
    ],
)
def test_refused(command, text, args, code, says):
    status, out, err = command(text, *args)
    assert status == 2 and out == "" and "Traceback" not in err
    assert f"error[{code}]" in err and says in " ".join(err.split())


def test_a_constraint_without_variables_is_judged_by_the_report(command):
    status, out, _ = command(
        "param p default 1;\nvar x;\nminimize (x - 1)^2;\nsubject to c: p <= 2;", "--json"
    )
    assert status == 0 and json.loads(out)["constraints"]["c"]["value"] == pytest.approx(-1)
    status, out, _ = command(
        "param p default 1;\nvar x;\nminimize (x - 1)^2;\nsubject to c: p <= 2;", "--param", "p=5", "--json"
    )
    record = json.loads(out)
    assert record["constraints"]["c"]["value"] == pytest.approx(3) and record["epsilon"] >= 3
    assert record["verdict"].startswith("Infeasible, proved: c has no variable")


@pytest.mark.parametrize("name", ["check", "format", "explain"])
def test_a_sum_of_thousands_of_terms(command, name):
    """Their depth is no depth: sum over k of (x - k mod 7)^2 - 2 x y."""
    terms = "".join(f" + (x - {k % 7})^2 - 2*x*y" for k in range(400))
    status, _, err = command(f"var x;\nvar y >= 0, <= 1;\nminimize y^2{terms};", name=name)
    assert status == 0, err


def test_the_minimum_of_a_long_sum(command, tmp_path):
    terms = " + ".join(f"(x - {k % 5})^2" for k in range(150))
    status, _, err = command(f"var x;\nminimize ({terms}) / 150;", "--out", "out", "--budget", "300it")
    assert status == 0, err
    assert np.load(tmp_path / "out" / "variables.npz")["x"] == pytest.approx(2, abs=1e-2)


def test_lets_inside_lets_have_an_end(command):
    def model(count: int) -> str:
        chain = "".join(f"let a{k + 1} = a{k} + 1;\n" for k in range(count))
        return f"var x;\nlet a0 = x^2;\n{chain}minimize a{count};"

    for name in ("check", "explain", "solve"):
        status, _, err = command(model(300), name=name)
        assert status == 2 and "error[F0422]" in err
    status, _, err = command(model(100))
    assert status == 0, err
