"""The Euclidean ball around 0 (of a matrix: the Frobenius norm)."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.atoms import Interval
from fccomodel.library.sets.base import Normals, SimpleSet, bounds, everywhere

if TYPE_CHECKING:
    import torch


def project_ball(v: torch.Tensor, radius: float) -> torch.Tensor:
    """The vector v, shortened to the radius if it is longer."""
    return v * (radius / v.norm().clamp(min=radius + 1e-30))


def ball_in_steps(v: torch.Tensor, steps: torch.Tensor, radius: float) -> torch.Tensor:
    """v / (1 + t steps), t >= 0 such that it is no longer than the radius: Newton's method for 1 /
    |w(t)|, which is nearly linear (J. Moré, D. Sorensen, Computing a trust region step, 1983)."""
    if float(radius) == 0:
        return 0 * v
    t, steps, w = 0.0, steps / steps.mean(), v
    for _ in range(50):
        size = float(w.norm())
        if size <= radius * (1 + 1e-6):
            break
        t += (size / radius - 1) * size**2 / float((steps * w.square() / (1 + t * steps)).sum())
        w = v / (1 + t * steps)
    return project_ball(w, radius)


def _contains(w: torch.Tensor, radius: float, tolerance: float = 0.0) -> bool:
    return float(w.norm()) <= float(radius) * (1 + 1e-14) + tolerance


def _normals(w: torch.Tensor, radius: float, tolerance: float = 0.0) -> Normals:
    """The normal cone's generators. On the sphere it is w; a ball of radius 0 holds every entry."""
    point = everywhere(w, float(radius) == 0)
    on = 0 < float(radius) * (1 - 1e-12) - tolerance <= float(w.norm())
    return Normals(low=point, high=point, rows=w.reshape(1, -1)[: int(on)])


def _tangent(s: torch.Tensor, w: torch.Tensor, radius: float, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction.

    Normals are nonnegative multiples of w on the sphere, 0 inside, anything if the ball is a
    point.
    """
    if float(radius) == 0:
        return 0 * s
    if float(w.norm()) < float(radius) * (1 - 1e-12) - tolerance or not bool(w.any()):
        return s
    out = w / w.norm()
    return s - (s * out).sum().relu() * out


ball = SimpleSet(
    name="ball",
    meaning="|w|_2 <= radius",
    tex=r"\mathbb{B}_{2}\left(<0>\right)",
    arguments=("radius",),
    project=project_ball,
    in_steps=ball_in_steps,
    contains=_contains,
    normals=_normals,
    tangent=_tangent,
    support=lambda s, radius: radius * s.norm(),
    domain=(Interval(0.0, inf),),
    cone=lambda k, w, radius: k.second_order(radius, w.reshape(-1)),
    entries=lambda radius: Interval(-bounds(radius, True), bounds(radius, True)),
    round=True,
    length=lambda shape, radius: radius.hi,
    levels={"norm2": lambda t: (t,), "norm_fro": lambda t: (t,), "sumsq": lambda t: (t**0.5,)},
)
