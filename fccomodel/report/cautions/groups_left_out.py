"""Groups of a label column have lost all their rows."""

from __future__ import annotations

from collections.abc import Iterator

from fccomodel.report.cautions._base import Caution, Subject, counted


def find(subject: Subject) -> Iterator[str]:
    """Warn, for each label column, of groups that rows with missing values took away."""
    for name, source in subject.bound.sources.items():
        for column, (before, after) in source.get("groups", {}).items():
            if after < before:
                yield (
                    f"Only {after:,} of {counted(before, 'group')} of {name}.{column} are left: the "
                    "others have no row in use."
                )


caution = Caution(name="groups left out", find=find, rank=0)
