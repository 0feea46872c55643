"""The ball of the l1 norm around 0."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.atoms import Interval
from fccomodel.library.cones import Affine, Cones
from fccomodel.library.sets.base import Normals, SimpleSet, bounds, everywhere
from fccomodel.library.sets.simplex import project_simplex

if TYPE_CHECKING:
    import torch


def project_ball1(v: torch.Tensor, radius: float) -> torch.Tensor:
    """The nearest point: v inside, else the signs of v times the projection of |v| onto the
    simplex."""
    if float(radius) == 0:
        return 0 * v
    size = v.abs().reshape(-1)
    outside = (radius * project_simplex(size / radius)).view(v.shape) * v.sign()
    return outside.where(size.sum() > radius, v)


def ball1_in_steps(v: torch.Tensor, steps: torch.Tensor, radius: float) -> torch.Tensor:
    """The point v inside the ball, else v shrunk by t steps to the length of the radius.

    t is the largest root of the length's linear pieces.
    """
    size, own = v.abs().reshape(-1), steps.reshape(-1)
    order = (size / own).argsort(descending=True)
    t = ((size[order].cumsum(0) - radius) / own[order].cumsum(0)).amax()
    return ((v.abs() - t * steps).relu() * v.sign()).where(size.sum() > radius, v)


def _contains(w: torch.Tensor, radius: float, tolerance: float = 0.0) -> bool:
    return float(w.abs().sum()) <= float(radius) * (1 + 1e-13) + tolerance


def _on(w: torch.Tensor, radius: float, tolerance: float) -> bool:
    return 0 < float(radius) * (1 - 1e-12) - tolerance <= float(w.abs().sum())


def _normals(w: torch.Tensor, radius: float, tolerance: float = 0.0) -> Normals:
    """The normal cone's generators.

    On the boundary the signs of w; if an entry is 0, the cone has more generators than are
    listed.
    """
    point = everywhere(w, float(radius) == 0)
    on = _on(w, radius, tolerance)
    signs = w.sign().where(w.abs() > tolerance, 0 * w)
    return Normals(
        low=point, high=point, rows=signs.reshape(1, -1)[: int(on)], whole=not on or bool(signs.all())
    )


def _tangent(s: torch.Tensor, w: torch.Tensor, radius: float, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction.

    Normals are t times a subgradient of |w|_1: s less t sign(w), shrunk by t where w = 0. Take the
    least t >= 0 for which the norm does not rise. Its rise is convex, piecewise linear and falling
    in t, so that t is the largest root of its pieces.
    """
    if float(radius) == 0:
        return 0 * s
    if not _on(w, radius, tolerance):
        return s
    zero = w.abs() <= tolerance
    rise = (s * w.sign()).masked_fill(zero, 0.0).sum()
    apart = s.abs().where(zero, 0 * s).reshape(-1).sort(descending=True).values.cumsum(0)
    count = (~zero).sum() + apart.new_ones(len(apart)).cumsum(0)
    t = ((rise + apart) / count).amax().maximum(rise / (~zero).sum()).relu()
    return ((s.abs() - t).relu() * s.sign()).where(zero, s - t * w.sign())


def _cone(k: Cones, w: Affine, radius: float) -> None:
    size = k.variable(tuple(w.shape))
    for side in (1.0, -1.0):
        k.nonneg(size - w * side)
    k.nonneg(radius - size.sum())


ball1 = SimpleSet(
    name="ball1",
    meaning="|w|_1 <= radius",
    tex=r"\mathbb{B}_{1}\left(<0>\right)",
    arguments=("radius",),
    project=project_ball1,
    in_steps=ball1_in_steps,
    contains=_contains,
    normals=_normals,
    tangent=_tangent,
    support=lambda s, radius: radius * s.abs().max(),
    domain=(Interval(0.0, inf),),
    cone=_cone,
    entries=lambda radius: Interval(-bounds(radius, True), bounds(radius, True)),
    length=lambda shape, radius: radius.hi,
    levels={"norm1": lambda t: (t,)},
    cite="J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, Efficient projections onto the l1-ball, "
    "ICML 2008",
)
