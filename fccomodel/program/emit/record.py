"""The record by which a program passes its functions to its loop, and the runtime that the program
carries.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fccomodel.algorithms.runtime.finish import ending, finish, restore
from fccomodel.algorithms.runtime.loops.block_loop import BlockRun
from fccomodel.algorithms.runtime.loops.progress import Work
from fccomodel.algorithms.runtime.loops.residual import Watch
from fccomodel.algorithms.runtime.loops.schedules import SCHEDULES
from fccomodel.algorithms.runtime.loops.settings import LoopSettings
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.algorithms.runtime.loops.vector_loop import VectorRun
from fccomodel.core.quoting import literal
from fccomodel.library.kinks import kinked
from fccomodel.plan import Plan, sizes
from fccomodel.program import starts
from fccomodel.program.emit.carried import Carried, carried
from fccomodel.program.lower import Lowered
from fccomodel.program.lower.bytes_needed import steps_drawn_at_once

#: what every program calls by the name of the record's field
DEFINED = (
    "as_namespace",
    "prepare",
    "prepare_full",
    "start",
    "centres",
    "draw",
    "project",
    "evaluate",
    "blocks",
)


@dataclass(frozen=True, kw_only=True)
class LoopForm:
    """The form that a loop works on: the classes of its record, its settings and its run's state, the
    names of the functions that the program defines for it, and its other fields."""

    record: type[Solver]
    settings: type[LoopSettings]
    run: type[BlockRun] | type[VectorRun]
    defined: tuple[str, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SolverText:
    """``SOLVER``, for a loop that works on ``form``; ``functions``: the algorithm's own, by the fields
    that take them."""

    lowered: Lowered
    form: LoopForm
    functions: Mapping[str, Carried]

    @property
    def plan(self) -> Plan:
        """The plan that the program carries out."""
        return self.lowered.plan

    @property
    def after(self) -> dict[str, Carried]:
        """The functions for the work after the loop."""
        finishing: dict[str, Carried] = {"finish": finish.finish, "one_pass": finish.one_pass}
        affordable = self.lowered.whole is not None and self.lowered.whole.affordable
        if (
            affordable
            and self.plan.start is not None
            and self.plan.start.found
            and self.plan.pace == "practical"
        ):
            finishing["resume"] = finish.resumed
        return (finishing if affordable else {}) | (
            {"restore": restore.restore} if self.lowered.constrained else {}
        )

    def classes(self) -> list[Carried]:
        """The classes of the settings, of the schedule and of the record itself."""
        return carried([self.form.settings, SCHEDULES[self.plan.pace], self.form.record])

    def loop(self) -> list[Carried]:
        """The loop, the finish after it, the classes of their state, and all that they call."""
        roots = [self.plan.algorithm_record.solve, *self.after.values()]
        if self.plan.polish:
            roots.append(ending.solve_then_finish)
        return carried([*roots, self.form.run, Watch, Work], self.classes())

    def text(self) -> str:
        """The section that makes the record, without the fields that have their default value."""
        functions = dict(self.functions)
        pace = ", ".join(
            f"{name}={functions.pop(name).__name__}"
            for name in ("falling", "next_stage")
            if name in functions
        )
        functions |= {"solve": self.plan.algorithm_record.solve, **self.after}
        arguments = {"settings": "Settings", "schedule": f"{SCHEDULES[self.plan.pace].__name__}({pace})"}
        arguments |= {name: name for name in (*DEFINED, *self.form.defined, *self.passes)}
        arguments |= {name: f.__name__ for name, f in functions.items()}
        usual = {
            f.name: f.default_factory() if callable(f.default_factory) else f.default
            for f in fields(self.form.record)
        }
        values = {name: value for name, value in self.values.items() if value != usual[name]}
        arguments |= {name: literal(value) for name, value in values.items()}
        if values.get("own") == max((stop for _, stop, _ in self.lowered.layout.values()), default=0):
            arguments["own"] = "DIMENSION"
        if self.plan.polish:
            arguments |= {"tol": "TOL"}
        words = [f"{name}={text}," for name, text in arguments.items()]
        lines = textwrap.wrap(" ".join(words), 116, break_long_words=False, break_on_hyphens=False)
        return "\n".join(
            [
                "# ---- the solver: the functions above in one record, as the loop takes them",
                f"SOLVER = {self.form.record.__name__}(",
                *("    " + line for line in lines),
                ")",
            ]
        )

    @property
    def values(self) -> dict[str, Any]:
        """The fields of the record that are not functions."""
        lowered, steps, thinning = self.lowered, self.lowered.steps.state, self.lowered.exact.state.thinning
        return {
            "block": steps_drawn_at_once(lowered, self.plan.block),
            "own": max(
                (lowered.layout[name][1] for name in lowered.problem.variables if name in lowered.layout),
                default=0,
            ),
            "centred": bool(lowered.centred),
            "dual": steps.dual or steps.coupled,
            "heavy": thinning.heavy,
            "direct": self.plan.direct and "finish" in self.after,
            "attained": self.plan.attained and "finish" in self.after,
            "biased": self.biased,
            "nonconvex": not self.plan.convex and "finish" in self.after,
            "curved": tuple(s.name for s in lowered.centred if s.penalty is None and not kinked(s.original)),
            "thin": thinning.thin,
            **self.form.values,
            "inside": dict(lowered.whole.inside) if lowered.whole else {},
        }

    @property
    def biased(self) -> bool:
        """Whether only minibatches give the gradient, and they sample inside nonlinear functions."""
        lowered = self.lowered
        nonlinear = any(term.kind == "composition" for term in lowered.normal.terms)
        return (
            lowered.whole is None
            and nonlinear
            and sizes.sampled(lowered.normal, lowered.bound, self.plan.batch)
        )

    @property
    def passes(self) -> list[str]:
        """The names of the functions for full passes that the program has."""
        if self.lowered.whole:
            whole = ["whole", "all_blocks"]
        else:
            whole = []
        if "finish" in self.after:
            whole += ["regulariser"]
        if "resume" in self.after and starts.pairs(self.lowered) is not None:
            whole += ["pairs"]
        if starts.moments(self.lowered):
            whole += ["moments"]
        return [*whole, *(["constraint_values"] if self.lowered.constrained else [])]
