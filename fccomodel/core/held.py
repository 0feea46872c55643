"""Counted bytes: the most memory that the tensors of a calculation hold at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from fccomodel.core.lazy import torch


def held(work: Callable[[], Any]) -> tuple[Any, int]:
    """The result of ``work()``, and the most bytes that tensors made by it held at once.

    Tensors that automatic differentiation keeps are counted as long as it keeps them. Arrays of NumPy
    are not counted, nor is what one operation takes for itself.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    class Holding(TorchDispatchMode):
        now = 0
        most = 0

        def __init__(self) -> None:
            super().__init__()
            self.known: dict[int, Any] = {}

        @classmethod
        def _should_skip_dynamo(cls) -> bool:  # otherwise torch loads its compiler, which takes a second
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if isinstance(result, list | tuple):
                results = result
            else:
                results = [result]
            for one in results:
                if isinstance(one, torch.Tensor):
                    self.count(one.untyped_storage())
            return result

        def count(self, storage: Any) -> None:
            """Count a storage from now until it is freed."""
            key, size = storage._cdata, storage.nbytes()
            if key in self.known:
                return
            self.known[key] = weakref.ref(storage, partial(self.freed, key, size))
            self.now += size
            self.most = max(self.most, self.now)

        def freed(self, key: int, size: int, _: Any) -> None:
            """Count a storage no longer."""
            self.known.pop(key, None)
            self.now -= size

    with Holding() as counted:
        result = work()
    return result, counted.most
