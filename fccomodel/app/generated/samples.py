"""Sample models: for each atom, reduction, set and distribution, the ``example`` on its card."""

from __future__ import annotations

from typing import Any

from fccomodel.library import atoms, distributions, reductions, sets
from fccomodel.library.atoms import Interval

#: Shapes of arguments, in the order of trial: numbers, vectors, matrices.
SHAPES: tuple[tuple[Any, ...], ...] = ((), (6,), (4, 4))


def of_atom(atom: atoms.Atom) -> str:
    """A model that minimises the atom (maximises a concave one).

    An atom with truth values is the condition on the rows of an expectation.
    """
    names = atom.names(2)
    if atom.boolean:
        return _of_condition(atom, names)
    if atom.regular:
        return _of_regular_matrix(atom, names)
    limits = [limit or Interval() for limit in atom.domains(*(Interval() for _ in names))]
    limits += [Interval()] * (len(names) - len(limits))
    varying = tuple(name not in atom.parameters for name in names)
    shape, value_shape = _shape(atom, sum(varying))
    size = ""
    if shape:
        size = f"[{', '.join(map(str, shape))}]"
    poles = atom.poles(*limits)
    arguments, declarations = [], ""
    for k, (name, limit, varies) in enumerate(zip(names, limits, varying, strict=True)):
        if varies:
            arguments.append(name)
            declarations += f"var {name}{size} in {_box(limit, k in poles)}; "
        else:
            arguments.append(f"{inside(limit, k):g}")
    call = _call(atom, tuple(arguments))
    if len(value_shape) == 2:
        return f"{declarations}minimize norm_fro({call});"
    if value_shape:
        return f"{declarations}minimize sumsq({call});"
    if atom.curvature(*limits, varying=varying) == "concave":
        return f"{declarations}maximize {call};"
    return f"{declarations}minimize {call};"


def _of_condition(atom: atoms.Atom, names: tuple[str, ...]) -> str:
    """A model with an expectation over the rows that satisfy an atom."""
    columns = ", ".join(f"{name}: real" for name in names)
    if atom.symbol in ("and", "or", "not"):
        arguments = [f"z.{name} > 0" for name in names]
    else:
        arguments = [f"z.{name}" for name in names]
    condition = _call(atom, tuple(arguments))
    return f"data D : table({columns}); var w; minimize E[z ~ D | {condition}] (w - z.{names[0]})^2;"


def _of_regular_matrix(atom: atoms.Atom, names: tuple[str, ...]) -> str:
    """A model with an atom of matrices that must not be singular, and of vectors of their size."""
    declarations = [
        f"var {name}[4, 4] in psd; " if k in atom.regular else f"var {name}[4] in box(-2, 2); "
        for k, name in enumerate(names)
    ]
    call = _call(atom, names)
    matrix = names[next(iter(atom.regular))]
    if atom.name == "inverse":
        call = f"norm_fro({call})"
    if atom.curvature(*(Interval() for _ in names)) == "concave":
        return f"{''.join(declarations)}maximize {call} - trace({matrix});"
    return f"{''.join(declarations)}minimize {call} + trace({matrix});"


def of_reduction(kind: reductions.Reduction) -> str:
    """A model with a reduction of a row's loss, or of a condition on a row."""
    option = ""
    if kind.option is not None:
        option = f"({kind.option.name} = {kind.option.example})"
    binder = "[z ~ D]" if kind.binders == ("~",) else "[z in D]"
    if kind.condition:
        objective = f"square(w - {kind.name}{option}{binder} (z.x > 0))"
    else:
        objective = f"{kind.name}{option}{binder} square(w - z.x)"
    sense = "maximize" if kind.name == "min" else "minimize"
    return f"data D : table(x: real); var w; {sense} {objective};"


def of_set(simple: sets.SimpleSet) -> str:
    """A model that minimises a sum of squares over the set."""
    if "A" in simple.arguments:
        return "dim m, n; data A : real[m, n]; data b : real[m]; var w[n] in affine(A, b); minimize sumsq(w);"
    limits = [limit or Interval() for limit in simple.domains(*(Interval() for _ in simple.arguments))]
    arguments = [f"{inside(limit, k):g}" for k, limit in enumerate(limits)]
    declaration = "var w[6]"
    if simple.square:
        declaration = "var w[4, 4]"
    if "(K" in simple.signature:  # over a set of labels
        arguments = ["K", *arguments]
        declaration = "set K; var w[K]"
    call = simple.name
    if arguments:
        call += f"({', '.join(arguments)})"
    return f"{declaration} in {call}; minimize sumsq(w - 1);"


def of_distribution(family: distributions.Distribution) -> str:
    """A model whose answer is the mean of the distribution."""
    limits = [limit or Interval() for limit in family.domains(*(Interval() for _ in family.parameters))]
    parameters = ", ".join(f"{inside(limit, k):g}" for k, limit in enumerate(limits))
    return f"var w; minimize E[z ~ {family.name}({parameters})] square(w - z);"


def inside(limit: Interval, place: int = 0) -> float:
    """A number inside an interval. Another ``place`` gives another number if possible."""
    tried = (2.0 + place, limit.lo + 1.0, (limit.lo + limit.hi) / 2)
    return next(number for number in tried if limit.lo < number < limit.hi)


def _call(atom: atoms.Atom, texts: tuple[str, ...]) -> str:
    """An atom applied to arguments, as the language writes it."""
    if not atom.symbol:
        return f"{atom.name}({', '.join(texts)})"
    if len(texts) == 1:
        if atom.symbol.isalpha():
            return f"{atom.symbol} {texts[0]}"
        return f"{atom.symbol}{texts[0]}"
    return f"{texts[0]} {atom.symbol} {texts[1]}"


def _shape(atom: atoms.Atom, count: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first of ``SHAPES`` that the atom's ``count`` arguments may have, and the value's shape."""
    for shape in SHAPES:
        try:
            return shape, tuple(atom.shape((shape,) * count + ((),) * len(atom.parameters)))
        except atoms.ShapeError:
            continue
    raise AssertionError(f"{atom.name} takes neither numbers nor vectors nor matrices")


def _box(limit: Interval, pole: bool) -> str:
    """A box inside the domain and inside [-2, 2].

    It keeps a distance of 0.1 to open ends, and to 0 if 0 is a pole.
    """
    low = max(limit.lo + 0.1 * limit.lo_open, 0.1 if pole else -2.0)
    high = min(limit.hi - 0.1 * limit.hi_open, 2.0)
    return f"box({low:g}, {high:g})"
