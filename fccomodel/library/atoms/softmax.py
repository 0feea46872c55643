"""``logsumexp`` and ``softmax`` of a vector."""

from math import inf

import numpy as np

from fccomodel.library import cones
from fccomodel.library.atoms._array import ArrayAtom
from fccomodel.library.atoms.base import Properties, Shape
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.shapes import vector


def _softmax_shape(u: Shape) -> Shape:
    vector("softmax")(u)
    return u


def _logsumexp(u: np.ndarray) -> float:
    return np.max(u) + np.log(np.sum(np.exp(u - np.max(u))))


logsumexp = ArrayAtom(
    name="logsumexp",
    meaning="log of the sum of e^u[i]",
    symmetric=True,
    tex=r"\log \mathbf{1}^{\top} e^{<0>}",
    arguments=("u",),
    reference=_logsumexp,
    rule=vector("logsumexp"),
    torch="{0}.logsumexp(-1)",
    derivative=("dy * exp(u - y)",),
    cone=cones.log_sum_exp,
    properties=Properties(
        curvature="convex",
        monotone="increasing",
        lipschitz=1.0,
        gradient_lipschitz=0.5,
        range=lambda u: Interval(u.lo, inf),
    ),
)
softmax = ArrayAtom(
    name="softmax",
    meaning="the vector of e^u[i] / sum of e^u[j]",
    arguments=("u",),
    reference=lambda u: np.exp(u - _logsumexp(u)),
    rule=_softmax_shape,
    torch="{0}.softmax(-1)",
    derivative=("y * (dy - dot(y, dy))",),
    properties=Properties(lipschitz=0.5, gradient_lipschitz=1.0, range=Interval(0.0, 1.0, lo_open=True)),
)
