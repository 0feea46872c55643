"""SGD with up-weighting: on the mean of the groups' risks instead of the worst (alexr-2025, section
5.1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import plug_in
from fccomodel.algorithms.runtime.loops import steps

algorithm = Algorithm(
    name="sgd_uw",
    title="SGD-UW",
    requires={
        "blocks partition rows": "alexr-2025, section 5.1",
        "inner smooth": "of stochastic gradient descent",
        "bounded variance": "of stochastic gradient descent",
        "unconstrained": "alexr-2025, section 5.1",
    },
    outer="smooth",
    surrogate="group_average",
    estimator=plug_in,
    steps={"plain": steps.plain_step},
    rate="1 / eps^4",
    theorem="of the mean over groups, another problem",
    cite="Buda, Maki and Mazurowski, A systematic study of the class imbalance problem, Neural Networks 2018",
    grid=grids.SGD,
)
