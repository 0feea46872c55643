"""Random expressions of the modelling language, and a small evaluator for them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.library import atoms

MODEL = """
dim d;
data D : table(x: real[d], y: {{-1, 1}}, t: real);
data A : real[d, d];
data B : real[d, d];
param a >= 0 default 1;
param b > 0 default 1;
param c default 0;
param n <= 0 default -1;
var w[d]{w};
var u{u};
var v{v};
var p >= 0{p};
var h >= -1, <= 1;
var l >= 0.5{l};
var q[d] >= 0.25{q};
var r[d] in box(-1, 1);
var M[d, d]{M};
minimize e: a * u + b * v + c * p + n * h + l + sum(w) + sum(q) + sum(r) + sum(A @ M) + sum(B @ w)
  + E[z ~ D] (z.y * z.t * dot(w, z.x));
"""
ROWS, SIZE = 5, 2
SCALARS, VECTORS = ("u", "v", "p", "h", "l"), ("w", "w", "q", "r")
#: where points are drawn; the declared sets, or parts of them
BOXES = {
    "u": (-2.5, 2.5), "v": (-2.5, 2.5), "p": (0.0, 3.0), "h": (-1.0, 1.0), "l": (0.5, 3.5),
    "w": (-2.0, 2.0), "q": (0.25, 2.0), "r": (-1.0, 1.0), "M": (-2.0, 2.0),
}  # fmt: skip
SHAPES: dict[str, tuple[str, ...]] = {"w": ("d",), "q": ("d",), "r": ("d",), "M": ("d", "d")}
#: variables whose declared set has an edge inside or at the box
EDGED = ("p", "h", "l", "q", "r")


def base(compact: bool = False) -> ir.Problem:
    """The declarations that random expressions refer to; ``compact``: every variable has the bounds of
    its box."""
    both = {name: f" >= {lo}, <= {hi}" for name, (lo, hi) in BOXES.items()}
    ends = {name: both[name] if compact else "" for name in ("u", "v", "w", "M")}
    ends |= {name: f", <= {BOXES[name][1]}" if compact else "" for name in ("p", "l", "q")}
    source = Source(text=MODEL.format(**ends))
    return check(parse(source), source)


def data(problem: ir.Problem, seed: int) -> Bound:
    """Small random data and params."""
    rng = np.random.default_rng(seed)
    columns = {
        "x": rng.normal(size=(ROWS, SIZE)),
        "y": np.where(rng.random(ROWS) < 0.5, -1.0, 1.0),
        "t": rng.normal(size=ROWS),
    }
    params = {
        "a": rng.choice([0.0, 0.7]), "b": 0.2 + rng.random(), "c": rng.normal(), "n": rng.choice([0.0, -1.3])
    }  # fmt: skip
    tables = {"D": BoundTable(name="D", n=ROWS, columns=columns)}
    root, other = rng.normal(size=(2, SIZE, SIZE))
    arrays = {"A": root @ root.T, "B": other + other.T}
    return Bound(
        problem=problem,
        tables=tables,
        arrays=arrays,
        params={k: np.float64(x) for k, x in params.items()},
        dims={"d": SIZE},
    )


def point(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A random point of the variables' sets, on the edge of a box now and then."""
    where = {}
    for name, (lo, hi) in BOXES.items():
        size = (SIZE,) * len(SHAPES.get(name, ()))
        edge = name in EDGED and rng.random() < 0.1
        where[name] = np.asarray(rng.choice([lo, hi], size=size) if edge else rng.uniform(lo, hi, size=size))
    return where


# ---------------------------------------------------------------------------------------- evaluator
def value(
    expr: ir.Expr, at: Mapping[str, np.ndarray], bound: Bound, env: Mapping[int, int] | None = None
) -> Any:
    """The value at a point, by definition: one row at a time, atoms by their NumPy references."""
    env = env or {}
    match expr:
        case ir.Const(value=number):
            return number
        case ir.Param(name=name):
            return bound.params[name] if name in bound.params else bound.arrays[name]
        case ir.Var(name=name) | ir.Hole(name=name):
            return at[name]
        case ir.Column(binder=binder, name=name):
            return bound.tables["D"].columns[name or ""][env[id(binder)]]
        case ir.Apply(op=op, args=args):
            atom = atoms.get(op)
            assert atom is not None
            return atom.value(*(value(a, at, bound, env) for a in args))
        case ir.Reduce(kind=kind, binders=(binder,), body=body, options=options):
            members = np.array(
                [value(body, at, bound, {**env, id(binder): row}) for row in range(ROWS)], dtype=float
            )
            return REDUCTIONS[kind](members, {name: value(o, at, bound, env) for name, o in options.items()})
    raise TypeError(type(expr))


def _tail(members: np.ndarray, tail: float) -> float:
    """The mean of the largest ``tail`` part: min over s of s + mean [e - s]_+ / tail, attained at a
    member."""
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
        o["theta"]
        * (np.max(e / o["theta"]) + np.log(np.mean(np.exp(e / o["theta"] - np.max(e / o["theta"])))))
    ),
    "pmean": lambda e, o: np.mean(e ** o["p"]) ** (1 / o["p"]),
}
UNARY = tuple(
    name
    for name, atom in atoms.all().items()
    if isinstance(atom, atoms.ScalarAtom)
    and atom.arguments == ("u",)
    and not atom.boolean
    and not atom.internal
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
            return self.apply(
                op, self.scalar(depth - 1, binder), *(ir.Const(value=x) for x in PARAMETRIC[op])
            )
        if roll < 0.53:
            return self.apply("pow", self.scalar(depth - 1, binder), ir.Const(value=rng.choice(POWERS)))
        if roll < 0.78:
            op = rng.choice(["add", "add", "sub", "mul", "mul", "div", "max", "min"])
            return self.apply(
                op,
                self.scalar(depth - 1, binder),
                self.scalar(depth - rng.choice([1, 1, 2]) if depth > 1 else 0, binder),
            )
        if roll < 0.86:
            op = rng.choice(["norm1", "norm2", "norminf", "sumsq", "sum", "mean", "logsumexp", "dot"])
            args = [self.vector(depth - 1, binder) for _ in range(2 if op == "dot" else 1)]
            return self.apply(op, *args)
        if roll < 0.92:
            return self.special(depth, binder)
        if binder is None:
            return self.reduction(depth)
        return self.apply("mul", self.constant(binder), self.scalar(depth - 1, binder))

    def special(self, depth: int, binder: ir.Binder | None) -> ir.Expr:
        """What is convex as a whole only: quadratic forms, perspectives, divergences, norms of matrices."""
        rng = self.rng
        match rng.choice(["form", "form", "over", "divergence", "matrix", "matrix", "normcdf"]):
            case "form":
                v = self.vector(depth - 2, binder)
                turned = ir.Apply(
                    op="matmul", args=(ir.Param(name=rng.choice("AAB"), shape=("d", "d")), v), shape=("d",)
                )
                form = self.apply("dot", *((v, turned) if rng.random() < 0.5 else (turned, v)))
                return form if rng.random() < 0.6 else self.apply("neg", form)
            case "over":
                top = self.apply("sumsq", self.vector(depth - 2, binder))
                top = self.apply("square", self.scalar(depth - 2, binder)) if rng.random() < 0.5 else top
                bottom = [
                    ir.Var(name="l"),
                    self.apply("sqrt", ir.Var(name="l")),
                    self.scalar(max(depth - 2, 0), binder),
                ]
                return self.apply("div", top, rng.choice(bottom))
            case "divergence":
                near = ir.Apply(
                    op="add", args=(ir.Const(value=1.0), self.vector(depth - 2, None)), shape=("d",)
                )
                q = ir.Var(name="q", shape=("d",))
                return self.apply(rng.choice(["kl", "chi2"]), *((q, q) if rng.random() < 0.3 else (q, near)))
            case "normcdf":
                return self.apply("log", self.apply("normcdf", self.scalar(depth - 2, binder)))
        return self.apply(rng.choice(["norm_fro", "norm_nuc", "sum"]), self.matrix(depth - 1))

    def matrix(self, depth: int) -> ir.Expr:
        """An expression with two rows and two columns."""
        rng, shape = self.rng, ("d", "d")
        if depth <= 0 or rng.random() < 0.3:
            return (
                ir.Var(name="M", shape=shape)
                if rng.random() < 0.8
                else ir.Param(name=rng.choice("AB"), shape=shape)
            )
        first = self.matrix(depth - 1)
        match rng.choice(["add", "sub", "transpose", "matmul", "outer", "entrywise", "mul"]):
            case "add" | "sub" as op:
                return ir.Apply(op=op, args=(first, self.matrix(depth - 1)), shape=shape)
            case "mul":
                return ir.Apply(op="mul", args=(self.constant(None), first), shape=shape)
            case "matmul":
                args = (ir.Param(name=rng.choice("AB"), shape=shape), first)
                return ir.Apply(op="matmul", args=args if rng.random() < 0.5 else args[::-1], shape=shape)
            case "outer":
                return ir.Apply(
                    op="outer", args=(self.vector(depth - 1, None), self.vector(depth - 1, None)), shape=shape
                )
            case "transpose":
                return ir.Apply(op="transpose", args=(first,), shape=shape)
        return ir.Apply(op=rng.choice(["abs", "square", "exp", "neg", "pos"]), args=(first,), shape=shape)

    def vector(self, depth: int, binder: ir.Binder | None) -> ir.Expr:
        """An expression with two entries."""
        rng, shape = self.rng, ("d",)
        w = ir.Var(name=rng.choice(VECTORS), shape=shape)
        if depth <= 0 or rng.random() < 0.3:
            return (
                w if binder is None or rng.random() < 0.7 else ir.Column(binder=binder, name="x", shape=shape)
            )
        roll = rng.random()
        if roll < 0.25:
            return ir.Apply(
                op="concat",
                args=(self.scalar(depth - 1, binder), self.scalar(depth - 1, binder)),
                shape=shape,
            )
        if roll < 0.5:
            return ir.Apply(
                op=rng.choice(["exp", "abs", "tanh", "square", "pos", "neg", "sigmoid"]),
                args=(self.vector(depth - 1, binder),),
                shape=shape,
            )
        if roll < 0.6:
            by: ir.Expr = ir.Param(name=rng.choice("AB"), shape=("d", "d"))
            by = ir.Var(name="M", shape=("d", "d")) if rng.random() < 0.2 else by
            return ir.Apply(op="matmul", args=(by, self.vector(depth - 1, binder)), shape=shape)
        if roll < 0.8:
            args = (self.vector(depth - 1, binder), self.scalar(depth - 1, binder))
            return ir.Apply(
                op=rng.choice(["add", "mul", "sub", "max"]),
                args=args if rng.random() < 0.5 else args[::-1],
                shape=shape,
            )
        args = (self.vector(depth - 1, binder), self.vector(depth - 1, binder))
        return ir.Apply(op=rng.choice(["add", "sub", "mul", "min"]), args=args, shape=shape)

    def leaf(self, binder: ir.Binder | None) -> ir.Expr:
        rng = self.rng
        if binder is not None and rng.random() < 0.6:
            score = ir.Apply(
                op="dot",
                args=(ir.Var(name="w", shape=("d",)), ir.Column(binder=binder, name="x", shape=("d",))),
            )
            return (
                score if rng.random() < 0.6 else self.apply("sub", ir.Column(binder=binder, name="t"), score)
            )
        if rng.random() < 0.2:
            return self.constant(binder)
        return ir.Var(name=rng.choice(SCALARS))

    def constant(self, binder: ir.Binder | None) -> ir.Expr:
        rng = self.rng
        if binder is not None and rng.random() < 0.5:
            return ir.Column(binder=binder, name=rng.choice(["y", "t"]))
        return (
            ir.Param(name=rng.choice("abcn"))
            if rng.random() < 0.5
            else ir.Const(value=rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0]))
        )

    def reduction(self, depth: int) -> ir.Expr:
        rng = self.rng
        kind = rng.choice(
            [
                "E",
                "E",
                "E",
                "mean",
                "sum",
                "max",
                "min",
                "variance",
                "cvar",
                "topk",
                "logmeanexp",
                "pmean",
                "prod",
            ]
        )
        binder = ir.Binder(name="z", kind="~", domain=self.rows)
        given = {
            "cvar": ("tail", 0.45),
            "topk": ("k", 2.0),
            "logmeanexp": ("theta", 0.6),
            "pmean": ("p", 3.0),
        }.get(kind)
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
