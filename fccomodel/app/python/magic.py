"""The cell magic of ``%load_ext fccomodel``: a cell that begins with ``%%fcco NAME`` is a model."""

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
    """Register the cell magic in an IPython shell."""
    shell.register_magic_function(lambda line, cell: fcco(shell, line, cell), "cell", "fcco")


class _Arguments(argparse.ArgumentParser):
    """The parser of a cell's first line. It raises coded errors and does not exit."""

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
    """Read a cell as the text of a model, and assign the model to ``NAME``.

    With ``--bind FILE``, ``NAME`` is the model with its data. With ``--solve`` it is solved, and
    ``NAME_result`` is the result. F0805 if the first line cannot be understood; errors of the model
    show lines of the cell.
    """
    try:
        args = _parser().parse_args(shlex.split(line))
    except ValueError as error:  # an open quote
        refuse(errors.cell_arguments(str(error), USAGE))
    if not args.name.isidentifier():
        refuse(errors.cell_arguments(f"`{args.name}` is no name", USAGE))
    # The cell's first line is the magic itself: an empty line keeps the numbers of the others.
    model = Model.read(Source(text=f"\n{cell}", name=f"%%fcco {args.name}"))
    named: Any
    if args.bind is None:
        named = model.check()
    else:
        named = model.bind(spec=args.bind)
    shell.user_ns[args.name] = named
    if not args.solve:
        return named
    options: dict[str, Any] = {}
    if args.budget is not None:
        options["budget"] = args.budget
    if args.seed is not None:
        options["seed"] = args.seed
    result = named.solve(**options)
    shell.user_ns[f"{args.name}_result"] = result
    return result
