"""``new [TEMPLATE] [DIR]``: a model to begin with, its binding and its data."""

from __future__ import annotations

import argparse
from pathlib import Path

from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument(
        "template", nargs="?", metavar="TEMPLATE", help="the name of a template; `fccomodel new` lists them"
    )
    to.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="where to write (default: a folder of its name)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.generated import templates
    from fccomodel.app.shown import cards

    if args.template is None:
        say(cards.rows(templates.known().items()))
        return DONE
    files = templates.write(args.template, args.folder or Path(args.template))
    for path in files:
        say(f"written: {path}")
    model, binding = files[0], files[1]
    say(f"\nfccomodel solve {model} --bind {binding} --out {model.parent / 'out'}")
    return DONE


new = Command(
    name="new",
    summary="a model to begin with, with its binding and data",
    detail="Without a template, the list of them. Nothing that is there is written over.",
    examples=(
        "fccomodel new",
        "fccomodel new group-dro my-model",
    ),
    arguments=arguments,
    run=run,
)
