"""Every error a user can meet: a stable code, a place, what is wrong, why, and a fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fccomodel.source import Source, Span


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding about a model, its binding or its run.

    code      stable identifier, e.g. ``F0203``; listed with its meaning in ``CODES``
    message   what is wrong, in the user's own words (shown under the caret)
    span      where, or None where no text is to blame (a missing file, say)
    reason    the rule that was broken
    fix       what to write instead
    severity  ``error`` or ``warning`` (a lint note)
    """

    code: str
    message: str
    span: Span | None = None
    reason: str = ""
    fix: str = ""
    severity: str = "error"


class FccoError(Exception):
    """Raised with every diagnostic found so far; the command line turns it into exit status 2."""

    def __init__(self, diagnostics: Iterable[Diagnostic], source: Source | None = None):
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(render(self.diagnostics, source))


#: code -> topic. The first two digits are the stage: 01 syntax, 02 names, 03 shapes and types, 04 domains and structure,
#: 05 binding of data, 06 planning, 07 running, 08 files and options.
CODES: dict[str, str] = {}
