"""Cautions: facts about the data and the options that a reader should know before trusting an answer.

Every module of this package with a record ``Caution`` is one caution. A caution is not an error: the
problem that was solved is the given one. Cautions are shown next to the verdict; ordinary data have
none.
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
