"""``dot``, ``sum``, ``mean``, ``concat``, ``outer``, ``transpose`` and ``matmul``."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np

from fccomodel.library.atoms._array import ArrayAtom
from fccomodel.library.atoms.base import Properties, Shape, ShapeError, Site, show
from fccomodel.library.atoms.interval import Interval, apart, hull, product, times
from fccomodel.library.atoms.shapes import array, size, vectors


def _bilinear(varying: tuple[bool, ...], u: Interval, v: Interval) -> str:
    if all(varying):
        return "none"
    return "affine"


def _signed(factor: Interval) -> str:
    if factor.lo >= 0:
        return "increasing"
    if factor.hi <= 0:
        return "decreasing"
    return "none"


def _scaled(factor: Interval, size: float) -> float:
    return product(factor.mag, sqrt(size))


def _sum_range(u: Interval) -> Interval:
    """The range of a sum of any number of terms."""
    return apart(Interval(0.0 if u.lo >= 0 else -inf, 0.0 if u.hi <= 0 else inf), u.positive or u.negative)


_BILINEAR = Properties(
    curvature=_bilinear,
    monotone=(lambda u, v: _signed(v), lambda u, v: _signed(u)),
    lipschitz=(lambda u, v, size: _scaled(v, size), lambda u, v, size: _scaled(u, size)),
    gradient_lipschitz=lambda varying, u, v: 1.0 if all(varying) else 0.0,
    range=lambda u, v: _sum_range(times(u, v)),
)


def _product_shape(u: Shape, v: Shape) -> Shape:
    if not u or not v or len(u) > 2 or len(v) > 2:
        raise ShapeError(f"@ multiplies matrices and vectors, not {show(u)} and {show(v)}")
    if u[-1] != v[0]:
        raise ShapeError(f"the inner sizes of {show(u)} @ {show(v)} differ: {u[-1]} and {v[0]}")
    return (*u[:-1], *v[1:])


def _product_torch(site: Site) -> str:
    return {
        (1, 1): "torch.linalg.vecdot({0}, {1})",
        (2, 1): 'torch.einsum("...mn,...n->...m", {0}, {1})',
        (1, 2): 'torch.einsum("...m,...mn->...n", {0}, {1})',
        (2, 2): "({0} @ {1})",
    }[len(site.shapes[0]), len(site.shapes[1])]


def _product_derivative(site: Site) -> tuple[str, str]:
    return {
        (1, 1): ("dy * v", "dy * u"),
        (2, 1): ("outer(dy, v)", "dy @ u"),
        (1, 2): ("v @ dy", "outer(u, dy)"),
        (2, 2): ("dy @ transpose(v)", "transpose(u) @ dy"),
    }[len(site.shapes[0]), len(site.shapes[1])]


def _outer_shape(u: Shape, v: Shape) -> Shape:
    if len(u) != 1 or len(v) != 1:
        raise ShapeError(f"outer takes two vectors, not {show(u)} and {show(v)}")
    return (*u, *v)


def _transpose_shape(u: Shape) -> Shape:
    if len(u) != 2:
        raise ShapeError(f"transpose takes a matrix, not {show(u)}")
    return u[::-1]


def _concat_shape(*shapes: Shape) -> Shape:
    for shape in shapes:
        if len(shape) > 1:
            raise ShapeError(f"concat joins vectors and scalars, not {show(shape)}")
    sizes = [shape[0] if shape else 1 for shape in shapes]
    if all(isinstance(n, int) for n in sizes):
        return (sum(n for n in sizes if isinstance(n, int)),)
    return (" + ".join(str(n) for n in sizes),)


def _concat_torch(site: Site) -> str:
    parts = [f"{{{k}}}" if shape else f"{{{k}}}.unsqueeze(-1)" for k, shape in enumerate(site.shapes)]
    return f"torch.cat(({', '.join(parts)}), -1)"


def _concat_derivative(site: Site) -> tuple[str, ...]:
    derivatives, start = [], "0"
    for shape in site.shapes:
        if start == "0":
            stop = str(shape[0] if shape else 1)
        else:
            stop = f"{start} + {shape[0] if shape else 1}"
        derivatives.append(f"part(dy, {start}, {stop})" if shape else f"sum(part(dy, {start}, {stop}))")
        start = stop
    return tuple(derivatives)


def _diagonal_shape(u: Shape) -> Shape:
    if len(u) != 1:
        raise ShapeError(f"diag makes a matrix of a vector, not of {show(u)}")
    return u * 2


def _diagonal_of_shape(u: Shape) -> Shape:
    if len(u) != 2 or u[0] != u[1]:
        raise ShapeError(f"the diagonal is that of a square matrix, not of {show(u)}")
    return u[:1]


#: Properties of functions that move entries to other places.
_MOVED = Properties(
    curvature="affine", monotone="increasing", lipschitz=1.0, gradient_lipschitz=0.0, range=lambda u: u
)
_PRODUCT = replace(
    _BILINEAR, lipschitz=(lambda u, v, size: inf if v.mag else 0.0, lambda u, v, size: inf if u.mag else 0.0)
)

dot = ArrayAtom(
    name="dot",
    meaning="the inner product of two vectors",
    tex=r"2 <0:4>^{\top} <1:4>",
    arguments=("u", "v"),
    reference=np.dot,
    rule=vectors("dot"),
    torch="torch.linalg.vecdot({0}, {1})",
    derivative=("dy * v", "dy * u"),
    properties=_BILINEAR,
)
matmul = ArrayAtom(
    name="matmul",
    symbol="@",
    meaning="u @ v, the product of matrices and vectors",
    tex=r"2 <0:2> <1:2>",
    arguments=("u", "v"),
    reference=np.matmul,
    rule=_product_shape,
    torch=_product_torch,
    derivative=_product_derivative,
    properties=_PRODUCT,
)
sum_ = ArrayAtom(
    name="sum",
    meaning="the sum of the entries",
    symmetric=True,
    tex=r"2 \mathbf{1}^{\top} <0:4>",
    arguments=("u",),
    reference=np.sum,
    rule=array("sum", "it alone"),
    torch="{0}.sum({axes0})",
    derivative=("dy",),
    properties=Properties(
        curvature="affine",
        monotone="increasing",
        lipschitz=lambda u, size: sqrt(size),
        gradient_lipschitz=0.0,
        range=_sum_range,
    ),
)
mean = ArrayAtom(
    name="mean",
    meaning="the average of the entries",
    symmetric=True,
    arguments=("u",),
    reference=np.mean,
    rule=array("mean", "it alone"),
    torch="{0}.mean({axes0})",
    derivative=lambda site: (f"dy / {size(site.shapes[0])}",),
    properties=Properties(
        curvature="affine",
        monotone="increasing",
        lipschitz=lambda u, size: 1.0 if size == inf else 1 / sqrt(size),
        gradient_lipschitz=0.0,
        range=lambda u: u,
    ),
)
outer = ArrayAtom(
    name="outer",
    meaning="the matrix of products u[i] v[j]",
    tex=r"2 <0:4> <1:4>^{\top}",
    arguments=("u", "v"),
    reference=np.outer,
    rule=_outer_shape,
    torch="({0}.unsqueeze(-1) * {1}.unsqueeze(-2))",
    derivative=("dy @ v", "u @ dy"),
    properties=replace(_PRODUCT, range=times),
)
transpose = ArrayAtom(
    name="transpose",
    meaning="the transposed matrix",
    tex=r"3 <0:4>^{\top}",
    arguments=("u",),
    reference=np.transpose,
    rule=_transpose_shape,
    torch="{0}.mT",
    derivative=("transpose(dy)",),
    properties=_MOVED,
)
concat = ArrayAtom(
    name="concat",
    meaning="vectors and scalars, one after the other",
    tex=r"\left(<...>\right)",
    arguments=("u...",),
    reference=lambda *u: np.concatenate([np.atleast_1d(part) for part in u]),
    rule=_concat_shape,
    torch=_concat_torch,
    derivative=_concat_derivative,
    properties=Properties(
        curvature="affine",
        monotone="increasing",
        lipschitz=1.0,
        gradient_lipschitz=0.0,
        range=lambda *u: hull(*u),
    ),
)
diagonal = ArrayAtom(
    name="diagonal",
    meaning="the matrix with a vector on its diagonal; models write `diag(u)`",
    tex=r"\operatorname{diag}\left(<0>\right)",
    arguments=("u",),
    reference=np.diag,
    rule=_diagonal_shape,
    torch="torch.diag_embed({0})",
    derivative=("diagonal_of(dy)",),
    internal=True,
    properties=replace(_MOVED, range=lambda u: hull(u, Interval.point(0.0))),
)
diagonal_of = ArrayAtom(
    name="diagonal_of",
    meaning="the diagonal of a square matrix; models write `diag(u)`",
    tex=r"\operatorname{diag}\left(<0>\right)",
    arguments=("u",),
    reference=np.diagonal,
    rule=_diagonal_of_shape,
    torch="{0}.diagonal(dim1=-2, dim2=-1)",
    derivative=("diagonal(dy)",),
    internal=True,
    properties=_MOVED,
)
part = ArrayAtom(
    name="part",
    meaning="entries start to stop - 1 of a vector",
    tex=r"<0:4>_{<1>:<2>}",
    arguments=("u", "start", "stop"),
    parameters=("start", "stop"),
    reference=lambda u, start, stop: u[int(start) : int(stop)],
    rule=lambda u, start, stop: ("stop - start",),
    torch="{0}[..., {1}:{2}]",
    derivative=(),
    internal=True,
)
