"""Graphs of scalar functions with their Moreau envelopes and proximal maps, from the formulas in the registry.

The envelope is min over v of f(v) + (v - u)^2 / 2, and the proximal map is where this minimum is attained.
Both are taken over a fine grid, so they need nothing but values of f.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fccomodel.library.atoms import Interval

REALS = Interval()
#: Parameters that show more than the typical ones.
PARAMETERS = {"clip": (-1.0, 1.5), "mcp": (3.0, 1.0), "pinball": (0.8,)}
SHOWN = 3.0  # half of the width of a picture, in units of u
SEARCHED = 15.0  # half of the width of the interval that holds the minimisers v
SPACING = 0.0025  # of the grid of v
COUNT = 241  # points u of a curve
JUMP = 0.3  # a larger step of the proximal map between two neighbouring points is a jump
LOWEST, HIGHEST = -4.0, 6.0  # of the values shown


@dataclass(frozen=True, eq=False)
class Curves:
    """A function and its proximal map at some points.

    at          the points u
    values      f(u)
    envelope    the Moreau envelope at u; None if f has none, because it falls too fast
    nearest     the proximal map at u; None without an envelope
    parameters  the values of the function's parameters, by name
    """

    at: np.ndarray
    values: np.ndarray
    envelope: np.ndarray | None
    nearest: np.ndarray | None
    parameters: dict[str, float]


def curves(atom: Any) -> Curves | None:
    """The curves of a function of one number, or None for a function of several."""
    names = atom.names(2)
    if len(names) - len(atom.parameters) != 1:
        return None
    limits = [limit or REALS for limit in atom.domains(*atom.everywhere)]
    limits += [REALS] * (len(names) - len(limits))
    domain = limits[0]
    numbers = PARAMETERS.get(atom.name, atom.typical)
    at = _inside(np.linspace(-SHOWN, SHOWN, COUNT), domain)
    candidates = _inside(np.arange(-SEARCHED, SEARCHED + SPACING / 2, SPACING), domain)
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(atom.value(at, *numbers), float), at.shape)
        costs = np.broadcast_to(np.asarray(atom.value(candidates, *numbers), float), candidates.shape)
    parameters = dict(zip(atom.parameters, numbers, strict=True))
    totals = costs + (candidates - at[:, None]) ** 2 / 2
    place = totals.argmin(1)
    nearest = candidates[place]
    if np.abs(nearest).max() > SEARCHED - 1 or 0 in atom.poles(*limits) or not _bounded(nearest, domain, totals):
        return Curves(at, values, None, None, parameters)
    return Curves(at, values, totals.min(1), nearest, parameters)


def _inside(points: np.ndarray, domain: Interval) -> np.ndarray:
    """The points in a domain, with its ends."""
    low = domain.lo + (1e-6 if domain.lo_open else 0.0)
    high = domain.hi - (1e-6 if domain.hi_open else 0.0)
    inner = points[(points > low) & (points < high)]
    ends = [end for end in (low, high) if points[0] <= end <= points[-1]]
    return np.sort(np.append(inner, ends))


def _bounded(nearest: np.ndarray, domain: Interval, totals: np.ndarray) -> bool:
    """Whether the minima are finite, and not at an open end of the domain."""
    if not np.isfinite(totals.min(1)).all():
        return False
    at_low = domain.lo_open and (nearest <= domain.lo + 1e-6).any()
    at_high = domain.hi_open and (nearest >= domain.hi - 1e-6).any()
    return not (at_low or at_high)


def picture(atom: Any) -> str:
    """The graph of a function with its envelope, and its proximal map beside it, as SVG; "" if it has none."""
    from matplotlib.figure import Figure

    from fccomodel.app.shown.page import svg

    found = curves(atom)
    if found is None:
        return ""
    figure = Figure(figsize=(6.2, 2.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    numbers = ", ".join(f"{name} = {value:g}" for name, value in found.parameters.items())
    left.plot(found.at, _with_gaps(found.values), label=f"{atom.name}(u)")
    left.set_xlabel(f"u   ({numbers})" if numbers else "u")
    if found.envelope is None or found.nearest is None:
        figure.delaxes(right)
    else:
        left.plot(found.at, found.envelope, linestyle="--", label="envelope")
        right.plot(found.at, found.at, color="gray", linewidth=0.6)
        right.plot(found.at, _with_gaps(found.nearest), color="C2", label="prox")
        right.set_xlabel("u")
        right.legend(frameon=False, fontsize="small")
        right.set_ylim(-SHOWN, SHOWN)
    finite = found.values[np.isfinite(found.values)]
    left.set_ylim(max(finite.min(), LOWEST) - 0.2, min(finite.max(), HIGHEST) + 0.2)
    left.legend(frameon=False, fontsize="small")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize="small")
    return f'<div class="picture graph">{svg(figure).replace(chr(10), " ")}</div>'


def _with_gaps(values: np.ndarray) -> np.ndarray:
    """The values with a gap at each jump, so that no line is drawn across it."""
    shown = np.array(values, float)
    shown[1:][np.abs(np.diff(shown)) > JUMP] = np.nan
    return shown
