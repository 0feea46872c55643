"""``solve MODEL --bind B [--out DIR]``: the answer, and its report."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import print_json, print_report, print_written, say
from fccomodel.core import process
from fccomodel.core.diagnostics import FccoError

if TYPE_CHECKING:
    from fccomodel import pipeline
    from fccomodel.app.stored.store import Claimed


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    shared.binding(to)
    shared.solving(to)
    shared.showing(to)
    shared.population(to)
    shared.starting(to)
    shared.several_starts(to)
    shared.keeping(to)
    to.add_argument(
        "--sensitivity", action="store_true", help="how the optimum moves with each constraint's right side"
    )
    to.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write result.json, variables.npz, solver.py and data.pt there",
    )
    shared.as_json(to, "print result.json in place of the report")
    shared.verbose(to)
    shared.quiet(to, "no progress, no lint notes, and one line in place of the report")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.stored import store

    if args.out is None or process.rank() > 0:
        return _run(args, None)
    with store.claim(args.out) as claimed:
        return _run(args, claimed)


def _run(args: argparse.Namespace, claimed: Claimed | None) -> int:
    planned = shared.plan(args)
    from fccomodel.app import new_rows
    from fccomodel.app.python import starts  # with torch: errors of the model do not wait for it
    from fccomodel.app.shown import display
    from fccomodel.app.stored import results
    from fccomodel.app.stored.checkpoints import kept
    from fccomodel.data.nets import in_train_mode
    from fccomodel.pipeline import training

    planned = starts.begun(planned, args.start)
    with kept(args.checkpoint, args.every, args.fresh) as checkpoints:
        planned = replace(planned, checkpoints=checkpoints)
        with display.progress(display.terminal(sys.stderr), quiet=args.quiet) as progress:
            solving = training.in_train_mode if in_train_mode(planned.bound.nets) else new_rows.solve
            outcome = solving(planned, progress, show=args.show, sensitive=args.sensitivity)
    try:
        if claimed is not None:
            record = results.save(outcome, claimed)
        else:
            record = None
    except FccoError:  # the answer is shown all the same
        _show(args, outcome, None)
        raise
    _show(args, outcome, record)
    if not (args.json or args.quiet):
        print_written(args.out, "--out DIR keeps the answer")
    return DONE


def _show(args: argparse.Namespace, outcome: pipeline.Outcome, record: dict[str, Any] | None) -> None:
    """The answer on standard output."""
    from fccomodel.app.shown import display
    from fccomodel.app.stored import results

    if args.json:
        print_json(record or results.to_json(outcome))
    elif args.quiet:
        if outcome.planned.plan.unverified:
            say(display.unverified(outcome.planned.plan))
        count = len(outcome.cautions)
        if count:
            cautions = f" ({count} caution{'s' * (count > 1)}: see the report)"
        else:
            cautions = ""
        say(f"{outcome.problem.name}: {outcome.report.objective:.6g}, {outcome.report.verdict}{cautions}")
    else:
        print_report(display.outcome(outcome, verbose=args.verbose))


solve = Command(
    name="solve",
    summary="solve a model and report on the answer",
    detail="The first Ctrl-C ends with the best point so far and its report; the second ends at once. "
    "With --checkpoint a run "
    "that was killed goes on when it is started again. Under torchrun (torchrun --nproc-per-node "
    "2 -m fccomodel solve ...) "
    "processes share the steps, and the first reports.",
    examples=(
        "fccomodel solve model.fcco --bind model.toml --budget 60s --out out",
        "fccomodel solve model.fcco --bind model.toml --budget 8h --checkpoint kept",
        "fccomodel solve model.fcco --data D=a.parquet --show auc --holdout 0.2",
        'fccomodel solve model.fcco --bind model.toml --net "s=mlp(64, 64)"',
    ),
    arguments=arguments,
    run=run,
    ranks="together",
)
