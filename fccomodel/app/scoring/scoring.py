"""Values of an answer at new rows, with the scaling and the categories that it was solved with."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app.scoring import errors, rows
from fccomodel.app.scoring.rows import Quantity, is_only_compared
from fccomodel.core import ir
from fccomodel.core.diagnostics import quoting, refuse
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.evaluation.sets import elements

if TYPE_CHECKING:
    import torch

#: The keys of a table's section in the binding file that hold for new rows too.
LASTING = ("missing", "na", "separator")
#: Atoms whose value is a probability.
PROBABILITIES = ("sigmoid", "normcdf")
#: The atom that gives the probabilities of several classes.
OF_CLASSES = "softmax"


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """An answer without its data.

    point      the variables
    numbers    params and arrays by name
    sizes      of dims and sets
    labels     the members of sets of labels
    encoding   by table and column what was learned from the rows
    sections   by table what the binding says of all rows, new ones too
    nets       the modules
    samplers   of the distributions that the language does not have
    """

    compiled: pipeline.Compiled
    point: Mapping[str, np.ndarray]
    numbers: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]
    labels: Mapping[str, tuple[str, ...]]
    encoding: Mapping[str, Any]
    sections: Mapping[str, Any]
    nets: Mapping[str, torch.nn.Module] = field(default_factory=dict)
    samplers: Mapping[str, Any] = field(default_factory=dict)


def fitted(outcome: pipeline.Outcome) -> Fitted:
    """The answer of a solved problem, without its data."""
    bound, compiled = outcome.bound, outcome.planned.compiled
    return Fitted(
        compiled=compiled,
        point=outcome.solution.variables,
        numbers={**bound.arrays, **bound.params},
        sizes=sizes(bound),
        labels=bound.labels,
        encoding={name: table.encoding for name, table in bound.tables.items()},
        sections=sections(bound.sources),
        nets=bound.nets,
        samplers=bound.samplers,
    )


def sizes(bound: Bound) -> dict[str, int]:
    """The sizes that do not depend on the number of rows."""
    problem = bound.problem
    lasting = {*problem.dims, *(name for name, of in problem.sets.items() if not isinstance(of, ir.RowSet))}
    return {name: size for name, size in bound.dims.items() if name in lasting}


def sections(sources: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the binding that hold for new rows too, for each table."""
    specs = {name: source.get("spec") for name, source in sources.items()}
    return {
        name: {k: spec[k] for k in LASTING if k in spec}
        for name, spec in specs.items()
        if isinstance(spec, Mapping)
    }


# ----------------------------------------------------------------------------------------- new rows
def value(known: Fitted, wanted: Quantity, data: Any) -> np.ndarray:
    """A quantity at each row: (rows, *others, *its own axes), float64.

    It is NaN at rows that the binding leaves out as incomplete. ``data`` is anything that binds, with
    the columns that the quantity reads. Raises F05xx if they do not bind as before.
    """
    table, read = bound_rows(known, wanted, data, wanted.columns)
    values = at(known, wanted, table)
    everything = np.full((read, *values.shape[1:]), np.nan)
    everything[table.numbers] = values
    return everything


def bound_rows(known: Fitted, wanted: Quantity, data: Any, columns: Sequence[str]) -> tuple[BoundTable, int]:
    """The table of a quantity with these columns alone, bound as before; and the number of rows read."""
    from fccomodel.data import bind
    from fccomodel.data.bind.errors.words import UNSEEN
    from fccomodel.report import cautions

    problem, name = _alone(wanted, columns), wanted.table.name
    learned = {column: record for column, record in known.encoding.get(name, {}).items() if column in columns}
    labels = {s: list(of) for s, of in known.labels.items() if _open(problem, s)}
    numbers = {n: number for n, number in known.numbers.items() if n in problem.params}
    sizes = {n: size for n, size in known.sizes.items() if n in problem.dims}
    with quoting(problem.source):
        bound = bind.bind(
            problem,
            spec={"sets": labels, name: known.sections.get(name, {})},
            data={name: data},
            params={**numbers, **sizes},
            encoding={name: learned},
        )
    unseen = [note for note in bound.notes if UNSEEN in note]
    for note in (*unseen, *cautions.all()["other units"].find(cautions.Subject(bound=bound))):
        warnings.warn(note, stacklevel=5)
    return bound.tables[name], bound.sources[name]["rows_read"]


def _open(problem: ir.Problem, name: str) -> bool:
    """Whether the labels of a set come with the data."""
    index_set = problem.sets.get(name)
    return isinstance(index_set, ir.LabelSet) and index_set.labels is None


def _alone(wanted: Quantity, columns: Sequence[str]) -> ir.Problem:
    """The problem with nothing left to bind except these columns of the quantity's table."""
    problem = wanted.problem
    table = replace(wanted.table, columns={name: wanted.table.columns[name] for name in columns})
    nothing = replace(problem.objective, expr=ir.Const(value=0.0, span=problem.objective.span))
    return replace(problem, tables={table.name: table}, arrays={}, nets={}, constraints=(), objective=nothing)


def at(known: Fitted, wanted: Quantity, table: BoundTable) -> np.ndarray:
    """A quantity at each row of a bound table (see ``value``)."""
    import torch

    from fccomodel.evaluation.interpret import evaluate

    bound = with_tables(known, wanted.problem, [table])
    env = {binder: elements.ids(bound, binder.domain) for binder in wanted.others}
    with quoting(wanted.problem.source), torch.no_grad():
        values = evaluate(bound, wanted.expr, point_of(known), {wanted.row: np.arange(table.n), **env})
    return values.double().numpy()


def with_tables(known: Fitted, problem: ir.Problem, tables: Sequence[BoundTable]) -> Bound:
    """The problem bound to these tables alone, with the numbers and nets of an answer."""
    return Bound(
        problem=problem,
        tables={table.name: table for table in tables},
        arrays={name: known.numbers[name] for name in problem.arrays},
        params={name: known.numbers[name] for name in problem.params},
        dims={**known.sizes, **{table.name: table.n for table in tables}},
        labels=known.labels,
        nets=known.nets,
        samplers=known.samplers,
    )


def point_of(known: Fitted) -> dict[str, torch.Tensor]:
    """The variables of an answer as tensors in float64."""
    import torch

    return {name: torch.as_tensor(np.asarray(of), dtype=torch.float64) for name, of in known.point.items()}


# ------------------------------------------------------------------------------------------ classes
def predicted(
    known: Fitted, wanted: Quantity, scores: np.ndarray, *, threshold: float | None, target: str | None
) -> np.ndarray:
    """The predicted label of each row.

    - one score and a column with two values: the larger value if the score is above the threshold
    - several scores: the class with the largest score
    - otherwise the score itself

    Raises F0814 if several columns may be meant, or if a row that needs a class has no score.
    """
    if scores.ndim == 2:
        return _largest(known, wanted, scores)
    if (column := _target(known, wanted, target)) is None:
        return scores
    if threshold is not None:
        level = threshold
    elif is_only_compared(wanted):
        refuse(errors.no_threshold(wanted.name))
    else:
        level = limit(wanted)
    if np.isnan(scores).any():
        refuse(errors.no_class(int(np.isnan(scores).sum())))
    return _classes(known, wanted, column)[(scores > level).astype(int)]


def judged(
    known: Fitted, wanted: Quantity, rows: Any, *, target: str | None = None, by: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The score of each row, whether it has the larger of two values, and its group.

    rows    a bound table, or anything that binds
    target  the column with two values
    by      a column of labels that gives the group, "" without one

    Raises F0814 if no column, or more than one, has two values.
    """
    column, kinds = _target(known, wanted, target), wanted.table.columns
    if column is None:
        refuse(errors.nothing_to_judge_by(wanted.table.name))
    grouping = [name for name, one in kinds.items() if isinstance(one.domain, ir.LabelSet)]
    if by is not None and by not in grouping:
        refuse(errors.no_groups(by, grouping))
    needed = [*wanted.columns, column, *([] if by is None else [by])]
    if isinstance(rows, BoundTable):
        table = rows
    else:
        table = bound_rows(known, wanted, rows, needed)[0]
    if by is None:
        member = np.full(table.n, "")
    else:
        domain = kinds[by].domain
        assert isinstance(domain, ir.LabelSet)
        member = np.array(domain.labels or known.labels[domain.name])[table.columns[by]]
    return at(known, wanted, table), table.columns[column] == _values(known, wanted, column)[1], member


def limit(wanted: Quantity) -> float:
    """The threshold between two classes: 1/2 for a probability, else 0."""
    if _outermost(wanted) in PROBABILITIES:
        return 0.5
    return 0.0


def probable(wanted: Quantity) -> bool:
    """Whether scores are probabilities, by the atom that makes them."""
    return _outermost(wanted) in (*PROBABILITIES, OF_CLASSES)


def _outermost(wanted: Quantity) -> str:
    top = wanted.outermost
    if isinstance(top, ir.Apply):
        return top.op
    return ""


def _target(known: Fitted, wanted: Quantity, target: str | None) -> str | None:
    """The column with two values that the score predicts, or None. Raises F0814 if there are several."""
    kinds = wanted.table.columns
    columns_left = [
        name for name in kinds if name not in wanted.columns and len(_values(known, wanted, name)) == 2
    ]
    if target is not None:
        if target in kinds and isinstance(kinds[target].domain, ir.LabelSet):
            refuse(errors.target_of_labels(target))
        if target not in columns_left:
            refuse(errors.no_target(target, columns_left))
        return target
    if len(columns_left) > 1:
        refuse(errors.which_target(wanted.table.name, columns_left))
    if columns_left:
        return columns_left[0]
    return None


def _values(known: Fitted, wanted: Quantity, column: str) -> np.ndarray:
    params = {name: known.numbers[name] for name in wanted.problem.params}
    return values_of(wanted.problem, wanted.table, column, params, known.sizes)


def values_of(
    problem: ir.Problem,
    table: ir.Table,
    column: str,
    params: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
) -> np.ndarray:
    """The numbers that a column takes, in order; none if they are not listed."""
    domain = table.columns[column].domain
    if not isinstance(domain, ir.ValueSet) or table.columns[column].shape:
        return np.zeros(0)
    return np.sort(elements.values(Bound(problem=problem, params=params, dims=sizes or {}), domain))


def _classes(known: Fitted, wanted: Quantity, column: str) -> np.ndarray:
    """The column's values in order, as they appear in the data."""
    return _worded(known, wanted, column, _values(known, wanted, column))


def _worded(known: Fitted, wanted: Quantity, column: str, values: np.ndarray) -> np.ndarray:
    """Values of a column as they appear in the data, if its map has one word for each; else as numbers."""
    record = known.encoding.get(wanted.table.name, {}).get(column, {})
    words = {float(number): word for word, number in (record.get("map") or {}).items()}
    if len(words) != len(record.get("map") or {}) or set(words) != set(values.tolist()):
        if (values % 1).any():
            return values
        return values.astype(np.int64)
    named = [words[number] for number in values.tolist()]
    if record.get("text", True):
        return np.array(named)
    return np.array([float(word) for word in named])


def members(known: Fitted, wanted: Quantity, count: int) -> np.ndarray:
    """The classes that the ``count`` entries of a vector of scores stand for.

    They are the labels or the numbers of its set, else the numbers of the only column that has as
    many, in order, else their positions.
    """
    if wanted.expr.shape:
        dim = wanted.expr.shape[0]
    else:
        dim = wanted.others[0].domain.name
    if isinstance(dim, str):
        index_set = wanted.problem.sets.get(dim)
    else:
        index_set = None
    if isinstance(index_set, ir.LabelSet):
        return np.array(known.labels[str(dim)] if index_set.labels is None else index_set.labels)
    if isinstance(index_set, ir.ValueSet):
        params = {name: known.numbers[name] for name in wanted.problem.params}
        return elements.values(Bound(problem=wanted.problem, params=params, dims=known.sizes), index_set)
    columns = [column for column in wanted.table.columns if len(_values(known, wanted, column)) == count]
    if len(columns) == 1:
        return _values(known, wanted, columns[0])
    return np.arange(count)


def _largest(known: Fitted, wanted: Quantity, scores: np.ndarray) -> np.ndarray:
    """The class with the largest score of each row."""
    if np.isnan(scores).any():
        refuse(errors.no_class(int(np.isnan(scores).any(1).sum())))
    names = members(known, wanted, scores.shape[1])
    if names.dtype.kind in "if":
        columns = [
            name
            for name in wanted.table.columns
            if set(_values(known, wanted, name).tolist()) == set(names.tolist())
        ]
        if len(columns) == 1:
            names = _worded(known, wanted, columns[0], names)
    return names[scores.argmax(1)]


# --------------------------------------------------------------------------------------------- nets
class Modules(Mapping[str, Any]):
    """The modules of a stored answer, made on demand. Raises F0814 for one that was a Python object."""

    def __init__(
        self,
        problem: ir.Problem,
        binding: pipeline.Binding,
        sizes: Mapping[str, int],
        statistics: Mapping[str, np.ndarray],
    ):
        self._problem, self._binding, self._sizes, self._made = problem, binding, sizes, dict[str, Any]()
        self._statistics = statistics

    def __getitem__(self, name: str) -> Any:
        from fccomodel.data import nets

        if name not in self._made:
            definition = definition_of(self._binding, name)
            folders = () if self._binding.data_dir is None else (self._binding.data_dir,)
            net, allowed = self._problem.nets[name], self._binding.allow_python
            network = nets.build(net, definition, self._sizes, allow_python=allowed, folders=folders)[0]
            self._made[name] = nets.with_buffers(network, of_net(self._statistics, name))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._problem.nets)

    def __len__(self) -> int:
        return len(self._problem.nets)


def definition_of(binding: pipeline.Binding, name: str) -> Any:
    """What makes a net of a stored answer; F0814 if that was a Python object that has no text."""
    if isinstance(binding.spec, Mapping):
        definitions = binding.spec.get("nets", {})
    else:
        definitions = {}
    definition = binding.nets.get(name, definitions.get(name))
    if definition is None:
        refuse(errors.net_not_stored(name))
    return definition


def of_net(statistics: Mapping[str, np.ndarray], net: str) -> dict[str, np.ndarray]:
    """The buffers of one net by name, of those of all nets by ``net:buffer``."""
    split_keys = ((key.partition(":"), value) for key, value in statistics.items())
    return {name: value for (owner, _, name), value in split_keys if owner == net}


def module(known: Fitted, name: str) -> torch.nn.Module:
    """A net with the weights of the answer, a copy of the user's own module in evaluation mode; ``name``
    is the net's, or its variable's.

    F0814 where there is none, or several variables are weights of the net.
    """
    import torch

    from fccomodel.data.nets import own

    variables = known.compiled.problem.variables
    of_net = [
        v for v, variable in variables.items() if variable.net is not None and name in (v, variable.net)
    ]
    if len(of_net) != 1:
        refuse(
            errors.no_module(
                name, [v for v in variables if variables[v].net is not None], several=len(of_net) > 1
            )
        )
    net = variables[of_net[0]].net
    assert net is not None
    network, weights, start = copy.deepcopy(known.nets[net]), np.asarray(known.point[of_net[0]]), 0
    with torch.no_grad():
        for parameter in network.parameters():
            part = weights[start : start + parameter.numel()].reshape(tuple(parameter.shape))
            parameter.copy_(torch.as_tensor(part))
            start += parameter.numel()
    return own(network).eval()


__all__ = ["Fitted", "at", "fitted", "module", "predicted", "rows", "sections", "sizes", "value"]
