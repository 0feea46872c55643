"""ALEXR2 with a final ALEXR stage: nearly stationary for the problem itself (sonex-alexr2-2025,
Corollary 4.11)."""

import dataclasses

from fccomodel.algorithms import alexr2
from fccomodel.algorithms.base import Constants, Variant
from fccomodel.algorithms.runtime.loops import last_stage


def theory(k: Constants) -> dict[str, float]:
    """Theorem 4.10's schedule; then ALEXR from w_tau to eps^2 of the inner loop's accuracy, |w - prox|
    = O(eps^2), where the gradient of F_lam, whose Lipschitz constant is O(1/eps), is O(eps).
    ``finer``: 1 - theta there, to one in the inner loop."""
    values, inner, last = alexr2.theory(k), alexr2.inner_loop(k, 1.0), alexr2.inner_loop(k, k.eps**2)
    return {
        **values,
        "finer": last.away / inner.away,
        "last": last.steps,
        "iterations": values["iterations"] + last.steps,
    }


OTHERWISE = ("weakly monotone", "regular constraints", "heavy penalty")
algorithm = dataclasses.replace(
    alexr2.algorithm,
    name="alexr2_final",
    title="ALEXR2 with a final ALEXR stage",
    requires={
        **{name: clause for name, clause in alexr2.algorithm.requires.items() if name not in OTHERWISE},
        "inner smooth": "sonex-alexr2-2025, Assumption 3.2 (A2)",
        "independent inner": "sonex-alexr2-2025, Assumption 4.3",
        "unconstrained": "sonex-alexr2-2025, Corollary 4.11",
    },
    penalty=None,
    outermost=last_stage.solve_to_proximal_point,
    variants=(
        Variant(
            "a last ALEXR stage from w_tau",
            "sonex-alexr2-2025, Corollary 4.11",
            "as in the paper (step = momentum, schedule = theory)",
        ),
    ),
    gives="stationarity",
    better=(),
    theorem="sonex-alexr2-2025, Corollary 4.11 (nearly stationary for the problem itself, not for its "
    "smoothing alone)",
    hyper={**alexr2.algorithm.hyper, "last": 0, "finer": 1.0},
    theory=theory,
)
