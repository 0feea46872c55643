"""Nets: builds them by name, loads them from a file, or takes torch modules, and checks them."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fccomodel.core import ir, process
from fccomodel.core.diagnostics import refuse
from fccomodel.data.nets import errors
from fccomodel.data.nets._builtin import make, parse
from fccomodel.data.nets._walk import NetFacts, train_mode, walk
from fccomodel.data.sources import find_file

__all__ = ["NetFacts", "build", "make", "parse", "refuse_train_mode", "size", "walk"]

#: Attribute of a module that was given in train mode: the layers that were random or looked at other
#: rows. The module itself is bound in evaluation mode.
IN_TRAIN_MODE = "_bound_from_train_mode"

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
) -> tuple[torch.nn.Module, list[str]]:
    """The module of a declared net, and notes for the report.

    definition     a torch module (used with its weights), a class or function that makes one,
                   ``"mlp(64, 64)"``, or ``"file.py:Name"``
    dims           the sizes of the model's dims
    seed           seed of the first weights of a module made here
    allow_python   whether a Python file may be run
    folders        folders that file names start from

    The module maps (rows, *input) to (rows, *output), and all its parameters are free. A module in train
    mode is bound as a copy in evaluation mode. F0522 - F0526.
    """
    input_shape = _shape(net, net.input, dims)
    output_shape = _shape(net, net.output, dims)
    if definition is None:
        refuse(errors.missing(net.name, input_shape, output_shape))
    with process.own_randomness():
        torch.manual_seed(seed)
        if isinstance(definition, str):
            match = FILE.fullmatch(definition.strip())
            if match:
                module = _from_file(net, match, input_shape, output_shape, dims, allow_python, folders)
            else:
                module = make(definition, input_shape, output_shape)
        elif isinstance(definition, torch.nn.Module):
            module = definition
        elif callable(definition):
            name = getattr(definition, "__name__", "the function")
            module = _call(definition, name, input_shape, output_shape, dims)
        else:
            refuse(errors.value_not_a_net(net.name, definition))
    return _checked(net, module, input_shape, output_shape)


def size(module: torch.nn.Module) -> int:
    """The number of parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def _shape(net: ir.Net, shape: ir.Shape, dims: Mapping[str, int]) -> tuple[int, ...]:
    """A declared shape in numbers; an error if a size is unknown."""
    unknown = [dim for dim in shape if isinstance(dim, str) and dim not in dims]
    if unknown:
        refuse(errors.size_unknown(net.name, unknown[0]))
    return tuple(dim if isinstance(dim, int) else dims[dim] for dim in shape)


def _from_file(
    net: ir.Net,
    match: re.Match[str],
    input_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
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
    output_shape: tuple[int, ...],
    dims: Mapping[str, int],
) -> torch.nn.Module:
    """The module that a class or a function makes.

    It is called with the sizes that its parameters name. If it has a single other parameter and no
    named one, this gets the input's size.
    """
    sizes: dict[str, Any] = {
        **dims,
        "input": input_shape[0] if len(input_shape) == 1 else input_shape,
        "output": output_shape[0] if len(output_shape) == 1 else output_shape,
    }
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
    net: ir.Net, module: torch.nn.Module, input_shape: tuple[int, ...], output_shape: tuple[int, ...]
) -> tuple[torch.nn.Module, list[str]]:
    """The module as a function of its parameters and one row, and notes for the report.

    It is refused if its shapes are wrong, or its output is random or depends on other rows.
    """
    training = train_mode(module)
    if training:
        module = copy.deepcopy(module).eval()
    layers = train_mode(module)
    if layers:
        refuse(*(errors.train_mode(net.name, layer, why) for layer, why in layers))
    module, notes = _freed(net, module)
    if size(module) == 0:
        refuse(errors.no_parameters(net.name))
    if any(parameter.is_complex() or not parameter.is_floating_point() for parameter in module.parameters()):
        refuse(errors.parameters_not_real(net.name))
    first = next(module.parameters())
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn((3, *input_shape), generator=generator).to(first.device, first.dtype)
    value = _forward(net, module, rows)
    if not output_shape and value.shape == (3, 1):
        module = torch.nn.Sequential(module, torch.nn.Flatten(-2))
        value = value[:, 0]
        notes.append(f"net {net.name}: its output of size 1 is taken as a number")
    if value.shape != (3, *output_shape):
        refuse(errors.shape_of_output(net.name, tuple(value.shape), input_shape, output_shape))
    _demand_function(net, module, rows, value)
    if training:
        setattr(module, IN_TRAIN_MODE, tuple(training))
    facts = walk(module)
    kind = "affine" if facts.affine else facts.kind
    notes.append(f"net {net.name}: {size(module)} parameters, {kind}: {'; '.join(facts.reasons)}")
    return module, notes


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


def _demand_function(net: ir.Net, module: torch.nn.Module, rows: torch.Tensor, value: torch.Tensor) -> None:
    """Refuse a module whose ``value`` at ``rows`` is not finite, not repeatable, or depends on other rows."""
    if not torch.isfinite(value).all():
        refuse(errors.not_finite(net.name))
    again = _forward(net, module, rows)
    one_by_one = torch.cat([_forward(net, module, row) for row in rows.split(1)])
    if not torch.equal(value, again):
        refuse(errors.not_repeatable(net.name))
    if not torch.allclose(value, one_by_one, rtol=1e-3, atol=1e-4 * (1 + float(value.abs().max()))):
        refuse(errors.looks_at_other_rows(net.name))


def _freed(net: ir.Net, module: torch.nn.Module) -> tuple[torch.nn.Module, list[str]]:
    """The module with frozen parameters turned into buffers (in a copy), and a note.

    Every parameter that is left is a decision variable.
    """
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    if not frozen:
        return module, []
    module = copy.deepcopy(module)
    for path in frozen:
        parent, _, name = path.rpartition(".")
        owner = module.get_submodule(parent)
        value = owner._parameters.pop(name)
        assert value is not None
        owner.register_buffer(name, value.detach())
    return module, [
        f"net {net.name}: {len(frozen)} frozen parameters (requires_grad = False) stay as they are"
    ]


def _forward(net: ir.Net, module: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """The output of a user's module; an error if its forward fails or returns no tensor."""
    try:
        with torch.no_grad():
            value = module(rows)
    except Exception as error:  # whatever the user's forward does
        refuse(errors.forward_fails(net.name, tuple(rows.shape[1:]), error))
    if not isinstance(value, torch.Tensor):
        refuse(errors.not_a_tensor(net.name, value))
    return value
