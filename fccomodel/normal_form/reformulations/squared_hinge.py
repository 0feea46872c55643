"""A constraint  ->  rho/2 times its violation squared: smooth where the constraint is, never exact."""

from fccomodel.normal_form.reformulations.penalise import penalty

reformulation = penalty(
    name="squared_hinge",
    order=62,
    formula="min f(w) + rho/2 sum_k [c_k(w)]_+^2;  equality: rho/2 c(w)^2;  multiplier: rho [c]_+, rho c",
    account="the penalty rho/2 [c]_+^2 (equality: rho/2 c^2), whose minimiser violates active "
    "constraints by multiplier / rho",
    le="sqhinge",
    eq="square",
    factor=0.5,
    cite="sonex-alexr2-2025 section 6, reference [7]",
)
