"""Bounds of the rounding in values at a point: a running error analysis, written as expressions of the
model.

Beside the value v of each node there is a bound e of the error with which it is computed (N.
Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.3). With the unit roundoff u
and the errors of the arguments,

    a + b        e_a + e_b + u |a + b|                   f(a)        sup |f'| e_a within e_a of a, + u |f(a)|
    a b          |a| e_b + |b| e_a + e_a e_b + u |a b|
    sums         the sum of the terms' errors, +
                 k u times that of their sizes
    a . b        the same by entries, + k u |a| . |b|
    maxima       the largest of the terms' errors

The bounds are expressions themselves, which the evaluator computes. They add the sizes of the terms,
not the size of their sum, so that cancelling shows. Each variable has an error r, which is a variable
of its own and is 0. The derivative of e in r_j is the sum of the sizes of all terms of the gradient's
entry j, which bounds the rounding of the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.rewrite import apply, const
from fccomodel.core.work import Meter
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.passes import amount
from fccomodel.evaluation.sets import elements, members
from fccomodel.library import atoms, reductions
from fccomodel.report.point.system import Array, System

#: The unit roundoff of float64.
UNIT = 2.0**-53
#: Roundings in the value of an atom.
ATOM_ROUNDINGS = 4.0
#: Roundings in a sum over a set, whose parts are summed pairwise.
SUM_ROUNDINGS = 64.0
#: Evaluations that the bounds take.
PASSES = 8
#: Counted seconds of an evaluation of a bound for each element: it forms all pairs of rows, also where
#: the value itself is found without them.
ELEMENT_SECONDS = 2e-8
#: Start of the names of the variables' own errors; no name of a model starts so.
MARK = "rounding of "
#: Least value of arguments of roots and logarithms, and of denominators, whose error reaches down to 0.
LEAST_POSITIVE = 1e-300


class _Unknown(Exception):
    """No bound is known of an expression."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rounding:
    """Bounds of the rounding at a point.

    objective    of its value
    constraints  of the value of each
    slopes       for weights f, nu >= 0, of each entry of the gradient of f objective + nu . constraints
    """

    objective: float
    constraints: Array
    slopes: Callable[[float, Array], Array]

    def lost(self, multipliers: Array) -> float:
        """The part of a gap that stands for rounding, for these multipliers.

        A gradient computed from slightly wrong inner values is a subgradient up to the error of the
        value. The value at the point has that error too.
        """
        return 2 * (self.objective + float(np.abs(multipliers) @ self.constraints))

    def slope(self, multipliers: Array) -> Array:
        """A bound by entry of the rounding in the gradient of the Lagrangian."""
        return self.slopes(1.0, np.abs(multipliers))

    def slope_of_constraints(self, multipliers: Array) -> Array:
        """The same for the gradient of multipliers . constraints alone."""
        return self.slopes(0.0, np.abs(multipliers))


def rounding(system: System, meter: Meter) -> Rounding | None:
    """The bounds at the system's point, or None if none are known, if they are not finite, or if they
    take more work than is left (``system.unrounded``)."""
    price = PASSES * max(system.forward_s, ELEMENT_SECONDS * amount(system.bound))
    if price > meter.left:
        system.unrounded = True
        return None
    meter.spend(price)
    errors = _Errors(system.evaluator)
    own = {MARK + name: torch.zeros_like(value).requires_grad_(True) for name, value in system.point.items()}
    try:
        evaluator = Evaluator(system.bound, {**system.point, **own}, seed=system.seed)
        f = errors.value(evaluator, system.problem.objective.expr, {})
        parts = [torch.zeros(0, dtype=torch.float64)]
        for constraint in system.problem.constraints:
            family = members.of(system.bound, constraint)
            parts.append(errors.of_members(evaluator, constraint.body, family))
    except (_Unknown, FccoError):
        return None
    c, f = torch.cat(parts), f.reshape(())
    if not bool(torch.isfinite(f)) or not bool(torch.isfinite(c).all()):
        return None

    def slopes(of_objective: float, multipliers: Array) -> Array:
        """The derivative of the Lagrangian in each rounded value."""
        total = of_objective * f + c @ torch.from_numpy(multipliers)
        if not total.requires_grad:
            return np.zeros(system.d)
        gradients = torch.autograd.grad(total, list(own.values()), allow_unused=True, retain_graph=True)
        pairs = zip(gradients, own.values(), strict=True)
        sizes = (
            torch.cat([(torch.zeros_like(r) if g is None else g).reshape(-1) for g, r in pairs])
            .abs()
            .nan_to_num(0.0)
        )
        return UNIT * (SUM_ROUNDINGS + 8 * math.sqrt(amount(system.bound))) * sizes.numpy()

    return Rounding(objective=float(f.detach()), constraints=c.detach().numpy(), slopes=slopes)


class _Errors:
    """Error bounds of expressions, as expressions; None stands for 0."""

    def __init__(self, evaluator: Evaluator):
        self.evaluator, self.bound = evaluator, evaluator.bound
        self.known: dict[int, tuple[ir.Expr, ir.Expr | None]] = {}
        self.lets: dict[int, ir.Let] = {}

    def value(self, evaluator: Evaluator, expr: ir.Expr, env: Mapping) -> torch.Tensor:
        """The bound of an expression, as a number."""
        error = self.of(expr)
        if error is None:
            return torch.zeros((), dtype=torch.float64)
        return evaluator.value(error, env).data

    def of_members(self, evaluator: Evaluator, body: ir.Expr, family: members.Members) -> torch.Tensor:
        """The bounds of a constraint's members."""
        error = self.of(body)
        if error is None:
            return torch.zeros(len(family), dtype=torch.float64)
        return family.over(evaluator.value(error, family.env))

    def of(self, expr: ir.Expr) -> ir.Expr | None:
        """The bound for an expression."""
        for node in ir.walk(expr):
            if id(node) not in self.known:
                self.known[id(node)] = (node, self._of(node))
        return self.known[id(expr)][1]

    def _of(self, node: ir.Expr) -> ir.Expr | None:
        if not ir.variables_of(node):
            if isinstance(node, LEAVES):
                return None
            return _units(ATOM_ROUNDINGS, node)
        stable = self.evaluator.logarithms.stable(node)
        if stable is not None:
            return self.of(stable)
        match node:
            case ir.Var(name=name):
                return replace(node, name=MARK + name)
            case ir.Item(base=base):
                error = self.known[id(base)][1]
                if error is None:
                    return None
                return replace(node, base=error)
            case ir.LetRef():
                return self._let(node)
            case ir.Reduce():
                return self._reduced(node)
            case ir.Apply():
                return self._applied(node, [self.known[id(arg)][1] for arg in node.args])
        raise _Unknown

    def _let(self, node: ir.LetRef) -> ir.Expr | None:
        let, error = node.let, self.known[id(node.let.body)][1]
        if error is None:
            return None
        if id(let) not in self.lets:
            self.lets[id(let)] = replace(let, name=MARK + let.name, body=error)
        return replace(node, let=self.lets[id(let)])

    # ----------------------------------------------------------------------------------- reductions
    def _reduced(self, node: ir.Reduce) -> ir.Expr:
        kind, body = reductions.of(node), node.body
        varying = [
            part
            for part in (node.condition, *node.options.values())
            if part is not None and ir.variables_of(part)
        ]
        if varying or any(isinstance(binder.domain, ir.VectorSet) for binder in node.binders):
            raise _Unknown
        error = self.known[id(body)][1]
        if kind.additive:
            return replace(node, body=_sum(error, _units(SUM_ROUNDINGS, body)))
        if kind.name == "variance":
            square = apply("square", body)
            bound = None
            if error is not None:
                bound = _sum(_product(const(2.0), _size(body), error), apply("square", error))
            both = _sum(bound, _units(SUM_ROUNDINGS, square))
            return replace(node, kind="mean", body=_product(const(2.0), both), options={})
        if not (kind.extreme or kind.logarithmic or kind.name == "cvar"):
            raise _Unknown
        worst = replace(node, kind="max", body=_sum(error, _units(SUM_ROUNDINGS, body)), options={})
        return _sum(worst, _units(SUM_ROUNDINGS, node))

    # ---------------------------------------------------------------------------------------- atoms
    def _applied(self, node: ir.Apply, errors: list[ir.Expr | None]) -> ir.Expr | None:
        atom = atoms.of(node)
        if atom is None or atom.boolean:
            raise _Unknown
        match node.op, node.args, errors:
            case "transpose" | "part" | "concat", _, _:
                return _moved(node, errors)
            case "neg", _, [error]:
                return error
            case "mul" | "dot" | "matmul" | "outer", (a, b), [ea, eb]:
                return _bilinear(self.bound, node, (a, b), (ea, eb))
            case "div", (a, b), [ea, eb]:
                return _sum(_quotient(node, b, ea, eb), _units(ATOM_ROUNDINGS, node))
        if node.op in INTO_ONE_NUMBER:
            return _into_one_number(node, errors)
        if not isinstance(atom, atoms.ScalarAtom):
            raise _Unknown
        return _entrywise(node, atom, errors)


LEAVES = ir.Const | ir.Param | ir.Column | ir.Size | ir.Element | ir.Label
#: Atoms that make one number, or one for each group, of a vector's entries.
INTO_ONE_NUMBER = ("sum", "mean", "norm1", "norm2", "norm_fro", "norminf", "group_norm", "sumsq", "logsumexp")


def _into_one_number(node: ir.Apply, errors: list[ir.Expr | None]) -> ir.Expr:
    """The error of a sum, a mean or a norm of entries, and its rounding."""
    a, ea = node.args[0], errors[0]
    bound = None
    match node.op:
        case "sum" | "mean" | "norm1":
            return _added(node, a, ea)
        case "sumsq" if ea is not None:
            bound = _squares(node, ea)
        case "logsumexp":
            worst = _sum(ea, _units(SUM_ROUNDINGS, a))
            bound = replace(node, op="norminf", args=(worst,))
        case _ if ea is not None:
            bound = replace(node, args=(ea, *node.args[1:]))
    return _sum(bound, _units(SUM_ROUNDINGS, node))


def _moved(node: ir.Apply, errors: list[ir.Expr | None]) -> ir.Expr | None:
    """The error of entries that change their places only."""
    if all(error is None for error in errors):
        return None
    pairs = zip(node.args, errors, strict=True)
    first = node.op != "concat"
    filled = [_none(arg, error) if k == 0 or not first else arg for k, (arg, error) in enumerate(pairs)]
    return replace(node, args=tuple(filled))


def _bilinear(
    bound: Bound, node: ir.Apply, args: tuple[ir.Expr, ir.Expr], errors: tuple[ir.Expr | None, ir.Expr | None]
) -> ir.Expr:
    """The error of a product: |a| e_b + |b| e_a + e_a e_b, and its rounding."""
    (a, b), (ea, eb) = args, errors
    terms = []
    if eb is not None:
        terms.append(replace(node, args=(_size(a), eb)))
    if ea is not None:
        terms.append(replace(node, args=(ea, _size(b))))
    if ea is not None and eb is not None:
        terms.append(replace(node, args=(ea, eb)))
    whole, steps = node, ATOM_ROUNDINGS
    if node.op in ("dot", "matmul"):
        whole, steps = replace(node, args=(_size(a), _size(b))), 2.0 + _terms(bound, a)
    return _sum(*terms, _units(steps, whole))


def _terms(bound: Bound, a: ir.Expr) -> float:
    """The number of terms of an inner product with these rows."""
    if a.shape:
        return float(elements.shape(bound, a.shape)[-1])
    return 1.0


def _entrywise(node: ir.Apply, atom: atoms.ScalarAtom, errors: list[ir.Expr | None]) -> ir.Expr:
    """The error of a scalar atom: the largest slope times the error of each argument, and its rounding."""
    terms: list[ir.Expr | None] = []
    for k, error in enumerate(errors):
        if error is None:
            continue
        steep = math.inf
        if k in atom.free or atom.variadic:
            steep = atom.lipschitz(*_anywhere(atom, node), argument=k)
        if steep < math.inf:
            terms.append(_product(const(steep), error))
        else:
            terms.append(_product(_steepest(node, atom, k, error), error))
    return _sum(*terms, _units(ATOM_ROUNDINGS, node))


def _steepest(node: ir.Apply, atom: atoms.ScalarAtom, k: int, error: ir.Expr) -> ir.Expr:
    """The largest slope of an atom in one argument within its error. The slope is monotone on either side
    of 0."""
    if atom.exponent == 0.5 or _is_number(node, atom, 0.5):
        return apply("inv", apply("sqrt", apply("max", node.args[0], error, const(LEAST_POSITIVE))))
    numbers = tuple(arg.value if isinstance(arg, ir.Const) else None for arg in node.args)
    shapes = tuple(arg.shape for arg in node.args)
    names = tuple(f"u{j}" for j in range(len(node.args)))
    texts = atom.derivatives(atom.site(names, shapes, numbers))
    if k >= len(texts):
        raise _Unknown
    domain = atom.domains(*_anywhere(atom, node))[k]
    ends = []
    above, below = apply("add", node.args[k], error), apply("sub", node.args[k], error)
    for neighbour in (above, below):
        if domain is not None and domain.lo >= 0:
            neighbour = apply("max", neighbour, const(LEAST_POSITIVE))
        args = tuple(neighbour if j == k else arg for j, arg in enumerate(node.args))
        values = dict(zip(atom.names(len(args)), args, strict=True)) | {"y": replace(node, args=args)}
        try:
            ends.append(_size(atoms.expression(texts[k], values)))
        except (ValueError, KeyError) as unknown:
            raise _Unknown from unknown
    return apply("max", *ends)


def _anywhere(atom: atoms.Atom, node: ir.Apply) -> tuple[atoms.Interval, ...]:
    """The intervals of the arguments: a point for numbers, the whole line for others."""
    return tuple(
        atoms.Interval.point(a.value) if isinstance(a, ir.Const) else atoms.Interval() for a in node.args
    )


def _is_number(node: ir.Apply, atom: atoms.Atom, value: float) -> bool:
    """Whether the atom is a power with this exponent."""
    if not isinstance(atom.exponent, str):
        return False
    exponent = node.args[atom.arguments.index(atom.exponent)]
    return isinstance(exponent, ir.Const) and exponent.value == value


def _added(node: ir.Apply, a: ir.Expr, error: ir.Expr | None) -> ir.Expr:
    """The error of a sum, mean or sum of sizes of entries."""
    op = "sum" if node.op == "norm1" else node.op
    if error is None:
        bound = None
    else:
        bound = replace(node, op=op, args=(error,))
    return _sum(bound, _scaled(SUM_ROUNDINGS, replace(node, op=op, args=(_size(a),))))


def _quotient(node: ir.Apply, b: ir.Expr, ea: ir.Expr | None, eb: ir.Expr | None) -> ir.Expr | None:
    """The error of a / b: (e_a + |a / b| e_b) / (|b| - e_b)."""
    if ea is None and eb is None:
        return None
    if eb is None:
        total, below = [ea], _size(b)
    else:
        total = [ea, _product(_size(node), eb)]
        below = apply("max", apply("sub", _size(b), eb), const(LEAST_POSITIVE))
    return apply("div", _sum(*total), below)


def _squares(node: ir.Apply, error: ir.Expr) -> ir.Expr:
    """The error of |a|^2: 2 |a| |e_a| + |e_a|^2."""
    norm = "norm2" if len(node.args[0].shape) <= 1 else "norm_fro"
    lengths = replace(node, op=norm), replace(node, op=norm, args=(error,))
    return _sum(_product(const(2.0), *lengths), replace(node, args=(error,)))


def _size(node: ir.Expr) -> ir.Expr:
    """|node|."""
    return apply("abs", node)


def _none(arg: ir.Expr, error: ir.Expr | None) -> ir.Expr:
    """An error that is 0 in the shape of its argument."""
    if error is None:
        return apply("mul", const(0.0), arg)
    return error


def _units(count: float, node: ir.Expr) -> ir.Expr:
    """``count`` roundings of a value."""
    return _scaled(count, _size(node))


def _scaled(count: float, node: ir.Expr) -> ir.Expr:
    """``count`` unit roundoffs times a node."""
    return apply("mul", const(count * UNIT), node)


def _product(*factors: ir.Expr) -> ir.Expr:
    whole = factors[0]
    for factor in factors[1:]:
        whole = apply("mul", whole, factor)
    return whole


def _sum(*terms: ir.Expr | None) -> ir.Expr:
    """The sum of the terms; None stands for 0."""
    known_terms = [term for term in terms if term is not None]
    whole = known_terms[0]
    for term in known_terms[1:]:
        whole = apply("add", whole, term)
    return whole
