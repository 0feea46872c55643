"""Modules made of torch's own layers as text, and back.

``torch.nn.Sequential(torch.nn.Linear(3, 1, bias=True), torch.nn.Flatten(start_dim=0, end_dim=-1))``

A text is read, not run: it may name layers of ``torch.nn`` and plain values, nothing else.
"""

from __future__ import annotations

import ast
from types import NoneType
from typing import Any

import torch

from fccomodel.core import process

#: How the text of a layer begins.
PREFIX = "torch.nn."
#: The attributes of every module: its parts, its hooks, and its mode.
OWN = frozenset(vars(torch.nn.Module()))
#: What the attributes begin with that binding gave a module.
BOUND = "_fccomodel"


def own_layer(module: torch.nn.Module) -> str | None:
    """The text that makes a layer of torch without parts, or None for other modules."""
    kind = type(module)
    if kind is torch.nn.Linear:
        sizes = f"{module.in_features}, {module.out_features}"
        return f"{PREFIX}Linear({sizes}, bias={module.bias is not None})"
    if getattr(torch.nn, kind.__name__, None) is kind and not list(module.children()):
        return f"{PREFIX}{kind.__name__}({module.extra_repr()})"
    return None


def written(module: torch.nn.Module) -> str | None:
    """The text of a module of torch's own layers, or None if no text makes its like again.

    Weights, buffers and the mode are not in the text. A module with parameters that are not trained has
    none, since an answer has no values of them.
    """
    text = _written(module)
    if text is None:
        return None
    try:
        with process.own_randomness():
            again = read(text)
    except ValueError:
        return None
    hooked = any(one._forward_hooks or one._forward_pre_hooks for one in module.modules())
    fixed = not all(parameter.requires_grad for parameter in module.parameters())
    if hooked or fixed or not _alike(module, again):
        return None
    return text


def _alike(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    """Whether two modules have the same layers with the same settings, shapes and types.

    The text of a layer leaves out some settings, such as ``count_include_pad`` of a pooling.
    """
    if repr(one) != repr(other):
        return False
    tensors = [{name: (v.shape, v.dtype) for name, v in m.state_dict().items()} for m in (one, other)]
    layers = zip(one.modules(), other.modules(), strict=True)
    return tensors[0] == tensors[1] and all(same_settings(a, b) for a, b in layers)


def same_settings(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    """Whether two layers have the same settings: the attributes that not every module has."""
    first, second = _settings(a), _settings(b)
    return first.keys() == second.keys() and all(same_value(first[name], second[name]) for name in first)


def _settings(layer: torch.nn.Module) -> dict[str, Any]:
    """The attributes of a layer that not every module has, by name."""
    return {
        name: value for name, value in vars(layer).items() if name not in OWN and not name.startswith(BOUND)
    }


def same_value(a: Any, b: Any) -> bool:
    """Whether two attributes of a module are one: plain values that are equal, or one object."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b.cpu())
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(same_value, a, b))
    return a is b or isinstance(a, int | float | str | NoneType) and type(a) is type(b) and a == b


def _written(module: torch.nn.Module) -> str | None:
    """The text of a layer, or of layers one after another."""
    if type(module) is not torch.nn.Sequential:
        return own_layer(module)
    parts = [_written(child) for child in module.children()]
    if None in parts:
        return None
    return f"{PREFIX}Sequential({', '.join(map(str, parts))})"


def read(text: str) -> torch.nn.Module:
    """The module of a text, with fresh weights. Raises ValueError for any other text."""
    try:
        return _made(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RuntimeError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def _made(node: ast.expr) -> torch.nn.Module:
    """The layer that a call makes. Raises ValueError if it calls anything else."""
    if not isinstance(node, ast.Call):
        raise ValueError(f"`{ast.unparse(node)}` is no layer")
    name = ast.unparse(node.func)
    kind = getattr(torch.nn, name.removeprefix(PREFIX), None)
    if not name.startswith(PREFIX) or not isinstance(kind, type) or not issubclass(kind, torch.nn.Module):
        raise ValueError(f"`{name}` is no layer of torch.nn")
    options: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError(f"`{ast.unparse(keyword.value)}` is no option")
        options[keyword.arg] = _value(keyword.value)
    arguments = [_value(argument) for argument in node.args]
    try:
        return kind(*arguments, **options)
    except Exception as error:  # of torch, whose layers check their sizes in many ways
        raise ValueError(f"{name}: {error}") from None


def _value(node: ast.expr) -> Any:
    """A layer, or a plain value. Raises ValueError for others."""
    if isinstance(node, ast.Call):
        return _made(node)
    return ast.literal_eval(node)
