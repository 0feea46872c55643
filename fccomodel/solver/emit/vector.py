"""The vector form phi(F(w)): every topmost expectation is a component of F, by minibatch or exactly."""

from __future__ import annotations

import math
from typing import Any

from fccomodel.algorithms.runtime.settings import VectorSettings
from fccomodel.algorithms.runtime.solver import VectorSolver
from fccomodel.core import ir
from fccomodel.core.quoting import comment
from fccomodel.solver.emit.printer import Prepared, Printer, below
from fccomodel.solver.emit.program import Emitter
from fccomodel.solver.emit.record import Form
from fccomodel.solver.lower import Entries, Lowering, Phi, State
from fccomodel.solver.names import Names
from fccomodel.solver.operations import Val
from fccomodel.solver.operations.draws import draw, draw_range, noise


class VectorEmitter(Emitter):
    """``inner``, ``inner_full`` and ``outer`` in the place of ``gradient``."""

    def lower(self) -> Val:
        bound, data = self.bound, self.step.state.data
        form = State(bound=bound, data=data, full=True, stable=False, separated=False, enveloped=True)
        self.phi = Phi(form)
        root = self.phi.expr(self.normal.objective)
        step = State(bound=bound, data=data, full=False, stable=False, batch=self.plan.batch, centres=form.centres)
        steps = Entries(step, self.phi)
        self.whole = Entries(State(bound=bound, data=data, full=True, stable=False, separated=False), self.phi)
        self.step = steps.lowering
        self.components = self.phi.components
        self.samples = list(map(steps.value, self.components))
        self.values = list(map(self.whole.value, self.components))
        return root

    def gradient_section(self) -> tuple[str, str]:
        prepared = Prepared()
        names = self.batch_names
        unpack = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = batch"] if names else []
        step = self.printer(self.step, prepared)
        self.name_draws(step)
        inner = [*unpack, *self.joined(step, self.samples)]
        full = self.joined(self.printer(self.whole.lowering, prepared), self.values)
        phi = self.printer(self.phi.lowering, prepared)
        phi.print([self.root])
        layout = [f"#   u[{c.start}:{c.stop}] = {comment(self.problem.text(c.node), 100)}" for c in self.components]
        text = "\n".join(
            [
                "# ---- F, whose entries are the expectations, and phi",
                *layout,
                "def inner(data, w, batch, h):",
                '    """F(w; xi): the mean over a minibatch."""',
                *("    " + line for line in inner),
                "",
                "",
                "def inner_full(data, w, h):",
                '    """F(w), exactly."""',
                *("    " + line for line in full),
                "",
                "",
                "def outer(data, w, u, c, h):",
                '    """phi(u) by envelopes, with what has neither expectation nor prox."""',
                *("    " + line for line in phi.lines),
                f"    return torch.as_tensor({phi.ref(self.root)})",
            ]
        )
        body = "".join(f"    {line}\n" for line in prepared.lines)
        return text, f'def prepare(data):\n    """What depends on the data alone, computed once."""\n{body}    return data'

    def form(self) -> Form:
        """What the loop over vectors asks for."""
        length = max((c.stop for c in self.components), default=0)
        values = {"components": length, "samples": self.cost(self.samples), "rows": self.cost(self.values)}
        return Form(record=VectorSolver, settings=VectorSettings, defined=("inner", "inner_full", "outer"), values=values)

    def printer(self, lowering: Lowering, prepared: Prepared) -> Printer:
        """A printer whose names for what is computed once are new."""
        names = Names([*self.taken(), *prepared.taken])
        return Printer(layout=self.layout, comments=self.comments(lowering), prepared=prepared, names=names, autograd=True)

    @staticmethod
    def joined(printer: Printer, values: list[Val]) -> list[str]:
        """Statements that end with the values as one flat vector."""
        printer.print(values)
        texts = [f"{printer.ref(v)}.reshape({math.prod([a.size for a in v.axes] + list(v.event))})" for v in values]
        joined = texts[0] if len(texts) == 1 else f"torch.cat([{', '.join(texts)}])"
        return [*printer.lines, f"return {joined}"]

    def cost(self, values: list[Val]) -> int:
        """Values of g(w; xi) at one block and one sample: the largest product of axes; components that share draws count once."""
        groups: dict[Any, int] = {}
        for entry, sample, value in zip(self.components, self.samples, values, strict=True):
            drawn = frozenset(v.id for v in below([sample]).values() if v.op in (draw, draw_range, noise))
            tables = frozenset(b.domain.name for n in ir.walk(entry.node) if isinstance(n, ir.Reduce) for b in n.binders)
            size = max(math.prod(a.size for a in v.axes) for v in below([value]).values())
            groups[drawn, tables] = max(groups.get((drawn, tables), 0), size)
        return sum(groups.values())

