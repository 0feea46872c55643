"""BSGD: the minibatch gradient with minibatch inner values, without memory (Hu et al., 2020; sox-2022,
section 2.2)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants, Theorem
from fccomodel.algorithms.estimators import plug_in
from fccomodel.algorithms.runtime.loops import steps


def theory(k: Constants) -> dict[str, float]:
    """The step of stochastic gradient descent on a smooth function: eta = min(1, eps^2 / (2 spread)) / L_F.

    The bias L_f sigma C_g / sqrt(B2) depends on B2 alone.
    """
    eta = min(1.0, k.eps**2 / (2 * k.spread) if k.spread else 1.0) / k.smoothness()
    return {"eta": eta, "iterations": 4 * k.delta0 / (eta * k.eps**2)}


algorithm = Algorithm(
    name="bsgd",
    title="BSGD",
    requires={
        "two levels": "sox-2022, section 2.1",
        "outer smooth": "sox-2022, Table 1",
        "outer Lipschitz": "sox-2022, section 2.2",
        "inner smooth": "sox-2022, Table 1",
        "inner Lipschitz": "sox-2022, section 2.2",
        "bounded variance": "sox-2022, section 2.2",
        "unconstrained": "sox-2022, section 2",
        "unregularised": "sox-2022, section 2.1",
        "whole space": "sox-2022, section 2.1",
    },
    beyond={**NESTED, **PROXIMAL},
    outer="smooth",
    estimator=plug_in,
    steps={"plain": steps.plain_step},
    rate="1 / eps^6",
    counts="oracle calls",
    better=(
        Theorem(
            name="sox-2022, Table 1 (inner batches of 1 / eps)",
            rate="1 / eps^3",
            where={"convex": "sox-2022, Table 1"},
            gives="optimum",
        ),
    ),
    practice=("inner batches: of one size, where the theorem's grow with the accuracy",),
    theorem="sox-2022, Table 1 (inner batches of 1 / eps^2)",
    cite="Hu, Zhang, Chen and He, Biased stochastic first-order methods for conditional stochastic "
    "optimization, NeurIPS 2020",
    theory=theory,
    grid=grids.BSGD,
)
