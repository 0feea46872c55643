"""``%load_ext fccomodel``: a cell that begins with ``%%fcco NAME`` is the text of a model."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from fccomodel.app import errors
from fccomodel.app.python.modelling import Model
from fccomodel.core.diagnostics import refuse
from fccomodel.core.source import Source

USAGE = "%%fcco NAME [--bind FILE] [--solve] [--budget BUDGET] [--seed SEED]"


def load(shell: Any) -> None:
    """Register the cell magic, and show errors in cells as errors in files are shown."""
    shell.register_magic_function(lambda line, cell: fcco(shell, line, cell), "cell", "fcco")


class _Arguments(argparse.ArgumentParser):
    """A line of arguments, whose faults are coded errors."""

    def error(self, message: str) -> Any:
        """Refuse the arguments of a cell."""
        refuse(errors.cell_arguments(message, USAGE))


def _parser() -> _Arguments:
    parser = _Arguments(prog="%%fcco", add_help=False, allow_abbrev=False)
    parser.add_argument("name")
    parser.add_argument("--bind")
    parser.add_argument("--solve", action="store_true")
    parser.add_argument("--budget")
    parser.add_argument("--seed", type=int)
    return parser


def fcco(shell: Any, line: str, cell: str) -> Any:
    """The text of a model in a cell: ``NAME`` is the ``Model``, with ``--bind FILE`` the model with
    its data; with ``--solve`` it is solved, and ``NAME_result`` is the result. F0805 where the line
    is not understood; errors stand at the cell's lines."""
    try:
        args = _parser().parse_args(shlex.split(line))
    except ValueError as error:  # an open quote
        refuse(errors.cell_arguments(str(error), USAGE))
    if not args.name.isidentifier():
        refuse(errors.cell_arguments(f"`{args.name}` is no name", USAGE))
    model = Model.read(
        Source(text=f"\n{cell}", name=f"%%fcco {args.name}")
    )  # the first line of the cell is that of the magic
    made: Any
    if args.bind is None:
        made = model.check()
    else:
        made = model.bind(spec=args.bind)
    shell.user_ns[args.name] = made
    if not args.solve:
        return made
    given = {
        name: value for name, value in (("budget", args.budget), ("seed", args.seed)) if value is not None
    }
    shell.user_ns[f"{args.name}_result"] = result = made.solve(**given)
    return result
