"""A standalone solver: its sections put together."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fccomodel.algorithms.runtime import ending as _ending
from fccomodel.algorithms.runtime import failure, finish, panoc, restore, support
from fccomodel.core.quoting import shorten
from fccomodel.library.proximal import maps
from fccomodel.normal.penalty import Penalty
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.emit.template import report
from fccomodel.solver.emit.texts import called, with_called
from fccomodel.solver.emit.whole import Finishing


@dataclass(frozen=True, kw_only=True)
class Program:
    """``text`` is a complete Python program that imports torch and the standard library alone; ``data`` is what it reads
    from ``data.pt`` beside it. ``layout`` says where each variable lies in the flat vector w, ``penalties`` what each
    constraint became, ``smoothed`` the other envelopes: text, and width of the dual domain."""

    text: str
    data: Mapping[str, Any]
    layout: Mapping[str, tuple[int, int, tuple[int, ...]]]
    penalties: Mapping[str, Smoothed | Penalty]
    smoothed: Mapping[str, tuple[str, float]]


class Emitter(Finishing):
    """Builds the sections one after another."""

    def program(self) -> Program:
        draw = self.draw_section()
        gradient, prepare = self.gradient_section()
        evaluate, prepared, blocks = self.evaluation_section()
        whole, finishing = self.whole_text() if self.plan.whole else (None, False)
        constraints = self.constraint_text() if self.plan.polish else None
        assert not set(self.exact.thin) & self.cells, "rows that index centres are never thinned"
        loop = self.plan.algorithm_record.loop
        loops = ["# ---- the loop", *sources(loop)]
        loops += [whole] if whole else ["whole = None  # no pass over all rows with derivatives"]
        loops += self.ending(finishing, constraints, loops)
        body = "\n\n\n".join(
            part
            for part in [
                self.constants_section(),
                self.net_section(),
                self.data_section(),
                prepare,
                prepare_full(prepared),
                self.variables_section(),
                draw,
                self.update_section(),
                gradient,
                evaluate,
                blocks,
                *loops,
                report(finishing=self.plan.polish),
            ]
            if part
        )
        known = {**functions(maps), **functions(support)}
        used, defined = called(body)
        needed = with_called(f for name, f in known.items() if name in used)
        helpers = [inspect.getsource(f).rstrip() for f in needed if f.__name__ not in defined]
        text = "\n\n\n".join([self.header(), *helpers, body]) + "\n"
        smoothed = {
            s.name: (
                shorten(self.problem.text(s.original)),
                s.function.diameter,
            )
            for s in self.step_centres()
            if s.penalty is None
        }
        return Program(text=text, data=self.tensors(), layout=self.layout, penalties=self.normal.penalties, smoothed=smoothed)

    def ending(self, finishing: bool, constraints: str | None, loops: list[str]) -> list[str]:
        """What comes after the loop: the finish, the restoration, and what chooses between them."""
        if not self.plan.polish:
            return []
        parts = [] if finishing else ["finish = None"]
        parts += [constraints] if constraints else ["restore = None"]
        modules = [*([panoc, failure, finish] if finishing else []), *([restore] if constraints else []), _ending]
        texts = dict.fromkeys(text for module in modules for text in sources(module))
        return [*parts, *(text for text in texts if text not in loops)]


def functions(module: ModuleType) -> dict[str, Any]:
    """The module's own functions, in order."""
    return {name: f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__}


def prepare_full(prepared: list[str]) -> str:
    """The section that computes what a full pass needs of the data alone."""
    lines = "".join(f"    {line}\n" for line in prepared)
    return f'def prepare_full(data):\n    """What a full pass needs of the data alone."""\n{lines}    return data'


def sources(module: ModuleType) -> list[str]:
    """The functions of a loop as texts, after those of the modules beside it that they call."""
    beside = module.__name__.rpartition(".")[0]
    own = [f for f in vars(module).values() if inspect.isfunction(f) and f.__module__.startswith(beside)]
    return [inspect.getsource(f).rstrip() for f in with_called(own)]
