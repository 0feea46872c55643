"""Collecting what is wrong with a binding, so that one run shows all of it."""

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
    """The errors so far. ``collect`` runs a step, keeps the error that ended it, and lets the next
    step begin."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def add(self, diagnostic: Diagnostic, *, place: str = "") -> None:
        """Note one error; ``place`` (``name.toml:4``) goes before the message, in place of one in the
        model."""
        self.diagnostics.append(
            replace(diagnostic, message=f"{place}: {diagnostic.message}", span=None) if place else diagnostic
        )

    @contextmanager
    def collect(self, *, span: Span | None = None, place: str = "") -> Iterator[None]:
        """Keep the errors that the block raises, at ``place`` of the binding file or else at ``span``
        of the model."""
        try:
            yield
        except FccoError as error:
            for d in error.diagnostics:
                placed = d.message.startswith(f"{place.partition(':')[0]}:")
                if place and not placed:
                    message = f"{place}: {d.message}"
                else:
                    message = d.message
                self.diagnostics.append(
                    replace(
                        d, message=message, span=d.span or (None if place or PLACED.match(message) else span)
                    )
                )

    def stop(self, source: Source | None) -> None:
        """Raise the errors so far, if there are any; equal ones are shown once."""
        if self.diagnostics:
            raise FccoError(dict.fromkeys(self.diagnostics), source)
