"""What a reader should know of the data and the options before trusting an answer, one file per
caution, found by itself.

A caution is no error: the problem that was solved is the one that was asked for. It stands beside
the verdict, and it is silent on data that are as they are expected to be.
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
    """Everything that there is to say, those cautions first that weigh most."""
    order = sorted(all().values(), key=lambda caution: (caution.rank, caution.name))
    return tuple(Warned(caution.name, message) for caution in order for message in caution.find(subject))
