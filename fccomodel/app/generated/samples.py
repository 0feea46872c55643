"""A small model for each thing that models name, made of what the library says of it: the ``example``
on its card."""

from __future__ import annotations

from typing import Any

from fccomodel.library import atoms, distributions, reductions, sets
from fccomodel.library.atoms import Interval

#: The shapes that arguments are tried with: numbers, vectors, matrices.
SHAPES: tuple[tuple[Any, ...], ...] = ((), (6,), (4, 4))


def of_atom(atom: atoms.Atom) -> str:
    """Its least value, or its largest where it is concave; of a truth value, rows that satisfy it."""
    names = atom.names(2)
    if atom.boolean:
        logical = atom.symbol in ("and", "or", "not")
        condition = _call(atom, tuple(f"z.{n} > 0" if logical else f"z.{n}" for n in names))
        columns = ", ".join(f"{n}: real" for n in names)
        return f"data D : table({columns}); var w; minimize E[z ~ D | {condition}] (w - z.{names[0]})^2;"
    limits = [limit or Interval() for limit in atom.domains(*(Interval() for _ in names))]
    limits += [Interval()] * (len(names) - len(limits))
    varying = tuple(n not in atom.parameters for n in names)
    shape, value = _shape(atom, sum(varying))
    if shape:
        size = f"[{', '.join(map(str, shape))}]"
    else:
        size = ""
    poles = atom.poles(*limits)
    texts, declared = [], ""
    for k, (name, limit, free) in enumerate(zip(names, limits, varying, strict=True)):
        texts.append(name if free else f"{inside(limit, k):g}")
        if free:
            declared += f"var {name}{size} in {_box(limit, k in poles)}; "
    call = _call(atom, tuple(texts))
    if value:
        return f"{declared}minimize {'norm_fro' if len(value) == 2 else 'sumsq'}({call});"
    return (
        f"{declared}{'maximize' if atom.curvature(*limits, varying=varying) == 'concave' else 'minimize'} "
        f"{call};"
    )


def of_reduction(kind: reductions.Reduction) -> str:
    """Of a row's loss, or of a condition on it."""
    if kind.option is not None:
        option = f"({kind.option.name} = {kind.option.example})"
    else:
        option = ""
    binder = "[z ~ D]" if kind.binders == ("~",) else "[z in D]"
    body = "(z.x > 0)" if kind.condition else "square(w - z.x)"
    whole = f"{kind.name}{option}{binder} {body}"
    sense = "maximize" if kind.name == "min" else "minimize"
    return f"data D : table(x: real); var w; {sense} {f'square(w - {whole})' if kind.condition else whole};"


def of_set(one: sets.SimpleSet) -> str:
    """The point of the set with the least sum of squares."""
    if "A" in one.arguments:
        return "dim m, n; data A : real[m, n]; data b : real[m]; var w[n] in affine(A, b); minimize sumsq(w);"
    limits = [limit or Interval() for limit in one.domains(*(Interval() for _ in one.arguments))]
    numbers = [f"{inside(limit, k):g}" for k, limit in enumerate(limits)]
    of_labels = "(K" in one.signature
    given = ", ".join(["K"] * of_labels + numbers)
    head = "set K; var w[K]" if of_labels else "var w[6]"
    return f"{head} in {one.name}{f'({given})' if given else ''}; minimize sumsq(w - 1);"


def of_distribution(one: distributions.Distribution) -> str:
    """The mean of its draws, found as a minimum."""
    limits = [limit or Interval() for limit in one.domains(*(Interval() for _ in one.parameters))]
    given = ", ".join(f"{inside(limit, k):g}" for k, limit in enumerate(limits))
    return f"var w; minimize E[z ~ {one.name}({given})] square(w - z);"


def inside(limit: Interval, place: int = 0) -> float:
    """A number of an interval, another one for each place."""
    tried = (2.0 + place, limit.lo + 1.0, (limit.lo + limit.hi) / 2)
    return next(v for v in tried if limit.lo < v < limit.hi)


def _call(atom: atoms.Atom, texts: tuple[str, ...]) -> str:
    if not atom.symbol:
        return f"{atom.name}({', '.join(texts)})"
    if len(texts) == 1:
        if atom.symbol.isalpha():
            return f"{atom.symbol} {texts[0]}"
        return f"{atom.symbol}{texts[0]}"
    return f"{texts[0]} {atom.symbol} {texts[1]}"


def _shape(atom: atoms.Atom, count: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first shape that its arguments may have, and that of the value."""
    for shape in SHAPES:
        try:
            return shape, tuple(atom.shape((shape,) * count + ((),) * len(atom.parameters)))
        except atoms.ShapeError:
            continue
    raise AssertionError(f"{atom.name} takes neither numbers nor vectors nor matrices")


def _box(limit: Interval, pole: bool) -> str:
    """What there is of the domain from -2 to 2; open ends, and 0 where it is a pole, are left by a tenth."""
    low = max(limit.lo + 0.1 * limit.lo_open, 0.1 if pole else -2.0)
    return f"box({low:g}, {min(limit.hi - 0.1 * limit.hi_open, 2.0):g})"
