"""Labels of rows: their positions in the model's sets, and the record that a later binding reuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._encode import Built
from fccomodel.data.bind._sizes import KnownSizes
from fccomodel.data.bind._tables import TableDraft


def positions(
    built: Built, domain: ir.LabelSet, what: str, draft: TableDraft, sizes: KnownSizes
) -> tuple[np.ndarray, list[str]]:
    """The position of each row's label in its set, and a note on labels that no row has.

    F0521 for a label that is not in the set.
    """
    assert built.labels is not None
    codes, unknown = sizes.positions(domain.name, built.labels, built.values)
    if unknown:
        first = int(np.flatnonzero(codes < 0)[0])
        name, row = domain.name, draft.rows.called(first)
        known, place, counted = sizes.labels[name], sizes.label_places[name], name in sizes.counted
        refuse(errors.sizes.not_in_set(what, unknown, name, known, place, row, counted=counted))
    missing = np.flatnonzero(np.bincount(codes, minlength=len(sizes.labels[domain.name])) == 0)
    if not len(missing):
        return codes, []
    shown = ", ".join(sizes.labels[domain.name][k] for k in missing[:4])
    if len(missing) > 4:
        shown += ", ..."
    return codes, [f"{what}: no row has {shown} of {domain.name}"]


def as_prepared(draft: TableDraft, columns: Mapping[str, np.ndarray]) -> bool:
    """Whether the prepared groups and orders of a table hold: all its rows, with unchanged positions."""
    same_positions = all(
        columns.get(name) is built.values for name, built in draft.columns.items() if built.labels is not None
    )
    return same_positions and draft.rows.indices is None and draft.opened.family is None


def encoding_of(draft: TableDraft, sizes: KnownSizes) -> dict[str, Any]:
    """The encoding learned from the rows, by column, with the labels of the sets in it; JSON-like."""
    records: dict[str, Any] = {name: dict(built.encoding) for name, built in draft.columns.items()}
    domains = {
        name: kind.domain
        for name, kind in draft.table.columns.items()
        if isinstance(kind.domain, ir.LabelSet)
    }
    if draft.table.family is not None and isinstance(draft.table.family.domain, ir.LabelSet):
        domains[ir.FAMILY] = draft.table.family.domain
        records[ir.FAMILY] = {"kind": "family"}
    set_names = {name: domain.name for name, domain in domains.items()}
    first_axes = {name: str(kind.shape[0]) for name, kind in draft.table.columns.items() if kind.shape}
    set_names |= {name: set_name for name, set_name in first_axes.items() if set_name in sizes.labels}
    for name, set_name in set_names.items():
        if name in records and set_name in sizes.labels:
            records[name] |= {"set": set_name, "labels": list(sizes.labels[set_name])}
    return records
