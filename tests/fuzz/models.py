"""Random models that mostly check: small data of one kind each, expressions by their shape,
constraints, families, sets."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from fccomodel.library import atoms

#: declarations by name, each after those that it needs
HEAD = {
    "d": "dim d;", "G": "set G;", "T": "set T = 1 .. 3;",
    "D": "data D : table(x: real[d], y: {-1, 1}, t: real, g: G, n: int, c: T);",
    "P": "set P = {z in D | z.y == 1};", "N": "set N = {z in D | z.y == -1};",
    "b": "data b : real[d];", "A": "data A : real[d, d];",
    "p": "param p >= 0 default 0.3;", "q": "param q default -1;", "r": "param r > 0 default 2;",
}  # fmt: skip
#: rows of the table
ROWS = 10


def binding(text: str, seed: int = 0) -> dict[str, Any]:
    """The arguments of ``bind`` for what a model declares."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, 2))
    table = {
        "x": x, "t": x @ [1.0, -1.0] + 0.3 * rng.normal(size=ROWS), "y": np.resize([1, -1, 1], ROWS), "n": np.arange(ROWS) % 4,
        "g": np.resize(["a", "b", "c"], ROWS), "c": np.resize([1, 2, 3], ROWS),
    }  # fmt: skip
    every = {"D": table, "b": rng.normal(size=2), "A": np.array([[2.0, 0.5], [0.5, 1.0]])}
    data = {name: value for name, value in every.items() if f"data {name} " in text}
    dims = {"d": 2} if "dim d;" in text and not data else {}
    sets = {"G": ["a", "b", "c"]} if "set G;" in text and "D" not in data else {}
    return {"data": data, "spec": {"dims": dims, "sets": sets}}


VARIABLES = {
    "w": "var w[d]{};", "u": "var u{};", "v": "var v{};", "s": "var s[G]{};", "h": "var h[T]{};", "B": "var B[d, d]{};",
}  # fmt: skip
SETS = ["", "", "", " >= 0", " >= -1, <= 1", " in box(-1, 1)", " <= 3", " >= p"]
VECTOR_SETS = [*SETS, " in ball(2)", " in simplex({})", " in ball1(1)", " in simplex({})", " in box(0, 2)"]
NUMBERS = ["0", "1", "2", "0.5", "3", "1e-3", "10", "0.1", "1e6", "1e-12", "1e300", "7"]
EXPONENTS = ["2", "2", "3", "4", "0.5", "-1", "1.5", "0", "1", "p", "r", "-0.5", "1e3", "100"]
DRAWS = [
    "z ~ D",
    "z ~ D",
    "z ~ P",
    "z in D",
    "z in N",
    *(f"z ~ D | {c}" for c in ("z.y == 1", "z.n > 0", "z.t > p", "z.c == 2")),
]
LABELS = ["k in T", "k in T", "g in G", "g in G", "k in {1, 2, 3}", "k in 1 .. 3 by 2"]
TAILS = [
    "cvar(tail = 0.5)",
    "cvar(tail = 0.3)",
    "topk(k = 2)",
    "pmean(p = 2)",
    "pmean(p = 3)",
    "logmeanexp(t = 1)",
]


class Models:
    """Random models from a seed; ``row`` is a row's name inside a reduction, ``label`` that of an index."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        public = {name: atom for name, atom in atoms.all().items() if not atom.internal and not atom.symbol}
        self.entrywise = {
            name: atom for name, atom in public.items() if hasattr(atom, "formula") or atom.variadic
        }
        self.whole = {name: atom for name, atom in public.items() if name not in self.entrywise}

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def one(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    # ---------------------------------------------------------------------------------- expressions
    def scalar(self, depth: int, row: bool = False, label: str = "") -> str:
        """A number."""
        if depth <= 0:
            return self.leaf(row, label)

        def inner() -> str:
            return self.scalar(depth - self.random.choice([1, 1, 2, 3]), row, label)

        return self.one(
            lambda: f"({inner()} {self.pick('+', '-', '*', '+', '-', '*', '/')} {inner()})",
            lambda: f"({inner()} {self.pick('+', '-', '*')} {inner()})",
            lambda: f"({inner()})^{self.pick(*EXPONENTS)}",
            lambda: f"-{inner()}",
            lambda: self.call(self.entrywise, inner),
            lambda: self.call(self.entrywise, inner),
            lambda: self.call(self.whole, lambda: self.vector(depth - 1, row, label)),
            lambda: (
                f"{self.pick('sumsq', 'norm1', 'norm2', 'sum', 'mean', 'norminf')}({self.vector(depth - 1, row, label)})"
            ),
            lambda: f"dot({self.vector(depth - 1, row, label)}, {self.vector(depth - 1, row, label)})",
            lambda: self.reduction(depth, row, label),
            lambda: self.reduction(depth, row, label),
            lambda: self.leaf(row, label),
        )

    def call(self, known: dict[str, Any], argument: Callable[[], str]) -> str:
        """A function of the language; its parameters are numbers."""
        name = self.random.choice(list(known))
        atom = known[name]
        count = max(atom.min_count, 1) + (self.random.randrange(3) if atom.variadic else 0)
        names = atom.names(count)
        return f"{name}({', '.join(self.pick('0.5', '1', 'p', 'r', '2') if n in atom.parameters else argument() for n in names)})"

    def leaf(self, row: bool, label: str) -> str:
        choices = [
            "u",
            "v",
            "u",
            "v",
            "p",
            "q",
            "r",
            "w[1]",
            "w[2]",
            "b[1]",
            "h[1]",
            "sum(w)",
            *self.random.choices(NUMBERS, k=2),
        ]
        if row:
            choices += [
                "z.t",
                "z.y",
                "z.n",
                "dot(w, z.x)",
                "dot(w, z.x)",
                "s[z.g]",
                "h[z.c]",
                "z.t - dot(w, z.x)",
                "w @ z.x",
            ]
        choices += {"": [], "k": ["h[k]", "h[k]", "k"], "g": ["s[g]"]}[label]
        return self.pick(*choices)

    def vector(self, depth: int, row: bool, label: str) -> str:
        """``d`` numbers, mostly."""
        if depth <= 0:
            return self.pick("w", "w", "b", "w - b", "A[1]", "B[1]", "w", "w", *(["z.x"] * 3 if row else []))

        def inner() -> str:
            return self.vector(depth - 1, row, label)

        return self.one(
            lambda: f"({inner()} {self.pick('+', '-', '*', '/')} {inner()})",
            lambda: f"{self.scalar(depth - 1, row, label)} * {inner()}",
            lambda: f"{self.pick('A', 'B', 'A', 'transpose(B)')} @ {inner()}",
            lambda: self.call(self.entrywise, inner),
            lambda: f"concat({self.scalar(depth - 1, row, label)}, {self.scalar(depth - 1, row, label)})",
            lambda: f"softmax({inner()})",
            lambda: (
                f"{self.pick('E[z ~ D]', 'mean[z in D]', 'sum[k in G]')} "
                f"({self.vector(depth - 1, True, label)})"
            ),
            inner,
        )

    def reduction(self, depth: int, row: bool, label: str) -> str:
        """A mean, a sum, a tail..., over rows, labels or a simple set."""
        form = self.random.randrange(9)
        if form < 4:
            kind = self.pick(
                "E", "E", "E", "mean", "variance", "sum", "max", "min", "prob", "logsumexp", *TAILS
            )
            draw = self.pick(*DRAWS)
            if kind in ("E", "variance", "prob"):
                draw = draw.replace(" in ", " ~ ")
            elif kind in ("sum", "max", "min", "logsumexp"):
                draw = draw.replace(" ~ ", " in ")
            body = self.scalar(depth - 1, True, label)
            body += f" {self.pick('<=', '>')} {self.pick('0', 'u')}" if kind == "prob" else ""
            return f"({kind}[{draw}] ({body}))"
        if form < 7:
            kind = self.pick("sum", "mean", "max", "min", "prod", "logsumexp", "sum", *TAILS)
            labels = self.pick(*LABELS)
            return f"({kind}[{labels}] ({self.scalar(depth - 1, row, labels[0])}))"
        if form == 7:
            body = f"dot(m, {self.vector(depth - 1, row, label)})"
            return f"(max[m in {self.pick('simplex(d)', 'ball(1)', 'ball1(2)')}] {body})"
        noise = self.pick(
            "normal(0, 1)", "uniform(-1, 1)", "bernoulli(0.3)", "laplace(0, 1)", "exponential(1)"
        )
        return f"(E[z ~ P, o ~ {self.pick('N', 'D', noise)}] ({self.scalar(depth - 1, True, label)}))"

    # --------------------------------------------------------------------------------------- models
    def constraint(self, k: int) -> str:
        depth = self.random.randrange(1, 4)
        relation = self.one(
            lambda: (
                f"{self.scalar(depth)} {self.pick('<=', '<=', '>=', '==')} "
                f"{self.pick('0', '1', '0.5', 'p', '10', 'u')}"
            ),
            lambda: f"{self.pick('0', '-1')} <= {self.scalar(depth)} <= {self.pick('1', '5')}",
            lambda: (
                f"{self.pick('norm1', 'norm2', 'sum', 'sumsq')}(w) {self.pick('<=', '==')} "
                f"{self.pick('1', '2', 'r')}"
            ),
            lambda: f"w {self.pick('<=', '>=')} {self.pick('1', 'b', '2 * b')}",
            lambda: (
                f"{self.pick('1 <= 2', '0 * u <= 1', '1e9 * u >= 1e9', 'p <= 1', '2 <= 1', '0 == 0', 'u - u <= 0')}"
            ),
        )
        if self.random.random() < 0.25:
            labels = self.pick(*LABELS)
            return f"c{k}[{labels}]: {self.scalar(depth, False, labels[0])} <= {self.pick('1', '2')};"
        return (f"c{k}: " if self.random.random() < 0.7 else "") + relation + ";"

    def objective(self) -> str:
        depth = self.random.randrange(1, 5)
        body = self.scalar(depth)
        kind = self.random.randrange(4)
        if kind == 0:
            body = f"E[z ~ D] ({self.scalar(depth, True)})"
        elif kind == 1:
            body = f"{self.pick('sumsq(w)', 'abs(u)', '(u - 1)^2', 'norm1(w)', 'huber(u - 3, 1)')} + {body}"
        elif kind == 2:
            loss = self.pick(
                "log1pexp(-z.y * dot(w, z.x))", "(dot(w, z.x) - z.t)^2", "abs(dot(w, z.x) - z.t)"
            )
            body = f"E[z ~ D] {loss} + {self.pick('0.1 * ', '', 'p * ')}{self.scalar(depth - 1)}"
        return f"{self.pick('minimize', 'minimize', 'maximize')} {self.pick('', '', 'e: ')}{body}"

    def text(self) -> str:
        """A model's text."""
        sets = {name: self.random.choice(VECTOR_SETS if name in "wsh" else SETS) for name in VARIABLES}
        sizes = {"w": "d", "s": "G", "h": "T", "B": "d", "u": "1", "v": "1"}
        declared = [line.format(sets[name].format(sizes[name])) for name, line in VARIABLES.items()]
        lets, body = [], self.objective()
        if self.random.random() < 0.3:
            lets = [f"let a = {self.scalar(2)};", f"let f[g in G] = {self.scalar(2, False, 'g')};"]
            body += self.pick(" + a", " + max[g in G] f[g]", " + sum[g in G] f[g]", " * a", "")
        lines = [*lets, body + ";"]
        if self.random.random() < 0.5:
            lines += ["subject to", *(self.constraint(k) for k in range(self.random.randrange(1, 4)))]
        for name, line in reversed((HEAD | dict(zip(VARIABLES, declared, strict=True))).items()):
            if re.search(rf"\b{name}\b", "\n".join(lines)):
                lines.insert(0, line)
        return "\n".join(lines) + "\n"
