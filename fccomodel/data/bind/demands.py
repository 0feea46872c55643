"""Checks that a binding has all that the model needs, and nothing else: names, sizes, labels, samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import _sizes, errors, numbers
from fccomodel.data.bind._sizes import KnownSizes
from fccomodel.data.bind._spec import Spec
from fccomodel.data.bind.collect import Errors


def names(collected: Errors, kind: str, bound: Iterable[str], declared: Iterable[str]) -> None:
    """Add F0518 for each bound name that the model does not declare."""
    declared = list(declared)
    for name in bound:
        if name not in declared:
            collected.add(errors.demands.undeclared(kind, name, declared))


def by_table(problem: ir.Problem, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data by name. Members of a family, given as ``S.member``, are a mapping under its name."""
    by_name = dict(data)
    families = {name for name, table in problem.tables.items() if table.family is not None}
    for name in list(by_name):
        table, dot, member = name.partition(".")
        if dot and table in families and name not in problem.tables:
            members = by_name.setdefault(table, {})
            if isinstance(members, Mapping):
                by_name[table] = {**members, member: by_name.pop(name)}
    return by_name


def dims(
    problem: ir.Problem, spec: Spec, params: Mapping[str, Any], sizes: KnownSizes, collected: Errors
) -> None:
    """Note the sizes of dims that the user gives; F0520 for a value that is no size."""
    keywords = {name: value for name, value in params.items() if name in problem.dims}
    for name, value in {**spec.dims, **keywords}.items():
        size = numbers.whole_number(value)
        if size is None or not 1 <= size < 1 << 62:
            collected.add(errors.numbers.not_a_size(name, errors.words.value(value)))
            continue
        if name in keywords:
            place = ""
        else:
            place = spec.place("dims", name)
        sizes.by_name[name] = _sizes.PlacedSize(size=size, place=place or f"{name} = {size} as given")


def stored_encoding(problem: ir.Problem, encoding: Mapping[str, Any]) -> None:
    """F0531 for a stored encoding of another model."""
    kinds = ("number", "vector", "features", "labels", "family")
    for name, columns in encoding.items():
        table = problem.tables.get(name)
        fits = table is not None and isinstance(columns, Mapping)
        fits = fits and all(
            isinstance(record, Mapping) and record.get("kind") in kinds for record in columns.values()
        )
        if table is None or not fits or set(columns) - {*table.columns, ir.FAMILY}:
            refuse(errors.demands.stored_encoding(name))


def all_sizes_fixed(problem: ir.Problem, sizes: KnownSizes, collected: Errors) -> None:
    """F0517 for dims and label sets of unknown size; no error is added if there is an earlier one."""
    if collected.diagnostics:
        return
    for dim in problem.dims:
        if sizes.of(dim) is None:
            collected.add(errors.demands.dim_unknown(dim))
    for name, index_set in problem.sets.items():
        if isinstance(index_set, ir.LabelSet) and name not in sizes.labels:
            collected.add(errors.demands.labels_unknown(name))
        elif isinstance(index_set, ir.ValueSet):
            with collected.collect():
                sizes.of(name)


def samplers(problem: ir.Problem, bound: Mapping[str, Callable[..., Any]], collected: Errors) -> None:
    """F0530 for a distribution that is neither built in nor given as a sampler."""
    needed = {}
    for node in problem.expressions(ir.Reduce):
        for binder in node.binders:
            if isinstance(binder.domain, ir.Distribution) and binder.domain.sampler:
                needed[binder.domain.family] = binder
    for name, binder in needed.items():
        if not callable(bound.get(name)):
            collected.add(errors.demands.no_sampler(name, binder.span))
    names(collected, "distribution", bound, needed)
