"""Torch modules in emitted programs: as text where text makes the same module again, else as what
torch.export writes of them."""

from __future__ import annotations

import copy
import inspect
import io
import logging
import math
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

from fccomodel.core import ir, process
from fccomodel.core.diagnostics import refuse
from fccomodel.core.quoting import literal
from fccomodel.data.nets import own_layer, same_settings, same_value
from fccomodel.program import errors
from fccomodel.program.emit.breaking import broken
from fccomodel.program.emit.carried import global_names

#: What the text of a class may name, and the statements that bring it.
KNOWN = {"torch": torch, "nn": nn, "F": F, "Tensor": Tensor, "math": math}
IMPORTS = "import torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import Tensor"
HOOKS = tuple(name for name in vars(nn.Module()) if name.endswith("_hooks"))
#: by the name of a net what makes it (see ``text``)
Texts = Mapping[str, tuple[str, str] | None]

AT_HAND = '''def module_of(name):
    """A net without a text of its own.

    Inside Python it is the module itself, in a program of its own what torch.export wrote.
    """
    at_hand = globals().get("MODULES")
    if at_hand is not None:
        return at_hand[name]
    import io

    kept = read_data(Path(__file__).with_name(DATA_FILE), DATA_SHA256)
    module = torch.export.load(io.BytesIO(kept[f"exported:{name}"].numpy().tobytes())).module()
    module.eval = lambda: module  # it was written in that mode, and has no other
    return module'''


# ------------------------------------------------------------------------------------------ as text
def text(name: str, module: nn.Module) -> tuple[str, str] | None:
    """Definitions and the expression that makes a module like this one; None where no text is known to."""
    try:
        expression, classes = _written(module)
    except _NoText:
        return None
    if not classes:
        if _makes(expression, module):
            return ("", expression)
        return None
    inside = "\n\n".join([IMPORTS, *dict.fromkeys(classes), f"return {expression}"])
    definition = f"def make_{name}():\n{textwrap.indent(inside, '    ')}"
    if _makes(f"make_{name}()", module, definition):
        return (definition, f"make_{name}()")
    return None


class _NoText(Exception):
    """No text makes a module."""


def _written(module: nn.Module) -> tuple[str, list[str]]:
    """The expression, and the texts of the classes in it."""
    kind = type(module)
    if kind is nn.Sequential:
        parts = [_written(child) for child in module.children()]
        return f"torch.nn.Sequential({', '.join(text for text, _ in parts)})", [
            one for _, more in parts for one in more
        ]
    own = own_layer(module)
    if own is not None:
        return own, []
    return f"{kind.__name__}()", [_source(kind)]


def _source(kind: type) -> str:
    """The text of a class that stands by itself: it builds on ``nn.Module`` and names torch alone."""
    methods = [part for part in vars(kind).values() if isinstance(part, FunctionType)]
    others = [name for name, part in vars(kind).items() if part not in methods]
    if kind.__bases__ != (nn.Module,) or not all(name.startswith("__") for name in others):
        raise _NoText
    try:
        text = textwrap.dedent(inspect.getsource(kind)).rstrip()
        names = set(global_names(text))
    except (OSError, TypeError, SyntaxError):
        raise _NoText from None
    for method in methods:
        if {*method.__code__.co_freevars} - {"__class__"}:
            raise _NoText
        around = method.__globals__
        if any(name in around and around[name] is not KNOWN.get(name) for name in names):
            raise _NoText
    return text


def _makes(expression: str, module: nn.Module, definition: str = "") -> bool:
    """The text makes a module that differs from this one in the values of its parameters alone."""
    names: dict[str, Any] = {"torch": torch, "math": math}
    try:
        with process.own_randomness():
            exec(definition, names)  # noqa: S102 - the text of a class that the user gave
            again = eval(expression, names)  # noqa: S307
    except Exception:  # whatever the class does: it takes arguments, or names what is not there
        return False
    return _alike(again, module)


def _alike(a: Any, b: Any) -> bool:
    """Two modules have the same layers, shapes, buffers and settings, and no hooks."""
    if type(a).__qualname__.rpartition(".")[2] != type(b).__name__ or any(
        getattr(m, name) for m in (a, b) for name in HOOKS
    ):
        return False
    shapes = [{name: None if p is None else p.shape for name, p in m._parameters.items()} for m in (a, b)]
    return (
        list(shapes[0].items()) == list(shapes[1].items())
        and list(a._modules) == list(b._modules)
        and a._buffers.keys() == b._buffers.keys()
        and all(same_value(a._buffers[name], b._buffers[name]) for name in a._buffers)
        and same_settings(a, b)
        and all(_alike(a._modules[name], b._modules[name]) for name in a._modules)
    )


# ------------------------------------------------------------------------------------- as it stands
@dataclass(frozen=True, eq=False)
class KeptModule:
    """A module that a program takes as it stands, the shape of a row of each of its inputs, and which of
    these are ``whole`` numbers."""

    module: nn.Module
    shapes: tuple[tuple[int, ...], ...]
    whole: tuple[int, ...] = ()

    @staticmethod
    def of(module: nn.Module, shapes: Sequence[tuple[int, ...]], whole: Sequence[int] = ()) -> KeptModule:
        """A copy of a module in evaluation mode."""
        return KeptModule(copy.deepcopy(module).eval(), tuple(shapes), tuple(whole))

    def rows(self, count: int) -> tuple[Tensor, ...]:
        """Some rows of each input: random numbers, zeros for whole ones, which any embedding has."""
        generator = torch.Generator().manual_seed(0)
        return tuple(
            torch.zeros((count, *shape), dtype=torch.int64)
            if k in self.whole
            else torch.randn((count, *shape), generator=generator)
            for k, shape in enumerate(self.shapes)
        )


def exported(kept: Mapping[str, KeptModule]) -> Iterator[tuple[str, Tensor]]:
    """The data of a program for nets that have no text, as torch.export writes them.

    Raises F0608 if torch.export cannot write a net.
    """
    for name, one in kept.items():
        try:
            text = _exported(one)
        except Exception as error:  # whatever a forward does when it is traced
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            refuse(
                errors.net(
                    name, f"No text makes it, and torch.export does not write it: {reason.rstrip('.')}."
                )
            )
        yield f"exported:{name}", torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _exported(kept: KeptModule) -> bytes:
    """A module as torch.export writes it, for any number of rows; when read, it has its values in either
    precision.
    """
    module, file = copy.deepcopy(kept.module).float().cpu(), io.BytesIO()
    rows = kept.rows(5)
    sizes = torch.export.Dim("rows")
    with _silent():
        torch.export.save(
            torch.export.export(module, rows, dynamic_shapes=tuple({0: sizes} for _ in rows)), file
        )
        again = torch.export.load(io.BytesIO(file.getvalue())).module()
        for dtype, precise in ((torch.float32, 1e-4), (torch.float64, 1e-8)):
            weights = {name: value.detach().to(dtype) for name, value in module.to(dtype).named_parameters()}
            typed = [one if one.dtype == torch.int64 else one.to(dtype) for one in rows]
            for some in (tuple(typed), tuple(one[:1] for one in typed)):
                value = torch.func.functional_call(again.to(dtype), weights, some)
                torch.testing.assert_close(value, module(*some), rtol=precise, atol=precise)
    return file.getvalue()


@contextmanager
def _silent() -> Iterator[None]:
    """Silence torch's warnings while it traces: what matters of them is raised."""
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    before, log.disabled = log.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.disabled = before


def constructor(name: str, made: tuple[str, str] | None, inputs: Sequence[ir.NetInput], wrapper: type) -> str:
    """The statements that make a program's net ``name``."""
    definition, expression = made or ("", f"module_of({literal(name)})")
    whole = tuple(k for k, one in enumerate(inputs) if one.whole)
    rank = str(len(inputs[0].shape))
    if len(inputs) > 1:
        rank = literal(tuple(len(one.shape) for one in inputs))
    if whole:
        rank += f", {literal(whole)}"
    statement = broken(f"net_{name} = {wrapper.__name__}({expression}, {rank})")
    return "\n\n\n".join(filter(None, [definition, "\n".join(statement)]))
