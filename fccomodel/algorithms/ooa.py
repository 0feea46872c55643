"""OOA: ascent in the groups' weights, descent in the weighted risks (Sagawa et al., 2019; alexr-2025,
appendix F)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms.alexr import next_stage
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import coupled_weights
from fccomodel.algorithms.runtime.loops import steps

algorithm = Algorithm(
    name="ooa",
    title="OOA",
    requires={
        "linear coupling": "alexr-2025, appendix F",
        "convex": "alexr-2025, Table 4",
        "two levels": "alexr-2025, problem (7)",
        "tracked blocks": "alexr-2025, problem (7)",
        "bounded domain": "Sagawa et al. 2019, Proposition 2",
        "inner Lipschitz": "alexr-2025, Table 4",
        "bounded variance": "alexr-2025, Table 4",
        "unconstrained": "alexr-2025, appendix F",
    },
    beyond={"bounded domain": "iterates are taken to stay bounded"},
    outer="subgradient",
    estimator=coupled_weights,
    next_stage=next_stage,
    steps={"plain": steps.plain_step},
    rate="n^2 log(n) / eps^2",
    gives="optimum",
    theorem="alexr-2025, Table 4",
    cite="Sagawa, Koh, Hashimoto and Liang, Distributionally robust neural networks for group shifts, "
    "ICLR 2020",
    hyper={"tau": 1.0},
    grid=grids.OOA,
)
