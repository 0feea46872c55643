"""F0517, F0522 - F0526: nets that cannot be made, or are no functions of their parameters and one row."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.sources.errors import first_line

if TYPE_CHECKING:
    import torch

SIZE_UNKNOWN = Code("F0517", "size unknown")
SPECIFICATION = Code("F0522", "net specification")
MISSING = Code("F0523", "net missing")
PYTHON = Code("F0524", "python not allowed")
TRAIN_MODE = Code("F0525", "net in train mode")
FIT = Code("F0526", "net does not fit")

EXAMPLE = "mlp(64, 64, activation = elu)"

Shape = Sequence[int | str]


def _spelled(shape: Shape, kind: str = "real") -> str:
    if shape:
        return f"{kind}[{', '.join(map(str, shape))}]"
    return kind


def _inputs(net: ir.Net, shapes: Sequence[Shape]) -> str:
    kinds = ("int" if one.whole else "real" for one in net.inputs)
    return ", ".join(_spelled(shape, kind) for shape, kind in zip(shapes, kinds, strict=True))


# ----------------------------------------------------------------------------------- specifications
def not_a_net(text: str) -> Diagnostic:
    """A specification reads like a call."""
    return SPECIFICATION.error(f"{text[:60]!r} is not a net", fix=f'write "{EXAMPLE}", or "nets.py:Name"')


def value_not_a_net(net: str, value: object) -> Diagnostic:
    """A net is a module, what makes one, or a text."""
    return SPECIFICATION.error(
        f"{net}: a {type(value).__name__} is not a net",
        fix=f'give a torch module, or a text such as "{EXAMPLE}"',
    )


def unknown_kind(name: str, kinds: Collection[str]) -> Diagnostic:
    """A net that is named is built in."""
    fix = (
        did_you_mean(name, kinds)
        or f'the built-in nets are {" and ".join(kinds)}: "{EXAMPLE}"; others are "nets.py:Name"'
    )
    return SPECIFICATION.error(f"there is no built-in net named {name}", fix=fix)


def without_data(net: str) -> Diagnostic:
    """A net is made for the sizes of the data."""
    return MISSING.error(
        f"{net} is given without the data",
        reason="a net is made for the sizes of what it is applied to, which come with the data",
        fix=f"bind the data too (--bind, --data), or leave {net} out",
    )


def not_layers(text: str, error: ValueError) -> Diagnostic:
    """A text of torch's own layers names layers and plain values alone."""
    return SPECIFICATION.error(
        f"{text[:60]!r} makes no module",
        reason=first_line(error),
        fix='write torch\'s own layers with numbers: "torch.nn.Sequential(torch.nn.Linear(3, 1), ...)", or '
        'give a class in a file: "net.py:Net"',
    )


def hidden_layers_of_linear() -> Diagnostic:
    """A linear net is one layer."""
    return SPECIFICATION.error("linear has no hidden layers", fix=f'write "linear()", or "{EXAMPLE}"')


def unknown_option(net: str, option: str | None, options: Collection[str]) -> Diagnostic:
    """An option is one that the built-in net has."""
    fix = did_you_mean(str(option), options) or f"{net} has {' and '.join(options)}"
    return SPECIFICATION.error(f"{net} has no option {option}", fix=fix)


def not_a_width(node: ast.expr, text: str) -> Diagnostic:
    """The widths of layers are whole numbers."""
    return SPECIFICATION.error(
        f"{ast.unparse(node)} in {text[:60]!r} is not the width of a layer",
        fix=f'write whole numbers: "{EXAMPLE}"',
    )


def not_a_bias(node: ast.expr) -> Diagnostic:
    """Layers have biases or not."""
    return SPECIFICATION.error(f"bias = {ast.unparse(node)} is neither true nor false", fix="bias = false")


def unknown_activation(node: ast.expr, value: object, activations: Collection[str]) -> Diagnostic:
    """An activation is built in."""
    fix = did_you_mean(str(value), activations) or f"there are {', '.join(activations)}"
    return SPECIFICATION.error(f"there is no activation named {ast.unparse(node)}", fix=fix)


def too_large(text: str, most: int) -> Diagnostic:
    """A net has at most ``most`` parameters."""
    return SPECIFICATION.error(
        f"{text[:60]!r} has more than {most:.0e} parameters", fix="give narrower layers"
    )


# ---------------------------------------------------------------------------------- what is missing
def missing(net: ir.Net, inputs: Sequence[Shape]) -> Diagnostic:
    """Every declared net is bound."""
    name = net.name
    return MISSING.error(
        f"no net is bound to {name}",
        reason=f"{name} maps {_inputs(net, inputs)} to {_spelled(net.output)}",
        fix=f'--net "{name}={EXAMPLE}", or [nets] {name} = "{EXAMPLE}", or a torch module in Python',
    )


def inputs_of_built_in(net: str, text: str) -> Diagnostic:
    """A built-in net takes one array of real numbers."""
    return SPECIFICATION.error(
        f"{text[:60]!r} cannot be bound to {net}",
        reason="a built-in net takes one input of real numbers",
        fix="give a torch module whose forward takes the declared inputs",
    )


def size_unknown(net: str, dim: str) -> Diagnostic:
    """The sizes of a net are known when it is built."""
    return SIZE_UNKNOWN.error(f"net {net} has size {dim}, which is not known", fix=f"--param {dim}=10")


# ------------------------------------------------------------------------------------ files of code
def python_not_allowed(net: str, file: str, name: str) -> Diagnostic:
    """The user's own code runs where the user allows it."""
    return PYTHON.error(
        f"{net} = {file}:{name} would run the code of {file}",
        reason="a binding file and a command line are data until you say otherwise",
        fix="add --allow-python (allow_python=True in Python) if you trust the file",
    )


def file_fails(file: str, error: Exception) -> Diagnostic:
    """The file of a net runs."""
    return FIT.error(
        f"{file} cannot be run: {type(error).__name__}: {first_line(error)}", fix="mend the file"
    )


def no_such_name(file: str, name: str, names: Sequence[str]) -> Diagnostic:
    """The file of a net has it."""
    return FIT.error(
        f"{file} has no {name or 'name after the colon'}",
        fix=did_you_mean(name, names) or f"it has {', '.join(names) or 'no class'}",
    )


def arguments(name: str, needed: Sequence[str], sizes: Mapping[str, Any]) -> Diagnostic:
    """A function that makes a net gets the model's sizes by name, and may need no other argument."""
    return FIT.error(
        f"{name} needs {', '.join(needed)}",
        reason="it is called with the model's sizes by name: "
        + ", ".join(f"{key} = {value}" for key, value in sizes.items()),
        fix="give the other arguments defaults, or bind a module from Python",
    )


def call_fails(name: str, error: Exception) -> Diagnostic:
    """A function that makes a net must not fail."""
    return FIT.error(
        f"{name}(...) fails: {type(error).__name__}: {first_line(error)}",
        fix="mend it, or bind a module from Python",
    )


def not_a_module(name: str, value: object) -> Diagnostic:
    """A function that makes a net must return a torch module."""
    return FIT.error(
        f"{name}(...) gives a {type(value).__name__}, not a torch module", fix="return a torch.nn.Module"
    )


# ------------------------------------------------------------------------------------------ modules
def train_mode(net: str, layer: str, why: str) -> Diagnostic:
    """No layer is random, or looks at other rows."""
    return TRAIN_MODE.error(
        f"net {net} contains {layer} in train mode",
        reason=f"{why}, so {net}(w; x) would not be a function of w and x, and its expectation not that "
        "of the model",
        fix="call .eval() on the module before binding it (in __init__ of a loaded class); or solve the "
        "model: the steps of a solve are then those of an optimizer, in train mode",
    )


def not_repeatable(net: str) -> Diagnostic:
    """A net gives one value for one input."""
    return TRAIN_MODE.error(
        f"net {net} gives different values for the same input",
        reason="s(w; x) must be a function",
        fix="call .eval()",
    )


def looks_at_other_rows(net: str) -> Diagnostic:
    """A net gives one value for one row, whatever rows are beside it."""
    return TRAIN_MODE.error(
        f"net {net} gives another value for a row when other rows are in its batch",
        reason=f"{net}(w; x) must be a function of one row",
        fix="normalise each row by itself (LayerNorm), or with fixed statistics (.eval())",
    )


def no_parameters(net: str) -> Diagnostic:
    """A net's parameters are the decision variable."""
    return FIT.error(
        f"net {net} has no free parameters",
        reason="they are the decision variable",
        fix="bind a module with parameters, or declare the net `frozen`",
    )


def parameters_not_real(net: str) -> Diagnostic:
    """A net's parameters are real."""
    return FIT.error(
        f"net {net} has parameters that are not real numbers", fix="bind a module with real parameters"
    )


def shape_of_output(net: ir.Net, actual: Shape, inputs: Sequence[Shape], output_shape: Shape) -> Diagnostic:
    """A net's output has the declared shape; ``actual`` is that of the output for some rows."""
    return FIT.error(
        f"net {net.name} gives {actual[1:]} per row, declared {_spelled(output_shape)}",
        reason=f"for 3 rows of {_inputs(net, inputs)} it returned shape {actual}",
        fix="change its last layer, or the declaration",
    )


def dims_of_output(net: ir.Net, actual: Shape, count: int) -> Diagnostic:
    """A net's output has as many dims as are declared; ``actual`` is its shape for ``count`` rows."""
    return FIT.error(
        f"net {net.name} gives {actual[1:]} per row, declared {_spelled(net.output)}",
        reason=f"for {count} rows it returned shape {actual}",
        fix="change its last layer, or the declaration",
    )


def not_finite(net: str) -> Diagnostic:
    """A net's values are finite."""
    return FIT.error(f"net {net} gives values that are not finite", fix="check its weights")


def forward_fails(net: ir.Net, rows: Sequence[torch.Tensor], error: Exception) -> Diagnostic:
    """A net takes rows of the declared shapes."""
    whole = [one for one, wanted in zip(rows, net.inputs, strict=True) if wanted.whole and one.numel()]
    fix = "change its first layer, or the data bound to its argument"
    reason = f"{type(error).__name__}: {first_line(error)}"
    if whole and isinstance(error, IndexError):
        ends = ", ".join(f"{int(one.min())} to {int(one.max())}" for one in whole)
        reason += f"; the whole numbers of the rows tried are {ends}"
        fix = "give its embedding as many entries as there are ids in the data, which are counted from 0"
    return FIT.error(
        f"net {net.name} cannot be applied to rows of {_inputs(net, [tuple(one.shape[1:]) for one in rows])}",
        reason=reason,
        fix=fix,
    )


def not_a_tensor(net: str, value: object) -> Diagnostic:
    """A net returns one tensor."""
    if isinstance(value, Mapping):
        heads = f"list({net}(x).values())"
    else:
        heads = f"{net}(x)"
    return FIT.error(
        f"net {net} gives a {type(value).__name__}, not a tensor",
        reason="The model names one output: a number for each row, or a vector of them.",
        fix="wrap the module in one that returns a single tensor: the output that the model uses, or all "
        f"heads as a vector, torch.stack({heads}, -1), for `net {net} : ... -> real[k]`",
    )
