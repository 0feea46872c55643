"""``options [NAME]``: what a solve can be told."""

from __future__ import annotations

import argparse

from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import cards

    print(cards.options(args.name))
    return DONE


options = Command(
    name="options",
    summary="list what a solve can be told, or describe one option: its values, its default by algorithm",
    examples=("fccomodel options", "fccomodel options budget"),
    arguments=shared.optional_name,
    run=run,
)
