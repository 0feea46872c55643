"""``format MODEL...``: the canonical layout, printed, written, or only compared with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DIFFERS, DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.core import files
from fccomodel.core.quoting import visible


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.models(to)
    how = to.add_mutually_exclusive_group()
    how.add_argument(
        "-w", "-i", "--write", "--in-place", dest="write", action="store_true", help="rewrite the files"
    )
    how.add_argument(
        "--check", action="store_true", help="change nothing; exit status 1 where a file would change"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.language.format import format as canonical

    status = DONE
    for name in args.models:
        source = files.read_model(name)
        text = canonical(source)
        if args.check:
            if text != source.text:
                say(f"{source.name}: not in the canonical layout", sys.stderr)
                status = DIFFERS
        elif args.write and name != "-":
            if text != source.text:
                files.write_text(Path(name), text)
        else:
            sys.stdout.write(visible(text, "\n\t") if sys.stdout.isatty() else text)
    return status


format = Command(
    name="format",
    summary="print a model in the canonical layout, comments kept",
    examples=(
        "fccomodel format model.fcco --write",
        "fccomodel format models/a.fcco --check",
    ),
    arguments=arguments,
    run=run,
)
