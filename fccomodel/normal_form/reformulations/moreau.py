"""A non-smooth outer function  ->  its Moreau envelope with a centre.

This is Nesterov's smoothing of its conjugate form.
"""

from __future__ import annotations

from functools import partial

from fccomodel.normal_form.reformulations._base import Additions, Reformulation
from fccomodel.normal_form.reformulations._smooth import smooth

reformulation = Reformulation(
    name="moreau",
    title="outer Moreau smoothing",
    order=70,
    role="smoothing",
    formula="f_lam(u) = max_y y.u - f*(y) - lam/2 |y - c|^2, f_lam <= f <= f_lam + lam/2 max_y |y - "
    "c|^2;  c = 0: min_v f(v) + "
    "|v - u|^2/(2 lam);  c moved to y, the slope: no bias at convergence",
    apply=partial(smooth, inner=False),
    needs="f weakly convex with a computable prox, lam below 1 / its weak convexity",
    removes=("kinks outside",),
    gives=("envelopes",),
    cite="sonex-alexr2-2025 section 4.1; with a centre: hscg-2020 section 2.3 (Nesterov, 2005)",
    cost=Additions(number=1.0),
)
