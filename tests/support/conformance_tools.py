"""Random places, a torch evaluator of formulas in the modelling language, and the book of declared
fields that tests check."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from fccomodel.library import atoms
from fccomodel.library.atoms import Interval

torch.set_num_threads(1)
OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
#: where to take parameters from, by name
PARAMETERS = {
    "a": (2.2, 4.0),
    "c": (0.2, 2.0),
    "delta": (0.2, 2.0),
    "eps": (0.1, 1.0),
    "hi": (0.2, 2.0),
    "l": (0.1, 1.5),
    "lo": (-2.0, 0.0),
    "tau": (0.05, 0.95),
}
EXPONENTS = (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
ENDS = (-math.inf, -6.0, -2.5, -1.0, -0.4, 0.0, 0.0, 0.3, 1.0, 2.5, 6.0, math.inf)


class Book:
    """Which fields of a record some test checks; ``missing`` are those that none does, but for a
    ``Domain``'s own."""

    def __init__(self, *records: type):
        self.declared = {field.name for record in records for field in fields(record)}
        self.checked: set[str] = set()

    def checks(self, *names: str) -> Callable[[Any], Any]:
        """Marks a test as the one that checks these fields."""
        unknown = set(names) - self.declared
        assert not unknown, f"no such field: {unknown}"
        self.checked |= set(names)
        return lambda test: test

    @property
    def missing(self) -> set[str]:
        return self.declared - self.checked - {field.name for field in fields(atoms.Domain)}


def torch_value(
    atom: atoms.Atom, args: Iterable[torch.Tensor], shapes: tuple = (), numbers: tuple = ()
) -> torch.Tensor:
    """The atom's torch text on tensors; ``numbers`` (not None) stand in the text as Python numbers."""
    args = tuple(args)
    numbers = numbers or (None,) * len(args)
    shapes = shapes or ((),) * len(args)
    site = atoms.Site(shapes=shapes, numbers=numbers, python=tuple(n is not None for n in numbers))
    texts = tuple(f"a{k}" if n is None else (f"({n!r})" if n < 0 else repr(n)) for k, n in enumerate(numbers))
    env = {f"a{k}": arg for k, arg in enumerate(args)} | {"torch": torch}
    return eval(atom.lower(texts, site), env)  # noqa: S307


def formula(text: str, values: dict[str, torch.Tensor]) -> torch.Tensor:
    """A derivative or conjugate, written in the modelling language, by the registry alone."""

    def walk(node: ast.expr) -> torch.Tensor:
        match node:
            case ast.Constant(value=value):
                return torch.tensor(float(value), dtype=next(iter(values.values())).dtype)
            case ast.Name(id="pi"):
                return walk(ast.Constant(math.pi))
            case ast.Name(id=name):
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return apply(OPERATORS[type(op)], [left, right])
            case ast.Call(func=ast.Name(id=name), args=args):
                return apply(name, args)
        raise AssertionError(f"not of the language: {ast.dump(node)}")

    def apply(name: str, nodes: list[ast.expr]) -> torch.Tensor:
        atom = atoms.get(name)
        assert atom is not None, f"{name} is no atom"
        args = [walk(node) for node in nodes]
        if isinstance(atom, atoms.ArrayAtom):
            whole = {k for k, n in enumerate(atom.names(len(args))) if n in ("start", "stop", "size")}
            numbers = tuple(int(arg) if k in whole else None for k, arg in enumerate(args))
            return torch_value(atom, args, tuple(tuple(a.shape) for a in args), numbers)
        if name == "pow" and isinstance(nodes[1], ast.Constant):
            return torch_value(atom, args, numbers=(None, float(nodes[1].value)))
        return torch_value(atom, args)

    return walk(ast.parse(text.replace("^", "**"), mode="eval").body)


def parameter(rng: np.random.Generator, atom: atoms.Atom, name: str) -> float:
    """A value for a parameter."""
    if atom.name == "pow":
        return float(rng.choice(EXPONENTS))
    return float(rng.uniform(*PARAMETERS[name]))


def place(rng: np.random.Generator, inside: Interval | None, *, avoid_zero: bool = False) -> Interval:
    """A random interval of the domain, with special or random ends."""
    domain = inside or Interval()
    while True:
        ends = sorted(
            float(rng.choice(ENDS)) if rng.random() < 0.7 else float(rng.normal(0, 3)) for _ in range(2)
        )
        low, high = max(ends[0], domain.lo), min(ends[1], domain.hi)
        open_low = low == domain.lo and domain.lo_open
        if (
            low < high
            and abs(high - low) > 1e-3
            and not (avoid_zero and low <= 0 <= high and rng.random() < 0.8)
        ):
            return Interval(low, high, open_low or low == -math.inf, high == math.inf)


def points(rng: np.random.Generator, where: Interval, count: int | tuple[int, ...]) -> np.ndarray:
    """Members of an interval, near its ends too."""
    low, high = max(where.lo, -30.0), min(where.hi, 30.0)
    low, high = (
        min(low, high - 1),
        max(high, low + 1) if where.lo == -math.inf or where.hi == math.inf else high,
    )
    low, high = max(low, where.lo), min(high, where.hi)
    drawn = low + (high - low) * rng.beta(0.7, 0.7, size=count)
    near = np.clip(rng.normal(0, 1.5, size=count), low, high)
    x = np.where(rng.random(count) < 0.5, drawn, near)
    margin = 1e-9 * (high - low)
    return np.clip(x, low + margin * where.lo_open, high - margin * where.hi_open)
