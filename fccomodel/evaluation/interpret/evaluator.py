"""The evaluator computes the value of every node at every element of its binders.

It uses every row of every table, and one fixed sample of each distribution. Many elements are
evaluated block by block. The evaluator does not depend on plans, reformulations or programs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir, memory
from fccomodel.core.diagnostics import refuse
from fccomodel.core.rewrite import conjuncts, exists
from fccomodel.data import net_costs
from fccomodel.data.bound import Bound
from fccomodel.evaluation import distributed, errors, logarithms, net_outputs
from fccomodel.evaluation.interpret import inner_maximum, pairs, ranging
from fccomodel.evaluation.interpret.reductions import Block, Streamed, by_entry, collapse, stream
from fccomodel.evaluation.interpret.spaces import Dense, Listing, Product
from fccomodel.evaluation.kernels import scores
from fccomodel.evaluation.kernels.net_rows import ROWS, NetRows, net_apply
from fccomodel.evaluation.memory import remember
from fccomodel.evaluation.sets import elements, realising, selections
from fccomodel.evaluation.sets.axes import Env, Named, new_axis, spread
from fccomodel.evaluation.sets.mapped import MappedTensor
from fccomodel.evaluation.sets.realising import Conditions
from fccomodel.library import atoms, reductions
from fccomodel.library.distances import beside, middle, squared_distances
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.sum import SUM

#: Numbers held at once; a larger intermediate result is computed block by block.
CHUNK = 1 << 21
#: Pairs up to which all are computed at once; of more, sorting may need none.
PAIRS_AT_ONCE = 1 << 16
#: Numbers of a block, few enough for the processor's cache.
BLOCK = 1 << 17
#: Elements that a tail mean may sort.
MAX_SORTED = 1 << 27
#: Bytes per sorted element: two copies of it, the number of its entry, their order and the sorted values.
SORTED_BYTES = 48


def evaluate(
    bound: Bound,
    expr: ir.Expr,
    point: Mapping[str, torch.Tensor],
    env: Mapping[ir.Binder, Any] | None = None,
    *,
    chunk: int = CHUNK,
    seed: int = 0,
    draws: int | None = None,
    shortcuts: bool = True,
) -> torch.Tensor:
    """The value of an expression in float64, differentiable in the point.

    Its shape has one dim per binder of ``env`` with 1-d ids, in that order, then the event dims.

    point      the variables by name (``params(s)``: the net's parameters, flat)
    env        ids (row numbers, positions; see ``elements.ids``) for the free binders: 1-d for an
               axis, or one id
    chunk      numbers held at once; it affects memory and time, never the value
    seed       seed of the fixed sample for each distribution
    draws      size of that sample; by default as bound
    shortcuts  whether to use the closed forms of ``pairs`` for means over many pairs

    Raises F0702 if the point does not fit, and F0703 to F0705 if the value cannot be computed.
    """
    evaluator = Evaluator(bound, point, chunk=chunk, seed=seed, draws=draws, shortcuts=shortcuts)
    inner: dict[ir.Binder, Named] = {}
    for binder, chosen in (env or {}).items():
        at = torch.as_tensor(chosen, dtype=torch.int64)
        if at.dim():
            inner[binder] = Named(at, (new_axis(),))
        else:
            inner[binder] = Named(at)
    value = evaluator.value(expr, inner)
    axes = tuple(axis for at in inner.values() for axis in at.axes)
    lengths = [at.length(axis) for at in inner.values() for axis in at.axes]
    return spread(value, axes).expand((*lengths, *value.event))


def combinations(bound: Bound, node: ir.Reduce, env: Mapping[ir.Binder, Any]) -> torch.Tensor:
    """The number of combinations of elements that a reduction goes over.

    It has one dim for each binder of ``env``, whose ids are 1-d.
    """
    if not env:
        key = ("combinations", node.binders, node.condition)
        return remember(bound, key, lambda: Evaluator(bound, {}).number(node, {}).data)
    inner = {binder: Named(torch.as_tensor(ids), (new_axis(),)) for binder, ids in env.items()}
    value = Evaluator(bound, {}).number(node, inner)
    axes = tuple(axis for at in inner.values() for axis in at.axes)
    lengths = [at.length(axis) for at in inner.values() for axis in at.axes]
    return spread(value, axes).expand(lengths)


Handler = Callable[["Evaluator", ir.Expr, Env], Named]


class Evaluator(Conditions):
    """Values of expressions at one point.

    cuts  handlers that compute the value of some nodes, by the node's id
    """

    def __init__(
        self,
        bound: Bound,
        point: Mapping[str, torch.Tensor],
        *,
        chunk: int = CHUNK,
        seed: int = 0,
        draws: int | None = None,
        shortcuts: bool = True,
        cuts: Mapping[int, Handler] | None = None,
    ):
        super().__init__(bound)
        self.point = {name: _fitted(bound, name, value) for name, value in point.items()}
        self.chunk, self.seed, self.shortcuts = chunk, seed, shortcuts
        self.draws = bound.draws if draws is None else draws
        self.cuts = dict(cuts or {})
        # Within a block, pointwise nodes are not cut into blocks, and no rows are evaluated in advance.
        self.inside = False
        # Whether the present block is one of several.
        self.partial = False
        # The number of draws of each distribution.
        self.sampled: dict[ir.Binder, int] = {}
        self.logarithms, self.distributed = logarithms.of(bound), distributed.of(bound)
        # The outputs of the net that is evaluated next, if only its gradient is unknown.
        self.known_outputs: torch.Tensor | None = None

    # ------------------------------------------------------------------------------------- the walk
    def inner(self, node: ir.Expr, env: Env) -> tuple[ir.Expr, ...]:
        """The subexpressions to evaluate first; none for nodes with a handler, blockwise or by row."""
        alone = id(node) in self.cuts or self.closing(node, env) or self.by_row(node, env) is not None
        if alone:
            return ()
        return self.below(node, env)

    def below(self, node: ir.Expr, env: Env, merged: frozenset[int] = frozenset()) -> tuple[ir.Expr, ...]:
        """The subexpressions from which the evaluator computes a node.

        These are the node's other form, the input of a net, the sides of a squared distance, or else
        the node's children. ``merged`` are axes that will become one.
        """
        if (form := self.rewritten(node)) is not None:
            return (form,)
        if isinstance(node, ir.NetCall):
            return node.inputs
        return self.sides(node, env, merged) or super().inner(node, env)

    def rewritten(self, node: ir.Expr) -> ir.Expr | None:
        """An expression of equal value that is numerically stable or maps rows fewer times, or None."""
        stable = self.logarithms.stable(node)
        if stable is not None or not self.shortcuts:
            return stable
        return self.distributed.form(node)

    def sides(
        self, node: ir.Expr, env: Env, merged: frozenset[int] = frozenset()
    ) -> tuple[ir.Expr, ir.Expr] | None:
        """The two rows of a squared distance, each along its own axis, or None."""
        if not self.shortcuts or id(node) in self.cuts:
            return None
        sides = self.distributed.sides(node)
        if sides is None:
            return None
        u, v = (self._axes_of_side(side, env, merged) for side in sides)
        if len(u) == len(v) == 1 and u != v:
            return sides
        return None

    def _axes_of_side(self, side: ir.Expr, env: Env, merged: frozenset[int]) -> set[int]:
        """The axes that a side of a squared distance depends on; -1 stands for the merged ones."""
        axes = {axis for b in self.free(side) for axis in env[b].axes}
        if axes & merged:
            return (axes - merged) | {-1}
        return axes

    def compute(self, node: ir.Expr, env: Env) -> Named:
        """The value of one node by the first way that fits: a cut, another form, distances, rows, blocks."""
        if id(node) in self.cuts and not self.partial:
            return self.cuts[id(node)](self, node, env)
        if (form := self.rewritten(node)) is not None:
            return self.value(form, env)
        if (sides := self.sides(node, env)) is not None and not self.closing(node, env):
            return self.distances(*(self.value(side, env) for side in sides))
        if (text := self.by_row(node, env)) is not None:
            return self.row_values(node, text, env)
        if self.closing(node, env):
            return self.mapped(node, env)
        return super().compute(node, env)

    def uncut(self, node: ir.Expr, env: Env) -> Named:
        """The plain value of a node that has a handler."""
        for child in super().inner(node, env):
            self.value(child, env)
        return super().compute(node, env)

    def other(self, node: ir.Expr, env: Env) -> Named:
        """The value of a variable, a net or a reduction."""
        match node:
            case ir.Var(name=name):
                if name not in self.point:
                    refuse(errors.no_variable(name, node.span), source=self.bound.problem.source)
                return Named(self.point[name])
            case ir.NetCall():
                return self.net(node, env)
            case ir.Reduce():
                return self.reduce(node, env)
        return super().other(node, env)

    # ---------------------------------------------------------------------------------------- sizes
    def axes(self, node: ir.Expr, env: Env) -> dict[int, int]:
        """The axes that a node depends on, with their lengths."""
        places = [env[binder] for binder in self.free(node) if binder in env]
        return {axis: at.length(axis) for at in places for axis in at.axes}

    def axes_of_elements(self, node: ir.Reduce, env: Env) -> dict[int, int]:
        """The axes that a reduction's body and its options depend on, with their lengths."""
        lengths = self.axes(node.body, env)
        for option in node.options.values():
            lengths |= self.axes(option, env)
        return lengths

    def event(self, node: ir.Expr) -> int:
        """The number of entries of a node's value at one element."""

        def entries() -> int:
            """The number of entries of the node's value."""
            return math.prod(elements.shape(self.bound, node.shape))

        return remember(self.bound, ("event", node), entries)

    def numel(self, node: ir.Expr, env: Env) -> int:
        """The number of entries of a node's value at all elements."""
        return math.prod(self.axes(node, env).values()) * self.event(node)

    def stored(self, node: ir.Expr, env: Env) -> bool:
        """Whether a node's value is in memory already, such as a column at all rows of its table."""
        if isinstance(node, ir.Column) and node.name is not None:
            binder = node.binder
            if isinstance(binder.domain, ir.RowSet):
                return binder in env and env[binder].data is self.everything(binder.domain.table)
        return isinstance(node, ir.Column | ir.Element | ir.Param | ir.Var)

    def heavy(self, node: ir.Expr, env: Env) -> bool:
        """Whether a node's value is too large to hold at once."""
        return self.numel(node, env) > self.chunk and not self.stored(node, env)

    def closing(self, node: ir.Expr, env: Env) -> bool:
        """Whether a node of moderate size has a heavy child.

        Examples are a sum over features for many rows, and a net of rows with draws beside them.
        """
        if self.inside or not isinstance(node, ir.Apply | ir.Item | ir.NetCall):
            return False
        if self.heavy(node, env) or not self.axes(node, env):
            return False
        is_dot = isinstance(node, ir.Apply) and node.op == "dot"
        if is_dot and all(isinstance(child, ir.Column | ir.Var) for child in node.children):
            return False
        return any(self.heavy(child, env) for child in self.below(node, env))

    # ----------------------------------------------------------------------------- row by row, once
    def by_row(self, node: ir.Expr, env: Env) -> str | None:
        """The text of a net or a score ``dot(w, z.x)`` that is needed at many rows of a table, or None."""
        if self.inside:
            return None
        inner_product = isinstance(node, ir.Apply) and node.op == "dot"
        if not isinstance(node, ir.NetCall) and not inner_product:
            return None
        free = self.free(node)
        if len(free) != 1:
            return None
        domain, rows = free[0].domain, env[free[0]]
        if not isinstance(domain, ir.RowSet) or len(rows.axes) != 1:
            return None
        if rows.data.numel() * 8 < self.bound.tables[domain.table].n:
            return None
        return remember(self.bound, ("row text", node), lambda: row_text(node))

    def row_values(self, node: ir.Expr, text: str, env: Env) -> Named:
        """The value of a net or a score, computed once for all rows of the table."""
        (binder,) = self.free(node)
        assert isinstance(binder.domain, ir.RowSet)
        at, everything = env[binder], self.everything(binder.domain.table)
        key = ("rows", text)
        if key not in self.memo:
            whole = {binder: Named(everything, (new_axis(),))}
            if isinstance(node, ir.NetCall) and net_costs.dear(self.bound):
                self.memo[key] = self.net_at_rows(node, text, whole)
            else:
                self.memo[key] = self.at_rows(node, whole)
            self.kept.append((node, whole))
        value = self.memo[key].data
        if at.data is not everything:
            value = value.index_select(0, at.data)
        return Named(value, at.axes)

    def at_rows(self, node: ir.Expr, whole: Env) -> Named:
        """The value of a net or a score at all rows of a table, in blocks if its inputs are large."""
        if self.closing(node, whole):
            return self.mapped(node, whole)
        return super().compute(node, whole)

    def net_at_rows(self, node: ir.NetCall, text: str, whole: Env) -> Named:
        """The outputs of an expensive net at all rows of a table: those kept at this point, if there are
        any (``net_outputs``)."""
        outputs = net_outputs.current()
        if outputs is None:
            return self.at_rows(node, whole)
        ((binder, rows),) = whole.items()
        assert isinstance(binder.domain, ir.RowSet)
        numbers = self.bound.tables[binder.domain.table].numbers
        variables = [self.point[name] for name in sorted(ir.variables_of(node))]
        nets = {inner.net for inner in ir.walk(node) if isinstance(inner, ir.NetCall)}
        buffers = (buffer for name in sorted(nets) for buffer in self.bound.nets[name].buffers())
        key = net_outputs.key_of(text, variables, buffers)
        known = outputs.find(key, numbers)
        if known is not None and not (torch.is_grad_enabled() and any(v.requires_grad for v in variables)):
            return Named(known, rows.axes)
        if not self.closing(node, whole):
            self.known_outputs = known
        value = self.at_rows(node, whole)
        if known is None:
            outputs.keep(key, numbers, value.data)
        return value

    def distances(self, u: Named, v: Named) -> Named:
        """The squared distances of two families of vectors, each along its own axis."""
        if u.axes > v.axes:
            u, v = v, u
        centre = middle(v.data)
        squares = squared_distances(u.data, beside(v.data, centre), centre)
        return Named(squares, u.axes + v.axes)

    def dot(self, u: Named, v: Named) -> Named:
        """``sum_k u_k v_k``; products of many rows with one vector have their own gradient."""
        if u.axes and not v.axes:
            return Named(scores.product(u.data, v.data), u.axes)
        if v.axes and not u.axes:
            return Named(scores.product(v.data, u.data), v.axes)
        return super().dot(u, v)

    # ----------------------------------------------------------------------------------------- nets
    def net(self, node: ir.NetCall, env: Env) -> Named:
        """The outputs of a net, some rows at a time if they are many."""
        known, self.known_outputs = self.known_outputs, None
        thrifty = net_costs.dear(self.bound)
        if thrifty:
            working = torch.float32
        else:
            working = torch.float64

        def in_working_precision() -> torch.nn.Module:
            """A copy of the net for evaluations."""
            return copy.deepcopy(self.bound.nets[node.net]).to(working).eval()

        module = remember(self.bound, ("net", node.net), in_working_precision)
        output = elements.shape(self.bound, node.shape)
        if node.params is None:
            weights = torch.zeros(0, dtype=torch.float64)
        else:
            weights = self.value(node.params, {}).data
        lengths, rows = self.net_inputs(node, env)
        parameters = (*module.parameters(), *module.buffers())
        widths = sum(parameter.shape[0] for parameter in parameters if parameter.dim())
        stays_in_file = any(isinstance(one, MappedTensor) for one in rows)
        if thrifty:
            floats = [one if one.dtype == torch.int64 else one.to(working) for one in rows]
            if known is not None:
                known = known.to(working)
            value = NetRows.apply(module, net_costs.THRIFTY_ROWS, known, weights.to(working), *floats)
            value = value.to(weights.dtype)
        elif len(rows[0]) * max(widths, 1) <= self.chunk and not stays_in_file:
            value = net_apply(module, weights, *rows)
        else:
            value = NetRows.apply(module, ROWS, None, weights, *rows)
        return Named(value.reshape((*lengths.values(), *output)), tuple(lengths))

    def net_inputs(self, node: ir.NetCall, env: Env) -> tuple[dict[int, int], list[torch.Tensor]]:
        """The axes of a net's output with their lengths, and its inputs at all of their elements,
        (n, *input) each; whole numbers as int64."""
        inputs = [self.value(one, env) for one in node.inputs]
        found = {axis: one.length(axis) for one in inputs for axis in one.axes}
        lengths = dict(sorted(found.items()))
        axes = tuple(lengths)
        rows = []
        declared = self.bound.problem.nets[node.net].inputs
        for one, wanted in zip(inputs, declared, strict=True):
            data = one.data
            if one.axes != axes:
                data = spread(one, axes).expand((*lengths.values(), *one.event))
            data = data.reshape(-1, *one.event)
            if wanted.whole:
                data = data.round().to(torch.int64)
            rows.append(data)
        return lengths, rows

    # ----------------------------------------------------------------------------------- reductions
    def reduce(self, node: ir.Reduce, env: Env) -> Named:
        """The value of a reduction."""
        if any(isinstance(binder.domain, ir.VectorSet) for binder in node.binders):
            return inner_maximum.value(self, node, env)
        space, inner = ranging.space(self, node, env)
        return self.over(node, space, inner)

    def options(self, node: ir.Reduce, space: Product | Listing, env: Env) -> dict[str, Any]:
        """The numeric options of a reduction by name; an option that is not given has its default.

        One that depends on an index is an array: a number for each entry of the result, in their order.
        """
        options: dict[str, Any] = {}
        option = reductions.of(node).option
        if option is not None and option.default is not None:
            options[option.name] = option.default
        for name, value in node.options.items():
            if isinstance(value, ir.Label):
                continue
            if self.axes(value, env):
                options[name] = by_entry(self.value(value, env), space)
            else:
                options[name] = float(self.value(value, env).data)
        return options

    def over(self, node: ir.Reduce, space: Product | Listing, inner: Env) -> Named:
        """The reduction over a space: at once if it has few elements, else block by block."""
        if (once := self._distinct_runs(node, space, inner)) is not None:
            return once
        options = self.options(node, space, inner)
        leaves, event = self.leaves(node.body, space, inner)
        axes = (*space.kept, *space.over)
        size = math.prod(space.lengths[axis] for axis in axes)
        if isinstance(space, Listing):
            size *= space.total_size
        of_pairs = isinstance(space, Listing) or len((*space.kept, *space.over)) > 1
        few = size * event <= self.chunk
        if few and not (of_pairs and size > PAIRS_AT_ONCE):
            return self._at_once(node, space, inner, leaves, options)
        if self.shortcuts and (fast := pairs.value(self, node, space, inner)) is not None:
            return fast
        if few:
            return self._at_once(node, space, inner, leaves, options)
        if isinstance(space, Product):
            count = space.count
        else:
            count = space.counts(self.chunk)
        self.not_empty(node, space, count, inner)
        if reductions.of(node).tail:
            self._demand_room_to_sort(node, size)
        if (dense := self.dense(node, space)) is not None:
            leaves, event = self.leaves(node.body, dense, inner)
            count = spread(Named(count, (dense.cell,)), dense.kept)
            space = dense
        kind = reductions.of(node)
        return stream(self.streamed(kind, node.body, space, inner, leaves, event, count, options))

    def _at_once(
        self,
        node: ir.Reduce,
        space: Product | Listing,
        inner: Env,
        leaves: Sequence[ir.Expr],
        options: Mapping[str, Any],
    ) -> Named:
        """The reduction over a space with few elements."""
        if isinstance(space, Product):
            self.not_empty(node, space, space.count, inner)
            values = self.value(node.body, inner)
            return collapse(reductions.of(node), space, values, options)
        whole = space.whole()
        self.not_empty(node, space, whole.count, inner)
        value = self.in_block(node.body, inner, leaves, whole)
        return collapse(reductions.of(node), whole, value, options)

    def _distinct_runs(self, node: ir.Reduce, space: Product | Listing, inner: Env) -> Named | None:
        """The reduction with each different run computed once, or None if all runs are different.

        It is None as well if the body depends on the outer elements that have the runs.
        """
        if not isinstance(space, Listing) or not space.alone:
            return None
        if set(space.cells).intersection(self.axes_of_elements(node, inner)):
            return None
        runs, run_of_cell = space.distinct()
        if len(run_of_cell) <= runs.entries:
            return None
        sizes = torch.from_numpy(space.runs.size).to(torch.float64)
        self.not_empty(node, space, sizes, inner)
        distinct = self.over(node, runs, inner)
        return space.finish(distinct.data.index_select(len(space.kept), run_of_cell))

    def _demand_room_to_sort(self, node: ir.Reduce, size: int) -> None:
        """Raise F0704 if the elements of a tail mean cannot be sorted in memory."""
        needed = SORTED_BYTES * size
        if size > MAX_SORTED:
            left: float | None = min(memory.available(), SORTED_BYTES * MAX_SORTED)
        else:
            left = memory.lacking(needed)
        if left is not None:
            refuse(errors.too_many_to_sort(node, size, needed, left), source=self.bound.problem.source)

    def dense(self, node: ir.Reduce, space: Product | Listing) -> Dense | None:
        """The space as a product if it has most of the combinations and all values are finite, or None."""
        kind = reductions.of(node)
        if not self.shortcuts or isinstance(space, Product) or not (kind.additive or kind.logarithmic):
            return None
        plain = not any(isinstance(n, ir.Reduce | ir.NetCall) for n in ir.walk(node.body))
        if plain and safe(node.body):
            return space.dense
        return None

    def streamed(
        self,
        kind: Reduction,
        body: ir.Expr,
        space: Product | Listing,
        inner: Env,
        leaves: Sequence[ir.Expr],
        event: int,
        count: torch.Tensor,
        options: Mapping[str, Any],
    ) -> Streamed:
        """A reduction to be done block by block; one element of the body needs ``event`` numbers."""
        values = tuple(self.value(leaf, inner) for leaf in leaves)
        axes = [value.axes for value in values]

        def elements_of(block: Block, pieces: Sequence[torch.Tensor]) -> Named:
            """The body's value in a block, from the pieces of the leaves there."""
            seeds = [
                Named(piece, block.place(leaf_axes)) for piece, leaf_axes in zip(pieces, axes, strict=True)
            ]
            return self.in_block(body, inner, leaves, block, seeds, partial=True)

        shape = elements.shape(self.bound, body.shape)
        size = max(1, min(self.chunk, BLOCK) // event)
        return Streamed(
            kind=kind,
            space=space,
            size=size,
            leaves=values,
            body=elements_of,
            count=count,
            event=shape,
            options=options,
        )

    def mapped(self, node: ir.Expr, env: Env) -> Named:
        """The value of a pointwise node, computed block by block over its axes."""
        lengths = self.axes(node, env)
        space = Product(over=(), kept=tuple(sorted(lengths)), lengths=lengths)
        leaves, event = self.leaves(node, space, env, root=False)
        streamed = self.streamed(SUM, node, space, env, leaves, event, space.count, {})
        return stream(streamed)

    def leaves(
        self, body: ir.Expr, space: Product | Listing, inner: Env, *, root: bool = True
    ) -> tuple[list[ir.Expr], int]:
        """The largest subexpressions of moderate size, which are computed before the blocks.

        With ``root`` the body itself may be one of them. The second value is the number of entries per
        element of the largest node that is computed in the blocks.
        """
        if isinstance(space, Listing):
            merged = space.merged
        else:
            merged = frozenset()
        tested = isinstance(space, Listing) and bool(space.tests)
        leaves: list[ir.Expr] = []
        event = self.event(body)
        seen, stack = {id(body)}, [body]
        while stack:
            node = stack.pop()
            alone = len(merged.intersection(self.axes(node, inner))) <= 1
            alone = alone and (not tested or safe(node) and self.never_empty(node, inner))
            moderate = id(node) in self.cuts or not self.heavy(node, inner)
            if alone and moderate and (root or node is not body):
                leaves.append(node)
                continue
            event = max(event, self.event(node))
            # These are evaluated again in every block, at the block's parts of the variables.
            if isinstance(node, ir.Reduce | ir.LetRef | ir.NetCall):
                leaves.extend(v for v in ir.walk(node) if isinstance(v, ir.Var))
            fresh = [child for child in self.below(node, inner, merged) if id(child) not in seen]
            seen.update(id(child) for child in fresh)
            stack.extend(fresh)
        unique: dict[Any, ir.Expr] = {}
        for leaf in leaves:
            if isinstance(leaf, ir.Var):
                unique[leaf.name] = leaf
            else:
                unique[id(leaf)] = leaf
        return list(unique.values()), event

    def never_empty(self, expr: ir.Expr, env: Env) -> bool:
        """Whether every reduction in an expression has elements, for all elements in ``env``."""

        def conditions() -> list[ir.Expr | None]:
            """For each reduction, the condition under which it has elements."""
            return [exists(node) for node in ir.walk(expr) if isinstance(node, ir.Reduce)]

        for condition in remember(self.bound, ("asked", expr), conditions):
            if condition is None or not all(b in env for b in self.free(condition)):
                continue
            holds = (bool(self.value(part, env).data.all()) for part in conjuncts(condition))
            if not all(holds):
                return False
        return True

    def in_block(
        self,
        body: ir.Expr,
        inner: Env,
        leaves: Sequence[ir.Expr],
        block: Block,
        seeds: Sequence[Named] | None = None,
        *,
        partial: bool = False,
    ) -> Named:
        """The body's value in a block, from the parts of the leaves that belong to the block.

        With ``partial`` the block is one of several; ``seeds`` are the parts if they are known already.
        """
        child = copy.copy(self)
        child.memo, child.kept, child.inside = {}, [], True
        child.partial = self.partial or partial
        env = {binder: block.take(value) for binder, value in inner.items()}
        for k, leaf in enumerate(leaves):
            if seeds is None:
                piece = block.take(self.value(leaf, inner))
            else:
                piece = seeds[k]
            if isinstance(leaf, ir.Var):
                child.point = {**child.point, leaf.name: piece.data}
            else:
                child.memo[child.key(leaf, env)] = piece
        return child.value(body, env)

    def not_empty(self, node: ir.Reduce, space: Product | Listing, count: torch.Tensor, inner: Env) -> None:
        """Raise F0705 if a reduction needs elements and ``count``, their number, is 0 somewhere."""
        if reductions.of(node).total or bool((count > 0).all()):
            return
        empty_cells = int((count <= 0).sum())
        if not isinstance(space, Listing):
            realising.no_elements(self.bound, node.binders[-1], total=empty_cells)
        lengths = tuple(space.lengths[axis] for axis in space.cells)
        emptiest = int(torch.argmin(count))
        cell = [int(index) for index in np.unravel_index(emptiest, lengths)]
        place = dict(zip(space.cells, cell, strict=True))
        example = self._outer_elements(node, place, inner)
        realising.no_elements(self.bound, space.last, example, empty_cells)

    def _outer_elements(self, node: ir.Reduce, place: Mapping[int, int], inner: Env) -> dict[ir.Binder, int]:
        """The elements around a reduction at a place, which has a position along each axis of its cells."""
        parents: set[ir.Binder] = set()
        for part in self.parts(node):
            parents |= {parent for parent in part.parents if parent not in node.binders}
        outer: dict[ir.Binder, int] = {}
        for parent in sorted(parents, key=lambda binder: binder.name):
            ids = inner[parent]
            if set(ids.axes) <= place.keys():
                indices = tuple(place[axis] for axis in ids.axes)
                outer[parent] = int(ids.data[indices])
        return outer

    def number(self, node: ir.Reduce, env: Env) -> Named:
        """The number of combinations of elements of a reduction, for each element around it."""
        space, _ = ranging.space(self, node, env)
        if isinstance(space, Product):
            return Named(space.count)
        return replace(space, kept=()).finish(space.counts(self.chunk))

    def parts(self, node: ir.Reduce) -> tuple[selections.Selection, ...]:
        """The selections of a reduction's binders."""

        def parts() -> tuple[selections.Selection, ...]:
            """The node's binders, with the part of the condition that selects each."""
            return selections.split(node.binders, node.condition)

        return remember(self.bound, ("split", node), parts)


# ------------------------------------------------------------------------------------------ helpers
def safe(node: ir.Expr) -> bool:
    """Whether the value and the derivative of an expression are finite if its columns are."""
    nodes = ir.walk(node, lets=False)
    applied = [atoms.of(n) for n in nodes if isinstance(n, ir.Apply)]
    return all(atom is not None and atom.safe for atom in applied)


def row_text(node: ir.Expr) -> str | None:
    """A text that is equal only for expressions with equal values at every row of a table, or None."""
    match node:
        case ir.Const():
            return f"{node.value!r}{node.shape}"
        case ir.Param() | ir.Var():
            return node.name
        case ir.Size():
            return f"#{node.dim}"
        case ir.Column(binder=binder, name=name) if isinstance(binder.domain, ir.RowSet):
            return f"{binder.domain.table}.{name}"
        case ir.Apply() | ir.NetCall():
            parts = [row_text(child) for child in node.children]
            if None in parts:
                return None
            if isinstance(node, ir.Apply):
                head = node.op
            else:
                head = node.net
            return f"{head}({', '.join(str(part) for part in parts)})"
    return None


def _fitted(bound: Bound, name: str, value: torch.Tensor) -> torch.Tensor:
    """A variable's tensor in float64 with its declared shape."""
    tensor = torch.as_tensor(value)
    if tensor.dtype != torch.float64:
        tensor = tensor.to(torch.float64)
    variable = bound.problem.variables.get(name)
    if variable is None:
        return tensor
    shape = elements.shape(bound, variable.shape)
    if tensor.numel() != math.prod(shape):
        refuse(
            errors.shape_of_variable(name, tuple(tensor.shape), shape, variable.span),
            source=bound.problem.source,
        )
    if tuple(tensor.shape) == shape:
        return tensor
    return tensor.reshape(shape)
