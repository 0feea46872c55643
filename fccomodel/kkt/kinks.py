"""Non-smooth functions outside the sampling (max, cvar, abs, pos, norms) as maxima over weights: phi(t) = max over q in Q of q.t.

The weights are what optimality conditions choose: a subgradient of phi at t, up to ``phi(t) - q.t``, is any q in Q.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from fccomodel import atoms, elements, ir
from fccomodel.atoms import ScalarAtom
from fccomodel.elements import Env, Named
from fccomodel.interpret import Evaluator, inner_maximum, ranging
from fccomodel.interpret.spaces import Product

#: Terms of all kinks that may be weighed; more keep the subgradient that automatic differentiation takes.
MOST_TERMS = 20_000
Terms = Callable[[Evaluator, ir.Expr, Env], Named | None]


# ------------------------------------------------------------------------------------------------------------ weight sets
@dataclass(frozen=True, kw_only=True)
class Weights:
    """Q, a convex set of weights over the last dim.

    kind   ``simplex`` (0 <= q <= high, sum 1), ``box`` (low <= q <= high), ``ball`` (|q|_2 <= 1) or ``cross`` (|q|_1 <= 1)
    """

    kind: str
    low: float = 0.0
    high: float = 1.0

    def top(self, t: np.ndarray) -> np.ndarray:
        """A q of Q with the largest q.t."""
        if self.kind == "box":
            return np.where(t > 0, self.high, np.where(t < 0, self.low, np.clip(0.0, self.low, self.high)))
        if self.kind == "ball":
            norm = np.linalg.norm(t, axis=-1, keepdims=True)
            return t / np.where(norm > 0, norm, 1)
        rank = np.argsort(np.argsort(-(np.abs(t) if self.kind == "cross" else t), axis=-1, kind="stable"), axis=-1)
        if self.kind == "cross":
            return np.where(rank == 0, np.sign(t), 0.0)
        return np.clip(1 - self.high * rank, 0, self.high)

    def project(self, q: np.ndarray) -> np.ndarray:
        """The nearest weights."""
        if self.kind == "box":
            return np.clip(q, self.low, self.high)
        if self.kind == "ball":
            return q / np.maximum(1, np.linalg.norm(q, axis=-1, keepdims=True))
        if self.kind == "cross":
            size = np.abs(q)
            inside = size.sum(-1, keepdims=True) <= 1
            return np.where(inside, q, np.sign(q) * _project_simplex(size, 1.0))
        return _project_simplex(q, self.high)

    def support(self, t: np.ndarray) -> np.ndarray:
        """phi(t)."""
        return (self.top(t) * t).sum(-1)


def _project_simplex(q: np.ndarray, cap: float) -> np.ndarray:
    return inner_maximum.project_simplex(torch.from_numpy(np.ascontiguousarray(q)), max(cap, 1 / q.shape[-1])).numpy()


# ------------------------------------------------------------------------------------------------------------------- kinks
@dataclass(frozen=True, eq=False, kw_only=True)
class Kink:
    """A node phi(t) with the function that evaluates its terms t (its axes, then one dim of terms); ``sign`` -1 for a minimum."""

    node: ir.Expr
    weights: Callable[[Evaluator, int], Weights]
    terms: Terms
    sign: float = 1.0


def find(bound_roots: Mapping[str, ir.Expr]) -> tuple[dict[int, Kink], list[tuple[ir.Expr, str]]]:
    """The outermost kinks of some expressions outside all sampling, by node id; and the kinks elsewhere, with the reason."""
    kinks: dict[int, Kink] = {}
    left: dict[int, tuple[ir.Expr, str]] = {}
    seen: set[int] = set()
    stack = list(bound_roots.values())
    while stack:
        node = stack.pop()
        if id(node) in seen or not ir.variables_of(node):
            continue
        seen.add(id(node))
        kink = of(node)
        if kink is not None:
            kinks[id(node)] = kink
            _inside(_bodies(node), "inside another such function", left)
        elif isinstance(node, ir.Reduce) and any(binder.kind == "~" for binder in node.binders):
            _inside((node.body,), "inside an expectation", left)
        elif isinstance(node, ir.Reduce):
            stack.append(node.body)
        elif isinstance(node, ir.LetRef):
            stack.append(node.let.body)
        else:
            if kinked(node):
                left[id(node)] = (node, "")
            stack.extend(node.children)
    return kinks, [item for key, item in left.items() if key not in kinks]


def _bodies(node: ir.Expr) -> tuple[ir.Expr, ...]:
    return (node.body,) if isinstance(node, ir.Reduce) else node.children


def _inside(roots: tuple[ir.Expr, ...], why: str, left: dict[int, tuple[ir.Expr, str]]) -> None:
    for root in roots:
        for node in ir.walk(root):
            if kinked(node) and ir.variables_of(node):
                left.setdefault(id(node), (node, why))


def kinked(node: ir.Expr) -> bool:
    """It has no gradient somewhere: an atom with a kink, a maximum, a tail mean."""
    if isinstance(node, ir.Reduce):
        return node.kind in ("max", "min", "cvar", "topk")
    if not isinstance(node, ir.Apply):
        return False
    if node.op in ("max", "min", "norm1", "norm2", "norminf", "group_norm", "norm_nuc", "norm_fro"):
        return True
    atom = atoms.get(node.op)
    if not isinstance(atom, ScalarAtom) or atom.boolean:
        return False
    return bool(atom.breaks)


#: entrywise atoms that are a maximum of multiples of their argument: name -> the multiples' range
SLOPES: Mapping[str, tuple[float, float]] = {"abs": (-1.0, 1.0), "pos": (0.0, 1.0)}
NORMS: Mapping[str, Weights] = {
    "norm1": Weights(kind="box", low=-1.0, high=1.0),
    "norm2": Weights(kind="ball"),
    "norminf": Weights(kind="cross"),
    "norm_fro": Weights(kind="ball"),
}
SIMPLEX = Weights(kind="simplex")


def of(node: ir.Expr) -> Kink | None:
    """The kink that a node is, or None."""
    if isinstance(node, ir.Apply):
        atom = atoms.get(node.op)
        name = node.op if atom is None else atom.name
        if name in SLOPES:
            low, high = SLOPES[name]
            return Kink(node=node, weights=_fixed(Weights(kind="box", low=low, high=high)), terms=_argument)
        if name == "pinball":
            return Kink(node=node, weights=lambda evaluator, count: _pinball(evaluator, node), terms=_argument)
        if name == "eps_insensitive":
            return Kink(node=node, weights=_fixed(SIMPLEX), terms=_insensitive)
        if name in NORMS:
            return Kink(node=node, weights=_fixed(NORMS[name]), terms=_entries)
        if name in ("max", "min"):
            return Kink(node=node, weights=_fixed(SIMPLEX), terms=_arguments, sign=1.0 if name == "max" else -1.0)
    if isinstance(node, ir.Reduce):
        sign = -1.0 if node.kind == "min" else 1.0
        if any(isinstance(binder.domain, ir.VectorSet) for binder in node.binders):
            return _over_vectors(node, sign)
        if node.kind in ("max", "min"):
            return Kink(node=node, weights=_fixed(SIMPLEX), terms=_reduced, sign=sign)
        if node.kind in ("cvar", "topk"):
            return Kink(node=node, weights=lambda evaluator, count: _tail(evaluator, node, count), terms=_reduced)
    return None


def _fixed(weights: Weights) -> Callable[[Evaluator, int], Weights]:
    return lambda evaluator, count: weights


def _pinball(evaluator: Evaluator, node: ir.Apply) -> Weights:
    tau = float(evaluator.value(node.args[1], {}).data)
    return Weights(kind="box", low=tau - 1, high=tau)


def _tail(evaluator: Evaluator, node: ir.Reduce, count: int) -> Weights:
    options = evaluator.options(node)
    cap = 1 / (options["tail"] * count) if node.kind == "cvar" else 1 / min(options["k"], count)
    return Weights(kind="simplex", high=min(1.0, cap))


def _over_vectors(node: ir.Reduce, sign: float) -> Kink | None:
    """A maximum over a simplex of something affine: the weights are the model's own."""
    (binder,) = node.binders
    domain, form = binder.domain, inner_maximum.recognise(node.body, binder)
    if (
        not isinstance(domain, ir.VectorSet)
        or domain.family not in ("simplex", "capped_simplex")
        or form is None
        or form.divergence
    ):
        return None

    def weights(evaluator: Evaluator, count: int) -> Weights:
        tail = 1.0 if domain.family == "simplex" else float(evaluator.value(domain.args[0], {}).data) * count
        return Weights(kind="simplex", high=min(1.0, 1 / tail))

    return Kink(node=node, weights=weights, terms=_at_vertices, sign=sign)


# ------------------------------------------------------------------------------------------------------------------- terms
def _argument(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    assert isinstance(node, ir.Apply)
    value = evaluator.value(node.args[0], env)
    return Named(value.data.unsqueeze(-1), value.axes)


def _insensitive(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """max(0, |u| - eps) is the largest of 0, u - eps and -u - eps."""
    assert isinstance(node, ir.Apply)
    (u, eps), axes = elements.align([evaluator.value(arg, env) for arg in node.args], entrywise=True)
    return Named(torch.stack(torch.broadcast_tensors(torch.zeros_like(u), u - eps, -u - eps), -1), axes)


def _entries(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    assert isinstance(node, ir.Apply)
    value = evaluator.value(node.args[0], env)
    return Named(value.data.flatten(len(value.axes)), value.axes)


def _arguments(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    assert isinstance(node, ir.Apply)
    tensors, axes = elements.align([evaluator.value(arg, env) for arg in node.args], entrywise=True)
    return Named(torch.stack(torch.broadcast_tensors(*tensors), -1), axes)


def _reduced(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The elements of a reduction; None where a condition gives each outer element its own list of them."""
    assert isinstance(node, ir.Reduce)
    space, inner = ranging.space(evaluator, node, env)
    if (
        not isinstance(space, Product)
        or math.prod(space.lengths.values()) > MOST_TERMS
        or elements.shape(evaluator.bound, node.shape)
    ):
        return None
    evaluator.not_empty(node, space, space.count, inner)
    full = space.full(evaluator.value(node.body, inner))
    order = sorted(range(len(space.axes)), key=lambda k: space.axes[k] in space.over)
    return Named(full.permute(order).reshape((*space.shape, -1)), space.kept)


def _at_vertices(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """An affine body at the unit vectors, whose weighted mean it is on the simplex."""
    assert isinstance(node, ir.Reduce)
    (binder,) = node.binders
    assert isinstance(binder.domain, ir.VectorSet)
    axis, n = elements.new_axis(), elements.shape(evaluator.bound, binder.domain.shape)[0]
    value = evaluator.value(node.body, {**env, binder: Named(torch.eye(n, dtype=elements.DTYPE), (axis,))})
    return Named(value.data.movedim(value.axes.index(axis), -1), tuple(a for a in value.axes if a != axis))


# --------------------------------------------------------------------------------------------------------------- recording
@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """A kink met in an evaluation.

    terms   (instances, terms), with their graph
    value   (instances,): phi, a leaf from which the rest of the evaluation goes on
    """

    kink: Kink
    weights: Weights
    terms: torch.Tensor
    value: torch.Tensor

    def top(self) -> np.ndarray:
        """Weights that attain phi."""
        return self.weights.top(self.kink.sign * self.terms.detach().numpy())


@dataclass(eq=False)
class Recorder:
    """Cuts kinks out of an evaluation: their values become leaves, their terms are kept.

    Given the records of an earlier evaluation, their values are used again, so that only the terms move.
    """

    kinks: Mapping[int, Kink]
    frozen: tuple[Record, ...] | None = None
    records: list[Record] = field(default_factory=list)
    refused: list[ir.Expr] = field(default_factory=list)

    def cuts(self) -> dict[int, Callable[[Evaluator, ir.Expr, Env], Named]]:
        return {key: self.cut for key in self.kinks}

    def cut(self, evaluator: Evaluator, node: ir.Expr, env: Env) -> Named:
        kink = self.kinks[id(node)]
        found = kink.terms(evaluator, node, env) if evaluator.numel(node, env) <= MOST_TERMS else None
        if found is None or sum(r.terms.numel() for r in self.records) + found.data.numel() > MOST_TERMS:
            self.refused.append(node)
            return evaluator.uncut(node, env)
        shape, count = found.data.shape[:-1], found.data.shape[-1]
        terms = found.data.reshape(-1, count)
        weights = kink.weights(evaluator, count)
        if self.frozen is None:
            phi = kink.sign * weights.support(kink.sign * terms.detach().numpy())
            value = torch.from_numpy(np.ascontiguousarray(phi)).requires_grad_(True)
        else:
            value = self.frozen[len(self.records)].value
        self.records.append(Record(kink=kink, weights=weights, terms=terms, value=value))
        return Named(value.reshape(shape), found.axes)


def notes(left: list[tuple[ir.Expr, str]], refused: list[ir.Expr], say: Callable[[ir.Expr], str]) -> Iterator[str]:
    """Sentences on the kinks whose subgradient was not chosen."""
    for node, why in left:
        where = f" ({why})" if why else ""
        yield f"{say(node)}{where}: one subgradient is taken where it has a kink; the stationarity is an upper bound"
    for node in dict.fromkeys(refused):
        yield f"{say(node)}: too many terms to weigh, so the largest take all weight; the stationarity is an upper bound"
