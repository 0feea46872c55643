"""Quick evaluations of the exact problem between stages, on a part of the rows if there are many pairs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

#: Largest number of pairs of an evaluation between stages. If the problem has more, the evaluation takes
#: a part of them, in single precision.
QUICK = 1 << 24
#: Budget from which on an evaluation may take ``QUICK`` pairs, in seconds. A smaller budget allows
#: proportionally fewer pairs.
FULL_BUDGET_S = 30.0
#: Number of pairs that an evaluation may take with any budget.
FEWEST_PAIRS = 1 << 20
#: Smallest number of rows to which a set is thinned.
FEWEST = 256


@dataclass(eq=False)
class Thinning:
    """The rows that a quick evaluation takes.

    passes    for each pass over many pairs, the lengths of its row sets (by key), and the number of pairs
    nests     the lengths of row sets of the passes that are being lowered
    whole     keys of row sets that are never thinned
    seconds   the budget in seconds; None if it is not given in seconds
    """

    passes: list[tuple[dict[str, int], float]] = field(default_factory=list)
    nests: list[dict[str, int]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    seconds: float | None = None

    @contextmanager
    def over(self, pairs: float) -> Iterator[None]:
        """Note the row sets of a pass over ``pairs`` pairs, as long as the block runs."""
        self.nests.append({})
        try:
            yield
        finally:
            self.passes.append((self.nests.pop(), pairs))

    @property
    def quick(self) -> float:
        """The largest number of pairs of an evaluation between stages."""
        share = 1.0
        if self.seconds is not None:
            share = min(self.seconds / FULL_BUDGET_S, 1.0)
        return max(QUICK * share, min(QUICK, FEWEST_PAIRS))

    @property
    def heavy(self) -> bool:
        """Whether some pass has more pairs than a quick evaluation may take."""
        return any(pairs > self.quick for _, pairs in self.passes)

    @property
    def thin(self) -> dict[str, int]:
        """The number of rows of each thinned set.

        In each pass the largest set is thinned, by a factor of 2 to 8 at a time, until the pass takes at
        most ``quick`` pairs.
        """
        thinned: dict[str, int] = {}
        for lengths, pairs in self.passes:
            sizes = {key: n for key, n in lengths.items() if key not in self.whole}
            while pairs > self.quick and sizes:
                key = max(sizes, key=sizes.__getitem__)
                factor = max(2.0, min(pairs / self.quick, 8.0))
                fewer = max(FEWEST, int(sizes[key] / factor))
                if fewer >= sizes[key]:
                    break
                pairs *= fewer / sizes[key]
                sizes[key] = fewer
            for key, n in sizes.items():
                if n < lengths[key]:
                    thinned[key] = min(n, thinned.get(key, n))
        return thinned
