"""``atoms [NAME]``: the functions of the language."""

from __future__ import annotations

import argparse

from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import cards

    print(cards.atoms(args.name))
    return DONE


atoms = Command(
    name="atoms",
    summary="list the functions of the language, or describe one",
    examples=(
        "fccomodel atoms",
        "fccomodel atoms log1pexp",
    ),
    arguments=shared.optional_name,
    run=run,
)
