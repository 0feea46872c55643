"""Functions of symmetric matrices: eigenvalues, determinants, inverses.

Each reads the symmetric part (u + u') / 2 of its matrix, so that it is convex or concave on all matrices.
"""

from __future__ import annotations

from math import inf

import numpy as np

from fccomodel.library import cones
from fccomodel.library.atoms._array import ArrayAtom, DualBall
from fccomodel.library.atoms._domain import MatrixKind
from fccomodel.library.atoms.base import Properties, Shape, ShapeError, show
from fccomodel.library.atoms.interval import NONNEGATIVE, Interval

#: The torch text of the symmetric part of the first argument, and of the second.
SYMMETRIC = "(({0} + {0}.mT) / 2)"
SECOND_SYMMETRIC = "(({1} + {1}.mT) / 2)"
#: That of its eigenvalues, in double precision; NaN for a matrix that is not finite.
EIGENVALUES = (
    f"(torch.linalg.eigvalsh({SYMMETRIC}.nan_to_num().double())"
    " + ({0} * 0).sum((-2, -1), keepdim=True).squeeze(-1))"
)
LEADING_VECTOR = f"torch.linalg.eigh({SYMMETRIC}.nan_to_num().double())[1][..., -1:].to({{0}}.dtype)"
DIAGONAL = "diagonal(dim1=-2, dim2=-1)"
PIVOTS = f"factor.{DIAGONAL}"
#: Ratio of the smallest to the largest pivot of a Cholesky factor below which a matrix counts as singular.
SMALLEST_PIVOT = 1e-6


def _of_definite(part: str, value: str) -> str:
    """The torch text of a value, NaN where a symmetric matrix is not positive definite, up to rounding.

    part   the text of the matrix
    value  the text of the value, in which ``factor`` is the Cholesky factor
    """
    singular = f"(failed > 0) | ({PIVOTS}.amin(-1) <= {SMALLEST_PIVOT} * {PIVOTS}.amax(-1))"
    checked = f"({value}).masked_fill({singular}, torch.nan)"
    return f"(lambda factor, failed: {checked})(*torch.linalg.cholesky_ex({part}))"


def _symmetric(u: np.ndarray) -> np.ndarray:
    """The symmetric part of a matrix, or of each of several."""
    return (u + np.swapaxes(u, -1, -2)) / 2


def _is_definite(u: np.ndarray) -> bool:
    values = np.linalg.eigvalsh(_symmetric(u))
    return bool(values[0] > SMALLEST_PIVOT**2 * values[-1])


def _has_cholesky_factor(u: np.ndarray) -> bool:
    """Whether a program computes with the matrix: its Cholesky factor has no pivot near 0."""
    try:
        pivots = np.diagonal(np.linalg.cholesky(_symmetric(u)))
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > SMALLEST_PIVOT * pivots.max())


def _are_definite(u: np.ndarray) -> np.ndarray:
    """For each of several matrices, whether it is positive definite, up to rounding."""
    values = np.linalg.eigvalsh(_symmetric(u))
    definite = values[:, 0] > SMALLEST_PIVOT**2 * values[:, -1]
    for k in np.flatnonzero(~definite):
        definite[k] = _has_cholesky_factor(u[k])
    return definite


def _are_invertible(u: np.ndarray) -> np.ndarray:
    """For each of several matrices, whether it is invertible, up to rounding."""
    return np.linalg.matrix_rank(u) == u.shape[-1]


#: Matrices without an eigenvalue of 0 or less of their symmetric part.
DEFINITE = MatrixKind(
    name="a positive definite",
    number="the smallest eigenvalue",
    smallest=lambda u: np.linalg.eigvalsh(_symmetric(u))[:, 0],
    belongs=_are_definite,
)
#: Matrices that have an inverse.
INVERTIBLE = MatrixKind(
    name="an invertible",
    number="the smallest singular value",
    smallest=lambda u: np.linalg.svd(u, compute_uv=False)[:, -1],
    belongs=_are_invertible,
)


def _leading(u: np.ndarray) -> np.ndarray:
    vector = np.linalg.eigh(_symmetric(u))[1][:, -1]
    return np.outer(vector, vector)


def _logdet(u: np.ndarray) -> float:
    if _is_definite(u):
        return float(np.linalg.slogdet(_symmetric(u))[1])
    return np.nan


def _trace_of_inverse(u: np.ndarray) -> float:
    if _is_definite(u):
        return float(np.trace(np.linalg.inv(_symmetric(u))))
    return np.nan


def _fractional(x: np.ndarray, u: np.ndarray) -> float:
    if _is_definite(u):
        return float(x @ np.linalg.solve(_symmetric(u), x))
    return np.nan


def is_square(shape: Shape) -> bool:
    """Whether arrays of this shape are square matrices."""
    return len(shape) == 2 and shape[0] == shape[1]


def _square(name: str, u: Shape) -> None:
    if not is_square(u):
        raise ShapeError(f"{name} takes a square matrix, not {show(u)}")


def _number_of_square(name: str):
    def rule(u: Shape) -> Shape:
        """The shape of the value: a number. Raises ``ShapeError`` unless u is a square matrix."""
        _square(name, u)
        return ()

    return rule


def _inverse_shape(u: Shape) -> Shape:
    _square("the inverse", u)
    return u


def _fractional_shape(x: Shape, u: Shape) -> Shape:
    _square("matrix_frac", u)
    if x != u[:1]:
        raise ShapeError(f"matrix_frac takes a vector and a matrix of its size, not {show(x)} and {show(u)}")
    return ()


# -------------------------------------------------------------------------------------- conic forms
def _cone_of_logdet(k: cones.Cones, u: cones.Affine) -> cones.Affine:
    """Lower bounds of log det u (A. Nemirovski, Lectures on modern convex optimization, 2001).

    With a lower triangular Z, [[u, Z], [Z', diag(Z)]] has no negative eigenvalue, and log det u is at least
    the sum of log Z_ii.
    """
    n = u.shape[-1]
    factor = cones.triangular(k, u.shape[:-2], n)
    diagonal = factor * cones.identity(n)
    k.semidefinite(cones.blocks((cones.symmetric_part(u), factor), (factor.mT, diagonal)))
    return cones.logarithms(k, diagonal.sum(-1)).sum(-1).lower()


def _cone_of_trace_inv(k: cones.Cones, u: cones.Affine) -> cones.Affine:
    """Upper bounds of trace(u^-1): [[T, I], [I, u]] has no negative eigenvalue, and the value is trace(T)."""
    n = u.shape[-1]
    above = cones.symmetric(k, u.shape[:-2], n)
    one = u * 0.0 + cones.identity(n)
    k.semidefinite(cones.blocks((above, one), (one, cones.symmetric_part(u))))
    return (above * cones.identity(n)).sum((-2, -1)).upper()


def _cone_of_fraction(k: cones.Cones, x: cones.Affine, u: cones.Affine) -> cones.Affine:
    """Upper bounds t of x' u^-1 x: [[u, x], [x', t]] has no negative eigenvalue."""
    n = u.shape[-1]
    outer = np.broadcast_shapes(tuple(u.shape[:-2]), tuple(x.shape[:-1]))  # one matrix for all rows, too
    matrix = cones.symmetric_part(u).expand(*outer, n, n)
    vector = x.unsqueeze(-1).expand(*outer, n, 1)
    t = k.variable((*outer, 1, 1))
    k.semidefinite(cones.blocks((matrix, vector), (vector.mT, t)))
    return t.squeeze(-1).squeeze(-1).upper()


# -------------------------------------------------------------------------------------------- atoms
lambda_max = ArrayAtom(
    name="lambda_max",
    meaning="the largest eigenvalue of a square matrix, of its symmetric part (u + u')/2",
    tex=r"\lambda_{\max}\left(<0>\right)",
    arguments=("u",),
    reference=lambda u: np.linalg.eigvalsh(_symmetric(u))[-1],
    rule=_number_of_square("lambda_max"),
    torch=f"{EIGENVALUES}.amax(-1).to({{0}}.dtype)",
    derivative=("dy * eigenprojection(u)",),
    ball=DualBall(
        kind="spectraplex",
        words="the matrices of trace 1 without a negative eigenvalue",
        project="onto_spectraplex({x})",
        norm="symmetric_eigen({u})[0].amax(-1)",
        dual="outside_spectraplex({u})",
        matrix=True,
    ),
    homogeneous=1,
    properties=Properties(
        curvature="convex",
        lipschitz=1.0,
        gradient_lipschitz=None,
        range=lambda u: Interval(u.lo, inf),
    ),
)
eigenprojection = ArrayAtom(
    name="eigenprojection",
    meaning="v v' of the eigenvector v of the largest eigenvalue: a subgradient of it",
    arguments=("u",),
    reference=_leading,
    rule=lambda u: u,
    torch=f"(lambda vector: vector @ vector.mT)({LEADING_VECTOR})",
    derivative=(),
    internal=True,
)
logdet = ArrayAtom(
    name="logdet",
    meaning="the logarithm of the determinant; of a matrix that is not symmetric, of the determinant's size",
    tex=r"\log\det\left(<0>\right)",
    arguments=("u",),
    reference=_logdet,
    rule=_number_of_square("logdet"),
    torch=_of_definite(SYMMETRIC, f"2 * {PIVOTS}.log().sum(-1)"),
    derivative=("dy * symmetric_inverse(u)",),
    regular={0: DEFINITE},
    cone=_cone_of_logdet,
    matrices=True,
    properties=Properties(curvature="concave"),
    instead={
        "convex": "logdet is concave; -logdet(P) is convex.",
        "concave": "logdet is concave in P itself: declare the precision, not the covariance.",
    },
)
logabsdet = ArrayAtom(
    name="logabsdet",
    meaning="the logarithm of the absolute value of a determinant",
    tex=r"\log\left|\det\left(<0>\right)\right|",
    arguments=("u",),
    reference=lambda u: np.linalg.slogdet(u)[1],
    rule=_number_of_square("logabsdet"),
    torch="torch.linalg.slogdet({0})[1]",
    derivative=("dy * transpose(inverse(u))",),
    regular={0: INVERTIBLE},
    symmetric=True,
    even=True,
    instead={
        "convex": "logdet(P) of a symmetric P is concave: declare `var P[n, n] in psd;`, or write "
        "(A + transpose(A)) / 2 of data.",
        "concave": "logdet(P) of a symmetric P is concave: declare `var P[n, n] in psd;`, or write "
        "(A + transpose(A)) / 2 of data.",
    },
)
trace_inv = ArrayAtom(
    name="trace_inv",
    meaning="the trace of the inverse of a positive definite matrix, of its symmetric part",
    tex=r"\operatorname{tr}\left(<0:4>^{-1}\right)",
    arguments=("u",),
    reference=_trace_of_inverse,
    rule=_number_of_square("trace_inv"),
    torch=_of_definite(SYMMETRIC, f"torch.linalg.inv_ex({SYMMETRIC})[0].{DIAGONAL}.sum(-1)"),
    derivative=("-dy * symmetric_inverse(u) @ symmetric_inverse(u)",),
    regular={0: DEFINITE},
    cone=_cone_of_trace_inv,
    matrices=True,
    properties=Properties(curvature="convex", range=NONNEGATIVE),
)
matrix_frac = ArrayAtom(
    name="matrix_frac",
    meaning="x' P^-1 x of a vector and a positive definite matrix, of its symmetric part",
    tex=r"<0:4>^{\top} <1:4>^{-1} <0:4>",
    arguments=("x", "u"),
    reference=_fractional,
    rule=_fractional_shape,
    torch=_of_definite(
        SECOND_SYMMETRIC,
        f'torch.einsum("...m,...mn,...n->...", {{0}}, torch.linalg.inv_ex({SECOND_SYMMETRIC})[0], {{0}})',
    ),
    derivative=(
        "2 * dy * symmetric_inverse(u) @ x",
        "-dy * outer(symmetric_inverse(u) @ x, symmetric_inverse(u) @ x)",
    ),
    regular={1: DEFINITE},
    cone=_cone_of_fraction,
    matrices=True,
    homogeneous=1,
    properties=Properties(curvature=lambda varying, x, u: "convex", range=NONNEGATIVE),
)
symmetric_inverse = ArrayAtom(
    name="symmetric_inverse",
    meaning="the inverse of the symmetric part of a matrix",
    arguments=("u",),
    reference=lambda u: np.linalg.inv(_symmetric(u)),
    rule=_inverse_shape,
    torch=f"torch.linalg.inv_ex({SYMMETRIC})[0]",
    derivative=(),
    internal=True,
)
inverse = ArrayAtom(
    name="inverse",
    meaning="the inverse of a square matrix; `inv(u)` of a matrix is the same",
    tex=r"3 <0:4>^{-1}",
    arguments=("u",),
    reference=np.linalg.inv,
    rule=_inverse_shape,
    torch="torch.linalg.inv_ex({0})[0]",
    derivative=("-transpose(y) @ dy @ transpose(y)",),
    regular={0: INVERTIBLE},
    instead={"convex": "Of a symmetric P write trace_inv(P) or matrix_frac(x, P), which are convex."},
)
