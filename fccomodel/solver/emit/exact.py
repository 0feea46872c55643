"""The section with the problem itself, on all rows, and the arguments that the centres of smoothing follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fccomodel.core import ir
from fccomodel.core.quoting import comment, literal
from fccomodel.evaluation import selections
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.emit.printer import Printer
from fccomodel.solver.emit.stochastic import Stochastic
from fccomodel.solver.lower import Lowering, Slot, Way
from fccomodel.solver.names import Names
from fccomodel.solver.operations import Axis, Val, union
from fccomodel.solver.operations._base import number
from fccomodel.solver.operations._envelopes import lam_text, slope_text
from fccomodel.solver.operations.entrywise import spread
from fccomodel.solver.operations.sources import take

#: a smoothed function with the ids of its cells, its argument and the axes of a maximum
Block = tuple[Smoothed, list[Val], Val, tuple[Axis, ...]]


class Exact(Stochastic):
    """``evaluate`` and ``blocks``."""

    def evaluation_section(self) -> tuple[str, list[str], str]:
        """``evaluate``, what it prepares, and ``blocks``."""
        lowering = self.exact
        graph = lowering.state.graph
        objective = lowering.expr(self.reference.objective.expr, {}, True)
        if self.problem.objective.sense == "maximize":
            objective = graph.apply("neg", objective)
        constraints = self.constraints_of(lowering)
        printer = Printer(layout=self.layout, comments=self.comments(lowering), names=Names(self.taken()))
        printer.print([objective, *(v for _, v in constraints.values())])
        lines = list(printer.lines)
        lines.append(f"return torch.as_tensor({printer.ref(objective)}), {entries(printer, constraints)}")
        evaluate = (
            "# ---- the problem itself, on all rows, in float64\n"
            "def evaluate(data, w):\n"
            '    """The minimised objective, and each constraint\'s values (left minus right side)."""\n'
            + "\n".join("    " + x for x in lines)
        )
        self.shared = printer
        return evaluate, printer.prepared.lines, self.blocks_text()

    def constraints_of(self, lowering: Lowering) -> dict[str, tuple[str, Val]]:
        """Kind and values of every constraint in a full pass."""
        graph = lowering.state.graph
        found: dict[str, tuple[str, Val]] = {}
        for constraint in self.reference.constraints:
            env: dict[ir.Binder, Slot] = {}
            weights: list[Val] = []
            if constraint.binders:
                way = Way(body=constraint.body, dense=True)
                ranged = lowering.binders.ranged(constraint.binders, constraint.condition, {}, way)
                env = ranged.env
                weights = [p.weight for p in ranged.parts if p.weight is not None]
            value = lowering.expr(constraint.body, env, True)
            for mask in weights:
                value = graph.apply("mul", mask, value)
            whole = union([value, *(slot.ids for slot in env.values())])
            if value.axes != whole:  # every member has a value, whichever binders it depends on
                value = graph.make(spread, [value], axes=whole)
            found[constraint.label] = (constraint.kind, value)
        return found

    def blocks_text(self) -> str:
        """The exact arguments of the smoothed functions, and their slopes: where centres and multipliers come from."""
        if not self.step_centres():
            return 'def blocks(data, w):\n    """No function is smoothed with a centre."""\n    return {}'
        found = self.blocks_of(self.step_centres())
        self.cells = {i.attrs["key"] for _, ids, _, _ in found for i in ids if i.op is take}
        lines, inside = self.block_lines(found)
        about = "Per smoothed function: cells, exact arguments, slope, and its largest slope if it is a penalty."
        return function("blocks", about, [*lines, f"return {{{', '.join(inside)}}}"])

    def blocks_of(self, smoothed: Iterable[Smoothed]) -> list[Block]:
        """Smoothed functions in a full pass, at the elements that the objective takes."""
        within = selections.taken_by(self.normal.objective)
        return [(s, *self.exact.envelopes.block(s, within)) for s in smoothed]

    def block_lines(self, found: list[Block]) -> tuple[list[str], list[str]]:
        """Statements, and the entries of ``blocks`` that they are for."""
        shared = self.shared
        texts = {i: text for i, text in shared.texts.items() if text.startswith("data.")}
        names = shared.names.copy(shared.prepared.taken)
        printer = Printer(layout=self.layout, prepared=shared.prepared, names=names, texts=texts)
        printer.print([v for _, _, v, _ in found])
        lines = list(printer.lines)
        printer.lines = []
        inside = []
        for s, ids, value, over in found:
            axes = union([*ids, value])
            index = ", ".join(printer.ref(i, axes, 0) for i in ids)
            sizes = tuple(a.size for a in axes)
            t = printer.ref(value, axes, len(value.event))
            t = t if value.axes == axes else f"{t}.expand({sizes + value.event})"
            slope = f"slope_{s.name}"
            dims = tuple(axes.index(a) for a in over) or tuple(range(-len(value.event), 0) if s.function.rank else ())
            inner = slope_text(s.function, s.bound, "t", lam_text(s.function, f"h.lam_{s.name}"), "y", dims)
            bounded = number(max(map(abs, s.units))) if s.penalty else "0"
            lines.append(f"def {slope}(t, y, h):  # {comment(self.problem.text(s.original))}")
            lines.append(f"    return {inner}")
            key = f"({index},)" if ids else "()"
            inside.append(f"{literal(s.name)}: ({key}, {t}, {slope}, {bounded})")
        return lines, inside


def entries(printer: Printer, constraints: Mapping[str, tuple[str, Val]]) -> str:
    """Constraints by label as a dictionary's text."""
    values = {label: f"({literal(kind)}, torch.as_tensor({printer.ref(v)}))" for label, (kind, v) in constraints.items()}
    return f"{{{', '.join(f'{literal(label)}: {text}' for label, text in values.items())}}}"


def function(name: str, about: str, lines: list[str], arguments: str = "data, w") -> str:
    """The text of a function."""
    return "\n".join([f"def {name}({arguments}):", f'    """{about}"""', *("    " + line for line in lines)])
