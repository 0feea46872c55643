"""Non-smooth functions (max, cvar, abs, pos, norms) as maxima over weights:

    phi(t) = max over q in Q of q.t

Optimality conditions choose the weights. Every q in Q is a subgradient of phi at t, up to an error
of ``phi(t) - q.t``.
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
from fccomodel.evaluation.sets.axes import Env, Named, align, new_axis, spread
from fccomodel.library import atoms, reductions, sets
from fccomodel.library.kinks import kinked
from fccomodel.library.reductions.variance import VARIANCE
from fccomodel.report.kinks import nested_maxima
from fccomodel.report.kinks.weights import WeightSet

#: Numbers that the terms of a kink may have, at most.
MOST_NUMBERS = 1 << 21
#: Members of a family with a ball of distributions each, at most.
MOST_BALLS = 200
#: Terms of a kink up to which all kinks inside it are weighed; else only those near their own kinks.
MOST_OUTER = 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class Lists:
    """The elements of a reduction whose condition gives each cell a list of its own.

    shape    of the result
    parts    for each length, and for each set of weights: the cells with such lists, and their elements,
             (axes kept, cells, elements)
    finish   gives a result, (axes kept, cells), its axes again
    sets     the weights of each part; empty if all parts with equally many elements share a set
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    finish: Callable[[torch.Tensor], Named]
    sets: tuple[WeightSet, ...] = ()

    def weights(self, part: int, same: WeightSet) -> WeightSet:
        """The weights of a part: a set of its own, or the set ``same``."""
        if not self.sets:
            return same
        return self.sets[part]


Terms = Callable[[Evaluator, ir.Expr, Env], Named | Lists | None]


# -------------------------------------------------------------------------------------------- kinks
@dataclass(frozen=True, eq=False, kw_only=True)
class Kink:
    """A node phi(t) with a kink.

    weights   the set Q, from the evaluator and the number of terms
    terms     evaluates the terms t: the node's axes, then one dim of terms
    sign      -1 for a minimum
    signed    weights may be negative
    rows      inside an expectation or another reduction: there is one instance for every row
    nested    inside a kink that has an instance for every row, or many terms
    smooth    the node is phi(t) plus a function without a kink
    beside    another kink: the node is the sum of both and a constant
    """

    node: ir.Expr
    weights: Callable[[Evaluator, int], WeightSet]
    terms: Terms
    sign: float = 1.0
    signed: bool = False
    rows: bool = False
    nested: bool = False
    smooth: bool = False
    beside: Kink | None = None

    @property
    def weighed(self) -> tuple[ir.Expr, ...]:
        """The expressions that the terms are, or are affine functions of."""
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


@dataclass(frozen=True, eq=False)
class _Place:
    """A node and its surroundings.

    rows     inside an expectation
    nested   inside another kink
    apart    binders that tell the terms of an outer kink with many terms apart; None outside of these
    """

    node: ir.Expr
    rows: bool = False
    nested: bool = False
    apart: frozenset[ir.Binder] | None = None


class _Finder:
    """Collects ``kinks`` by node id, and those ``left`` out, with the reason."""

    def __init__(self, bound: Bound):
        self.bound = bound
        self.kinks: dict[int, Kink] = {}
        self.left: dict[int, tuple[ir.Expr, str]] = {}

    def search(self, roots: Iterable[ir.Expr]) -> None:
        """Look at all nodes with variables, each once."""
        seen: set[int] = set()
        stack = [_Place(root) for root in roots]
        while stack:
            place = stack.pop()
            if id(place.node) in seen or not ir.variables_of(place.node):
                continue
            seen.add(id(place.node))
            kink = of(place.node)
            if kink is None:
                stack.extend(self._below(place))
            elif not self._refused(place):
                stack.extend(self._kept(place, kink))

    def _refused(self, place: _Place) -> bool:
        """Whether a kink has too many instances, or is in many terms of another one."""
        node = place.node
        if place.rows and not _countable(self.bound, node):
            self.left[id(node)] = (node, "inside an expectation")
            _inside(_bodies(node), "inside an expectation", self.left)
            return True
        free = set(ir.free_binders(node))
        if place.apart is not None and free and not place.apart <= free:
            self.left[id(node)] = (node, "inside many terms of another such function")
            _inside(_bodies(node), "inside another such function", self.left)
            return True
        return False

    def _kept(self, place: _Place, kink: Kink) -> list[_Place]:
        """Keep a kink; the bodies that may have kinks inside."""
        node, many = place.node, place.apart is not None
        each = place.rows or (place.nested and bool(ir.free_binders(node)))
        beside = kink.beside
        if beside is not None:
            beside = replace(beside, rows=each, nested=many)
        self.kinks[id(node)] = replace(kink, rows=each, nested=many, beside=beside)
        if not place.rows and not many and _few(self.bound, node):
            return [_Place(body, False, True) for body in kink.weighed]
        if isinstance(node, ir.Reduce):
            own = node.binders
        else:
            own = ()
        apart = frozenset((*ir.free_binders(node), *own))
        return [_Place(body, True, True, apart) for body in kink.weighed]

    def _below(self, place: _Place) -> list[_Place]:
        """The parts of a node that is no kink of a known form."""
        node = place.node
        if isinstance(node, ir.Reduce):
            rows = place.rows or any(binder.kind == "~" for binder in node.binders)
            return [replace(place, node=node.body, rows=rows)]
        if isinstance(node, ir.LetRef):
            return [replace(place, node=node.let.body)]
        if kinked(node):
            self.left[id(node)] = (node, "inside an expectation" if place.rows else "")
        return [replace(place, node=child) for child in node.children]


def find(bound: Bound, roots: Iterable[ir.Expr]) -> tuple[dict[int, Kink], list[tuple[ir.Expr, str]]]:
    """The kinks of some expressions by node id, at any depth, and those that are left out, with the
    reason.

    A kink inside another one is kept if it is in one of the outer one's terms or in all of them, or
    if these are few. It is left out if it has too many instances, or is in many terms.
    """
    finder = _Finder(bound)
    finder.search(roots)
    return finder.kinks, [item for key, item in finder.left.items() if key not in finder.kinks]


def _few(bound: Bound, node: ir.Expr) -> bool:
    """Whether the node has at most ``MOST_OUTER`` terms."""
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
    """Whether the node has one value per row, for few enough rows to hold in memory."""
    domains = [binder.domain for binder in ir.free_binders(node)]
    if any(isinstance(domain, ir.Distribution | ir.VectorSet) for domain in domains):
        return False
    return math.prod(elements.extent(bound, domain) for domain in domains) <= MOST_NUMBERS


def _bodies(node: ir.Expr) -> tuple[ir.Expr, ...]:
    """The expressions directly inside a node."""
    if isinstance(node, ir.Reduce):
        return (node.body,)
    return node.children


def _inside(roots: tuple[ir.Expr, ...], why: str, left: dict[int, tuple[ir.Expr, str]]) -> None:
    """Enter all kinks below the roots into ``left``, with the reason."""
    for root in roots:
        for node in ir.walk(root):
            if kinked(node) and ir.variables_of(node):
                left.setdefault(id(node), (node, why))


#: Weights of the terms of a maximum.
SIMPLEX = WeightSet(kind="simplex")
#: Weights of an absolute value.
BOX = WeightSet(kind="box", low=-1.0, high=1.0)
#: Weights of a positive part.
SHARE = WeightSet(kind="box", low=0.0, high=1.0)


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
    """A maximum (``sign`` -1: minimum) with the maxima inside it absorbed."""
    terms = partial(nested_maxima.terms, sign=sign, most=MOST_NUMBERS)
    return Kink(
        node=node, weights=_fixed(SIMPLEX), terms=terms, sign=sign, signed=nested_maxima.signed(node, sign)
    )


def _of_atom(node: ir.Apply, atom: atoms.Atom | None) -> Kink | None:
    """The kink of an atom, or None: a maximum or minimum of the arguments, a norm, a root of squares,
    a maximum of affine functions of a number, or a function whose slope jumps."""
    if isinstance(atom, atoms.ArrayAtom):
        if atom.ball is not None:
            return Kink(node=node, weights=partial(_ball, node=node), terms=_entries, signed=True)
        return None
    if not isinstance(atom, atoms.ScalarAtom):
        return None
    if nested_maxima.nested(node, float(atom.extreme or 1)):
        return _largest(node, float(atom.extreme or 1))
    if atom.extreme:
        return Kink(node=node, weights=_fixed(SIMPLEX), terms=_arguments, sign=float(atom.extreme))
    if (root := _below_root(node)) is not None:
        weights = _fixed(WeightSet(kind="ball" if root.signed else "positive"))
        return Kink(node=node, weights=weights, terms=partial(_roots, root=root), signed=root.signed)
    if node.op == "clip":
        low = Kink(node=node, weights=_fixed(SHARE), terms=partial(_past, end=1), sign=1)
        high = Kink(node=node, weights=_fixed(SHARE), terms=partial(_past, end=2), sign=-1)
        return replace(low, signed=True, beside=high)
    return _of_affine_pieces(node, atom)


def _of_affine_pieces(node: ir.Apply, atom: atoms.ScalarAtom) -> Kink | None:
    """A maximum of affine functions of a number, or a function whose slope jumps; None for others."""
    pieces = () if atom.variadic else atom.affine_pieces(*atom.typical)
    varying = any(ir.free_binders(arg) for arg in node.args[1:])
    if len(pieces) < 2:
        if atom.graph is None or not atom.kinked or varying:
            return None
        return Kink(node=node, weights=_fixed(BOX), terms=_jumps, signed=True, smooth=True)
    signed = any(slope < 0 for slope, _ in pieces)
    if varying or any(shift for _, shift in pieces):
        return Kink(node=node, weights=_fixed(SIMPLEX), terms=_pieces, signed=signed)
    return Kink(node=node, weights=partial(_slopes, node=node), terms=_argument, signed=signed)


@dataclass(frozen=True, kw_only=True)
class SquareRootKink:
    """A square root of u^2, or of a sum or mean of such squares.

    over     the reduction that adds them up; None for a single square
    signed   False if only the positive part of u is squared
    mean     a variance: u less its mean is squared
    """

    u: ir.Expr
    over: ir.Reduce | None = None
    signed: bool = True
    mean: bool = False


def _below_root(node: ir.Apply) -> SquareRootKink | None:
    """The squares below a root, or None if the node is no root of squares."""
    power = atoms.as_power(node)
    if power is None or not isinstance(power[1], ir.Const) or power[1].value != 0.5:
        return None
    over = power[0]
    if not isinstance(over, ir.Reduce):
        return _square(over, None)
    if any(isinstance(binder.domain, ir.Distribution | ir.VectorSet) for binder in over.binders):
        return None
    if reductions.of(over) is VARIANCE:
        return SquareRootKink(u=over.body, over=over, mean=True)
    if reductions.of(over).additive:
        return _square(over.body, over)
    return None


def _square(expr: ir.Expr, over: ir.Reduce | None) -> SquareRootKink | None:
    """The root of this expression, or None if it is no square."""
    u = atoms.squared(expr)
    base = expr if u is None else u
    atom = atoms.of(base)
    if atom is not None and "sqhinge" in (atom.name, atom.squared):
        return SquareRootKink(u=base.children[0], over=over, signed=False)
    if u is None:
        return None
    return SquareRootKink(u=u, over=over)


def _slopes(evaluator: Evaluator, count: int, node: ir.Apply) -> WeightSet:
    """The weights of a maximum of multiples of a number: from the least to the largest multiple."""
    atom = atoms.of(node)
    assert isinstance(atom, atoms.ScalarAtom)
    slopes = [
        slope
        for slope, _ in atom.affine_pieces(*(float(evaluator.value(arg, {}).data) for arg in node.args[1:]))
    ]
    return WeightSet(kind="box", low=min(slopes), high=max(slopes))


def _ball(evaluator: Evaluator, count: int, node: ir.Apply) -> WeightSet:
    """The weights of a norm: the unit ball of the dual norm."""
    atom = atoms.of(node)
    assert isinstance(atom, atoms.ArrayAtom) and atom.ball is not None
    columns = 0
    if atom.ball.matrix:
        columns = elements.shape(evaluator.bound, node.args[0].shape)[-1]
    if atom.in_groups:
        columns = int(evaluator.value(node.args[-1], {}).data)
    return WeightSet(kind=atom.ball.kind, low=-1.0 if atom.ball.kind == "box" else 0.0, columns=columns)


def _fixed(weights: WeightSet) -> Callable[[Evaluator, int], WeightSet]:
    """Weights that do not depend on data."""
    return lambda evaluator, count: weights


def _weights(evaluator: Evaluator, count: int, node: ir.Reduce) -> WeightSet:
    """The weights of a reduction's elements: a simplex whose weights have an upper limit.

    If the limit depends on an index, it comes with the elements (see ``Lists.sets``).
    """
    cap = reductions.of(node).cap
    assert cap is not None
    if _varies(node):
        return SIMPLEX
    alone = Product(over=(), kept=(), lengths={})
    high = float(cap(torch.tensor(count, dtype=torch.float64), evaluator.options(node, alone, {})))
    return WeightSet(kind="simplex", high=min(1.0, high))


def _varies(node: ir.Reduce) -> bool:
    """Whether an option of a reduction depends on an index."""
    return any(ir.free_binders(option) for option in node.options.values())


def _over_vectors(node: ir.Reduce, sign: float) -> Kink | None:
    """A maximum of an affine function over a simplex: the weights are the model's own."""
    (binder,) = node.binders
    domain, form = binder.domain, inner_maximum.recognise(node.body, binder)
    if not isinstance(domain, ir.VectorSet) or sets.all()[domain.family].cap is None:
        return None
    if form is None or form.divergence:
        return None
    if node.condition is not None:
        return _over_ball(node, sign)

    def weights(evaluator: Evaluator, count: int) -> WeightSet:
        """The weights of the maximum: a simplex with the set's cap."""
        return WeightSet(kind="simplex", high=min(1.0, inner_maximum.cap(evaluator, domain, count)))

    return Kink(node=node, weights=weights, terms=_at_vertices, sign=sign)


def _over_ball(node: ir.Reduce, sign: float) -> Kink | None:
    """A maximum over a ball of distributions; each member of a family may have a ball of its own."""
    ball = inner_maximum.recognise_ball(node)
    if ball is None:
        return None
    if ir.free_binders(ball.reference) or ir.free_binders(ball.radius):
        terms = partial(_at_vertices_of_each, ball=ball)
        return Kink(node=node, weights=_fixed(SIMPLEX), terms=terms, sign=sign)

    def weights(evaluator: Evaluator, count: int) -> WeightSet:
        """The ball."""
        centre = inner_maximum.centre_of(evaluator, ball, {}).data.expand(count)
        radius = float(evaluator.value(ball.radius, {}).data) / ball.unit
        return WeightSet(kind=ball.divergence, centre=tuple(centre.tolist()), radius=radius)

    return Kink(node=node, weights=weights, terms=_at_vertices, sign=sign)


# -------------------------------------------------------------------------------------------- terms
def _argument(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The first argument as the only term."""
    assert isinstance(node, ir.Apply)
    value = evaluator.value(node.args[0], env)
    return Named(value.data.unsqueeze(-1), value.axes)


def _past(evaluator: Evaluator, node: ir.Expr, env: Env, end: int) -> Named:
    """The term of one half of clip(u, lo, hi) = lo + pos(u - lo) - pos(u - hi).

    It is u - lo for ``end`` 1, and hi - u for ``end`` 2: the least of its multiples in [0, 1] is
    -pos(u - hi).
    """
    assert isinstance(node, ir.Apply)
    argument, bound = evaluator.value(node.args[0], env), evaluator.value(node.args[end], env)
    (u, limit), axes = align([argument, bound], entrywise=True)
    if end == 1:
        beyond = u - limit
    else:
        beyond = limit - u
    return Named(beyond.unsqueeze(-1), axes)


def _jumps(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """(u - x) J / 2 for each place x where the slope jumps by J. The rest of the function has the mean
    of both slopes there."""
    atom = atoms.of(node)
    assert isinstance(node, ir.Apply) and isinstance(atom, atoms.ScalarAtom)
    points, *_ = atom.subdifferential(*(float(evaluator.value(arg, {}).data) for arg in node.args[1:]))
    value = evaluator.value(node.args[0], env)
    rises = []
    for (x, slope), (next_x, next_slope) in itertools.pairwise(points):
        if x == next_x and slope != next_slope:
            rises.append((x, next_slope - slope))
    if rises:
        distances = [(value.data - x) * (rise / 2) for x, rise in rises]
        return Named(torch.stack(distances, -1), value.axes)
    return None


def _pieces(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The affine functions whose maximum the atom is, at the values of its parameters."""
    atom = atoms.of(node)
    assert isinstance(node, ir.Apply) and isinstance(atom, atoms.ScalarAtom)
    (value, *parameters), axes = align([evaluator.value(arg, env) for arg in node.args], entrywise=True)
    value, *parameters = torch.broadcast_tensors(value, *parameters)
    if parameters:
        parameter_rows = torch.stack([parameter.detach().reshape(-1) for parameter in parameters], -1)
        kinds, which = parameter_rows.unique(dim=0, return_inverse=True)
        pieces = torch.tensor([atom.affine_pieces(*kind) for kind in kinds.tolist()], dtype=torch.float64)[
            which
        ]
    else:
        pieces = torch.tensor(atom.affine_pieces(), dtype=torch.float64)
    if parameters:
        shape = value.shape
    else:
        shape = ()
    slope, shift = (pieces[..., k].reshape(*shape, -1) for k in range(2))
    return Named(value.unsqueeze(-1) * slope + shift, axes)


def _roots(evaluator: Evaluator, node: ir.Expr, env: Env, root: SquareRootKink) -> Named | None:
    """The terms that are squared below the root, times the root of their weight: their Euclidean
    length is the value of the root."""
    if root.over is None:
        value = evaluator.value(root.u, env)
        return Named(value.data.unsqueeze(-1), value.axes)
    space, inner = ranging.space(evaluator, root.over, env)
    if not isinstance(space, Product) or math.prod(space.lengths.values()) > MOST_NUMBERS or root.over.shape:
        return None
    evaluator.not_empty(root.over, space, space.count, inner)
    full = space.full(evaluator.value(root.u, inner))
    order = sorted(range(len(space.axes)), key=lambda k: space.axes[k] in space.over)
    share = 1.0
    if not reductions.of(root.over).total:
        share = float(space.count) ** -0.5
    terms = full.permute(order).reshape((*space.shape, -1))
    if root.mean:
        terms = terms - terms.mean(-1, keepdim=True)
    return Named(terms * share, space.kept)


def _entries(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The entries of the first argument."""
    assert isinstance(node, ir.Apply)
    value = evaluator.value(node.args[0], env)
    return Named(value.data.flatten(len(value.axes)), value.axes)


def _arguments(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The arguments of an atom."""
    assert isinstance(node, ir.Apply)
    tensors, axes = align([evaluator.value(arg, env) for arg in node.args], entrywise=True)
    return Named(torch.stack(torch.broadcast_tensors(*tensors), -1), axes)


def _reduced(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | Lists | None:
    """The elements of a reduction, or None if they are too many or no numbers."""
    assert isinstance(node, ir.Reduce)
    space, inner = ranging.space(evaluator, node, env)
    if isinstance(space, Listing):
        return _listed(evaluator, node, space, inner)
    if not isinstance(space, Product) or math.prod(space.lengths.values()) > MOST_NUMBERS:
        return None
    if elements.shape(evaluator.bound, node.shape):
        return None
    evaluator.not_empty(node, space, space.count, inner)
    full = space.full(evaluator.value(node.body, inner))
    order = sorted(range(len(space.axes)), key=lambda k: space.axes[k] in space.over)
    table = full.permute(order).reshape((*space.shape, -1))
    if not _varies(node):
        return Named(table, space.kept)
    count = torch.full((math.prod(space.shape),), table.shape[-1], dtype=torch.float64)
    caps = _caps(evaluator, node, space, inner, count)
    rows = table.reshape(len(count), -1)
    same = [np.flatnonzero(caps == cap) for cap in np.unique(caps)]
    return Lists(
        shape=(len(count),),
        parts=tuple((torch.from_numpy(cells), rows[torch.from_numpy(cells)]) for cells in same),
        finish=lambda result: Named(result.reshape(space.shape), space.kept),
        sets=tuple(map(_capped, np.unique(caps).tolist())),
    )


def _capped(cap: float) -> WeightSet:
    """The weights of a simplex with this largest weight."""
    return replace(SIMPLEX, high=min(1.0, cap))


def _caps(
    evaluator: Evaluator, node: ir.Reduce, space: Product | Listing, inner: Env, count: torch.Tensor
) -> np.ndarray:
    """The largest weight of an element, for each entry of a reduction with so many elements each."""
    cap = reductions.of(node).cap
    assert cap is not None
    return cap(count, evaluator.options(node, space, inner)).expand(count.shape).numpy()


def _listed(evaluator: Evaluator, node: ir.Reduce, space: Listing, inner: Env) -> Lists | None:
    """The elements of a reduction with a list for each cell, or None if they are too many."""
    if space.over or elements.shape(evaluator.bound, node.shape) or (space.kept and _varies(node)):
        return None
    if math.prod(space.lengths[axis] for axis in space.kept) * space.total_size > MOST_NUMBERS:
        return None
    block = space.whole()
    cell = block.cell.numpy()
    count = np.bincount(cell, minlength=space.entries)
    evaluator.not_empty(node, space, torch.from_numpy(count).to(torch.float64), inner)
    value = evaluator.in_block(node.body, inner, evaluator.leaves(node.body, space, inner)[0], block)
    full = block.full(value)
    order = np.argsort(cell, kind="stable")
    first = np.cumsum(count) - count
    caps = np.zeros(len(count))
    if _varies(node):
        caps = _caps(evaluator, node, space, inner, torch.from_numpy(count).to(torch.float64))
    parts = []
    kinds = np.unique(np.stack([count, caps]), axis=1).T.tolist()
    for length, cap in kinds:
        cells = np.flatnonzero((count == length) & (caps == cap))
        places = order[first[cells][:, None] + np.arange(int(length))]
        parts.append((torch.from_numpy(cells), full[..., torch.from_numpy(places)]))
    given = tuple(_capped(cap) for _, cap in kinds) if _varies(node) else ()
    return Lists(shape=space.shape, parts=tuple(parts), finish=space.finish, sets=given)


def _at_vertices_of_each(
    evaluator: Evaluator, node: ir.Expr, env: Env, ball: inner_maximum.Ball
) -> Lists | None:
    """The values at the unit vectors, where each member of a family has a ball of its own; None for many."""
    value = _at_vertices(evaluator, node, env)
    assert isinstance(node, ir.Reduce) and value is not None
    lengths = evaluator.axes(node, env)
    axes = tuple(sorted(lengths))
    shape = tuple(lengths[axis] for axis in axes)
    count, n = math.prod(shape), value.data.shape[-1]
    if count > MOST_BALLS:
        return None
    rows = spread(value, axes, 1).expand(*shape, n).reshape(count, n)
    centres = spread(inner_maximum.centre_of(evaluator, ball, env), axes, 1).expand(*shape, n)
    radii = spread(evaluator.value(ball.radius, env), axes, 0).detach().expand(shape).reshape(-1) / ball.unit
    each = zip(centres.reshape(count, n).tolist(), radii.tolist(), strict=True)
    return Lists(
        shape=(count,),
        parts=tuple((torch.tensor([k]), rows[[k]]) for k in range(count)),
        finish=lambda result: Named(result.reshape(shape), axes),
        sets=tuple(
            WeightSet(kind=ball.divergence, centre=tuple(centre), radius=radius) for centre, radius in each
        ),
    )


def _at_vertices(evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
    """The values of an affine body at the unit vectors. On the simplex it is their weighted mean."""
    assert isinstance(node, ir.Reduce)
    (binder,) = node.binders
    assert isinstance(binder.domain, ir.VectorSet)
    axis, n = new_axis(), elements.shape(evaluator.bound, binder.domain.shape)[0]
    vertices = Named(torch.eye(n, dtype=torch.float64), (axis,))
    value = evaluator.value(node.body, {**env, binder: vertices})
    axes_left = tuple(a for a in value.axes if a != axis)
    return Named(value.data.movedim(value.axes.index(axis), -1), axes_left)
