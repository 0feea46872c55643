"""ALEXR2 with a final ALEXR stage: nearly stationary for the problem itself (sonex-alexr2-2025,
Corollary 4.11)."""

import dataclasses

from fccomodel.algorithms import alexr2
from fccomodel.algorithms.base import Constants, Variant
from fccomodel.algorithms.runtime.loops import last_stage


def theory(k: Constants) -> dict[str, float]:
    """The schedule of Theorem 4.10, then a last ALEXR stage from w_tau.

    The last stage reaches eps^2 times the accuracy of the inner loop: |w - prox| = O(eps^2). There the
    gradient of F_lam, with a Lipschitz constant of O(1 / eps), is O(eps). ``finer`` is the ratio of
    1 - theta in the last stage to 1 - theta in the inner loop.
    """
    values = alexr2.theory(k)
    inner = alexr2.inner_loop(k, 1.0)
    last = alexr2.inner_loop(k, k.eps**2)
    return {
        **values,
        "finer": last.away / inner.away,
        "last": last.steps,
        "iterations": values["iterations"] + last.steps,
    }


#: Assumptions of ALEXR2 that this algorithm does not need, or replaces.
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
