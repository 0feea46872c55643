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
    reductions = problem.expressions(ir.Reduce)
    return any(isinstance(binder.domain, ir.Distribution) for node in reductions for binder in node.binders)


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
    event, axis = shape(bound, domain.shape), new_axis()
    axes = tuple(sorted((*(serial for serial, _ in along), axis)))
    lengths = dict(along) | {axis: draws}
    generator = torch.Generator().manual_seed(stream(bound, binder, seed))
    size = (*(lengths[a] for a in axes), *event)
    known = distributions.get(domain.family)
    if known is None:
        return user(bound, domain, args, axes, size, seed=stream(bound, binder, seed))
    base = Named(distributions.noise(known.standard, size, generator, "cpu", torch.float64), axes)
    everything = union([base, *args])
    noise, *parameters = [spread(part, everything, len(event)) for part in (base, *args)]
    return Named(made(known.torch, len(parameters))(noise, *parameters), everything)


@cache
def made(text: str, count: int) -> Callable[..., torch.Tensor]:
    """The function of a standard draw and ``count`` parameters that a distribution's text describes."""
    names = [f"a{k}" for k in range(count)]
    code = f"lambda {', '.join(['z', *names])}: {text.format(*names, z='z')}"
    return eval(code, {"torch": torch})  # noqa: S307


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
    drawn = np.asarray(sampler(np.random.default_rng(seed), number, *(arg.data.numpy() for arg in args)))
    if drawn.shape != (number, *event):
        error = errors.shape_of_draws(domain.family, drawn.shape, (size[0], *event))
        refuse(error, source=bound.problem.source)
    return Named(torch.as_tensor(drawn, dtype=torch.float64).reshape(size), axes)


def stream(bound: Bound, binder: ir.Binder, seed: int) -> int:
    """The seed of a binder's sample; it differs between binders and is the same in every process."""
    number = remember(bound, "binders", lambda: _numbers(bound.problem)).get(
        binder, zlib.crc32(binder.name.encode())
    )
    return (seed * 1_000_003 + number * 7919 + 12_345) % (1 << 63)


def _numbers(problem: ir.Problem) -> dict[ir.Binder, int]:
    """The binders of a problem's reductions, numbered in order."""
    numbers: dict[ir.Binder, int] = {}
    for node in problem.expressions():
        for binder in node.binders if isinstance(node, ir.Reduce) else ():
            numbers.setdefault(binder, len(numbers))
    return numbers
