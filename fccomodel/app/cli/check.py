"""``check MODEL...``: all errors of all files."""

from __future__ import annotations

import argparse

from fccomodel import pipeline
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import BAD_INPUT, DONE, Command
from fccomodel.app.cli._output import lint, say, show
from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    shared.models(to)
    shared.quiet(to)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    status = DONE
    for name in args.models:
        try:
            compiled = pipeline.compile_model(files.read_model(name))
        except FccoError as error:
            show(error.diagnostics, error.source)
            status = BAD_INPUT
            continue
        lint(compiled, args.quiet)
        say(f"{compiled.source.name}: ok ({_contents(compiled)})")
    return status


def _contents(compiled: pipeline.Compiled) -> str:
    """The contents of a model, in a few words."""
    problem = compiled.problem
    goal = f"{problem.objective.sense} {problem.objective.label or 'objective'}"
    labels = [c.label for c in problem.constraints]
    return f"{problem.name}: {goal}" + (f" subject to {', '.join(labels)}" if labels else "")


check = Command(
    name="check",
    summary="check a model: syntax, names, shapes, domains",
    detail="Every error is reported at once.",
    examples=(
        "fccomodel check model.fcco",
        "fccomodel check models/a.fcco models/b.fcco --quiet",
    ),
    arguments=arguments,
    run=run,
)
