"""``playground``: a page on this machine in which models are written, explained and solved."""

from __future__ import annotations

import argparse
import webbrowser

from fccomodel.app.cli._command import DONE, Command
from fccomodel.app.cli._output import say
from fccomodel.app.playground import PORT
from fccomodel.core.diagnostics import refuse


def arguments(to: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    to.add_argument("--port", type=int, default=PORT, metavar="N", help=f"the port ({PORT}; 0: any free one)")
    to.add_argument("--no-browser", action="store_true", help="show the address, and open no browser")


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from fccomodel.app.playground import errors
    from fccomodel.app.playground.server import Playground

    try:
        server = Playground(args.port)
    except (OSError, OverflowError) as error:
        refuse(errors.no_port(args.port, error))
    with server:
        say(f"Open {server.address}")
        say("It is for this machine only. Ctrl-C ends it.")
        if not args.no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("Ended.")
    return DONE


playground = Command(
    name="playground",
    summary="a page on this machine to write, explain and solve models",
    detail="An editor with the errors, the mathematics, the structure with the rule behind each fact, what "
    "each algorithm lacks, and a solve with the data of an example. A model is shared by a link.",
    examples=("fccomodel playground", "fccomodel playground --port 0 --no-browser"),
    arguments=arguments,
    run=run,
)
