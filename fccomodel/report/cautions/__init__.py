"""Cautions: facts about the data and the options that a reader should know before trusting an answer.
Each file here is one caution and is found automatically.

A caution is no error: the problem that was solved is the one that was asked for. It stands beside
the verdict. On ordinary data there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.core.registry import records
from fccomodel.report.cautions._base import Caution, Subject, Warned

__all__ = ["Caution", "Subject", "Warned", "all", "of"]


@cache
def all() -> Mapping[str, Caution]:  # noqa: A001 - the registry's verb, as in the other registries
    """Every caution by its name, in alphabetical order."""
    return records(__name__, Caution)


def of(subject: Subject) -> tuple[Warned, ...]:
    """All cautions about a subject, the most important first."""
    order = sorted(all().values(), key=lambda caution: (caution.rank, caution.name))
    return tuple(Warned(caution.name, message) for caution in order for message in caution.find(subject))
