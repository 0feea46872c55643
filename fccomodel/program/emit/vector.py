"""The section of the vector form phi(F(w)): F by minibatch and exactly, and phi."""

from __future__ import annotations

import math
from typing import Any

from fccomodel.algorithms.runtime.loops.settings import VectorSettings
from fccomodel.algorithms.runtime.loops.solver import VectorSolver
from fccomodel.algorithms.runtime.loops.vector_loop import VectorRun
from fccomodel.core import ir
from fccomodel.core.quoting import comment
from fccomodel.library.proximal import Entropic
from fccomodel.program.emit.page import function, printer_of
from fccomodel.program.emit.printer import FunctionPrinter, PreparedValues
from fccomodel.program.emit.record import LoopForm
from fccomodel.program.emit.sampling import StepDraws
from fccomodel.program.emit.smoothing import Smoothing
from fccomodel.program.graph import below
from fccomodel.program.lower import Lowered, State, VectorSteps
from fccomodel.program.operations import Val
from fccomodel.program.operations.base import sizes
from fccomodel.program.operations.draws import draw, draw_range, draw_strata, noise


class CompositionText:
    """``inner``, ``inner_full`` and ``outer``, and what they ``prepared``."""

    def __init__(self, lowered: Lowered, steps: VectorSteps, samples: StepDraws, smoothing: Smoothing):
        self.lowered, self.steps, self.smoothing = lowered, steps, smoothing
        self.prepared = PreparedValues()
        inner = self.printer(steps.state)
        samples.introduce(inner)
        self.inner = [*samples.unpacked, *joined(inner, steps.samples)]
        if lowered.shares:
            self.inner = [
                "w = in_parts(w)",
                *self.inner[:-1],
                f"return over_ranks({self.inner[-1].removeprefix('return ')})",
            ]
        self.full = joined(self.printer(steps.full), steps.values)
        phi = self.printer(steps.phi)
        phi.print([steps.root])
        result = f"return torch.as_tensor({phi.ref(steps.root)})"
        self.outer = [*phi.body, result]
        if steps.part is None:
            self.part = []
        else:
            self.part = self.sampled(steps.state, steps.part, samples)

    def sampled(self, state: State, part: Val, samples: StepDraws) -> list[str]:
        """The lines of phi by samples."""
        printer = self.printer(state)
        samples.introduce(printer)
        printer.print([part])
        result = f"return torch.as_tensor({printer.ref(part)})"
        return [*samples.unpacked, *printer.body, result]

    def printer(self, state: State) -> FunctionPrinter:
        """A printer for one of the functions, all of which autograd differentiates."""
        return printer_of(self.lowered, state, self.prepared, autograd=True, smoother=self.smoothing.call)

    @property
    def text(self) -> str:
        """The functions ``inner`` and ``outer`` with their head."""
        problem = self.lowered.problem
        head = ["# ---- F, whose entries are the expectations, and phi"]
        head += [
            f"#   u[{c.start}:{c.stop}] = {comment(problem.text(c.node), 100)}" for c in self.steps.components
        ]
        phi = "phi(u), with envelopes of its kinks, plus the terms with neither expectation nor prox."
        functions = [
            function("inner", "F(w; xi): the mean over a minibatch.", self.inner, "data, w, batch, h"),
            function("inner_full", "F(w), exactly.", self.full, "data, w, h"),
            function("outer", phi, self.outer, "data, w, u, c, h"),
        ]
        if self.part:
            functions.append(
                function(
                    "outer_part", "phi(u) by samples of its terms.", self.part, "data, w, u, c, batch, h"
                )
            )
        return "\n".join([*head, "\n\n\n".join(functions)])

    @property
    def form(self) -> LoopForm:
        """The functions that the loop over vectors needs."""
        length = max((c.stop for c in self.steps.components), default=0)
        values: dict[str, Any] = {"components": length, "squares": self.squares}
        values |= {"samples": self.cost(self.steps.samples), "rows": self.cost(self.steps.values)}
        defined = ("inner", "inner_full", "outer", *(["outer_part"] if self.part else []))
        return LoopForm(
            record=VectorSolver, run=VectorRun, settings=VectorSettings, defined=defined, values=values
        )

    @property
    def squares(self) -> bool:
        """Every envelope is one of Moreau's."""
        return not any(isinstance(s.function, Entropic) for s in self.lowered.centred)

    def cost(self, values: list[Val]) -> int:
        """Values of g(w; xi) at one block and one sample: the largest product of axes; components that
        share draws count once."""
        groups: dict[Any, int] = {}
        for part, sample, value in zip(self.steps.components, self.steps.samples, values, strict=True):
            drawn = frozenset(
                v.id for v in below([sample]).values() if v.op in (draw, draw_range, draw_strata, noise)
            )
            tables = frozenset(
                b.domain.name for n in ir.walk(part.node) if isinstance(n, ir.Reduce) for b in n.binders
            )
            size = max(math.prod(sizes(v.axes)) for v in below([value]).values())
            groups[drawn, tables] = max(groups.get((drawn, tables), 0), size)
        return sum(groups.values())


def joined(printer: FunctionPrinter, values: list[Val]) -> list[str]:
    """Statements that end with the values as one flat vector."""
    printer.print(values)
    texts = [f"{printer.ref(v)}.reshape({math.prod(sizes(v.axes, v.event))})" for v in values]
    if len(texts) == 1:
        value = texts[0]
    else:
        value = f"torch.cat([{', '.join(texts)}])"
    return [*printer.body, f"return {value}"]
