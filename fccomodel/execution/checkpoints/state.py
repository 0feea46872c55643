"""The state of a run as JSON values and tensors by name, and back into a run that was set up anew.

A state consists of namespaces, settings, dictionaries, lists, numbers, tensors and generators of
random numbers. An object that is held in two places is one object again afterwards.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

# A value that JSON does not have is an object with one entry, whose key is one of these words.
#: A float that is not finite.
FLOAT = "float"
#: A tensor on the run's device.
TENSOR = "tensor"
#: A tensor on the host.
HOST = "host"
#: The state of a generator of random numbers.
RANDOM = "random"
#: A namespace.
SPACE = "space"
#: A record of settings.
SETTINGS = "settings"
#: A dictionary whose keys are texts.
DICT = "dict"
#: A dictionary with other keys, such as numbers or tuples: its pairs of key and value.
PAIRS = "pairs"
#: A list.
LIST = "list"
#: A tuple.
TUPLE = "tuple"
#: An object that was packed before, by its name.
SAME = "same"


def packed(value: Any, name: str, tensors: dict[str, torch.Tensor]) -> Any:
    """``value`` as JSON values. Its tensors are copied into ``tensors``, by their place in it."""
    return _Packing(tensors).packed(value, name)


class _Packing:
    """Turns values into JSON values, and remembers objects that it met."""

    def __init__(self, tensors: dict[str, torch.Tensor]):
        self.tensors = tensors
        self.seen: dict[int, str] = {}

    def packed(self, value: Any, name: str) -> Any:
        """The value as JSON values; its tensors are set aside by name."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            return {FLOAT: str(value)}
        if isinstance(value, torch.Generator):
            return {RANDOM: self.packed(value.get_state(), name)}
        if isinstance(value, list | tuple):
            entries = [self.packed(x, f"{name}.{k}") for k, x in enumerate(value)]
            return {LIST if isinstance(value, list) else TUPLE: entries}
        if isinstance(value, dict):
            if all(isinstance(key, str) for key in value):
                return {DICT: self.entries(value, name)}
            pairs = enumerate(value.items())
            return {PAIRS: [[self.packed(key, ""), self.packed(x, f"{name}.{k}")] for k, (key, x) in pairs]}
        if id(value) in self.seen:
            return {SAME: self.seen[id(value)]}
        self.seen[id(value)] = name
        if isinstance(value, torch.Tensor):
            self.tensors[name] = value.detach().to("cpu", copy=True)
            return {TENSOR if value.device.type != "cpu" else HOST: name}
        if isinstance(value, SimpleNamespace):
            return {SPACE: self.entries(vars(value), name), "name": name}
        if dataclasses.is_dataclass(value):
            return {SETTINGS: self.entries(vars(value), name), "name": name}
        raise TypeError(f"{name} is a {type(value).__name__}, which is no part of a state")

    def entries(self, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The entries of a mapping as JSON values."""
        return {key: self.packed(x, f"{name}.{key}") for key, x in values.items()}


def put_back(
    text: Any,
    tensors: Mapping[str, torch.Tensor],
    device: torch.device | str,
    settings: Callable[[], Any],
    into: Any = None,
) -> Any:
    """The value that was ``packed``, with tensors on their device.

    It takes the place of what ``into`` holds, which stays the same object for others that hold it.
    ``settings`` makes a new record of settings.
    """
    return _Unpacking(tensors, torch.device(device), settings).value(text, into)


class _Unpacking:
    """Turns JSON values back, and remembers objects that it made."""

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], device: torch.device, settings: Callable[[], Any]
    ):
        self.tensors, self.device, self.settings = tensors, device, settings
        self.made: dict[str, Any] = {}

    def value(self, text: Any, into: Any = None) -> Any:
        """The value that was packed as ``text``, put into ``into`` if possible."""
        if not isinstance(text, dict):
            return text
        kind, content = next(iter(text.items()))
        if kind == FLOAT:
            return float(content)
        if kind == SAME:
            return self.made[content]
        if kind in (TENSOR, HOST):
            here = self.tensors[content].clone()
            if kind == TENSOR:
                self.made[content] = here.to(self.device)
            else:
                self.made[content] = here
            return self.made[content]
        if kind == RANDOM:
            if into is None:
                into = torch.Generator(device=self.device)
            into.set_state(self.value(content))
            return into
        if kind in (LIST, TUPLE):
            values = [self.value(x) for x in content]
            if kind == TUPLE:
                return tuple(values)
            if isinstance(into, list):
                into = into
            else:
                into = []
            into[:] = values
            return into
        if kind == PAIRS:
            kind, content = DICT, {self.value(key): held for key, held in content}
        return self.record(kind, content, text.get("name", ""), into)

    def record(self, kind: str, content: Mapping[Any, Any], name: str, into: Any) -> Any:
        """A dictionary, a namespace or settings, with their entries put back."""
        if into is None or isinstance(into, dict) != (kind == DICT):
            if kind == DICT:
                into = {}
            elif kind == SPACE:
                into = SimpleNamespace()
            else:
                into = self.settings()
        self.made[name] = into
        if kind == DICT:
            fields = into
        else:
            fields = vars(into)
        values = {key: self.value(text, fields.get(key)) for key, text in content.items()}
        both = [key for key, value in values.items() if value is not None and fields.get(key) is not None]
        if other := next((key for key in both if _kind(fields[key]) != _kind(values[key])), None):
            raise ValueError(f"{name}.{other} is another kind of value than it was")
        fields.clear()
        fields.update(values)
        return into


def _kind(value: Any) -> str:
    """The sort of a value: integers, floats and truth values may take each other's place."""
    if isinstance(value, bool | int | float):
        return "number"
    if isinstance(value, torch.Tensor):
        return "tensor"
    return type(value).__name__
