"""The solves of a sweep, each started from the answers before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import new_rows
from fccomodel.app.python.starts import begun
from fccomodel.app.python.sweeps import errors
from fccomodel.app.python.sweeps.record import Sweep, SweepPoint
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.data.bound import Bound
from fccomodel.pipeline import starts
from fccomodel.plan.starts import Start

#: A curve through answers is continued for at most this many times the distance of the last two.
FARTHEST_STEP = 2.0
#: Largest number of answers that a curve goes through.
CURVE_ANSWERS = 4

#: Called after each solve of a sweep with its point, the number of points so far, and of all points.
Told = Callable[[SweepPoint, int, int], None]


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
    """Solve for each combination of the params' values. Ctrl-C ends the sweep and keeps its points.

    The last param varies fastest. Each solve starts from its neighbour's answer, extrapolated along
    the answers before (see ``_before``). An error of the first solve is raised; a later one becomes a
    point without outcome. Raises F0518 for unknown params and F0520 for values outside a param's
    domain, before any solve.
    """
    names = list(values)
    lists = [_listed(given) for given in values.values()]
    if not names or not all(lists):
        refuse(errors.nothing_to_sweep(tuple(compiled.problem.params)))
    unused = {warning.unused for warning in compiled.problem.warnings}
    idle = [name for name in names if name in unused]
    if idle:
        refuse(*map(errors.nothing_depends_on, idle))
    cells = list(itertools.product(*(range(len(entries)) for entries in lists)))
    points: list[SweepPoint] = []
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
            points.append(SweepPoint(values=_at(names, lists, cell), error=error.diagnostics[0].message))
            continue
        interrupted = outcome.status == "interrupted"
        if interrupted and points:
            break
        done[cell] = outcome
        points.append(SweepPoint(values=_at(names, lists, cell), outcome=outcome))
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


def _listed(given: Any) -> list[Any]:
    """The values of a param as a list: of a list, an array, a range, or a single value."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return [value.item() if isinstance(value, np.generic) else value for value in given]


def _at(names: Sequence[str], lists: Sequence[list[Any]], cell: Sequence[int]) -> dict[str, Any]:
    """The values of the params in one combination, given by its places in the lists."""
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
    """The plan for one combination, with its start.

    It takes the neighbour's algorithm if this has the guarantee of the algorithm that would be chosen.
    """
    first_weights_differ = chosen.get("seed", (0,))[0] != 0 and bool(compiled.problem.nets)
    data = None if "holdout" in chosen or first_weights_differ else bound
    near = next((other for other in _neighbours(cell) if other in done), None)
    if near is None:
        like = None
    else:
        like = done[near].planned
    planned = pipeline.plan(compiled, binding, chosen, bound=data, like=like)
    if near is None:
        return begun(planned, start)
    return starts.begun(planned, _before(planned, cell, near, lists, done))


def _neighbours(cell: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The combinations with one param a step earlier, beginning with the last param."""
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
    """The start of one combination: extrapolated along the answers before, else the neighbour's answer.

    The answers are those at the neighbour and behind it, along the param that differs. An answer is
    used as long as the values of the param are about evenly spaced.
    """
    last = starts.after(planned, done[near].planned, done[near].solution)
    k = next(k for k in range(len(cell)) if cell[k] != near[k])
    behind = [(*near[:k], near[k] - back, *near[k + 1 :]) for back in range(CURVE_ANSWERS)]
    solved = list(itertools.takewhile(done.__contains__, behind))
    try:
        now, *places = (float(lists[k][other[k]]) for other in (cell, *solved))
    except TypeError:  # values that are arrays
        return last
    steps = [abs(a - b) for a, b in itertools.pairwise((now, *places))]
    count = 1
    for step, step_before in itertools.pairwise(steps):
        if not 0 < step <= FARTHEST_STEP * step_before:
            break
        count += 1
    if count == 1 or len(set(places[:count])) < count:
        return last
    answers = [starts.after(planned, done[other].planned, done[other].solution) for other in solved[:count]]
    return starts.ahead([*zip(places, answers, strict=False)], now)
