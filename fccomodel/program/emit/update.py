"""The section with the algorithm's step: estimator and update, then the projection."""

from __future__ import annotations

from collections.abc import Collection

from fccomodel.algorithms.runtime.loops import steps
from fccomodel.program.emit.carried import Carried, carried, source
from fccomodel.program.emit.projection import Projection
from fccomodel.program.lower import Lowered
from fccomodel.program.operations.estimates import track


def update(lowered: Lowered, projection: Projection, elsewhere: Collection[Carried]) -> str:
    """The functions of the algorithm, and those that they call if they are not ``elsewhere`` in the
    program.
    """
    algorithm = lowered.plan.algorithm_record
    functions = carried([*estimating(lowered), *chosen(lowered, projection).values()], elsewhere)
    head = f"# ---- one step of {algorithm.title}: {algorithm.theorem}"
    texts = "\n\n\n".join([*map(source, functions), projection.text])
    return "\n\n\n".join([*map(source, projection.called.values()), f"{head}\n{texts}"])


def chosen(lowered: Lowered, projection: Projection) -> dict[str, Carried]:
    """The algorithm's own functions, by the fields of the record that take them.

    Adam's step is made in one sweep if no prox asks for the step size of each coordinate.
    """
    functions = lowered.plan.algorithm_record.functions(lowered.plan.step, lowered.plan.pace)
    if (functions["begin"], functions["update"]) == (steps.begin, steps.adam_step) and not projection.asks:
        functions |= {"begin": steps.begin_late, "update": steps.swept_adam_step}
    return functions


def estimating(lowered: Lowered) -> list[Carried]:
    """The functions of the estimator that steps call."""
    state, estimator = lowered.steps.state, lowered.plan.algorithm_record.estimator
    if estimator is None:
        return []
    names = sorted(
        {
            "track_log" if v.attrs["log"] else "track"
            for v in state.graph.vals
            if v.op is track and v.attrs["name"]
        }
    )
    if state.dual and lowered.plan.remembers:
        names += ["extrapolate"]
    if lowered.inequalities:
        names += ["multiplier"]
    if state.coupled:
        names += ["couple"]
    return [getattr(estimator, name) for name in names]
