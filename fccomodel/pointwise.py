"""Expressions without reductions, evaluated at the elements that their binders stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from fccomodel import ir, sets
from fccomodel.bound import Bound
from fccomodel.elements import as_tensor, column, fail, labels, labels_of, positions, remember, row_positions, shape, size, values
from fccomodel.named import DTYPE, Env, Named, align, apply_atom, new_axis, spread, union


def accepted(bound: Bound, binder: ir.Binder, conditions: Iterable[ir.Expr], elements: np.ndarray) -> np.ndarray:
    """Which elements satisfy all conditions (about this binder alone), as booleans."""
    keep = np.ones(len(elements), dtype=bool)
    env = {binder: Named(torch.from_numpy(elements), (new_axis(),))}
    for condition in conditions:
        keep &= Pointwise(bound).value(condition, env).data.bool().numpy()
    return keep


class Pointwise:
    """Values of expressions where each free binder stands for the elements of an environment. Shared nodes are computed once."""

    def __init__(self, bound: Bound):
        self.bound = bound
        self.memo: dict[tuple[Any, ...], Named] = {}
        self.kept: list[Any] = []  # keeps alive the records whose ids are keys

    def simple_set(self, domain: ir.VectorSet) -> tuple[sets.SimpleSet, tuple[float | torch.Tensor, ...]]:
        """A simple set with the values of its arguments: numbers, or arrays."""
        simple = sets.get(domain.family)
        assert simple is not None, domain.family
        given = (self.value(arg, {}).data.detach() for arg in domain.args)
        return simple, tuple(value if value.dim() else float(value) for value in given)

    # ------------------------------------------------------------------------------------------------------------- the walk
    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node's value depends on."""
        return remember(self.bound, ("free", node), lambda: ir.free_binders(node))

    def key(self, node: ir.Expr, env: Env) -> tuple[Any, ...]:
        """What decides a node's value within this evaluation."""
        return (id(node), *(id(env[binder]) for binder in self.free(node) if binder in env))

    def inner(self, node: ir.Expr, env: Env) -> tuple[ir.Expr, ...]:
        """The subexpressions to evaluate before a node, in its own environment."""
        if isinstance(node, ir.Apply):
            return tuple(arg for arg in node.args if not isinstance(arg, ir.Label))
        return (node.base,) if isinstance(node, ir.Item) else ()

    def value(self, expr: ir.Expr, env: Env) -> Named:
        """The value of an expression. Not recursive in its nodes."""
        memo = self.memo
        root = self.key(expr, env)
        if root in memo:
            return memo[root]
        self.kept.append((expr, env))
        stack: list[tuple[ir.Expr, bool]] = [(expr, False)]
        while stack:
            node, ready = stack.pop()
            key = self.key(node, env)
            if key in memo:
                continue
            if not ready:
                stack.append((node, True))
                stack.extend((child, False) for child in self.inner(node, env))
                continue
            memo[key] = self.compute(node, env)
        return memo[root]

    def compute(self, node: ir.Expr, env: Env) -> Named:
        """The value of one node whose ``inner`` ones are known."""
        match node:
            case ir.Const(value=value):
                return Named(torch.full(shape(self.bound, node.shape), value, dtype=DTYPE))
            case ir.Size(dim=dim):
                return Named(torch.tensor(float(size(self.bound, dim)), dtype=DTYPE))
            case ir.Param(name=name):
                known = self.bound.params if name in self.bound.params else self.bound.arrays
                return Named(remember(self.bound, ("array", name), lambda: as_tensor(known[name])))
            case ir.Column():
                return self.column(node, env)
            case ir.Element(binder=binder):
                return self.element(binder, env[binder])
            case ir.Item():
                return self.item(node, env)
            case ir.Apply():
                return self.apply(node, env)
        return self.other(node, env)

    def other(self, node: ir.Expr, env: Env) -> Named:
        """A node that is not pointwise."""
        fail(
            self.bound,
            "F0703",
            f"`{self.bound.problem.text(node)}` cannot be used here",
            span=node.span,
            reason="A condition and a set's bounds are decided by data alone, row by row, without variables or reductions.",
        )

    # ------------------------------------------------------------------------------------------------------------ the leaves
    def column(self, node: ir.Column, env: Env) -> Named:
        at, domain = env[node.binder], node.binder.domain
        if not isinstance(domain, ir.RowSet) or node.name is None:
            return at
        data = column(self.bound, domain.table, node.name)
        if at.data.numel() == len(data) and at.data is self.everything(domain.table):
            return Named(data, at.axes)
        return Named(data[at.data], at.axes)

    def everything(self, table: str) -> torch.Tensor:
        """All row numbers of a table, always the same tensor."""
        return remember(self.bound, ("everything", table), lambda: torch.arange(self.bound.tables[table].n))

    def whole(self, domain: ir.Set, elements: np.ndarray) -> torch.Tensor:
        """Ids as a tensor; the shared one where they are all the rows of a table."""
        if isinstance(domain, ir.RowSet) and len(elements) == self.bound.tables[domain.table].n:
            return self.everything(domain.table)
        return torch.from_numpy(np.ascontiguousarray(elements))

    def element(self, binder: ir.Binder, at: Named) -> Named:
        if isinstance(binder.domain, ir.Distribution | ir.VectorSet):
            return at
        if not isinstance(binder.domain, ir.ValueSet):
            return Named(at.data.to(DTYPE), at.axes)
        return Named(as_tensor(values(self.bound, binder.domain))[at.data], at.axes)

    def item(self, node: ir.Item, env: Env) -> Named:
        base = self.value(node.base, env)
        if all(isinstance(index, ir.Const) for index in node.indices):
            data = base.data
            for index in node.indices:
                assert isinstance(index, ir.Const)
                data = data.select(len(base.axes), int(index.value))
            return Named(data, base.axes)
        places = [
            self.place(index, node.base.shape[k] if k < len(node.base.shape) else 0, env) for k, index in enumerate(node.indices)
        ]
        axes = union([base, *places])
        own = [Named(torch.arange(base.length(axis)), (axis,)) for axis in base.axes]
        return Named(base.data[tuple(spread(at, axes) for at in (*own, *places))], axes)

    def place(self, index: ir.Expr, dim: ir.Dim, env: Env) -> Named:
        """The position that an index means."""
        if isinstance(index, ir.Const):
            return Named(torch.tensor(int(index.value)))
        if isinstance(index, ir.Column):
            rows = env[index.binder]
            return Named(torch.from_numpy(row_positions(self.bound, index, dim))[rows.data], rows.axes)
        if not isinstance(index, ir.Element):
            fail(self.bound, "F0703", f"`{self.bound.problem.text(index)}` is not an index", span=index.span)
        at = env[index.binder]
        place = positions(self.bound, index.binder.domain, dim)
        return at if place is None else Named(torch.from_numpy(place)[at.data], at.axes)

    def apply(self, node: ir.Apply, env: Env) -> Named:
        args = node.args
        if node.op in ("eq", "ne") and any(isinstance(arg, ir.Label) for arg in args):
            args = tuple(self.position(arg, args[1 - k]) for k, arg in enumerate(args))
        found = [self.value(arg, env) for arg in args]
        numbers = [arg.value if isinstance(arg, ir.Const) and not arg.shape else None for arg in args]
        if node.op == "dot":
            return self.dot(*found)
        return apply_atom(node.op, found, numbers)

    def position(self, arg: ir.Expr, other: ir.Expr) -> ir.Expr:
        """A label in quotes as its position in the other side's set (-1 where it is not there)."""
        if not isinstance(arg, ir.Label):
            return arg
        domain = labels_of(self.bound, other)
        known = () if domain is None else labels(self.bound, domain)
        return ir.Const(value=float(known.index(arg.text)) if arg.text in known else -1.0)

    def dot(self, u: Named, v: Named) -> Named:
        """``sum_k u_k v_k``; one matrix-vector product where one side has no axes."""
        if not v.axes:
            return Named(u.data @ v.data, u.axes)
        if not u.axes:
            return Named(v.data @ u.data, v.axes)
        (a, b), axes = align([u, v], entrywise=False)
        return Named((a.unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1), axes)
