"""``lsp``: the language server, which an editor starts."""

from __future__ import annotations

import argparse
from pathlib import Path

from fccomodel.app import errors
from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.core.diagnostics import refuse


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument(
        "--vscode", type=Path, metavar="DIR", help="write an extension for VS Code there, and end"
    )
    to.add_argument("--stdio", action="store_true", help="speak on standard input and output (always so)")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    if args.vscode is not None:
        from fccomodel.app.generated import colours

        for path in colours.write_extension(args.vscode):
            say(f"written: {path}")
        return DONE
    try:
        from fccomodel.app.editor import server
    except ImportError as error:
        refuse(errors.no_editor(error))
    server.made().start_io()
    return DONE


lsp = Command(
    name="lsp",
    summary="the language server, which an editor starts",
    detail="Errors while you type, facts of the expression under the cursor, completions, renaming, fixes, "
    "formatting. It needs the extra `editor` (pip install 'fccomodel[editor]').",
    examples=("fccomodel lsp", "fccomodel lsp --vscode extension"),
    arguments=arguments,
    run=run,
)
