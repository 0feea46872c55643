"""A kink inside an expectation  ->  its Moreau envelope without a centre: every row has its own kink."""

from __future__ import annotations

from functools import partial

from fccomodel.normal_form.reformulations._base import Additions, Reformulation
from fccomodel.normal_form.reformulations._smooth import smooth

reformulation = Reformulation(
    name="nested_moreau",
    title="Moreau smoothing inside expectations",
    order=71,
    role="smoothing",
    formula="E h(g) -> E h_lam(g), h_lam <= h <= h_lam + lam C_h^2/2",
    apply=partial(smooth, inner=True),
    needs="h weakly convex with a computable prox, lam below 1 / its weak convexity",
    removes=("kinks inside",),
    gives=("envelopes",),
    cite="of this project: no theorem of the papers has an envelope inside an expectation",
    cost=Additions(number=1.0),
)
