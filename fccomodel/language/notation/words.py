"""The words of the language as Python functions: atoms, reductions, sets and distributions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import comprehensions, places
from fccomodel.language.notation.sets import Set
from fccomodel.language.notation.terms import (
    CompoundFormula,
    PythonSyntax,
    bound_of,
    fail,
    node_of,
    owner,
    size_of,
)
from fccomodel.library import array_functions, atoms, distributions, reductions, sets

#: A word with two meanings: with one argument the vector of equal weights, else a distribution.
WEIGHTS = "uniform"


def _reduction_of(name: str) -> reductions.Reduction | reductions.Spelled | None:
    """The reduction that models write by this name, or None."""
    return reductions.words().get(name)


@cache
def word(name: str) -> Word:
    """The word of this name; there must be one."""
    return Word(name)


class Word(PythonSyntax):
    """A word of the language: called with formulas, or with a comprehension over sets of the model."""

    __slots__ = ("__name__",)
    _sort = "word"

    def __init__(self, name: str):
        if sets.get(name) is not None:
            node = syntax.Name(id=name, span=NOWHERE)
        else:
            node = None
        super().__init__(node)
        self.__name__ = name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return documentation(self.__name__)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature([inspect.Parameter(name, kind) for name, kind in parameters(self.__name__)])

    def __repr__(self) -> str:
        return f"<word {self.__name__}>"

    def __getitem__(self, index: Any) -> Subscripted:
        """``mean[i](...)`` for a declared index: ``mean_i ...``."""
        at = places.here()
        node = node_of(index, at)
        if _reduction_of(self.__name__) is None or not isinstance(node, syntax.Name):
            reason = "Only reductions have a subscript, which is a declared index."
            fix = "write `mean[m.i](...)` after `m.i = fc.index(m.D)`"
            fail(errors.argument(f"{self.__name__}[...]", reason, fix), at)
        return Subscripted(self.__name__, index, node.id)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        at = places.here()
        name = self.__name__
        if _reduction_of(name) is not None:
            return _reduction(name, args, keywords, at)
        for arg in args:
            if comprehensions.is_comprehension(arg):
                reason = "It takes formulas; a comprehension goes into a reduction."
                fail(errors.argument(name, reason, f"write `{name}(sum(... for z in D))`"), at)
        term = call(name, args, keywords, at)
        weights = name == WEIGHTS and len(args) == 1
        if name in sets.all() or (name in distributions.all() and not weights):
            return Set(term._node, term._owner, size=term._size)
        return term


class Subscripted:
    """``mean_i``, before its body."""

    def __init__(self, kind: str, index: PythonSyntax, subscript: str):
        self.kind, self.index, self.subscript = kind, index, subscript

    def __call__(self, body: Any) -> CompoundFormula:
        at = places.here()
        node = syntax.Reduce(kind=self.kind, body=node_of(body, at), subscript=self.subscript, span=at)
        return CompoundFormula(node, owner((self.index, body), at), 1 + getattr(body, "_size", 1))


def call(
    name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], at: Span, semicolon: int | None = None
) -> CompoundFormula:
    """``name(args, keyword = value)``."""
    parts = (*args, *keywords.values())
    read = bound_of if name == "box" else node_of
    nodes = tuple(read(arg, at) for arg in args)
    named = keywords_of(keywords, at)
    size = size_of(parts, at)
    node = syntax.Call(func=name, args=nodes, keywords=named, semicolon=semicolon, span=at)
    return CompoundFormula(node, owner(parts, at), size)


def keywords_of(keywords: Mapping[str, Any], at: Span) -> tuple[syntax.Keyword, ...]:
    """Named arguments as syntax; ``empty="drop"`` is a word of the language, not a label."""
    named = []
    for name, value in keywords.items():
        if name == "empty" and isinstance(value, str):
            node: syntax.Expr = syntax.Name(id=value, span=at)
        else:
            node = node_of(value, at)
        named.append(syntax.Keyword(name=name, value=node, span=at))
    return tuple(named)


def _reduction(name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], at: Span) -> CompoundFormula:
    """A reduction over a comprehension, ``sum(u)`` of a vector, or ``E(e)`` over declared draws."""
    kind = reductions.words()[name]
    if len(args) == 1 and comprehensions.is_comprehension(args[0]):
        return _over(name, comprehensions.read(args[0], name), keywords, at)
    form = f"{kind.head}[{kind.index}]"
    if not args or kind.option is not None:
        fail(errors.reduction_without_set(name, form), at)
    if kind.drawn and len(args) == 1 and not keywords:
        node = syntax.Reduce(kind=name, body=node_of(args[0], at), span=at)
        return CompoundFormula(node, owner(args, at), size_of(args, at))
    if kind.drawn or not all(map(_is_formula, args)):
        fail(errors.reduction_without_set(name, form), at)
    return call(name, args, keywords, at)


def _is_formula(value: Any) -> bool:
    return not isinstance(value, list | tuple | dict)


def _over(name: str, family: comprehensions.Family, keywords: Mapping[str, Any], at: Span) -> CompoundFormula:
    """A reduction over a comprehension."""
    if not family.elements:
        return _listed(name, family.values, keywords, at)
    parts = (*family.parts, family.value, *keywords.values())
    indexing = family.indexing("~" if reductions.words()[name].drawn else "in", at)
    body = node_of(family.value, at)
    node = syntax.Reduce(kind=name, body=body, indexing=indexing, keywords=keywords_of(keywords, at), span=at)
    return CompoundFormula(node, owner(parts, at), size_of(parts, at))


def _listed(name: str, values: list[Any], keywords: Mapping[str, Any], at: Span) -> CompoundFormula:
    """A reduction over Python's own objects: the sum, product or extreme of its formulas."""
    op = {"sum": "+", "prod": "*"}.get(name)
    if keywords or (op is None and name not in ("max", "min")):
        fail(errors.no_member(name), at)
    if op is None:
        return call(name, tuple(values), {}, at)
    total = node_of(values[0], at)
    for value in values[1:]:
        total = syntax.Binary(op=op, left=total, right=node_of(value, at), span=at)
    return CompoundFormula(total, owner(values, at), size_of(values, at))


def vector(*entries: Any) -> CompoundFormula:
    """An array by formula, ``[i in n] u``, or of its entries, ``[a, b, c]``.

    >>> m.minimize(norm2(vector(m.x[i] - m.x[1] for i in m.n)))  # doctest: +SKIP
    >>> m.minimize(sumsq(m.x - vector(1, 2, 3)))  # doctest: +SKIP
    """
    at = places.here()
    if len(entries) == 1 and comprehensions.is_comprehension(entries[0]):
        family = comprehensions.read(entries[0], "vector")
        if family.elements:
            parts = (*family.parts, family.value)
            head = family.indexing("in", at)
            node = syntax.Comprehension(indexing=head, body=node_of(family.value, at), span=at)
            return CompoundFormula(node, owner(parts, at), size_of(parts, at))
        entries = tuple(family.values)
    elif len(entries) == 1 and isinstance(entries[0], list | tuple):
        entries = tuple(vector(*one) if isinstance(one, list | tuple) else one for one in entries[0])
    if not entries:
        fail(errors.argument("vector", "An array has an entry at least.", "write `vector(1, 2)`"), at)
    items = tuple(node_of(entry, at) for entry in entries)
    return CompoundFormula(syntax.Vector(items=items, span=at), owner(entries, at), size_of(entries, at))


# ------------------------------------------------------------------------------------ documentation
def parameters(name: str) -> list[tuple[str, Any]]:
    """The parameters of a word, each with its kind."""
    positional, several = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL
    kind = _reduction_of(name)
    if kind is None:
        return [
            (argument.removesuffix("..."), several if argument.endswith("...") else positional)
            for argument in _arguments(name)
        ]
    shown: list[tuple[str, Any]] = [("comprehension", positional if atoms.get(name) is None else several)]
    if kind.option is not None:
        shown.append((kind.option.name, inspect.Parameter.KEYWORD_ONLY))
    return shown


def _arguments(name: str) -> tuple[str, ...]:
    """The names of a word's arguments; the last may end in ``...``."""
    atom, simple, distribution = atoms.get(name), sets.get(name), distributions.get(name)
    array_function = array_functions.FUNCTIONS.get(name)
    if array_function is not None:
        return ("sizes...",) if array_function.most > 1 else array_function.arguments
    if atom is not None:
        return atom.arguments
    if simple is not None and simple.cap is not None:
        return ("axis", *simple.arguments)
    if simple is not None:
        return simple.arguments
    if distribution is not None:
        return distribution.parameters
    return ()


def documentation(name: str) -> str:
    """The docstring of a word: its meanings in the library."""
    kind, atom, simple, distribution = (
        _reduction_of(name),
        atoms.get(name),
        sets.get(name),
        distributions.get(name),
    )
    paragraphs: list[str] = []
    if kind is not None:
        if kind.option is not None:
            option = f", {kind.option.name}={kind.option.example}"
        else:
            option = ""
        paragraphs += [f"{name}(f(z) for z in D{option})", kind.meaning]
        paragraphs.append(f"In a file: {kind.head}[{kind.index}] f")
    if atom is not None:
        paragraphs += [atom.signature, atom.meaning]
        if atom.parameters:
            constants = ", ".join(atom.parameters)
            paragraphs.append(f"Constant: {constants} must not depend on the decision variables.")
        if atom.cite:
            paragraphs.append(f"From: {atom.cite}")
    array_function = array_functions.FUNCTIONS.get(name)
    if array_function is not None:
        paragraphs += [array_function.signature, array_function.meaning]
    if simple is not None:
        use = f"a simple set, for ``var(..., domain={name}(...))``"
        paragraphs += [f"{simple.signature}: {use}", simple.meaning]
    if distribution is not None:
        use = f"a distribution, for ``E(f(z) for z in {name}(...))``"
        paragraphs += [f"{distribution.signature}: {use}", distribution.meaning]
    return "\n\n".join(paragraphs).strip()
