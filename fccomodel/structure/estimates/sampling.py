"""Constants that no rule gives, estimated on the bound data: slopes, curvature and noise at points
drawn around given ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, sqrt
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret.minibatch import Minibatch
from fccomodel.evaluation.kernels import derivatives
from fccomodel.evaluation.sets import draws, elements
from fccomodel.evaluation.sets.axes import Named, new_axis, spread
from fccomodel.evaluation.sets.elements import Pointwise
from fccomodel.library import reductions
from fccomodel.library.amounts import Amount
from fccomodel.library.atoms import Interval
from fccomodel.structure.facts import Fact, Standing, make

BLOCKS, POINTS, PROBES = 12, 4, 4
ENTRIES = 8
POWER_STEPS = 5
#: numbers in the gradients of all draws of a block; where there are more, their variance is seen
#: through random signs
EXACT = 1 << 20


WORDS = {
    "interval": "its values over",
    "lipschitz": "the largest slope over",
    "gradient": "the steepest change of the gradient over",
    "value noise": "the largest variance over the draws of",
    "gradient noise": "the largest variance of the gradient over the draws of",
}


@dataclass(eq=False, kw_only=True)
class Probe:
    """An expression at drawn blocks and draws; ``node`` is it without the names that ``let`` gives it."""

    problem: ir.Problem
    bound: Bound
    expr: ir.Expr
    seed: int
    samples: int

    def facts(self, points: Sequence[Mapping[str, Any]], radius: float) -> dict[str, Fact]:
        """What is seen around some points, each fact with the words that say how (see
        ``structure.estimate``)."""
        largest = self.at(self.around(points or [self.start], radius))
        where = (
            f"at {POINTS * max(1, len(points))} points within {radius:g} of "
            f"{'those given' if points else 'the start'}"
        )
        return {
            kind: make(
                kind,
                value,
                self.expr,
                "sampling",
                f"{WORDS[kind]} {self.said}, {where}",
                standing=Standing.ESTIMATED,
            )
            for kind, value in largest.items()
        }

    # ------------------------------------------------------------------------------ what is sampled
    @cached_property
    def node(self) -> ir.Expr:
        node = self.expr
        while isinstance(node, ir.LetRef) and not node.args:
            node = node.let.body
        return node

    @cached_property
    def random(self) -> bool:
        """It is an average of draws."""
        return isinstance(self.node, ir.Reduce) and reductions.of(self.node).linear

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(ir.variables_of(self.node)))

    @cached_property
    def blocks(self) -> dict[ir.Binder, Named]:
        """A few of the elements that the free binders stand for, along one axis."""
        axis, rng, blocks = new_axis(), np.random.default_rng(self.seed), {}
        for binder in ir.free_binders(self.node):
            domain = binder.domain
            if isinstance(domain, ir.Distribution):
                drawn = draws.sample(
                    self.bound, binder, [self._plain(a) for a in domain.args], BLOCKS, self.seed
                )
                blocks[binder] = Named(drawn.data, (axis,))
            elif isinstance(domain, ir.VectorSet):
                normals = torch.from_numpy(
                    rng.normal(size=(BLOCKS, *elements.shape(self.bound, domain.shape)))
                )
                blocks[binder] = Named(torch.stack([self._inside(domain, v) for v in normals]), (axis,))
            else:
                blocks[binder] = Named(
                    torch.from_numpy(rng.choice(elements.ids(self.bound, domain), BLOCKS)), (axis,)
                )
        return blocks

    @property
    def said(self) -> str:
        """What takes part, in words."""
        parts = ([f"{BLOCKS} blocks"] if self.blocks else []) + (
            [f"{self.samples} draws each"] if self.random else []
        )
        return " of ".join(parts) or "the expression"

    # --------------------------------------------------------------------------------------- points
    @cached_property
    def start(self) -> dict[str, torch.Tensor]:
        """Zero, inside the simple sets; nets as they are bound."""
        start = {}
        for name in self.names:
            net = self.problem.variables[name].net
            if net is not None:
                weights = [p.detach().double().reshape(-1) for p in self.bound.nets[net].parameters()]
                start[name] = torch.cat(weights)
            else:
                shape = elements.shape(self.bound, self.problem.variables[name].shape)
                start[name] = self.projected(name, torch.zeros(shape, dtype=torch.float64))
        return start

    def around(self, centres: Sequence[Mapping[str, Any]], radius: float) -> list[dict[str, torch.Tensor]]:
        """Each centre, and points drawn around it at distances up to ``radius``."""
        rng, points = torch.Generator().manual_seed(self.seed), []
        for centre in centres:
            start = {name: torch.as_tensor(centre[name], dtype=torch.float64) for name in self.names}
            total = sum(value.numel() for value in start.values())
            for k in range(POINTS):
                far = radius * k / max(1, POINTS - 1) / sqrt(max(1, total))
                moved = {
                    n: v + far * torch.randn(v.shape, generator=rng, dtype=torch.float64)
                    for n, v in start.items()
                }
                points.append({name: self.projected(name, value) for name, value in moved.items()})
        return points

    def projected(self, name: str, value: torch.Tensor) -> torch.Tensor:
        for domain in self.problem.variables[name].sets:
            value = self._inside(domain, value)
        return value

    def _inside(self, domain: ir.VectorSet, value: torch.Tensor) -> torch.Tensor:
        simple, args = Pointwise(self.bound).simple_set(domain)
        return simple.project(value, *simple.prepare(*args))

    def _plain(self, expr: ir.Expr) -> Named:
        return Pointwise(self.bound).value(expr, {})

    # ----------------------------------------------------------------------------------- evaluation
    def values(self, point: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """g_i(w; xi) as [blocks, draws, entries], one draw where nothing is drawn; NaN for a block
        without rows."""
        batch = Minibatch(self.bound, point, batch=self.samples, seed=self.seed)
        block = next((at.axes[0] for at in self.blocks.values()), None)
        value, draw = self._drawn(batch)
        lengths = {axis: n for axis, n in ((block, BLOCKS), (draw, self.samples)) if axis is not None}
        data = spread(value, tuple(lengths)).expand((*lengths.values(), *value.event))
        return data.reshape(1 if block is None else BLOCKS, 1 if draw is None else self.samples, -1)

    def _drawn(self, batch: Minibatch) -> tuple[Named, int | None]:
        if not self.random:
            return batch.value(self.node, self.blocks), None
        assert isinstance(self.node, ir.Reduce)
        inner, axis, count = batch.drawn(self.node, self.blocks)
        return batch.scaled(self.node, batch.value(self.node.body, inner), count), axis

    def slope(
        self, point: Mapping[str, torch.Tensor], weigh: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """The gradient of a scalar made of the values, flat."""
        leaves = {name: value.detach().clone().requires_grad_(True) for name, value in point.items()}
        return _gradient(weigh(self.values(leaves)), [leaves[name] for name in self.names])

    # -------------------------------------------------------------------------------------- figures
    def at(self, points: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, Any]:
        """The largest of everything over the points."""
        rng = torch.Generator().manual_seed(self.seed + 1)
        low, high, top = (
            np.inf,
            -np.inf,
            {"lipschitz": 0.0, "gradient": 0.0, "value noise": 0.0, "gradient noise": 0.0},
        )
        steepest: list[tuple[float, Mapping[str, torch.Tensor], int, int]] = []
        for point in points:
            leaves = {name: value.detach().clone().requires_grad_(True) for name, value in point.items()}
            weights, values = [leaves[name] for name in self.names], self.values(leaves)
            shown = values.detach()
            usable = torch.isfinite(shown).all(2).all(1)
            if not bool(usable.any()):
                continue
            mean = shown[usable].mean(1)
            low, high = min(low, float(mean.min())), max(high, float(mean.max()))
            if values.shape[1] > 1:
                top["value noise"] = max(top["value noise"], float(shown[usable].var(1).sum(1).max()))
            for block in usable.nonzero()[:, 0].tolist():
                slope, noise, entry = self._block(values[block], weights, rng)
                top["lipschitz"], top["gradient noise"] = (
                    max(top["lipschitz"], slope),
                    max(top["gradient noise"], noise),
                )
                steepest.append((slope, point, block, entry))
        if not steepest:
            return {}
        steepest.sort(key=lambda s: -s[0] if isfinite(s[0]) else 0.0)
        near = radius_of(points)
        for _, point, block, entry in steepest[:POINTS]:
            top["gradient"] = max(top["gradient"], self._bend(point, block, entry, near, rng))
        kinds = ("lipschitz", "gradient") + (("value noise", "gradient noise") if self.random else ())
        constants = {kind: Amount(top[kind]) for kind in kinds if isfinite(top[kind])}
        return {"interval": Interval(low, high)} | constants

    def _block(
        self, values: torch.Tensor, leaves: list[torch.Tensor], rng: torch.Generator
    ) -> tuple[float, float, int]:
        """(slope, variance of the gradient over the draws, the steepest entry) of one block: [draws,
        entries]."""
        count, entries = values.shape
        chosen = (
            torch.randperm(entries, generator=rng)[:ENTRIES].tolist() if entries > ENTRIES else range(entries)
        )
        squares, noise = {}, 0.0
        for entry in chosen:
            column = values[:, entry]
            if 1 < count * sum(leaf.numel() for leaf in leaves) <= EXACT and column.requires_grad:
                each = _gradients(column, leaves)
                squares[entry] = float(each.mean(0).square().sum())
                if count > 1:
                    noise += float(each.var(0).sum())
                else:
                    noise += 0.0
                continue
            squares[entry] = float(_gradient(column.mean(), leaves).square().sum())
            for _ in range(
                PROBES if count > 1 else 0
            ):  # E |sum_j (s_j - mean s) grad_j|^2 = sum_j |grad_j - mean grad|^2
                signs = torch.randint(2, (count,), generator=rng).double() * 2 - 1
                drift = _gradient((signs - signs.mean()) @ column, leaves)
                noise += float(drift.square().sum()) / (PROBES * (count - 1))
        scale = entries / len(squares)
        return sqrt(scale * sum(squares.values())), scale * noise, max(squares, key=squares.__getitem__)

    def _bend(
        self, point: Mapping[str, torch.Tensor], block: int, entry: int, step: float, rng: torch.Generator
    ) -> float:
        """The largest change of a block's gradient per length over power iterations, which turn to
        where it is largest."""

        def slope(at: Mapping[str, torch.Tensor]) -> torch.Tensor:
            return self.slope(at, lambda values: values[block, :, entry].mean())

        base, steepest = slope(point), 0.0
        direction = torch.randn(base.shape, generator=rng, dtype=torch.float64)
        for _ in range(POWER_STEPS):
            norm = float(direction.norm())
            if not norm > 0 or not isfinite(norm):
                break
            moved = self._moved(point, direction * (step / norm))
            length = float(sum((moved[name] - point[name]).square().sum() for name in self.names)) ** 0.5
            change = slope(moved) - base
            if length > 0 and bool(torch.isfinite(change).all()):
                steepest = max(steepest, float(change.norm()) / length)
            direction = change
        return steepest

    def _moved(self, point: Mapping[str, torch.Tensor], step: torch.Tensor) -> dict[str, torch.Tensor]:
        """A point after a step, back inside the simple sets."""
        moved, start = {}, 0
        for name in self.names:
            value = point[name]
            moved[name] = self.projected(
                name, value + step[start : start + value.numel()].reshape(value.shape)
            )
            start += value.numel()
        return moved


def radius_of(points: Sequence[Mapping[str, torch.Tensor]]) -> float:
    """A step at which differences of gradients show curvature and not rounding: a thousandth of the
    points' spread."""
    first = points[0]
    spread = max((float((p[n] - first[n]).norm()) for p in points for n in p), default=0.0)
    return 1e-3 * (spread or 1.0)


def _gradient(value: torch.Tensor, leaves: list[torch.Tensor]) -> torch.Tensor:
    if not value.requires_grad:
        return torch.zeros(sum(leaf.numel() for leaf in leaves), dtype=value.dtype)
    slopes = torch.autograd.grad(value, leaves, retain_graph=True, allow_unused=True)
    parts = [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(slopes, leaves, strict=True)]
    return torch.cat([part.reshape(-1) for part in parts])


def _gradients(values: torch.Tensor, leaves: list[torch.Tensor]) -> torch.Tensor:
    """The gradient of each of some values, one per row."""
    units = torch.eye(len(values), dtype=values.dtype)
    slopes = derivatives.vector_products([values], leaves, [units])
    parts = [
        leaf.new_zeros(len(values), leaf.numel()) if g is None else g
        for g, leaf in zip(slopes, leaves, strict=True)
    ]
    return torch.cat([part.reshape(len(values), -1) for part in parts], 1)
