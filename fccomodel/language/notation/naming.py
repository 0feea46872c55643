"""The names of elements: each its comprehension's variable, unless that is taken where it stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import lexer, rewriting, syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import places
from fccomodel.language.notation.terms import TOKEN, Part, fail
from fccomodel.language.statements.indices import IndexDecl

Scope = Mapping[str, str]


def named(
    statement: syntax.Statement,
    taken: Collection[str],
    elements: Mapping[str, tuple[str, Span]],
    indices: Mapping[str, syntax.Binder] | None = None,
) -> syntax.Statement:
    """The statement with every element under a name that nothing else has there.

    elements  those of other statements, by token      indices  the declared ones, which an element
              of the same set may restate
    """
    params = getattr(statement, "params", ())
    with rewriting.deep():
        result = _Naming({*taken, *params}, elements, indices or {}).go(statement, {}, NOWHERE)
    assert isinstance(result, syntax.Statement)
    return result


class _Naming:
    def __init__(
        self,
        taken: Collection[str],
        elements: Mapping[str, tuple[str, Span]],
        indices: Mapping[str, syntax.Binder],
    ):
        self.taken = taken
        self.elements = elements
        self.indices = indices

    def go(self, node: syntax.Node, scope: Scope, at: Span) -> syntax.Node:
        """A node with its elements named; ``at`` is the nearest place around it."""
        at = node.span if places.known(node.span) else at
        if isinstance(node, syntax.Name):
            return self.name(node, scope, at)
        head = getattr(node, "indexing", None) or getattr(node, "family", None)
        if head is None:
            return rewriting.rebuilt(node, lambda part: self.go(part, scope, at))
        new, inner = self.head(head, scope, at)
        return rewriting.rebuilt(node, lambda part: new if part is head else self.go(part, inner, at))

    def name(self, node: syntax.Name, scope: Scope, at: Span) -> syntax.Name:
        if not node.id.startswith(TOKEN):
            return node
        if node.id not in scope:
            name, place = self.elements.get(node.id, ("this element", NOWHERE))
            fail(errors.escaped(name, places.row(place)), at)
        return syntax.Name(id=scope[node.id], span=node.span)

    def head(self, node: syntax.Indexing, scope: Scope, at: Span) -> tuple[syntax.Indexing, Scope]:
        """Binders with their names, each visible to the next and to the condition."""
        inner = dict(scope)
        binders = []
        for binder in node.binders:
            domain = self.go(binder.domain, inner, at)
            assert isinstance(domain, syntax.Expr)
            if binder.name.startswith(TOKEN):
                _, token, preferred = binder.name.split(TOKEN)
            else:
                _, token, preferred = ("", "", binder.name)
            bare = syntax.Binder(name=preferred, kind=binder.kind, domain=domain, span=binder.span)
            restates = self.indices.get(preferred) == bare and preferred not in inner.values()
            if token and not restates:
                name = self.free(preferred, inner)
            else:
                name = preferred
            inner[f"{TOKEN}{token}" if token else name] = name
            binders.append(syntax.Binder(name=name, kind=binder.kind, domain=domain, span=binder.span))
        if node.condition is None:
            condition = None
        else:
            condition = self.go(node.condition, inner, at)
        assert condition is None or isinstance(condition, syntax.Expr)
        return syntax.Indexing(binders=tuple(binders), condition=condition, span=node.span), inner

    def free(self, name: str, scope: Scope) -> str:
        """The name, with a number behind it where it is taken."""
        stem = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else "z"
        held = {*self.taken, *scope.values(), *lexer.grammar().words}
        return next(candidate for candidate in _candidates(stem) if candidate not in held)


def _candidates(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}{number}"
        number += 1


def elements(*parts: Part | syntax.Node) -> dict[str, tuple[str, Span]]:
    """The names and the places of the elements that comprehensions in a formula bind."""
    found = {}
    for part in parts:
        node = part._node if isinstance(part, Part) else part
        for inner in rewriting.walk(node) if node is not None else ():
            if isinstance(inner, syntax.Binder) and inner.name.startswith(TOKEN):
                _, token, name = inner.name.split(TOKEN)
                found[f"{TOKEN}{token}"] = (name, inner.span)
    return found


def uses(statement: syntax.Statement) -> set[str]:
    """The names that a statement may take from others."""
    local = set(getattr(statement, "params", ()))
    found: set[str] = set()
    for node in rewriting.walk(statement):
        match node:
            case syntax.Binder() if not isinstance(statement, IndexDecl):
                local.add(node.name)
            case syntax.Name():
                found |= _with_subscripts(node.id)
            case syntax.Call():
                found |= _with_subscripts(node.func)
            case syntax.TypeExpr(name=str(name)):
                found.add(name)
            case syntax.Reduce(subscript=str(index)):
                found.add(index)
    return found - local


def _with_subscripts(name: str) -> set[str]:
    """``h_k`` may be ``h`` with a subscript."""
    parts = name.split("_")
    return {name, *(part for cut in range(1, len(parts)) for part in ("_".join(parts[:cut]), parts[cut]))}
