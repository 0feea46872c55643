"""A constraint  ->  the Moreau envelope of rho times its violation; its centre follows the multiplier."""

from fccomodel.normal_form.reformulations.penalise import penalty

reformulation = penalty(
    name="smoothed_hinge",
    order=61,
    formula="min f(w) + sum_k max over y in [0, rho] of y c_k(w) - lam/2 (y - centre)^2;  equality: y in "
    "[-rho, rho];  "
    "multiplier: y",
    account="a constraint: the penalty rho [c]_+ (equality: rho |c|) by its Moreau envelope",
    le="pos",
    eq="abs",
    smooth=True,
    cite="sonex-alexr2-2025 section 5, whose rho / m is rho here; the centre: hscg-2020 section 2.3",
)
