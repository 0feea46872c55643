"""The Frobenius, the nuclear and the spectral norm."""

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np

from fccomodel.library.atoms._array import ArrayAtom, DualBall
from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE, Interval
from fccomodel.library.atoms.norms import EUCLIDEAN
from fccomodel.library.atoms.shapes import matrix, valley


def _root_of_rank(shape: Sequence[float]) -> float:
    return sqrt(min(shape))


def _polar(u: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(u, full_matrices=False)
    return left @ right


def _leading(u: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(u, full_matrices=False)
    return left[:, :1] @ right[:1]


norm_fro = ArrayAtom(
    name="norm_fro",
    meaning="the Frobenius norm, the root of the sum of squares",
    symmetric=True,
    tex=r"\left\lVert <0> \right\rVert_{F}",
    arguments=("u",),
    reference=np.linalg.norm,
    rule=matrix("norm_fro"),
    torch="torch.linalg.matrix_norm({0})",
    derivative=("dy * u / max(y, 1e-30)",),
    ball=EUCLIDEAN,
    squared="sumsq",
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=1.0,
        gradient_lipschitz=lambda u: 1 / u.mig if u.mig else None,
        range=lambda u: Interval(u.mig, inf),
    ),
)
norm_nuc = ArrayAtom(
    name="norm_nuc",
    meaning="the nuclear norm, the sum of the singular values",
    symmetric=True,
    tex=r"\left\lVert <0> \right\rVert_{*}",
    arguments=("u",),
    reference=lambda u: np.sum(np.linalg.svd(u, compute_uv=False)),
    rule=matrix("norm_nuc"),
    torch='torch.linalg.matrix_norm({0}, "nuc")',
    derivative=("dy * polar(u)",),
    ball=DualBall(
        kind="spectral",
        words="the spectral ball",
        project="onto_spectral_ball({x})",
        norm="torch.linalg.svdvals({u}).sum(-1)",
        dual="torch.linalg.svdvals({u}).amax(-1)",
        length=_root_of_rank,
        matrix=True,
    ),
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature="convex",
        lipschitz=lambda u, size: size**0.25,
        gradient_lipschitz=None,
        range=NONNEGATIVE,
    ),
)
norm_spec = ArrayAtom(
    name="norm_spec",
    meaning="the spectral norm, the largest singular value",
    symmetric=True,
    tex=r"\left\lVert <0> \right\rVert_{2}",
    arguments=("u",),
    reference=lambda u: np.linalg.norm(u, 2),
    rule=matrix("norm_spec"),
    torch="torch.linalg.svdvals({0}).amax(-1)",
    derivative=("dy * leading(u)",),
    ball=DualBall(
        kind="nuclear",
        words="the ball of the nuclear norm",
        project="onto_nuclear_ball({x})",
        norm="torch.linalg.svdvals({u}).amax(-1)",
        dual="torch.linalg.svdvals({u}).sum(-1)",
        matrix=True,
    ),
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature="convex",
        lipschitz=1.0,
        gradient_lipschitz=None,
        range=NONNEGATIVE,
    ),
)
leading = ArrayAtom(
    name="leading",
    meaning="u v' of the first singular vectors: a subgradient of the spectral norm",
    arguments=("u",),
    reference=_leading,
    rule=lambda u: u,
    torch="(lambda left, _, right: left[..., :1] @ right[..., :1, :])"
    "(*torch.linalg.svd({0}, full_matrices=False))",
    derivative=(),
    internal=True,
)
polar = ArrayAtom(
    name="polar",
    meaning="U V' of the singular value decomposition U S V': a subgradient of the nuclear norm",
    arguments=("u",),
    reference=_polar,
    rule=lambda u: u,
    torch="torch.matmul(*torch.linalg.svd({0}, full_matrices=False)[::2])",
    derivative=(),
    internal=True,
)
