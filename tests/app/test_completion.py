"""Completion in a shell, and the examples that the commands' help shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from support.places import ROOT

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


@pytest.fixture
def shell_path(tmp_path) -> dict[str, str]:
    """The surroundings of a shell that finds the command."""
    (tmp_path / "fccomodel").write_text(f'#!/bin/sh\nexec {sys.executable} -m fccomodel "$@"\n')
    (tmp_path / "fccomodel").chmod(0o755)
    home = {"HOME": str(tmp_path), "TERM": "dumb", "COLUMNS": "400"}
    return {**os.environ, **home, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def completed(line: str, surroundings: dict[str, str]) -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    script = f"""eval "$(fccomodel completion bash)"; compopt() {{ :; }}
COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _fccomodel; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, env=surroundings, check=True
    )
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
def test_bash(line, offered, shell_path):
    assert completed(line, shell_path) == offered


#: Types a line, a tab and a Z into an interactive shell, and gives what stands in its line then:
#: the letter shows where it goes on.
TYPED = """zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; PROMPT_EOL_MARK=; stty -echo; unset zle_bracketed_paste; eval "$(fccomodel completion zsh)"; print rea''dy'
zpty -r -m shell out '*ready*' || exit 1
zpty -w -n shell "$LINE"$'\\tZ'
zpty -w -n shell $'\\C-a'"print -r -- '<"$'\\C-e'">'"$'\\n'
zpty -r -m shell out $'*\n<*>*'
print -r -- "$out"
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("fccomodel solve --sen", "fccomodel solve --sensitivity Z"),
        (f"fccomodel solve {NP} --param t", f"fccomodel solve {NP} --param tau=Z"),
    ],
)
def test_zsh(line, made, shell_path):
    surroundings = {**shell_path, "LINE": line}
    done = subprocess.run(
        ["zsh", "-f", "-c", TYPED], capture_output=True, text=True, timeout=60, env=surroundings
    )
    assert f"<{made}>" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fccomodel so", ["solve\tsolve a model and report on the answer"]),
        (f"fccomodel solve {NP} --param t", ["tau="]),
    ],
)
def test_fish(line, offered, shell_path):
    script = f"fccomodel completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "-N", "-c", script], capture_output=True, text=True, timeout=60, env=shell_path, check=True
    )
    assert done.stdout.splitlines() == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_name_every_command_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command.name in script for command in COMMANDS)
    assert all(
        option in script
        for option in (("--holdout", "--where") if shell != "fish" else ("-l holdout", "-l where"))
    )
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_completing_needs_neither_torch_nor_sympy():
    code = (
        "import sys; from fccomodel.app.cli import main; "
        f"main(['completion', 'names', '--', 'why', {NP!r}]); "
        "main(['completion', 'names', '--', 'algorithm']); main(['completion', 'bash']); "
        "sys.exit('torch' in sys.modules or 'sympy' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], timeout=60, cwd=ROOT, stdout=subprocess.DEVNULL
        ).returncode
        == 0
    )
