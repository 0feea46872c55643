"""Counted seconds: the operations of a calculation, turned into seconds by one table of rates.

Stages follow each other by counted seconds, so the same seed takes the same way on a busy machine and
on an idle one. The clock only ends work that has run out of time, and the result then says so.
Emitted programs carry ``Rates``, ``priced``, ``to_the_end`` and ``within_memory``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fccomodel.core.lazy import torch
from fccomodel.core.memory import ran_out


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds that one thread takes, as measured by ``tests/bench/rates.py`` and a fifth more.

    call     one operation of torch, with its part in differentiation and the Python around it
    byte     one byte read or written
    product  one multiplication and addition, in products of matrices and convolutions
    curved   one entry of exp, log and the like
    moved    one entry read or written by its index, or searched for the largest ones
    drawn    one random number
    ordered  one entry that is sorted, or looked up in a sorted list
    narrow   products and curved entries of numbers of less than eight bytes (float32) take this share
    """

    call: float = 4e-6
    byte: float = 3e-11
    product: float = 4.5e-11
    curved: float = 2e-9
    moved: float = 4.5e-9
    drawn: float = 3.5e-9
    ordered: float = 1.2e-7
    narrow: float = 0.5


def convolved(name, shapes):
    """Multiplications of a convolution with these shapes, or of its backward pass.

    The shapes are input, weights, bias if there is one, and result; of a backward pass the gradient of
    the result, input, weights, and their gradients. Each gradient but the bias's takes as many
    multiplications as the result.
    """
    if name.endswith("backward"):
        gradients = sum(len(shape) > 1 for shape in shapes[3:])
        return gradients * math.prod(shapes[2][1:]) * math.prod(shapes[0])
    return math.prod(shapes[1][1:]) * math.prod(shapes[-1])


def operation_price(operation, shapes, sizes, rates, wide=8):
    """Counted seconds of one operation of torch.

    operation  its name
    shapes     shapes of its tensors, the result's last
    sizes      bytes of the same tensors
    wide       bytes of a number of double precision
    """
    name = operation.partition(".")[0].strip("_")
    # these do not read all of their first tensor
    if name in ("index", "index_select", "gather", "take", "embedding", "masked_select"):
        shapes, sizes = shapes[1:], sizes[1:]
    cost = rates.call + rates.byte * sum(sizes)
    if shapes and sizes[-1] < wide * math.prod(shapes[-1]):
        share = rates.narrow
    else:
        share = 1.0
    products = "mm mv bmm addmm addmv baddbmm dot vdot matmul linear linalg_vecdot addbmm"
    if name in products.split():
        length = next((shape[-1] for shape in shapes[name.startswith(("add", "badd")) :] if shape), 1)
        return cost + share * rates.product * length * math.prod(shapes[-1])
    if name.startswith("conv"):
        return cost + share * rates.product * convolved(name, shapes)
    entries = max((math.prod(shape) for shape in shapes), default=0)
    curved = "exp log sigmoid tanh softplus pow erf sin cos softmax safe_softmax elu gelu"
    if name.startswith(tuple(curved.split())):
        return cost + share * rates.curved * entries
    # normalisation and pooling of layers: several passes over their entries, of any precision
    layers = "native_batch_norm native_layer_norm native_group_norm batch_norm avg_pool adaptive_avg_pool"
    if name.startswith(tuple(layers.split())):
        return cost + rates.curved * entries
    gathering = "index gather scatter take embedding masked_s nonzero put topk kthvalue"
    if name.startswith(tuple(gathering.split())):
        return cost + rates.moved * entries
    if "max_pool" in name and not name.endswith("backward"):
        return cost + rates.moved * entries
    if name.startswith(("rand", "normal", "uniform", "bernoulli", "exponential", "multinomial")):
        return cost + rates.drawn * entries
    if name.startswith(("sort", "argsort", "searchsorted", "bucketize", "unique", "cum")):
        return cost + rates.ordered * entries
    return cost


class Left(Exception):
    """A calculation was left before its end: it takes more work than it may, or its time is over."""


def counting(rates=None, most=math.inf):
    """A context whose ``seconds`` are the counted seconds of the operations of torch inside it.

    They include the operations of automatic differentiation. Raises ``Left`` once they are more
    than ``most``.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    rates = rates or Rates()

    class Counting(TorchDispatchMode):
        seconds = 0.0

        @classmethod
        def _should_skip_dynamo(cls):  # otherwise torch loads its compiler, which takes a second
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if isinstance(result, list | tuple):
                results = result
            else:
                results = [result]
            values = [*args, *(kwargs or {}).values(), *results]
            values = [x for part in values for x in (part if isinstance(part, list | tuple) else [part])]
            tensors = [x for x in values if isinstance(x, torch.Tensor)]
            if func.is_view:
                self.seconds += 0.3 * rates.call
            else:
                sizes = [x.numel() * x.element_size() for x in tensors]
                shapes = [tuple(x.shape) for x in tensors]
                self.seconds += operation_price(func.__name__, shapes, sizes, rates)
            if self.seconds > most:
                raise Left
            return result

    return Counting()


def priced(work, rates=None, most=math.inf):
    """The result of ``work()``, and its counted seconds (see ``counting``).

    Work of more than ``most`` seconds is left, and has no result and an infinite price.
    """
    with counting(rates, most) as spent:
        try:
            result = work()
        except Left:
            if spent.seconds <= most:
                raise
            return None, math.inf
    return result, spent.seconds


def to_the_end(work, over, dear=True):
    """Do ``work()``. Whether it came to its end, and was not left because ``over()`` said so.

    ``over`` is asked between any two operations of torch, those of automatic differentiation among
    them. Work that is not ``dear`` is never left.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    if not dear:
        work()
        return True

    class Watching(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if over():
                raise Left
            return func(*args, **(kwargs or {}))

    try:
        with Watching():
            work()
    except Left:
        if over():
            return False
        raise
    return True


def within_memory(work):
    """Do ``work()``. Whether it came to its end, and not to an array that found no room in memory."""
    try:
        work()
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        return False
    return True


def multiplied(times: float, calls: int = 0) -> float:
    """Counted seconds of ``times`` multiplications in products of matrices, and of ``calls`` calls."""
    rates = Rates()
    return rates.product * times + rates.call * calls


class Meter:
    """A limit on work, and the work that was done.

    allowed  counted seconds that may be spent
    until    the time of the clock (``time.perf_counter``) at which the work ends
    stop     whether somebody asks for the end
    spent    counted seconds spent so far
    timed    whether the clock, or a request, ended some of the work
    """

    def __init__(self, allowed: float = math.inf, until: float = math.inf, stop: Callable[[], bool] = bool):
        self.allowed = allowed
        self.until = until
        self.stop = stop
        self.spent = 0.0
        self.timed = False

    @property
    def left(self) -> float:
        """Counted seconds that are left; 0 once the clock has ended the work."""
        if self.late:
            return 0.0
        return max(self.allowed - self.spent, 0.0)

    @property
    def late(self) -> bool:
        """Whether the clock, or a request, has ended the work."""
        self.timed |= time.perf_counter() > self.until or self.stop()
        return self.timed

    @property
    def over(self) -> bool:
        """Whether no work is left."""
        return self.left <= 0.0

    def spend(self, seconds: float) -> None:
        """Record work of this many counted seconds, done or about to be done."""
        self.spent += seconds

    def part(self, seconds: float) -> Meter:
        """A meter for a part of the work: at most ``seconds`` of those left. This meter spends nothing."""
        return Meter(min(seconds, self.left), self.until, self.stop)

    def count(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """Do ``work()`` and spend its counted seconds. Returns its result and these seconds."""
        result, seconds = priced(work)
        self.spend(seconds)
        return result, seconds
