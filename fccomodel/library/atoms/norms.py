"""Norms of vectors, and the sum of squares. A derivative at 0 is 0."""

from collections.abc import Sequence
from math import inf, prod, sqrt

import numpy as np

from fccomodel.library.atoms._array import ArrayAtom, DualBall
from fccomodel.library.atoms.base import Properties, Shape, ShapeError, Site
from fccomodel.library.atoms.interval import NONNEGATIVE, Interval
from fccomodel.library.atoms.shapes import array, valley, vector


def _root_of_size(shape: Sequence[float]) -> float:
    return sqrt(prod(shape))


EUCLIDEAN = DualBall(
    kind="ball",
    words="the Euclidean ball",
    project="onto_ball({x}, {dims})",
    norm="torch.linalg.vector_norm({u}, dim={dims})",
    dual="torch.linalg.vector_norm({u}, dim={dims})",
)


def _off_zero(u: Interval) -> float | None:
    """The Lipschitz constant 1/|u| of the 2-norm's gradient, with |u| at least the smallest entry's
    magnitude."""
    if u.mig:
        return 1 / u.mig
    return None


def _group_shape(u: Shape, size: Shape) -> Shape:
    vector("group_norm")(u)
    if size:
        raise ShapeError("group_norm's size is a number")
    return ()


def _uneven(shape: Shape, u: object, size: float) -> str:
    """The reason why entries do not fall into groups, or an empty text."""
    if shape[0] % size:
        return f"{shape[0]} entries do not fall into groups of {size:g}."
    return ""


def _groups(u: np.ndarray, size: float) -> np.ndarray:
    return np.reshape(u, (-1, int(size)))


def _lengths(u: np.ndarray, size: float) -> np.ndarray:
    return np.linalg.norm(_groups(u, size), axis=1)


def _in_groups(text: str):
    def template(site: Site) -> str:
        """The torch formula with the group size filled in."""
        if site.numbers[1] is None:
            size = "int({1})"
        else:
            size = str(int(site.numbers[1]))
        return text.replace("GROUPS", f"{{0}}.unflatten(-1, (-1, {size}))")

    return template


norm1 = ArrayAtom(
    name="norm1",
    meaning="the sum of absolute values",
    symmetric=True,
    tex=r"\left\lVert <0> \right\rVert_{1}",
    arguments=("u",),
    reference=lambda u: np.sum(np.abs(u)),
    rule=array("norm1", "abs(u)"),
    torch="{0}.abs().sum({axes0})",
    derivative=("dy * sign(u)",),
    pieces=1,
    ball=DualBall(
        kind="box",
        words="the box [-1, 1]",
        project="{x}.clamp(-1, 1)",
        norm="{u}.abs().sum({dims})",
        dual="{u}.abs().amax({dims})",
        length=_root_of_size,
    ),
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature=lambda u: "affine" if u.lo >= 0 or u.hi <= 0 else "convex",
        monotone=valley,
        lipschitz=lambda u, size: sqrt(size),
        gradient_lipschitz=lambda u: None if u.lo < 0 < u.hi else 0.0,
        range=NONNEGATIVE,
    ),
    instead={"smooth": "norm1(u) has kinks; as a term of its own it is handled by its prox."},
)
norm2 = ArrayAtom(
    name="norm2",
    meaning="the Euclidean norm",
    symmetric=True,
    tex=r"\left\lVert <0> \right\rVert_{2}",
    arguments=("u",),
    reference=np.linalg.norm,
    rule=vector("norm2", "of a scalar, write abs(u); of a matrix, norm_fro(u)"),
    torch="torch.linalg.vector_norm({0}, dim=-1)",
    derivative=("dy * u / max(y, 1e-30)",),
    ball=EUCLIDEAN,
    squared="sumsq",
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=1.0,
        gradient_lipschitz=_off_zero,
        range=lambda u: Interval(u.mig, inf),
    ),
    instead={"smooth": "norm2(u) has a kink at 0: use sumsq(u), or sqrt(sumsq(u) + delta^2)."},
)
norminf = ArrayAtom(
    name="norminf",
    meaning="the largest absolute value",
    symmetric=True,
    tex=r"\left\lVert <0> \right\rVert_{\infty}",
    arguments=("u",),
    reference=lambda u: np.max(np.abs(u)),
    rule=vector("norminf", "of a scalar, write abs(u)"),
    torch="{0}.abs().amax(-1)",
    derivative=("dy * sign(u) * first_largest(abs(u))",),
    pieces=1,
    ball=DualBall(
        kind="cross",
        words="the cross-polytope",
        project="onto_cross_polytope({x}, {dims})",
        norm="{u}.abs().amax({dims})",
        dual="{u}.abs().sum({dims})",
    ),
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=1.0,
        gradient_lipschitz=None,
        range=lambda u: Interval(u.mig, u.mag),
    ),
)
sumsq = ArrayAtom(
    name="sumsq",
    meaning="the sum of squares",
    symmetric=True,
    tex=r"3 \left\lVert <0> \right\rVert_{2}^{2}",
    arguments=("u",),
    aliases=("sum_squares",),
    reference=lambda u: np.sum(u * u),
    rule=array("sumsq", "square(u)"),
    torch="{0}.square().sum({axes0})",
    derivative=("2 * dy * u",),
    pieces=2,
    whole=True,
    cone=lambda k, u: k.squares(u),
    homogeneous=2,
    even=True,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=lambda u, size: 2 * u.mag * sqrt(size) if u.mag else 0.0,
        gradient_lipschitz=2.0,
        range=NONNEGATIVE,
    ),
)
group_norm = ArrayAtom(
    name="group_norm",
    meaning="the sum of the Euclidean norms of consecutive groups of `size` entries",
    tex=r"\left\lVert <0> \right\rVert_{2, 1}^{(<1>)}",
    arguments=("u", "size"),
    parameters=("size",),
    reference=lambda u, size: np.sum(_lengths(u, size)),
    rule=_group_shape,
    torch=_in_groups("torch.linalg.vector_norm(GROUPS, dim=-1).sum(-1)"),
    derivative=("dy * group_direction(u, size)",),
    ball=EUCLIDEAN,
    in_groups=True,
    domain=(None, Interval(1.0, inf)),
    counts=(1,),
    amiss=_uneven,
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=lambda u, group, size: sqrt(size if group.lo <= 1 else size / group.lo),
        gradient_lipschitz=lambda u, size: _off_zero(u),
        range=NONNEGATIVE,
    ),
)
first_largest = ArrayAtom(
    name="first_largest",
    meaning="1 at the first largest entry, 0 elsewhere",
    arguments=("u",),
    reference=lambda u: np.eye(len(u))[np.argmax(u)],
    rule=lambda u: u,
    torch="torch.nn.functional.one_hot({0}.argmax(-1), {0}.shape[-1])",
    derivative=(),
    internal=True,
)
group_direction = ArrayAtom(
    name="group_direction",
    meaning="every group of `size` entries divided by its Euclidean norm (0 where that is 0)",
    arguments=("u", "size"),
    parameters=("size",),
    reference=lambda u, size: (_groups(u, size) / np.maximum(_lengths(u, size)[:, None], 1e-30)).ravel(),
    rule=lambda u, size: u,
    torch=_in_groups("torch.nn.functional.normalize(GROUPS, dim=-1, eps=1e-30).flatten(-2)"),
    derivative=(),
    internal=True,
)
