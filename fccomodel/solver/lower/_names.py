"""Names that mean something in a program: a model's names give way to them."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword

#: names that emitted functions use for their own
LOCALS = "w w_prev u c h t y data batch G T rng torch math time part".split()
#: what their lines call, beside the functions of ``emit.support`` and ``proximal.maps``
CALLED = "track track_log extrapolate multiplier couple blocks epochs project".split()


@functools.cache
def reserved() -> frozenset[str]:
    """Python's own names, and those of the functions that lines made from a model may call."""
    from fccomodel.algorithms.runtime import support
    from fccomodel.library.proximal import maps

    functions = (name for module in (support, maps) for name, f in vars(module).items() if inspect.isfunction(f))
    return frozenset([*keyword.kwlist, *dir(builtins), *LOCALS, *CALLED, *functions])
