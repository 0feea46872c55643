"""The Bernoulli distribution."""

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions.base import Distribution

bernoulli = Distribution(
    name="bernoulli",
    meaning="1 with probability p, else 0",
    parameters=("p",),
    domain=(Interval(0.0, 1.0),),
    standard="uniform",
    torch="({z} < {0}).to({z}.dtype)",
    range=lambda p: Interval(0.0, 1.0),
    bounded=True,
)
