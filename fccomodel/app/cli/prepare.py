"""``prepare BIND --out DIR``: a binding's tables as files that need not fit into memory."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.app.cli import _shared as shared
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import lint, say
from fccomodel.core import files
from fccomodel.core.diagnostics import refuse


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument(
        "bind", type=Path, metavar="BIND", help="a binding file (TOML): sources, columns, encoding"
    )
    to.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="the model (the .fcco file of the binding's name beside it)",
    )
    to.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="the folder that is written")
    to.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="of vectors (float32)")
    shared.data(to)
    to.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="set a parameter (repeatable)"
    )
    shared.quiet(to, "no progress, no lint notes")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.shown import display

    compiled = pipeline.compile_model(files.read_model(args.model or _beside(args.bind)))
    lint(compiled, args.quiet)
    binding = shared.binding_of(args)
    began = time.perf_counter()
    with display.rows_so_far(display.terminal(sys.stderr), quiet=args.quiet) as told:
        data_folder = pipeline.prepare(compiled, binding, args.out, dtype=args.dtype, told=told)
    if data_folder.again:
        say(f"{data_folder.folder} is written again: {data_folder.again}")
    for name, n in data_folder.tables.items():
        say(f"{name}: {n:,} rows")
    for note in data_folder.notes:
        say(f"  {note}")
    megabytes, seconds = data_folder.bytes / 1e6, time.perf_counter() - began
    say(f"{data_folder.folder}: {megabytes:,.1f} MB in {seconds:.1f} s; bind it with")
    for name in data_folder.tables:
        say(f'  [{name}] source = "{data_folder.folder}"     or --data {name}={data_folder.folder}')
    return DONE


def _beside(bind: Path) -> Path:
    """The model of a binding file; F0801 where there is none of its name."""
    model = bind.with_suffix(files.SUFFIX)
    if not model.is_file():
        refuse(errors.no_model_beside(bind, model))
    return model


prepare = Command(
    name="prepare",
    summary="write a binding's tables as files that are mapped into memory",
    detail="For data larger than memory. All settings of the binding apply, with the same results. Parquet "
    "files, also several (part-*.parquet), csv files and queries (duckdb:SELECT ..) are read in parts. Bind "
    'the folder by source = "DIR" or --data D=DIR. It is refused if a file is damaged, or if the source has '
    "changed.",
    examples=(
        "fccomodel prepare model.toml --out prepared",
        "fccomodel prepare model.toml --model other.fcco --dtype float64 --out prepared",
        "fccomodel prepare model.toml --data D=train.parquet --out prepared",
    ),
    arguments=arguments,
    run=run,
)
