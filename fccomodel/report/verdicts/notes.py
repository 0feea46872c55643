"""Notes: the facts beside the verdict that a reader must know to trust the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from fccomodel.core import ir
from fccomodel.data import nets
from fccomodel.data.drawn import drawn
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.new_rows.sampling import StandardErrors
from fccomodel.report.point import recording
from fccomodel.report.point.system import System
from fccomodel.report.verdicts.grades import GRADES, NO_GAP
from fccomodel.report.verdicts.words import first_of, quoted

#: Size of the numbers in a column from which on the column is named if terms cancel.
LARGE_COLUMN = 1e3
#: Share of a penalty's bound from which on a multiplier counts as being at the bound.
NEARLY = 0.99
#: Argument of a root up to which it counts as 0.
NO_ROOT = 1e-12
#: Constraints that the note on a penalty's bound names.
MOST_LABELS = 4


def cancelling(system: System, lost: float) -> Iterator[str]:
    """A note if terms cancel so much that rounding shows. It names the column with the largest numbers."""
    if lost <= GRADES[0][0] * abs(system.objective) or lost <= NO_GAP:
        return
    columns = {
        (n.binder.domain.table, n.name)
        for n in system.problem.expressions(ir.Column)
        if n.name is not None
        and isinstance(n.binder.domain, ir.RowSet)
        and not drawn(system.bound.tables[n.binder.domain.table].columns[n.name])
    }
    sizes = {(t, c): float(np.abs(system.bound.tables[t].columns[c]).max(initial=0.0)) for t, c in columns}
    table, column = max(sizes, key=lambda key: sizes[key], default=("", ""))
    named = ""
    if column and sizes[table, column] > LARGE_COLUMN:
        named = (
            f": `{column}` of {table} is as large as {sizes[table, column]:.1e}; subtract its mean, "
            "or scale it"
        )
    yield f"Terms cancel: the objective may be off by {lost:.1e} by rounding{named}"


def notes_of(system: System, optimal: Optimum, noise: StandardErrors | None = None) -> Iterator[str]:
    """The facts that a reader must know to trust the numbers."""
    if noise is not None:
        yield _sampled(noise)
    used = [system.records[k] for k in sorted(system.used)]
    yield from recording.notes(system.left, system.refused, used, lambda node: quoted(system, node))
    if not optimal.weighed:
        yield (
            "The weights of the maxima were not chosen, for want of time: each subgradient is that of "
            "the largest terms, and the "
            "stationarity is an upper bound"
        )
    by_constraint = zip(system.kept, system.slopes[1:], strict=True)
    if any(system.equal[k] and slopes for k, slopes in by_constraint):
        yield (
            "An equality contains a function with a kink: one subgradient of it is taken; the "
            "stationarity is an upper bound"
        )
    yield from below_roots(system)
    yield from _nets(system)


def _nets(system: System) -> Iterator[str]:
    """Notes on nets that are taken to have a property, or that have kinks."""
    for name, net in system.problem.nets.items():
        if net.frozen:
            continue
        facts = nets.walk(system.bound.nets[name])
        declared = [text for text, _ in net.assume]
        if declared:
            yield f"Net `{name}` is taken to be {', '.join(declared)}: your assumption"
        elif not facts.smooth:
            reason = f" ({facts.reasons[0]})" if facts.reasons else ""
            known = "weakly convex, not smooth" if facts.weakly_convex else "not proved to be smooth"
            yield f"Net `{name}` is {known}{reason}: at a kink one of its gradients is taken"


def below_roots(system: System) -> Iterator[str]:
    """Notes on roots of nearly 0, which have no gradient there."""
    roots = (n for n in system.problem.expressions(ir.Apply) if n.op == "sqrt" and not n.shape)
    weighed = {id(record.kink.node) for record in system.records}
    for node in roots:
        if not ir.variables_of(node) or ir.free_binders(node) or id(node) in weighed:
            continue
        u = float(system.evaluator.value(node.args[0], {}).data.detach())
        if u < NO_ROOT:
            yield (
                f"{quoted(system, node)} is the root of {u:.1g} here, and a root has no gradient at 0: "
                "an optimum there is not "
                "recognised (`sqrt(1e-6 + u)` has one)"
            )


def at_bound(multipliers: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[str]:
    """Notes on the solver's multipliers that are as large as its penalties allow."""
    for name, limit in limits.items():
        labels = [
            label
            for label, nu in multipliers.items()
            if label.partition("[")[0] == name and abs(nu) >= NEARLY * limit > 0
        ]
        if labels:
            shown = first_of([f"`{label}`" for label in labels], MOST_LABELS)
            yield (
                f"{shown}: the solver's multiplier is at the penalty's bound, {limit:.3g}: the penalty is "
                "too weak to hold the "
                f"constraint (--option rho={4 * limit:.3g})"
            )


def _sampled(noise: StandardErrors) -> str:
    """A note on the expectations that draws stand for, and their standard errors."""
    constraints = ""
    if len(noise.constraints):
        constraints = f", of the constraints at most {noise.worst:.1e}"
    return (
        f"{noise.names}: {noise.count:,} draws, others than those of the run, stand for the distribution; "
        "standard error of the "
        f"objective {noise.objective:.1e}{constraints}"
    )
