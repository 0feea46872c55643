"""Entrywise operations as expressions of C."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from fccomodel.execution.backends.c.values import FusedOperation, Node, kind, literal, named

if TYPE_CHECKING:
    from fccomodel.execution.backends.c import Loops

#: Entrywise operations by their names in torch, for arguments a, b, c. ``S`` and ``F`` stand for the
#: ending of a function's name for its type.
ENTRIES = {
    "add": "({a} + {b})",
    "sub": "({a} - {b})",
    "rsub": "({b} - {a})",
    "mul": "({a} * {b})",
    "div": "({a} / {b})",
    "neg": "(-{a})",
    "abs": "abs_{S}({a})",
    "exp": "exp{F}({a})",
    "expm1": "expm1{F}({a})",
    "log": "log{F}({a})",
    "log1p": "log1p{F}({a})",
    "sqrt": "sqrt{F}({a})",
    "rsqrt": "(1 / sqrt{F}({a}))",
    "reciprocal": "(1 / {a})",
    "relu": "relu_{S}({a})",
    "sigmoid": "(1 / (1 + exp{F}(-{a})))",
    "tanh": "tanh{F}({a})",
    "sin": "sin{F}({a})",
    "cos": "cos{F}({a})",
    "erf": "erf{F}({a})",
    "atan": "atan{F}({a})",
    "floor": "floor{F}({a})",
    "ceil": "ceil{F}({a})",
    "round": "rint{F}({a})",
    "sign": "(({a} > 0) - ({a} < 0))",
    "square": "square_{S}({a})",
    "maximum": "maximum_{S}({a}, {b})",
    "minimum": "minimum_{S}({a}, {b})",
    "lerp": "lerp_{S}({a}, {b}, {c})",
    "where": "({a} ? {b} : {c})",
    "eq": "({a} == {b})",
    "ne": "({a} != {b})",
    "lt": "({a} < {b})",
    "le": "({a} <= {b})",
    "gt": "({a} > {b})",
    "ge": "({a} >= {b})",
    "isnan": "({a} != {a})",
    "signbit": "(__builtin_signbit({a}) != 0)",
    "logical_and": "({a} && {b})",
    "logical_or": "({a} || {b})",
    "logical_not": "(!{a})",
    "bitwise_and": "({a} & {b})",
    "bitwise_or": "({a} | {b})",
    "bitwise_not": "(!{a})",
    "elu": "elu_{S}({a}, {b})",
    "copy": "{a}",
}
#: Operations whose result is a truth value: arguments are compared in their own type.
TRUTHS = {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "signbit", "logical_and", "logical_or", "logical_not"}
#: Functions that are vectorised only without a condition before them.
CALLS = ("exp", "log", "tanh", "sin(", "cos(", "erf", "atan", "pow")
#: Operations that copy their argument.
COPIES = {"clone", "_to_copy", "copy", "contiguous", "alias_copy"}


def inner(node: Node) -> bool:
    """Whether a node reads entries of its arguments inside its own loop."""
    name = named(node)
    return name in ENTRIES or name in EXTRA or name in COPIES


def clamp(loops: Loops, node: Node, like: torch.Tensor) -> FusedOperation:
    """x between two bounds; either may be missing."""
    x, *bounds = node.args
    low, high = [*bounds, None, None][:2]
    low, high = node.kwargs.get("min", low), node.kwargs.get("max", high)
    dtype, shape = like.dtype, tuple(like.shape)
    clamped = loops.operand(x, dtype)
    for bound, name in ((low, "maximum"), (high, "minimum")):
        if bound is not None:
            text = f"{name}_{kind(dtype)}({{a}}, {{b}})"
            clamped = FusedOperation(text, (clamped, loops.operand(bound, dtype)), shape, dtype)
    if isinstance(clamped, FusedOperation):
        return clamped
    return FusedOperation("{a}", (clamped,), shape, dtype)


def power(loops: Loops, node: Node, like: torch.Tensor) -> FusedOperation:
    """x to a power; common exponents without ``pow``."""
    x, exponent = node.args
    dtype, shape = like.dtype, tuple(like.shape)
    base = loops.operand(x, dtype)
    suffix = "f" if dtype == torch.float32 else ""
    common = {2: f"square_{kind(dtype)}({{a}})", 1: "{a}", 0.5: f"sqrt{suffix}({{a}})", -1: "(1 / {a})"}
    if isinstance(exponent, int | float) and exponent in common:
        return FusedOperation(common[exponent], (base,), shape, dtype)
    return FusedOperation(f"pow{suffix}({{a}}, {{b}})", (base, loops.operand(exponent, dtype)), shape, dtype)


def product_of(sign: str) -> Callable[[Loops, Node, torch.Tensor], FusedOperation]:
    """The operation x + value a b, or x + value a / b."""

    def made(loops: Loops, node: Node, like: torch.Tensor) -> FusedOperation:
        """The expression for a node."""
        x, a, b = (loops.operand(arg, like.dtype) for arg in node.args)
        by = literal(node.kwargs.get("value", 1), like.dtype)
        return FusedOperation(
            f"({{a}} + {by} * ({{b}} {sign} {{c}}))", (x, a, b), tuple(like.shape), like.dtype
        )

    return made


def filled(loops: Loops, node: Node, like: torch.Tensor) -> FusedOperation:
    """An array of one number, by default 0."""
    if len(node.args) > 1:
        number = node.args[1]
    else:
        number = 0
    return FusedOperation("{a}", (loops.operand(number, like.dtype),), tuple(like.shape), like.dtype)


#: Operations with their own functions, by their names in torch.
EXTRA: dict[str, Callable[[Loops, Node, torch.Tensor], FusedOperation]] = {
    "fill": filled,
    "zero": filled,
    "clamp": clamp,
    "clamp_min": clamp,
    "pow": power,
    "addcmul": product_of("*"),
    "addcdiv": product_of("/"),
}
