"""Collects the errors of a binding, so that one run shows all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source, Span

#: A message that already begins with a line of a binding file.
PLACED = re.compile(r"[^:\n]+\.toml:\d+: ")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Put ``place`` (``name.toml:4``, or nothing) before the messages of the errors that the block raises."""
    try:
        yield
    except FccoError as error:
        if not place:
            raise
        raise FccoError(replace(d, message=f"{place}: {d.message}") for d in error.diagnostics) from None


class Errors:
    """The errors so far. ``collect`` runs a step and keeps its error, so that the next step can begin."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def add(self, diagnostic: Diagnostic, *, place: str = "") -> None:
        """Add one error. A ``place`` (``name.toml:4``) stands before the message and replaces the place
        in the model."""
        if place:
            diagnostic = replace(diagnostic, message=f"{place}: {diagnostic.message}", span=None)
        self.diagnostics.append(diagnostic)

    @contextmanager
    def collect(self, *, span: Span | None = None, place: str = "") -> Iterator[None]:
        """Keep the errors that the block raises.

        place   their place in the binding file, ``name.toml:4``
        span    their place in the model, if they have none in the binding file
        """
        try:
            yield
        except FccoError as error:
            for diagnostic in error.diagnostics:
                message = diagnostic.message
                if place and not message.startswith(f"{place.partition(':')[0]}:"):
                    message = f"{place}: {message}"
                in_file = bool(place) or PLACED.match(message) is not None
                kept_span = diagnostic.span or (None if in_file else span)
                self.diagnostics.append(replace(diagnostic, message=message, span=kept_span))

    def stop(self, source: Source | None) -> None:
        """Raise the errors so far, if there are any, each once."""
        if self.diagnostics:
            raise FccoError(dict.fromkeys(self.diagnostics), source)
