"""Convex problems composed at random, functions inside functions, degenerate constraints, against
CVXPY with Clarabel.

    python tests/bench/composed.py [--count 100] [--seed 0] [--budget 10s] [--show]

Beyond ``drawn.py``: kinks inside kinks, powers and roots of them, in the objective, in constraints
and in both; norms of shifted variables, second-order and polyhedral parts; constraints that are
redundant, given twice, tight at the optimum without a multiplier, or equalities that depend on each
other. Judged as in ``drawn.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
from drawn import Drawn, judged, solve

from fccomodel import FccoError

#: A function as its text and in CVXPY.
Both = tuple[str, Any]
Random = np.random.Generator

#: of affine functions: (text, in CVXPY, nonnegative)
INNER: dict[str, tuple[str, Callable[[Any], Any], bool]] = {
    "abs": ("abs({u})", cp.abs, True),
    "pos": ("pos({u})", cp.pos, True),
    "square": ("({u})^2", cp.square, True),
    "huber": ("huber({u}, 0.5)", lambda u: cp.huber(u, 0.5) / 2, True),
    "pinball": ("pinball({u}, 0.2)", lambda u: 0.2 * cp.pos(u) + 0.8 * cp.neg(u), True),
    "exp": ("exp(0.3 * ({u}))", lambda u: cp.exp(0.3 * u), True),
    "softplus": ("log1pexp({u})", cp.logistic, True),
    "three pieces": (
        "max({u}, 2 * ({u}) - 1, -0.5 * ({u}))",
        lambda u: cp.maximum(u, 2 * u - 1, -0.5 * u),
        False,
    ),
    "insensitive": ("eps_insensitive({u}, 0.4)", lambda u: cp.pos(cp.abs(u) - 0.4), True),
    "power": ("abs({u})^1.5", lambda u: cp.power(cp.abs(u), 1.5), True),
}
#: of convex functions, which they keep convex: (text, in CVXPY, only of nonnegative ones)
OUTER: dict[str, tuple[str, Callable[[Any], Any], bool]] = {
    "": ("{v}", lambda v: v, False),
    "excess": ("pos({v} - 0.3)", lambda v: cp.pos(v - 0.3), False),
    "square": ("square({v})", cp.square, True),
    "square of excess": ("sqhinge({v} - 0.2)", lambda v: cp.square(cp.pos(v - 0.2)), False),
    "exp": ("exp(0.2 * {v})", lambda v: cp.exp(0.2 * v), False),
    "larger": ("max({v}, 2 * {v} - 0.7)", lambda v: cp.maximum(v, 2 * v - 0.7), False),
    "power": ("({v})^1.5", lambda v: cp.power(v, 1.5), True),
    "softplus": ("log1pexp({v} - 0.5)", lambda v: cp.logistic(v - 0.5), False),
}
#: of all rows, numbers without a sign
WHOLES: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "mean": ("(E[z ~ D] {v})", lambda v, n: cp.sum(v) / n),
    "worst": ("(max[z in D] {v})", lambda v, n: cp.max(v)),
    "tail": ("(cvar(tail = 0.2)[z in D] {v})", lambda v, n: tail(v, 0.2)),
    "entropic": ("(logmeanexp(theta = 1)[z in D] {v})", lambda v, n: cp.log_sum_exp(v) - np.log(n)),
}


def tail(values: Any, share: float) -> Any:
    """The mean of the largest share."""
    s = cp.Variable()
    return s + cp.sum(cp.pos(values - s)) / (share * values.size)


class Composer:
    """Convex functions of x in R^d, whose rows are those of a table D(a, b)."""

    def __init__(self, random: Random, n: int, d: int):
        self.random, self.n, self.d = random, n, d
        self.x = cp.Variable(d)
        self.a, self.b = random.normal(size=(n, d)), random.normal(size=n)
        self.at = random.normal(size=d) * 0.5
        self.names: list[str] = []

    def pick(self, table: dict[str, Any], *, among: Callable[[Any], bool] = lambda entry: True) -> Any:
        name = str(self.random.choice([name for name, entry in table.items() if among(entry)]))
        self.names.append(name or "-")
        return table[name]

    def numbers(self, size: int) -> np.ndarray:
        return np.round(self.random.normal(size=size), 2)

    def row(self) -> Both:
        """A function of each row's residual."""
        text, function, positive = self.pick(INNER)
        v: Both = (text.format(u="dot(x, z.a) - z.b"), function(self.a @ self.x - self.b))
        text, function, _ = self.pick(OUTER, among=lambda entry: positive or not entry[2])
        return text.format(v=v[0]), function(v[1])

    def whole(self) -> Both:
        text, function = self.pick(WHOLES)
        v = self.row()
        made: Both = (text.format(v=v[0]), function(v[1], self.n))
        text, function, _ = self.pick(OUTER, among=lambda entry: not entry[2])
        return text.format(v=made[0]), function(made[1])

    def norm(self) -> Both:
        """A norm of a shifted or mapped variable, perhaps less a linear function."""
        p = self.numbers(self.d)
        shift = "x - p"
        data: Any = self.x - p
        kind = str(self.random.choice(["norm1", "norm2", "norminf", "root", "longest"]))
        self.names.append(kind)
        self.shift = p
        functions = {"norm1": cp.norm1, "norm2": cp.norm, "norminf": cp.norm_inf}
        if kind in functions:
            return f"{kind}({shift})", functions[kind](data)
        if kind == "root":
            return f"sqrt(0.1 + sumsq({shift}))", cp.norm(cp.hstack([np.sqrt(0.1), data]))
        return "max(norm1(x), 2 * norm2(x) - 0.2)", cp.maximum(cp.norm1(self.x), 2 * cp.norm(self.x) - 0.2)

    def scalar(self) -> Both:
        """A kinked function of a linear one."""
        c = self.numbers(self.d)
        linear = " + ".join(f"({v}) * x[{k + 1}]" for k, v in enumerate(c))
        text, function, positive = self.pick(INNER)
        v: Both = (text.format(u=linear), function(c @ self.x))
        text, function, _ = self.pick(OUTER, among=lambda entry: positive or not entry[2])
        return text.format(v=v[0]), function(v[1])

    def part(self) -> Both:
        maker = [self.whole, self.whole, self.scalar][int(self.random.integers(3))]
        return maker()


def value(made: Composer, function: Any, at: np.ndarray) -> float:
    """A function's value at a point; auxiliary variables take their best values."""
    problem = cp.Problem(cp.Minimize(function), [made.x == at])
    solve(problem)
    return float(problem.value)


def draw(seed: int) -> Drawn:
    random = np.random.default_rng(seed)
    made = Composer(random, int(random.integers(30, 150)), int(random.integers(2, 8)))
    x, d = made.x, made.d
    parts = [made.part() for _ in range(int(random.integers(1, 3)))]
    weights = np.round(random.uniform(0.2, 1.5, len(parts)), 2)
    shifted = made.norm()
    parts.append(shifted)
    weights = np.append(weights, np.round(random.choice([0.05, 0.3]), 2))
    objective = " + ".join(f"{w} * {text}" for w, (text, _) in zip(weights, parts, strict=True))
    function = sum(w * f for w, (_, f) in zip(weights, parts, strict=True))
    domain, limits = SETS[str(random.choice(list(SETS)))]
    rows, conditions, names = [], limits(x), []
    at = made.at if not conditions else np.full(d, 1 / d)

    def limited(text: str, g: Any, level: float, name: str) -> None:
        rows.append(f"c{len(rows)}: {text} <= {level};")
        conditions.append(g <= level)
        names.append(name)

    for _ in range(int(random.integers(0, 3))):
        text, g = made.part()
        limited(text, g, round(value(made, g, at) + float(random.choice([0.01, 0.3])), 4), "curved")
    if random.random() < 0.5:
        level = round(float(np.abs(at - made.shift).sum() * random.choice([1.0, 1.3])) + 1e-4, 4)
        limited("norm1(x - p)", cp.norm1(x - made.shift), level, "turnover")
    if random.random() < 0.4:
        level = round(float(at.sum()), 6)
        if domain != " in simplex(d)":
            rows.append(f"e: sum(x) == {level};")
            rows.append(f"f: 2 * sum(x) == {2 * level};")
            conditions.append(cp.sum(x) == level)
            names.append("equalities twice")
    if random.random() < 0.4:
        text = "norm2(x) - x[1]"
        g = cp.norm(x) - x[0]
        level = round(float(np.linalg.norm(at) - at[0]) + 0.1, 4)
        limited(text, g, level, "cone")
        limited(text.replace("x[1]", "x[1] - 0.5"), g - 0.5, level, "redundant")
        limited(f"3 * ({text})", 3 * g, 3 * level, "twice")
    if random.random() < 0.4:
        problem = cp.Problem(cp.Minimize(function), conditions)
        solve(problem)
        if problem.status == "optimal":
            c = made.numbers(d)
            linear = " + ".join(f"({v}) * x[{k + 1}]" for k, v in enumerate(c))
            limited(linear, c @ x, round(float(c @ x.value), 6) + 1e-6, "tight")
    subject = "subject to\n  " + "\n  ".join(rows) if rows else ""
    text = (
        f"dim d;\ndata D : table(a: real[d], b: real);\ndata p : real[d];\nvar x[d]{domain};\n"
        f"minimize {objective};\n{subject}\n"
    )
    name = ", ".join(made.names) + ("; " + ", ".join(names) if names else "")
    data = {"D": {"a": made.a, "b": made.b}, "p": made.shift}
    return Drawn(name=name, text=text, data=data, problem=cp.Problem(cp.Minimize(function), conditions))


#: of the variables: (text, conditions)
SETS: dict[str, tuple[str, Callable[[Any], list[Any]]]] = {
    "free": ("", lambda x: []),
    "box": (" >= -1, <= 1", lambda x: [x >= -1, x <= 1]),
    "simplex": (" in simplex(d)", lambda x: [x >= 0, cp.sum(x) == 1]),
    "nonneg": (" >= 0", lambda x: [x >= 0]),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--show", action="store_true", help="the texts of those that are not right")
    arguments = parser.parse_args()
    totals: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        drawn = draw(seed)
        try:
            kind, figures = judged(drawn, arguments.budget)
        except FccoError as error:
            kind, figures = "unsolved", str(error).splitlines()[0]
        totals[kind] += 1
        print(f"{seed:4d} {kind:9} {figures}  | {drawn.name}", flush=True)
        if arguments.show and kind != "right":
            print(drawn.text)
    print(", ".join(f"{count} {kind}" for kind, count in totals.most_common()))
    return int(totals["right"] < sum(totals.values()))


if __name__ == "__main__":
    sys.exit(main())
