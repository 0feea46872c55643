"""Data sets on which key and answer are compared: the same numbers, under the names of each.

Random data have ties: some numbers of a column are those that a condition compares it with, so that
``<`` and ``<=`` differ. Dims have different sizes, so that a wrong index is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app.grading.names import NamePairing
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.data.mock import mock

#: Rows of a random table; of the second number if conditions leave an expectation without rows.
ROWS = (24, 240)
#: Share of a random column's numbers that are those of conditions.
TIED_SHARE = 0.3
#: The size of the first dim of random data; each further one is larger by one.
FIRST_SIZE = 5
#: By how much the vectors of two classes of random rows are apart, in standard deviations.
SIGNAL = 6.0
#: Where a random param lies between its bounds, as a share; the distance from a single bound.
PARAM_RANGE = (0.2, 0.8)

#: Size from which on a number in a model is larger than most points.
LARGE = 100.0
#: Ratio of two sizes that count as different ones, and how many of these count.
APART = 1.5
MOST_SIZES = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Trial:
    """Key and answer on the same data.

    given  whether the data are the user's, not random
    """

    key: Bound
    answer: Bound
    names: NamePairing
    given: bool


def random_data(
    key: ir.Problem, answer: ir.Problem, names: NamePairing, seed: int, rows: int, positive: bool
) -> pipeline.Binding:
    """Random data for the key; params without effect on sizes move as well."""
    sizes = {dim: FIRST_SIZE + k for k, dim in enumerate(key.dims)}
    drawn = mock(key, rows=rows, seed=seed, positive=positive, sizes=sizes)
    rng = np.random.default_rng(seed)
    moved = {}
    if seed:
        moved = {name: _inside(p, rng) for name, p in key.params.items() if _is_free(p, name, names)}
    data = drawn.data
    if not positive:
        ties = np.array(sorted(_compared(key) | _compared(answer) | {0.0}))
        data = {name: _tied(key.tables.get(name), value, ties, rng) for name, value in data.items()}
    data = {name: _with_signal(key.tables.get(name), value, rng) for name, value in data.items()}
    return pipeline.Binding(**{**vars(drawn), "data": data, "params": {**drawn.params, **moved}})


def _is_free(parameter: ir.Parameter, name: str, names: NamePairing) -> bool:
    """Whether both models have the param, and it is one number that is not whole by default."""
    value = parameter.default
    whole = isinstance(value, ir.Const) and value.value == int(value.value) and value.value > 1
    return name in names.params and not parameter.shape and not whole


def _inside(parameter: ir.Parameter, rng: np.random.Generator) -> float:
    """A random number inside the bounds of a param."""
    low, high = parameter.lower, parameter.upper
    share = float(rng.uniform(*PARAM_RANGE))
    if low > -inf and high < inf:
        return low + share * (high - low)
    if low > -inf:
        return low + share
    if high < inf:
        return high - share
    return share


def _compared(problem: ir.Problem) -> set[float]:
    """The constants of all formulas and sets: conditions compare columns with some of them."""
    values: set[float] = set()
    roots = list(problem.roots)
    for node in problem.expressions(ir.Reduce):
        roots += [b.domain.where for b in node.binders if isinstance(b.domain, ir.RowSet) and b.domain.where]
    for variable in problem.variables.values():
        roots += [arg for domain in variable.sets for arg in domain.args if isinstance(arg, ir.Expr)]
    values |= {node.value for node in ir.walk(*roots) if isinstance(node, ir.Const)}
    for parameter in problem.params.values():
        if isinstance(parameter.default, ir.Const):
            values.add(parameter.default.value)
    return values


def large_sizes(trial: Trial) -> list[float]:
    """The sizes of the largest numbers and params of both models, beyond the usual sizes of points."""
    numbers = _compared(trial.key.problem) | _compared(trial.answer.problem)
    for bound in (trial.key, trial.answer):
        numbers |= {float(np.abs(value).max(initial=0.0)) for value in bound.params.values()}
    sizes: list[float] = []
    for size in sorted({abs(number) for number in numbers}, reverse=True):
        if LARGE <= size < inf and all(size <= other / APART for other in sizes):
            sizes.append(size)
    return sizes[:MOST_SIZES]


def _tied(table: ir.Table | None, value: Any, ties: np.ndarray, rng: np.random.Generator) -> Any:
    """A table whose numbers are partly those of conditions; other data stay as they are."""
    if table is None or table.family is not None:
        return value
    columns = {}
    for name, column in value.items():
        kind = table.columns[name]
        if kind.kind == "real" and kind.domain is None and not kind.shape and not kind.bounded:
            chosen = rng.random(column.shape) < TIED_SHARE
            column = np.where(chosen, rng.choice(ties, column.shape), column)
        columns[name] = column
    return columns


def _with_signal(table: ir.Table | None, value: Any, rng: np.random.Generator) -> Any:
    """A table whose vectors depend on its first column of classes: bounds on losses can then be met."""
    if table is None or table.family is not None:
        return value
    classes = [name for name, kind in table.columns.items() if kind.domain is not None and not kind.shape]
    if not classes:
        return value
    codes = np.unique(value[classes[0]], return_inverse=True)[1]
    columns = {}
    for name, column in value.items():
        kind = table.columns[name]
        if kind.kind == "real" and kind.domain is None and len(kind.shape) == 1 and not kind.bounded:
            direction = rng.standard_normal(column.shape[1:])
            column = column + SIGNAL * codes[:, None] * np.abs(direction)
        columns[name] = column
    return columns


def for_answer(bound: Bound, key: ir.Problem, answer: ir.Problem, names: NamePairing) -> pipeline.Binding:
    """The data of the bound key under the answer's names."""
    data: dict[str, Any] = {}
    for own, other in names.tables.items():
        table = _table(bound, key.tables[own])
        if key.tables[own].family is None:
            data[other] = _renamed(table, own, names)
        else:
            data[other] = {member: _renamed(part, own, names) for member, part in table.items()}
    data |= {other: bound.arrays[own] for own, other in names.arrays.items()}
    labels = {name: list(found) for name, found in bound.labels.items()}
    sets = {
        name: labels.get(name, next(iter(labels.values()), []))
        for name, s in answer.sets.items()
        if isinstance(s, ir.LabelSet) and s.labels is None
    }
    dims = {name: bound.dims[name] for name in answer.dims if name in bound.dims}
    return pipeline.Binding(
        spec={"sets": sets, "dims": dims},
        data=data,
        params={other: bound.params[own] for own, other in names.params.items()},
        nets={other: bound.nets[own] for own, other in names.nets.items()},
        samplers=bound.samplers,
    )


def _table(bound: Bound, table: ir.Table) -> dict[str, Any]:
    """The columns of a bound table as a user would give them; of a family, by member."""
    own = bound.tables[table.name]
    columns = {name: _column(bound, kind, own.columns[name]) for name, kind in table.columns.items()}
    if table.family is None:
        return columns
    codes = np.asarray(own.columns[ir.FAMILY])
    domain = table.family.domain
    members: dict[str, Any] = {}
    for code in np.unique(codes):
        if isinstance(domain, ir.LabelSet):
            member = (domain.labels or bound.labels[domain.name])[int(code)]
        else:
            member = f"{code:g}"
        members[member] = {name: column[codes == code] for name, column in columns.items()}
    return members


def _column(bound: Bound, kind: ir.ColumnType, values: Any) -> Any:
    """A column with labels in place of their positions."""
    if not isinstance(kind.domain, ir.LabelSet):
        return values
    labels = np.array(kind.domain.labels or bound.labels[kind.domain.name])
    return labels[np.asarray(values, dtype=int)]


def _renamed(columns: Mapping[str, Any], table: str, names: NamePairing) -> dict[str, Any]:
    """The columns under the answer's names."""
    return {
        names.columns[table, name]: column
        for name, column in columns.items()
        if (table, name) in names.columns
    }


def trials(
    key: pipeline.Compiled, answer: pipeline.Compiled, names: NamePairing, given: Bound | None
) -> Iterator[Trial]:
    """The user's data if there are any, then random data sets, the last of which is positive.

    Raises FccoError if the key cannot be bound, or the answer to the same data.
    """
    if given is not None:
        yield _trial(key, answer, names, given, given=True)
    for seed, positive in enumerate(KINDS_OF_DATA):
        yield _trial(key, answer, names, drawn(key, answer, names, seed, positive), given=False)


def _trial(
    key: pipeline.Compiled, answer: pipeline.Compiled, names: NamePairing, bound: Bound, *, given: bool
) -> Trial:
    binding = for_answer(bound, key.problem, answer.problem, names)
    theirs = replace(pipeline.bind(answer, binding), draws=bound.draws)
    return Trial(key=bound, answer=theirs, names=names, given=given)


#: Draws of a distribution in random trials.
DRAWS = 500
#: For each random data set, whether its numbers are all positive.
KINDS_OF_DATA = (False, False, True)


def drawn(
    key: pipeline.Compiled, answer: pipeline.Compiled, names: NamePairing, seed: int, positive: bool
) -> Bound:
    """The key on random data: positive ones, or more rows, if the first are refused."""
    kinds = (True,) if positive else (False, True)
    attempts = [(rows, kind) for kind in kinds for rows in ROWS]
    for k, (rows, kind) in enumerate(attempts):
        try:
            bound = pipeline.bind(key, random_data(key.problem, answer.problem, names, seed, rows, kind))
            return replace(bound, draws=DRAWS)
        except FccoError:
            if k == len(attempts) - 1:
                raise
    raise AssertionError("the last attempt returns or raises")
