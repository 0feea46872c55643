"""A standalone solver: its sections put together."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fccomodel.algorithms.runtime import support
from fccomodel.algorithms.runtime.settings import BlockSettings
from fccomodel.algorithms.runtime.solver import BlockSolver
from fccomodel.core.quoting import shorten
from fccomodel.library import reductions
from fccomodel.library.proximal import maps
from fccomodel.normal.penalty import Penalty
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.emit.carried import Carried, called, carried, source
from fccomodel.solver.emit.record import Form, Record
from fccomodel.solver.emit.template import report
from fccomodel.solver.emit.whole import Finishing


@dataclass(frozen=True, kw_only=True)
class Program:
    """``text`` is a complete Python program that imports torch and the standard library alone; ``data`` is what it reads
    from ``data.pt`` beside it. ``layout`` says where each variable lies in the flat vector w, ``penalties`` what each
    constraint became, ``smoothed`` the other envelopes: text, and width of the dual domain. ``runtime`` are those parts of the
    text that tell nothing of the model: its loop, what comes after it, the command line."""

    text: str
    data: Mapping[str, Any]
    layout: Mapping[str, tuple[int, int, tuple[int, ...]]]
    penalties: Mapping[str, Smoothed | Penalty]
    smoothed: Mapping[str, tuple[str, float]]
    runtime: tuple[str, ...]


class Emitter(Finishing):
    """Builds the sections one after another."""

    def program(self) -> Program:
        draw = self.draw_section()
        gradient, prepare = self.gradient_section()
        evaluate, prepared, blocks = self.evaluation_section()
        whole = self.whole_text() if self.plan.whole else None
        constraints = self.constraint_text() if self.plan.polish else None
        assert not set(self.exact.state.thinning.thin) & self.cells, "rows that index centres are never thinned"
        record = Record(plan=self.plan, form=self.form(), facts=self.facts(), whole=whole, constrained=constraints is not None)
        classes, loop, main = record.classes(), record.loop(), report(finishing=self.plan.polish)
        parts = [
            self.constants_section(),
            "# ---- settings",
            *map(source, classes),
            self.settings_section(record.form.settings),
            self.net_section(),
            self.data_section(),
            prepare,
            prepare_full(prepared),
            self.variables_section(),
            draw,
            self.update_section([*classes, *loop]),
            gradient,
            evaluate,
            blocks,
            whole.text if whole else "",
            constraints or "",
            "# ---- the loop",
            *map(source, loop),
            record.text(),
            main,
        ]
        body = "\n\n\n".join(part for part in parts if part)
        known = {**functions(maps), **functions(support), **reductions.programs()}
        used, defined = called(body)
        needed = carried(f for name, f in known.items() if name in used)
        helpers = [source(f) for f in needed if f.__name__ not in defined]
        smoothed = {
            s.name: (
                shorten(self.problem.text(s.original)),
                s.function.diameter,
            )
            for s in self.step_centres()
            if s.penalty is None
        }
        return Program(
            text="\n\n\n".join([self.header(), *helpers, body]) + "\n",
            data=self.tensors(),
            layout=self.layout,
            penalties=self.normal.penalties,
            smoothed=smoothed,
            runtime=(*map(source, [*classes, *loop]), main),
        )

    def form(self) -> Form:
        """What the loop over blocks asks for."""
        values = {"oracles": self.oracles(), "surrogate": bool(self.plan.surrogates), "inequalities": self.inequalities()}
        return Form(record=BlockSolver, settings=BlockSettings, defined=("gradient", "buffers"), values=values)

    def facts(self) -> dict[str, Any]:
        """What every loop asks for, beside functions."""
        return {
            "block": self.plan.block,
            "own": max((self.layout[name][1] for name in self.problem.variables if name in self.layout), default=0),
            "centred": bool(self.step_centres()),
            "dual": self.step.state.dual or self.step.state.coupled,
            "heavy": self.exact.state.thinning.heavy,
            "thin": dict(self.exact.state.thinning.thin),
        }


def functions(module: ModuleType) -> dict[str, Carried]:
    """The module's own functions, in order."""
    return {name: f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__}


def prepare_full(prepared: list[str]) -> str:
    """The section that computes what a full pass needs of the data alone."""
    lines = "".join(f"    {line}\n" for line in prepared)
    return f'def prepare_full(data):\n    """What a full pass needs of the data alone."""\n{lines}    return data'
