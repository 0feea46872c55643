"""Random expressions of the modelling language, a small evaluator for them, and their counterparts in CVXPY."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from fccomodel import atoms, ir
from fccomodel.bound import Bound, BoundTable
from fccomodel.check import check
from fccomodel.parse import parse
from fccomodel.source import Source

MODEL = """
dim d;
data D : table(x: real[d], y: {-1, 1}, t: real);
param a >= 0 default 1;
param b > 0 default 1;
param c default 0;
var w[d];
var u;
var v;
var p >= 0;
var h >= -1, <= 1;
var l >= 0.5;
minimize e: a * u + b * v + c * p + h + l + sum(w) + E[z ~ D] (z.y * z.t * dot(w, z.x));
"""
ROWS, SIZE = 5, 2
SCALARS = ("u", "v", "p", "h", "l")
BOXES = {"u": (-2.5, 2.5), "v": (-2.5, 2.5), "p": (0.0, 3.0), "h": (-1.0, 1.0), "l": (0.5, 3.5), "w": (-2.0, 2.0)}


def base() -> ir.Problem:
    """The declarations that random expressions refer to."""
    source = Source(text=MODEL)
    return check(parse(source), source)


def data(problem: ir.Problem, seed: int) -> Bound:
    """Small random data and params."""
    rng = np.random.default_rng(seed)
    columns = {
        "x": rng.normal(size=(ROWS, SIZE)),
        "y": np.where(rng.random(ROWS) < 0.5, -1.0, 1.0),
        "t": rng.normal(size=ROWS),
    }
    params = {"a": np.float64(rng.choice([0.0, 0.7])), "b": np.float64(0.2 + rng.random()), "c": np.float64(rng.normal())}
    tables = {"D": BoundTable(name="D", n=ROWS, columns=columns)}
    return Bound(problem=problem, tables=tables, params=params, dims={"d": SIZE})


def point(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A random point of the variables' sets, on the edge of a box now and then."""
    where = {}
    for name, (lo, hi) in BOXES.items():
        value = rng.uniform(lo, hi, size=(SIZE,) if name == "w" else ())
        where[name] = np.asarray(rng.choice([lo, hi]) if name in "phl" and rng.random() < 0.1 else value)
    return where


# -------------------------------------------------------------------------------------------------------------- evaluator
def value(expr: ir.Expr, at: Mapping[str, np.ndarray], bound: Bound, env: Mapping[int, int] | None = None) -> Any:
    """The value at a point, by definition: one row at a time, atoms by their NumPy references."""
    env = env or {}
    match expr:
        case ir.Const(value=number):
            return number
        case ir.Param(name=name):
            return bound.params[name]
        case ir.Var(name=name) | ir.Hole(name=name):
            return at[name]
        case ir.Column(binder=binder, name=name):
            return bound.tables["D"].columns[name or ""][env[id(binder)]]
        case ir.Apply(op=op, args=args):
            atom = atoms.get(op)
            assert atom is not None
            return atom.value(*(value(a, at, bound, env) for a in args))
        case ir.Reduce(kind=kind, binders=(binder,), body=body, options=options):
            members = np.array([value(body, at, bound, {**env, id(binder): row}) for row in range(ROWS)], dtype=float)
            return REDUCTIONS[kind](members, {name: value(o, at, bound, env) for name, o in options.items()})
    raise TypeError(type(expr))


def _tail(members: np.ndarray, tail: float) -> float:
    """The mean of the largest ``tail`` part: min over s of s + mean [e - s]_+ / tail, attained at a member."""
    return min(s + np.mean(np.maximum(members - s, 0)) / tail for s in members)


REDUCTIONS = {
    "E": lambda e, _: np.mean(e),
    "mean": lambda e, _: np.mean(e),
    "sum": lambda e, _: np.sum(e),
    "max": lambda e, _: np.max(e),
    "min": lambda e, _: np.min(e),
    "prod": lambda e, _: np.prod(e),
    "variance": lambda e, _: np.var(e),
    "cvar": lambda e, o: _tail(e, o["tail"]),
    "topk": lambda e, o: np.mean(np.sort(e)[-int(o["k"]) :]),
    "logmeanexp": lambda e, o: (
        o["theta"] * (np.max(e / o["theta"]) + np.log(np.mean(np.exp(e / o["theta"] - np.max(e / o["theta"])))))
    ),
    "pmean": lambda e, o: np.mean(e ** o["p"]) ** (1 / o["p"]),
}
UNARY = tuple(
    name
    for name, atom in atoms.all().items()
    if isinstance(atom, atoms.ScalarAtom) and atom.arguments == ("u",) and not atom.boolean and not atom.internal
)
PARAMETRIC = {
    "huber": (0.8,),
    "pinball": (0.7,),
    "eps_insensitive": (0.3,),
    "smooth_hinge": (0.5,),
    "scad": (3.0, 0.8),
    "mcp": (1.5, 0.8),
}
POWERS = (-2.0, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


class Generator:
    """Random scalar expressions over the declarations of ``MODEL``."""

    def __init__(self, problem: ir.Problem, seed: int):
        self.problem = problem
        self.rng = random.Random(seed)
        self.rows = ir.RowSet(name="D", table="D")

    def apply(self, op: str, *args: ir.Expr) -> ir.Apply:
        return ir.Apply(op=op, args=args)

    def scalar(self, depth: int, binder: ir.Binder | None = None) -> ir.Expr:
        """An expression of at most this depth; a bound row may appear in it."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.06:
            return self.leaf(binder)
        roll = rng.random()
        if roll < 0.38:
            op = rng.choice(UNARY)
            return self.apply(op, self.scalar(depth - 1, binder))
        if roll < 0.47:
            op = rng.choice(list(PARAMETRIC))
            return self.apply(op, self.scalar(depth - 1, binder), *(ir.Const(value=x) for x in PARAMETRIC[op]))
        if roll < 0.54:
            return self.apply("pow", self.scalar(depth - 1, binder), ir.Const(value=rng.choice(POWERS)))
        if roll < 0.84:
            op = rng.choice(["add", "add", "sub", "mul", "mul", "div", "max", "min"])
            return self.apply(
                op, self.scalar(depth - 1, binder), self.scalar(depth - rng.choice([1, 1, 2]) if depth > 1 else 0, binder)
            )
        if roll < 0.91:
            op = rng.choice(["norm1", "norm2", "norminf", "sumsq", "sum", "mean", "logsumexp", "dot"])
            args = [self.vector(depth - 1, binder) for _ in range(2 if op == "dot" else 1)]
            return self.apply(op, *args)
        if binder is None:
            return self.reduction(depth)
        return self.apply("mul", self.constant(binder), self.scalar(depth - 1, binder))

    def vector(self, depth: int, binder: ir.Binder | None) -> ir.Expr:
        """An expression with two entries."""
        rng, shape = self.rng, ("d",)
        w = ir.Var(name="w", shape=shape)
        if depth <= 0 or rng.random() < 0.3:
            return w if binder is None or rng.random() < 0.7 else ir.Column(binder=binder, name="x", shape=shape)
        roll = rng.random()
        if roll < 0.25:
            return ir.Apply(op="concat", args=(self.scalar(depth - 1, binder), self.scalar(depth - 1, binder)), shape=shape)
        if roll < 0.5:
            return ir.Apply(
                op=rng.choice(["exp", "abs", "tanh", "square", "pos", "neg", "sigmoid"]),
                args=(self.vector(depth - 1, binder),),
                shape=shape,
            )
        if roll < 0.75:
            args = (self.vector(depth - 1, binder), self.scalar(depth - 1, binder))
            return ir.Apply(
                op=rng.choice(["add", "mul", "sub", "max"]), args=args if rng.random() < 0.5 else args[::-1], shape=shape
            )
        args = (self.vector(depth - 1, binder), self.vector(depth - 1, binder))
        return ir.Apply(op=rng.choice(["add", "sub", "mul", "min"]), args=args, shape=shape)

    def leaf(self, binder: ir.Binder | None) -> ir.Expr:
        rng = self.rng
        if binder is not None and rng.random() < 0.6:
            score = ir.Apply(op="dot", args=(ir.Var(name="w", shape=("d",)), ir.Column(binder=binder, name="x", shape=("d",))))
            return score if rng.random() < 0.6 else self.apply("sub", ir.Column(binder=binder, name="t"), score)
        if rng.random() < 0.2:
            return self.constant(binder)
        return ir.Var(name=rng.choice(SCALARS))

    def constant(self, binder: ir.Binder | None) -> ir.Expr:
        rng = self.rng
        if binder is not None and rng.random() < 0.5:
            return ir.Column(binder=binder, name=rng.choice(["y", "t"]))
        return ir.Param(name=rng.choice("abc")) if rng.random() < 0.5 else ir.Const(value=rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0]))

    def reduction(self, depth: int) -> ir.Expr:
        rng = self.rng
        kind = rng.choice(["E", "E", "E", "mean", "sum", "max", "min", "variance", "cvar", "topk", "logmeanexp", "pmean", "prod"])
        binder = ir.Binder(name="z", kind="~", domain=self.rows)
        given = {"cvar": ("tail", 0.45), "topk": ("k", 2.0), "logmeanexp": ("theta", 0.6), "pmean": ("p", 3.0)}.get(kind)
        options = {} if given is None else {given[0]: ir.Const(value=given[1])}
        return ir.Reduce(kind=kind, binders=(binder,), body=self.scalar(depth - 1, binder), options=options)


def text(expr: ir.Expr) -> str:
    """The expression, for messages."""
    match expr:
        case ir.Const(value=number):
            return f"{number:g}"
        case ir.Param(name=name) | ir.Var(name=name) | ir.Hole(name=name):
            return name
        case ir.Column(name=name):
            return f"z.{name}"
        case ir.Apply(op=op, args=args):
            return f"{op}({', '.join(text(a) for a in args)})"
        case ir.Reduce(kind=kind, body=body):
            return f"{kind}[{text(body)}]"
    return type(expr).__name__


class NoCounterpart(Exception):
    """CVXPY has no such function, or another convention for where it is defined."""


def counterpart(expr: ir.Expr, bound: Bound, variables: Mapping[str, Any], env: Mapping[int, int] | None = None) -> Any:
    """The same expression in CVXPY, with the data's numbers in place."""
    import cvxpy as cp

    env = env or {}
    match expr:
        case ir.Const() | ir.Param() | ir.Column():
            return np.asarray(value(expr, {}, bound, env))
        case ir.Var(name=name):
            return variables[name]
        case ir.Apply(op=op, args=args):
            inner = [counterpart(a, bound, variables, env) for a in args]
            return _mirror(cp, op, *[cp.Constant(a) if isinstance(a, np.ndarray) else a for a in inner])
        case ir.Reduce(kind=kind, binders=(binder,), body=body, options=options):
            rows = [counterpart(body, bound, variables, {**env, id(binder): row}) for row in range(ROWS)]
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
            return {"sum": cp.sum, "max": cp.max, "min": cp.min}.get(kind, _none)(members)
    raise NoCounterpart


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
    } | {name: getattr(cp, name) for name in ("abs exp log log1p sqrt pos square entr norm1 norm2 sum mean").split()}
    if op == "inv" and u.is_nonneg():
        return cp.inv_pos(u)
    if op == "div":
        if args[1].is_constant():
            return u / args[1]
        return cp.multiply(u, cp.inv_pos(args[1])) if u.is_constant() and args[1].is_nonneg() else _none()
    if op == "pow":
        p = float(args[1].value)
        return cp.power(u, p) if p in (1.0, 2.0, 4.0) or u.is_nonneg() else _none()
    return plain.get(op, _none)(*args)
