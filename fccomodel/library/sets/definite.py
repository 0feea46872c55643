"""Symmetric matrices, and those without a negative eigenvalue."""

from __future__ import annotations

from math import inf

from fccomodel.core.lazy import torch
from fccomodel.library import cones
from fccomodel.library.atoms import Interval
from fccomodel.library.sets.base import Normals, SimpleSet, everywhere

#: Eigenvalues of a direction, relative to its length, up to which they count as 0: rounding.
ROUNDING = 1e-13
#: The largest number of rows of a matrix whose conditions are listed one by one.
MAX_LISTED = 40


def project_sym(v: torch.Tensor) -> torch.Tensor:
    """The symmetric part of the matrix v."""
    return (v + v.mT) / 2


def symmetric_eigen(v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Eigenvalues and eigenvectors of the symmetric part of matrices, computed in double precision.

    The eigenvalues of a matrix that is not finite are NaN.
    """
    part = ((v + v.mT) / 2).double()
    known = part.isfinite().all(-1).all(-1)
    values, vectors = torch.linalg.eigh(part.nan_to_num(0.0, 0.0, 0.0))
    return values.masked_fill(~known.unsqueeze(-1), torch.nan).to(v.dtype), vectors.to(v.dtype)


def project_psd(v: torch.Tensor) -> torch.Tensor:
    """The symmetric part of the matrix v with 0 in place of negative eigenvalues."""
    values, vectors = symmetric_eigen(v)
    return (vectors * values.relu()[..., None, :]) @ vectors.mT


def _is_symmetric(w: torch.Tensor, tolerance: float) -> bool:
    size = float(w.abs().max()) if w.numel() else 0.0
    return bool((w - w.mT).abs().max() <= max(tolerance, ROUNDING * size)) if w.numel() else True


def _contains_psd(w: torch.Tensor, tolerance: float = 0.0) -> bool:
    if not _is_symmetric(w, tolerance):
        return False
    values, _ = symmetric_eigen(w)
    return bool(values[0] >= -max(tolerance, ROUNDING * float(values.abs().max())))


def _differences(w: torch.Tensor) -> torch.Tensor:
    """The gradients of w[i, j] - w[j, i] for i > j, one for each row."""
    n = w.shape[-1]
    if n > MAX_LISTED:
        return w.new_zeros((0, w.numel()))
    i, j = torch.tril_indices(n, n, -1)
    rows = w.new_zeros((len(i), n, n))
    at = torch.arange(len(i))
    rows[at, i, j] = 1.0
    rows[at, j, i] = -1.0
    return rows.flatten(1)


def _null_vectors(w: torch.Tensor, tolerance: float) -> torch.Tensor:
    """The eigenvectors whose eigenvalues are at most ``tolerance``, as columns."""
    values, vectors = symmetric_eigen(w)
    return vectors[:, values <= tolerance]


def _normals_of_sym(w: torch.Tensor, tolerance: float = 0.0) -> Normals:
    rows = _differences(w)
    listed = len(rows) > 0 or w.shape[-1] <= 1
    return Normals(
        low=everywhere(w, False), high=everywhere(w, False), rows=rows, equation=True, whole=listed
    )


def _normals_of_psd(w: torch.Tensor, tolerance: float = 0.0) -> Normals:
    """The equations of the face of w: it is symmetric, and x' w y = 0 for its null vectors x and y."""
    rows = _differences(w)
    null = _null_vectors(w, tolerance)
    if w.shape[-1] <= MAX_LISTED and null.shape[1]:
        i, j = torch.tril_indices(null.shape[1], null.shape[1])
        x, y = null[:, i].mT, null[:, j].mT
        face = (x[:, :, None] * y[:, None, :]).flatten(1)
        rows = torch.cat([rows, face])
    return Normals(low=everywhere(w, False), high=everywhere(w, False), rows=rows, equation=True, whole=False)


def _tangent_to_psd(s: torch.Tensor, w: torch.Tensor, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction: symmetric, without a negative eigenvalue on the null space of w."""
    symmetric = (s + s.mT) / 2
    null = _null_vectors(w, tolerance)
    if not null.shape[1]:
        return symmetric
    inside = null.mT @ symmetric @ null
    return symmetric + null @ (project_psd(inside) - inside) @ null.mT


def _support_of_psd(s: torch.Tensor) -> torch.Tensor:
    """0 if the symmetric part of s has no positive eigenvalue, up to rounding; else inf."""
    values, _ = symmetric_eigen(s)
    bounded = float(values[-1]) <= ROUNDING * float(s.norm())
    return s.new_tensor(0.0 if bounded else inf)


def _support_of_sym(s: torch.Tensor) -> torch.Tensor:
    bounded = float((s + s.mT).norm()) <= ROUNDING * float(s.norm())
    return s.new_tensor(0.0 if bounded else inf)


def _cone_of_psd(k: cones.Cones, w: cones.Affine) -> None:
    _cone_of_sym(k, w)
    k.semidefinite(cones.symmetric_part(w))


def _cone_of_sym(k: cones.Cones, w: cones.Affine) -> None:
    n = w.shape[-1]
    i, j = torch.tril_indices(n, n, -1)
    if len(i):
        k.zero(w[i, j] - w[j, i])


psd = SimpleSet(
    name="psd",
    meaning="symmetric matrices without a negative eigenvalue",
    tex=r"\mathbb{S}_{+}^{<shape>}",
    arguments=(),
    project=project_psd,
    contains=_contains_psd,
    normals=_normals_of_psd,
    tangent=_tangent_to_psd,
    support=_support_of_psd,
    cone=_cone_of_psd,
    entries=lambda: Interval(-inf, inf),
    bounded=lambda: False,
    square=True,
    symmetric=True,
    cite="N. J. Higham, Computing a nearest symmetric positive semidefinite matrix, 1988",
)
sym = SimpleSet(
    name="sym",
    meaning="symmetric matrices",
    tex=r"\mathbb{S}^{<shape>}",
    arguments=(),
    project=project_sym,
    contains=lambda w, tolerance=0.0: _is_symmetric(w, tolerance),
    normals=_normals_of_sym,
    tangent=lambda s, w, tolerance=0.0: project_sym(s),
    support=_support_of_sym,
    cone=_cone_of_sym,
    entries=lambda: Interval(-inf, inf),
    bounded=lambda: False,
    square=True,
    symmetric=True,
)
