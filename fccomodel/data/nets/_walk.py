"""Finds the smoothness of a net as a function of its parameters, with reasons.

Every operation is followed from the input (which does not depend on the parameters) to the output. The
state of a value is ``constant``, ``affine``, ``smooth``, ``weakly convex`` or ``unknown``. A convex kink
(ReLU) of a smooth value is weakly convex. A later layer with free weights may multiply the kink by a
negative number, so the result is ``unknown``.
"""

from __future__ import annotations

import builtins
import operator
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch import nn
from torch.nn import functional as F

from fccomodel.core import process

# States of a value: its dependence on the parameters, from the simplest on.
CONSTANT = "constant"
AFFINE = "affine"
SMOOTH = "smooth"
WEAK = "weakly convex"
UNKNOWN = "unknown"
ORDER = (CONSTANT, AFFINE, SMOOTH, WEAK, UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class NetFacts:
    """The smoothness of a net as a function of its parameters.

    kind      ``smooth``, ``weakly convex`` or ``unknown``. Smooth means continuously differentiable;
              the gradient may have no global Lipschitz constant
    affine    whether a smooth net is affine
    reasons   sentences that name the layers
    """

    kind: str
    affine: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def smooth(self) -> bool:
        """Whether the output is a smooth function of the weights."""
        return self.kind == SMOOTH

    @property
    def weakly_convex(self) -> bool:
        """Whether the output is weakly convex in the weights and has kinks."""
        return self.kind == WEAK


#: From the state of an operation's input to the state of its output.
_Rule = Callable[[str], str]


def _smooth(state: str) -> str:
    """The rule of a smooth function."""
    return {CONSTANT: CONSTANT, AFFINE: SMOOTH, SMOOTH: SMOOTH}.get(state, UNKNOWN)


def _convex_increasing(state: str) -> str:
    """The rule of a convex nondecreasing function with kinks."""
    return {CONSTANT: CONSTANT, AFFINE: WEAK, SMOOTH: WEAK, WEAK: WEAK}.get(state, UNKNOWN)


def _convex(state: str) -> str:
    """The rule of a convex function with kinks."""
    return {CONSTANT: CONSTANT, AFFINE: WEAK, SMOOTH: WEAK}.get(state, UNKNOWN)


def _average(state: str) -> str:
    """The rule of averages and of reshaping, which keep every state."""
    return state


def _kinked(state: str) -> str:
    """The rule of a function with kinks that is not convex."""
    if state == CONSTANT:
        return CONSTANT
    return UNKNOWN


def _weights(state: str) -> str:
    """The rule of a layer that is linear in its own free weights and in its input."""
    return {CONSTANT: AFFINE, AFFINE: SMOOTH, SMOOTH: SMOOTH}.get(state, UNKNOWN)


def _fixed_weights(state: str) -> str:
    """The rule of a linear layer with fixed weights, which may be negative."""
    if state in (CONSTANT, AFFINE, SMOOTH):
        return state
    return UNKNOWN


LINEAR = (nn.Linear, nn.modules.conv._ConvNd, nn.Embedding, nn.modules.batchnorm._BatchNorm)
NORMALISING = (nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)
RECURRENT = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell)
SMOOTH_LAYERS = (
    nn.SiLU,
    nn.GELU,
    nn.Softplus,
    nn.Tanh,
    nn.Sigmoid,
    nn.LogSigmoid,
    nn.Softmax,
    nn.LogSoftmax,
    nn.Softmin,
    nn.Mish,
    nn.Softsign,
    nn.CELU,
    nn.GLU,
    nn.Tanhshrink,
)
AVERAGES = (
    nn.Identity,
    nn.Flatten,
    nn.Unflatten,
    nn.modules.dropout._DropoutNd,
    nn.AvgPool1d,
    nn.AvgPool2d,
    nn.AvgPool3d,
    nn.AdaptiveAvgPool1d,
    nn.AdaptiveAvgPool2d,
    nn.AdaptiveAvgPool3d,
    nn.Upsample,
    nn.PixelShuffle,
    nn.ConstantPad1d,
    nn.ConstantPad2d,
    nn.ZeroPad2d,
)
MAXIMA = (
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.MaxPool3d,
    nn.AdaptiveMaxPool1d,
    nn.AdaptiveMaxPool2d,
    nn.AdaptiveMaxPool3d,
)

_SMOOTH_FUNCTIONS = (
    F.silu,
    F.gelu,
    F.softplus,
    torch.tanh,
    torch.sigmoid,
    F.sigmoid,
    F.tanh,
    F.logsigmoid,
    F.softmax,
    F.log_softmax,
    F.mish,
    F.celu,
    F.softsign,
    F.layer_norm,
    torch.exp,
    torch.sin,
    torch.cos,
    torch.softmax,
    torch.log_softmax,
    torch.square,
    torch.erf,
    torch.logsumexp,
    torch.sinh,
)
_RESHAPING = (
    torch.flatten,
    torch.squeeze,
    torch.unsqueeze,
    torch.reshape,
    torch.permute,
    torch.transpose,
    torch.movedim,
    torch.cat,
    torch.stack,
    torch.clone,
    torch.mean,
    torch.sum,
    operator.getitem,
    builtins.getattr,
    F.avg_pool1d,
    F.avg_pool2d,
    F.adaptive_avg_pool1d,
    F.adaptive_avg_pool2d,
    F.dropout,
)
FUNCTIONS: Mapping[Any, _Rule] = {
    **dict.fromkeys(_SMOOTH_FUNCTIONS, _smooth),
    **dict.fromkeys((F.relu, torch.relu, torch.amax, F.max_pool1d, F.max_pool2d), _convex_increasing),
    **dict.fromkeys((torch.abs, builtins.abs, operator.abs), _convex),
    **dict.fromkeys(_RESHAPING, _average),
}
_RESHAPING_METHODS = (
    "flatten",
    "unflatten",
    "squeeze",
    "unsqueeze",
    "reshape",
    "view",
    "permute",
    "transpose",
    "movedim",
    "expand",
    "contiguous",
    "clone",
    "float",
    "double",
    "to",
    "mean",
    "sum",
    "size",
    "dim",
)
PRODUCTS = (operator.mul, torch.mul, operator.matmul, torch.matmul, torch.bmm, torch.mm, F.linear)
METHODS: Mapping[str, _Rule] = {
    **dict.fromkeys(
        ("tanh", "sigmoid", "exp", "sin", "cos", "square", "softmax", "log_softmax", "logsumexp"), _smooth
    ),
    **dict.fromkeys(("relu", "amax"), _convex_increasing),
    "abs": _convex,
    **dict.fromkeys(_RESHAPING_METHODS, _average),
}


class _Tracer(torch.fx.Tracer):
    """A tracer for one thread.

    While it traces, torch calls the modules of all threads through it. Those of other threads are called
    as usual.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """Trace the call of a module, in this thread only."""
        if threading.get_ident() == self._thread:
            return super().call_module(m, forward, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        """Trace an attribute of a module, in this thread only."""
        if threading.get_ident() == self._thread:
            return super().getattr(attr, attr_val, parameter_proxy_cache)
        return attr_val


def walk(module: nn.Module, moving: str = CONSTANT) -> NetFacts:
    """The facts about a module, from its operations between input and output.

    moving   how its inputs depend on variables; they are data unless it is given. The facts are then of a
             function of the parameters and of these variables
    """
    try:
        with process.ALONE, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = _Tracer().trace(module)
    except Exception as error:  # whatever a user's forward does with a traced value
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = f"the forward of {type(module).__name__} cannot be followed: {message}"
        return NetFacts(kind=UNKNOWN, reasons=(reason,))
    states: dict[torch.fx.Node, str] = {}
    kinks: dict[str, list[str]] = {}  # the places of layers with convex kinks, by the name of the layer
    unknown: list[str] = []  # operations that made the state unknown
    negating = ""  # the first operation that may multiply a kink by a negative number
    for node in graph.nodes:
        first = moving if node.op == "placeholder" else CONSTANT
        before = max((states[source] for source in node.all_input_nodes), key=ORDER.index, default=first)
        states[node] = _state_after(module, node, states, before)
        has_convex_kink = _can_have_kinks(module, node) and _state_after(module, node, states, SMOOTH) == WEAK
        if before != CONSTANT and has_convex_kink:
            kinks.setdefault(_name(module, node), []).append(str(node.target))
        elif states[node] == UNKNOWN and before != UNKNOWN:
            described = f"{_name(module, node)}{_layers_at(module, [node.target])}"
            if before != WEAK:
                unknown.append(described)
            elif not negating:
                negating = described
    final = next(states[node] for node in graph.nodes if node.op == "output")
    layers = ", ".join(f"{name}{_layers_at(module, paths)}" for name, paths in kinks.items())
    if final == UNKNOWN:
        reasons = []
        if negating:
            reasons.append(
                f"{layers}: a kink where the argument is 0, which {negating} after it may multiply by a "
                "negative number"
            )
        for name in dict.fromkeys(unknown):
            reasons.append(f"{name}: not differentiable everywhere, or not known here")
        return NetFacts(kind=UNKNOWN, reasons=tuple(reasons))
    if final == WEAK:
        return NetFacts(kind=WEAK, reasons=(f"{layers}: convex kinks, and no free weights after them",))
    if final == SMOOTH:
        return NetFacts(
            kind=SMOOTH, reasons=("every layer is continuously differentiable in its input and its weights",)
        )
    return NetFacts(kind=SMOOTH, affine=True, reasons=("the output is affine in the parameters",))


def _can_have_kinks(module: nn.Module, node: torch.fx.Node) -> bool:
    """Whether a node can have kinks of its own, as arithmetic cannot."""
    return (
        node.op == "call_module"
        or node.target in METHODS
        or node.target in FUNCTIONS
        or node.target in (F.leaky_relu, F.elu)
    )


def _name(module: nn.Module, node: torch.fx.Node) -> str:
    """The name of a node: the class of a layer, or a function with its parentheses."""
    if node.op == "call_module":
        return type(module.get_submodule(str(node.target))).__name__
    if isinstance(node.target, str):
        return f"{node.target}()"
    return f"{getattr(node.target, '__name__', node.target)}()"


def _layers_at(module: nn.Module, paths: list[Any]) -> str:
    """The paths that are layers, as `` (layers 0, 2)``; empty if none is."""
    known = dict(module.named_modules())
    layers = [path for path in paths if isinstance(path, str) and known.get(path) is not None]
    if not layers:
        return ""
    if len(layers) == 1:
        return f" (layer {layers[0]})"
    return f" (layers {', '.join(layers)})"


def _state_after(
    module: nn.Module, node: torch.fx.Node, states: Mapping[torch.fx.Node, str], before: str
) -> str:
    """The state of a node's value, if the last of its inputs' states is ``before``."""
    if node.op in ("placeholder", "output"):
        return before
    if node.op == "get_attr":
        value: Any = module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, nn.Parameter) and value.requires_grad:
            return AFFINE
        return CONSTANT
    if node.op == "call_module":
        return _layer(module.get_submodule(str(node.target)))(before)
    if node.op == "call_method" and node.target in METHODS:
        return METHODS[str(node.target)](before)
    if node.target in FUNCTIONS:
        return FUNCTIONS[node.target](before)
    return _arithmetic(node, states, before)


def _layer(layer: nn.Module) -> _Rule:
    """The rule of a layer of torch."""
    free = any(parameter.requires_grad for parameter in layer.parameters())
    if isinstance(layer, LINEAR):
        if free:
            return _weights
        return _fixed_weights
    if isinstance(layer, NORMALISING):
        if layer.eps > 0:
            return lambda state: AFFINE if state == CONSTANT and free else _smooth(state)
        return _kinked
    with_tanh = isinstance(layer, nn.RNN | nn.RNNCell) and layer.nonlinearity == "tanh"
    if isinstance(layer, RECURRENT) or with_tanh:
        return lambda state: SMOOTH if state in (CONSTANT, AFFINE, SMOOTH) else UNKNOWN
    if isinstance(layer, SMOOTH_LAYERS):
        return _smooth
    if isinstance(layer, nn.ELU):
        return _elu(layer.alpha)
    convex_leaky = isinstance(layer, nn.LeakyReLU) and 0 <= layer.negative_slope <= 1
    if isinstance(layer, nn.ReLU) or isinstance(layer, MAXIMA) or convex_leaky:
        return _convex_increasing
    if isinstance(layer, AVERAGES):
        return _average
    if not free:
        return _kinked
    return lambda state: UNKNOWN


def _elu(alpha: float) -> _Rule:
    """The rule of an ELU."""
    if alpha == 1:
        return _smooth
    if 0 <= alpha < 1:
        return _convex_increasing
    return _kinked


def _product(node: torch.fx.Node, states: Mapping[torch.fx.Node, str], sides: Sequence[str]) -> str:
    """The state of a product, whose first two factors have the states ``sides``."""
    dependent = [side for side in sides if side != CONSTANT]
    if len(dependent) < 2:
        product = (dependent or [CONSTANT])[0]
    elif all(side in (AFFINE, SMOOTH) for side in dependent):
        product = SMOOTH
    else:
        product = UNKNOWN
    numbers = [arg for arg in node.args[:2] if isinstance(arg, int | float)]
    if product == WEAK and not (numbers and numbers[0] >= 0):
        return UNKNOWN
    others = [states[source] for source in node.all_input_nodes[2:]]
    return max([product, *others], key=ORDER.index)


def _arithmetic(node: torch.fx.Node, states: Mapping[torch.fx.Node, str], before: str) -> str:
    """The state of a sum, product, quotient or power of values and numbers."""
    sides = [states[arg] if isinstance(arg, torch.fx.Node) else CONSTANT for arg in node.args[:2]]
    numbers = [arg for arg in node.args[:2] if isinstance(arg, int | float)]
    if node.target in (operator.add, torch.add, operator.iadd):
        return before
    if node.target in (operator.sub, torch.sub):
        if len(sides) > 1 and sides[1] == WEAK:
            return UNKNOWN
        return before
    if node.target in (operator.neg, torch.neg):
        return _fixed_weights(before)
    if node.target in PRODUCTS:
        return _product(node, states, sides)
    if node.target in (operator.truediv, torch.div):
        constant_divisor = len(sides) < 2 or sides[1] == CONSTANT
        positive = bool(numbers) and numbers[0] > 0
        return before if constant_divisor and (before != WEAK or positive) else UNKNOWN
    if node.target in (operator.pow, torch.pow) and sides[0] != WEAK:
        if numbers and numbers[-1] in (1, 2, 3, 4):
            return _smooth(before)
    if node.target in (F.leaky_relu, F.elu):
        return _activation(node, before)
    if before == CONSTANT:
        return CONSTANT
    return UNKNOWN


def _activation(node: torch.fx.Node, before: str) -> str:
    """The state of a leaky ReLU or an ELU that is called as a function."""
    if len(node.args) > 1:
        parameter = node.args[1]
    else:
        parameter = node.kwargs.get("negative_slope", node.kwargs.get("alpha"))
    if node.target is F.elu:
        if parameter in (None, 1, 1.0):
            return _smooth(before)
        return _kinked(before)
    if parameter is None or isinstance(parameter, int | float) and 0 <= parameter <= 1:
        return _convex_increasing(before)
    return _kinked(before)


def train_mode(module: nn.Module) -> list[tuple[str, str]]:
    """The layers that make the output random or dependent on other rows in their present mode.

    Each is a pair of a name and a reason.
    """
    layers = []
    for path, layer in module.named_modules():
        name = type(layer).__name__
        if path:
            name += f" (layer {path})"
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            if layer.training or layer.running_mean is None:
                why = "in train mode the output for a row depends on the other rows of its batch"
                layers.append((name, why))
        elif isinstance(layer, nn.modules.dropout._DropoutNd) and layer.training and layer.p > 0:
            layers.append((name, "in train mode the output is random"))
        elif isinstance(layer, nn.RReLU) and layer.training:
            layers.append((name, "in train mode the output is random"))
        elif isinstance(layer, nn.RNNBase | nn.MultiheadAttention) and layer.training and layer.dropout > 0:
            layers.append((name, "in train mode its dropout makes the output random"))
    return layers
