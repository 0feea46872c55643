"""``explain MODEL [--bind B]``: the facts about a model, and the algorithm that is chosen for it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from fccomodel import pipeline
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import print_json, say


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    shared.binding(to)
    shared.solving(to)
    shared.as_json(to)
    to.add_argument(
        "--why", metavar="SUBJECT", help="the chain of rules behind `objective` or a constraint's label"
    )
    to.add_argument(
        "--all", action="store_true", help="constants, assumptions and practice, and every other algorithm"
    )
    shared.quiet(to)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    if re.fullmatch(r"F\d{4}", args.model) and not Path(args.model).exists():
        from fccomodel.app.shown import codes

        say(codes.card(args.model))
        return DONE
    from fccomodel.app.python.session import Explanation

    explanation = Explanation(explained=pipeline.explain(*shared.given(args)))
    if args.json:
        print_json(explanation.json)
    elif args.why:
        say(explanation.why(args.why))
    elif args.all:
        say(explanation)
    else:
        say(explanation.on_screen(in_python=False))
    return DONE


explain = Command(
    name="explain",
    summary="show the structure found, its reasons, and the algorithm chosen",
    detail="One screen; --all shows the rest. Works without data, and where nothing solves the model: it "
    "says then what is missing. Of an error's code (`explain F0203`), the rules behind it.",
    examples=(
        "fccomodel explain model.fcco --param mu=0.1",
        "fccomodel explain model.fcco --bind model.toml --why misses",
        "fccomodel explain model.fcco --bind model.toml --all",
        "fccomodel explain F0203",
    ),
    arguments=arguments,
    run=run,
)
