"""``compare MODEL --bind B --algorithms A,B --seeds N``: algorithms side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fccomodel.app import errors
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import print_json, print_report, print_written
from fccomodel.app.stored.comparison import errors as comparison_errors
from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.interrupts import INTERRUPTED


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    shared.binding(to)
    group = shared.solving(to, many=True)
    which = 'which; with options of their own: "sox(gamma=0.1),alexr"; see `fccomodel algorithms`'
    group.add_argument("--algorithms", required=True, metavar="A,B,C", help=which)
    group.add_argument("--seeds", default="5", metavar="N|S,S,..", help="how many, or which (default 5)")
    group.add_argument(
        "--jobs", type=int, metavar="N", help="processes (default: as many as there are processors)"
    )
    group = to.add_argument_group("judging")
    group.add_argument(
        "--tune", action="store_true", help="choose hyper-parameters from the papers' grids on held-out rows"
    )
    group.add_argument(
        "--validation", metavar="EXPR|SHARE", help="those rows: \"split == 'val'\", or a share (default 0.2)"
    )
    group.add_argument(
        "--test", metavar="EXPR", help="evaluate the answers on these rows too: \"split == 'test'\""
    )
    group.add_argument(
        "--reference", type=float, metavar="F", help="the known optimal value: adds the gap to it"
    )
    group.add_argument(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="V",
        help="violation that counts as none (default 1e-3)",
    )
    shared.showing(group)
    shared.keeping(to)
    to.add_argument("--out", type=Path, metavar="DIR", help="write compare.json and compare.csv there")
    to.add_argument("--plot", action="store_true", help="write the curves there, as PNG and SVG")
    shared.as_json(to, "print compare.json in place of the table")
    shared.quiet(to, "no progress, no lint notes")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown.display import terminal
    from fccomodel.app.stored import comparison
    from fccomodel.app.stored.checkpoints import kept
    from fccomodel.app.stored.comparison import display, plots, variants

    if args.plot:
        if args.out is None:
            refuse(errors.no_folder_for_plots())
        plots.require()
    if args.out is not None:
        files.make_folder(args.out)
    compiled, binding, chosen = shared.given(args)
    with (
        kept(args.checkpoint, args.every, args.fresh) as checkpoints,
        display.progress(terminal(sys.stderr), quiet=args.quiet) as progress,
    ):
        contest = comparison.Contest(
            algorithms=variants.split(args.algorithms),
            seeds=_seeds(args.seeds),
            tuning=args.tune,
            validation=_share(args.validation),
            test=args.test,
            show=args.show,
            reference=args.reference,
            tolerance=args.tolerance,
        )
        record = comparison.compare(
            compiled,
            binding,
            contest,
            chosen=chosen,
            jobs=args.jobs,
            checkpoints=checkpoints,
            progress=progress,
        )
    if args.out is not None:
        record.save(args.out, plot=args.plot)
    if args.json:
        print_json(record.to_json())
    else:
        print_report(display.comparison(record))
        print_written(args.out, "--out DIR keeps the record")
    if record.interrupted:
        return INTERRUPTED
    return DONE


def _seeds(text: str) -> int | list[int]:
    """``5`` is how many; ``3,`` and ``0,1,7`` are which."""
    try:
        if "," in text:
            return [int(part) for part in text.split(",") if part.strip()]
        return int(text)
    except ValueError:
        raise FccoError([comparison_errors.not_seeds(text)]) from None


def _share(text: str | None) -> str | float | None:
    """A number is a share of the rows, all else a condition on them."""
    try:
        if text is None:
            share = None
        else:
            share = float(text)
    except ValueError:
        return text
    if share is not None and not 0 < share < 1:
        refuse(comparison_errors.not_a_share(text))
    return share


compare = Command(
    name="compare",
    summary="run algorithms side by side on the same oracle budget",
    detail="Every value is computed from the problem as written. Ctrl-C ends with the runs that are "
    "done. With --checkpoint a "
    "comparison that was killed goes on with the others. Under torchrun each run is one of all processes.",
    examples=("fccomodel compare model.fcco --bind model.toml --algorithms sonex,alexr2",),
    arguments=arguments,
    run=run,
    ranks="together",
)
