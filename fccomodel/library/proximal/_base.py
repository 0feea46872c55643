"""Functions with a computable prox, as torch text and as batched numbers. The numbers come from
evaluating the text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from fccomodel.core.diagnostics import refuse
from fccomodel.library import errors

if TYPE_CHECKING:
    import torch

    Number = float | torch.Tensor


class Curvature(Protocol):
    """The facts about a function of one number that the proximal calculus reads."""

    @property
    def weakly_convex(self) -> bool:
        """Whether f + rho/2 |u|^2 is convex for some finite rho."""

    @property
    def rho(self) -> float | None:
        """The rho for which f + rho/2 |u|^2 is convex, or None."""

    @property
    def is_lipschitz(self) -> bool:
        """Whether f is Lipschitz continuous."""

    @property
    def C(self) -> float:
        """The Lipschitz constant of f."""

    @property
    def below(self) -> Any:
        """The verdict on weak convexity, with the reason if it is not proved."""


#: the curvature of an expression of one hole, which lies in an interval: ``facts(expr, holes={name:
#: interval})``
FactsOf = Callable[..., Curvature]

#: The largest share of the supremum of lam that emitted programs use for a weakly convex f.
SAFE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Proximal(ABC):
    """A closed f of a number (``rank`` 0, applied entry by entry) or of the last ``rank`` dims of an
    array, with its prox.

    All of it follows from the slope of the Moreau envelope of parameter lam at a point x
    (algorithms.md, notation),
        y = argmax over y of y.x - f*(y) - lam/2 |y|^2 = (x - prox(x))/lam, which a smoothing with
        centre c takes at x = t + lam c: y = argmax of y.t - f*(y) - lam/2 |y - c|^2 (hscg-2020,
        section 2.3). For f weakly convex the same y is the multiplier of v = t in min over v of
        f(v) + c.(t - v) + |t - v|^2/(2 lam).

    rank       number of trailing dims that f takes as one vector; -1: as many as there are
    lipschitz  C_f, in the Euclidean norm; inf if there is none
    weak       rho_f: f + rho_f/2 |u|^2 is convex; the prox needs lam < 1/rho_f
    diameter   largest distance of two points of the conjugate's domain
    tolerance  largest error of y, relative to 1 + |x|/lam, in float64 (0: rounding alone)
    how        the rule that gives the prox, in words
    """

    rank: int = 0
    lipschitz: float = inf
    weak: float = 0.0
    diameter: float = inf
    tolerance: float = 0.0
    how: str

    # ----------------------------------------------------------------------------------------- text
    @abstractmethod
    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f at the text of a tensor. ``dims`` are those that form one vector (() for
        rank 0)."""

    @abstractmethod
    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of y at the text of a tensor; ``lam``: text of a number, allowed where a name
        may stand."""

    def centred_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The text of y at t + lam c (c: text of the centre, "" for 0)."""
        return self.slope_text(f"({t} + {lam} * {c})" if c else t, lam, dims)

    def envelope_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The text of max over y of y.t - f*(y) - lam/2 |y - c|^2."""
        text = self.envelope_from(self.centred_text(t, lam, c, dims), t, lam, c, dims)
        assert text is not None, "an envelope that does not come from its slope has a text of its own"
        return text

    def envelope_from(
        self, y: str, t: str, lam: str, c: str, dims: tuple[int, ...], factor: str = ""
    ) -> str | None:
        """The text of the envelope of ``factor`` f (of f without one) from its slope y at t.

        None if ``envelope_text`` is a formula of its own, which does not use the slope.
        """
        value = self.value_text("v", dims)
        if factor:
            value = f"{factor} * ({value})"
        return f"moreau(lambda v: {value}, {t}, {y}, {c or '0'}, {lam}, {dims})"

    def largest(self) -> float:
        """The supremum 1/rho_f of the admissible lam."""
        if self.weak:
            return 1 / self.weak
        return inf

    # -------------------------------------------------------------------------------------- numbers
    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that f takes as one vector; the last one if the rank is open."""
        if self.rank >= 0:
            return tuple(range(-self.rank, 0))
        return (-1,)

    def value(self, u: torch.Tensor) -> torch.Tensor:
        """f(u), batched over the leading dims; inf outside the domain."""
        return evaluated(self.value_text("u", self.dims), {"u": u})

    def slope(self, t: torch.Tensor, lam: Number, c: torch.Tensor | None = None) -> torch.Tensor:
        """The gradient y of the envelope of parameter ``lam`` at t, centred at c."""
        self.admit(lam)
        return evaluated(
            self.centred_text("t", "lam", "" if c is None else "c", self.dims), {"t": t, "lam": lam, "c": c}
        )

    def prox(self, v: torch.Tensor, lam: Number) -> torch.Tensor:
        """argmin over u of f(u) + |u - v|^2/(2 lam)."""
        return v - lam * self.slope(v, lam)

    def envelope(self, t: torch.Tensor, lam: Number, c: torch.Tensor | None = None) -> torch.Tensor:
        """The Moreau envelope of parameter ``lam`` at t; with a centre, max over y of y.t - f*(y) -
        lam/2 |y - c|^2."""
        self.admit(lam)
        return evaluated(
            self.envelope_text("t", "lam", "" if c is None else "c", self.dims), {"t": t, "lam": lam, "c": c}
        )

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """f*(y) = max over u of y.u - f(u), inf outside its domain; None where no formula is known."""
        return None

    @property
    def domain(self) -> str:
        """The domain of the conjugate, in words."""
        return "everything"

    @property
    def dual(self) -> str:
        """The conjugate in words, to be followed by its domain."""
        return "max of u s - f(u), finite on"

    def admit(self, lam: Number) -> None:
        """Refuse a lam outside (0, 1/rho_f)."""
        if isinstance(lam, float | int):
            least, most = (lam, lam)
        else:
            least, most = (float(lam.min()), float(lam.max()))
        if not 0 < least or not most * self.weak < 1:
            refuse(errors.smoothing_too_large(most if least > 0 else least, self.weak))


def evaluated(text: str, names: Mapping[str, Any]) -> torch.Tensor:
    """The value of a proximal text of this package, with values for its names."""
    return eval(_code(text), {**_maps(), **names})  # noqa: S307 (the texts are this package's own)


@cache
def _code(text: str) -> Any:
    return compile(text, text, "eval")


@cache
def _maps() -> dict[str, Any]:
    import math

    import torch

    from fccomodel.library import reductions
    from fccomodel.library.proximal import maps

    functions = {name: f for name, f in vars(maps).items() if callable(f)}
    return {"torch": torch, "math": math, **functions, **reductions.programs()}
