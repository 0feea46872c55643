"""The section with the problem itself, on all rows, and the arguments that the centres of smoothing follow."""

from __future__ import annotations

from fccomodel import ir
from fccomodel.emit.printer import Printer
from fccomodel.emit.stochastic import Stochastic
from fccomodel.emit.texts import lam_text, number, shorten, slope_text
from fccomodel.graph import Val, merge_axes
from fccomodel.lower import Slot


class Exact(Stochastic):
    """``evaluate`` and ``blocks``."""

    def evaluation_section(self) -> tuple[str, list[str], str]:
        """``evaluate``, what it prepares, and ``blocks``."""
        lowering = self.exact
        graph = lowering.graph
        objective = lowering.expr(self.reference.objective.expr, {}, True)
        if self.problem.objective.sense == "maximize":
            objective = graph.apply("neg", objective)
        constraints: dict[str, tuple[str, Val]] = {}
        for constraint in self.reference.constraints:
            env: dict[ir.Binder, Slot] = {}
            weights: list[Val] = []
            if constraint.binders:
                ranged = lowering.ranges(constraint.binders, constraint.condition, {}, body=constraint.body, dense=True)
                env = ranged.env
                weights = [p.weight for p in ranged.parts if p.weight is not None]
            value = lowering.expr(constraint.body, env, True)
            for mask in weights:
                value = graph.apply("mul", mask, value)
            constraints[constraint.label] = (constraint.kind, value)
        printer = Printer(graph=graph, layout=self.layout, comments=self.comments(lowering), double=True)
        lines: list[str] = []
        roots = [objective, *(v for _, v in constraints.values())]
        printer.print([r for r in roots if r.op not in ("const", "param")])
        lines = list(printer.lines)
        entries = ", ".join(
            f"{label!r}: ({kind!r}, torch.as_tensor({printer.ref(v)}))" for label, (kind, v) in constraints.items()
        )
        lines.append(f"return torch.as_tensor({printer.ref(objective)}), {{{entries}}}")
        evaluate = (
            "# ---- the problem itself, on all rows, in float64\n"
            "def evaluate(data, w):\n"
            '    """The minimised objective, and each constraint\'s values (left minus right side)."""\n'
            + "\n".join("    " + x for x in lines)
        )
        blocks = self.blocks_text(printer)
        return evaluate, printer.prepared, blocks

    def blocks_text(self, shared: Printer) -> str:
        """The exact arguments of the smoothed functions, and their slopes: where centres and multipliers come from."""
        if not self.step_centres():
            return 'def blocks(data, w):\n    """No function is smoothed with a centre."""\n    return {}'
        lowering = self.exact
        found = [(s, *lowering.block(s)) for s in self.step_centres()]
        self.cells = {i.attrs["key"] for _, ids, _, _ in found for i in ids if i.op == "take"}
        printer = Printer(graph=lowering.graph, layout=self.layout, prepared=shared.prepared, double=True)
        printer.names = {i: n for i, n in shared.names.items() if n.startswith("data.")}
        printer.counters = dict(shared.counters)
        printer.print([v for _, _, v, _ in found if v.op not in ("const", "param")])
        lines = list(printer.lines)
        printer.lines = []
        entries = []
        for s, ids, value, over in found:
            axes = merge_axes([*ids, value])
            index = ", ".join(printer.ref(i, axes, 0) for i in ids)
            sizes = tuple(a.size for a in axes)
            t = printer.ref(value, axes, len(value.event))
            t = t if value.axes == axes else f"{t}.expand({sizes + value.event})"
            slope = f"slope_{s.name}"
            dims = tuple(axes.index(a) for a in over) or tuple(range(-len(value.event), 0) if s.function.rank else ())
            inner = slope_text(s.function, s.bound, "t", lam_text(s.function, f"h.lam_{s.name}"), "y", dims)
            bounded = number(max(map(abs, s.units))) if s.penalty else "0"
            lines.append(f"def {slope}(t, y, h):  # {shorten(self.problem.text(s.original))}")
            lines.append(f"    return {inner}")
            key = f"({index},)" if ids else "()"
            entries.append(f"{s.name!r}: ({key}, {t}, {slope}, {bounded})")
        lines.append(f"return {{{', '.join(entries)}}}")
        about = "Per smoothed function: cells, exact arguments, slope, and its largest slope if it is a penalty."
        head = f'def blocks(data, w):\n    """{about}"""\n'
        return head + "\n".join("    " + x for x in lines)
