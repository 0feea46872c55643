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

#: The names of the entries along an axis: labels, the values of a set, or row numbers; None for the
#: numbers 1, 2, ..., as in a model.
Names = Sequence[str | float | int] | None
#: For each variable or constraint its axes, each with its name and the names of its entries; JSON-like.
Axes = Mapping[str, Sequence[tuple[str, Names]]]


#: Relative error up to which a number names an entry: labels are shown with twelve digits.
NAME_TOLERANCE = 1e-11


class Labelled(np.ndarray):
    """A NumPy array with named axes and entries: ``a.sel(k="a", t=0.5)``, ``a.to_pandas()``,
    ``a.to_xarray()``.

    Results of arithmetic and parts taken by number are plain arrays. Copies and pickles keep the names.
    """

    _axes: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __new__(cls, values: Any, axes: Sequence[tuple[str, Names]]) -> Labelled:
        array = np.array(values).view(cls)
        named = []
        for size, (name, names) in zip(array.shape, axes, strict=True):
            if names is None:
                names = range(1, size + 1)
            named.append((name, tuple(names)))
        array._axes = tuple(named)
        assert array.shape == tuple(len(names) for _, names in named)
        return array

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(name for name, _ in self._axes)

    @property
    def coords(self) -> dict[str, tuple[Any, ...]]:
        """The names of the entries along each axis."""
        return dict(self._axes)

    def sel(self, **chosen: Any) -> Any:
        """The entries with these names; a number if every axis has a single name.

        chosen   for each axis a name, or a list of names; other axes are kept whole

        F0813 for unknown names.
        """
        self._demand_names()
        unknown = [name for name in chosen if name not in self.dims]
        if unknown:
            refuse(errors.no_axis(unknown[0], self.dims))
        array = np.asarray(self)
        remaining = []  # the axes of the result, the last first
        for name, names in reversed(self._axes):
            axis = self.dims.index(name)
            if name not in chosen:
                remaining.append((name, names))
            elif isinstance(chosen[name], list | tuple | np.ndarray):
                places = [_place(name, names, entry) for entry in chosen[name]]
                remaining.append((name, tuple(names[k] for k in places)))
                array = np.take(array, places, axis=axis)
            else:
                array = np.take(array, _place(name, names, chosen[name]), axis=axis)
        if remaining:
            return Labelled(array, remaining[::-1])
        return array.item()

    def to_xarray(self) -> Any:
        """An ``xarray.DataArray``. F0529 if xarray is not installed."""
        self._demand_names()
        xarray = package("xarray", "An array with labels")
        return xarray.DataArray(
            np.asarray(self), coords={name: list(names) for name, names in self._axes}, dims=self.dims
        )

    def to_pandas(self) -> Any:
        """A ``Series`` for one axis, a ``DataFrame`` for two, a ``Series`` over all combinations for more.

        F0529 if pandas is not installed.
        """
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
    """The value with plain arrays in place of arrays with names, inside tuples too."""
    if isinstance(value, tuple):
        return tuple(map(_bare, value))
    if isinstance(value, Labelled):
        return np.asarray(value)
    return value


def _place(axis: str, names: Sequence[Any], chosen: Any) -> int:
    """The position of a name. Numbers are compared to twelve digits, as they are shown."""
    for k, name in enumerate(names):
        if name == chosen:
            return k
        if isinstance(name, float) and isinstance(chosen, int | float):
            if math.isclose(name, chosen, rel_tol=NAME_TOLERANCE, abs_tol=NAME_TOLERANCE):
                return k
    refuse(errors.no_entry(axis, chosen, names))


def _few(names: Sequence[Any]) -> str:
    """The first six names, and their number if there are more."""
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
    """The axes of an array: one for each dimension.

    Its name is that of the dimension if it has one, else ``axis_1``, ``axis_2``, ... A second
    dimension ``d`` is called ``d_2``.
    """
    axes: list[tuple[str, Names]] = []
    seen: set[str] = set()
    for k, dim in enumerate(shape, 1):
        if isinstance(dim, str) and dim.isidentifier():
            name = dim
        else:
            name = f"axis_{k}"
        axes.append((f"{name}_{k}" if name in seen else name, _entry_names(bound, dim)))
        seen.add(name)
    return axes


def _entry_names(bound: Bound, dim: ir.Dim) -> Names:
    """The names of the entries along a dimension."""
    if isinstance(dim, str):
        index_set = bound.problem.sets.get(dim)
        if isinstance(index_set, ir.ValueSet):
            return elements.values(bound, index_set).tolist()
    return coordinates(bound, dim)


def _of_family(bound: Bound, family: ir.Constraint) -> list[tuple[str, Names]]:
    """The axes of a family of constraints: one for each binder; none for a single constraint."""
    if not family.binders:
        return []
    lists = members.of(bound, family).lists
    return [(b.name, _elements(bound, b.domain, ids)) for b, ids in zip(family.binders, lists, strict=True)]


def _elements(bound: Bound, domain: ir.Set, ids: np.ndarray) -> Names:
    """The names of elements of a set, given by their ids."""
    if isinstance(domain, ir.LabelSet):
        return elements.names_of(bound, domain, ids)
    if isinstance(domain, ir.ValueSet):
        return elements.values(bound, domain)[ids].tolist()
    return ids.tolist()


# -------------------------------------------------------------------------------------- with values
class ByName(dict[str, Any]):
    """Values by the model's names. An unknown name is answered by the names that there are."""

    def __missing__(self, name: str) -> Any:
        shown = ", ".join(f"`{known}`" for known in self) or "none"
        raise KeyError(f"there is no `{name}` here: the names are {shown}")


def variables(values: Mapping[str, np.ndarray], named: Axes) -> dict[str, np.ndarray]:
    """The variables as arrays with names; a single number stays as it is."""
    labelled = ByName(values)
    for name, value in values.items():
        if named.get(name):
            labelled[name] = Labelled(value, named[name])
    return labelled


def by_family(values: Mapping[str, float | None], named: Axes) -> dict[str, Any]:
    """Values of constraints by name: a number, or for a family an array over its axes.

    An entry is NaN if its combination is no member of the family, or if its value is unknown.
    """
    by_name: dict[str, Any] = ByName()
    for name, axes_of_family in named.items():
        if axes_of_family:
            by_name[name] = _grid(values, name, axes_of_family)
        else:
            by_name[name] = _number(values.get(name))
    return by_name


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
    """The text of a name in the label of a member."""
    if isinstance(name, float):
        return f"{name:.12g}"
    return str(name)


def entries(array: np.ndarray) -> list[tuple[str, float]]:
    """The entries of an array with their names, joined by commas; the entry of a number has none."""
    axes = getattr(array, "_axes", ()) or [(str(k), range(1, size + 1)) for k, size in enumerate(array.shape)]
    names = itertools.product(*(axis for _, axis in axes))
    values = np.asarray(array).ravel().tolist()
    return [(", ".join(map(str, name)), value) for name, value in zip(names, values, strict=True)]
