"""A convex outer function  ->  its conjugate form; each block has its own y, which steps move."""

from __future__ import annotations

from functools import partial

from fccomodel.normal_form.reformulations._base import Additions, Reformulation
from fccomodel.normal_form.reformulations._smooth import smooth

reformulation = Reformulation(
    name="conjugate",
    title="conjugate form of outer functions",
    order=73,
    role="smoothing",
    formula="f(u) = max_y y.u - f*(y); y moves to argmax_v v.u - f*(v) - tau lam/2 |v - y|^2",
    apply=partial(smooth, inner=False, curves=True),
    needs="f convex with a computable prox",
    removes=("kinks outside", "curves outside"),
    gives=("envelopes",),
    cite="alexr-2025 problem (2) and section 3.1",
    cost=Additions(number=1.0),
)
