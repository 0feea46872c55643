"""The counterparts in CVXPY of random expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from support.claims import made
from support.random_expressions import BOXES, ROWS, SHAPES, SIZE, data, text, value


class NoCounterpart(Exception):
    """CVXPY has no such function, or another convention for where it is defined."""


def variables() -> dict[str, Any]:
    """The declared variables."""
    import cvxpy as cp

    signs = {name: {"nonneg": True} for name in ("p", "l", "q")}
    return {name: cp.Variable((SIZE,) * len(SHAPES.get(name, ())), **signs.get(name, {})) for name in BOXES}


def parameters() -> dict[str, Any]:
    """The declared params, of which only the signs are known."""
    import cvxpy as cp

    return {
        "a": cp.Parameter(nonneg=True),
        "b": cp.Parameter(pos=True),
        "c": cp.Parameter(),
        "n": cp.Parameter(nonpos=True),
    }


def counterpart(
    expr: ir.Expr, bound: Bound, names: Mapping[str, Any], env: Mapping[int, int] | None = None
) -> Any:
    """The same expression in CVXPY, with the data's numbers in place of what ``names`` does not have."""
    import cvxpy as cp

    env = env or {}
    match expr:
        case ir.Var(name=name) | ir.Param(name=name) if name in names:
            return names[name]
        case ir.Const() | ir.Param() | ir.Column():
            return np.asarray(value(expr, {}, bound, env))
        case ir.Apply(op="dot", args=(ir.Apply(op="matmul", args=(ir.Param(name=name), v)), other)) if (
            v is other
        ):
            return _form(cp, counterpart(v, bound, names, env), bound.arrays[name])
        case ir.Apply(op="dot", args=(other, ir.Apply(op="matmul", args=(ir.Param(name=name), v)))) if (
            v is other
        ):
            return _form(cp, counterpart(v, bound, names, env), bound.arrays[name])
        case ir.Apply(op="div", args=(ir.Apply(op="sumsq" | "square", args=(top,)), bottom)):
            a, b = (counterpart(e, bound, names, env) for e in (top, bottom))
            return cp.quad_over_lin(a, b) if not isinstance(b, np.ndarray) and b.is_nonneg() else _none()
        case ir.Apply(op="log", args=(ir.Apply(op="normcdf", args=(inside,)),)):
            return cp.log_normcdf(counterpart(inside, bound, names, env))
        case ir.Apply(op=op, args=args):
            inner = [counterpart(a, bound, names, env) for a in args]
            return _mirror(cp, op, *[cp.Constant(a) if isinstance(a, np.ndarray) else a for a in inner])
        case ir.Reduce(kind=kind, binders=(binder,), body=body, options=options):
            rows = [counterpart(body, bound, names, {**env, id(binder): row}) for row in range(ROWS)]
            members = cp.hstack(rows)
            number = next((value(o, {}, bound, env) for o in options.values()), 0.0)
            if kind in ("E", "mean"):
                return cp.sum(members) / ROWS
            if kind == "topk":
                return cp.sum_largest(members, int(number)) / int(number)
            if kind == "cvar":
                return cp.cvar(members, 1 - number)
            if kind == "logmeanexp":
                return number * (cp.log_sum_exp(members / number) - np.log(ROWS))
            if kind == "variance":
                return cp.var(members)
            return {"sum": cp.sum, "max": cp.max, "min": cp.min}.get(kind, _none)(members)
    raise NoCounterpart


def _form(cp: Any, v: Any, matrix: np.ndarray) -> Any:
    return v @ matrix @ v if isinstance(v, np.ndarray) else cp.quad_form(v, matrix)


def _none(*_: Any) -> Any:
    raise NoCounterpart


def _mirror(cp: Any, op: str, *args: Any) -> Any:
    u = args[0]
    plain = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "neg": lambda a: -a,
        "mul": cp.multiply,
        "dot": lambda a, b: cp.sum(cp.multiply(a, b)),
        "concat": lambda a, b: cp.hstack([a, b]),
        "max": cp.maximum,
        "min": cp.minimum,
        "expm1": lambda a: cp.exp(a) - 1,
        "sqhinge": lambda a: cp.square(cp.pos(a)),
        "log1pexp": cp.logistic,
        "logsigmoid": lambda a: -cp.logistic(-a),
        "huber": lambda a, m: cp.huber(a, m.value) / 2,
        "pinball": lambda a, t: cp.maximum(t * a, (t - 1) * a),
        "eps_insensitive": lambda a, e: cp.pos(cp.abs(a) - e),
        "norminf": cp.norm_inf,
        "sumsq": cp.sum_squares,
        "logsumexp": cp.log_sum_exp,
        "matmul": lambda a, b: a @ b,
        "transpose": lambda a: a.T,
        "outer": lambda a, b: cp.reshape(a, (SIZE, 1), order="C") @ cp.reshape(b, (1, SIZE), order="C"),
        "norm_fro": lambda a: cp.norm(a, "fro"),
        "norm_nuc": cp.normNuc,
        "kl": lambda a, b: cp.sum(cp.rel_entr(a, b)),
        "chi2": lambda a, b: (
            sum(cp.quad_over_lin(a[k] - b[k], b[k]) for k in range(SIZE)) if b.is_nonneg() else _none()
        ),
        "tanh": cp.nlp.tanh,
        "sigmoid": lambda a: (1 + cp.nlp.tanh(a / 2)) / 2,
        "normcdf": cp.nlp.normcdf,
        "erf": lambda a: 2 * cp.nlp.normcdf(np.sqrt(2) * a) - 1,
    } | {
        name: getattr(cp, name)
        for name in ("abs exp log log1p sqrt pos square entr norm1 norm2 sum mean").split()
    }
    if op == "inv" and u.is_nonneg():
        return cp.inv_pos(u)
    if op == "div":
        if args[1].is_constant():
            return _none() if args[1].value is not None and not np.all(args[1].value) else u / args[1]
        return cp.multiply(u, cp.inv_pos(args[1])) if u.is_constant() and args[1].is_nonneg() else _none()
    if op == "pow":
        p = float(args[1].value)
        return cp.power(u, p) if p in (1.0, 2.0, 4.0) or u.is_nonneg() else _none()
    return plain.get(op, _none)(*args)


#: functions that CVXPY calls smooth though their slope or curvature grows without bounds at the
#: edge of their domain
EDGES = frozenset({"sqrt", "log", "log1p", "entr", "pow", "inv", "div", "kl"})


def undefined(expr: object) -> bool:
    """Some constant part is no number, as log1p(-2): CVXPY then proves what it likes."""
    with np.errstate(all="ignore"):
        if expr.is_constant() and not expr.parameters() and not np.isfinite(expr.value.sum()):
            return True
    return any(undefined(arg) for arg in expr.args)


@dataclass
class Compared:
    """How many expressions both tools know, how many CVXPY proves convex or concave, and what is
    proved by one alone.

    dnlp   how many more it calls linearizable (smooth maps of smooth arguments), and here are
           weakly convex or concave
    """

    both: int = 0
    theirs: int = 0
    more: int = 0
    dnlp: int = 0
    missed: list[str] = field(default_factory=list)


def compared(problem: ir.Problem, seeds: range, *, signs: bool = False, compact: bool = False) -> Compared:
    """Random expressions under both analyses.

    signs    nothing is known of params and data but signs: expressions without columns and arrays,
             CVXPY parameters
    compact  every variable is bounded, so that what CVXPY calls linearizable convex is weakly convex
    """
    result, names = Compared(), variables() | (parameters() if signs else {})
    for seed in seeds:
        expr, bound = made(problem, seed), data(problem, seed)
        if signs and any(
            isinstance(e, ir.Column) or isinstance(e, ir.Param) and e.shape for e in ir.walk(expr)
        ):
            continue
        try:
            with np.errstate(all="ignore"):
                other = counterpart(expr, bound, names)
        except NoCounterpart:
            continue
        if isinstance(other, np.ndarray) or other.is_constant() or undefined(other):
            continue
        found = structure.facts_of(expr, problem=problem, bound=None if signs else bound)
        convex, concave = other.is_convex(), other.is_concave()
        result.both += 1
        result.theirs += convex or concave
        result.more += (found.convex or found.concave) and not (convex or concave)
        if convex and not found.convex or concave and not found.concave:
            result.missed.append(f"{seed}: {text(expr)} is {other.curvature.lower()}, here {found.curvature}")
        edge = any(isinstance(e, ir.Apply) and e.op in EDGES for e in ir.walk(expr))
        if compact and not (convex or concave or edge):
            linear = other.is_linearizable_convex(), other.is_linearizable_concave()
            result.dnlp += any(linear)
            if linear[0] and not found.weakly_convex or linear[1] and not found.weakly_concave:
                result.missed.append(f"{seed}: {text(expr)} is linearizable {linear}, here {found.curvature}")
    return result
