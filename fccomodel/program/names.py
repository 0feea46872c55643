"""Names in a program: those that mean something there, to which a model's names give way, and new ones."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
from collections.abc import Iterable

#: names that emitted functions use for their own
LOCALS = "w w_prev u c h t y data batch G T rng torch math time part row_seed RANKS OWNERS".split()
#: how the names of the functions of Moreau envelopes begin
OF_ENVELOPES = ("slope_", "envelope_")
#: what their lines call, beside the functions of ``runtime.support``, ``proximal.maps`` and of reductions
CALLED = "track track_log extrapolate multiplier couple blocks epochs project".split()


@functools.cache
def reserved() -> frozenset[str]:
    """Python's own names, and those of the functions that lines made from a model may call."""
    from fccomodel.algorithms.runtime import ranks
    from fccomodel.algorithms.runtime.helpers import raised, support, sweep
    from fccomodel.library import distances, reductions
    from fccomodel.library.proximal import maps

    modules = (support, sweep, raised, maps, distances, ranks)
    functions = (name for module in modules for name, f in vars(module).items() if inspect.isfunction(f))
    return frozenset([*keyword.kwlist, *dir(builtins), *LOCALS, *CALLED, *functions, *reductions.programs()])


class Names:
    """The names of one function, beside the reserved ones."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.counters = dict.fromkeys((*reserved(), *taken), 1)
        self.numbered: set[str] = set()

    def copy(self, taken: Iterable[str] = ()) -> Names:
        """The names of a function within another: those of the outer function, and some more that are
        taken.
        """
        names = Names()
        names.counters = self.counters | dict.fromkeys(taken, 1)
        return names

    def claim(self, name: str) -> str:
        """A name that something has already."""
        self.counters[name] = 1
        return name

    def fresh(self, stem: str) -> str:
        """A name not used before: the stem, or its number raised."""
        if stem.startswith(OF_ENVELOPES):
            stem = f"v_{stem}"
        while True:
            count = self.counters[stem] = self.counters.get(stem, 0) + 1
            if stem[-1] == "1" and not stem[-2:-1].isdigit():
                if count == 1 or f"{stem[:-1]}{count}" not in self.counters:
                    self.numbered.add(f"{stem[:-1]}{count}")
                    return f"{stem[:-1]}{count}"
            elif count == 1:
                if stem not in self.numbered:
                    return stem
            elif (name := f"{stem}_{count}") not in self.counters:
                return self.claim(name)
