"""Options that the user's own defaults have and this solve does not use, and options that look like
params of the model."""

from __future__ import annotations

from collections.abc import Iterator

from fccomodel.report.cautions._base import Caution, Subject


def not_used(subject: Subject) -> Iterator[str]:
    """The user's defaults that do not apply, with the reason."""
    for one in subject.unused:
        yield f"{one}."


def same_name(subject: Subject) -> Iterator[str]:
    """Options given that have the name of a param: the param keeps its value."""
    for name, value in subject.named.items():
        yield (
            f"{name} = {value} was given as an option of the algorithm; the model's param `{name}` "
            "keeps its own value."
        )


unused = Caution(name="options not used", find=not_used)
named = Caution(name="options named like params", find=same_name)
