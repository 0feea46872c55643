"""Nets by name: ``mlp(64, 64, activation = elu)``, ``linear()``."""

from __future__ import annotations

import ast
import math
from typing import Any

import torch

from fccomodel.core.diagnostics import refuse
from fccomodel.data.nets import errors

ACTIVATIONS: dict[str, type[torch.nn.Module]] = {
    "elu": torch.nn.ELU,
    "silu": torch.nn.SiLU,
    "gelu": torch.nn.GELU,
    "softplus": torch.nn.Softplus,
    "tanh": torch.nn.Tanh,
    "sigmoid": torch.nn.Sigmoid,
    "mish": torch.nn.Mish,
    "relu": torch.nn.ReLU,
    "leaky_relu": torch.nn.LeakyReLU,
    "identity": torch.nn.Identity,
}
#: Nets that can be made by name, with their options.
KINDS = {"mlp": ("activation", "bias"), "linear": ("bias",)}
#: Largest number of weights of a net made by name.
MOST_WEIGHTS = 10**9
#: Largest number of layers of a net made by name.
MOST_LAYERS = 1_000


def parse(text: str) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Hidden widths and options of a specification such as ``mlp(64, 64)``; F0522 for another text."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        refuse(errors.not_a_net(text))
    name = tree
    args: list[ast.expr] = []
    keywords: list[ast.keyword] = []
    if isinstance(tree, ast.Call):
        name, args, keywords = tree.func, tree.args, tree.keywords
    if not isinstance(name, ast.Name):
        refuse(errors.not_a_net(text))
    if name.id not in KINDS:
        refuse(errors.unknown_kind(name.id, KINDS))
    widths = tuple(_width(arg, text) for arg in args)
    if name.id == "linear" and widths:
        refuse(errors.hidden_layers_of_linear())
    options: dict[str, Any] = {"activation": "elu", "bias": True}
    for keyword in keywords:
        if keyword.arg not in KINDS[name.id]:
            refuse(errors.unknown_option(name.id, keyword.arg, KINDS[name.id]))
        options[keyword.arg] = _option(keyword.arg, keyword.value)
    return widths, options


def _width(node: ast.expr, text: str) -> int:
    """The width of a hidden layer; F0522 if it is no whole number."""
    width = node.value if isinstance(node, ast.Constant) else None
    if not isinstance(width, int) or isinstance(width, bool) or not 1 <= width <= 1_000_000:
        refuse(errors.not_a_width(node, text))
    return width


def _option(name: str, node: ast.expr) -> Any:
    """The value of an option; F0522 if it is not allowed."""
    value: Any = None
    if isinstance(node, ast.Name):
        value = node.id
    elif isinstance(node, ast.Constant):
        value = node.value
    if name == "bias":
        booleans = {"true": True, "false": False, True: True, False: False}
        if value not in booleans:
            refuse(errors.not_a_bias(node))
        return booleans[value]
    if value not in ACTIVATIONS:
        refuse(errors.unknown_activation(node, value, ACTIVATIONS))
    return value


def make(text: str, input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> torch.nn.Module:
    """A module that maps (rows, *input) to (rows, *output), made of torch's own layers.

    It has linear layers of the given widths with the activation between them. An output that is a
    number has no axis of its own.
    """
    hidden, options = parse(text)
    sizes = (math.prod(input_shape), *hidden, math.prod(output_shape))
    weights = sum(a * b for a, b in zip(sizes, sizes[1:], strict=False))
    if len(sizes) > MOST_LAYERS or weights > MOST_WEIGHTS:
        refuse(errors.too_large(text, MOST_WEIGHTS))
    layers: list[torch.nn.Module]
    if len(input_shape) == 1:
        layers = []
    elif input_shape:
        layers = [torch.nn.Flatten(-len(input_shape))]
    else:
        layers = [torch.nn.Unflatten(-1, (-1, 1))]
    for k, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
        if k:
            layers += [ACTIVATIONS[options["activation"]]()]
        layers.append(torch.nn.Linear(a, b, bias=options["bias"]))
    if not output_shape:
        layers.append(torch.nn.Flatten(-2))
    elif len(output_shape) > 1:
        layers.append(torch.nn.Unflatten(-1, output_shape))
    return torch.nn.Sequential(*layers)
