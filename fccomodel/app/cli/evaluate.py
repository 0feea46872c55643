"""``evaluate RESULT_DIR [--data NAME=FILE] [--where EXPR]``: a stored answer on rows of choice."""

from __future__ import annotations

import argparse
from pathlib import Path

from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import print_json, print_report
from fccomodel.core import files


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument("result", type=Path, metavar="RESULT_DIR", help="a folder that `solve --out` wrote")
    shared.data(to)
    to.add_argument(
        "--where",
        metavar="EXPR",
        help="choose rows, in place of the binding's own `where`: \"split == 'test'\"",
    )
    shared.showing(to)
    shared.as_json(to)
    shared.verbose(to)
    shared.quiet(to)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import display
    from fccomodel.app.stored import results

    evaluation = results.evaluate(
        results.load(args.result),
        data=files.pairs(args.data, "--data"),
        nets=files.pairs(args.net, "--net"),
        data_dir=args.data_dir,
        where=args.where,
        allow_python=args.allow_python,
        show=args.show,
    )
    if args.json:
        print_json(evaluation.to_json())
    else:
        print_report(display.evaluation(evaluation, verbose=args.verbose))
    return DONE


evaluate = Command(
    name="evaluate",
    summary="judge a stored answer, on other rows too",
    detail="Scaling, categories and groups are those that the answer was solved with.",
    examples=(
        "fccomodel evaluate out",
        "fccomodel evaluate out --where \"split == 'test'\" --show auc",
        "fccomodel evaluate out --data D=test.csv --json",
    ),
    arguments=arguments,
    run=run,
)
