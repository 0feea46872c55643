"""What expressions consist of and depend on."""

from __future__ import annotations

from collections.abc import Iterator

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


def walk(*roots: Expr, lets: bool = True) -> Iterator[Expr]:
    """Every node of some expressions once, children before parents; through ``let`` bodies unless
    ``lets`` is False.

    Not recursive.
    """
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        if lets and isinstance(node, LetRef):
            inner = (*node.children, node.let.body)
        else:
            inner = node.children
        stack.extend((child, False) for child in reversed(inner))


def free_binders(expr: Expr, *, lets: bool = True) -> tuple[Binder, ...]:
    """The binders that an expression's value depends on and that it does not bind itself, in order of
    first use; each node knows its own, once asked.

    ``lets=False``: every ``let`` in it binds all that its body uses, and is not walked through.
    """
    known = "_free" if lets else "_free_here"
    stack = [expr]
    while stack:
        node = stack[-1]
        if lets and isinstance(node, LetRef):
            inner = (*node.children, node.let.body)
        else:
            inner = node.children
        if known in vars(node):
            stack.pop()
        elif unknown := [child for child in inner if known not in vars(child)]:
            stack.extend(reversed(unknown))
        else:
            vars(node)[known] = _free(node, known)
            stack.pop()
    return vars(expr)[known]


def _free(node: Expr, known: str) -> tuple[Binder, ...]:
    """Those of a node whose children know theirs."""
    free: list[Binder]
    if isinstance(node, Column | Element):
        free = [node.binder]
    else:
        free = []
    for child in node.children:
        free.extend(vars(child)[known])
    if isinstance(node, Reduce):
        for binder in node.binders:
            if isinstance(binder.domain, Distribution | VectorSet):
                for arg in binder.domain.args:
                    free.extend(free_binders(arg))
        free = [b for b in free if all(b is not bound for bound in node.binders)]
    elif isinstance(node, Exists):
        free = [b for b in free if b is not node.binder]
    elif known == "_free" and isinstance(node, LetRef):
        free.extend(
            b for b in vars(node.let.body)[known] if all(b is not bound for bound in node.let.binders)
        )
    return tuple({id(b): b for b in free}.values())


def variables_of(expr: Expr) -> frozenset[str]:
    """Names of the decision variables that an expression uses; each node knows its own, once asked."""
    stack = [expr]
    while stack:
        node = stack[-1]
        if isinstance(node, LetRef):
            inner = (*node.children, node.let.body)
        else:
            inner = node.children
        if "_variables" in vars(node):
            stack.pop()
        elif unknown := [child for child in inner if "_variables" not in vars(child)]:
            stack.extend(unknown)
        else:
            names = {vars(child)["_variables"] for child in inner} | {
                frozenset({node.name} if isinstance(node, Var) else ())
            }
            if len(names) > 2:
                vars(node)["_variables"] = frozenset().union(*names)
            else:
                vars(node)["_variables"] = max(names, key=len)
            stack.pop()
    return vars(expr)["_variables"]


def same(a: Expr, b: Expr) -> bool:
    """Equal as written (the same nodes over the same binders); False for anything but atoms, items,
    columns and numbers."""
    if a is b:
        return True
    if type(a) is not type(b) or len(a.children) != len(b.children):
        return False
    match a, b:
        case (Const(), Const()):
            return a.value == b.value
        case (Label(), Label()):
            return a.text == b.text
        case (Size(), Size()):
            return a.dim == b.dim
        case (Param(), Param()):
            return a.name == b.name
        case (Var(), Var()):
            return a.name == b.name
        case (Column(), Column()):
            return a.name == b.name and a.binder is b.binder
        case (Element(), Element()):
            return a.binder is b.binder
        case (Apply(), Apply()):
            alike = a.op == b.op
        case (NetCall(), NetCall()):
            alike = a.net == b.net
        case (Item(), Item()):
            alike = True
        case _:
            return False
    return alike and all(same(x, y) for x, y in zip(a.children, b.children, strict=True))
