"""Fixed random samples of distributions: a binder of a problem always has the same draws."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.lazy import torch
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors
from fccomodel.evaluation.memory import remember
from fccomodel.evaluation.sets.axes import Named, new_axis, spread, union
from fccomodel.evaluation.sets.elements import shape
from fccomodel.library import distributions


def drawn(problem: ir.Problem) -> bool:
    """Whether an expectation of the problem is over a distribution."""
    for reduction in problem.expressions(ir.Reduce):
        if any(isinstance(binder.domain, ir.Distribution) for binder in reduction.binders):
            return True
    return False


def sample(
    bound: Bound,
    binder: ir.Binder,
    args: Sequence[Named],
    draws: int,
    seed: int,
    along: Sequence[tuple[int, int]] = (),
) -> Named:
    """``draws`` values of the binder along a new axis.

    They are independent for every element of the axes ``along``, given as (serial, length). If the
    parameters of the distribution vary over axes, the same uniform or normal numbers are used at each
    of their elements.
    """
    domain = binder.domain
    assert isinstance(domain, ir.Distribution)
    event = shape(bound, domain.shape)
    lengths = {**dict(along), new_axis(): draws}
    axes = tuple(sorted(lengths))
    size = (*(lengths[axis] for axis in axes), *event)
    binder_seed = stream(bound, binder, seed)
    family = distributions.get(domain.family)
    if family is None:
        return user(bound, domain, args, axes, size, seed=binder_seed)
    generator = torch.Generator().manual_seed(binder_seed)
    base = Named(distributions.noise(family.standard, size, generator, "cpu", torch.float64), axes)
    all_axes = union([base, *args])
    noise = spread(base, all_axes, len(event))
    parameters = [spread(arg, all_axes, len(event)) for arg in args]
    transform = transformation(family.torch, len(parameters))
    return Named(transform(noise, *parameters), all_axes)


@cache
def transformation(text: str, count: int) -> Callable[..., torch.Tensor]:
    """The function of a standard draw and ``count`` parameters that a distribution's text describes."""
    parameters = [f"a{k}" for k in range(count)]
    arguments = ", ".join(["z", *parameters])
    body = text.format(*parameters, z="z")
    return eval(f"lambda {arguments}: {body}", {"torch": torch, **distributions.programs()})  # noqa: S307


def user(
    bound: Bound,
    domain: ir.Distribution,
    args: Sequence[Named],
    axes: tuple[int, ...],
    size: tuple[int, ...],
    *,
    seed: int,
) -> Named:
    """Draws of a sampler given from Python.

    It is called as ``sampler(rng, n, *args)`` with a NumPy generator and returns n draws, (n, *shape).
    """
    sampler = bound.samplers.get(domain.family)
    if sampler is None:
        refuse(errors.no_sampler(domain.family), source=bound.problem.source)
    if any(arg.axes for arg in args):
        refuse(errors.sampler_of_an_index(domain.family), source=bound.problem.source)
    event = size[len(axes) :]
    number = math.prod(size[: len(axes)])
    rng = np.random.default_rng(seed)
    parameters = [arg.data.numpy() for arg in args]
    draws = np.asarray(sampler(rng, number, *parameters))
    if draws.shape != (number, *event):
        error = errors.shape_of_draws(domain.family, draws.shape, (size[0], *event))
        refuse(error, source=bound.problem.source)
    return Named(torch.as_tensor(draws, dtype=torch.float64).reshape(size), axes)


def stream(bound: Bound, binder: ir.Binder, seed: int) -> int:
    """The seed of a binder's sample; it differs between binders and is the same in every process."""
    numbers = remember(bound, "binders", lambda: _numbers(bound.problem))
    number = numbers.get(binder)
    if number is None:
        number = zlib.crc32(binder.name.encode())
    return (seed * 1_000_003 + number * 7919 + 12_345) % (1 << 63)


def _numbers(problem: ir.Problem) -> dict[ir.Binder, int]:
    """The binders of a problem's reductions, numbered in order."""
    numbers: dict[ir.Binder, int] = {}
    for node in problem.expressions():
        if isinstance(node, ir.Reduce):
            for binder in node.binders:
                numbers.setdefault(binder, len(numbers))
    return numbers
