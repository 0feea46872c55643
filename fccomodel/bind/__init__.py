"""Binding: a checked model and its data become arrays, with every size, domain and label checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel import elements, ir, nets
from fccomodel.bind import _arrays, _families, _sizes, _spec, _tables, _values
from fccomodel.bind._errors import Errors
from fccomodel.bind._sizes import Sizes
from fccomodel.bind._spec import ArraySpec, Spec, TableSpec
from fccomodel.bind._tables import Draft
from fccomodel.bound import Bound, BoundTable
from fccomodel.diagnostics import did_you_mean
from fccomodel.sources._base import refuse

__all__ = ["bind"]


def bind(
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
) -> Bound:
    """Everything that a model's names stand for; raises FccoError with every error found.

    spec      the binding file (TOML), or the same as nested mappings
    data      by table or array: path, DataFrame, Arrow table, dict or tuple of arrays or tensors, torch Dataset, in place of
              ``source``. A family's members are named ``"S.member"``, or given as a mapping
    params    numbers by name (also the size of a dim that no data fix); they come before ``[params]`` and the model's defaults
    nets      torch modules, ``"mlp(64, 64, activation = elu)"``, or ``"file.py:Name"``, which needs ``allow_python``
    samplers  the distributions that the model names and the language does not have
    encoding  by table what ``BoundTable.encoding`` was in an earlier binding: its categories, scales and labels are used again
    where     a condition in place of every table's own, or one per table
    without   a condition on the rows to leave out besides, of every table

    Feature matrices are float64, filled column by column, scaled in place: the peak is one copy and a few columns. An array that
    is float64, contiguous and used as it is, is not copied at all.
    """
    return _Binder(
        problem=problem,
        spec=spec,
        data={name: value for name, value in (data or {}).items() if value is not None},
        params=dict(params or {}),
        given_nets={name: value for name, value in (nets or {}).items() if value is not None},
        samplers=dict(samplers or {}),
        folders=tuple(Path(folder) for folder in ([data_dir] if data_dir is not None else [])),
        allow_python=allow_python,
        seed=seed,
        encoding=encoding or {},
        where=where,
        without=without,
    ).run()


class _Binder:
    """The steps of one binding; each adds to ``errors``, which is raised where the next step could not go on."""

    def __init__(
        self,
        *,
        problem: ir.Problem,
        spec: Mapping[str, Any] | str | Path | None,
        data: dict[str, Any],
        params: dict[str, Any],
        given_nets: dict[str, Any],
        samplers: dict[str, Callable[..., Any]],
        folders: tuple[Path, ...],
        allow_python: bool,
        seed: int,
        encoding: Mapping[str, Any],
        where: str | Mapping[str, str] | None,
        without: str | None,
    ):
        self.problem, self.data, self.params, self.given_nets, self.samplers = problem, data, params, given_nets, samplers
        self.allow_python, self.seed, self.encoding, self.where, self.without = allow_python, seed, encoding, where, without
        self.errors = Errors()
        self.notes: list[str] = []
        self.spec = Spec()
        with self.errors.collect():
            self.spec = _spec.read(problem, spec, (Path(), *folders), self.errors)
        self.stop_if_unreadable()
        beside = [self.spec.folder] if self.spec.folder is not None else []
        self.folders = (*folders, *beside, Path())

    def stop_if_unreadable(self) -> None:
        if any(d.code in ("F0501", "F0505") for d in self.errors.found):
            self.errors.stop(self.problem.source)

    def run(self) -> Bound:
        problem, errors = self.problem, self.errors
        self.known_names()
        given = {**self.spec.params, **{name: value for name, value in self.params.items() if name in problem.params}}
        values = _values.Values(problem, given, lambda dim: sizes.of(dim))
        sizes = _sizes.start(problem, values.scalar, self.spec.sets, self.spec.place)
        self.given_sizes(sizes)
        domains = self.domains(values)
        drafts = self.tables(sizes, domains)
        arrays, array_sources = self.arrays(sizes, values)
        sizes.settle()
        params = _values.bind_params(problem, values, self.spec, self.params, errors)
        tables = self.finish(drafts, sizes, values)
        self.demand_sizes(sizes)
        dims = self.all_sizes(sizes, tables)
        modules = self.nets(dims)
        samplers = self.find_samplers()
        errors.stop(problem.source)
        bound = Bound(
            problem=problem,
            tables=tables,
            arrays=arrays,
            params=params,
            dims=dims | {f"params({name})": nets.size(module) for name, module in modules.items()},
            labels=dict(sizes.labels),
            nets=modules,
            samplers=samplers,
            sources=self.records(drafts, sizes) | array_sources,
            notes=tuple(dict.fromkeys([*(note for draft in drafts.values() for note in draft.notes), *self.notes])),
        )
        self.check_claims(bound, sizes)
        errors.stop(problem.source)
        return bound

    def check_claims(self, bound: Bound, sizes: Sizes) -> None:
        """F0516 for an array over the rows of a filtered set (``real[P]``) that has another number of elements."""
        for name, size, what in sizes.claims:
            with self.errors.collect():
                rows = len(elements.ids(bound, self.problem.sets[name]))
                if rows != size:
                    refuse(
                        "F0516",
                        f"{what} has {size} elements where {name} has {rows}",
                        reason=f"{name} is a set of rows; its size is their number",
                        fix=f"give one value for each row of {name}, in their order",
                    )

    # ------------------------------------------------------------------------------------------------------------- names
    def known_names(self) -> None:
        """F0518 for data, parameters, nets and conditions that the model does not declare."""
        problem = self.problem
        members = {name for name, table in problem.tables.items() if table.family is not None}
        for name in list(self.data):
            table, dot, member = name.partition(".")
            if dot and table in members and name not in problem.tables:
                whole = self.data.setdefault(table, {})
                if isinstance(whole, Mapping):
                    self.data[table] = {**whole, member: self.data.pop(name)}
        self.unknown("table or array", self.data, [*problem.tables, *problem.arrays])
        self.unknown("param", self.params, [*problem.params, *problem.dims])
        self.unknown("net", self.given_nets, problem.nets)
        if isinstance(self.where, Mapping):
            self.unknown("table", self.where, problem.tables)

    def unknown(self, kind: str, given: Mapping[str, Any], names: Any) -> None:
        for name in given:
            if name not in names:
                listed = f"it declares {', '.join(names)}" if names else "it declares none"
                self.errors.add("F0518", f"the model declares no {kind} named {name}", fix=did_you_mean(name, names) or listed)

    def given_sizes(self, sizes: Sizes) -> None:
        """Dims that the user gives, and labels of an earlier binding."""
        keywords = {name: value for name, value in self.params.items() if name in self.problem.dims}
        for name, value in {**self.spec.dims, **keywords}.items():
            size = int(value) if isinstance(value, int | float | np.integer) and float(value).is_integer() else 0
            if size < 1:
                self.errors.add("F0520", f"dim {name} = {value} is not a whole number above 0", fix=f"--param {name}=10")
                continue
            place = "" if name in keywords else self.spec.place("dims", name)
            sizes.known[name] = _sizes.Known(size=size, place=place or f"{name} = {size} as given")
        with self.errors.collect():
            self.demand_encoding()
        if any(d.code == "F0531" for d in self.errors.found):
            self.errors.stop(self.problem.source)
        for record in (record for columns in self.encoding.values() for record in columns.values()):
            if record.get("labels") is not None and record["set"] not in sizes.labels:
                sizes.declare_labels(record["set"], tuple(record["labels"]), "the earlier binding")

    def demand_encoding(self) -> None:
        """F0531 for a stored encoding that is not of this model."""
        for name, columns in self.encoding.items():
            table = self.problem.tables.get(name)
            kinds = ("number", "vector", "features", "labels", "family")
            good = table is not None and isinstance(columns, Mapping)
            good = good and all(isinstance(record, Mapping) and record.get("kind") in kinds for record in columns.values())
            if table is None or not good or set(columns) - {*table.columns, ir.FAMILY}:
                refuse(
                    "F0531",
                    f"the stored encoding of {name} does not fit this model",
                    reason="it is what an earlier binding of the same model learned from its data",
                    fix="evaluate with the model that was solved, or bind without it",
                )

    def domains(self, values: _values.Values) -> dict[str, dict[str, tuple[float, ...]]]:
        """The numbers of value sets by table and column, as far as they are known before the data."""
        found: dict[str, dict[str, tuple[float, ...]]] = {}
        for table in self.problem.tables.values():
            found[table.name] = {}
            for name, kind in table.columns.items():
                if isinstance(kind.domain, ir.ValueSet) and kind.domain.items is not None:
                    with Errors().collect():  # what is not known yet is asked for again after the data
                        found[table.name][name] = tuple(_sizes.members(kind.domain, values.scalar))
        return found

    # -------------------------------------------------------------------------------------------------------------- data
    def tables(self, sizes: Sizes, domains: Mapping[str, Mapping[str, tuple[float, ...]]]) -> dict[str, Draft]:
        drafts: dict[str, Draft] = {}
        for name, table in self.problem.tables.items():
            section = _leaving_out(self.spec.tables.get(name, TableSpec()), self.without)
            stored = self.encoding.get(name, {})
            where = self.where.get(name) if isinstance(self.where, Mapping) else self.where
            known = self.family_labels(table, sizes)
            opened = None
            with self.errors.collect(span=table.span, place=section.place if self.data.get(name) is None else ""):
                opened = _families.open_table(table, section, self.data.get(name), where, known, self.folders)
            if opened is None:
                continue
            if opened.members and table.family is not None and known is None:
                sizes.declare_labels(table.family.domain.name, opened.members, f"the members of {name}")
            drafts[name] = _tables.draft(table, section, opened, stored, sizes, domains.get(name, {}), self.errors)
            if drafts[name].columns:
                with self.errors.collect(span=table.span):
                    sizes.unify(name, drafts[name].rows.n, name, f"the rows of {name}")
            for column, built in drafts[name].columns.items():
                domain = table.columns[column].domain
                if built.labels is not None and domain is not None and domain.name not in sizes.labels:
                    sizes.learn(domain.name, built.labels, built.keys)
        return drafts

    def family_labels(self, table: ir.Table, sizes: Sizes) -> tuple[str, ...] | None:
        """The elements of a family's set as text, where they are known before its data."""
        if table.family is None:
            return None
        domain = table.family.domain
        if isinstance(domain, ir.ValueSet):
            found = None
            with self.errors.collect(span=table.span):
                found = tuple(f"{value:.12g}" for value in _sizes.members(domain, sizes._value))
            return found
        return sizes.labels.get(domain.name)

    def arrays(self, sizes: Sizes, values: _values.Values) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        found: dict[str, np.ndarray] = {}
        records: dict[str, Any] = {}
        for name, array in self.problem.arrays.items():
            section = self.spec.arrays.get(name, ArraySpec())
            with self.errors.collect(span=array.span, place=section.place if self.data.get(name) is None else ""):
                found[name], records[name] = _arrays.bind_array(array, section, self.data.get(name), sizes, self.folders)
                records[name]["spec"] = _tables._plain(section.raw)
        values.arrays = found
        for name, value in found.items():
            array = self.problem.arrays[name]
            with self.errors.collect(span=array.span):
                built = _tables.Built(values=np.atleast_1d(value))
                rows = _tables.Rows(total=len(np.atleast_1d(value)))
                _tables.check_domain(built, array.type, name, self.members(array.type, values), rows)
        return found, records

    def members(self, kind: ir.ColumnType, values: _values.Values) -> np.ndarray | None:
        return _sizes.members(kind.domain, values.scalar) if isinstance(kind.domain, ir.ValueSet) else None

    def finish(self, drafts: Mapping[str, Draft], sizes: Sizes, values: _values.Values) -> dict[str, BoundTable]:
        """Labels as positions in their sets, domains checked."""
        tables: dict[str, BoundTable] = {}
        for name, draft in drafts.items():
            columns: dict[str, np.ndarray] = {}
            for column, built in draft.columns.items():
                kind, what = draft.table.columns[column], f"{name}.{column}"
                with self.errors.collect(span=kind.span, place=draft.entries[column].place):
                    if isinstance(kind.domain, ir.LabelSet):
                        columns[column] = self.place_labels(built, kind.domain, what, draft, sizes)
                    else:
                        _tables.check_domain(built, kind, what, self.members(kind, values), draft.rows)
                        columns[column] = built.values
            if draft.opened.family is not None:
                domain = draft.table.family.domain if draft.table.family is not None else None
                positions = draft.opened.family
                values_of = _sizes.members(domain, values.scalar) if isinstance(domain, ir.ValueSet) else None
                columns[ir.FAMILY] = positions if values_of is None else values_of[positions]
            tables[name] = BoundTable(name=name, n=draft.rows.n, columns=columns, encoding=self.encoding_of(draft, sizes))
        return tables

    def place_labels(self, built: Any, domain: ir.LabelSet, what: str, draft: Draft, sizes: Sizes) -> np.ndarray:
        """Positions in the set; F0521 for a label that it does not have."""
        codes, unknown = sizes.positions(domain.name, built.labels, built.values)
        if unknown:
            first = int(np.flatnonzero(codes < 0)[0])
            known, place = sizes.labels[domain.name], sizes.ordered[domain.name]
            refuse(
                "F0521",
                f"{what}: {', '.join(map(repr, unknown[:4]))}{', ...' if len(unknown) > 4 else ''} "
                f"{'are' if len(unknown) > 1 else 'is'} not in {domain.name}",
                reason=f"{domain.name} = {', '.join(known[:8])}{', ...' if len(known) > 8 else ''} by {place}; "
                f"the first is in {draft.rows.called(first)} (counted from 0)",
                fix=did_you_mean(unknown[0], known) or "leave such rows out with where, or map them to labels of the set",
            )
        if absent := len(sizes.labels[domain.name]) - len(np.unique(codes)):
            missing = np.setdiff1d(np.arange(len(sizes.labels[domain.name])), codes)[:4]
            shown = ", ".join(sizes.labels[domain.name][k] for k in missing) + (", ..." if absent > 4 else "")
            self.notes.append(f"{what}: no row has {shown} of {domain.name}")
        return codes

    # ------------------------------------------------------------------------------------------------------------- sizes
    def demand_sizes(self, sizes: Sizes) -> None:
        """F0517 for dims and label sets that nothing fixes; silent where an error before explains it."""
        if self.errors.found:
            return
        for dim in self.problem.dims:
            if sizes.of(dim) is None:
                self.errors.add(
                    "F0517",
                    f"nothing in the data has size {dim}",
                    reason="a dim is solved from the columns that are declared with it",
                    fix=f"give its size: --param {dim}=10, or [dims] {dim} = 10 in the binding file",
                )
        for name, chosen in self.problem.sets.items():
            if isinstance(chosen, ir.LabelSet) and name not in sizes.labels:
                self.errors.add(
                    "F0517",
                    f"the labels of set {name} are not known",
                    reason="they come with the columns that are declared with it",
                    fix=f'list them: [sets] {name} = ["a", "b"] in the binding file',
                )
            elif isinstance(chosen, ir.ValueSet):
                with self.errors.collect():
                    sizes.of(name)

    def all_sizes(self, sizes: Sizes, tables: Mapping[str, BoundTable]) -> dict[str, int]:
        """Dims, sets with elements of their own, and tables by their rows."""
        names = [
            *self.problem.dims,
            *(name for name, chosen in self.problem.sets.items() if isinstance(chosen, ir.LabelSet | ir.ValueSet)),
        ]
        found = {name: size for name in names if (size := sizes.of(name)) is not None}
        found |= {name: known.size for name, known in sizes.known.items()}
        return found | {name: table.n for name, table in tables.items()}

    # -------------------------------------------------------------------------------------------------- nets and samplers
    def nets(self, dims: Mapping[str, int]) -> dict[str, Any]:
        modules: dict[str, Any] = {}
        for k, (name, net) in enumerate(self.problem.nets.items()):
            given = self.given_nets.get(name, self.spec.nets.get(name))
            place = "" if name in self.given_nets else self.spec.place("nets", name) if name in self.spec.nets else ""
            if self.errors.found and any(isinstance(dim, str) and dim not in dims for dim in (*net.input, *net.output)):
                continue  # the error found before says why a size is not known
            with self.errors.collect(span=net.span, place=place):
                modules[name], told = nets.build(
                    net, given, dims, seed=self.seed + k, allow_python=self.allow_python, folders=self.folders
                )
                self.notes += told
        return modules

    def find_samplers(self) -> dict[str, Callable[..., Any]]:
        """F0530 for a distribution that is neither built in nor given."""
        needed = {
            binder.domain.family: binder
            for root in _roots(self.problem)
            for node in ir.walk(root)
            if isinstance(node, ir.Reduce)
            for binder in node.binders
            if isinstance(binder.domain, ir.Distribution) and binder.domain.family not in ir.DISTRIBUTIONS
        }
        for name, binder in needed.items():
            if not callable(self.samplers.get(name)):
                self.errors.add(
                    "F0530",
                    f"no sampler is bound for {name}",
                    span=binder.span,
                    reason=f"{name} is not one of {', '.join(ir.DISTRIBUTIONS)}",
                    fix=f"bind(..., samplers={{'{name}': function}}) in Python",
                )
        self.unknown("distribution", self.samplers, list(needed))
        return dict(self.samplers)

    def encoding_of(self, draft: Draft, sizes: Sizes) -> dict[str, Any]:
        """What was learned from the rows, by column, with the labels of the sets in it; JSON-like."""
        found: dict[str, Any] = {name: dict(built.encoding) for name, built in draft.columns.items()}
        named = {name: kind.domain for name, kind in draft.table.columns.items() if isinstance(kind.domain, ir.LabelSet)}
        if draft.table.family is not None and isinstance(draft.table.family.domain, ir.LabelSet):
            named[ir.FAMILY] = draft.table.family.domain
            found[ir.FAMILY] = {"kind": "family"}
        names = {name: domain.name for name, domain in named.items()}
        first = {name: str(kind.shape[0]) for name, kind in draft.table.columns.items() if kind.shape}
        names |= {name: chosen for name, chosen in first.items() if chosen in sizes.labels}
        for name, chosen in names.items():
            if name in found and chosen in sizes.labels:
                found[name] |= {"set": chosen, "labels": list(sizes.labels[chosen])}
        return found

    def records(self, drafts: Mapping[str, Draft], sizes: Sizes) -> dict[str, Any]:
        """``Bound.sources``: origin, rows, what was left out and why, the encoding, the binding file's section; JSON-like."""
        found: dict[str, Any] = {}
        for name, draft in drafts.items():
            found[name] = draft.record | {"encoding": self.encoding_of(draft, sizes)}
        return found


def _leaving_out(section: TableSpec, condition: str | None) -> TableSpec:
    """The section with fewer rows: those of its own for which the condition does not hold."""
    if condition is None:
        return section
    where = f"({section.where}) and not ({condition})" if section.where else f"not ({condition})"
    members = {name: _leaving_out(member, condition) for name, member in section.members.items()}
    return replace(section, where=where, members=members)


def _roots(problem: ir.Problem) -> list[ir.Expr]:
    return [problem.objective.expr, *(constraint.body for constraint in problem.constraints)]
