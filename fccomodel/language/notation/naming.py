"""The names of elements: the variable of the comprehension, unless that name is taken there."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Collection, Mapping

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import lexer, rewriting, syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import places
from fccomodel.language.notation.terms import TOKEN, PythonSyntax, fail
from fccomodel.language.statements.indices import IndexDecl

#: The names of the elements visible in a place, by token.
Scope = Mapping[str, str]


def named(
    statement: syntax.Statement,
    taken: Collection[str],
    elements: Mapping[str, tuple[str, Span]],
    indices: Mapping[str, syntax.Binder] | None = None,
) -> syntax.Statement:
    """The statement with a name for each element that nothing else has there.

    taken     the names that elements cannot have
    elements  the elements of other statements by token, each with its name and place
    indices   the declared indices, whose names elements of the same set may have
    """
    params = getattr(statement, "params", ())
    with rewriting.deep():
        result = _Naming({*taken, *params}, elements, indices or {}).go(statement, {}, NOWHERE)
    assert isinstance(result, syntax.Statement)
    return result


class _Naming:
    """Gives names to the elements of one statement."""

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
        """A node with names for its elements; ``at`` is the nearest place around it."""
        at = node.span if places.known(node.span) else at
        if isinstance(node, syntax.Name):
            return self.name(node, scope, at)
        head = getattr(node, "indexing", None) or getattr(node, "family", None)
        if head is None:
            return rewriting.rebuilt(node, lambda part: self.go(part, scope, at))
        new, inner = self.head(head, scope, at)
        return rewriting.rebuilt(node, lambda part: new if part is head else self.go(part, inner, at))

    def name(self, node: syntax.Name, scope: Scope, at: Span) -> syntax.Name:
        """The name of an element for its token; raises FccoError if it is used outside its set."""
        if not node.id.startswith(TOKEN):
            return node
        if node.id not in scope:
            name, place = self.elements.get(node.id, ("this element", NOWHERE))
            fail(errors.escaped(name, places.row(place)), at)
        return syntax.Name(id=scope[node.id], span=node.span)

    def head(self, node: syntax.Indexing, scope: Scope, at: Span) -> tuple[syntax.Indexing, Scope]:
        """A head with names for its elements, and the scope inside it."""
        inner = dict(scope)
        binders = []
        for binder in node.binders:
            domain = self.go(binder.domain, inner, at)
            assert isinstance(domain, syntax.Expr)
            token, preferred = "", binder.name
            if binder.name.startswith(TOKEN):
                _, token, preferred = binder.name.split(TOKEN)
            bare = syntax.Binder(name=preferred, kind=binder.kind, domain=domain, span=binder.span)
            restates = self.indices.get(preferred) == bare and preferred not in inner.values()
            if token and not restates:
                name = self.free(preferred, inner)
            else:
                name = preferred
            inner[f"{TOKEN}{token}" if token else name] = name
            weight: syntax.Node | None = None
            if binder.weight is not None:
                weight = self.go(binder.weight, inner, at)
            assert weight is None or isinstance(weight, syntax.Expr)
            binders.append(dataclasses.replace(binder, name=name, domain=domain, weight=weight))
        condition: syntax.Node | None = None
        if node.condition is not None:
            condition = self.go(node.condition, inner, at)
        assert condition is None or isinstance(condition, syntax.Expr)
        return syntax.Indexing(binders=tuple(binders), condition=condition, span=node.span), inner

    def free(self, name: str, scope: Scope) -> str:
        """The name, followed by a number if it is taken."""
        stem = name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else "z"
        held = {*self.taken, *scope.values(), *lexer.grammar().words}
        if stem not in held:
            return stem
        return next(f"{stem}{number}" for number in itertools.count(2) if f"{stem}{number}" not in held)


def elements(*parts: PythonSyntax | syntax.Node) -> dict[str, tuple[str, Span]]:
    """The names and places of the elements that comprehensions in formulas bind, by token."""
    bound: dict[str, tuple[str, Span]] = {}
    for part in parts:
        node = part._node if isinstance(part, PythonSyntax) else part
        if node is None:
            continue
        for inner in rewriting.walk(node):
            if isinstance(inner, syntax.Binder) and inner.name.startswith(TOKEN):
                _, token, name = inner.name.split(TOKEN)
                bound[f"{TOKEN}{token}"] = (name, inner.span)
    return bound


def uses(statement: syntax.Statement) -> set[str]:
    """The names in a statement that other statements may declare."""
    local = set(getattr(statement, "params", ()))
    used: set[str] = set()
    for node in rewriting.walk(statement):
        match node:
            case syntax.Binder() if not isinstance(statement, IndexDecl):
                local.add(node.name)
            case syntax.Name():
                used |= _with_subscripts(node.id)
            case syntax.Call():
                used |= _with_subscripts(node.func)
            case syntax.TypeExpr(name=str(name)):
                used.add(name)
            case syntax.Reduce(subscript=str(index)):
                used.add(index)
    return used - local


def _with_subscripts(name: str) -> set[str]:
    """A name, and the names that it may consist of: ``h_k`` may be ``h`` with the subscript ``k``."""
    first, *rest = name.split("_")
    stems = {"_".join([first, *rest[:count]]) for count in range(len(rest))}
    return {name, *rest, *stems}
