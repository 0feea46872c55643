"""What a trace shows of an algorithm at work: a table, and three pictures (matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app.shown.frames import frame
from fccomodel.app.shown.plots import drawn
from fccomodel.execution.run.microscope import Look, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Blocks that a picture has room for.
SHOWN_BLOCKS = 3
#: Constraints that a picture has room for.
SHOWN_CONSTRAINTS = 8
LINES = ("-", "--", "-.", ":")
#: The least value on a logarithmic axis.
LEAST = 1e-12


@dataclass(frozen=True, kw_only=True)
class Traced:
    """An algorithm's estimates, gradients and multipliers at some steps of a run.

    steps        the steps that were looked at
    looks        what was recorded at each: ``u``, ``g``, ``gradient``, ...
    multipliers  those of the report, for comparison
    name         model and algorithm
    """

    trace: Trace
    multipliers: Mapping[str, float]
    name: str

    @property
    def looks(self) -> Sequence[Look]:
        """The looks of the run, in order."""
        return self.trace.looks

    @property
    def steps(self) -> np.ndarray:
        """The step of each look."""
        return np.array([look.step for look in self.looks])

    def off(self, name: str) -> np.ndarray:
        """Root mean square of u_i - g_i over the blocks seen so far, by step: of one estimate."""
        return np.array([_root(look.u[name] - look.g[name]) for look in self.looks])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per step: how far each estimate is off, the gradient's bias with the error it is known
        to, its noise and true size, the multipliers."""
        return [self._row(k, look) for k, look in enumerate(self.looks)]

    def _row(self, k: int, look: Look) -> dict[str, Any]:
        row: dict[str, Any] = {"step": look.step, "oracles": look.oracles}
        row |= {f"off {name}": float(self.off(name)[k]) for name in look.u if name in look.g}
        if look.gradient is not None:
            G = look.gradient
            row |= {"bias": G.bias, "bias error": G.error, "noise": G.noise, "gradient": G.size}
        return row | {f"y {label}": value for label, value in self.multipliers_at(look).items()}

    def multipliers_at(self, look: Look) -> Mapping[str, float]:
        """Those of the constraints; of a problem without any, the y of the blocks of its smoothed
        functions, by label."""
        duals = {} if look.multipliers else look.y
        blocks = self.trace.blocks
        return look.multipliers or {
            f"{name}{label}": float(value)
            for name, y in duals.items()
            if y.ndim == 1
            for label, value in zip(blocks[name], y, strict=True)
        }

    def to_pandas(self) -> Any:
        """The rows as a ``DataFrame``. F0529 without pandas."""
        return frame(self.rows, "A table of the trace")

    @property
    def plot(self) -> Pictures:
        """``plot.tracking()``, ``plot.bias()``, ``plot.multipliers()``."""
        return Pictures(self)

    def __repr__(self) -> str:
        return f"<Traced {self.name}: {len(self.looks)} looks at steps 0 .. {max(self.steps, default=0):,}>"


class Pictures:
    """Of what was traced; each is a matplotlib figure."""

    def __init__(self, traced: Traced):
        self._traced = traced

    def tracking(self, estimate: str | None = None) -> Figure:
        """u_i (dashed) beside the true g_i of a few blocks, and how far all of them are off, by step."""
        name = estimate or next(iter(self._traced.trace.estimates))
        return drawn(lambda axes: _tracking(axes, self._traced, name), 2)

    def bias(self) -> Figure:
        """The bias of the gradient beside its size and the noise of a minibatch; shaded: what may be
        chance."""
        return drawn(lambda axes: _bias(axes[0], self._traced))

    def multipliers(self) -> Figure:
        """The multipliers on their way, or the y of blocks where nothing is constrained; dotted: those
        of the report."""
        return drawn(lambda axes: _multipliers(axes[0], self._traced))


def _tracking(axes: Sequence[Axes], traced: Traced, name: str) -> None:
    labels, looks = traced.trace.blocks[name], traced.looks
    u, g = (
        np.array([getattr(look, kind)[name] for look in looks]).reshape(len(looks), len(labels), -1)[..., 0]
        for kind in "ug"
    )
    seen = np.flatnonzero(np.isfinite(u).any(axis=0))
    chosen = seen[np.linspace(0, len(seen) - 1, min(SHOWN_BLOCKS, len(seen)), dtype=int)]
    for k, block in enumerate(chosen):
        axes[0].plot(traced.steps, g[:, block], color=f"C{k}", label=f"g{labels[block]}")
        axes[0].plot(traced.steps, u[:, block], "--o", color=f"C{k}", markersize=3, label=f"u{labels[block]}")
    axes[0].set_title(f"{traced.name}: {_short(traced.trace.estimates[name])}", loc="left")
    axes[0].set_ylabel("value")
    axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    axes[1].plot(traced.steps, np.maximum(traced.off(name), LEAST), color="0.25", marker="o", markersize=3)
    axes[1].set_yscale("log")
    axes[1].set_ylabel("root mean square of u - g")
    _along(axes)


def _bias(axes: Axes, traced: Traced) -> None:
    seen = [(look.step, look.gradient) for look in traced.looks if look.gradient is not None]
    steps = np.array([step for step, _ in seen])
    shown = {
        "true gradient": [G.size for _, G in seen],
        "bias: |mean - true|": [G.bias for _, G in seen],
        "noise of a minibatch": [G.noise for _, G in seen],
    }
    for (label, values), line, colour in zip(
        shown.items(), LINES, ("0.25", "tab:red", "tab:blue"), strict=False
    ):
        axes.plot(steps, np.maximum(values, LEAST), line, color=colour, marker="o", markersize=3, label=label)
    least = min(max(min(values), LEAST) for values in shown.values())
    chance = np.array([2 * G.error for _, G in seen])
    axes.fill_between(
        steps,
        0.5 * min(least, *chance),
        chance,
        color="tab:red",
        alpha=0.15,
        linewidth=0,
        label="may be chance",
    )
    axes.set_yscale("log")
    axes.set_ylabel("length")
    axes.set_title(f"{traced.name}: the gradient of a step", loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
    _along([axes])


def _multipliers(axes: Axes, traced: Traced) -> None:
    paths = [traced.multipliers_at(look) for look in traced.looks]
    last = paths[-1]
    largest = sorted(last, key=lambda label: -abs(last[label]))[:SHOWN_CONSTRAINTS]
    for k, label in enumerate(largest):
        axes.plot(
            traced.steps, [at[label] for at in paths], LINES[k % len(LINES)], color=f"C{k}", label=label
        )
        if label in traced.multipliers:
            axes.axhline(traced.multipliers[label], color=f"C{k}", linestyle=":", linewidth=1)
    constrained = bool(traced.looks[-1].multipliers)
    axes.set_ylabel("multiplier" if constrained else "y")
    if len(last) > SHOWN_CONSTRAINTS:
        of = f" ({SHOWN_CONSTRAINTS} of {len(last)})"
    else:
        of = ""
    if constrained:
        what = f"multipliers{of}; dotted: of the report"
    else:
        what = f"y of the blocks{of}"
    axes.set_title(f"{traced.name}: {what}", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    _along([axes])


def _along(axes: Sequence[Axes]) -> None:
    """Steps from 0 on, the first ones apart."""
    for panel in axes:
        panel.set_xscale("symlog", linthresh=1)
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_xlim(left=0)
    axes[-1].set_xlabel("step")


def _root(off: np.ndarray) -> float:
    off = off[np.isfinite(off)]
    if len(off):
        return float(np.sqrt(np.mean(off**2)))
    return float("nan")


def _short(text: str, letters: int = 48) -> str:
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…"
