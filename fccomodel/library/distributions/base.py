"""The record that describes a distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fccomodel.library.atoms import Domain, Interval


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution(Domain):
    """A distribution to draw from; ``Domain`` says where its parameters lie.

    name        as models write it
    meaning     its density or its probabilities, in one line
    parameters  their names, in order
    standard    the standard draws (see ``noise``) that a draw is made of
    torch       a draw, of the parameters' texts ``{0}``, ``{1}``, ... and that of a standard draw, ``{z}``
    program     the function of torch that the text calls, whose source programs carry, or None
    range       where a draw lies, of parameters in intervals
    bounded     draws are bounded, whatever the parameters are
    density     of parameters in intervals, it has one: no value has a probability of its own
    """

    name: str
    meaning: str
    parameters: tuple[str, ...]
    standard: str
    torch: str
    program: Callable[..., Any] | None = None
    range: Callable[..., Interval] = lambda *_: Interval()
    bounded: bool = False
    density: Callable[..., bool] = lambda *_: False

    @property
    def signature(self) -> str:
        """The call as error messages show it: ``normal(mean, sd)``."""
        return f"{self.name}({', '.join(self.parameters)})"
