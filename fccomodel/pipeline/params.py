"""The values of a model's params, and where each came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.pipeline.records import Binding

#: The origin of a value that the binding file holds.
FILE = "binding file"
#: The origin of a value that the model itself declares.
MODEL = "model"
#: Entries of a vector that a sentence shows.
SHOWN_ENTRIES = 4


class Value(NamedTuple):
    """A param's value, its origin, and the model's default.

    The default is None if there is none, or if it is not a number.
    """

    value: np.ndarray
    origin: str
    default: float | None

    @property
    def differs(self) -> bool:
        """Whether it differs from the model's own value."""
        return self.origin != MODEL and (self.default is None or bool(np.any(self.value != self.default)))

    def sentence(self, name: str) -> str:
        """``tau = 0.1 (command line; the model's default is 0.05)``."""
        if self.default is None:
            beside = ""
        else:
            beside = f"; the model's default is {self.default:g}"
        return f"{name} = {shown(self.value)} ({self.origin}{beside})"


def shown(value: np.ndarray) -> str:
    """A number whole, or the first entries of a vector with its shape."""
    if value.ndim == 0:
        return repr(float(value))
    first = ", ".join(f"{entry:.6g}" for entry in value.reshape(-1)[:SHOWN_ENTRIES])
    more = ", .." if value.size > SHOWN_ENTRIES else ""
    return f"[{first}{more}], {' x '.join(map(str, value.shape))}"


def values(bound: Bound, binding: Binding) -> Mapping[str, Value]:
    """The value of every param, by its name."""
    by_name = {}
    for name, value in bound.params.items():
        declared = bound.problem.params[name].default
        if isinstance(declared, ir.Const):
            default = float(declared.value)
        else:
            default = None
        by_name[name] = Value(np.asarray(value), _origin(name, value, declared, default, binding), default)
    return by_name


def _origin(name: str, value: Any, declared: ir.Expr | None, default: float | None, binding: Binding) -> str:
    """The origin of a value: given by name, the binding file, or the model."""
    if name in binding.params:
        return binding.given_as
    own = declared is not None and (default is None or bool(np.all(value == default)))
    if own:
        return MODEL
    return FILE
