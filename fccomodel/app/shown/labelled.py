"""Arrays whose entries have the names that the model and its data give them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fccomodel.app import errors
from fccomodel.app.shown.frames import package
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, members
from fccomodel.evaluation.sets.coordinates import coordinates

#: The names of an axis' entries: labels, the numbers of a set, the numbers of rows; None where they
#: are 1, 2, ..., as in a model.
Names = Sequence[str | float | int] | None
#: By the name of a variable or a constraint its axes, each with the names of its entries; JSON-like.
Axes = Mapping[str, Sequence[tuple[str, Names]]]


#: By how much a number may differ from the entry's that it names: labels are shown with twelve digits.
CLOSE = 1e-11


class Labelled(np.ndarray):
    """A NumPy array with named axes and entries: ``a.sel(k="a", t=0.5)``, ``a.to_pandas()``,
    ``a.to_xarray()``.

    What is computed of it, and its parts by number, are plain arrays; copies and pickles keep the names.
    """

    _axes: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __new__(cls, values: Any, axes: Sequence[tuple[str, Names]]) -> Labelled:
        array = np.array(values).view(cls)
        whole = (
            range(1, n + 1) if names is None else names
            for n, (_, names) in zip(array.shape, axes, strict=True)
        )
        array._axes = tuple((name, tuple(names)) for (name, _), names in zip(axes, whole, strict=True))
        assert array.shape == tuple(len(names) for _, names in array._axes)
        return array

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(name for name, _ in self._axes)

    @property
    def coords(self) -> dict[str, tuple[Any, ...]]:
        """By axis the names of its entries."""
        return dict(self._axes)

    def sel(self, **chosen: Any) -> Any:
        """The entries of these names, one or a list for each axis; a number where every axis has one.
        F0813 for unknown names."""
        self._demand_names()
        if unknown := [name for name in chosen if name not in self.dims]:
            refuse(errors.no_axis(unknown[0], self.dims))
        array, kept = np.asarray(self), []
        for name, names in reversed(self._axes):
            axis = self.dims.index(name)
            if name not in chosen:
                kept.append((name, names))
                continue
            several = isinstance(chosen[name], list | tuple | np.ndarray)
            at = (
                [_place(name, names, one) for one in chosen[name]]
                if several
                else _place(name, names, chosen[name])
            )
            if isinstance(at, list):
                kept += [(name, tuple(names[k] for k in at))]
            array = np.take(array, at, axis=axis)
        if kept:
            return Labelled(array, kept[::-1])
        return array.item()

    def to_xarray(self) -> Any:
        """An ``xarray.DataArray``. F0529 where xarray is not installed."""
        self._demand_names()
        xarray = package("xarray", "An array with labels")
        return xarray.DataArray(
            np.asarray(self), coords={name: list(names) for name, names in self._axes}, dims=self.dims
        )

    def to_pandas(self) -> Any:
        """A ``Series``; of two axes a ``DataFrame``; of more a ``Series`` over all combinations. F0529
        without pandas."""
        self._demand_names()
        pandas = package("pandas", "A table of this array")
        indices = [pandas.Index(list(names), name=name) for name, names in self._axes]
        if self.ndim == 1:
            return pandas.Series(np.asarray(self), index=indices[0])
        if self.ndim == 2:
            return pandas.DataFrame(np.asarray(self), index=indices[0], columns=indices[1])
        return pandas.Series(np.asarray(self).ravel(), index=pandas.MultiIndex.from_product(indices))

    def _demand_names(self) -> None:
        if len(self._axes) != self.ndim or not self.ndim:
            refuse(errors.names_lost())

    # ------------------------------------------------------------------------------ as NumPy has it
    def __array_finalize__(self, other: Any) -> None:
        self._axes = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        bare = {name: _bare(value) for name, value in given.items()}
        return getattr(ufunc, method)(*map(_bare, inputs), **bare)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __repr__(self) -> str:
        named = "; ".join(f"{name}: {_few(names)}" for name, names in self._axes)
        if named:
            return f"{np.asarray(self)!r}\n{named}"
        return repr(np.asarray(self))

    def copy(self, order: Any = "C") -> Labelled:
        """A copy with the same labels."""
        if self._axes:
            return Labelled(np.asarray(self).copy(order), self._axes)
        return super().copy(order)

    def sort(self, *given: Any, **more: Any) -> None:
        """Sort in place; the labels are lost."""
        self._axes = ()
        super().sort(*given, **more)

    def partition(self, *given: Any, **more: Any) -> None:
        """Partition in place; the labels are lost."""
        self._axes = ()
        super().partition(*given, **more)

    def __copy__(self) -> Labelled:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Labelled:
        return self.copy()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:  # type: ignore[override]
        if self._axes:
            return (Labelled, (np.asarray(self), self._axes))
        return (np.array, (np.asarray(self),))


def _bare(value: Any) -> Any:
    """A plain array of one with names; those in a tuple too."""
    if isinstance(value, tuple):
        return tuple(map(_bare, value))
    if isinstance(value, Labelled):
        return np.asarray(value)
    return value


def _place(axis: str, names: Sequence[Any], chosen: Any) -> int:
    """The position of one name; numbers to twelve digits, as they are shown."""
    for k, name in enumerate(names):
        if name == chosen:
            return k
        both = isinstance(name, float) and isinstance(chosen, int | float)
        if both and math.isclose(name, chosen, rel_tol=CLOSE, abs_tol=CLOSE):
            return k
    refuse(errors.no_entry(axis, chosen, names))


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(map(_shown, names[:6]))
    if len(names) > 6:
        return f"{shown}, ... ({len(names)})"
    return shown


# ------------------------------------------------------------------------------------- of a problem
def axes(bound: Bound) -> dict[str, Axes]:
    """The axes of all ``variables`` and ``constraints`` of a bound problem; JSON-like."""
    return {
        "variables": {
            name: _of_shape(bound, variable.shape) for name, variable in bound.problem.variables.items()
        },
        "constraints": {c.label: _of_family(bound, c) for c in bound.problem.constraints},
    }


def _of_shape(bound: Bound, shape: ir.Shape) -> list[tuple[str, Names]]:
    """One axis for each dimension, under its name where that is one; a second of the same name is ``d_2``."""
    named = [
        dim if isinstance(dim, str) and dim.isidentifier() else f"axis_{k}" for k, dim in enumerate(shape, 1)
    ]
    once = [name if name not in named[:k] else f"{name}_{k + 1}" for k, name in enumerate(named)]
    return [(name, _along(bound, dim)) for name, dim in zip(once, shape, strict=True)]


def _along(bound: Bound, dim: ir.Dim) -> Names:
    if isinstance(dim, str):
        index_set = bound.problem.sets.get(dim)
    else:
        index_set = None
    if isinstance(index_set, ir.ValueSet):
        return elements.values(bound, index_set).tolist()
    return coordinates(bound, dim)


def _of_family(bound: Bound, family: ir.Constraint) -> list[tuple[str, Names]]:
    """One axis for each binder."""
    if not family.binders:
        return []
    lists = members.of(bound, family).lists
    return [(b.name, _elements(bound, b.domain, ids)) for b, ids in zip(family.binders, lists, strict=True)]


def _elements(bound: Bound, domain: ir.Set, ids: np.ndarray) -> Names:
    if isinstance(domain, ir.LabelSet):
        return elements.names_of(bound, domain, ids)
    if isinstance(domain, ir.ValueSet):
        return elements.values(bound, domain)[ids].tolist()
    return ids.tolist()


# -------------------------------------------------------------------------------------- with values
def variables(values: Mapping[str, np.ndarray], named: Axes) -> dict[str, np.ndarray]:
    """Variables with the names of their entries; a single number as it is."""
    return {
        name: Labelled(value, named[name]) if named.get(name) else value for name, value in values.items()
    }


def by_family(values: Mapping[str, float | None], named: Axes) -> dict[str, Any]:
    """What is known of each constraint's members, by the constraint's name: a number, or an array over
    a family's axes; NaN where a combination is no member, or nothing is known."""
    return {
        name: _number(values.get(name)) if not of else _grid(values, name, of) for name, of in named.items()
    }


def _grid(values: Mapping[str, float | None], name: str, named: Sequence[tuple[str, Names]]) -> Labelled:
    lists = [list(names or ()) for _, names in named]
    labels = (f"{name}[{','.join(map(_shown, cell))}]" for cell in itertools.product(*lists))
    grid = np.array([_number(values.get(label)) for label in labels], float)
    return Labelled(grid.reshape([len(names) for names in lists]), named)


def _number(value: float | None) -> float:
    if value is None:
        return math.nan
    return float(value)


def _shown(name: Any) -> str:
    """As labels of members have it."""
    if isinstance(name, float):
        return f"{name:.12g}"
    return str(name)
