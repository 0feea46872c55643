"""A trace of an algorithm's steps as a table and as three pictures (by matplotlib)."""

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

#: Largest number of blocks in a picture.
SHOWN_BLOCKS = 3
#: Largest number of constraints in a picture.
SHOWN_CONSTRAINTS = 8
#: Lines of curves, in turn.
LINES = ("-", "--", "-.", ":")
#: Smallest value on a logarithmic axis.
SMALLEST_DRAWN = 1e-12


@dataclass(frozen=True, kw_only=True)
class Traced:
    """An algorithm's estimates, gradients and multipliers at some steps of a run.

    trace        the recorded steps
    multipliers  the multipliers of the report, for comparison
    name         model and algorithm
    """

    trace: Trace
    multipliers: Mapping[str, float]
    name: str

    @property
    def looks(self) -> Sequence[Look]:
        """The records of the run, in order: ``u``, ``g``, ``gradient`` and others at a step."""
        return self.trace.looks

    @property
    def steps(self) -> np.ndarray:
        """The step of each look."""
        return np.array([look.step for look in self.looks])

    def off(self, name: str) -> np.ndarray:
        """The root mean square of u_i - g_i over the blocks with a value, at each step, for one
        estimate."""
        return np.array([_root_mean_square(look.u[name] - look.g[name]) for look in self.looks])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per step: the error of each estimate, the bias of the gradient with its standard error,
        the gradient's noise and true length, and the multipliers."""
        return [self._row(k, look) for k, look in enumerate(self.looks)]

    def _row(self, k: int, look: Look) -> dict[str, Any]:
        """The row of the ``k``-th look."""
        row: dict[str, Any] = {"step": look.step, "oracles": look.oracles}
        for name in look.u:
            if name in look.g:
                row[f"off {name}"] = float(self.off(name)[k])
        if look.gradient is not None:
            row["bias"] = look.gradient.bias
            row["bias error"] = look.gradient.error
            row["noise"] = look.gradient.noise
            row["gradient"] = look.gradient.size
        for label, value in self.multipliers_at(look).items():
            row[f"y {label}"] = value
        return row

    def multipliers_at(self, look: Look) -> Mapping[str, float]:
        """The multipliers of the constraints at a look, by label.

        A problem without constraints has the dual variables y of its blocks with kinks in their place.
        """
        if look.multipliers:
            return look.multipliers
        duals = {}
        for name, y in look.y.items():
            if y.ndim == 1:
                for label, value in zip(self.trace.blocks[name], y, strict=True):
                    duals[f"{name}{label}"] = float(value)
        return duals

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
    """Pictures of a trace; each is a matplotlib figure."""

    def __init__(self, traced: Traced):
        self._traced = traced

    def tracking(self, estimate: str | None = None) -> Figure:
        """Estimates u_i (dashed) beside the true g_i of a few blocks, and the error over all blocks."""
        name = estimate or next(iter(self._traced.trace.estimates))
        return drawn(lambda axes: _tracking(axes, self._traced, name), 2)

    def bias(self) -> Figure:
        """The bias of the gradient, the length of the true gradient, and the noise of a minibatch.

        A bias in the shaded area may be chance.
        """
        return drawn(lambda axes: _bias(axes[0], self._traced))

    def multipliers(self) -> Figure:
        """The multipliers by step, or the dual variables y of blocks in a problem without constraints.

        Dotted lines are the multipliers of the report.
        """
        return drawn(lambda axes: _multipliers(axes[0], self._traced))


def _tracking(axes: Sequence[Axes], traced: Traced, name: str) -> None:
    """Draw some blocks of one estimate, and the error over all of them."""
    labels, looks = traced.trace.blocks[name], traced.looks
    shape = len(looks), len(labels), -1
    u = np.array([look.u[name] for look in looks]).reshape(shape)[..., 0]
    g = np.array([look.g[name] for look in looks]).reshape(shape)[..., 0]
    visited = np.flatnonzero(np.isfinite(u).any(axis=0))
    chosen = visited[np.linspace(0, len(visited) - 1, min(SHOWN_BLOCKS, len(visited)), dtype=int)]
    for k, block in enumerate(chosen):
        axes[0].plot(traced.steps, g[:, block], color=f"C{k}", label=f"g{labels[block]}")
        axes[0].plot(traced.steps, u[:, block], "--o", color=f"C{k}", markersize=3, label=f"u{labels[block]}")
    axes[0].set_title(f"{traced.name}: {_short(traced.trace.estimates[name])}", loc="left")
    axes[0].set_ylabel("value")
    axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    axes[1].plot(
        traced.steps, np.maximum(traced.off(name), SMALLEST_DRAWN), color="0.25", marker="o", markersize=3
    )
    axes[1].set_yscale("log")
    axes[1].set_ylabel("root mean square of u - g")
    _along(axes)


def _bias(axes: Axes, traced: Traced) -> None:
    """Draw length, bias and noise of the gradient by step."""
    looks = [(look.step, look.gradient) for look in traced.looks if look.gradient is not None]
    steps = np.array([step for step, _ in looks])
    shown = {
        "true gradient": [gradient.size for _, gradient in looks],
        "bias: |mean - true|": [gradient.bias for _, gradient in looks],
        "noise of a minibatch": [gradient.noise for _, gradient in looks],
    }
    for (label, values), line, colour in zip(
        shown.items(), LINES, ("0.25", "tab:red", "tab:blue"), strict=False
    ):
        axes.plot(
            steps,
            np.maximum(values, SMALLEST_DRAWN),
            line,
            color=colour,
            marker="o",
            markersize=3,
            label=label,
        )
    least = min(max(min(values), SMALLEST_DRAWN) for values in shown.values())
    chance = np.array([2 * gradient.error for _, gradient in looks])
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
    """Draw the largest multipliers by step."""
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
        count = f" ({SHOWN_CONSTRAINTS} of {len(last)})"
    else:
        count = ""
    if constrained:
        subject = f"multipliers{count}; dotted: of the report"
    else:
        subject = f"y of the blocks{count}"
    axes.set_title(f"{traced.name}: {subject}", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    _along([axes])


def _along(axes: Sequence[Axes]) -> None:
    """Set the axis of steps: logarithmic, but linear from 0 to 1."""
    for panel in axes:
        panel.set_xscale("symlog", linthresh=1)
        panel.xaxis.set_major_formatter("{x:,.0f}")
        panel.set_xlim(left=0)
    axes[-1].set_xlabel("step")


def _root_mean_square(errors: np.ndarray) -> float:
    """The root mean square of the finite entries; NaN if there are none."""
    errors = errors[np.isfinite(errors)]
    if len(errors):
        return float(np.sqrt(np.mean(errors**2)))
    return float("nan")


def _short(text: str, letters: int = 48) -> str:
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…"
