"""Full passes over many pairs of rows: between stages the exact problem is evaluated on some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

#: between stages, the exact problem is evaluated on at most so many pairs
QUICK = 1 << 24
#: more pairs than this are evaluated in single precision between stages
HEAVY = 1 << 24
#: rows of a set that are kept at least
FEWEST = 256


@dataclass(eq=False)
class Thinning:
    """``thin``: how many rows of a set a quick evaluation takes; ``heavy``: pairs are many; ``nests``: the row sets, with their
    lengths, of the passes that are being lowered."""

    thin: dict[str, int] = field(default_factory=dict)
    heavy: bool = False
    nests: list[dict[str, int]] = field(default_factory=list)

    @contextmanager
    def over(self, pairs: float) -> Iterator[None]:
        """A pass over so many pairs, whose row sets are noted meanwhile."""
        self.nests.append({})
        try:
            yield
        finally:
            self.take(self.nests.pop(), pairs)

    def take(self, axes: Mapping[str, int], pairs: float) -> None:
        """Row sets to be thinned, the largest first, until a quick evaluation takes at most ``QUICK`` pairs."""
        sizes = dict(axes)
        self.heavy |= pairs > HEAVY
        while pairs > QUICK and sizes:
            key = max(sizes, key=lambda k: sizes[k])
            kept = max(FEWEST, int(sizes[key] / max(2.0, min(pairs / QUICK, 8.0))))
            if kept >= sizes[key]:
                break
            pairs *= kept / sizes[key]
            sizes[key] = kept
        self.thin |= {k: min(n, self.thin.get(k, n)) for k, n in sizes.items() if n < axes[k]}
