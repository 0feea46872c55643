"""``emit MODEL --bind B -o FILE``: the solver as a file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fccomodel.app import errors
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.core import files
from fccomodel.core.diagnostics import refuse


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    shared.binding(to)
    shared.solving(to)
    to.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the solver's file, say solver.py"
    )
    shared.quiet(to)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.stored import results

    if os.path.isdir(args.output):
        refuse(errors.folder_for_program(args.output))
    files.make_folder(args.output.parent)
    data = results.write_program(results.emitted(shared.plan(args)), args.output)
    say(f"{args.output} (reads {data}); run it with: python {args.output}")
    return DONE


emit = Command(
    name="emit",
    summary="write the standalone solver: Python with torch alone",
    detail="Its data is written beside it: data.pt beside solver.py, a.data.pt beside a.py.",
    examples=("fccomodel emit model.fcco --bind model.toml -o solver.py",),
    arguments=arguments,
    run=run,
)
