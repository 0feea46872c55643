"""The solves of a sweep, each from those before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import new_rows
from fccomodel.app.python import starting
from fccomodel.app.python.sweeps import errors
from fccomodel.app.python.sweeps.record import Point, Sweep
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.data.bound import Bound
from fccomodel.pipeline import starts
from fccomodel.plan.start import Start

#: A curve through answers is continued for at most this many times the distance of the last two.
FARTHEST_STEP = 2.0
#: Largest number of answers that a curve goes through.
CURVE_ANSWERS = 4

#: What is told of a sweep as it goes: the point solved last, how many there are, of how many.
Told = Callable[[Point, int, int], None]


def sweep(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    bound: Bound,
    values: Mapping[str, Iterable[Any]],
    chosen: options.Origins,
    *,
    start: Any = None,
    show: Iterable[str] = (),
    progress: Told | None = None,
) -> Sweep:
    """A solve for each combination of the params' values, in order, the last param's first; Ctrl-C
    keeps what is done.

    Each begins where its neighbour ended, on the curve through the four before at most. Raises what
    the first solve raises, and F0518, F0520 for params that there are not and values that they do
    not take, before any solve.
    """
    names, lists = list(values), [_listed(name, given) for name, given in values.items()]
    if not names or not all(lists):
        refuse(errors.nothing_to_sweep())
    idle = {one.unused for one in compiled.problem.warnings}
    if alike := [name for name in names if name in idle]:
        refuse(*map(errors.nothing_depends_on, alike))
    cells = list(itertools.product(*(range(len(entries)) for entries in lists)))
    points: list[Point] = []
    interrupted = False
    bindings = [pipeline.rebind(compiled, binding, bound, _at(names, lists, cell)) for cell in cells]
    done: dict[tuple[int, ...], pipeline.Outcome] = {}
    for cell, (given, again) in zip(cells, bindings, strict=True):
        try:
            planned = _planned(compiled, given, again, chosen, start, cell, lists, done)
            outcome = new_rows.solve(planned, show=show)
        except KeyboardInterrupt:
            if not points:
                raise
            interrupted = True
            break
        except FccoError as error:
            if not points:
                raise
            points.append(Point(values=_at(names, lists, cell), error=error.diagnostics[0].message))
            continue
        interrupted = outcome.status == "interrupted"
        if interrupted and points:
            break
        done[cell] = outcome
        points.append(Point(values=_at(names, lists, cell), outcome=outcome))
        if progress is not None:
            progress(points[-1], len(points), len(cells))
        if interrupted:
            break
    return Sweep(
        compiled=compiled,
        params=tuple(names),
        points=tuple(points),
        count=len(cells),
        interrupted=interrupted,
    )


def _listed(name: str, given: Any) -> list[Any]:
    """The values of a param: those of a list, an array, a range; a number alone is one."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return [value.item() if isinstance(value, np.generic) else value for value in given]


def _at(names: Sequence[str], lists: Sequence[list[Any]], cell: Sequence[int]) -> dict[str, Any]:
    return {name: entries[k] for name, entries, k in zip(names, lists, cell, strict=True)}


def _planned(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    bound: Bound,
    chosen: options.Origins,
    start: Any,
    cell: tuple[int, ...],
    lists: Sequence[list[Any]],
    done: Mapping[tuple[int, ...], pipeline.Outcome],
) -> pipeline.Planned:
    """The plan for one combination, by the neighbour's algorithm as long as that has the same
    guarantee, with its start."""
    own = "holdout" not in chosen and (chosen.get("seed", (0,))[0] == 0 or not compiled.problem.nets)
    near = next((other for other in _neighbours(cell) if other in done), None)
    if near is None:
        like = None
    else:
        like = done[near].planned
    planned = pipeline.plan(compiled, binding, chosen, bound=bound if own else None, like=like)
    if near is None:
        return starting.begun(planned, start)
    return starts.begun(planned, _before(planned, cell, near, lists, done))


def _neighbours(cell: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The combinations before one, a step of a single param away, the last param's first."""
    for k in reversed(range(len(cell))):
        if cell[k]:
            yield (*cell[:k], cell[k] - 1, *cell[k + 1 :])


def _before(
    planned: pipeline.Planned,
    cell: tuple[int, ...],
    near: tuple[int, ...],
    lists: Sequence[list[Any]],
    done: Mapping[tuple[int, ...], pipeline.Outcome],
) -> Start:
    """The neighbour's answer; where there are others on its other side, on the curve through them."""
    last = starts.after(planned, done[near].planned, done[near].solution)
    k = next(k for k in range(len(cell)) if cell[k] != near[k])
    row = [(*near[:k], near[k] - back, *near[k + 1 :]) for back in range(CURVE_ANSWERS)]
    known = [other for other in itertools.takewhile(done.__contains__, row)]
    try:
        now, *places = (float(lists[k][other[k]]) for other in (cell, *known))
    except TypeError:  # of arrays
        return last
    steps = [abs(a - b) for a, b in itertools.pairwise((now, *places))]
    count = (
        sum(
            1
            for _ in itertools.takewhile(
                lambda pair: 0 < pair[0] <= FARTHEST_STEP * pair[1], itertools.pairwise(steps)
            )
        )
        + 1
    )
    if count == 1 or len(set(places[:count])) < count:
        return last
    answers = [starts.after(planned, done[other].planned, done[other].solution) for other in known[:count]]
    return starts.ahead([*zip(places, answers, strict=False)], now)
