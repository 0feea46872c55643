"""``completion SHELL``: a script that completes commands, options and the names of a model."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator, Mapping

from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError

#: The options that take names of the model, and the statements that declare these names.
NAMES = {"why": "constraint", "show": "let", "param": "param", "data": "data", "net": "net"}
#: The options whose names are followed by ``=`` and a value.
ASSIGNED = ("param", "data", "net")
#: The word by which a script asks for names, in place of a shell.
ASKED = "names"


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument(
        "shell", choices=("bash", "zsh", "fish", ASKED), metavar="SHELL", help="bash, zsh or fish"
    )
    to.add_argument("asked", nargs="*", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    if args.shell == ASKED:
        option, *words = args.asked
        say("\n".join(_names(option.lstrip("-"), words)))
    else:
        say({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](_options()))
    return DONE


def _options() -> dict[str, list[str]]:
    """The options of each command."""
    from fccomodel.app.cli import parser

    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: [option for action in one._actions for option in action.option_strings]
        for name, one in commands.choices.items()
    }


def _names(option: str, words: Iterable[str]) -> Iterator[str]:
    """The names that may stand after an option, by the statements of the model in the line's words."""
    if option == "algorithm":
        yield from _algorithms()
    model = next((word for word in words if word.endswith(".fcco")), None)
    if option not in NAMES or model is None:
        return
    from fccomodel.language import statements as kinds
    from fccomodel.language.parse import parse

    try:
        statements = parse(files.read_model(model)).statements
    except FccoError:  # not yet a model
        return
    yield from ["objective"] if option == "why" else []
    for statement in statements:
        if kinds.of(statement).name == NAMES[option]:
            name = getattr(statement, "label", None) or getattr(statement, "name", "")
            yield f"{name}=" if option in ASSIGNED else str(name)


def _algorithms() -> Iterator[str]:
    """The names of the algorithms, from the texts of their files: importing all would take longer."""
    from importlib.resources import files as inside

    files = [path for path in inside("fccomodel.algorithms").iterdir() if path.name.endswith(".py")]
    declaring = (path for path in files if "\nalgorithm = " in path.read_text(encoding="utf-8"))
    yield from sorted(path.name.removesuffix(".py") for path in declaring)


def _bash(options: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f"    {name}) options='{' '.join(known)}' ;;" for name, known in options.items())
    asking = "|".join(f"--{name}" for name in (*NAMES, "algorithm"))
    return f"""\
_fccomodel() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{" ".join(options)} --help --version' -- "$word"))
    return
  fi
  case $before in
    {asking})
      options=$(fccomodel completion {ASKED} -- "${{before#--}}" "${{COMP_WORDS[@]:2}}" 2>/dev/null)
      COMPREPLY=($(compgen -W "$options" -- "$word"))
      [[ $COMPREPLY == *= ]] && compopt -o nospace 2>/dev/null
      return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null ;;
  esac
}}
complete -F _fccomodel fccomodel"""


def _zsh(options: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f"      ({name}) compadd -- {' '.join(known)} ;;" for name, known in options.items())
    asking = "|".join(f"--{name}" for name in (*NAMES, "algorithm"))
    return f"""\
#compdef fccomodel
_fccomodel() {{
  local before=${{words[CURRENT-1]}}
  if (( CURRENT == 2 )); then
    compadd -- {" ".join(options)} --help --version
    return
  fi
  case $before in
    ({asking})
      local -a names
      names=(${{(f)"$(fccomodel completion {ASKED} -- "${{before#--}}" "${{(@)words[3,-1]}}" 2>/dev/null)"}})
      compadd -S '' -- ${{(M)names:#*=}}
      compadd -- ${{names:#*=}}
      return ;;
  esac
  if [[ $PREFIX == -* ]]; then
    case ${{words[2]}} in
{cases}
    esac
  else
    _files
  fi
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
compdef _fccomodel fccomodel"""


def _fish(options: Mapping[str, list[str]]) -> str:
    first, lines = "__fish_use_subcommand", []
    for name, known in options.items():
        lines.append(f"complete -c fccomodel -n {first} -f -a {name} -d {shlex.quote(_summaries()[name])}")
        inside = f"complete -c fccomodel -n '__fish_seen_subcommand_from {name}'"
        for option in known:
            asked = option.lstrip("-")
            more = f" -x -a '(fccomodel completion {ASKED} -- {asked} (commandline -opc) 2>/dev/null)'"
            if option.startswith("--"):
                flag = f"-l {asked}"
            else:
                flag = f"-s {asked}"
            lines.append(f"{inside} {flag}{more if asked in (*NAMES, 'algorithm') else ''}")
    return "\n".join(lines)


def _summaries() -> dict[str, str]:
    """The summary of each command."""
    from fccomodel.app.cli import COMMANDS

    return {command.name: command.summary for command in COMMANDS}


completion = Command(
    name="completion",
    summary="what a shell needs to complete commands, options and the names of a model",
    detail="Of bash and zsh to be evaluated in the shell's startup file, of fish to be kept in its "
    "folder of completions.",
    examples=(
        'eval "$(fccomodel completion bash)"',
        "fccomodel completion fish > ~/.config/fish/completions/fccomodel.fish",
    ),
    arguments=arguments,
    run=run,
)
