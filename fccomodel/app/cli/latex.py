"""``latex MODEL [--form problem|normal|smoothed]``: a model as mathematics, ready for a paper."""

from __future__ import annotations

import argparse

from fccomodel import pipeline
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.model(to)
    shared.binding(to)
    shared.quiet(to)
    to.add_argument(
        "--form",
        choices=("problem", "normal", "smoothed"),
        action="append",
        help="as written, with a name for every tracked expectation, or with penalties and envelopes; "
        "given again for more (all)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import latex

    compiled, binding, options = shared.given(args)
    forms = args.form or list(latex.FORMS)
    if set(forms) - {"problem"}:
        explained = pipeline.explain(compiled, binding, options)
    else:
        explained = None
    say("\n".join(latex.written(compiled.problem, explained, which) for which in forms).rstrip("\n"))
    return DONE


latex = Command(
    name="latex",
    summary="a model as LaTeX: as written, in normal form, smoothed",
    detail="The forms that solvers see are those of the algorithm that is chosen.",
    examples=("fccomodel latex model.fcco --form problem",),
    arguments=arguments,
    run=run,
)
