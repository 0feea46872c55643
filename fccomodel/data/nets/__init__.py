"""Nets: builds them by name, loads them from a file, or takes torch modules, and checks them."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fccomodel.core import ir, process
from fccomodel.core.diagnostics import refuse
from fccomodel.data.nets import errors
from fccomodel.data.nets._builtin import make, parse
from fccomodel.data.nets._layers import PREFIX, own_layer, read, same_settings, same_value, written
from fccomodel.data.nets._walk import NetFacts, train_mode, walk
from fccomodel.data.sources import find_file

__all__ = [
    "NetFacts",
    "build",
    "in_train_mode",
    "make",
    "own",
    "own_buffers",
    "own_layer",
    "parse",
    "refuse_train_mode",
    "same_settings",
    "same_value",
    "size",
    "unwrapped",
    "walk",
    "written",
]

#: Attribute of a module that was given in train mode: the layers that were random or looked at other
#: rows. The module itself is bound in evaluation mode.
IN_TRAIN_MODE = "_fccomodel_train_mode"
#: The attribute of a bound module that holds the module as it was given.
GIVEN = "_fccomodel_given"
#: The attribute by which ``torch.compile`` holds the module that it compiled.
COMPILED = "_orig_mod"
#: rows of the data on which a module is tried when it is bound
TRIED_ROWS = 3

#: A class or a function in a Python file, as ``net.py:Net``.
FILE = re.compile(r"(?P<file>.+\.py):(?P<name>[^:/\\]*)")


def build(
    net: ir.Net,
    definition: Any,
    dims: Mapping[str, int],
    *,
    seed: int = 0,
    allow_python: bool = False,
    folders: tuple[Path, ...] = (),
    rows: Sequence[torch.Tensor] | None = None,
    learn: Callable[[str, int], None] | None = None,
) -> tuple[torch.nn.Module, list[str]]:
    """The module of a declared net, and notes for the report.

    definition     a torch module (used with its weights), a class or function that makes one,
                   ``"mlp(64, 64)"``, ``"torch.nn.Sequential(...)"`` of torch's own layers, or
                   ``"file.py:Name"``
    dims           the sizes of the model's dims
    seed           seed of the first weights of a module made here
    allow_python   whether a Python file may be run
    folders        folders that file names start from

    rows           inputs of the net in the data, some rows of each, on which it is tried; zeros without
    learn          told each dim that the net's output alone decides: its name and its size

    The module maps (rows, *input) to (rows, *output), and all its parameters are free; of a frozen
    net none is. A module in train mode is bound as a copy in evaluation mode. F0517, F0522 - F0526.
    """
    inputs = [_shape(net, one.shape, dims) for one in net.inputs]
    if isinstance(definition, str) and definition.strip().startswith(PREFIX):
        definition = _of_layers(definition, seed)
    if definition is None:
        refuse(errors.missing(net, inputs))
    input_shape = inputs[0]
    made_here = isinstance(definition, str) and not FILE.fullmatch(definition.strip())
    output_shape: tuple[int, ...] | None = None
    if made_here or learn is None or not _unknown(net.output, dims):
        output_shape = _shape(net, net.output, dims)
    if made_here and (len(inputs) > 1 or net.inputs[0].whole):
        refuse(errors.inputs_of_built_in(net.name, definition))
    with process.own_randomness():
        torch.manual_seed(seed)
        if isinstance(definition, str):
            match = FILE.fullmatch(definition.strip())
            if match:
                module = _from_file(net, match, input_shape, output_shape, dims, allow_python, folders)
            else:
                assert output_shape is not None
                module = make(definition, input_shape, output_shape)
        elif isinstance(definition, torch.nn.Module):
            module = unwrapped(definition)
        elif callable(definition):
            name = getattr(definition, "__name__", "the function")
            module = _call(definition, name, input_shape, output_shape, dims)
        else:
            refuse(errors.value_not_a_net(net.name, definition))
    tried = _in_its_types(net, module, rows if rows else _zeros(inputs))
    return _checked(net, module, tried, output_shape, dims, learn)


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The module inside wrappers for speed or for several devices: ``torch.compile``, ``DataParallel``,
    ``DistributedDataParallel``. It has the same weights.
    """
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while True:
        inner = module.module if isinstance(module, parallel) else getattr(module, COMPILED, None)
        if not isinstance(inner, torch.nn.Module):
            return module
        module = inner


def _of_layers(text: str, seed: int) -> torch.nn.Module:
    """The module that a text names by torch's own layers; F0522 if it names anything else."""
    with process.own_randomness():
        torch.manual_seed(seed)
        try:
            return read(text)
        except ValueError as error:
            refuse(errors.not_layers(text, error))


def _zeros(inputs: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    """Rows of zeros, where no data are at hand."""
    return [torch.zeros((TRIED_ROWS, *shape)) for shape in inputs]


def _in_its_types(net: ir.Net, module: torch.nn.Module, rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Inputs in the types that a module takes: its own precision, int64 for whole numbers."""
    first = next((p for p in (*module.parameters(), *module.buffers()) if p.is_floating_point()), None)
    real = torch.float32 if first is None else first.dtype
    device = torch.device("cpu") if first is None else first.device
    return [
        one.to(device, torch.int64 if wanted.whole else real)
        for one, wanted in zip(rows, net.inputs, strict=True)
    ]


@dataclass(frozen=True)
class _Given:
    """A module as it was given, beside what it is bound as; copies of a bound module share it.

    prefix  what the names of its parameters begin with in the bound module
    """

    module: torch.nn.Module
    prefix: str

    def __deepcopy__(self, memo: Any) -> _Given:
        return self


def own(bound: torch.nn.Module) -> torch.nn.Module:
    """A copy of the module that was given, of its own class and with its attributes, with the weights and
    buffers of the bound module."""
    original = getattr(bound, GIVEN, None)
    if original is None:
        return copy.deepcopy(bound)
    module = copy.deepcopy(original.module)
    values = {**dict(bound.named_parameters()), **dict(bound.named_buffers())}
    with torch.no_grad():
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            value.copy_(values[original.prefix + name])
    return module


def own_buffers(bound: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The buffers of the module that was given, as the bound module has them, by their names in the
    first; frozen parameters are none."""
    original = getattr(bound, GIVEN, None)
    values = dict(bound.named_buffers())
    if original is None:
        return values
    return {name: values[original.prefix + name] for name, _ in original.module.named_buffers()}


def with_buffers(bound: torch.nn.Module, values: Mapping[str, Any]) -> torch.nn.Module:
    """A copy of a bound module with other values of ``own_buffers``, those of the same shape."""
    module = copy.deepcopy(bound)
    for name, buffer in own_buffers(module).items():
        if name in values and tuple(values[name].shape) == tuple(buffer.shape):
            buffer.copy_(torch.as_tensor(values[name]))
    return module


def size(module: torch.nn.Module) -> int:
    """The number of parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def _unknown(shape: ir.Shape, dims: Mapping[str, int]) -> list[str]:
    """The dims of a shape whose size is not known."""
    return [dim for dim in shape if isinstance(dim, str) and dim not in dims]


def _shape(net: ir.Net, shape: ir.Shape, dims: Mapping[str, int]) -> tuple[int, ...]:
    """A declared shape in numbers; an error if a size is unknown."""
    unknown = _unknown(shape, dims)
    if unknown:
        refuse(errors.size_unknown(net.name, unknown[0]))
    return tuple(dim if isinstance(dim, int) else dims[dim] for dim in shape)


def _from_file(
    net: ir.Net,
    match: re.Match[str],
    input_shape: tuple[int, ...],
    output_shape: tuple[int, ...] | None,
    dims: Mapping[str, int],
    allow_python: bool,
    folders: tuple[Path, ...],
) -> torch.nn.Module:
    """A module from a Python file, which is run; an error if this is not allowed, or fails."""
    file, name = match["file"], match["name"]
    if not allow_python:
        refuse(errors.python_not_allowed(net.name, file, name))
    path = find_file(file, folders).resolve()
    key = f"_fccomodel_net_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[key] = loaded
    try:
        # Python's own cache of compiled files may be older than the file.
        exec(compile(path.read_bytes(), str(path), "exec"), vars(loaded))
    except Exception as error:  # whatever the user's file does
        refuse(errors.file_fails(path.name, error))
    definition = None
    if name:
        definition = getattr(loaded, name, None)
    if definition is None:
        defined_here = []
        for key, value in vars(loaded).items():
            makes_net = callable(value) or isinstance(value, torch.nn.Module)
            if makes_net and getattr(value, "__module__", None) == loaded.__name__:
                defined_here.append(key)
        refuse(errors.no_such_name(path.name, name, defined_here))
    if isinstance(definition, torch.nn.Module):
        return definition
    return _call(definition, name, input_shape, output_shape, dims)


def _call(
    make_net: Any,
    name: str,
    input_shape: tuple[int, ...],
    output_shape: tuple[int, ...] | None,
    dims: Mapping[str, int],
) -> torch.nn.Module:
    """The module that a class or a function makes.

    It is called with the sizes that its parameters name. If it has a single other parameter and no
    named one, this gets the input's size.
    """
    sizes: dict[str, Any] = {
        **dims,
        "input": input_shape[0] if len(input_shape) == 1 else input_shape,
    }
    if output_shape is not None:
        sizes["output"] = output_shape[0] if len(output_shape) == 1 else output_shape
    try:
        parameters = inspect.signature(make_net).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    single = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    keywords = {}
    for parameter in single:
        if parameter.name in sizes and parameter.kind is not parameter.POSITIONAL_ONLY:
            keywords[parameter.name] = sizes[parameter.name]
    needed = [p for p in single if p.default is p.empty and p.name not in keywords]
    positional = []
    if len(needed) == 1 and not keywords and len(input_shape) == 1:
        positional = [input_shape[0]]
        needed = []
    if needed:
        refuse(errors.arguments(name, [p.name for p in needed], sizes))
    try:
        module = make_net(*positional, **keywords)
    except Exception as error:  # whatever the user's code does
        refuse(errors.call_fails(name, error))
    if not isinstance(module, torch.nn.Module):
        refuse(errors.not_a_module(name, module))
    return module


def _checked(
    net: ir.Net,
    module: torch.nn.Module,
    rows: Sequence[torch.Tensor],
    output_shape: tuple[int, ...] | None,
    dims: Mapping[str, int],
    learn: Callable[[str, int], None] | None,
) -> tuple[torch.nn.Module, list[str]]:
    """The module as a function of its parameters and one row, and notes for the report.

    It is refused if its shapes are wrong, or its output is random or depends on other rows.
    """
    given, prefix = module, ""
    training = train_mode(module)
    if training:
        module = copy.deepcopy(module).eval()
    layers = train_mode(module)
    if layers:
        refuse(*(errors.train_mode(net.name, layer, why) for layer, why in layers))
    module, notes = _freed(net, module)
    if size(module) == 0 and not net.frozen:
        refuse(errors.no_parameters(net.name))
    if any(parameter.is_complex() or not parameter.is_floating_point() for parameter in module.parameters()):
        refuse(errors.parameters_not_real(net.name))
    value = _forward(net, module, rows)
    count = len(rows[0])
    if output_shape is None:
        output_shape = _learned(net, value, count, dims, learn)
    if not output_shape and value.shape == (count, 1):
        module, value = torch.nn.Sequential(module, torch.nn.Flatten(-2)), value[:, 0]
        prefix = "0."
        if len(rows) > 1:
            module, prefix = _Number(module[0]), "inner."
        notes.append(f"net {net.name}: its output of size 1 is taken as a number")
    if value.shape != (count, *output_shape):
        shapes = [tuple(one.shape[1:]) for one in rows]
        refuse(errors.shape_of_output(net, tuple(value.shape), shapes, output_shape))
    _demand_function(net, module, rows, value)
    if training:
        setattr(module, IN_TRAIN_MODE, tuple(training))
    if module is not given:
        setattr(module, GIVEN, _Given(given, prefix))
    if net.frozen:
        return module, notes
    facts = walk(module)
    kind = "affine" if facts.affine else facts.kind
    notes.append(f"net {net.name}: {size(module)} parameters, {kind}: {'; '.join(facts.reasons)}")
    return module, notes


def _learned(
    net: ir.Net,
    value: torch.Tensor,
    count: int,
    dims: Mapping[str, int],
    learn: Callable[[str, int], None] | None,
) -> tuple[int, ...]:
    """The shape of one output, whose dims without a size in the data are told to ``learn``."""
    if value.dim() != 1 + len(net.output) or len(value) != count:
        refuse(errors.dims_of_output(net, tuple(value.shape), count))
    shape = []
    known = dict(dims)
    for dim, found in zip(net.output, value.shape[1:], strict=True):
        if isinstance(dim, str) and dim not in known:
            assert learn is not None
            learn(dim, found)
            known[dim] = found
        shape.append(dim if isinstance(dim, int) else known[dim])
    return tuple(shape)


class _Number(torch.nn.Module):
    """A module of several inputs whose output of size 1 is taken as a number."""

    def __init__(self, inner: torch.nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The output without its axis of size 1."""
        return self.inner(*inputs).flatten(-2)


def in_train_mode(nets: Mapping[str, torch.nn.Module]) -> list[str]:
    """A sentence for each net that was given in train mode: what its steps are not, and what of it is
    judged."""
    sentences = []
    for name, module in nets.items():
        layers = getattr(module, IN_TRAIN_MODE, ())
        if layers:
            called = ", ".join(layer for layer, _ in layers)
            sentences.append(
                f"steps run net {name} in train mode ({called}), so one row has not one value; looks and "
                "the report run it in evaluation mode"
            )
    return sentences


def refuse_train_mode(problem: ir.Problem, nets: Mapping[str, torch.nn.Module]) -> None:
    """F0525 for nets that were bound in train mode.

    A solver's steps evaluate a net as a function of one row. Reports on such nets, and training in a
    loop of the user's own, are possible.
    """
    refused = []
    for name, module in nets.items():
        for layer, why in getattr(module, IN_TRAIN_MODE, ()):
            refused.append(replace(errors.train_mode(name, layer, why), span=problem.nets[name].span))
    if refused:
        refuse(*refused, source=problem.source)


def _demand_function(
    net: ir.Net, module: torch.nn.Module, rows: Sequence[torch.Tensor], value: torch.Tensor
) -> None:
    """Refuse a module whose ``value`` at some rows is not finite, not repeatable, or depends on the
    other rows."""
    if not torch.isfinite(value).all():
        refuse(errors.not_finite(net.name))
    again = _forward(net, module, rows)
    one_by_one = torch.cat(
        [_forward(net, module, row) for row in zip(*(one.split(1) for one in rows), strict=True)]
    )
    if not torch.equal(value, again):
        refuse(errors.not_repeatable(net.name))
    if not torch.allclose(value, one_by_one, rtol=1e-3, atol=1e-4 * (1 + float(value.abs().max()))):
        refuse(errors.looks_at_other_rows(net.name))


def _freed(net: ir.Net, module: torch.nn.Module) -> tuple[torch.nn.Module, list[str]]:
    """The module with frozen parameters turned into buffers (in a copy), and a note.

    Every parameter that is left is a decision variable; of a frozen net none is left.
    """
    frozen = [name for name, one in module.named_parameters() if net.frozen or not one.requires_grad]
    if not frozen:
        return module, []
    module = copy.deepcopy(module)
    for path in frozen:
        parent, _, name = path.rpartition(".")
        owner = module.get_submodule(parent)
        value = owner._parameters.pop(name)
        assert value is not None
        owner.register_buffer(name, value.detach())
    if net.frozen:
        return module, [f"net {net.name}: frozen, {len(frozen)} arrays of weights stay as they are"]
    return module, [
        f"net {net.name}: {len(frozen)} frozen parameters (requires_grad = False) stay as they are"
    ]


def _forward(net: ir.Net, module: torch.nn.Module, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """The output of a user's module; an error if its forward fails or returns no tensor."""
    try:
        with torch.no_grad():
            value = module(*rows)
    except Exception as error:  # whatever the user's forward does
        refuse(errors.forward_fails(net, rows, error))
    if not isinstance(value, torch.Tensor):
        refuse(errors.not_a_tensor(net.name, value))
    return value
