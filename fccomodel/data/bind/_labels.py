"""Labels: their positions in the sets of the model, and the record of them that a later binding uses again."""

from __future__ import annotations

from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._encode import Built
from fccomodel.data.bind._sizes import Sizes
from fccomodel.data.bind._tables import Draft


def positions(built: Built, domain: ir.LabelSet, what: str, draft: Draft, sizes: Sizes) -> tuple[np.ndarray, list[str]]:
    """Positions in the set, and a note of labels that no row has; F0521 for a label that the set does not have."""
    assert built.labels is not None
    codes, unknown = sizes.positions(domain.name, built.labels, built.values)
    if unknown:
        first = int(np.flatnonzero(codes < 0)[0])
        known, place = sizes.labels[domain.name], sizes.ordered[domain.name]
        refuse(errors.sizes.not_in_set(what, unknown, domain.name, known, place, draft.rows.called(first)))
    if absent := len(sizes.labels[domain.name]) - len(np.unique(codes)):
        missing = np.setdiff1d(np.arange(len(sizes.labels[domain.name])), codes)[:4]
        shown = ", ".join(sizes.labels[domain.name][k] for k in missing) + (", ..." if absent > 4 else "")
        return codes, [f"{what}: no row has {shown} of {domain.name}"]
    return codes, []


def encoding_of(draft: Draft, sizes: Sizes) -> dict[str, Any]:
    """What was learned from the rows, by column, with the labels of the sets in it; JSON-like."""
    found: dict[str, Any] = {name: dict(built.encoding) for name, built in draft.columns.items()}
    named = {name: kind.domain for name, kind in draft.table.columns.items() if isinstance(kind.domain, ir.LabelSet)}
    if draft.table.family is not None and isinstance(draft.table.family.domain, ir.LabelSet):
        named[ir.FAMILY] = draft.table.family.domain
        found[ir.FAMILY] = {"kind": "family"}
    names = {name: domain.name for name, domain in named.items()}
    first = {name: str(kind.shape[0]) for name, kind in draft.table.columns.items() if kind.shape}
    names |= {name: chosen for name, chosen in first.items() if chosen in sizes.labels}
    for name, chosen in names.items():
        if name in found and chosen in sizes.labels:
            found[name] |= {"set": chosen, "labels": list(sizes.labels[chosen])}
    return found
