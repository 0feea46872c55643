"""Rewriting of expression DAGs: shared nodes stay shared, ``let`` families are rewritten once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from fccomodel.core import ir
from fccomodel.core.source import Span

#: A function of a node, which returns its replacement, or None to keep it.
Rule = Callable[[ir.Expr], ir.Expr | None]


def with_children(node: ir.Expr, children: tuple[ir.Expr, ...]) -> ir.Expr:
    """A copy of a node with other children (in the order of ``node.children``)."""
    match node:
        case ir.Apply():
            return dataclasses.replace(node, args=children)
        case ir.Item():
            return dataclasses.replace(node, base=children[0], indices=children[1:])
        case ir.NetCall():
            if node.params is None:
                return dataclasses.replace(node, inputs=children)
            params = children[0]
            assert isinstance(params, ir.Var)
            return dataclasses.replace(node, params=params, inputs=children[1:])
        case ir.LetRef() | ir.Hole():
            return dataclasses.replace(node, args=children)
        case ir.Reduce():
            rest = list(children[1:])
            if node.condition is not None:
                condition = rest.pop(0)
            else:
                condition = None
            return dataclasses.replace(
                node,
                body=children[0],
                condition=condition,
                options=dict(zip(node.options, rest, strict=True)),
            )
        case ir.Exists():
            return dataclasses.replace(node, condition=children[0])
    return dataclasses.replace(node, args=children) if children else node  # type: ignore[call-arg]


class Rewriter:
    """Applies a rule bottom-up: ``rule(node)`` sees rewritten children, and returns a replacement or None."""

    def __init__(self, rule: Rule):
        self.rule = rule
        self.nodes: dict[int, tuple[ir.Expr, ir.Expr]] = {}
        self.lets: dict[int, ir.Let] = {}

    def __call__(self, expr: ir.Expr) -> ir.Expr:
        for node in ir.walk(expr):
            if id(node) in self.nodes:
                continue
            children = tuple(self.nodes[id(child)][1] for child in node.children)
            if all(a is b for a, b in zip(children, node.children, strict=True)):
                rewritten = node
            else:
                rewritten = with_children(node, children)
            if isinstance(rewritten, ir.LetRef):
                rewritten = self._let(rewritten)
            self.nodes[id(node)] = (node, self.rule(rewritten) or rewritten)
        return self.nodes[id(expr)][1]

    def _let(self, ref: ir.LetRef) -> ir.LetRef:
        let = ref.let
        if id(let) not in self.lets:
            body = self.nodes[id(let.body)][1]
            if body is let.body:
                self.lets[id(let)] = let
            else:
                self.lets[id(let)] = dataclasses.replace(let, body=body)
        if self.lets[id(let)] is let:
            return ref
        return dataclasses.replace(ref, let=self.lets[id(let)])


def substitute(expr: ir.Expr, binders: Mapping[ir.Binder, ir.Expr]) -> ir.Expr:
    """``expr`` with elements of some binders replaced (columns only by another binder's element)."""
    by_id = {id(b): e for b, e in binders.items()}

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The node with another binder, or None if its binder stays."""
        if isinstance(node, ir.Element) and id(node.binder) in by_id:
            return by_id[id(node.binder)]
        if isinstance(node, ir.Column) and id(node.binder) in by_id:
            target = by_id[id(node.binder)]
            assert isinstance(target, ir.Element)
            return dataclasses.replace(node, binder=target.binder)
        if isinstance(node, ir.Reduce):
            return _drawn_from(node, binders)
        return None

    return Rewriter(rule)(expr)


def _drawn_from(node: ir.Reduce, binders: Mapping[ir.Binder, ir.Expr]) -> ir.Expr | None:
    """A reduction whose draws depend on elements that take the place of others; None if none depends."""
    moved: dict[ir.Binder, ir.Expr] = {}
    drawn: list[ir.Binder] = []
    for binder in node.binders:
        domain, replaced = binder.domain, {**binders, **moved}
        if isinstance(domain, ir.Distribution):
            args = tuple(substitute(arg, replaced) for arg in domain.args)
            if any(new is not old for new, old in zip(args, domain.args, strict=True)):
                other = dataclasses.replace(binder, domain=dataclasses.replace(domain, args=args))
                moved[binder] = ir.Element(binder=other)
                binder = other
        drawn.append(binder)
    if not moved:
        return None
    inside = with_children(node, tuple(substitute(child, moved) for child in node.children))
    return dataclasses.replace(inside, binders=tuple(drawn))  # type: ignore[call-arg]


def rewrite_problem(problem: ir.Problem, rule: Rule) -> ir.Problem:
    """The problem with a rule applied to its objective and to every constraint."""
    rewriter = Rewriter(rule)
    objective = dataclasses.replace(problem.objective, expr=rewriter(problem.objective.expr))
    constraints = tuple(dataclasses.replace(c, body=rewriter(c.body)) for c in problem.constraints)
    return dataclasses.replace(problem, objective=objective, constraints=constraints)


def shared(problem: ir.Problem) -> ir.Problem:
    """The problem with equal subexpressions merged; every reduction stays a separate draw."""
    canonical: dict[tuple, ir.Expr] = {}

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The first node with the same content."""
        key = _content(node)
        if key is None:
            return None
        return canonical.setdefault(key, node)

    return rewrite_problem(problem, rule)


def _content(node: ir.Expr) -> tuple | None:
    """A key that equal nodes share, given that their children are merged; None for nodes never merged."""
    key: tuple
    match node:
        case ir.Const(value=value):
            key = ("const", value, node.shape)
        case ir.Size(dim=dim):
            key = ("size", dim)
        case ir.Param(name=name) | ir.Var(name=name):
            key = (type(node).__name__, name)
        case ir.Column(binder=binder, name=name):
            key = ("column", id(binder), name)
        case ir.Element(binder=binder):
            key = ("element", id(binder))
        case ir.Item():
            key = ("item",)
        case ir.Apply(op=op):
            key = ("apply", op)
        case ir.NetCall(net=net):
            key = ("net", net)
        case ir.LetRef(let=let):
            key = ("let", id(let))
        case _:
            return None
    return (*key, *(id(child) for child in node.children))


# ------------------------------------------------------------------------- small constructors of IR
def const(value: float) -> ir.Const:
    """A number as an expression."""
    return ir.Const(value=float(value))


def apply(op: str, *args: ir.Expr, span: Span = ir.NOWHERE) -> ir.Expr:
    """An atom applied entry by entry; its shape is that of the argument with the most dimensions."""
    shape = max((a.shape for a in args), key=len)
    return ir.Apply(op=op, args=args, shape=shape, span=span)


def operands(expr: ir.Expr, op: str) -> list[ir.Expr]:
    """The operands of an associative atom, however nested: a, b, c for ``(a + b) + c``. Not recursive."""
    joined: list[ir.Expr] = []
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Apply) and node.op == op:
            stack.extend(reversed(node.args))
        else:
            joined.append(node)
    return joined


def conjuncts(condition: ir.Expr | None) -> list[ir.Expr]:
    """The conditions that ``and`` joins: a, b, c for ``a and b and c``."""
    if condition is None:
        return []
    return operands(condition, "and")


def conjunction(parts: Iterable[ir.Expr | None]) -> ir.Expr | None:
    """The conditions joined by ``and``, leaving out None; None if there are none."""
    joined: ir.Expr | None = None
    for part in parts:
        if part is None:
            continue
        if joined is None:
            joined = part
        else:
            joined = apply("and", joined, part, span=joined.span | part.span)
    return joined


def exists(node: ir.Reduce) -> ir.Expr | None:
    """The condition on outer binders that a reduction has elements; None if it has no condition."""
    conditions = conjuncts(node.condition)
    for binder in reversed(node.binders):
        own = conjunction(c for c in conditions if binder in ir.free_binders(c))
        if own is not None:
            conditions = [c for c in conditions if binder not in ir.free_binders(c)]
            conditions.append(ir.Exists(binder=binder, condition=own, span=node.span))
    return conjunction(conditions)
