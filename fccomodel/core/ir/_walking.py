"""Walking over expressions, and the binders and variables that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from fccomodel.core.ir._expressions import (
    Apply,
    Binder,
    Column,
    Const,
    Distribution,
    Element,
    Exists,
    Expr,
    Item,
    Label,
    LetRef,
    NetCall,
    Param,
    Reduce,
    Size,
    Var,
    VectorSet,
)


def walk(*roots: Expr, lets: bool = True, known: Container[int] = ()) -> Iterator[Expr]:
    """Every node of some expressions once, children before parents. Not recursive.

    It enters the bodies of ``let`` unless ``lets`` is False. Nodes whose ids are ``known`` are left out,
    with what only they contain.
    """
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
            continue
        if id(node) in seen or id(node) in known:
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(_inner(node, lets)))


def _inner(node: Expr, lets: bool) -> tuple[Expr, ...]:
    """The children of a node and, if ``lets``, the body of the ``let`` that it refers to."""
    if lets and isinstance(node, LetRef):
        return (*node.children, node.let.body)
    return node.children


def free_binders(expr: Expr, *, lets: bool = True) -> tuple[Binder, ...]:
    """The binders that an expression depends on but does not bind, in order of first use.

    With ``lets=False``, every ``let`` in it counts as binding all that its body uses, and is not
    entered. Each node remembers its own binders. Not recursive.
    """
    memo = "_free" if lets else "_free_here"
    stack = [expr]
    while stack:
        node = stack[-1]
        if memo in vars(node):
            stack.pop()
        elif unknown := [child for child in _inner(node, lets) if memo not in vars(child)]:
            stack.extend(reversed(unknown))
        else:
            vars(node)[memo] = _free(node, memo)
            stack.pop()
    return vars(expr)[memo]


def _free(node: Expr, memo: str) -> tuple[Binder, ...]:
    """The free binders of a node whose children remember theirs under ``memo``."""
    free: list[Binder]
    if isinstance(node, Column | Element):
        free = [node.binder]
    else:
        free = []
    for child in node.children:
        free.extend(vars(child)[memo])
    if isinstance(node, Reduce):
        for binder in node.binders:
            if isinstance(binder.domain, Distribution | VectorSet):
                for arg in binder.domain.args:
                    free.extend(free_binders(arg))
        free = [b for b in free if all(b is not bound for bound in node.binders)]
    elif isinstance(node, Exists):
        free = [b for b in free if b is not node.binder]
    elif memo == "_free" and isinstance(node, LetRef):
        in_body = vars(node.let.body)[memo]
        free.extend(b for b in in_body if all(b is not bound for bound in node.let.binders))
    return tuple({id(b): b for b in free}.values())


def variables_of(expr: Expr) -> frozenset[str]:
    """The names of the decision variables in an expression. Each node remembers its own."""
    return _gathered(expr, "_variables", lambda node: (node.name,) if isinstance(node, Var) else ())


def contents(expr: Expr) -> frozenset[str]:
    """The classes of the nodes of an expression, such as ``Reduce``, and the operations, such as ``div``.

    It enters the bodies of ``let``. Each node remembers its own.
    """
    return _gathered(expr, "_contents", _content)


def _content(node: Expr) -> tuple[str, ...]:
    """The class of a node, and its operation if it has one."""
    if isinstance(node, Apply):
        return ("Apply", node.op)
    return (type(node).__name__,)


def _gathered(expr: Expr, memo: str, own: Callable[[Expr], tuple[str, ...]]) -> frozenset[str]:
    """The union of what the nodes of an expression have; each node remembers its own under ``memo``.

    It walks without recursion.

    own  gives what a node has itself
    """
    stack = [expr]
    while stack:
        node = stack[-1]
        if memo in vars(node):
            stack.pop()
        elif unknown := [child for child in _inner(node, True) if memo not in vars(child)]:
            stack.extend(unknown)
        else:
            vars(node)[memo] = _joined(node, memo, own(node))
            stack.pop()
    return vars(expr)[memo]


def _joined(node: Expr, memo: str, own: tuple[str, ...]) -> frozenset[str]:
    """The union for a node and its children, which remember theirs. Equal sets are shared, to save memory."""
    sets = {vars(child)[memo] for child in _inner(node, True)} | {frozenset(own)}
    largest = max(sets, key=len)
    if all(part <= largest for part in sets):
        return largest
    return frozenset().union(*sets)


#: What two equal nodes of a kind share, besides equal children. Nodes of other kinds draw or name
#: something of their own.
SHARED: Mapping[type[Expr], Callable[[Any], Any]] = {
    Const: lambda node: node.value,
    Label: lambda node: node.text,
    Size: lambda node: node.dim,
    Param: lambda node: node.name,
    Var: lambda node: node.name,
    Column: lambda node: (node.name, id(node.binder)),
    Element: lambda node: id(node.binder),
    Apply: lambda node: node.op,
    NetCall: lambda node: node.net,
    Item: lambda node: None,
}


def same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are equal as written: the same nodes over the same binders.

    Always False for reductions and other nodes that draw or name something of their own.
    """
    if a is b:
        return True
    shared = SHARED.get(type(a))
    if shared is None or type(a) is not type(b) or len(a.children) != len(b.children):
        return False
    return shared(a) == shared(b) and all(same(x, y) for x, y in zip(a.children, b.children, strict=True))
