"""Sets in Python, which comprehensions go over: tables, sets, distributions, and their conditions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import rewriting, syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import comprehensions, places
from fccomodel.language.notation.terms import (
    TOKEN,
    CompoundFormula,
    Formula,
    PythonSyntax,
    fail,
    made,
    node_of,
    owner,
    shown,
    token,
)

#: The name of an element that nothing names.
ELEMENT = "z"


class Where:
    """A condition on an element.

    condition  the condition as syntax
    element    the token of the element in it
    name       the name that the condition gives the element
    part       the condition, for its model and size
    """

    def __init__(self, condition: syntax.Expr, element: str, name: str, part: PythonSyntax):
        self.condition = condition
        self.element = element
        self.name = name
        self.part = part

    def of(self, element: str) -> syntax.Expr:
        """The condition on another element."""

        def change(node: syntax.Node) -> syntax.Node | None:
            """The other element for this one."""
            if isinstance(node, syntax.Name) and node.id == self.element:
                return syntax.Name(id=element, span=node.span)
            return None

        return rewriting.replaced(self.condition, change)


class Set(PythonSyntax):
    """A set of the model: the rows of a table, labels, numbers, a distribution.

    Its attributes are the columns of its rows, for conditions.

    >>> P = D.where(D.y == 1)  # doctest: +SKIP
    >>> E(log1pexp(-score(z.x)) for z in P)  # doctest: +SKIP
    """

    __slots__ = ("_rows", "_wheres", "_draw", "_weight")
    _sort = "set"

    def __init__(
        self,
        node: syntax.Expr | None,
        owner: Any = None,
        *,
        rows: tuple[syntax.Expr, ...] = (),
        wheres: tuple[Where, ...] = (),
        draw: str = "",
        weight: Where | None = None,
        size: int = 1,
    ):
        super().__init__(node, owner, size)
        self._weight = weight
        self._rows = rows
        self._wheres = wheres
        self._draw = draw

    def _to_declare(self, at: Span) -> syntax.Expr:
        """The set as a named set or an index has it; an error if it has weights, which these have not."""
        if self._weight is not None:
            reason = "Only the rows of an average have weights; a named set and a declared index have none."
            fail(errors.argument("a declaration", reason, "write `E(u for z in D.by(D.p))`"), at)
        return node_of(self, at)

    def _syntax(self) -> syntax.Expr:
        """The set in a formula: by its name, or ``{z in D | condition}``."""
        assert self._node is not None
        if not self._wheres:
            return self._node
        element = token()
        name = next((where.name for where in self._wheres if where.name != ELEMENT), ELEMENT)
        binder = syntax.Binder(name=f"{element}{TOKEN}{name}", kind="in", domain=self._node, span=NOWHERE)
        head = syntax.Indexing(binders=(binder,), condition=self._condition(element), span=NOWHERE)
        return syntax.SetComprehension(indexing=head, span=self._wheres[-1].condition.span)

    def _condition(self, element: str) -> syntax.Expr | None:
        """All conditions on an element, joined by ``and``, or None without any."""
        joined: syntax.Expr | None = None
        for where in self._wheres:
            condition = where.of(element)
            if joined is None:
                joined = condition
            else:
                joined = syntax.Binary(op="and", left=joined, right=condition, span=condition.span)
        return joined

    def where(self, condition: Formula | Callable[[CompoundFormula], Any]) -> Set:
        """The elements under a condition: ``D.where(D.y == 1)`` or ``D.where(lambda z: z.y == 1)``.

        condition  a formula of the set's columns, or a function of the element; ``&``, ``|`` and ``~``
                   connect conditions
        """
        at = places.here()
        node_of(self, at)
        reason = (
            "A condition is a formula of the set's columns, or a function of its element that returns one."
        )
        fix = "write `D.where(D.y == 1)` or `D.where(lambda z: z.y == 1)`"
        where = self._of_element(condition, errors.argument("where", reason, fix), at)
        parts = self, where.part
        return Set(
            self._node,
            owner(parts, at),
            rows=self._rows,
            wheres=(*self._wheres, where),
            draw=self._draw,
            weight=self._weight,
            size=sum(part._size for part in parts),
        )

    def by(self, weight: Formula | Callable[[CompoundFormula], Any]) -> Set:
        """The rows, to be drawn by weight: ``E(f(z) for z in D.by(D.p))``, or ``D.by(lambda z: z.p)``.

        weight  a formula of the set's columns, or a function of the element; at least 0. It multiplies
                a weight that the set has already.
        """
        at = places.here()
        node_of(self, at)
        reason = "A weight is a formula of the set's columns, or a function of its element that returns one."
        refusal = errors.argument("by", reason, "write `D.by(D.p)` or `D.by(lambda z: z.p)`")
        of_element = self._of_element(weight, refusal, at)
        parts = self, of_element.part
        if self._weight is not None:
            before = self._weight.of(of_element.element)
            of_element.condition = syntax.Binary(op="*", left=before, right=of_element.condition, span=at)
        return Set(
            self._node,
            owner(parts, at),
            rows=self._rows,
            wheres=self._wheres,
            draw=self._draw,
            weight=of_element,
            size=sum(part._size for part in parts),
        )

    def _of_element(
        self, formula: Formula | Callable[[CompoundFormula], Any], refusal: Diagnostic, at: Span
    ) -> Where:
        """A formula of the set's columns, or a function of the element, as a formula of an element."""
        element, name = token(), ELEMENT
        if callable(formula) and not isinstance(formula, PythonSyntax):
            if formula.__code__.co_argcount == 1:
                name = formula.__code__.co_varnames[0]
            formula = formula(CompoundFormula(syntax.Name(id=element, span=NOWHERE), self._owner))
        if isinstance(formula, bool) or not isinstance(formula, Formula):
            fail(refusal, at)
        rows = (*self._rows, self._node)

        def change(node: syntax.Node) -> syntax.Node | None:
            """A column of the element for a column of the set."""
            if isinstance(node, syntax.Field) and node.obj in rows:
                return syntax.Field(obj=syntax.Name(id=element, span=NOWHERE), name=node.name, span=node.span)
            return None

        return Where(rewriting.replaced(node_of(formula, at), change), element, name, formula)

    def subset(self, condition: Formula | Callable[[CompoundFormula], Any]) -> Set:
        """``{z in D | condition}`` as a set of its own.

        ``where`` adds the condition to those of the comprehension instead.
        """
        chosen = self.where(condition)
        assert chosen._node is not None
        rows = (*self._rows, chosen._node)
        return Set(chosen._syntax(), chosen._owner, rows=rows, weight=chosen._weight, size=chosen._size)

    def __getattr__(self, name: str) -> CompoundFormula:
        if name.startswith("_"):
            raise AttributeError(name)
        node_of(self, places.here())
        assert self._node is not None
        return self._column(name, self._node)

    def __getitem__(self, items: Any) -> Set:
        """A member of a family of sets, ``N[i]``; a shape, ``normal(0, 1)[m.d]``."""
        if isinstance(items, tuple):
            parts = items
        else:
            parts = (items,)
        term = made(lambda obj, *rest: syntax.Index(obj=obj, items=rest[:-1], span=rest[-1]), self, *parts)
        rows = self._rows
        if self._node is not None:
            rows = (*rows, self._node)
        return Set(term._node, term._owner, rows=rows, size=term._size)

    def __iter__(self) -> Iterator[Any]:
        at = places.here()
        node_of(self, at)
        return SymbolicIterator(self, at)

    def __bool__(self) -> bool:
        fail(errors.truth_value("", shown(self._syntax())))

    def __contains__(self, item: Any) -> bool:
        fail(errors.truth_value("In", shown(self._syntax())))

    def __len__(self) -> int:
        if "len" not in places.frame().f_code.co_names:
            raise TypeError("a set of the model has no length")  # `list` asks, and goes on without an answer
        fix = "the number of its elements is `sum(1 for z in D)`"
        fail(errors.no_number("length", shown(self._syntax()), fix))


class SymbolicIterator:
    """The iterator of a set: gives one element, which stands for all, to the comprehension that asks."""

    def __init__(self, over: Set, at: Span):
        self.over = over
        self.at = at
        self.given = False

    def __iter__(self) -> SymbolicIterator:
        return self

    def __next__(self) -> CompoundFormula:
        asking = sys._getframe(1)
        family = comprehensions.of(asking)
        if family is None:
            comprehensions.refuse_python(asking, self.at)
        if self.given:
            raise StopIteration
        self.given = True
        return family.element(self.over, self.at)


def iterate(over: Any) -> Set:
    """A set to go over one by one (``in``) inside a word that would draw from it (``~``)."""
    return _kind(over, "in")


def draw(over: Any) -> Set:
    """A set to draw from (``~``) inside a word that would go over it (``in``): ``index(draw(N))``."""
    return _kind(over, "~")


def _kind(over: Any, kind: str) -> Set:
    at = places.here()
    node = node_of(over, at)
    if isinstance(over, Set):
        return Set(
            over._node,
            over._owner,
            rows=over._rows,
            wheres=over._wheres,
            draw=kind,
            weight=over._weight,
            size=over._size,
        )
    return Set(node, owner((over,), at), draw=kind)
