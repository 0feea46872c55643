"""SGD on the mean over all rows instead of the worst group: empirical risk minimisation (alexr-2025,
section 5.1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import plug_in
from fccomodel.algorithms.runtime.loops import steps

algorithm = Algorithm(
    name="sgd",
    title="SGD",
    requires={
        "blocks partition rows": "alexr-2025, section 5.1",
        "inner smooth": "of stochastic gradient descent",
        "bounded variance": "of stochastic gradient descent",
        "unconstrained": "alexr-2025, section 5.1",
    },
    outer="smooth",
    surrogate="row_average",
    estimator=plug_in,
    steps={"plain": steps.plain_step},
    rate="1 / eps^4",
    theorem="of the mean over rows, another problem",
    cite="alexr-2025, section 5.1 (the baseline SGD)",
    grid=grids.SGD,
)
