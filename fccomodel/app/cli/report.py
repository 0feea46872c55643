"""``report DIR [-o report.html]``: a stored answer as a page to send."""

from __future__ import annotations

import argparse
from pathlib import Path

from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.core.files import write_text


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument("result", type=Path, metavar="RESULT_DIR", help="a folder that `solve --out` wrote")
    to.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where to write it (default RESULT_DIR/report.html)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import page
    from fccomodel.app.stored import results

    path = args.output or args.result / "report.html"
    write_text(path, page.html(results.load(args.result)))
    say(f"written: {path}")
    return DONE


report = Command(
    name="report",
    summary="a stored answer as one page for a browser",
    detail="One file without network: mathematics, pictures, the KKT table, assumptions, how to run it "
    "again.",
    examples=("fccomodel report out -o report.html",),
    arguments=arguments,
    run=run,
)
