"""The command line: its parser, and how errors are shown."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import textwrap
import time
import traceback
from collections.abc import Sequence
from typing import Any

from fccomodel.app import errors
from fccomodel.app.cli._command import BAD_INPUT, DONE
from fccomodel.app.cli._output import show
from fccomodel.app.cli.algorithms import algorithms
from fccomodel.app.cli.atoms import atoms
from fccomodel.app.cli.check import check
from fccomodel.app.cli.compare import compare
from fccomodel.app.cli.completion import completion
from fccomodel.app.cli.emit import emit
from fccomodel.app.cli.evaluate import evaluate
from fccomodel.app.cli.explain import explain
from fccomodel.app.cli.format import format
from fccomodel.app.cli.grade import grade
from fccomodel.app.cli.latex import latex
from fccomodel.app.cli.lsp import lsp
from fccomodel.app.cli.mock_data import mock_data
from fccomodel.app.cli.new import new
from fccomodel.app.cli.options import options
from fccomodel.app.cli.playground import playground
from fccomodel.app.cli.prepare import prepare
from fccomodel.app.cli.report import report
from fccomodel.app.cli.solve import solve
from fccomodel.app.cli.sweep import sweep
from fccomodel.app.tracebacks import DEBUG
from fccomodel.core import interrupts, process
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.version import __version__
from fccomodel.execution.errors import of_one_process

__all__ = ["COMMANDS", "DEBUG", "main"]

COMMANDS = (
    new,
    check,
    explain,
    solve,
    sweep,
    compare,
    emit,
    evaluate,
    grade,
    report,
    format,
    latex,
    mock_data,
    prepare,
    atoms,
    algorithms,
    options,
    completion,
    lsp,
    playground,
)
#: Seconds that a rank waits while another one says why all end.
WAIT_FOR_SPEAKER = 1.0

EPILOG = """\
examples:
  fccomodel check   model.fcco
  fccomodel explain model.fcco --bind model.toml
  fccomodel solve   model.fcco --bind model.toml --seed 0 --budget 60s --out out
  fccomodel evaluate out --where "split == 'test'"

`fccomodel COMMAND --help` lists a command's options.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Every error ends in a message, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    aside = _aside()
    try:
        interrupts.raise_again()
        args = parser().parse_args(argv)
        if process.launched() and args.command.ranks != "together":
            if args.command.ranks == "refused":
                refuse(of_one_process(f"`{args.command.name}`"))
            if process.rank() > 0:
                return DONE
        status = args.run(args)
        sys.stdout.flush()
        return status
    except FccoError as error:
        if _to_speak(aside):
            show(error.diagnostics, error.source)
        return BAD_INPUT
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop
        print("fccomodel: interrupted", file=sys.stderr)
        return interrupts.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: `fccomodel ... | head`
        _end_output()
        return DONE
    except Exception as error:  # noqa: BLE001  the last resort
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    """Show an unexpected error: a full disk, or a defect of the compiler."""
    if isinstance(error, OSError) and error.filename is None:  # the disk behind a stream is full
        _end_output()
        show([errors.output_not_written(error)], None)
        return BAD_INPUT
    if os.environ.get(DEBUG):
        traceback.print_exc()
    show([errors.defect(error, DEBUG)], None)
    return BAD_INPUT


def _aside() -> tuple[Any, Any]:
    """The output streams. Silences every process that torchrun starts except the first."""
    streams = sys.stdout, sys.stderr
    if process.rank() > 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  to the end of the process
    return streams


def _to_speak(streams: tuple[Any, Any]) -> bool:
    """Whether this process prints errors.

    Only one of the launched processes does. The others wait, since the launcher ends all with the
    first that ends.
    """
    if not process.launched():
        return True
    from fccomodel.execution.ranks import first_to_speak

    first = first_to_speak()
    if first:
        sys.stdout, sys.stderr = streams
    else:
        time.sleep(WAIT_FOR_SPEAKER)
    return first


def _end_output() -> None:
    """Discard the rest of standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """The parser of the command line, with a subcommand for each command."""
    top = argparse.ArgumentParser(
        prog="fccomodel",
        allow_abbrev=False,
        description="Write a composed stochastic optimisation problem as mathematics; get a solver, an "
        "answer and a KKT report.",
        epilog=EPILOG,
        formatter_class=_Help,
    )
    top.add_argument("--version", action="version", version=f"fccomodel {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        description = f"{command.summary[0].upper()}{command.summary[1:]}. {command.detail}".strip()
        examples = "\n".join(["examples:", *(f"  {line}" for line in command.examples)])
        texts: dict[str, Any] = {"help": command.summary, "description": description, "epilog": examples}
        subparser = commands.add_parser(command.name, **texts, allow_abbrev=False, formatter_class=_Help)
        command.arguments(subparser)
        subparser.set_defaults(command=command, run=command.run)
    return top


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help at 80 columns; a description is one paragraph, the examples stay as they are."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=26, width=80)
        self._action_max_length = 14  # argparse leaves the indentation of subcommands out of account

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return textwrap.fill(text, width)
