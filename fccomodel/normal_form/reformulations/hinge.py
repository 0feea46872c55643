"""A constraint  ->  rho times its violation, not smooth: SONX takes its subgradients."""

from fccomodel.normal_form.reformulations.penalise import penalty

reformulation = penalty(
    name="hinge",
    order=60,
    formula="min f(w) + rho sum_k [c_k(w)]_+;  equality: rho |c(w)|;  multiplier: rho 1[c > 0], rho sign(c)",
    account="the penalty rho [c]_+ (equality: rho |c|) by its subgradients: exact for rho above the "
    "multipliers",
    le="pos",
    eq="abs",
    cite="sonex-alexr2-2025 section 5, whose rho / m is rho here",
)
