"""Completion in a shell, and the examples that the commands' help shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from places import ROOT

from fccomodel.app.cli import COMMANDS, main, parser

NP = str(ROOT / "examples" / "neyman_pearson.fcco")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_examples_of_a_commands_help_are_its_own(command, capsys):
    assert command.examples
    for line in command.examples:
        name, *words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line).partition(" > ")[0])
        args = parser().parse_args(words)
        assert name == "fccomodel" and args.run is command.run
    with pytest.raises(SystemExit):
        main([command.name, "--help"])
    shown = capsys.readouterr().out
    assert all(line in shown for line in command.examples) and max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (["why", "explain", NP], ["objective", "misses"]),
        (["param", NP], ["tau=", "mu="]),
        (["data", NP], ["D="]),
        (["show", NP], []),
        (["why", "there_is_none.fcco"], []),
        (["algorithm"], ["alexr", "sonex"]),
    ],
)
def test_the_names_of_a_model(asked, names, capsys):
    assert main(["completion", "names", "--", *asked]) == 0
    found = capsys.readouterr().out.split()
    assert set(names) <= set(found) and (found == names or asked == ["algorithm"])


def completed(line: str, folder) -> list[str]:
    """What bash offers for the last word of a line."""
    (folder / "fccomodel").write_text(f'#!/bin/sh\nexec {sys.executable} -m fccomodel "$@"\n')
    (folder / "fccomodel").chmod(0o755)
    words = line.split(" ")
    script = f"""eval "$(fccomodel completion bash)"; compopt() {{ :; }}
COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _fccomodel; printf '%s\\n' "${{COMPREPLY[@]}}" """
    path = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, env=path, check=True)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fccomodel so", ["solve"]),
        ("fccomodel solve --sen", ["--sensitivity"]),
        (f"fccomodel explain {NP} --why m", ["misses"]),
        (f"fccomodel solve {NP} --param t", ["tau="]),
    ],
)
def test_bash(line, offered, tmp_path):
    assert completed(line, tmp_path) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_command_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command.name in script for command in COMMANDS)
    assert all(option in script for option in (("--holdout", "--where") if shell != "fish" else ("-l holdout", "-l where")))
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_completing_needs_neither_torch_nor_sympy():
    code = (
        "import sys; from fccomodel.app.cli import main; "
        f"main(['completion', 'names', '--', 'why', {NP!r}]); "
        "main(['completion', 'names', '--', 'algorithm']); main(['completion', 'bash']); "
        "sys.exit('torch' in sys.modules or 'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0
