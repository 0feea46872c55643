"""VRSC-PG: values and Jacobians corrected at a reference point, in epochs of constant length (Huo et al.
2018, Algorithm 1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import corrected, refer


def begin(state, F, h):
    """The reference point of an epoch is the last iterate."""
    refer(state, F, state.w)


def corrected_step(state, F, h):
    """w <- prox_{eta R}(w - eta v) with the corrected gradient v."""
    eta = 0.5 * h.eta
    state.w = F.prox(state.w - eta * corrected(state, F), eta)


algorithm = Algorithm(
    name="vrsc_pg",
    title="VRSC-PG",
    requires={
        "unconstrained": "Huo et al. 2018, section 2",
        "shared inner": "Huo et al. 2018, section 2",
        "two levels": "Huo et al. 2018, section 2",
        "finite sum": "Huo et al. 2018, section 2",
        "prox regulariser": "Huo et al. 2018, section 2",
        "outer smooth": "Huo et al. 2018, Assumption 2",
        "outer Lipschitz": "Huo et al. 2018, Assumption 2",
        "inner smooth": "Huo et al. 2018, Assumption 2",
        "smooth samples": "Huo et al. 2018, Assumption 2",
        "inner Lipschitz": "Huo et al. 2018, Assumption 2",
        "bounded variance": "Huo et al. 2018, section 2 (finite sums)",
    },
    oracle="vector",
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    steps={"corrected": corrected_step},
    counts="oracle calls",
    rate="(m + n) + (m + n)^(2/3) / eps^2",
    theorem="Huo et al. 2018, Theorem 3",
    cite="Huo, Gu, Liu and Huang, Accelerated method for stochastic composition optimization with "
    "nonsmooth regularization, "
    "AAAI 2018",
    hyper={**vector_loop.DEFAULTS, "stage": 200, "longest": 200, "inner_batch": 32},
    grid=grids.VECTOR,
)
