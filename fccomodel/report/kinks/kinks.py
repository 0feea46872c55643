"""Non-smooth functions (max, cvar, abs, pos, norms) as maxima over weights: phi(t) = max over q in Q
of q.t.

The weights are what optimality conditions choose: a subgradient of phi at t, up to ``phi(t) -
q.t``, is any q in Q.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator, inner_maximum, ranging
from fccomodel.evaluation.interpret.spaces import Listing, Product
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.axes import Env, Named, align, new_axis
from fccomodel.library import atoms, reductions, sets
from fccomodel.library.kinks import kinked
from fccomodel.library.reductions.variance import VARIANCE
from fccomodel.report.kinks import nested_maxima
from fccomodel.report.kinks.weights import Weights

#: Numbers that the terms of a kink may be; terms of a kink all of whose own kinks are weighed too,
#: of others those near theirs.
MOST_NUMBERS, MOST_OUTER = 1 << 21, 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class Lists:
    """The elements of a reduction where a condition gives each cell a list of its own: by length, the
    cells with so many, and their elements (axes kept, cells, elements); ``finish`` makes the axes
    of a result (axes kept, cells) again."""

    shape: tuple[int, ...]
    parts: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    finish: Callable[[torch.Tensor], Named]


Terms = Callable[[Evaluator, ir.Expr, Env], Named | Lists | None]


# -------------------------------------------------------------------------------------------- kinks
@dataclass(frozen=True, eq=False, kw_only=True)
class Kink:
    """A node phi(t) with the function that evaluates its terms t (its axes, then one dim of terms);
    ``sign`` -1 for a minimum.

    ``signed``: weights may be negative.
    ``rows``: it is inside an expectation or another reduction, so that there is one for every row.
    ``nested``: it is inside a kink of which there is one for every row, or which has many terms.
    ``smooth``: it is phi(t) and a function without a kink.
    ``beside``: the node is the sum of this kink, another one and a constant.
    """

    node: ir.Expr
    weights: Callable[[Evaluator, int], Weights]
    terms: Terms
    sign: float = 1.0
    signed: bool = False
    rows: bool = False
    nested: bool = False
    smooth: bool = False
    beside: Kink | None = None

    @property
    def weighed(self) -> tuple[ir.Expr, ...]:
        """What the terms are, or are affine functions of."""
        if nested_maxima.nested(self.node, self.sign):
            return tuple(nested_maxima.leaves(self.node, self.sign))
        if isinstance(self.node, ir.Reduce):
            return (self.node.body,)
        if isinstance(self.node, ir.Apply) and (root := _below_root(self.node)) is not None:
            return (root.u,)
        atom = atoms.of(self.node)
        if atom is not None and atom.extreme:
            return self.node.children
        return self.node.children[:1]


def find(bound: Bound, roots: Iterable[ir.Expr]) -> tuple[dict[int, Kink], list[tuple[ir.Expr, str]]]:
    """The kinks of some expressions by node id, outermost ones and those inside them, at any depth,
    where each is in one of the outer ones' terms or in all, or these are few; and those that are
    too many or in many terms, with the reason."""
    kinks: dict[int, Kink] = {}
    left: dict[int, tuple[ir.Expr, str]] = {}
    seen: set[int] = set()
    stack: list[tuple[ir.Expr, bool, bool, frozenset[ir.Binder] | None]] = [
        (root, False, False, None) for root in roots
    ]
    while stack:
        node, rows, nested, apart = stack.pop()
        if id(node) in seen or not ir.variables_of(node):
            continue
        seen.add(id(node))
        kink = of(node)
        if kink is not None and rows and not _countable(bound, node):
            left[id(node)] = (node, "inside an expectation")
            _inside(_bodies(node), "inside an expectation", left)
        elif (
            kink is not None
            and apart is not None
            and (free := set(ir.free_binders(node)))
            and not apart <= free
        ):
            left[id(node)] = (node, "inside many terms of another such function")
            _inside(_bodies(node), "inside another such function", left)
        elif kink is not None:
            many = apart is not None
            each = rows or (nested and bool(ir.free_binders(node)))
            if kink.beside is None:
                beside = None
            else:
                beside = replace(kink.beside, rows=each, nested=many)
            kinks[id(node)] = replace(kink, rows=each, nested=many, beside=beside)
            if rows or many or not _few(bound, node):
                if isinstance(node, ir.Reduce):
                    own = node.binders
                else:
                    own = ()
                stack.extend(
                    (body, True, True, frozenset((*ir.free_binders(node), *own))) for body in kink.weighed
                )
            else:
                stack.extend((body, False, True, None) for body in kink.weighed)
        elif isinstance(node, ir.Reduce):
            stack.append(
                (node.body, rows or any(binder.kind == "~" for binder in node.binders), nested, apart)
            )
        elif isinstance(node, ir.LetRef):
            stack.append((node.let.body, rows, nested, apart))
        else:
            if kinked(node):
                left[id(node)] = (node, "inside an expectation" if rows else "")
            stack.extend((child, rows, nested, apart) for child in node.children)
    return kinks, [item for key, item in left.items() if key not in kinks]


def _few(bound: Bound, node: ir.Expr) -> bool:
    """Its terms are at most ``MOST_OUTER``."""
    if not isinstance(node, ir.Reduce):
        if isinstance(node, ir.Apply):
            return math.prod(elements.shape(bound, node.args[0].shape)) <= MOST_OUTER
        return False
    domains = [binder.domain for binder in (*node.binders, *ir.free_binders(node))]
    if any(isinstance(domain, ir.Distribution) for domain in domains):
        return False
    sizes = [
        elements.shape(bound, d.shape)[0] if isinstance(d, ir.VectorSet) else elements.extent(bound, d)
        for d in domains
    ]
    return math.prod(sizes) <= MOST_OUTER


def _countable(bound: Bound, node: ir.Expr) -> bool:
    """It has one value for each of some rows, which are few enough to be held at once."""
    domains = [binder.domain for binder in ir.free_binders(node)]
    if any(isinstance(domain, ir.Distribution | ir.VectorSet) for domain in domains):
        return False
    return math.prod(elements.extent(bound, domain) for domain in domains) <= MOST_NUMBERS


def _bodies(node: ir.Expr) -> tuple[ir.Expr, ...]:
    if isinstance(node, ir.Reduce):
        return (node.body,)
    return node.children


def _inside(roots: tuple[ir.Expr, ...], why: str, left: dict[int, tuple[ir.Expr, str]]) -> None:
    for root in roots:
        for node in ir.walk(root):
            if kinked(node) and ir.variables_of(node):
                left.setdefault(id(node), (node, why))


SIMPLEX, BOX = Weights(kind="simplex"), Weights(kind="box", low=-1.0, high=1.0)
SHARE = Weights(kind="box", low=0.0, high=1.0)


def of(node: ir.Expr) -> Kink | None:
    """The kink that a node is, or None."""
    if isinstance(node, ir.Apply):
        return _of_atom(node, atoms.of(node))
    if isinstance(node, ir.Reduce):
        kind = reductions.of(node)
        if any(isinstance(binder.domain, ir.VectorSet) for binder in node.binders):
            return _over_vectors(node, kind.sign)
        if kind.extreme and not node.shape:
            return _largest(node, kind.sign)
        if kind.cap is not None:
            return Kink(node=node, weights=partial(_weights, node=node), terms=_reduced, sign=kind.sign)
    return None


def _largest(node: ir.Expr, sign: float) -> Kink:
    terms = partial(nested_maxima.terms, sign=sign, most=MOST_NUMBERS)
    return Kink(
        node=node, weights=_fixed(SIMPLEX), terms=terms, sign=sign, signed=nested_maxima.signed(node, sign)
    )


def _of_atom(node: ir.Apply, atom: atoms.Atom | None) -> Kink | None:
    """The largest (least) of the arguments, a norm, a root of squares, a largest of affine functions
    of a number, or a function whose slope jumps."""
    if isinstance(atom, atoms.ArrayAtom):
        norm = atom.ball is not None
        if norm:
            return Kink(node=node, weights=partial(_ball, node=node), terms=_entries, signed=True)
        return None
    if not isinstance(atom, atoms.ScalarAtom):
        return None
    if nested_maxima.nested(node, float(atom.extreme or 1)):
        return _largest(node, float(atom.extreme or 1))
    if atom.extreme:
        return Kink(node=node, weights=_fixed(SIMPLEX), terms=_arguments, sign=float(atom.extreme))
    if (root := _below_root(node)) is not None:
        weights = _fixed(Weights(kind="ball" if root.signed else "positive"))
        return Kink(node=node, weights=weights, terms=partial(_roots, root=root), signed=root.signed)
    if node.op == "clip":
        one, other = (
            Kink(node=node, weights=_fixed(SHARE), terms=partial(_past, end=k), sign=(1, -1)[k - 1])
            for k in (1, 2)
        )
        return replace(one, signed=True, beside=other)
    pieces = () if atom.variadic else atom.affine_pieces(*atom.typical)
    if len(pieces) < 2:
        scalars = not any(ir.free_binders(arg) for arg in node.args[1:])
        jumps = Kink(node=node, weights=_fixed(BOX), terms=_jumps, signed=True, smooth=True)
        return jumps if atom.graph is not None and atom.kinked and scalars else None
    signed = any(slope < 0 for slope, _ in pieces)
    if any(shift for _, shift in pieces) or any(ir.free_binders(arg) for arg in node.args[1:]):
        return Kink(node=node, weights=_fixed(SIMPLEX), terms=_pieces, signed=signed)
    return Kink(node=node, weights=partial(_slopes, node=node), terms=_argument, signed=signed)


@dataclass(frozen=True, kw_only=True)
class Root:
    """A root of squares of u, or of its positive part alone (then not ``signed``): of one of them, or
    of their sum or mean over the elements of ``over``; of a variance less the ``mean``."""

    u: ir.Expr
    over: ir.Reduce | None = None
    signed: bool = True
    mean: bool = False


def _below_root(node: ir.Apply) -> Root | None:
    power = atoms.as_power(node)
    if power is None or not isinstance(power[1], ir.Const) or power[1].value != 0.5:
        return None
    if isinstance(power[0], ir.Reduce):
        over = power[0]
    else:
        over = None
    if over is None:
        return _square(power[0], None)
    if any(isinstance(binder.domain, ir.Distribution | ir.VectorSet) for binder in over.binders):
        return None
    if reductions.of(over) is VARIANCE:
        return Root(u=over.body, over=over, mean=True)
    if reductions.of(over).additive:
        return _square(over.body, over)
    return None


def _square(expr: ir.Expr, over: ir.Reduce | None) -> Root | None:
    """Of an expression that is a square."""
    u = atoms.squared(expr)
    atom = atoms.of(expr if u is None else u)
    if atom is None or "sqhinge" not in (atom.name, atom.squared):
        if u is None:
            return None
        return Root(u=u, over=over)
    return Root(u=(expr if u is None else u).children[0], over=over, signed=False)


def _slopes(evaluator: Evaluator, count: int, node: ir.Apply) -> Weights:
    """Of a largest of multiples of a number: between the least and the largest multiple."""
    atom = atoms.of(node)
    assert isinstance(atom, atoms.ScalarAtom)
    slopes = [
        slope
        for slope, _ in atom.affine_pieces(*(float(evaluator.value(arg, {}).data) for arg in node.args[1:]))
    ]
    return Weights(kind="box", low=min(slopes), high=max(slopes))


def _ball(evaluator: Evaluator, count: int, node: ir.Apply) -> Weights:
    """Of a norm: the unit ball of its dual."""
    atom = atoms.of(node)
    assert isinstance(atom, atoms.ArrayAtom) and atom.ball is not None
    if atom.ball.matrix:
        columns = elements.shape(evaluator.bound, node.args[0].shape)[-1]
    else:
        columns = 0
    if atom.in_groups:
        columns = int(evaluator.value(node.args[-1], {}).data)
    return Weights(kind=atom.ball.kind, low=-1.0 if atom.ball.kind == "box" else 0.0, columns=columns)


def _fixed(weights: Weights) -> Callable[[Evaluator, int], Weights]:
    return lambda evaluator, count: weights


def _weights(evaluator: Evaluator, count: int, node: ir.Reduce) -> Weights:
    cap = reductions.of(node).cap
    assert cap is not None
    return Weights(
        kind="simplex",
        high=min(1.0, float(cap(torch.tensor(count, dtype=torch.float64), evaluator.options(node)))),
    )


def _over_vectors(node: ir.Reduce, sign: float) -> Kink | None:
    """A maximum over a simplex of something affine: the weights are the model's own."""
    (binder,) = node.binders
    domain, form = binder.domain, inner_maximum.recognise(node.body, binder)
    if (
        not isinstance(domain, ir.VectorSet)
        or sets.all()[domain.family].cap is None
        or form is None
        or form.divergence
    ):
        return None

    def weights(evaluator: Evaluator, count: int) -> Weights:
        return Weights(kind="simplex", high=min(1.0, inner_maximum.cap(evaluator, domain, count)))

    return Kink(node=node, weights=weights, terms=_at_vertices, sign=sign)


# -------------------------------------------------------------------------------------------- terms
def _argument(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    assert isinstance(node, ir.Apply)
    value = evaluator.value(node.args[0], env)
    return Named(value.data.unsqueeze(-1), value.axes)


def _past(evaluator: Evaluator, node: ir.Expr, env: Env, end: int) -> Named:
    """Of clip(u, lo, hi) = lo + pos(u - lo) - pos(u - hi): u - lo, and hi - u, of which the least
    multiple is -pos(u - hi)."""
    assert isinstance(node, ir.Apply)
    (u, limit), axes = align(
        [evaluator.value(node.args[0], env), evaluator.value(node.args[end], env)], entrywise=True
    )
    return Named((u - limit if end == 1 else limit - u).unsqueeze(-1), axes)


def _jumps(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """(u - x) J / 2 for each place x where the slope jumps by J: the rest has the mean of both slopes
    there."""
    atom = atoms.of(node)
    assert isinstance(node, ir.Apply) and isinstance(atom, atoms.ScalarAtom)
    points, *_ = atom.subdifferential(*(float(evaluator.value(arg, {}).data) for arg in node.args[1:]))
    value = evaluator.value(node.args[0], env)
    rises = [(a[0], b[1] - a[1]) for a, b in itertools.pairwise(points) if a[0] == b[0] and a[1] != b[1]]
    if rises:
        return Named(torch.stack([(value.data - x) * (rise / 2) for x, rise in rises], -1), value.axes)
    return None


def _pieces(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The affine functions of a number of which the atom is the largest, at the values of its parameters."""
    atom = atoms.of(node)
    assert isinstance(node, ir.Apply) and isinstance(atom, atoms.ScalarAtom)
    (value, *parameters), axes = align([evaluator.value(arg, env) for arg in node.args], entrywise=True)
    value, *parameters = torch.broadcast_tensors(value, *parameters)
    if parameters:
        given = torch.stack([parameter.detach().reshape(-1) for parameter in parameters], -1)
        kinds, which = given.unique(dim=0, return_inverse=True)
        pieces = torch.tensor([atom.affine_pieces(*kind) for kind in kinds.tolist()], dtype=torch.float64)[
            which
        ]
    else:
        pieces = torch.tensor(atom.affine_pieces(), dtype=torch.float64)
    slope, shift = (pieces[..., k].reshape(*(value.shape if parameters else ()), -1) for k in range(2))
    return Named(value.unsqueeze(-1) * slope + shift, axes)


def _roots(evaluator: Evaluator, node: ir.Expr, env: Env, root: Root) -> Named | None:
    """What is squared below the root, times the root of its share; its length is the root."""
    if root.over is None:
        value = evaluator.value(root.u, env)
        return Named(value.data.unsqueeze(-1), value.axes)
    space, inner = ranging.space(evaluator, root.over, env)
    if not isinstance(space, Product) or math.prod(space.lengths.values()) > MOST_NUMBERS or root.over.shape:
        return None
    evaluator.not_empty(root.over, space, space.count, inner)
    full = space.full(evaluator.value(root.u, inner))
    order = sorted(range(len(space.axes)), key=lambda k: space.axes[k] in space.over)
    if reductions.of(root.over).total:
        share = 1.0
    else:
        share = float(space.count) ** -0.5
    terms = full.permute(order).reshape((*space.shape, -1))
    return Named((terms - terms.mean(-1, keepdim=True) if root.mean else terms) * share, space.kept)


def _entries(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    assert isinstance(node, ir.Apply)
    value = evaluator.value(node.args[0], env)
    return Named(value.data.flatten(len(value.axes)), value.axes)


def _arguments(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    assert isinstance(node, ir.Apply)
    tensors, axes = align([evaluator.value(arg, env) for arg in node.args], entrywise=True)
    return Named(torch.stack(torch.broadcast_tensors(*tensors), -1), axes)


def _reduced(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | Lists | None:
    """The elements of a reduction."""
    assert isinstance(node, ir.Reduce)
    space, inner = ranging.space(evaluator, node, env)
    if isinstance(space, Listing):
        return _listed(evaluator, node, space, inner)
    if (
        not isinstance(space, Product)
        or math.prod(space.lengths.values()) > MOST_NUMBERS
        or elements.shape(evaluator.bound, node.shape)
    ):
        return None
    evaluator.not_empty(node, space, space.count, inner)
    full = space.full(evaluator.value(node.body, inner))
    order = sorted(range(len(space.axes)), key=lambda k: space.axes[k] in space.over)
    return Named(full.permute(order).reshape((*space.shape, -1)), space.kept)


def _listed(evaluator: Evaluator, node: ir.Reduce, space: Listing, inner: Env) -> Lists | None:
    if space.over or elements.shape(evaluator.bound, node.shape):
        return None
    if math.prod(space.lengths[axis] for axis in space.kept) * space.total_size > MOST_NUMBERS:
        return None
    block = space.whole()
    cell = block.cell.numpy()
    count = np.bincount(cell, minlength=space.entries)
    evaluator.not_empty(node, space, torch.from_numpy(count).to(torch.float64), inner)
    value = evaluator.in_block(node.body, inner, evaluator.leaves(node.body, space, inner)[0], block)
    full, order, first = block.full(value), np.argsort(cell, kind="stable"), np.cumsum(count) - count
    parts = []
    for length in np.unique(count).tolist():
        cells = np.flatnonzero(count == length)
        places = order[first[cells][:, None] + np.arange(length)]
        parts.append((torch.from_numpy(cells), full[..., torch.from_numpy(places)]))
    return Lists(shape=space.shape, parts=tuple(parts), finish=space.finish)


def _at_vertices(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """An affine body at the unit vectors, whose weighted mean it is on the simplex."""
    assert isinstance(node, ir.Reduce)
    (binder,) = node.binders
    assert isinstance(binder.domain, ir.VectorSet)
    axis, n = new_axis(), elements.shape(evaluator.bound, binder.domain.shape)[0]
    value = evaluator.value(node.body, {**env, binder: Named(torch.eye(n, dtype=torch.float64), (axis,))})
    return Named(value.data.movedim(value.axes.index(axis), -1), tuple(a for a in value.axes if a != axis))
