"""A bound problem as a conic program: the evaluator computes with affine functions instead of numbers.

Linear operations act on the rows as on a tensor. A nonlinear function becomes new variables, by the conic
form of its atom or reduction. A composition is convex if every condition on an estimate implies the
condition on the estimated function; this is checked when a condition is stated (M. Grant, S. Boyd, Y. Ye,
Disciplined convex programming, 2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from scipy import sparse

from fccomodel.conic import inner, level_sets
from fccomodel.conic.affine import NEITHER, OVER, UNDER, Affine, NotConic, joined, level, number
from fccomodel.conic.cones import Cones, assembled
from fccomodel.conic.program import Conic
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.interpret.reductions import collapse
from fccomodel.evaluation.interpret.spaces import Listing, Product, cells
from fccomodel.evaluation.sets import elements, members
from fccomodel.evaluation.sets.axes import Env, Named, align
from fccomodel.evaluation.sets.mapped import MappedTensor
from fccomodel.library import atoms, cones, maxima, reductions
from fccomodel.library.atoms import Interval

#: The largest number of entries of one value.
MAX_ENTRIES = 4_000_000
#: Largest violation of a constraint without variables that counts as rounding.
TOLERANCE = 1e-9

#: The side on which the estimates of a function must lie, by its curvature.
SIDES = {"convex": (OVER,), "concave": (UNDER,)}

#: By variable, its first column and its shape.
Layout = dict[str, tuple[int, tuple[int, ...]]]
#: By the label of a constraint: its block of rows, the row's number in it, the factor of its dual.
Blocks = dict[str, tuple[int, int, float]]


def conic(bound: Bound, where: Callable[[ir.Expr], Interval]) -> Conic:
    """The problem as a conic program.

    ``where`` gives an interval that contains each entry of an expression's value. Raises NotConic if there
    is no conic form by these rules, or if it is too large.
    """
    problem = bound.problem
    walk, layout = opened(bound, where)
    blocks: Blocks = {}
    for constraint in problem.constraints:
        family = members.of(bound, constraint)
        condition = stated(walk, constraint, family)
        if condition is not None:
            blocks |= _blocks(condition, family.labels(constraint.label))
    objective = walk.value(problem.objective.expr, {}).data
    if not isinstance(objective, Affine):
        raise NotConic("an objective without variables")
    sign = 1.0
    if problem.objective.sense != "minimize":
        sign = -1.0
    return _program(walk, layout, blocks, objective * sign, sign)


def _blocks(condition: tuple[int, float], labels: list[str]) -> Blocks:
    """The rows of a family's condition, by the labels of its members."""
    block, factor = condition
    return {label: (block, k, factor) for k, label in enumerate(labels)}


def relaxed(bound: Bound, where: Callable[[ir.Expr], Interval], sides: Mapping[str, float]) -> Conic:
    """The constraints that are conic, without an objective.

    An equation that is not affine is replaced by the inequality that is convex; ``sides`` has the sign of
    its violated body, by label. Raises NotConic if no constraint is left, or if the program is too large.
    """
    walk, layout = opened(bound, where)
    blocks: Blocks = {}
    for constraint in bound.problem.constraints:
        family = members.of(bound, constraint)
        labels = family.labels(constraint.label)
        try:
            condition = stated(walk, constraint, family)
        except NotConic:
            side = 0.0
            if constraint.kind == "eq" and len(labels) == 1:
                side = float(np.sign(sides.get(labels[0], 0.0)))
            condition = _one_side(walk, constraint, family, side)
        if condition is not None:
            blocks |= _blocks(condition, labels)
    if not blocks:
        raise NotConic("no constraint that is conic")
    zero = Affine(
        sparse.csr_matrix((1, walk.cones.columns)),
        np.zeros(1),
        np.zeros(1, dtype=np.int8),
        np.zeros((), dtype=int),
    )
    return _program(walk, layout, blocks, zero, 1.0)


def opened(bound: Bound, where: Callable[[ir.Expr], Interval]) -> tuple[Walk, Layout]:
    """A walk with the variables in their sets, and the columns of each variable in the program."""
    variables = bound.problem.variables
    if any(variable.net for variable in variables.values()):
        raise NotConic("a net's parameters")
    walk = Walk(bound, where)
    layout = {}
    for name, variable in variables.items():
        shape = elements.shape(bound, variable.shape)
        if math.prod(shape) > MAX_ENTRIES:
            raise NotConic("more variables than are held at once")
        layout[name] = (walk.cones.columns, shape)
        walk.point[name] = cast(torch.Tensor, walk.cones.variable(shape))
    for name, variable in variables.items():
        for declared in variable.sets:
            simple, args = walk.simple_set(declared)
            if simple.cone is None:
                raise NotConic(f"the set {simple.name}")
            simple.cone(walk.cones, walk.point[name], *args)
    return walk, layout


def _one_side(
    walk: Walk, constraint: ir.Constraint, family: members.Members, side: float
) -> tuple[int, float] | None:
    """The condition side * body <= 0, or None if it is not conic."""
    if not side:
        return None
    with suppress(NotConic):
        values = family.over(walk.value(constraint.body, family.env))
        if isinstance(values, Affine):
            return walk.cones.nonneg(values * -side), side
    return None


def _program(walk: Walk, layout: Layout, blocks: Blocks, objective: Affine, sign: float) -> Conic:
    """The program of all conditions that the walk has stated, with a row for each label."""
    program = assembled(walk.cones, objective)
    rows = {}
    for label, (block, k, factor) in blocks.items():
        rows[label] = (program.places[block] + k, factor)
    return Conic(program, sign, layout, rows)


def stated(walk: Walk, constraint: ir.Constraint, family: members.Members) -> tuple[int, float] | None:
    """The number of a constraint's condition, and the factor of its dual.

    None for a true constraint without variables.
    """
    body = constraint.body
    equal = constraint.kind == "eq"
    if not equal and not constraint.binders and not body.shape:
        bound_of_affine = level_sets.straight(walk, body, family.env)
        if bound_of_affine is not None:
            place, slope = bound_of_affine
            return place, 1.0 / slope
    try:
        values = family.over(walk.value(body, family.env))
        if isinstance(values, Affine):
            if equal:
                return walk.cones.zero(values), -1.0
            return walk.cones.nonneg(-values), 1.0
    except NotConic:
        if equal or constraint.binders:
            raise
        place, slope = level_sets.peeled(walk, body, family.env)
        return place, 1.0 / slope
    if equal:
        values = values.abs()
    if bool((values > TOLERANCE).any()):
        raise NotConic("a constraint without variables that does not hold")
    return None


class Walk(Evaluator):
    """An evaluator whose values are affine functions of the program's variables if they depend on the
    model's.
    """

    def __init__(self, bound: Bound, where: Callable[[ir.Expr], Interval]):
        super().__init__(bound, {}, chunk=1 << 62, shortcuts=False)
        self.cones = Cones()
        self.where = where

    def beside(self) -> Walk:
        """A walk of this model for another program."""
        return Walk(self.bound, self.where)

    def below(self, node: ir.Expr, env: Env, merged: frozenset[int] = frozenset()) -> tuple[ir.Expr, ...]:
        """The children to evaluate before a node; none for nested maxima, which are expanded."""
        if maxima.nested(node) is not None:
            return ()
        if _as_written(node):
            return super(Evaluator, self).inner(node, env)
        return super().below(node, env, merged)

    def compute(self, node: ir.Expr, env: Env) -> Named:
        """The value of a node, as written or in its stable form."""
        if self.numel(node, env) > MAX_ENTRIES:
            raise NotConic("more elements than are held at once")
        if _as_written(node):
            with suppress(NotConic):
                return self.uncut(node, env)
        return super().compute(node, env)

    def net(self, node: ir.NetCall, env: Env) -> Named:
        """A net has no conic form."""
        raise NotConic("a net")

    # ---------------------------------------------------------------------------------------- atoms
    def apply(self, node: ir.Apply, env: Env) -> Named:
        """The value of an atom: linear, a product, or by new variables."""
        pieces = maxima.nested(node)
        if pieces is not None:
            largest = self.largest(pieces, env)
            if largest is not None:
                return largest
        values = [self.value(arg, env) for arg in node.args if not isinstance(arg, ir.Label)]
        varying = [isinstance(value.data, Affine) for value in values]
        if not any(varying):
            return super().apply(node, env)
        atom = atoms.of(node)
        assert atom is not None
        if atom.linear(varying):
            return self.linear(node, atom, values, env)
        if all(varying) and atom.bilinear:
            return self.entropy(node, env) or self.square(node, env)
        return self.function(node, atom, values)

    def largest(self, pieces: list[ir.Expr], env: Env) -> Named | None:
        """The maximum of several terms by one new variable, or None if they are not all affine."""
        try:
            values = [self.value(piece, env) for piece in pieces]
        except NotConic:
            return None
        arrays, axes = align(values, entrywise=True)
        known: list[Any] = [array for array in arrays if isinstance(array, Affine)]
        if not known or not all(array.exact for array in known):
            return None
        return _named(cones.largest(self.cones, *arrays), axes)

    def linear(self, node: ir.Apply, atom: atoms.Atom, values: list[Named], env: Env) -> Named:
        """Apply a linear atom to rows as to tensors."""
        if node.op == "dot":
            return self.dot(*values)
        if node.op == "matmul":
            return self.product(*values)
        return super().apply(node, env)

    def product(self, u: Named, v: Named) -> Named:
        """The product ``u @ v`` of a matrix or vector and another."""
        left_is_vector = len(u.event) == 1
        right_is_vector = len(v.event) == 1
        (a, b), axes = align([u, v], entrywise=False)
        if left_is_vector:
            a = a.unsqueeze(-2)
        if right_is_vector:
            b = b.unsqueeze(-1)
        value = a @ b
        if right_is_vector:
            value = value.squeeze(-1)
        if left_is_vector:
            value = value.squeeze(-1 if right_is_vector else -2)
        return Named(value, axes)

    def column(self, node: ir.Column, env: Env) -> Named:
        """The values of a column, in memory: ``compute`` has refused those that are too many."""
        values = super().column(node, env)
        if isinstance(values.data, MappedTensor):
            return Named(values.data.whole(), values.axes)
        return values

    def dot(self, u: Named, v: Named) -> Named:
        """The inner product, if one of the factors is constant."""
        if not isinstance(u.data, Affine) and not isinstance(v.data, Affine):
            return super().dot(u, v)
        if isinstance(v.data, Affine) and not v.axes and len(u.axes) == 1:
            return Named(u.data @ v.data, u.axes)
        if isinstance(u.data, Affine) and not u.axes and len(v.axes) == 1:
            return Named(v.data @ u.data, v.axes)
        (a, b), axes = align([u, v], entrywise=False)
        if isinstance(a, Affine):
            products = a * b
        else:
            products = b * a
        return Named(products.sum(-1), axes)

    def square(self, node: ir.Apply, env: Env) -> Named:
        """A product of two functions of the variables that is a square or a quadratic form."""
        left, right = (self.value(arg, env) for arg in node.args)
        if node.op == "mul" and _same(left, right):
            entries = _rows(left.data.unsqueeze(-1))
            return _named(self.cones.squares(entries), left.axes)
        if node.op == "dot":
            if _same(left, right):
                return _named(self.cones.squares(_rows(left.data)), left.axes)
            for vector, other in (node.args, node.args[::-1]):
                form = self.quadratic_form(vector, other, env)
                if form is not None:
                    return form
        raise NotConic("a product of two functions of the variables")

    def quadratic_form(self, vector: ir.Expr, other: ir.Expr, env: Env) -> Named | None:
        """The form u.(M u) of a vector u and another expression M u with a constant matrix, or None."""
        if not isinstance(other, ir.Apply) or other.op != "matmul" or len(other.args) != 2:
            return None
        matrix, u = (self.value(arg, env) for arg in other.args)
        if isinstance(matrix.data, Affine) or matrix.axes:
            return None
        if not _same(u, self.value(vector, env)):
            return None
        return _named(self.form(number(matrix.data), _rows(u.data)), u.axes)

    def entropy(self, node: ir.Apply, env: Env) -> Named | None:
        """The product u log(u), as -entr(u)."""
        if node.op != "mul":
            return None
        for u, other in (node.args, node.args[::-1]):
            if not isinstance(other, ir.Apply) or other.op != "log":
                continue
            value = self.value(u, env)
            inside = self.value(other.args[0], env)
            if _same(value, inside):
                atom = atoms.get("entr")
                assert atom is not None and atom.cone is not None
                entropy: Any = atom.cone(self.cones, value.data)
                return Named(-entropy, value.axes)
        return None

    def form(self, matrix: np.ndarray, u: Affine) -> Affine:
        """The form u.M u of a matrix without negative (or without positive) eigenvalues."""
        eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        zero = 1e-12 * np.abs(eigenvalues).max()
        sign = -1.0
        if eigenvalues.min() >= -zero:
            sign = 1.0
        sizes = sign * eigenvalues
        if sizes.min() < -zero:
            raise NotConic("a quadratic form with eigenvalues of both signs")
        nonzero = sizes > zero
        columns = vectors[:, nonzero] * np.sqrt(sizes[nonzero])
        root = torch.from_numpy(columns.T.copy())
        if u.ndim == 1:
            return self.cones.squares(root @ u) * sign
        return self.cones.squares(u @ root.T) * sign

    def function(self, node: ir.Apply, atom: atoms.Atom, values: list[Named]) -> Named:
        """The value of a function that is convex or concave on its arguments' range, by new variables."""
        enclosures = [self.where(arg) for arg in node.args]
        varying = tuple(isinstance(value.data, Affine) for value in values)
        curvature = atom.curvature(*enclosures, varying=varying)
        if curvature not in ("convex", "concave", "affine", "constant"):
            raise NotConic(f"`{node.op}`, which is not known to be convex or concave where its argument lies")
        sides = set(SIDES.get(curvature, ()))
        scalar = isinstance(atom, atoms.ScalarAtom)
        of_matrix = isinstance(atom, atoms.ArrayAtom) and (
            atom.matrices or (atom.ball is not None and atom.ball.matrix)
        )
        arrays, axes = align(values, entrywise=scalar)
        names = atom.names(len(values))
        args: list[Any] = []
        for k, (array, value, name) in enumerate(zip(arrays, values, names, strict=True)):
            if name in atom.parameters:
                if array.numel() != 1 and not scalar:
                    raise NotConic(f"`{name}` of `{node.op}` differs from element to element")
                args.append(array if array.numel() != 1 else float(array))
                continue
            if isinstance(array, Affine) and not array.exact:
                norm = self.root_of_powers(atom, values, array)
                if norm is not None:
                    return _named(norm, axes)
                array, side = self.bounded(atom, enclosures, k, array)
                sides.add(side)
            if not scalar and not of_matrix:
                array = _entries(array, len(axes), len(value.event))
            args.append(array)
        result = self.by_parameters(node, atom, args)
        kinds = result.kind[result.index]
        if any((kinds == -side).any() for side in sides):
            raise NotConic(f"`{node.op}` where its argument lies")
        return _named(result, axes)

    def root_of_powers(self, atom: atoms.Atom, values: list[Named], array: Affine) -> Affine | None:
        """The p-th root of a sum of p-th powers as a norm, or None if it is not one."""
        p = _root(atom, values)
        if not p:
            return None
        return self.cones.norm_of(array, p)

    def by_parameters(self, node: ir.Apply, atom: atoms.Atom, args: list[Any]) -> Affine:
        """The value of a function, computed together for all elements with the same parameters."""
        names = atom.names(len(args))
        differs = []
        for name, arg in zip(names, args, strict=True):
            differs.append(name in atom.parameters and not isinstance(arg, float))
        own_parameters = [arg for arg, is_own in zip(args, differs, strict=True) if is_own]
        if not any(isinstance(arg, torch.Tensor) for arg in own_parameters):
            return self.estimate(node, atom, args)
        arrays = [arg for arg in args if not isinstance(arg, float)]
        shape = np.broadcast_shapes(*(tuple(array.shape) for array in arrays))
        flat = [_flat(arg, shape) for arg in args]
        parameters = [number(arg) for arg, is_own in zip(flat, differs, strict=True) if is_own]
        _, group = np.unique(np.stack(parameters), axis=1, return_inverse=True)
        group = group.reshape(-1)
        places = [np.flatnonzero(group == k) for k in range(group.max() + 1)]
        parts = []
        for place in places:
            of_group = _of_elements(flat, differs, place)
            parts.append(self.estimate(node, atom, of_group))
        whole = joined(parts)
        index = np.empty_like(group)
        index[np.concatenate(places)] = whole.index
        return whole.laid(index.reshape(shape))

    def estimate(self, node: ir.Apply, atom: atoms.Atom, args: list[Any]) -> Affine:
        """The value of a function by the conic form of its atom."""
        result = None
        if atom.cone is not None:
            result = atom.cone(self.cones, *args)
        elif atom.extreme:
            sign = float(atom.extreme)
            result = cones.largest(self.cones, *(arg * sign for arg in args)) * sign
        elif isinstance(atom, atoms.ScalarAtom) and atom.graph is not None:
            u, *parameters = args
            graph = atom.subdifferential(*parameters)
            result = cones.piecewise(self.cones, graph, lambda x: float(atom.value(x, *parameters)), u)
        elif isinstance(atom, atoms.ArrayAtom) and atom.ball is not None:
            result = self.norm(atom, args)
        if result is None:
            raise NotConic(f"`{node.op}`, which is no conic function")
        return result

    def norm(self, atom: atoms.ArrayAtom, args: list[Any]) -> Affine | None:
        """The value of a norm, or of a sum of the norms of groups of equal size; or None."""
        assert atom.ball is not None
        if not atom.in_groups:
            return cones.norm(self.cones, atom.ball.kind, args[0])
        u, size = args[:2]
        entries = u.unflatten(-1, (-1, int(size)))
        groups = cones.norm(self.cones, atom.ball.kind, entries)
        if groups is None:
            return None
        return groups.sum(-1)

    def bounded(
        self, atom: atoms.Atom, enclosures: list[Interval], k: int, array: Affine
    ) -> tuple[Affine, int]:
        """New variables above an upper (below a lower) estimate, from which on the function is monotone.

        Also returns the side on which the function's own estimate must then lie.
        """
        entries = array.kind[array.index]
        kinds = {kind for kind in (OVER, UNDER, NEITHER) if (entries == kind).any()}
        where = enclosures[k]
        if kinds == {OVER}:
            keeps, reverses = "increasing", "decreasing"
            beyond = Interval(where.lo, math.inf)
        elif kinds == {UNDER}:
            keeps, reverses = "decreasing", "increasing"
            beyond = Interval(-math.inf, where.hi)
        else:
            raise NotConic("estimates from above and from below in one value")
        ranges = [*enclosures[:k], beyond, *enclosures[k + 1 :]]
        varying = tuple(name not in atom.parameters for name in atom.names(len(ranges)))
        direction = atom.monotone(*ranges, argument=k)
        curvature = atom.curvature(*ranges, varying=varying)
        sides = {
            ("convex", keeps): OVER,
            ("affine", keeps): OVER,
            ("concave", reverses): UNDER,
            ("affine", reverses): UNDER,
        }
        side = sides.get((curvature, direction))
        if side is None:
            raise NotConic("a function that is not monotone, of one that is not affine")
        fresh = self.cones.variable(tuple(array.shape))
        if kinds == {OVER}:
            self.cones.nonneg(fresh - array)
        else:
            self.cones.nonneg(array - fresh)
        return fresh, side

    # ----------------------------------------------------------------------------------- reductions
    def reduce(self, node: ir.Reduce, env: Env) -> Named:
        """The value of a reduction; over a set of vectors by the dual program."""
        if any(isinstance(binder.domain, ir.VectorSet) for binder in node.binders):
            return inner.value(self, node, env)
        return super().reduce(node, env)

    def over(self, node: ir.Reduce, space: Product | Listing, inner: Env) -> Named:
        """The value of a reduction over elements, if these and their cones are few enough."""
        axes = (*space.kept, *space.over)
        size = math.prod(space.lengths[axis] for axis in axes)
        if isinstance(space, Listing):
            size *= space.total_size
        if size > MAX_ENTRIES:
            raise NotConic("more elements than are held at once")
        kind = reductions.of(node)
        options = self.options(node, space, inner)
        curved = sum(_curved(part.op) * self.numel(part, inner) for part in _functions(node.body))
        if ir.variables_of(node.body):
            curved += size * _curved_by(kind, options)
        self.cones.room(curved)
        whole = space if isinstance(space, Product) else space.whole()
        self.not_empty(node, space, whole.count, inner)
        if isinstance(whole, Product):
            value = self.value(node.body, inner)
        else:
            leaves, _ = self.leaves(node.body, space, inner)
            value = self.in_block(node.body, inner, leaves, whole)
        if kind.linear or not isinstance(value.data, Affine):
            return collapse(kind, whole, value, options)
        full = whole.full(value)
        scalars = whole.full(Named(torch.zeros(())))
        if len(full.shape) > len(scalars.shape):
            raise NotConic(f"`{node.kind}` of arrays")
        by_cell = self.reduced(node, kind, full, whole, options)
        return whole.finish(by_cell.reshape(space.shape))

    def reduced(
        self, node: ir.Reduce, kind: reductions.Reduction, full: Affine, whole: Any, options: dict[str, Any]
    ) -> Affine:
        """The value of a reduction for each cell of the elements."""
        space = whole if isinstance(whole, Product) else whole.space
        counts = whole.count.expand(space.shape).reshape(-1)
        shape = tuple(full.shape)
        places = cells(whole, torch.zeros(()).expand(shape)).numpy()
        terms = full.reshape(-1)
        if kind.cone is not None:
            if not terms.exact and not kind.increasing:
                raise NotConic(f"`{node.kind}` of what is not affine")
            value = kind.cone(self.cones, terms, places, counts, options)
            if value is None:
                raise NotConic(f"`{node.kind}` at these options")
            return value
        if kind.cap is not None:
            caps = kind.cap(counts, options).expand(counts.shape).numpy()
            return cones.heaviest(self.cones, terms * kind.sign, places, caps) * kind.sign
        raise NotConic(f"`{node.kind}`, which is no conic function")


def _as_written(node: ir.Expr) -> bool:
    """Whether a root or a reduction with a cone is tried before its numerically stable form."""
    if isinstance(node, ir.Reduce):
        return reductions.of(node).cone is not None
    atom = atoms.of(node)
    return isinstance(atom, atoms.ScalarAtom) and (atom.exponent == 0.5 or atom.exponent in atom.parameters)


def _functions(body: ir.Expr) -> Iterator[ir.Apply]:
    """The functions of the variables, outside reductions, that need cones which are not
    symmetric."""
    stack = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Apply) and _curved(node.op) and ir.variables_of(node):
            yield node
        stack.extend(() if isinstance(node, ir.Reduce) else node.children)


@cache
def _curved(name: str) -> int:
    """The number of such cones for each entry of a function of one number."""
    atom = atoms.get(name)
    trial = Cones()
    if isinstance(atom, atoms.ScalarAtom) and atom.cone is not None and len(atom.arguments) == 1:
        atom.cone(trial, trial.variable(()))
    return trial.curved


def _curved_by(kind: reductions.Reduction, options: dict[str, Any]) -> int:
    """The number of such cones for each element of a reduction, from a reduction of two elements."""
    if kind.cone is None:
        return 0
    trial = Cones()
    few = 2
    places = np.zeros(few, dtype=np.int64)
    count = torch.full((1,), float(few))
    with suppress(NotConic):
        kind.cone(trial, trial.variable((few,)), places, count, options)
    return trial.curved // few


def _root(atom: atoms.Atom, values: list[Named]) -> float:
    """The p > 1 of a p-th root, else 0."""
    exponent = None
    if isinstance(atom, atoms.ScalarAtom):
        exponent = atom.exponent
    if exponent in atom.parameters:
        exponent = float(values[-1].data)
    if not isinstance(exponent, float) or not 0 < exponent < 1:
        return 0.0
    p = 1 / exponent
    if abs(p - round(p)) < 1e-12:
        return float(round(p))
    return p


def _named(value: Affine, axes: tuple[int, ...]) -> Named:
    return Named(cast(torch.Tensor, value), axes)


def _rows(value: Any) -> Affine:
    assert isinstance(value, Affine)
    return value


def _flat(argument: Any, shape: tuple[int, ...]) -> Any:
    """An argument for each element of a shape, in one row; a number stays as it is."""
    if isinstance(argument, float):
        return argument
    return argument.expand(shape).reshape(-1)


def _of_elements(arguments: Sequence[Any], equal: Sequence[bool], place: np.ndarray) -> list[Any]:
    """The arguments of some elements; those that are ``equal`` there as one number."""
    chosen: list[Any] = []
    for argument, is_equal in zip(arguments, equal, strict=True):
        if not isinstance(argument, float):
            argument = argument[torch.from_numpy(place)]
        chosen.append(float(argument[0]) if is_equal else argument)
    return chosen


def _same(left: Named, right: Named) -> bool:
    """Whether two arrays are the same functions, entry by entry."""
    a = _rows(left.data)
    b = _rows(right.data)
    if a is b:
        return True
    if left.axes != right.axes or a.index.shape != b.index.shape:
        return False
    rows_a, const_a, _ = a.entries()
    rows_b, const_b, _ = b.entries()
    rows_a, rows_b = level(rows_a, rows_b)
    return bool((const_a == const_b).all()) and (rows_a != rows_b).nnz == 0


def _entries(array: Any, axes: int, event: int) -> Any:
    """The array with its own dimensions merged into one."""
    if event <= 1:
        return array
    return array.flatten(axes, axes + event - 1)
