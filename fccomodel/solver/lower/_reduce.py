"""Reductions: means and sums of minibatches or of everything, maxima and the like over complete axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fccomodel.core import ir
from fccomodel.evaluation import selections
from fccomodel.library import reductions
from fccomodel.library.reductions.expectation import E
from fccomodel.solver import errors
from fccomodel.solver.lower._algebra import Logarithms, Numbers
from fccomodel.solver.lower._pairs import Pairing
from fccomodel.solver.lower._records import Buffer, Part, Ranged
from fccomodel.solver.lower._state import Env, Linear
from fccomodel.solver.operations import Axis, Val, in_order
from fccomodel.solver.operations.entrywise import number, spread
from fccomodel.solver.operations.estimates import couple, track
from fccomodel.solver.operations.reductions import reduce
from fccomodel.solver.operations.sums import chunked

#: a full pass over more pairs than this goes through its outer binder in chunks
DENSE = 1 << 21
#: between stages, the exact problem is evaluated on at most so many pairs
QUICK = 1 << 27
#: more pairs than this are evaluated in single precision between stages
HEAVY = 1 << 24
#: a maximum, product or tail in a step goes over at most so many elements
LISTED = 4096


@dataclass(eq=False)
class Reducing(Pairing):
    """Reductions of expressions, and the estimates of those under nonlinear functions."""

    spelled: dict[int, tuple[ir.Reduce, ir.Expr]] = field(default_factory=dict)

    def reduce(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """A reduction; in a minibatch under a nonlinear function, the estimate u of it that is tracked."""
        log = self.logarithms.logged(node) if self.stable and linear is not True else None
        if log is not None and not reductions.of(node).logarithmic:
            return self.graph.apply("exp", self.expr(log, env, False))
        if (form := self.form(node)) is not None:
            return self.expr(form, env, linear)
        if (value := self.runs(node, env)) is not None:
            return value
        inside = any(a.kind == "chunk" for slot in env.values() for a in slot.ids.axes)
        pairs = self.pairs(node, through=node.binders[0]) if self.full else 0.0
        chunk = self.full and not inside and pairs > DENSE
        if chunk and not self.nests:
            self.nests.append({})
            try:
                return self.reduced(node, env, linear, chunk)
            finally:
                self.thinned(self.nests.pop(), pairs)
        return self.reduced(node, env, linear, chunk)

    def thinned(self, axes: Mapping[str, int], pairs: float) -> None:
        """Row sets to be thinned, the largest first, until a quick evaluation takes at most ``QUICK`` pairs."""
        sizes = dict(axes)
        self.heavy |= pairs > HEAVY
        while pairs > QUICK and sizes:
            key = max(sizes, key=lambda k: sizes[k])
            kept = max(256, int(sizes[key] / max(2.0, min(pairs / QUICK, 8.0))))
            if kept >= sizes[key]:
                break
            pairs *= kept / sizes[key]
            sizes[key] = kept
        self.thin |= {k: min(n, self.thin.get(k, n)) for k, n in sizes.items() if n < axes[k]}

    def reduced(self, node: ir.Reduce, env: Env, linear: Linear, chunk: bool) -> Val:
        kind = reductions.of(node)
        if self.coupled and not self.full and kind.coupling:
            return self.couple(node, env)
        logs, averaged = kind.logarithmic, kind.linear or kind.logarithmic
        if not averaged and kind.lowered is None and kind.program is None:
            return self.expr(self.spelled_out(node), env, linear)
        ranged = self.ranges(
            node.binders, node.condition, env, body=node.body, inner=averaged, chunk=chunk, whole=not averaged,
            dense=not averaged, total=kind.total,
        )  # fmt: skip
        if not averaged:
            return self.other(node, self.expr(node.body, ranged.env, False), ranged, env)
        algebra = Logarithms(self.graph) if logs else Numbers(self.graph)
        body = self.expr(node.body, ranged.env, "log" if logs else True)
        if kind.condition:
            body = self.graph.make(number, [body])
        elements = {*body.axes, *ranged.axes}
        if ranged.related:
            body = self.combined(node, kind.total, ranged, body, env, algebra)
        else:
            body = self.averaged(kind.total, ranged, body, algebra)
        if not self.full and oracle(node):
            self.sampled.setdefault(body.id, math.prod(a.size for a in elements))
        sampled = any(a.kind == "sample" for a in ranged.axes)
        if self.full or linear == ("log" if logs else True) or self.again or not sampled or not body.varying:
            return body
        return self.track(node, body, env, logs)

    def spelled_out(self, node: ir.Reduce) -> ir.Expr:
        """A reduction of a kind without operations of its own as a function of means."""
        if id(node) not in self.spelled:
            form = reductions.of(node).by_means
            assert form is not None, f"no program can compute {node.kind}"
            self.spelled[id(node)] = node, form.of(node, lambda body: E.over(node, body))
        return self.spelled[id(node)][1]

    def averaged(self, total: bool, ranged: Ranged, body: Val, algebra: Numbers) -> Val:
        """One mean or sum after another, from the last binder to the first."""
        for part in reversed(ranged.parts):
            if part.axis is not None and part.axis.kind == "chunk":
                body = self.gather(body, part.axis)
                part = replace(part, axis=body.attrs["onto"])
            body = self.reduce_part(total, body, part, algebra)
        return body

    def reduce_part(self, total: bool, body: Val, part: Part, algebra: Numbers) -> Val:
        axis = part.axis
        if axis is None:
            return body
        if part.segment is not None:
            return algebra.segment(body, axis, part.segment, "sum" if total else "mean")
        if part.weight is None:
            mean = algebra.average(body, [axis])
            return algebra.times(part.count, mean) if total else mean
        weighted = algebra.times(part.weight, body)
        if self.full:
            whole = algebra.total(weighted, [axis])
            return whole if total else algebra.over(whole, part.count)
        mean = algebra.average(weighted, [axis])
        if total:
            return algebra.times(part.count, mean)
        return mean if part.accept is None else algebra.over(mean, part.accept)

    def combined(self, node: ir.Reduce, total: bool, ranged: Ranged, body: Val, env: Env, algebra: Numbers) -> Val:
        """Where one binder's range depends on another of the same reduction, every combination weighs alike."""
        own = set(ranged.axes)
        flat = {a for p in ranged.parts if p.segment is not None for a in p.segment.parents if a in own}
        parts = [p for p in ranged.parts if p.axis is not None and p.axis not in flat]
        weights = [p.weight for p in parts if p.weight is not None]
        if not self.full:
            weights += [p.count for p in parts]
        count = None if total else self.combinations(node, env)
        for weight in weights:
            body = algebra.times(weight, body)
        if not self.full and count is not None:
            body = algebra.over(body, count)
        for part in reversed(parts):
            assert part.axis is not None
            if not self.full:
                body = algebra.average(body, [part.axis])
            elif part.segment is not None and not own.intersection(part.segment.parents):
                body = self.reduce_part(True, body, part, algebra)
            elif part.axis.kind == "chunk":
                others = [a for a in body.axes if a is not part.axis and a in ranged.axes]
                body = self.gather(algebra.total(body, others), part.axis)
                body = algebra.total(body, [body.attrs["onto"]])
            else:
                body = algebra.total(body, [part.axis])
        return algebra.over(body, count) if self.full and count is not None else body

    def gather(self, body: Val, axis: Axis, onto: Axis | None = None) -> Val:
        """The values of all chunks together."""
        return self.graph.make(chunked, [body], axis=axis, onto=onto or self.graph.whole(axis))

    def couple(self, node: ir.Reduce, env: Env) -> Val:
        """The worst of a family, a maximum or a tail mean, as the risks of the sampled members weighted by their q."""
        ranged = self.ranges(node.binders, node.condition, env, body=node.body)
        slot, g = ranged.env[node.binders[0]], self.graph
        if len(node.binders) > 1 or env or ranged.parts[0].weight is not None or slot.members is None or slot.pos is None:
            self.refuse(errors.not_one_family(node.kind, node.span))
        n = g.const(len(slot.members))
        (size,) = [self.expr(v, env, False) for v in node.options.values()] or [g.const(1.0)]
        option = reductions.of(node).option
        alpha = g.apply("div", size, n) if option is None or option.counts else size
        name = f"q{len(self.centres) + 1}"
        self.centres[name] = (slot.n,)
        body = self.expr(node.body, ranged.env, True)
        (part,) = selections.split(node.binders, node.condition)
        everyone = slot.pos if slot.pos.static else self.all_slot(part).ids
        share = len(slot.members) / slot.pos.axes[0].size
        return g.make(couple, [body, slot.pos, everyone, alpha], name=name, share=share)

    def other(self, node: ir.Reduce, body: Val, ranged: Ranged, env: Env) -> Val:
        """What is neither a sum nor a mean, over complete axes."""
        g, lowered = self.graph, reductions.of(node).lowered
        size = math.prod(a.size for a in ranged.axes)
        if not self.full and size > LISTED:
            self.refuse(errors.all_in_every_step(node.kind, size, node.span))
        for part in ranged.parts:
            if part.axis is not None and part.axis.kind == "chunk":
                body = self.gather(body, part.axis)
        axes = tuple(g.whole(a) if a.kind == "chunk" else a for a in ranged.axes)
        weights = [p.weight for p in ranged.parts if p.weight is not None]
        if lowered is not None:
            return lowered(g, lambda e: self.mean_of(e, axes, weights), body)
        options = [self.expr(v, env, False) for v in node.options.values() if not isinstance(v, ir.Label)]
        mask = None
        for weight in weights:
            mask = weight if mask is None else g.apply("mul", mask, weight)
        whole = {*body.axes, *axes, *(mask.axes if mask is not None else ())}
        if len(whole) > len(body.axes):
            body = g.make(spread, [body], axes=in_order(whole))
        given = [body, *options, *([] if mask is None else [mask])]
        return g.make(reduce, given, kind=node.kind, over=axes, masked=mask is not None)

    def mean_of(self, body: Val, axes: tuple[Axis, ...], weights: list[Val]) -> Val:
        """A mean over axes, of the elements that masks let through."""
        g = self.graph
        if not weights:
            return g.average(body, axes)
        mask = weights[0]
        for weight in weights[1:]:
            mask = g.apply("mul", mask, weight)
        return g.apply("div", g.total(g.apply("mul", mask, body), axes), g.total(mask, axes))

    def track(self, node: ir.Reduce, g_value: Val, env: Env, log: bool = False) -> Val:
        """u (``log``: its logarithm): one estimate per block, updated from the minibatch value g; every use of a ``let`` shares
        its estimates."""
        slots = [env[b] for b in self.free(node) if b in env]
        if any(s.pos is None for s in slots):
            return g_value
        key = (id(node), *(s.n for s in slots))
        if key not in self.buffers:
            name = f"u{len(self.buffers) + 1}"
            shape = tuple(s.n for s in slots) + g_value.event
            text = self.bound.problem.text(node)
            self.buffers[key] = Buffer(name=name, shape=shape, text=f"log of {text}" if log else text)
        positions = [s.pos for s in slots if s.pos is not None]
        return self.estimate(g_value, self.resampled(node, env), positions, self.buffers[key].name, log)

    def estimate(self, g_value: Val, through: Val | None, positions: list[Val], name: str, log: bool = False) -> Val:
        """What the estimator makes of a minibatch value; its derivative is that of ``through``, or else of the value itself."""
        own: dict[str, Any] = {} if through is None or through is g_value else {"through": through}
        own |= {"log": True} if log else {}
        return self.graph.make(track, [g_value, *positions], name=name, **own)

    def resampled(self, node: ir.Expr, env: Env) -> Val | None:
        """The minibatch value by inner samples of its own, where the algorithm wants two independent batches."""
        if not self.independent:
            return None
        self.again = True
        try:
            return self.expr(node, env, True)
        finally:
            self.again = False

    def argument(self, node: ir.Expr, env: Env, inner: bool) -> Val:
        """The argument of an outer function: of estimates, or, where its blocks keep their y, a minibatch value extrapolated."""
        if inner or not self.dual or self.full:
            return self.expr(node, env, inner)
        value = self.expr(node, env, True)
        return self.estimate(value, self.resampled(node, env), [], "") if value.varying else value


def oracle(node: ir.Reduce) -> bool:
    """An expectation of rows or draws with none inside: its samples are what an oracle is asked for."""
    stochastic = any(isinstance(b.domain, ir.RowSet | ir.Distribution) for b in node.binders)
    return stochastic and not any(isinstance(n, ir.Reduce) for n in ir.walk(node.body))
