"""Every distribution: its draws lie where it says, follow its density, and are the same in a program
and in a report."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from support.conformance_tools import Book

from fccomodel.evaluation.sets.draws import transformation
from fccomodel.library import distributions
from fccomodel.library.atoms import Interval
from fccomodel.library.distributions import Distribution
from fccomodel.library.distributions._quantiles import gamma_quantile

ALL = distributions.all()
BOOK = Book(Distribution)
#: the same in scipy, and parameters
KNOWN = {
    "normal": (lambda mean, sd: stats.norm(mean, sd), [(0.0, 1.0), (-2.0, 0.3)]),
    "weibull": (lambda shape, scale: stats.weibull_min(shape, scale=scale), [(0.7, 2.0), (3.0, 1.0)]),
    "lognormal": (lambda mean, sd: stats.lognorm(sd, scale=math.exp(mean)), [(0.0, 0.5), (1.0, 0.2)]),
    "uniform": (lambda low, high: stats.uniform(low, high - low), [(0.0, 1.0), (-2.0, 3.0)]),
    "bernoulli": (stats.bernoulli, [(0.0,), (0.3,), (1.0,)]),
    "laplace": (lambda mean, scale: stats.laplace(mean, scale), [(0.0, 1.0), (4.0, 0.3)]),
    "exponential": (lambda rate: stats.expon(scale=1 / rate), [(1.0,), (0.2,)]),
    "gamma": (lambda a, rate: stats.gamma(a, scale=1 / rate), [(3.0, 2.0), (0.3, 1.0), (80.0, 0.1)]),
    "poisson": (stats.poisson, [(0.0,), (0.7,), (30.0,)]),
}
CASES = [(name, values) for name, (_, settings) in KNOWN.items() for values in settings]


def drawn(record: Distribution, values: tuple[float, ...], number: int = 100_000) -> np.ndarray:
    standard = distributions.noise(
        record.standard, (number,), torch.Generator().manual_seed(1), "cpu", torch.float64
    )
    return transformation(record.torch, len(values))(
        standard, *(torch.tensor(v, dtype=torch.float64) for v in values)
    ).numpy()


def inside(record: Distribution) -> tuple[float, ...]:
    """Some parameters that it may have."""
    choices = np.random.default_rng(0).uniform(0.1, 0.9, (200, len(record.parameters)))
    return next(
        tuple(v) for v in choices if record.broken([np.array([x]) for x in v], record.parameters) is None
    )


@BOOK.checks("torch", "standard", "program")
@pytest.mark.parametrize(("name", "values"), CASES, ids=str)
def test_draws_follow_the_law(name: str, values: tuple[float, ...]) -> None:
    found, law = drawn(ALL[name], values), KNOWN[name][0](*values)
    for power in (1, 2):
        error = np.std(found**power) / math.sqrt(len(found))
        assert abs(np.mean(found**power) - law.moment(power)) <= 4 * error + 1e-12
    grid = law.ppf([0.1, 0.5, 0.9])
    assert np.abs([np.mean(found <= x) - law.cdf(x) for x in grid]).max() < 0.01


@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.5, 2.0, 50.0, 1e6])
def test_quantiles_of_gamma(shape: float) -> None:
    """Far tails too, and quantiles near 0 of small shapes; a uniform number that rounds to 1 has one."""
    share = np.array([1e-12, 1e-3, 0.3, 0.6, 0.99, 1 - 1e-9])
    found, law = gamma_quantile(torch.tensor(share), shape, 2.0).numpy(), stats.gamma(shape, scale=0.5)
    normal = law.ppf(share) > 1e-290
    assert np.allclose(found[normal], law.ppf(share)[normal], rtol=1e-7, atol=0)
    assert gamma_quantile(torch.ones(1), shape, 2.0).isfinite().all()


@BOOK.checks("range", "bounded", "name", "meaning", "parameters")
@pytest.mark.parametrize("name", ALL)
def test_draws_lie_where_they_should(name: str) -> None:
    record = ALL[name]
    values = inside(record)
    found, where = drawn(record, values), record.range(*map(Interval.point, values))
    assert all(where.has(float(x)) for x in found[:1000]) and (where.mag < math.inf) == record.bounded
    assert where.inside(record.range(*(Interval(v - 1, v + 1) for v in values)))
    assert (
        record.name == name
        and record.meaning
        and record.signature.startswith(f"{name}({record.parameters[0]}")
    )


@BOOK.checks("density")
@pytest.mark.parametrize("name", ALL)
def test_where_there_is_a_density_no_draw_comes_twice(name: str) -> None:
    """Up to the grid of double precision. One that is not declared is not relied on."""
    values = inside(ALL[name])
    draws = drawn(ALL[name], values)
    assert len(np.unique(draws)) > 0.99 * len(draws) or not ALL[name].density(*map(Interval.point, values))


def test_every_field_is_checked() -> None:
    assert not BOOK.missing
