"""Nets: built by name, loaded from a file, or given as torch modules; checked, and walked for their smoothness."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError, did_you_mean
from fccomodel.data.nets._builtin import EXAMPLE, make, parse
from fccomodel.data.nets._walk import NetFacts, train_mode, walk
from fccomodel.data.sources import find_file
from fccomodel.data.sources._base import refuse

__all__ = ["NetFacts", "build", "make", "parse", "size", "walk"]

FILE = re.compile(r"(?P<file>.+\.py):(?P<name>[^:/\\]*)")


def build(
    net: ir.Net, given: Any, dims: Mapping[str, int], *, seed: int = 0, allow_python: bool = False, folders: tuple[Path, ...] = ()
) -> tuple[torch.nn.Module, list[str]]:
    """The module of a declared net, and notes for the report.

    ``given`` is a torch module (taken as it is, with its weights), a class or function that makes one, ``"mlp(64, 64)"``
    or ``"file.py:Name"``. What is made here starts from weights drawn under ``seed``. The module maps (rows, *input) to
    (rows, *output), and all its parameters are free. F0522 - F0526.
    """
    input, output = _shape(net, net.input, dims), _shape(net, net.output, dims)
    if given is None:
        refuse(
            "F0523",
            f"no net is bound to {net.name}",
            reason=f"{net.name} maps {_spelled(input)} to {_spelled(output)}",
            fix=f'--net "{net.name}={EXAMPLE}", or [nets] {net.name} = "{EXAMPLE}", or a torch module in Python',
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(given, str):
            match = FILE.fullmatch(given.strip())
            module = _from_file(net, match, input, output, dims, allow_python, folders) if match else make(given, input, output)
        elif isinstance(given, torch.nn.Module):
            module = given
        elif callable(given):
            module = _call(given, getattr(given, "__name__", "the function"), input, output, dims)
        else:
            refuse(
                "F0522",
                f"{net.name}: a {type(given).__name__} is not a net",
                fix=f'give a torch module, or a text such as "{EXAMPLE}"',
            )
    return _checked(net, module, input, output)


def size(module: torch.nn.Module) -> int:
    """The number of parameters; all of a bound module's are free."""
    return sum(parameter.numel() for parameter in module.parameters())


def _shape(net: ir.Net, shape: ir.Shape, dims: Mapping[str, int]) -> tuple[int, ...]:
    unknown = [dim for dim in shape if isinstance(dim, str) and dim not in dims]
    if unknown:
        refuse("F0517", f"net {net.name} has size {unknown[0]}, which is not known", fix=f"--param {unknown[0]}=10")
    return tuple(dim if isinstance(dim, int) else dims[dim] for dim in shape)


def _spelled(shape: tuple[int, ...]) -> str:
    return f"real[{', '.join(map(str, shape))}]" if shape else "real"


def _from_file(
    net: ir.Net,
    match: re.Match[str],
    input: tuple[int, ...],
    output: tuple[int, ...],
    dims: Mapping[str, int],
    allow_python: bool,
    folders: tuple[Path, ...],
) -> torch.nn.Module:
    file, name = match["file"], match["name"]
    if not allow_python:
        refuse(
            "F0524",
            f"{net.name} = {file}:{name} would run the code of {file}",
            reason="a binding file and a command line are data until you say otherwise",
            fix="add --allow-python (allow_python=True in Python) if you trust the file",
        )
    path = find_file(file, folders).resolve()
    key = f"_fccomodel_net_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[key] = loaded
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:  # whatever the user's file does
        refuse("F0526", f"{path.name} cannot be run: {type(error).__name__}: {_first_line(error)}", fix="mend the file")
    found = getattr(loaded, name, None) if name else None
    if found is None:
        names = [key for key, value in vars(loaded).items() if callable(value) or isinstance(value, torch.nn.Module)]
        own = [key for key in names if getattr(getattr(loaded, key), "__module__", None) == loaded.__name__]
        refuse(
            "F0526",
            f"{path.name} has no {name or 'name after the colon'}",
            fix=did_you_mean(name, own) or f"it has {', '.join(own) or 'no class'}",
        )
    return found if isinstance(found, torch.nn.Module) else _call(found, name, input, output, dims)


def _call(make_net: Any, name: str, input: tuple[int, ...], output: tuple[int, ...], dims: Mapping[str, int]) -> torch.nn.Module:
    """A class or function called with the sizes it asks for by name; a single nameless one gets the input's size."""
    sizes: dict[str, Any] = {
        **dims,
        "input": input[0] if len(input) == 1 else input,
        "output": output[0] if len(output) == 1 else output,
    }
    try:
        parameters = inspect.signature(make_net).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    keywords = {p.name: sizes[p.name] for p in plain if p.name in sizes and p.kind is not p.POSITIONAL_ONLY}
    needed = [p for p in plain if p.default is p.empty and p.name not in keywords]
    positional = []
    if len(needed) == 1 and not keywords and len(input) == 1:
        positional, needed = [input[0]], []
    if needed:
        refuse(
            "F0526",
            f"{name} needs {', '.join(p.name for p in needed)}",
            reason="it is called with the model's sizes by name: "
            + ", ".join(f"{key} = {value}" for key, value in sizes.items()),
            fix="give the other arguments defaults, or bind a module from Python",
        )
    try:
        module = make_net(*positional, **keywords)
    except Exception as error:  # whatever the user's code does
        refuse(
            "F0526",
            f"{name}(...) fails: {type(error).__name__}: {_first_line(error)}",
            fix="mend it, or bind a module from Python",
        )
    if not isinstance(module, torch.nn.Module):
        refuse("F0526", f"{name}(...) gives a {type(module).__name__}, not a torch module", fix="return a torch.nn.Module")
    return module


def _checked(
    net: ir.Net, module: torch.nn.Module, input: tuple[int, ...], output: tuple[int, ...]
) -> tuple[torch.nn.Module, list[str]]:
    """A module that is a function of its parameters and one row: right shapes, no randomness, no look at other rows."""
    bad = train_mode(module)
    if bad:
        raise FccoError(
            error
            for what, why in bad
            for error in _refusals(
                "F0525",
                f"net {net.name} contains {what} in train mode",
                f"{why}, so {net.name}(w; x) would not be a function of w and x, and its expectation not that of the model",
                "call .eval() on the module before binding it (in __init__ of a loaded class), or use LayerNorm and no dropout",
            )
        )
    module, notes = _freed(net, module)
    if size(module) == 0:
        refuse(
            "F0526",
            f"net {net.name} has no free parameters",
            reason="they are the decision variable",
            fix="bind a module with parameters",
        )
    if any(parameter.is_complex() or not parameter.is_floating_point() for parameter in module.parameters()):
        refuse("F0526", f"net {net.name} has parameters that are not real numbers", fix="bind a module with real parameters")
    first = next(module.parameters())
    rows = torch.randn((3, *input), generator=torch.Generator().manual_seed(0)).to(first.device, first.dtype)
    value = _forward(net, module, rows)
    if not output and value.shape == (3, 1):
        module, value = torch.nn.Sequential(module, torch.nn.Flatten(-2)), value[:, 0]
        notes.append(f"net {net.name}: its output of size 1 is taken as a number")
    if value.shape != (3, *output):
        refuse(
            "F0526",
            f"net {net.name} gives {tuple(value.shape[1:])} per row, declared {_spelled(output)}",
            reason=f"for 3 rows of {_spelled(input)} it returned shape {tuple(value.shape)}",
            fix="change its last layer, or the declaration",
        )
    _demand_function(net, module, rows, value)
    facts = walk(module)
    notes.append(
        f"net {net.name}: {size(module)} parameters, {'affine' if facts.affine else facts.kind}: {'; '.join(facts.reasons)}"
    )
    return module, notes


def _demand_function(net: ir.Net, module: torch.nn.Module, rows: torch.Tensor, value: torch.Tensor) -> None:
    """Refuses a module whose ``value`` at some rows is not finite, not repeatable, or depends on the other rows."""
    if not torch.isfinite(value).all():
        refuse("F0526", f"net {net.name} gives values that are not finite", fix="check its weights")
    again, alone = _forward(net, module, rows), torch.cat([_forward(net, module, row) for row in rows.split(1)])
    if not torch.equal(value, again):
        refuse(
            "F0525",
            f"net {net.name} gives different values for the same input",
            reason="s(w; x) must be a function",
            fix="call .eval()",
        )
    if not torch.allclose(value, alone, rtol=1e-3, atol=1e-4 * (1 + float(value.abs().max()))):
        refuse(
            "F0525",
            f"net {net.name} gives another value for a row when other rows are in its batch",
            reason=f"{net.name}(w; x) must be a function of one row",
            fix="normalise each row by itself (LayerNorm), or with fixed statistics (.eval())",
        )


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
    return module, [f"net {net.name}: {len(frozen)} frozen parameters (requires_grad = False) stay as they are"]


def _refusals(code: str, message: str, reason: str, fix: str) -> tuple[Any, ...]:
    try:
        refuse(code, message, reason=reason, fix=fix)
    except FccoError as error:
        return error.diagnostics


def _forward(net: ir.Net, module: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            value = module(rows)
    except Exception as error:  # whatever the user's forward does
        refuse(
            "F0526",
            f"net {net.name} cannot be applied to rows of {_spelled(tuple(rows.shape[1:]))}",
            reason=f"{type(error).__name__}: {_first_line(error)}",
            fix="change its first layer, or the data bound to its argument",
        )
    if not isinstance(value, torch.Tensor):
        refuse("F0526", f"net {net.name} gives a {type(value).__name__}, not a tensor", fix="return one tensor")
    return value


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
