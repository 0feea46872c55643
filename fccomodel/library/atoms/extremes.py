"""``max`` and ``min`` of any number of arguments, and ``clip``.

Where several arguments attain the extreme, the first of them takes the whole derivative: one
subgradient among those that sum to 1.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf

from fccomodel.library.atoms.base import Properties, Site
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom


def _torch(pairwise: str, side: str) -> Callable[[Site], str]:
    def template(site: Site) -> str:
        """The torch formula for numbers and tensors."""
        numbers = [f"{{{k}}}" for k, python in enumerate(site.python) if python]
        tensors = [f"{{{k}}}" for k, python in enumerate(site.python) if not python]
        text = reduce(lambda a, b: f"{pairwise}({a}, {b})", tensors)
        if not numbers:
            return text
        bound = numbers[0]
        if len(numbers) > 1:
            tightest = "max" if side == "min" else "min"
            bound = f"{tightest}({', '.join(numbers)})"
        return f"{text}.clamp({side}={bound})"

    return template


def _first(beaten: Callable[[str], str]) -> Callable[[Site], tuple[str, ...]]:
    """The text that is 1 for the first argument that no other beats, by ``step``."""

    def derivative(site: Site) -> tuple[str, ...]:
        """The factor of each argument: 1 for the first that is extreme."""
        count = len(site.shapes)
        if count == 1:
            return ("1",)
        lost = [f"step({beaten(f'u{k}')})" for k in range(1, count + 1)]
        factors = [[*lost[:k], f"(1 - {lost[k]})"] for k in range(count - 1)]
        return tuple(" * ".join(texts) for texts in (*factors, lost[:-1]))

    return derivative


max_ = ScalarAtom(
    name="max",
    meaning="the largest of the arguments",
    tex=r"\max\left\{<...>\right\}",
    arguments=("u...",),
    formula=lambda n: f"Max({', '.join(f'u{k}' for k in range(1, n + 1))})",
    torch=_torch("torch.maximum", "min"),
    derivative=_first(lambda u: f"y - {u}"),
    homogeneous=1,
    properties=Properties(
        curvature="convex",
        monotone="increasing",
        lipschitz=1.0,
        gradient_lipschitz=lambda varying, *u: 0.0 if _settled(u) else None,
        range=lambda *u: _largest(u),
    ),
    instead={
        "smooth": "max has kinks: use logsumexp(concat(..)), or let the solver smooth it.",
        "concave": "max is convex: minimise it, or bound it from above.",
    },
)
min_ = ScalarAtom(
    name="min",
    meaning="the smallest of the arguments",
    tex=r"\min\left\{<...>\right\}",
    arguments=("u...",),
    formula=lambda n: f"Min({', '.join(f'u{k}' for k in range(1, n + 1))})",
    torch=_torch("torch.minimum", "max"),
    derivative=_first(lambda u: f"{u} - y"),
    homogeneous=1,
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=1.0,
        gradient_lipschitz=lambda varying, *u: 0.0 if _settled([_turned(i) for i in u]) else None,
        range=lambda *u: _turned(_largest([_turned(i) for i in u])),
    ),
    instead={
        "smooth": "min has kinks: -logsumexp(concat(-a * u, -a * v)) / a is near it for a large a, and "
        "smooth.",
        "convex": "min is concave: bound each member by a constraint of its own, or maximise it.",
    },
)


def _clip(site: Site) -> str:
    """The torch text of ``clip``: torch's clamp takes two numbers or two tensors, not one of
    each."""
    if site.python[1] == site.python[2]:
        return "{0}.clamp({1}, {2})"
    return "{0}.clamp(min={1}).clamp(max={2})"


def _clip_curvature(u: Interval, lo: Interval, hi: Interval) -> str:
    if lo.hi <= u.lo and u.hi <= hi.lo:
        return "affine"
    if u.hi <= lo.lo or u.lo >= hi.hi:
        return "constant"
    if u.hi <= hi.lo:
        return "convex"
    if u.lo >= lo.hi:
        return "concave"
    return "none"


clip = ScalarAtom(
    name="clip",
    meaning="u, but lo where it is less and hi where it is more",
    tex=r"\operatorname{clip}_{[<1>, <2>]}\left(<0>\right)",
    arguments=("u", "lo", "hi"),
    parameters=("lo", "hi"),
    formula="Max(lo, Min(u, hi))",
    torch=_clip,
    derivative=("step(u - lo) * step(hi - u)",),
    breaks=("lo", "hi"),
    properties=Properties(
        curvature=_clip_curvature,
        monotone="increasing",
        lipschitz=lambda u, lo, hi: 0.0 if u.hi <= lo.lo or u.lo >= hi.hi else 1.0,
        gradient_lipschitz=0.0,
        range=lambda u, lo, hi: Interval(max(lo.lo, min(u.lo, hi.lo)), max(lo.hi, min(u.hi, hi.hi))),
    ),
)


def _turned(u: Interval) -> Interval:
    """The interval of the negatives."""
    return Interval(-u.hi, -u.lo, u.hi_open, u.lo_open)


def _largest(u: Sequence[Interval]) -> Interval:
    """The interval of the maximum.

    Its lower end is open if one of the intervals that begin there is open; its upper end if all
    that end there are.
    """
    low = max(i.lo for i in u)
    high = max(i.hi for i in u)
    low_open = any(i.lo_open for i in u if i.lo == low)
    high_open = all(i.hi_open for i in u if i.hi == high)
    return Interval(low, high, low_open, high_open)


def _settled(u: Sequence[Interval]) -> bool:
    """Whether one argument is the maximum for all values in the intervals."""
    return any(a.lo >= max((b.hi for k, b in enumerate(u) if k != j), default=-inf) for j, a in enumerate(u))
