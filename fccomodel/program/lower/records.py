"""What binders become when a problem is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.operations import Axis, Val


@dataclass(frozen=True, eq=False, kw_only=True)
class Slot:
    """What a binder stands for: ``ids`` of its elements in the table or set, ``pos`` in an estimator's
    buffer of length ``n``.

    members     ids that it takes
    selection   the conditions that these satisfy, where some are about other binders
    shared      the batch that it is a part of, and how to take the part of a value
    """

    binder: ir.Binder
    ids: Val
    pos: Val | None
    n: int
    draw: Val | None = None
    members: np.ndarray | None = None
    selection: Selection | None = None
    shared: tuple[Slot, Mapping[str, Any]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Segment:
    """Rows laid out flat, each with the cell of ``parents`` (complete axes) that it belongs to."""

    cells: str
    sizes: str
    parents: tuple[Axis, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """One binder of a reduction: its axis (None: along that of another), their number, and its
    segments if keyed.

    weight   per element, None: all alike
    count    elements of the whole range (without a
             mask's effect)
    accept   share of the range that the mask lets through, None without a mask
    """

    binder: ir.Binder
    axis: Axis | None
    count: Val
    weight: Val | None = None
    accept: Val | None = None
    segment: Segment | None = None
    parents: tuple[ir.Binder, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranged:
    """The binders of one reduction made concrete."""

    env: dict[ir.Binder, Slot]
    parts: tuple[Part, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes that the parts made."""
        return tuple(p.axis for p in self.parts if p.axis is not None)

    @property
    def related(self) -> bool:
        """The range of one binder depends on another of the same reduction."""
        binders = {id(p.binder) for p in self.parts}
        return any(id(b) in binders for p in self.parts for b in p.parents)


@dataclass(frozen=True, eq=False, kw_only=True)
class Way:
    """How a reduction of ``body`` goes through its ``binders``.

    inner   drawn for a mean
    chunk   the first binder goes through in slices (full pass)
    whole   no minibatch
    dense   no rows laid out flat by their keys
    total   it has a value over no elements
    runs    rows of short runs may lie along an axis of
            places (full pass)
    """

    body: ir.Expr
    binders: frozenset[ir.Binder] = frozenset()
    inner: bool = False
    chunk: bool = False
    whole: bool = False
    dense: bool = False
    total: bool = False
    runs: bool = False

    def inside(self, sel: Selection) -> bool:
        """A binder's range depends on another of the same reduction."""
        return any(p in self.binders for p in sel.parents)


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """An estimator's state: one tracked value per block, that of ``node`` (``log``: its logarithm) at
    elements of ``binders``."""

    name: str
    shape: tuple[int, ...]
    text: str
    node: ir.Reduce
    binders: tuple[ir.Binder, ...] = ()
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a rank has of an axis: the ``blocks`` that it owns, or samples; ``size``: of all ranks
    together."""

    axis: Axis
    blocks: bool

    @property
    def sentence(self) -> str:
        """The axis with its size and what is shared, in words."""
        what = "blocks by their owner" if self.blocks else "samples"
        return f"{self.axis.name} ({int(self.axis.size):,} in a step, {what})"


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Of the axes of a step: ``split`` over ranks; on every rank as a ``whole``, with the reason; and
    by the name of an estimate or centre that is kept by owners, along which dim, and the array of
    their ids (None: all of them)."""

    split: tuple[Share, ...]
    whole: Mapping[str, str]
    owners: Mapping[str, tuple[int, str | None]]

    @property
    def sentence(self) -> str:
        """For the report."""
        kept = "".join(f"; every rank has all of {name}: {reason}" for name, reason in self.whole.items())
        return f"ranks share {', '.join(share.sentence for share in self.split)}{kept}"
