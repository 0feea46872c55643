"""``sweep MODEL --bind B --param tau=0.05,0.02,0.01``: one model for several values of its params."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import print_json, print_report, print_written, say
from fccomodel.core import files
from fccomodel.core.diagnostics import refuse
from fccomodel.core.interrupts import INTERRUPTED


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    shared.binding(to)
    shared.solving(to)
    shared.showing(to)
    shared.starting(to)
    group = to.add_argument_group("path of a regulariser's weight")
    group.add_argument(
        "--path", metavar="NAME", help="from the least value of this param at which zero is optimal, down"
    )
    group.add_argument("--count", type=int, default=50, metavar="N", help="values of the path (default 50)")
    group.add_argument(
        "--ratio", type=float, default=1e-3, metavar="R", help="of its last value to its first (default 1e-3)"
    )
    to.add_argument(
        "--out", type=Path, metavar="DIR", help="write sweep.json, sweep.csv and each solve's folder there"
    )
    to.add_argument("--plot", type=Path, metavar="FILE", help="draw the trade-off: .png, .svg or .pdf")
    shared.as_json(to, "print sweep.json in place of the table")
    shared.quiet(to, "no progress, no lint notes")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel import pipeline
    from fccomodel.app.python import sweeps
    from fccomodel.app.python.sweeps import display, errors
    from fccomodel.app.shown import plots

    values = {name: listed for name, listed in files.lists(args.param).items() if len(listed) > 1}
    args.param = [item for item in args.param if item.partition("=")[0].strip() not in values]
    if args.plot is not None:
        plots.require()
    if args.out is not None:
        files.make_folder(args.out)
    compiled, binding, chosen = shared.given(args)
    if not values and args.path is None or values and args.path is not None:
        refuse(errors.nothing_to_sweep(tuple(compiled.problem.params)))
    first = {name: listed[0] for name, listed in values.items()}
    whole = dataclasses.replace(binding, params={**binding.params, **first})
    bound = pipeline.bind(compiled, whole)

    def told(point: sweeps.SweepPoint, done: int, count: int) -> None:
        """Print a line for a solve that has ended."""
        if not args.quiet and point.outcome is not None:
            at = ", ".join(f"{name} = {value:g}" for name, value in point.values.items())
            say(f"{done}/{count}  {at}: objective {point.outcome.report.objective:.6g}", sys.stderr)

    if args.path is not None:
        solves = sweeps.path(
            compiled, whole, bound, args.path, chosen, count=args.count, ratio=args.ratio, progress=told
        )
    else:
        solves = sweeps.sweep(
            compiled, whole, bound, values, chosen, start=args.start, show=args.show, progress=told
        )
    if args.out is not None:
        solves.save(args.out)
    if args.plot is not None:
        solves.plot().savefig(args.plot, dpi=150)
    if args.json:
        print_json(solves.json)
    else:
        print_report(display.table(solves))
        print_written(args.out, "--out DIR keeps the table and every answer")
    if solves.interrupted:
        return INTERRUPTED
    return DONE


sweep = Command(
    name="sweep",
    summary="solve a model for several values of its params, each from the answer before",
    detail="Several params, --param tau=0.1,0.05 --param mu=0.01,0.1, are combined. Ctrl-C keeps the "
    "values that are done.",
    examples=("fccomodel sweep model.fcco --bind model.toml --param tau=0.1,0.05,0.02",),
    arguments=arguments,
    run=run,
    ranks="refused",
)
