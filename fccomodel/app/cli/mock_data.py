"""``mock-data MODEL --out DIR``: data of the declared types, and the binding file that names them."""

from __future__ import annotations

import argparse
from pathlib import Path

from fccomodel import pipeline
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.core import files


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    to.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the folder that they are written to (here)",
    )
    to.add_argument("--rows", type=int, default=200, metavar="N", help="of each table (200)")
    to.add_argument("--seed", type=int, default=0, metavar="S", help="of the draws (0)")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.generated import mocking

    compiled = pipeline.compile_model(files.read_model(args.model))
    _, _, tables_drawn = mocking.drawn(compiled, rows=args.rows, seed=args.seed)
    for path in mocking.write(tables_drawn, compiled.problem.name, args.out):
        say(str(path))
    return DONE


mock_data = Command(
    name="mock-data",
    summary="draw data of the declared types, with a binding file",
    detail="So that a model runs before there is data.",
    examples=("fccomodel mock-data model.fcco -o mock",),
    arguments=arguments,
    run=run,
)
