"""The signs of a symmetric matrix's eigenvalues.

They are exact for few rows; for many rows the result says what rounding may hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from fccomodel.library.amounts import SOME, ZERO, Amount, amount, rounded

#: An eigenvalue of the other sign counts as rounding of the matrix up to this share of the largest size.
FORGIVEN = 1e-12
#: Rows of a matrix whose semidefiniteness is decided in exact arithmetic.
EXACT_ROWS = 16


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The range of the eigenvalues of a symmetric matrix.

    least, largest  the ends as computed
    negative        bound of the size of negative eigenvalues
    positive        bound of the size of positive eigenvalues

    An amount of 0 with a rounding d says that rounding was forgiven: eigenvalues of this sign are
    no larger than d in size.
    """

    least: float
    largest: float
    negative: Amount
    positive: Amount


#: What the declaration `in psd` says of a matrix.
DECLARED_DEFINITE = Spectrum(least=0.0, largest=inf, negative=ZERO, positive=SOME)


def spectrum(matrix: np.ndarray) -> Spectrum:
    """The spectrum of the symmetric part of a matrix.

    Computed eigenvalues are off by at most about n eps |A| (J. Demmel, Applied Numerical Linear
    Algebra, 1997, section 5.2). A sign that this hides is decided by exact arithmetic if there are
    at most ``EXACT_ROWS`` rows. Otherwise the eigenvalue is forgiven, and its possible size is kept.
    The same holds for eigenvalues that may come from rounding of the entries (``FORGIVEN``).
    """
    symmetric = (matrix + matrix.T) / 2
    ends = np.linalg.eigvalsh(symmetric)
    least, largest = float(ends[0]), float(ends[-1])
    size = max(abs(least), abs(largest))
    hidden = 4 * len(matrix) * float(np.finfo(float).eps) * size
    forgiven = max(FORGIVEN * size, hidden)

    def beyond(end: float, sign: float) -> Amount:
        """Minus the least eigenvalue of ``sign * matrix``, and 0 if no eigenvalue is negative."""
        if end > forgiven:
            return amount(end)
        if end < -hidden or not size or len(matrix) <= EXACT_ROWS and _semidefinite(sign * matrix):
            return ZERO
        return rounded(ZERO, max(end, 0.0) + hidden)

    negative = beyond(-least, 1.0)
    positive = beyond(largest, -1.0)
    return Spectrum(least=least, largest=largest, negative=negative, positive=positive)


def _semidefinite(matrix: np.ndarray) -> bool:
    """Whether a matrix's symmetric part is positive semidefinite, by exact elimination."""
    exact = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    turned = zip(*exact, strict=True)
    rows = [
        [a + b for a, b in zip(row, column, strict=True)] for row, column in zip(exact, turned, strict=True)
    ]
    while rows:
        pivot = rows[0]
        if pivot[0] < 0 or not pivot[0] and any(pivot):
            return False
        rest = rows[1:]
        if pivot[0]:
            rows = [
                [a - row[0] * b / pivot[0] for a, b in zip(row[1:], pivot[1:], strict=True)] for row in rest
            ]
        else:
            rows = [row[1:] for row in rest]
    return True
