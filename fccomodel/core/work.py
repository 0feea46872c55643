"""What work costs, counted: the operations that a calculation asks for, turned into seconds by one
table of rates.

Stages follow each other by counted seconds, so that the same seed takes the same way on a busy
machine and on an idle one; the clock only ends what has run out of time, and then says so. Programs
carry ``Rates`` and ``priced``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fccomodel.core.lazy import torch


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds that one thread takes, as measured once by ``tests/bench/rates.py``.

    call     an operation of torch, its part in differentiation and the Python around it
    byte     read or written            product  a multiplication and addition, in products of
             matrices and convolutions
    curved   an entry of exp, log and the like        moved    an entry by its index       drawn
             a random number
    ordered  an entry that is sorted or searched; to find the largest, without an order, costs what
             moving does
    """

    call: float = 5e-6
    byte: float = 5e-11
    product: float = 5e-11
    curved: float = 2.5e-9
    moved: float = 5e-9
    drawn: float = 4.5e-9
    ordered: float = 1.2e-7


def operation_price(operation, shapes, sizes, rates):
    """Counted seconds of one operation of torch, by its name, the shapes of its tensors (the result's
    last), and their bytes."""
    name, each = operation.partition(".")[0].strip("_"), 0.0
    if name in (
        "index",
        "index_select",
        "gather",
        "take",
        "embedding",
        "masked_select",
    ):  # not all of where they take from
        shapes, sizes = shapes[1:], sizes[1:]
    most = max((math.prod(shape) for shape in shapes), default=0)
    if name in (
        "mm",
        "mv",
        "bmm",
        "addmm",
        "addmv",
        "baddbmm",
        "dot",
        "vdot",
        "matmul",
        "linear",
        "linalg_vecdot",
        "addbmm",
    ):
        length = next((shape[-1] for shape in shapes[name.startswith(("add", "badd")) :] if shape), 1)
        return rates.call + rates.byte * sum(sizes) + rates.product * length * math.prod(shapes[-1])
    if name.startswith("conv"):
        inner = [math.prod(shape[1:]) for shape in shapes[1:2]]
        return rates.call + rates.byte * sum(sizes) + rates.product * sum(inner) * math.prod(shapes[-1])
    if name.startswith(
        ("exp", "log", "sigmoid", "tanh", "softplus", "pow", "erf", "sin", "cos", "softmax", "elu", "gelu")
    ):
        each = rates.curved
    elif name.startswith(
        ("index", "gather", "scatter", "take", "embedding", "masked_s", "nonzero", "put", "topk", "kthvalue")
    ):
        each = rates.moved
    elif name.startswith(("rand", "normal", "uniform", "bernoulli", "exponential", "multinomial")):
        each = rates.drawn
    elif name.startswith(("sort", "argsort", "searchsorted", "bucketize", "unique", "cum")):
        each = rates.ordered
    return rates.call + rates.byte * sum(sizes) + each * most


def priced(work, rates=None):
    """What ``work()`` returns, and the counted seconds of its operations of torch, of their
    differentiation too."""
    from torch.utils._python_dispatch import TorchDispatchMode

    rates, spent = rates or Rates(), [0.0]

    class Counting(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):  # else torch loads its compiler, which takes a second
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            held = [
                *args,
                *(kwargs or {}).values(),
                *(result if isinstance(result, list | tuple) else [result]),
            ]
            held = [x for part in held for x in (part if isinstance(part, list | tuple) else [part])]
            held = [x for x in held if isinstance(x, torch.Tensor)]
            if func.is_view:
                spent[0] += 0.3 * rates.call
            else:
                sizes = [x.numel() * x.element_size() for x in held]
                spent[0] += operation_price(func.__name__, [tuple(x.shape) for x in held], sizes, rates)
            return result

    with Counting():
        result = work()
    return result, spent[0]


def multiplied(times: float, calls: int = 0) -> float:
    """Counted seconds of so many multiplications in products of matrices, and of calls."""
    rates = Rates()
    return rates.product * times + rates.call * calls


class Meter:
    """Work that may be done: so many counted seconds, or until the clock (``time.perf_counter``) says
    ``until`` or somebody asks for its end (``stop``).

    ``timed``: it was the clock that ended some of it, or who asked for that.
    """

    def __init__(self, allowed: float = math.inf, until: float = math.inf, stop: Callable[[], bool] = bool):
        self.allowed, self.until, self.stop = allowed, until, stop
        self.spent, self.timed = 0.0, False

    @property
    def left(self) -> float:
        """Counted seconds; none once the clock has ended the work."""
        if self.late:
            return 0.0
        return max(self.allowed - self.spent, 0.0)

    @property
    def late(self) -> bool:
        """The clock has ended the work, or somebody did."""
        self.timed |= time.perf_counter() > self.until or self.stop()
        return self.timed

    @property
    def over(self) -> bool:
        return self.left <= 0.0

    def spend(self, seconds: float) -> None:
        """Work of so many counted seconds is done, or about to be."""
        self.spent += seconds

    def part(self, seconds: float) -> Meter:
        """One for a part of the work, of no more than so many of the counted seconds left, which it
        does not spend."""
        return Meter(min(seconds, self.left), self.until, self.stop)

    def count(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """What ``work()`` returns, and its counted seconds, which are spent."""
        result, seconds = priced(work)
        self.spend(seconds)
        return result, seconds
