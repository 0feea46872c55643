"""The arguments that several commands take, and the records made of them: model, binding, options, plan."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.app.cli._output import lint
from fccomodel.core import files, options, process
from fccomodel.core.diagnostics import refuse

#: A command's parser, or a group of its arguments.
Into = argparse.ArgumentParser | argparse._ArgumentGroup
#: Options that have an argument of their own.
NAMED = (
    "algorithm",
    "unverified",
    "polish",
    "tol",
    "seed",
    "starts",
    "device",
    "precision",
    "backend",
    "budget",
    "holdout",
    "margin",
    "population",
)


# ---------------------------------------------------------------------------------------- arguments
def model(to: Into) -> None:
    """Add the argument for a model."""
    to.add_argument("model", metavar="MODEL", help="a .fcco file; - reads standard input")


def models(to: Into) -> None:
    """Add the argument for several models."""
    to.add_argument("models", nargs="+", metavar="MODEL", help="a .fcco file; - reads standard input")


def optional_name(to: Into) -> None:
    """Add the argument for a name that may be left out."""
    to.add_argument("name", nargs="?", metavar="NAME")


def verbose(to: Into) -> None:
    """Add ``--verbose``."""
    to.add_argument(
        "-v", "--verbose", action="store_true", help="the whole report: assumptions, practice, every option"
    )


def quiet(to: Into, text: str = "no lint notes") -> None:
    """Add ``--quiet``."""
    to.add_argument("-q", "--quiet", action="store_true", help=text)


def as_json(to: Into, text: str = "print JSON") -> None:
    """Add ``--json``."""
    to.add_argument("--json", action="store_true", help=text)


def showing(to: Into) -> None:
    """Add ``--show``."""
    to.add_argument(
        "--show",
        action="append",
        default=[],
        metavar="NAME",
        help="report the value of this `let` too (repeatable)",
    )


def data(to: Into) -> None:
    """Add the arguments for data and nets."""
    to.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="the folder that file names in the binding start from"
    )
    to.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="bind a table or an array (repeatable)",
    )
    to.add_argument(
        "--net",
        action="append",
        default=[],
        metavar="NAME=SPEC",
        help='"s=mlp(64, 64, activation=elu)" or s=nets.py:Mlp',
    )
    to.add_argument("--allow-python", action="store_true", help="run the Python file that a --net names")


def binding(to: argparse.ArgumentParser) -> None:
    """Add the arguments for a binding: file, data, params, nets."""
    group = to.add_argument_group("binding")
    group.add_argument(
        "--bind", type=Path, metavar="FILE", help="a binding file (TOML): sources, columns, encoding"
    )
    data(group)
    group.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="set a parameter (repeatable)"
    )


def solving(to: argparse.ArgumentParser, *, many: bool = False) -> Into:
    """Add the options of a run, or of ``many`` runs. Returns the group of arguments."""
    group = to.add_argument_group("solving")
    if not many:
        group.add_argument(
            "--algorithm",
            metavar="NAME",
            help="in place of the one chosen; race: a few start, the best goes on",
        )
        group.add_argument(
            "--seed", type=options.value_of, metavar="S", help="of every random choice (default 0)"
        )
    group.add_argument("--device", metavar="auto|cpu|cuda", help="where to run (default auto)")
    group.add_argument(
        "--precision",
        metavar="float32|float64|bfloat16",
        help="of the steps; reports are always float64. bfloat16: nets by autocast, all else float32",
    )
    group.add_argument(
        "--backend",
        metavar="NAME",
        help="what runs steps: auto (default), eager, traced, compiled, cuda-graph",
    )
    group.add_argument("--budget", metavar="60s|5000it|1e6oracles", help="time, iterations or oracle calls")
    group.add_argument(
        "--tol", type=options.value_of, metavar="X", help="KKT residual to stop at (default 1e-6)"
    )
    group.add_argument(
        "--no-polish",
        dest="polish",
        action="store_false",
        default=None,
        help="no finish by passes over all rows",
    )
    group.add_argument(
        "--unverified",
        action="store_true",
        default=None,
        help="run even where no algorithm's theorem covers the model",
    )
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the algorithm",
    )
    return group


def starting(to: Into) -> None:
    """Add ``--start``."""
    to.add_argument(
        "--start",
        type=Path,
        metavar="DIR",
        help="begin at the answer in this folder, of this model or one like it",
    )


def several_starts(to: Into) -> None:
    """Add ``--starts``."""
    to.add_argument(
        "--starts",
        type=options.value_of,
        metavar="N",
        help="run from so many first points, with equal parts of the budget, and keep the best answer",
    )


def keeping(to: Into) -> None:
    """Add the arguments for checkpoints."""
    group = to
    if isinstance(to, argparse.ArgumentParser):
        group = to.add_argument_group("checkpoints")
    where = (
        "keep the state in this folder, and go on from there after a kill; SIGTERM writes it, and "
        "ends with status 143"
    )
    group.add_argument("--checkpoint", type=Path, metavar="DIR", help=where)
    group.add_argument("--every", metavar="TIME", help="how often (default 60s)")
    group.add_argument("--fresh", action="store_true", help="begin anew, whatever the folder has")


def population(to: argparse.ArgumentParser) -> None:
    """Add the arguments for statements about new rows."""
    group = to.add_argument_group("new rows")
    judged = "judge the answer by rows left out: \"split == 'test'\", or 0.2 of them"
    group.add_argument("--holdout", type=options.value_of, metavar="EXPR|SHARE", help=judged)
    tightened = (
        "tighten constraints on expectations over rows so that all hold for new rows with this "
        "confidence: 0.95"
    )
    group.add_argument("--margin", type=options.value_of, metavar="CONFIDENCE", help=tightened)
    gap = (
        "an interval of the optimality gap for new rows, by answers on resampled ones, in so much time (60s)"
    )
    group.add_argument("--population", metavar="TIME", help=gap)


# ------------------------------------------------------------------------------------------ records
def plan(args: argparse.Namespace) -> pipeline.Planned:
    """The plan that the command line asks for."""
    return pipeline.plan(*given(args))


def binding_of(args: argparse.Namespace) -> pipeline.Binding:
    """The binding that the command line names."""
    return pipeline.Binding(
        spec=args.bind,
        data=files.pairs(args.data, "--data"),
        params=files.numbers(args.param),
        nets=files.pairs(args.net, "--net"),
        data_dir=args.data_dir,
        allow_python=args.allow_python,
        given_as=options.COMMAND,
    )


def given(args: argparse.Namespace) -> tuple[pipeline.Compiled, pipeline.Binding, options.Origins]:
    """The model, its binding and the options that the command line names. Prints lint notes."""
    named, binding = _named(args), binding_of(args)
    compiled = pipeline.compile_model(files.read_model(args.model))
    lint(compiled, args.quiet, getattr(args, "show", ()))
    return compiled, binding, options.resolve(named, compiled.problem.options, options.configuration())


def _named(args: argparse.Namespace) -> dict[str, Any]:
    """The options given by ``--option`` or by their own arguments. Refuses a contradiction."""
    given = files.pairs(getattr(args, "option", []), "--option")
    values: dict[str, Any] = {name: options.value_of(text) for name, text in given.items()}
    for name in NAMED:
        value = getattr(args, name, None)
        if value is not None and values.setdefault(name, value) != value:
            refuse(errors.contradiction(name, value, values[name]))
    if process.launched():
        values.setdefault("ranks", True)
    return values
