"""``grade MODEL --against KEY``: whether a model states the same problem as a key."""

from __future__ import annotations

import argparse

from fccomodel import pipeline
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import BAD_INPUT, DIFFERS, DONE, Command
from fccomodel.app.cli._output import print_json, say
from fccomodel.core import files

#: The exit status if the command could not decide.
UNDECIDED = 3
#: The exit status by the verdict.
STATUS = {"same": DONE, "different": DIFFERS, "invalid": BAD_INPUT, "undecided": UNDECIDED}


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    to.add_argument("--against", required=True, metavar="KEY", help="the .fcco file that is right")
    shared.binding(to)
    to.add_argument(
        "--hints", action="store_true", help="say where the model differs, but not what the key says there"
    )
    to.add_argument(
        "--budget", default="5s", metavar="5s|5000it", help="of each of the two solves that tell the cost"
    )
    to.add_argument("--no-cost", action="store_true", help="no solves")
    shared.as_json(to)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app import grading

    key = pipeline.compile_model(files.read_model(args.against))
    binding = shared.binding_of(args)
    bound = pipeline.bind(key, binding) if binding else None
    budget = None if args.no_cost else args.budget
    found = grading.grade(files.read_model(args.model), key, bound, budget=budget)
    if args.json:
        print_json(found.record(hints=args.hints))
    else:
        say(found.text(hints=args.hints))
    return STATUS[found.verdict]


grade = Command(
    name="grade",
    summary="judge whether a model states the same problem as a key, and where it does not",
    detail="Names, order and notation do not count: values are compared at random points, on the data of the "
    "binding, if there is one, and on random data. What cannot be decided is called undecided. The exit "
    "status is 0 for the same problem, 1 for another one, 2 for a model with errors, 3 for undecided.",
    examples=(
        "fccomodel grade mine.fcco --against key.fcco",
        "fccomodel grade mine.fcco --against key.fcco --bind key.toml --json",
        "fccomodel grade mine.fcco --against key.fcco --hints --no-cost",
    ),
    arguments=arguments,
    run=run,
)
