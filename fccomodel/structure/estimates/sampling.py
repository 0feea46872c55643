"""Estimates of constants that no rule gives: slopes, curvature and noise at sampled points of the data."""

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

BLOCKS = 12  # blocks that are drawn
POINTS = 4  # points around each centre, and steepest places where curvature is estimated
SIGN_VECTORS = 4  # random sign vectors per entry, for the variance of gradients
ENTRIES = 8  # entries of a block's value whose gradients are computed
POWER_STEPS = 5  # power iterations for the largest curvature
#: numbers in the gradients of all draws of a block; if there are more, random signs estimate their variance
MAX_GRADIENT_NUMBERS = 1 << 20


WORDS = {
    "interval": "its values over",
    "lipschitz": "the largest slope over",
    "gradient": "the steepest change of the gradient over",
    "value noise": "the largest variance over the draws of",
    "gradient noise": "the largest variance of the gradient over the draws of",
}


@dataclass(eq=False, kw_only=True)
class Probe:
    """An expression at sampled blocks, draws and points.

    samples  draws per block
    seed     seed of all random numbers
    """

    problem: ir.Problem
    bound: Bound
    expr: ir.Expr
    seed: int
    samples: int

    def facts(self, points: Sequence[Mapping[str, Any]], radius: float) -> dict[str, Fact]:
        """The estimated facts around some points (see ``structure.estimate``), with words that say how."""
        estimates = self.at(self.around(points or [self.start], radius))
        centres = "those given" if points else "the start"
        where = f"at {POINTS * max(1, len(points))} points within {radius:g} of {centres}"
        return {
            kind: make(
                kind,
                value,
                self.expr,
                "sampling",
                f"{WORDS[kind]} {self.sample_words}, {where}",
                standing=Standing.ESTIMATED,
            )
            for kind, value in estimates.items()
        }

    # ------------------------------------------------------------------------------ what is sampled
    @cached_property
    def node(self) -> ir.Expr:
        """The expression behind the names that ``let`` gives it."""
        node = self.expr
        while isinstance(node, ir.LetRef) and not node.args:
            node = node.let.body
        return node

    @cached_property
    def random(self) -> bool:
        """Whether the expression is an average of draws."""
        return isinstance(self.node, ir.Reduce) and reductions.of(self.node).linear

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its variables, sorted."""
        return tuple(sorted(ir.variables_of(self.node)))

    @cached_property
    def blocks(self) -> dict[ir.Binder, Named]:
        """``BLOCKS`` elements of each free binder, along one axis."""
        axis = new_axis()
        rng = np.random.default_rng(self.seed)
        blocks = {}
        for binder in ir.free_binders(self.node):
            domain = binder.domain
            if isinstance(domain, ir.Distribution):
                args = [self._plain(a) for a in domain.args]
                values = draws.sample(self.bound, binder, args, BLOCKS, self.seed).data
            elif isinstance(domain, ir.VectorSet):
                shape = elements.shape(self.bound, domain.shape)
                normals = torch.from_numpy(rng.normal(size=(BLOCKS, *shape)))
                evaluator = Pointwise(self.bound)
                values = torch.stack([evaluator.into_sets([domain], v) for v in normals])
            else:
                values = torch.from_numpy(rng.choice(elements.ids(self.bound, domain), BLOCKS))
            blocks[binder] = Named(values, (axis,))
        return blocks

    @property
    def sample_words(self) -> str:
        """The sampled blocks and draws in words."""
        parts = []
        if self.blocks:
            parts.append(f"{BLOCKS} blocks")
        if self.random:
            parts.append(f"{self.samples} draws each")
        return " of ".join(parts) or "the expression"

    # --------------------------------------------------------------------------------------- points
    @cached_property
    def start(self) -> dict[str, torch.Tensor]:
        """Zero projected into the simple sets; nets as they are bound."""
        start = {}
        for name in self.names:
            net = self.problem.variables[name].net
            if net is not None:
                parameters = self.bound.nets[net].parameters()
                weights = [p.detach().double().reshape(-1) for p in parameters]
                start[name] = torch.cat(weights)
            else:
                shape = elements.shape(self.bound, self.problem.variables[name].shape)
                start[name] = self.projected(name, torch.zeros(shape, dtype=torch.float64))
        return start

    def around(self, centres: Sequence[Mapping[str, Any]], radius: float) -> list[dict[str, torch.Tensor]]:
        """Each centre, and normal perturbations of it that are at most ``radius`` long."""
        rng = torch.Generator().manual_seed(self.seed)
        points = []
        for centre in centres:
            start = {name: torch.as_tensor(centre[name], dtype=torch.float64) for name in self.names}
            entries = sum(value.numel() for value in start.values())
            for k in range(POINTS):
                deviation = radius * k / max(1, POINTS - 1) / sqrt(max(1, entries))
                steps = {}
                for name, value in start.items():
                    normal = torch.randn(value.shape, generator=rng, dtype=torch.float64)
                    steps[name] = deviation * normal
                squares = [float(step.square().sum()) for step in steps.values()]
                length = sqrt(sum(squares))
                share = 1.0
                if length > radius:
                    share = radius / length
                point = {}
                for name, value in start.items():
                    point[name] = self.projected(name, value + share * steps[name])
                points.append(point)
        return points

    def projected(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """The value of a variable projected onto each of its simple sets in turn."""
        return Pointwise(self.bound).into_sets(self.problem.variables[name].sets, value)

    def _plain(self, expr: ir.Expr) -> Named:
        return Pointwise(self.bound).value(expr, {})

    # ----------------------------------------------------------------------------------- evaluation
    def values(self, point: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """g_i(w; xi) with shape [blocks, draws, entries]; NaN for a block without rows.

        The size is 1 along blocks if there are no free binders, along draws if nothing is drawn.
        """
        batch = Minibatch(self.bound, point, batch=self.samples, seed=self.seed)
        block = next((at.axes[0] for at in self.blocks.values()), None)
        value, draw = self._drawn(batch)
        lengths = {}
        blocks = draws = 1
        if block is not None:
            blocks = lengths[block] = BLOCKS
        if draw is not None:
            draws = lengths[draw] = self.samples
        along_axes = spread(value, tuple(lengths))
        data = along_axes.expand((*lengths.values(), *value.event))
        return data.reshape(blocks, draws, -1)

    def _drawn(self, batch: Minibatch) -> tuple[Named, int | None]:
        """The value of each draw and the draws' axis, or the value and None if nothing is drawn."""
        if not self.random:
            return batch.value(self.node, self.blocks), None
        assert isinstance(self.node, ir.Reduce)
        inner, axis, count = batch.drawn(self.node, self.blocks)
        return batch.scaled(self.node, batch.value(self.node.body, inner), count), axis

    def slope(
        self, point: Mapping[str, torch.Tensor], weigh: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """The gradient of ``weigh(values)``, a scalar, in all variables as one vector."""
        leaves = {name: value.detach().clone().requires_grad_(True) for name, value in point.items()}
        return _gradient(weigh(self.values(leaves)), [leaves[name] for name in self.names])

    # -------------------------------------------------------------------------------------- figures
    def at(self, points: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, Any]:
        """The largest of each constant over the points, and the range of the values; empty if none exists."""
        rng = torch.Generator().manual_seed(self.seed + 1)
        low = np.inf
        high = -np.inf
        top = {"lipschitz": 0.0, "gradient": 0.0, "value noise": 0.0, "gradient noise": 0.0}
        steepest: list[tuple[float, Mapping[str, torch.Tensor], int, int]] = []
        for point in points:
            leaves = {name: value.detach().clone().requires_grad_(True) for name, value in point.items()}
            weights = [leaves[name] for name in self.names]
            values = self.values(leaves)
            detached = values.detach()
            usable = torch.isfinite(detached).all(2).all(1)
            if not bool(usable.any()):
                continue
            mean = detached[usable].mean(1)
            low = min(low, float(mean.min()))
            high = max(high, float(mean.max()))
            if values.shape[1] > 1:
                variances = detached[usable].var(1).sum(1)
                top["value noise"] = max(top["value noise"], float(variances.max()))
            for block in usable.nonzero()[:, 0].tolist():
                slope, noise, entry = self._block(values[block], weights, rng)
                top["lipschitz"] = max(top["lipschitz"], slope)
                top["gradient noise"] = max(top["gradient noise"], noise)
                steepest.append((slope, point, block, entry))
        if not steepest:
            return {}
        steepest.sort(key=lambda place: -place[0] if isfinite(place[0]) else 0.0)
        step = difference_step(points)
        for _, point, block, entry in steepest[:POINTS]:
            curvature = self._curvature(point, block, entry, step, rng)
            top["gradient"] = max(top["gradient"], curvature)
        kinds = ["lipschitz", "gradient"]
        if self.random:
            kinds += ["value noise", "gradient noise"]
        constants = {kind: Amount(top[kind]) for kind in kinds if isfinite(top[kind])}
        return {"interval": Interval(low, high)} | constants

    def _block(
        self, values: torch.Tensor, leaves: list[torch.Tensor], rng: torch.Generator
    ) -> tuple[float, float, int]:
        """Slope, variance of the gradient over the draws, and steepest entry of one block.

        ``values`` has the shape [draws, entries]. With more than ``ENTRIES`` entries a random choice is
        taken and scaled up. With too many draws the variance is estimated by random signs s:
        E |sum_j (s_j - mean s) grad_j|^2 = sum_j |grad_j - mean grad|^2.
        """
        count, entries = values.shape
        chosen = list(range(entries))
        if entries > ENTRIES:
            chosen = torch.randperm(entries, generator=rng)[:ENTRIES].tolist()
        squares, noise = {}, 0.0
        for entry in chosen:
            column = values[:, entry]
            numbers = count * sum(leaf.numel() for leaf in leaves)
            if 1 < numbers <= MAX_GRADIENT_NUMBERS and column.requires_grad:
                each = _gradients(column, leaves)
                squares[entry] = float(each.mean(0).square().sum())
                if count > 1:
                    noise += float(each.var(0).sum())
                continue
            squares[entry] = float(_gradient(column.mean(), leaves).square().sum())
            for _ in range(SIGN_VECTORS if count > 1 else 0):
                signs = torch.randint(2, (count,), generator=rng).double() * 2 - 1
                deviation = _gradient((signs - signs.mean()) @ column, leaves)
                noise += float(deviation.square().sum()) / (SIGN_VECTORS * (count - 1))
        scale = entries / len(squares)
        norm = sqrt(scale * sum(squares.values()))
        steepest = max(squares, key=squares.__getitem__)
        return norm, scale * noise, steepest

    def _curvature(
        self, point: Mapping[str, torch.Tensor], block: int, entry: int, step: float, rng: torch.Generator
    ) -> float:
        """The largest change of a block's gradient per length, over directions by power iteration."""

        def slope(at: Mapping[str, torch.Tensor]) -> torch.Tensor:
            """The gradient of the block's mean over the draws."""
            return self.slope(at, lambda values: values[block, :, entry].mean())

        base, steepest = slope(point), 0.0
        direction = torch.randn(base.shape, generator=rng, dtype=torch.float64)
        for _ in range(POWER_STEPS):
            norm = float(direction.norm())
            if not norm > 0 or not isfinite(norm):
                break
            neighbour = self._moved(point, direction * (step / norm))
            squares = [(neighbour[name] - point[name]).square().sum() for name in self.names]
            length = float(sum(squares)) ** 0.5
            change = slope(neighbour) - base
            if length > 0 and bool(torch.isfinite(change).all()):
                steepest = max(steepest, float(change.norm()) / length)
            direction = change
        return steepest

    def _moved(self, point: Mapping[str, torch.Tensor], step: torch.Tensor) -> dict[str, torch.Tensor]:
        """The point after a step, projected into the simple sets."""
        steps, start = {}, 0
        for name in self.names:
            value = point[name]
            steps[name] = self.projected(
                name, value + step[start : start + value.numel()].reshape(value.shape)
            )
            start += value.numel()
        return steps


def difference_step(points: Sequence[Mapping[str, torch.Tensor]]) -> float:
    """The step for differences of gradients: a thousandth of the points' spread, well above rounding."""
    first = points[0]
    distances = (float((p[n] - first[n]).norm()) for p in points for n in p)
    spread = max(distances, default=0.0)
    return 1e-3 * (spread or 1.0)


def _gradient(value: torch.Tensor, leaves: list[torch.Tensor]) -> torch.Tensor:
    """The gradient of a scalar in all leaves, as one vector."""
    if not value.requires_grad:
        return torch.zeros(sum(leaf.numel() for leaf in leaves), dtype=value.dtype)
    slopes = torch.autograd.grad(value, leaves, retain_graph=True, allow_unused=True)
    pairs = zip(slopes, leaves, strict=True)
    parts = [torch.zeros_like(leaf) if g is None else g for g, leaf in pairs]
    return torch.cat([part.reshape(-1) for part in parts])


def _gradients(values: torch.Tensor, leaves: list[torch.Tensor]) -> torch.Tensor:
    """The gradients of the values, one per row."""
    units = torch.eye(len(values), dtype=values.dtype)
    slopes = derivatives.vector_products([values], leaves, [units])
    parts = [
        leaf.new_zeros(len(values), leaf.numel()) if g is None else g
        for g, leaf in zip(slopes, leaves, strict=True)
    ]
    return torch.cat([part.reshape(len(values), -1) for part in parts], 1)
