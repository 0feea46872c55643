"""Full passes over many pairs of rows: between stages the exact problem is evaluated on some of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: between stages, the exact problem is evaluated on at most so many pairs: of more, on some, and in
#: single precision
QUICK = 1 << 24
#: seconds of a budget from which on these are so many; of a smaller one they are fewer in
#: proportion, but at least
FULL_BUDGET_S = 30.0
FEWEST_PAIRS = 1 << 20
#: rows of a set that are kept at least
FEWEST = 256


@dataclass(eq=False)
class Thinning:
    """Which rows a quick evaluation takes.

    passes  over which row sets, of which lengths, those over many pairs go, and over how many
    nests   the row sets, with their lengths, of the passes that are being lowered
    whole   row sets that are never thinned
    seconds of the budget, if it is one of seconds
    """

    passes: list[tuple[dict[str, int], float]] = field(default_factory=list)
    nests: list[dict[str, int]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    seconds: float | None = None

    @contextmanager
    def over(self, pairs: float) -> Iterator[None]:
        """A pass over so many pairs, whose row sets are noted meanwhile."""
        self.nests.append({})
        try:
            yield
        finally:
            self.passes.append((self.nests.pop(), pairs))

    @property
    def quick(self) -> float:
        """The pairs of an evaluation between stages, at most."""
        if self.seconds is None:
            share = 1.0
        else:
            share = min(self.seconds / FULL_BUDGET_S, 1.0)
        return max(QUICK * share, min(QUICK, FEWEST_PAIRS))

    @property
    def heavy(self) -> bool:
        """Pairs are many."""
        return any(pairs > self.quick for _, pairs in self.passes)

    @property
    def thin(self) -> dict[str, int]:
        """How many rows of each set a quick evaluation takes: of each pass the largest set is thinned
        first, until it takes at most ``quick`` pairs."""
        found: dict[str, int] = {}
        for axes, pairs in self.passes:
            sizes = {key: n for key, n in axes.items() if key not in self.whole}
            while pairs > self.quick and sizes:
                key = max(sizes, key=lambda k: sizes[k])
                kept = max(FEWEST, int(sizes[key] / max(2.0, min(pairs / self.quick, 8.0))))
                if kept >= sizes[key]:
                    break
                pairs *= kept / sizes[key]
                sizes[key] = kept
            found |= {k: min(n, found.get(k, n)) for k, n in sizes.items() if n < axes[k]}
        return found
