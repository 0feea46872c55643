"""Records of lowering: the slots of binders, their parts in a reduction, and estimators' buffers."""

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
    """The elements that a binder stands for in a program.

    binder      the binder
    ids         the ids of the elements in the table or set
    pos         their places in an estimator's buffer; None for draws
    n           length of this buffer
    draw        the draws of a distribution; None for elements of a set
    members     the ids that can occur; None for all
    selection   the conditions on the elements, if some involve other binders
    shared      the slot of a shared batch that this is a part of, and the attributes of ``within`` that
                take the part of a value
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
    """The cells of rows laid out flat. A cell is a combination of elements along complete axes.

    cells     key of an array with the cell of each row
    sizes     key of an array with the number of rows of each cell
    parents   the axes
    """

    cells: str
    sizes: str
    parents: tuple[Axis, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReducedBinder:
    """A binder of a reduction in a program.

    binder    the binder
    axis      the axis of its elements; None if they lie along another binder's axis
    count     number of elements of its range, without the effect of a mask
    weight    weight of each element; None for equal weights
    accept    share of the range that the mask accepts; None without a mask
    segment   the cells of the rows, if they are laid out flat
    parents   the outer binders that decide the range
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
    """The binders of one reduction: the slots of all binders, and a part for each of its own."""

    env: dict[ir.Binder, Slot]
    parts: tuple[ReducedBinder, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the parts."""
        return tuple(p.axis for p in self.parts if p.axis is not None)

    @property
    def related(self) -> bool:
        """Whether the range of one binder depends on another binder of the reduction."""
        own = {id(part.binder) for part in self.parts}
        return any(id(parent) in own for part in self.parts for parent in part.parents)


@dataclass(frozen=True, eq=False, kw_only=True)
class Way:
    """Settings for going through the elements of a reduction.

    body      the body of the reduction
    binders   its binders
    inner     whether elements are drawn for a mean
    chunk     whether a full pass takes the first binder in slices
    whole     whether all elements are taken, without a minibatch
    dense     whether rows may not be laid out flat by their keys
    total     whether the reduction has a value over no elements, as a sum has
    runs      whether rows of short runs may lie along an axis of places, in a full pass
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
        """Whether a binder's range depends on another binder of the reduction."""
        return any(p in self.binders for p in sel.parents)


@dataclass(frozen=True, kw_only=True)
class EstimatorState:
    """An estimator's state: one tracked value per block.

    name      name of the array in the program
    shape     its shape
    text      the expectation, as text
    node      the expectation
    binders   the binders whose elements are the blocks
    log       whether the logarithm is tracked
    """

    name: str
    shape: tuple[int, ...]
    text: str
    node: ir.Reduce
    binders: tuple[ir.Binder, ...] = ()
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Share:
    """The share of an axis that a rank has: blocks that it owns (``blocks``), or samples."""

    axis: Axis
    blocks: bool

    @property
    def sentence(self) -> str:
        """The axis with its size over all ranks, in words."""
        kind = "blocks by their owner" if self.blocks else "samples"
        return f"{self.axis.name} ({int(self.axis.size):,} in a step, {kind})"


@dataclass(frozen=True, kw_only=True)
class RankShares:
    """The distribution of a step over ranks.

    split    the axes that are split
    whole    the names of axes that every rank has as a whole, with the reason
    owners   for each estimate or centre whose blocks have owners, the dimension of the blocks, and the
             key of an array with their ids (None for all ids)
    """

    split: tuple[Share, ...]
    whole: Mapping[str, str]
    owners: Mapping[str, tuple[int, str | None]]

    @property
    def sentence(self) -> str:
        """The distribution in words, for the report."""
        text = f"ranks share {', '.join(share.sentence for share in self.split)}"
        for name, reason in self.whole.items():
            text += f"; every rank has all of {name}: {reason}"
        return text
