"""F0213 and arguments: what the playground refuses."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT
from fccomodel.core.source import Span
from fccomodel.language.errors.names import INCLUDE


def no_include(path: str, span: Span) -> Diagnostic:
    """A text in the playground reads no file."""
    return INCLUDE.error(
        f'"{path}" is not read here',
        span=span,
        reason="The playground opens no file of this machine, since a model may come from a link.",
        fix="Write the statements of that file in its place.",
    )


def no_example(name: str, known: Sequence[str]) -> Diagnostic:
    """Data of the playground are those of an example, or drawn at random."""
    fix = did_you_mean(name, known) or f"There is {', '.join(f'`{k}`' for k in known)}."
    return ARGUMENT.error(f"There is no example `{name}`", fix=fix)


def no_port(port: int, error: Exception) -> Diagnostic:
    """The page has a port of this machine that is free."""
    return ARGUMENT.error(
        f"The port {port} cannot be used: {error}", fix="Take another one: --port 0 takes any free one."
    )
