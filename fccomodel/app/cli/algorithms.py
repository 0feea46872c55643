"""``algorithms [NAME] [--model MODEL]``: the algorithms, and the assumptions that a model meets."""

from __future__ import annotations

import argparse

from fccomodel import pipeline
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import print_json


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.optional_name(to)
    shared.as_json(to)
    to.add_argument("--model", metavar="MODEL", help="a .fcco file: how it meets each requirement")
    to.add_argument(
        "--variants", action="store_true", help="the forms that the papers give, and the state of each here"
    )
    shared.binding(to)
    shared.quiet(to)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import cards

    if args.variants:
        print(cards.variants())
        return DONE
    candidates = findings = None
    if args.model is not None:
        compiled, binding, chosen = shared.given(args)
        candidates, findings = pipeline.candidates(compiled, binding, chosen)
    if args.json:
        print_json(cards.algorithms_json(args.name, candidates))
    else:
        print(cards.algorithms(args.name, candidates, findings))
    return DONE


algorithms = Command(
    name="algorithms",
    summary="list the algorithms, or describe one: what it needs, gives, and where it is from",
    detail="With --model, what each would need there.",
    examples=(
        "fccomodel algorithms sonex",
        "fccomodel algorithms --model model.fcco --bind model.toml",
    ),
    arguments=arguments,
    run=run,
)
