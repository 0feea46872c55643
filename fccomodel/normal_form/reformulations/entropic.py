"""An outer maximum  ->  Nesterov's smoothing by entropy on the simplex, with a centre.

Other kinks are smoothed by half squares.
"""

from __future__ import annotations

from functools import partial

from fccomodel.normal_form.reformulations._base import Additions, Reformulation
from fccomodel.normal_form.reformulations._smooth import smooth

reformulation = Reformulation(
    name="entropic",
    title="entropic smoothing",
    order=72,
    role="smoothing",
    formula="f_lam(u) = max_q q.u - lam sum q log (q / c) = lam log sum c exp(u / lam), f_lam <= max u "
    "<= f_lam + lam log n for "
    "c = 1 / n; c moved to q, the slope: no bias at convergence",
    apply=partial(smooth, inner=False, entropy=True),
    removes=("kinks outside",),
    gives=("envelopes",),
    cite="hscg-2020 section 2.3 (Nesterov, 2005)",
    cost=Additions(number=1.0),
)
