"""The record that describes a regulariser.

The functions of a regulariser use methods of torch tensors alone, so that the source of each stands
by itself in a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fccomodel.core import ir
from fccomodel.library import sets

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Regulariser:
    """A closed convex r(w) with r(0) = 0 least.

    name             also its key in the registry
    meaning          its formula
    coefficients     names of its coefficients, each >= 0 (sizes >= 1), in the order of every
                     function's last arguments
    forms            how canonical models write it: names of atoms of the variable
    value            (w, *coefficients) -> scalar
    prox             (v, step, *coefficients) -> argmin over w of step r(w) + |w - v|^2/2
    step_per_entry   the step may be a tensor of v's shape: argmin over w of r(w) + sum of (w - v)^2/(2 step)
    subdifferential  where r is a sum over entries: (w, *coefficients) -> the least and the largest
                     subgradient of each entry
    distance         (s, w, *coefficients) -> the Euclidean distance of s to the subdifferential at w
    smooth           it has no kink
    round            r is a function of |w|_2; ``scales``: and its prox is one multiple of v, whatever v is
    sum_of           regularisers of one coefficient each that r is the sum of
    then             regularisers whose prox after that of r is the prox of the sum
    critical         (g, *coefficients) -> the least value of the first coefficient for which 0
                     minimises g.w + r(w); inf if none
    cite             where the prox is from
    """

    name: str
    meaning: str
    coefficients: tuple[str, ...]
    forms: tuple[str, ...]
    value: Callable[..., torch.Tensor]
    prox: Callable[..., torch.Tensor]
    distance: Callable[..., torch.Tensor]
    critical: Callable[..., float]
    step_per_entry: bool = False
    smooth: bool = False
    round: bool = False
    scales: bool = False
    sum_of: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    subdifferential: Callable[..., tuple[torch.Tensor, torch.Tensor]] | None = None
    cite: str = ""

    def then_projected(self, family: str) -> bool:
        """Whether the prox of r plus a set's indicator is the prox of r, then the projection onto
        the set."""
        simple = sets.all()[family]
        separable = self.subdifferential is not None
        return self.scales or separable and simple.entrywise or self.round and simple.round


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """A regulariser of a variable in the objective, with the values of its coefficients.

    centre the point from which it measures the variable; None: 0
    """

    regulariser: Regulariser
    variable: str
    coefficients: Mapping[str, float]
    centre: ir.Expr | None = None

    @property
    def name(self) -> str:
        """The name of the regulariser."""
        return self.regulariser.name

    def then_projected(self, domain: ir.VectorSet) -> bool:
        """Whether its prox, then the projection onto the set, is the prox of both.

        For balls both must have one centre.
        """
        if not self.regulariser.then_projected(domain.family):
            return False
        anywhere = self.regulariser.scales or sets.all()[domain.family].entrywise
        return anywhere or self.centre is None and domain.centre is None


def distance_to_interval(s: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """The Euclidean distance of s to the box [low, high]."""
    return ((low - s).relu() + (s - high).relu()).norm()


def never(g: torch.Tensor, *coefficients: float) -> float:
    """The critical coefficient inf: no finite one makes 0 a minimiser, unless g = 0."""
    if bool((g != 0).any()):
        return inf
    return 0.0
