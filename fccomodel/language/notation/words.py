"""The language's own words as Python functions: atoms, reductions, sets and distributions, each by its
name in the library."""

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
from fccomodel.language.notation.terms import LARGEST, Part, Term, fail, node_of, owner
from fccomodel.library import atoms, distributions, reductions, sets

#: Of one argument, the vector of equal weights; else the distribution.
WEIGHTS = "uniform"


def _reduction_of(name: str) -> reductions.Reduction | None:
    """The reduction that models write by this name."""
    kind = reductions.get(name)
    return kind if kind is not None and kind.written else None


@cache
def word(name: str) -> Word:
    """The word of this name, which is one."""
    return Word(name)


class Word(Part):
    """A word of the language: called with formulas, or with a comprehension over sets of the model."""

    __slots__ = ("__name__",)
    _sort = "word"

    def __init__(self, name: str):
        simple = sets.get(name)
        super().__init__(None if simple is None else syntax.Name(id=name, span=NOWHERE))
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
            fail(
                errors.argument(
                    self.__name__ + "[...]",
                    "Only reductions have a subscript, which is a declared index.",
                    "write `mean[m.i](...)` after `m.i = fc.index(m.D)`",
                ),
                at,
            )
        return Subscripted(self.__name__, index, node.id)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        at = places.here()
        name = self.__name__
        if _reduction_of(name) is not None:
            return _reduction(name, args, keywords, at)
        for arg in args:
            if comprehensions.is_comprehension(arg):
                fail(
                    errors.argument(
                        name,
                        "It takes formulas; a comprehension goes into a reduction.",
                        f"write `{name}(sum(... for z in D))`",
                    ),
                    at,
                )
        term = call(name, args, keywords, at)
        if name in sets.all() or (name in distributions.all() and not (name == WEIGHTS and len(args) == 1)):
            return Set(term._node, term._owner, size=term._size)
        return term


class Subscripted:
    """``mean_i``, before its body."""

    def __init__(self, kind: str, index: Part, subscript: str):
        self.kind, self.index, self.subscript = kind, index, subscript

    def __call__(self, body: Any) -> Term:
        at = places.here()
        node = syntax.Reduce(kind=self.kind, body=node_of(body, at), subscript=self.subscript, span=at)
        return Term(node, owner((self.index, body), at), 1 + getattr(body, "_size", 1))


def call(
    name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], at: Span, semicolon: int | None = None
) -> Term:
    """``name(args, keyword = value)``."""
    parts = (*args, *keywords.values())
    nodes = tuple(node_of(arg, at) for arg in args)
    named = keywords_of(keywords, at)
    size = _size(parts, at)
    return Term(
        syntax.Call(func=name, args=nodes, keywords=named, semicolon=semicolon, span=at),
        owner(parts, at),
        size,
    )


def keywords_of(keywords: Mapping[str, Any], at: Span) -> tuple[syntax.Keyword, ...]:
    return tuple(
        syntax.Keyword(name=name, value=node_of(value, at), span=at) for name, value in keywords.items()
    )


def _size(parts: Any, at: Span) -> int:
    size = 1 + sum(part._size if isinstance(part, Part) else 1 for part in parts)
    if size > LARGEST:
        fail(errors.too_large(LARGEST), at)
    return size


def _reduction(name: str, args: tuple[Any, ...], keywords: Mapping[str, Any], at: Span) -> Term:
    """A reduction of a comprehension; ``sum(u)`` of a vector; ``E(e)`` of declared draws."""
    kind = reductions.all()[name]
    if len(args) == 1 and comprehensions.is_comprehension(args[0]):
        return _over(name, comprehensions.read(args[0], name), keywords, at)
    if not args or kind.option is not None:
        fail(errors.reduction_without_set(name, f"{kind.head}[{kind.index}]"), at)
    if kind.drawn and len(args) == 1 and not keywords:
        body = args[0]
        return Term(
            syntax.Reduce(kind=name, body=node_of(body, at), span=at), owner((body,), at), _size((body,), at)
        )
    if kind.drawn or not all(map(_is_formula, args)):
        fail(errors.reduction_without_set(name, f"{kind.head}[{kind.index}]"), at)
    return call(name, args, keywords, at)


def _is_formula(value: Any) -> bool:
    return not isinstance(value, list | tuple | dict)


def _over(name: str, family: comprehensions.Family, keywords: Mapping[str, Any], at: Span) -> Term:
    if not family.elements:
        return _listed(name, family.values, keywords, at)
    parts = (*family.parts, family.value, *keywords.values())
    indexing = family.indexing("~" if reductions.all()[name].drawn else "in", at)
    body = node_of(family.value, at)
    node = syntax.Reduce(kind=name, body=body, indexing=indexing, keywords=keywords_of(keywords, at), span=at)
    return Term(node, owner(parts, at), _size(parts, at))


def _listed(name: str, values: list[Any], keywords: Mapping[str, Any], at: Span) -> Term:
    """A comprehension over Python's own objects: its formulas one by one."""
    op = {"sum": "+", "prod": "*"}.get(name)
    if keywords or (op is None and name not in ("max", "min")):
        fail(errors.no_member(name), at)
    if op is None:
        return call(name, tuple(values), {}, at)
    total = node_of(values[0], at)
    for value in values[1:]:
        total = syntax.Binary(op=op, left=total, right=node_of(value, at), span=at)
    return Term(total, owner(values, at), _size(values, at))


# ------------------------------------------------------------------------------------ documentation
def parameters(name: str) -> list[tuple[str, Any]]:
    """The parameters that a word shows, each with its kind."""
    positional, several, named = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
    )
    kind = _reduction_of(name)
    if kind is not None:
        also = (
            [("comprehension", several)] if atoms.get(name) is not None else [("comprehension", positional)]
        )
        return also + ([(kind.option.name, named)] if kind.option is not None else [])
    arguments = _arguments(name)
    return [(a.removesuffix("..."), several if a.endswith("...") else positional) for a in arguments]


def _arguments(name: str) -> tuple[str, ...]:
    if (atom := atoms.get(name)) is not None:
        return atom.arguments
    if (simple := sets.get(name)) is not None:
        if simple.cap is not None:
            return ("axis", *simple.arguments)
        return simple.arguments
    found = distributions.get(name)
    if found is None:
        return ()
    return found.parameters


def documentation(name: str) -> str:
    """What a word means, as its card in the library says."""
    kind, atom, simple, drawn = _reduction_of(name), atoms.get(name), sets.get(name), distributions.get(name)
    lines: list[str] = []
    if kind is not None:
        if kind.option is not None:
            option = f", {kind.option.name}={kind.option.example}"
        else:
            option = ""
        lines += [f"{name}(f(z) for z in D{option})", "", f"{kind.meaning}", ""]
        lines += [f"In a file: {kind.head}[{kind.index}] f", ""]
    if atom is not None:
        lines += [f"{atom.signature}", "", atom.meaning, ""]
        if atom.parameters:
            lines += [
                f"Constant: {', '.join(atom.parameters)} must not depend on the decision variables.",
                "",
            ]
        if atom.cite:
            lines += [f"From: {atom.cite}", ""]
    if simple is not None:
        lines += [
            f"{simple.signature}: a simple set, for ``var(..., domain={name}(...))``",
            "",
            simple.meaning,
            "",
        ]
    if drawn is not None:
        lines += [
            f"{drawn.signature}: a distribution, for ``E(f(z) for z in {name}(...))``",
            "",
            drawn.meaning,
            "",
        ]
    return "\n".join(lines).strip()
