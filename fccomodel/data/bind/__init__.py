"""Binding: a checked model and its data become arrays, with every size, domain and label checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import nets
from fccomodel.data.bind import (
    _arrays,
    _families,
    _labels,
    _prepared,
    _reader,
    _sizes,
    _tables,
    demands,
    errors,
    numbers,
)
from fccomodel.data.bind._drawn import DrawnArguments, keyed, only_nets_read
from fccomodel.data.bind._families import Opened
from fccomodel.data.bind._sink import Sink
from fccomodel.data.bind._sizes import KnownSizes
from fccomodel.data.bind._spec import ArraySpec, Spec, TableSpec, by_name
from fccomodel.data.bind._tables import TableDraft
from fccomodel.data.bind.collect import Errors
from fccomodel.data.bind.errors.binding_file import BINDING_FILE
from fccomodel.data.bind.errors.demands import ENCODING
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.data.drawn import drawn
from fccomodel.data.sources import Spool
from fccomodel.data.sources.errors import FILE

if TYPE_CHECKING:
    import torch

__all__ = ["DrawnArguments", "Inputs", "Sink", "bind", "keyed", "parameters"]

#: Gives the inputs of a net at some rows of what is bound: ``(bound, net, rows)``; None where there are none.
Inputs = Callable[[Bound, str, int], "list[torch.Tensor] | None"]


def bind(  # noqa: PLR0913  (keywords of `Model.bind`, each an input of its own)
    problem: ir.Problem,
    *,
    spec: Mapping[str, Any] | str | Path | None = None,
    data: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    nets: Mapping[str, Any] | None = None,
    samplers: Mapping[str, Callable[..., Any]] | None = None,
    data_dir: str | Path | None = None,
    allow_python: bool = False,
    seed: int = 0,
    encoding: Mapping[str, Any] | None = None,
    where: str | Mapping[str, str] | None = None,
    without: str | None = None,
    rows: Mapping[str, np.ndarray] | None = None,
    sink: Sink | None = None,
    inputs: Inputs | None = None,
    drawing: DrawnArguments | None = None,
) -> Bound:
    """Bind a model to its data. Raises FccoError with every error at once.

    spec      the binding file (TOML), or its content as nested mappings
    data      for each table or array, in place of its ``source``: a path, a DataFrame, an Arrow table, a
              dict or tuple of arrays or tensors, or a torch Dataset. Members of a family are named
              ``"S.member"``, or are a mapping
    params    numbers by name, also the size of a dim that no data fix. They override ``[params]`` and
              the model's defaults
    nets      torch modules, ``"mlp(64, 64, activation = elu)"``, or ``"file.py:Name"``, which needs
              ``allow_python``
    samplers  functions for the model's own distributions
    encoding  for each table, the ``BoundTable.encoding`` of an earlier binding, whose categories, scales
              and labels are used again
    where     a condition that replaces the ``where`` of every table, or a condition for each table
    without   a condition on further rows to leave out, in every table
    rows      for some tables, the source's row numbers of the only rows to take
    sink      writes vectors block by block, so that they are not held in memory
    drawing   transforms and workers of columns whose rows are drawn
    inputs    gives the inputs of a net at some rows, on which its module is tried; zeros without it

    Feature matrices are float64, filled column by column, and scaled in place: the peak of memory is
    one copy and a few columns. An array that is float64 and contiguous already is not copied.
    """
    folders = () if data_dir is None else (Path(data_dir),)
    request = _Request(
        problem=problem,
        spec=spec,
        data={name: value for name, value in by_name(data, "data").items() if value is not None},
        params=by_name(params, "params"),
        given_nets={name: value for name, value in by_name(nets, "nets").items() if value is not None},
        samplers=by_name(samplers, "samplers"),
        folders=folders,
        allow_python=allow_python,
        seed=seed,
        encoding=encoding or {},
        where=_condition(where, by_table=True),
        without=_condition(without),
        rows=rows or {},
        sink=sink,
        inputs=inputs,
        drawing=drawing or DrawnArguments(),
    )
    return _Binder(request).run()


def _condition(given: Any, *, by_table: bool = False) -> Any:
    """A condition: a text, or a mapping of texts by table; F0503 for anything else."""
    if by_table and isinstance(given, Mapping):
        return {name: _condition(text) for name, text in by_name(given, "where").items()}
    if given is not None and not isinstance(given, str):
        refuse(errors.binding_file.where())
    return given


def parameters(problem: ir.Problem, given: Mapping[str, Any]) -> Bound:
    """A problem with the values of some params and sizes, to explain a model without its data.

    Raises F0517 - F0520 for a name that is not declared, a param of unknown shape, or a value that does
    not fit.
    """
    errors, given = Errors(), by_name(given, "params")
    demands.names(errors, "param", given, [*problem.params, *problem.dims])
    known = {name: value for name, value in given.items() if name in problem.params}
    labels: dict[str, tuple[str, ...]] = {}
    values = numbers.NumberValues(problem, known, lambda dim: sizes.of(dim), labels)
    sizes = _sizes.start(problem, values.scalar, {}, lambda *_: "")
    demands.dims(problem, Spec(), given, sizes, errors)
    params: dict[str, np.ndarray] = {}
    labels |= sizes.labels
    for name in known:
        with errors.collect(span=problem.params[name].span):
            params[name] = values.param(name)
    errors.stop(problem.source)
    return Bound(
        problem=problem, params=params, dims={name: placed.size for name, placed in sizes.by_name.items()}
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Request:
    """The keywords of ``bind``, checked; ``folders`` are searched before the folder of the binding file."""

    problem: ir.Problem
    spec: Mapping[str, Any] | str | Path | None
    data: dict[str, Any]
    params: dict[str, Any]
    given_nets: dict[str, Any]
    samplers: dict[str, Callable[..., Any]]
    folders: tuple[Path, ...]
    allow_python: bool
    seed: int
    encoding: Mapping[str, Any]
    where: str | Mapping[str, str] | None
    without: str | None
    rows: Mapping[str, np.ndarray]
    sink: Sink | None
    inputs: Inputs | None
    drawing: DrawnArguments


class _Binder:
    """The steps of one binding.

    Each step adds to ``errors``. They are raised before a step that needs the failed ones.
    """

    def __init__(self, request: _Request):
        problem, folders = request.problem, request.folders
        self.problem = problem
        self.data = request.data
        self.params = request.params
        self.given_nets = request.given_nets
        self.samplers = request.samplers
        self.allow_python = request.allow_python
        self.seed = request.seed
        self.encoding = request.encoding
        self.where = request.where
        self.without = request.without
        self.only = request.rows
        self.sink = request.sink
        self.inputs = request.inputs
        self.drawing = request.drawing
        self.lazy = {} if self.sink is not None else only_nets_read(problem)
        self.drawing.check(problem, self.lazy)
        self.errors = Errors()
        self.notes: list[str] = []
        self.spec = Spec()
        with self.errors.collect():
            self.spec = _reader.read(problem, request.spec, (Path(), *folders), self.errors)
        self.stop_if_unreadable()
        if self.spec.folder is not None:
            self.folders = (*folders, self.spec.folder, Path())
            self.within = (*folders, self.spec.folder)
        else:
            self.folders = (*folders, Path())
            self.within = self.folders

    def stop_if_unreadable(self) -> None:
        """Raise the errors so far if a file could not be read."""
        if any(d.code in (BINDING_FILE.id, FILE.id) for d in self.errors.diagnostics):
            self.errors.stop(self.problem.source)

    def run(self) -> Bound:
        """Bind everything; raises all errors together."""
        problem, errors = self.problem, self.errors
        self.check_names()
        raw_params = dict(self.spec.params)
        for name, value in self.params.items():
            if name in problem.params:
                raw_params[name] = value
        labels: dict[str, tuple[str, ...]] = {}
        values = numbers.NumberValues(problem, raw_params, lambda dim: sizes.of(dim), labels)
        sizes = _sizes.start(problem, values.scalar, self.spec.sets, self.spec.place)
        demands.dims(problem, self.spec, self.params, sizes, errors)
        self.earlier_labels(sizes)
        domains = self.domains(values)
        drafts = self.tables(sizes, domains)
        arrays, array_sources = self.arrays(sizes, values)
        sizes.settle()
        labels |= sizes.labels
        params = numbers.bind_params(problem, values, self.spec, self.params, errors)
        tables = self.finish(drafts, sizes, values)
        modules = self.nets(sizes, tables, arrays, params)
        demands.all_sizes_fixed(problem, sizes, errors)
        dims = self.all_sizes(sizes, tables)
        demands.samplers(problem, self.samplers, errors)
        errors.stop(problem.source)
        for name, module in modules.items():
            if not problem.nets[name].frozen:
                dims[f"params({name})"] = nets.size(module)
        sources: dict[str, Any] = {}
        notes: list[str] = []
        for name, draft in drafts.items():
            sources[name] = draft.record | {"encoding": tables[name].encoding}
            notes += draft.notes
        return Bound(
            problem=problem,
            tables=tables,
            arrays=arrays,
            params=params,
            dims=dims,
            labels=dict(sizes.labels),
            nets=modules,
            samplers=self.samplers,
            sources=sources | array_sources,
            notes=tuple(dict.fromkeys([*notes, *self.notes])),
            claims=tuple(sizes.claims),
        )

    def check_names(self) -> None:
        """F0518 for data, parameters, nets and conditions that the model does not declare."""
        problem, errors = self.problem, self.errors
        self.data = demands.by_table(problem, self.data)
        demands.names(errors, "table or array", self.data, [*problem.tables, *problem.arrays])
        demands.names(errors, "param", self.params, [*problem.params, *problem.dims])
        demands.names(errors, "net", self.given_nets, problem.nets)
        if isinstance(self.where, Mapping):
            demands.names(errors, "table", self.where, problem.tables)

    def earlier_labels(self, sizes: KnownSizes) -> None:
        """Declare the labels of an earlier binding."""
        with self.errors.collect():
            demands.stored_encoding(self.problem, self.encoding)
        if any(d.code == ENCODING.id for d in self.errors.diagnostics):
            self.errors.stop(self.problem.source)
        for columns in self.encoding.values():
            for record in columns.values():
                if record.get("labels") is not None and record["set"] not in sizes.labels:
                    sizes.declare_labels(record["set"], tuple(record["labels"]), "the earlier binding")

    def domains(self, values: numbers.NumberValues) -> dict[str, dict[str, tuple[float, ...]]]:
        """The numbers of value sets by table and column.

        Sets that need the data are left out.
        """
        domains: dict[str, dict[str, tuple[float, ...]]] = {}
        for table in self.problem.tables.values():
            domains[table.name] = {}
            for name, kind in table.columns.items():
                if isinstance(kind.domain, ir.ValueSet) and kind.domain.items is not None:
                    with Errors().collect():  # what cannot be computed yet is asked for again after the data
                        domains[table.name][name] = tuple(_sizes.members(kind.domain, values.scalar))
        return domains

    # ----------------------------------------------------------------------------------------- data
    def ways(self, stored: Mapping[str, Any] | None = None, table: ir.Table | None = None) -> _families.Ways:
        """The settings for reading sources: folders, allowed files, and the encoding of earlier rows.

        For a ``table`` also which of its columns may be drawn, and how.
        """
        ways = _families.Ways(folders=self.folders, within=self.within, stored=stored or {}, spool=self.spool)
        if table is None:
            return ways
        columns = self.lazy.get(table.name, frozenset())
        return replace(ways, columns=columns, drawing=self.drawing.of(table, columns))

    def tables(
        self, sizes: KnownSizes, domains: Mapping[str, Mapping[str, tuple[float, ...]]]
    ) -> dict[str, TableDraft]:
        """The tables by name, before their rows are chosen."""
        drafts: dict[str, TableDraft] = {}
        for name, table in self.problem.tables.items():
            section = _leaving_out(self.spec.tables.get(name, TableSpec()), self.without)
            source = self.data.get(name)
            stored = self.encoding.get(name, {})
            if isinstance(self.where, Mapping):
                where = self.where.get(name)
            else:
                where = self.where
            family_labels = self.family_labels(table, sizes)
            opened = None
            with self.errors.collect(span=table.span, place=section.place if source is None else ""):
                ways = self.ways(stored, table)
                opened = _families.open_table(table, section, source, where, family_labels, ways)
                if name in self.only:
                    opened = self.rows_alone(name, opened)
            if opened is None:
                continue
            source_replaced = section.source is not None and source is not None
            if source_replaced and not opened.raw.ready and not stored:
                self.notes.append(
                    f"{name}: {opened.raw.origin} in place of the binding's source {section.source}"
                )
            section = opened.spec or section
            if opened.members and table.family is not None and family_labels is None:
                sizes.declare_labels(table.family.domain.name, opened.members, f"the members of {name}")
            columns_of_table = _tables.Section(
                table=table,
                spec=section,
                opened=opened,
                stored=stored,
                sizes=sizes,
                domains=domains.get(name, {}),
                errors=self.errors,
                sink=self.sink,
                drawing=self.ways(stored, table).drawing,
            )
            drafts[name] = _tables.draft(columns_of_table)
            if drafts[name].columns:
                with self.errors.collect(span=table.span):
                    sizes.unify(name, drafts[name].rows.n, name, f"the rows of {name}")
            for column, built in drafts[name].columns.items():
                domain = table.columns[column].domain
                if built.labels is not None and domain is not None and domain.name not in sizes.labels:
                    sizes.learn(domain.name, built.labels, built.keys)
                if built.labels is not None and self.sink is not None:
                    self.sink.labels[name, column] = built.labels, built.keys
        return drafts

    @property
    def spool(self) -> Spool | None:
        """The file for columns of sources that are not held in memory, or None."""
        if self.sink is None:
            return None
        return self.sink.spool

    def rows_alone(self, name: str, opened: Opened) -> Opened:
        """The chosen rows of a table; F0536 if its columns were scaled by other rows."""
        stored = self.encoding.get(name, {})
        scaled = _prepared.by_all_rows(opened.raw)
        if any(stored.get(column, {}).get("kind") not in ("number", "features") for column in scaled):
            refuse(errors.tables.rows_of_prepared(name, opened.raw.called))
        return opened.only(self.only[name])

    def family_labels(self, table: ir.Table, sizes: KnownSizes) -> tuple[str, ...] | None:
        """The elements of a family's set as texts; None if only the data list them."""
        if table.family is None:
            return None
        domain = table.family.domain
        if isinstance(domain, ir.ValueSet):
            labels = None
            with self.errors.collect(span=table.span):
                labels = tuple(f"{value:.12g}" for value in _sizes.members(domain, sizes.value))
            return labels
        return sizes.labels.get(domain.name)

    def arrays(
        self, sizes: KnownSizes, values: numbers.NumberValues
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays by name, and a record of their sources."""
        arrays: dict[str, np.ndarray] = {}
        records: dict[str, Any] = {}
        for name, array in self.problem.arrays.items():
            section = self.spec.arrays.get(name, ArraySpec())
            source = self.data.get(name)
            with self.errors.collect(span=array.span, place=section.place if source is None else ""):
                arrays[name], records[name] = _arrays.bind_array(array, section, source, sizes, self.ways())
                records[name]["spec"] = _prepared.plain(section.raw)
        values.arrays = arrays
        for name, value in arrays.items():
            array = self.problem.arrays[name]
            with self.errors.collect(span=array.span):
                number = _tables.Built(values=np.atleast_1d(value))
                rows = _tables.RowsInUse(total=len(np.atleast_1d(value)))
                _tables.check_domain(number, array.type, name, self.members(array.type, values), rows)
        return arrays, records

    def members(self, kind: ir.ColumnType, values: numbers.NumberValues) -> np.ndarray | None:
        """The numbers of a column's value set, or None."""
        if isinstance(kind.domain, ir.ValueSet):
            return _sizes.members(kind.domain, values.scalar)
        return None

    def finish(
        self, drafts: Mapping[str, TableDraft], sizes: KnownSizes, values: numbers.NumberValues
    ) -> dict[str, BoundTable]:
        """The tables with labels as positions in their sets, after a check of all domains."""
        tables: dict[str, BoundTable] = {}
        for name, draft in drafts.items():
            columns: dict[str, np.ndarray] = {}
            for column, built in draft.columns.items():
                kind, what = draft.table.columns[column], f"{name}.{column}"
                with self.errors.collect(span=kind.span, place=draft.entries[column].place):
                    if isinstance(kind.domain, ir.LabelSet):
                        columns[column], notes = _labels.positions(built, kind.domain, what, draft, sizes)
                        self.notes += notes
                    elif drawn(built.values):
                        columns[column] = built.values
                    else:
                        _tables.check_domain(built, kind, what, self.members(kind, values), draft.rows)
                        columns[column] = built.values
            if draft.opened.family is not None:
                columns[ir.FAMILY] = self.family_column(draft.table, draft.opened.family, values)
            encoding = _labels.encoding_of(draft, sizes)
            if _labels.as_prepared(draft, columns):
                indices = draft.opened.raw.indices
            else:
                indices = {}
            tables[name] = BoundTable(
                name=name,
                n=draft.rows.n,
                columns=columns,
                encoding=encoding,
                rows=draft.rows.indices,
                indices=indices,
            )
        return tables

    def family_column(
        self, table: ir.Table, positions: np.ndarray, values: numbers.NumberValues
    ) -> np.ndarray:
        """The member of each row: a number of the family's set, or a position in its labels."""
        if table.family is not None and isinstance(table.family.domain, ir.ValueSet):
            return _sizes.members(table.family.domain, values.scalar)[positions]
        return positions

    # ------------------------------------------------------------------------- sizes, nets, records
    def all_sizes(self, sizes: KnownSizes, tables: Mapping[str, BoundTable]) -> dict[str, int]:
        """The sizes of dims, of sets with listed elements, and of tables (their number of rows)."""
        names = list(self.problem.dims)
        for name, index_set in self.problem.sets.items():
            if isinstance(index_set, ir.LabelSet | ir.ValueSet):
                names.append(name)
        by_name = {}
        for name in names:
            size = sizes.of(name)
            if size is not None:
                by_name[name] = size
        by_name |= {name: placed.size for name, placed in sizes.by_name.items()}
        by_name |= {name: table.n for name, table in tables.items()}
        return by_name

    def nets(
        self,
        sizes: KnownSizes,
        tables: Mapping[str, BoundTable],
        arrays: Mapping[str, np.ndarray],
        params: Mapping[str, np.ndarray],
    ) -> dict[str, Any]:
        """The modules by the names of the nets, each tried on rows of the data. Dims that nothing else
        decides are those of their outputs."""
        modules: dict[str, Any] = {}
        for k, (name, net) in enumerate(self.problem.nets.items()):
            definition = self.given_nets.get(name, self.spec.nets.get(name))
            place = ""
            if name in self.spec.nets and name not in self.given_nets:
                place = self.spec.place("nets", name)
            dims = self.all_sizes(sizes, tables)
            ends = [*(one.shape for one in net.inputs), net.output]
            names = [dim for end in ends for dim in end if isinstance(dim, str)]
            size_missing = any(dim not in dims for dim in names)
            if self.errors.diagnostics and size_missing:
                continue  # an earlier error says why the size is missing
            rows = None
            if self.inputs is not None and not self.errors.diagnostics:
                so_far = Bound(
                    problem=self.problem,
                    tables=tables,
                    arrays=arrays,
                    params=params,
                    dims=dims,
                    labels=dict(sizes.labels),
                    nets=dict(modules),
                    samplers=self.samplers,
                )
                rows = self.inputs(so_far, name, nets.TRIED_ROWS)
            with self.errors.collect(span=net.span, place=place):
                modules[name], notes = nets.build(
                    net,
                    definition,
                    dims,
                    seed=self.seed + k,
                    allow_python=self.allow_python,
                    folders=self.folders,
                    rows=rows,
                    learn=partial(_learn, sizes, name),
                )
                self.notes += notes
        return modules


def _learn(sizes: KnownSizes, net: str, dim: str, size: int) -> None:
    """Note the size of a dim that only the output of a net decides."""
    sizes.unify(dim, size, f"the output of {net}", f"the output of net {net}")


def _leaving_out(section: TableSpec, condition: str | None) -> TableSpec:
    """The section without the rows that satisfy a condition."""
    if condition is None:
        return section
    if section.where:
        where = f"({section.where}) and not ({condition})"
    else:
        where = f"not ({condition})"
    members = {name: _leaving_out(member, condition) for name, member in section.members.items()}
    return replace(section, where=where, members=members)
