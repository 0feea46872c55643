"""A constraint  ->  the Lagrangian term y c(w), y a multiplier without a bound."""

from fccomodel.normal_form.reformulations.penalise import penalty

reformulation = penalty(
    name="lagrangian",
    order=63,
    formula="min_w max_{y >= 0} f(w) + sum_k y_k c_k(w) - lam/2 (y - centre)^2, y = [c/lam + centre]_+;  "
    "equality: y free;  "
    "multiplier: y",
    account="the Lagrangian term y c with y >= 0 (equality: y free), its y moved by the steps",
    le="pos",
    eq="abs",
    bounded=False,
    smooth=True,
    cite="alexr-2025 equation (1) with f the indicator of c <= 0; method of multipliers: Rockafellar, 1976",
)
