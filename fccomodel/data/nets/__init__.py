"""Nets: built by name, loaded from a file, or given as torch modules; checked, and walked for their
smoothness."""

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

#: the attribute of a module that holds the layers which made it random, or dependent on other rows, as
#: it was given: it is bound in evaluation mode
IN_TRAIN_MODE = "_bound_from_train_mode"

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

    ``definition`` is a torch module (taken as it is, with its weights), a class or function that
    makes one, ``"mlp(64, 64)"`` or ``"file.py:Name"``. What is made here starts from weights drawn
    under ``seed``. The module maps (rows, *input) to (rows, *output), and all its parameters are
    free. One in train mode is bound as a copy in evaluation mode. F0522 - F0526.
    """
    input_shape, output_shape = _shape(net, net.input, dims), _shape(net, net.output, dims)
    if definition is None:
        refuse(errors.missing(net.name, input_shape, output_shape))
    with process.own_randomness():
        torch.manual_seed(seed)
        if isinstance(definition, str):
            if match := FILE.fullmatch(definition.strip()):
                module = _from_file(net, match, input_shape, output_shape, dims, allow_python, folders)
            else:
                module = make(definition, input_shape, output_shape)
        elif isinstance(definition, torch.nn.Module):
            module = definition
        elif callable(definition):
            module = _call(
                definition, getattr(definition, "__name__", "the function"), input_shape, output_shape, dims
            )
        else:
            refuse(errors.value_not_a_net(net.name, definition))
    return _checked(net, module, input_shape, output_shape)


def size(module: torch.nn.Module) -> int:
    """The number of parameters; all of a bound module's are free."""
    return sum(parameter.numel() for parameter in module.parameters())


def _shape(net: ir.Net, shape: ir.Shape, dims: Mapping[str, int]) -> tuple[int, ...]:
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
        exec(
            compile(path.read_bytes(), str(path), "exec"), vars(loaded)
        )  # what is kept compiled may be of before an edit
    except Exception as error:  # whatever the user's file does
        refuse(errors.file_fails(path.name, error))
    if name:
        definition = getattr(loaded, name, None)
    else:
        definition = None
    if definition is None:
        names = [
            key
            for key, value in vars(loaded).items()
            if callable(value) or isinstance(value, torch.nn.Module)
        ]
        defined_here = [
            key for key in names if getattr(getattr(loaded, key), "__module__", None) == loaded.__name__
        ]
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
    """A class or function called with the sizes it asks for by name; a single nameless one gets the
    input's size."""
    sizes: dict[str, Any] = {
        **dims,
        "input": input_shape[0] if len(input_shape) == 1 else input_shape,
        "output": output_shape[0] if len(output_shape) == 1 else output_shape,
    }
    try:
        parameters = inspect.signature(make_net).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    keywords = {p.name: sizes[p.name] for p in plain if p.name in sizes and p.kind is not p.POSITIONAL_ONLY}
    needed = [p for p in plain if p.default is p.empty and p.name not in keywords]
    positional = []
    if len(needed) == 1 and not keywords and len(input_shape) == 1:
        positional, needed = [input_shape[0]], []
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
    """A module that is a function of its parameters and one row: right shapes, no randomness, no look
    at other rows."""
    training = train_mode(module)
    if training:
        module = copy.deepcopy(module).eval()
    if layers := train_mode(module):
        refuse(*(errors.train_mode(net.name, layer, why) for layer, why in layers))
    module, notes = _freed(net, module)
    if size(module) == 0:
        refuse(errors.no_parameters(net.name))
    if any(parameter.is_complex() or not parameter.is_floating_point() for parameter in module.parameters()):
        refuse(errors.parameters_not_real(net.name))
    first = next(module.parameters())
    rows = torch.randn((3, *input_shape), generator=torch.Generator().manual_seed(0)).to(
        first.device, first.dtype
    )
    value = _forward(net, module, rows)
    if not output_shape and value.shape == (3, 1):
        module, value = torch.nn.Sequential(module, torch.nn.Flatten(-2)), value[:, 0]
        notes.append(f"net {net.name}: its output of size 1 is taken as a number")
    if value.shape != (3, *output_shape):
        refuse(errors.shape_of_output(net.name, tuple(value.shape), input_shape, output_shape))
    _demand_function(net, module, rows, value)
    if training:
        setattr(module, IN_TRAIN_MODE, tuple(training))
    facts = walk(module)
    notes.append(
        f"net {net.name}: {size(module)} parameters, {'affine' if facts.affine else facts.kind}: "
        f"{'; '.join(facts.reasons)}"
    )
    return module, notes


def refuse_train_mode(problem: ir.Problem, nets: Mapping[str, torch.nn.Module]) -> None:
    """F0525 for nets that were bound in train mode: steps of a solver evaluate a net as a function of
    one row. They are judged, and trained in a loop of the user's own, all the same."""
    refused = [
        replace(errors.train_mode(name, layer, why), span=problem.nets[name].span)
        for name, module in nets.items()
        for layer, why in getattr(module, IN_TRAIN_MODE, ())
    ]
    if refused:
        refuse(*refused, source=problem.source)


def _demand_function(net: ir.Net, module: torch.nn.Module, rows: torch.Tensor, value: torch.Tensor) -> None:
    """Refuses a module whose ``value`` at some rows is not finite, not repeatable, or depends on the
    other rows."""
    if not torch.isfinite(value).all():
        refuse(errors.not_finite(net.name))
    again, alone = (
        _forward(net, module, rows),
        torch.cat([_forward(net, module, row) for row in rows.split(1)]),
    )
    if not torch.equal(value, again):
        refuse(errors.not_repeatable(net.name))
    if not torch.allclose(value, alone, rtol=1e-3, atol=1e-4 * (1 + float(value.abs().max()))):
        refuse(errors.looks_at_other_rows(net.name))


def _freed(net: ir.Net, module: torch.nn.Module) -> tuple[torch.nn.Module, list[str]]:
    """The module with its frozen parameters as buffers (in a copy), so that every parameter is a decision."""
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
    try:
        with torch.no_grad():
            value = module(rows)
    except Exception as error:  # whatever the user's forward does
        refuse(errors.forward_fails(net.name, tuple(rows.shape[1:]), error))
    if not isinstance(value, torch.Tensor):
        refuse(errors.not_a_tensor(net.name, value))
    return value
