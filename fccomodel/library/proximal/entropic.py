"""The maximum entry, smoothed by entropy on the simplex instead of half squares (hscg-2020, section
2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.proximal.largest import Largest

if TYPE_CHECKING:
    import torch

    from fccomodel.library.proximal._base import Number


@dataclass(frozen=True, kw_only=True, eq=False)
class Entropic(Largest):
    """The maximum f(u) = max u, smoothed by entropy.

    f_lam(t) = max over q of the simplex of q.t - lam sum q log (q / c) = lam log sum c exp(t /
    lam). Its slope is q ~ c exp(t / lam). The centre c = 0 means the uniform one, with Nesterov's
    b(q) = log n + sum q log q and f_lam <= f <= f_lam + lam log n. An entry of -inf is left out.
    """

    @classmethod
    def smoothing(cls, function: Largest) -> Entropic:
        """The entropic smoothing of a maximum."""
        how = "entropy on the simplex: its weights are proportional to exp(t / lam)"
        return cls(kind=function.kind, rank=function.rank, lipschitz=1.0, diameter=inf, how=how)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the softmax weights without a centre."""
        return self.centred_text(x, lam, "", dims)

    def centred_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The text of the softmax weights relative to the centre."""
        return f"entropic_weights({t}, {lam}, {c or '0'}, {dims})"

    def envelope_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The text of the weighted log-sum-exp."""
        return f"entropic_value({t}, {lam}, {c or '0'}, {dims})"

    def envelope_from(
        self, y: str, t: str, lam: str, c: str, dims: tuple[int, ...], factor: str = ""
    ) -> str | None:
        """None: ``entropic_value`` does not use the weights."""
        return None

    def prox(self, v: torch.Tensor, lam: Number) -> torch.Tensor:
        """The prox of the maximum itself, in the Euclidean norm."""
        return Largest.of(self.kind, rank=self.rank).prox(v, lam)
