"""The section with the stochastic gradient."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.core.quoting import comment, docstring, shorten
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.backward import backward, previous
from fccomodel.solver.emit.nets import Calls
from fccomodel.solver.emit.printer import Printer, below
from fccomodel.solver.emit.update import Update
from fccomodel.solver.lower import Lowering
from fccomodel.solver.names import Names
from fccomodel.solver.operations import Pull, Val, union
from fccomodel.solver.operations._base import number
from fccomodel.solver.operations.draws import draw
from fccomodel.solver.operations.estimates import envelope_slope, track


class Stochastic(Update):
    """``gradient`` and ``prepare``."""

    def gradient_section(self) -> tuple[str, str]:
        lowering = self.step
        graph = lowering.state.graph
        pulls = backward(graph, {self.root: graph.const(1.0)})
        tracks = [v for v in graph.vals if v.op is track] if self.plan.remembers else []
        before = {v.id: previous(graph, v.args[0]) for v in tracks}
        printer = Printer(
            layout=self.layout, comments=self.comments(lowering), names=Names(self.taken()), calls=Calls.of(graph, pulls),
            before=before, dual=lowering.state.dual,
        )  # fmt: skip
        printer.estimator = lambda val: self.estimate(printer, val)
        self.name_draws(printer)
        met = [val for p in pulls for val in (p.adjoint, *p.source.op.pulled(p.source))]
        printer.print([*met, *(self.slopes(pulls) if lowering.state.dual else [])])
        used = printer.contributions(pulls)
        lines = printer.lines
        lines += [self.moved(printer, slope) for slope in self.slopes(pulls) if lowering.state.dual]
        lines += [self.seen(printer, slope) for slope in self.slopes(pulls) if slope.attrs["name"] in self.estimated()]
        lines += self.assemble(used)
        names = self.batch_names
        unpack = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = batch"] if names else []
        body = "\n".join("    " + line for line in [*unpack, *lines])
        name = docstring(shorten(self.problem.name, 40))
        text = (
            "# ---- f and g: the stochastic gradient, from the scores up\n"
            "def gradient(data, w, w_prev, u, c, batch, h):\n"
            f'    """G for {name}: estimates updated, then the chain rule through them."""\n{body}'
        )
        prepared = "\n".join("    " + line for line in printer.prepared.lines)
        return text, "def prepare(data):\n" + f'    """What depends on the data alone, computed once."""\n{prepared}' + (
            "\n" if prepared else ""
        ) + "    return data"

    def name_draws(self, printer: Printer) -> None:
        """The samples of a step are its arguments."""
        for val in self.step.state.draws:
            name = printer.names.claim(val.attrs["axis"].name)
            if val.op is draw:
                printer.texts[val.id] = name

    def estimate(self, printer: Printer, val: Val) -> str:
        """The call that moves an estimate."""
        estimator, before = self.plan.algorithm_record.estimator, printer.before.get(val.id)
        g_value, *positions = val.args
        g_text = self.spread_to(printer, g_value, val)
        if not val.attrs["name"]:
            return f"extrapolate({g_text}, {self.spread_to(printer, before, val)}, h)" if before else g_text
        index = ", ".join(printer.ref(p, val.axes, 0) for p in positions)
        key = f"({index},)" if positions else "()"
        asked = bool(estimator and estimator.needs_previous)
        extra = f", {self.spread_to(printer, before, val) if before else g_text}" if asked else ""
        share = f", {number(self.share(positions))}" if getattr(estimator, "needs_share", False) else ""
        way = "track_log" if val.attrs["log"] else "track"
        return f"{way}(u.{val.attrs['name']}, {key}, {g_text}{extra}, h{share})"

    def slopes(self, pulls: list[Pull]) -> list[Val]:
        """The slopes that gradients go through, of outer functions with a centre."""
        found = (v for v in below(pull.adjoint for pull in pulls).values() if v.op is envelope_slope and len(v.args) > 1)
        return list({v.attrs["name"]: v for v in sorted(found, key=lambda v: v.id)}.values())

    def moved(self, printer: Printer, slope: Val) -> str:
        """The statement that keeps y for the next step."""
        centre = slope.args[1]
        index = ", ".join(printer.ref(p, centre.axes, 0) for p in centre.args)
        return f"c.{centre.attrs['name']}[{index or '...'}] = {printer.ref(slope, centre.axes, len(slope.event))}"

    def seen(self, printer: Printer, slope: Val) -> str:
        """The statement that keeps a penalty's argument as the step estimates it."""
        argument, centre = slope.args
        index = ", ".join(printer.ref(p, centre.axes, 0) for p in centre.args)
        return f"u.{centre.attrs['name']}[{index or '...'}] = {printer.ref(argument, centre.axes, len(slope.event))}"

    def share(self, positions: list[Val]) -> float:
        """n / B1 of the blocks at some positions: elements of their sets for each that a step visits."""
        sampled = {v.attrs["axis"]: v.attrs["n"] / v.attrs["axis"].size for v in self.step.state.draws if v.op is draw}
        return math.prod(sampled.get(axis, 1.0) for axis in union(positions))

    @staticmethod
    def spread_to(printer: Printer, g_value: Val, val: Val) -> str:
        if g_value.axes == val.axes:
            return printer.ref(g_value)
        sizes = tuple(a.size for a in val.axes) + val.event
        return f"{printer.ref(g_value, val.axes, len(val.event))}.expand({sizes})"

    def assemble(self, pulls: list[tuple[str, str]]) -> list[str]:
        """The flat gradient from the contributions of each variable."""
        by_name: dict[str, list[str]] = {}
        for name, text in pulls:
            by_name.setdefault(name, []).append(text)
        parts = []
        for name, (start, stop, _) in self.layout.items():
            texts = by_name.get(name)
            parts.append(" + ".join(texts) if texts else f"w.new_zeros({stop - start})")
        if len(parts) == 1:
            return [f"return {parts[0]}"]
        lines = [f"G_{name} = {text}" for name, text in zip(self.layout, parts, strict=True)]
        return [*lines, f"return torch.cat([{', '.join('G_' + name for name in self.layout)}])"]

    def comments(self, lowering: Lowering) -> dict[int, str]:
        source = self.problem.source
        return {
            i: f"line {source.place(node.span)[0]}: {comment(self.problem.text(node), 60)}"
            for i, node in lowering.state.spans.items()
            if node.span.end > node.span.start and isinstance(node, ir.Reduce | ir.Apply | ir.NetCall | Smoothed)
        }
