"""The section with the stochastic gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fccomodel.core import ir
from fccomodel.core.quoting import comment, docstring, shorten
from fccomodel.library.graph import Val, merge_axes
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.backward import Pull, backward, previous
from fccomodel.solver.emit.printer import Printer
from fccomodel.solver.emit.texts import number
from fccomodel.solver.emit.update import Update
from fccomodel.solver.lower import Lowering


class Stochastic(Update):
    """``gradient`` and ``prepare``."""

    def gradient_section(self) -> tuple[str, str]:
        lowering = self.step
        graph = lowering.graph
        pulls = backward(graph, {self.root: graph.const(1.0)})
        comments, counters = self.comments(lowering), self.taken()
        printer = Printer(graph=graph, layout=self.layout, comments=comments, counters=counters, dual=lowering.dual)
        for val in lowering.draws:
            printer.counters[val.attrs["axis"].name] = 1
            if val.op == "draw":
                printer.names[val.id] = val.attrs["axis"].name
        tracks = [v for v in graph.vals if v.op == "track"]
        before = {v.id: previous(graph, v.args[0]) for v in tracks} if self.plan.remembers else {}
        self.print_with_tracks(printer, pulls, before)
        used = [(pull.variable, printer.pull(pull)) for pull in pulls if pull.kind != "net"]
        used += printer.net_pulls([pull for pull in pulls if pull.kind == "net"])
        lines = printer.lines
        lines += [self.moved(printer, slope) for slope in self.slopes(pulls) if lowering.dual]
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
        prepared = "\n".join("    " + line for line in printer.prepared)
        return text, "def prepare(data):\n" + f'    """What depends on the data alone, computed once."""\n{prepared}' + (
            "\n" if prepared else ""
        ) + "    return data"

    def print_with_tracks(self, printer: Printer, pulls: list, before: Mapping[int, Val]) -> None:
        def op_track(val: Val) -> str:
            g_value, *positions = val.args
            index = ", ".join(printer.ref(p, val.axes, 0) for p in positions)
            key = f"({index},)" if positions else "()"
            name = val.attrs["name"]
            g_text = self.spread_to(printer, g_value, val)
            if not name:
                return f"extrapolate({g_text}, {self.spread_to(printer, before[val.id], val)}, h)" if before else g_text
            asked = bool(estimator and estimator.needs_previous)
            extra = f", {self.spread_to(printer, before[val.id], val) if before else g_text}" if asked else ""
            share = f", {number(self.share(positions))}" if getattr(estimator, "needs_share", False) else ""
            track = "track_log" if val.attrs.get("log") else "track"
            return f"{track}(u.{name}, {key}, {g_text}{extra}, h{share})"

        estimator = self.plan.algorithm_record.estimator
        printer.op_track = op_track  # type: ignore[method-assign]
        reach = printer.reach
        together = printer.group_nets(self.step.graph, pulls)

        def with_previous(roots: Any) -> list[Val]:
            found = {v.id: v for v in reach(roots)}
            while True:
                extra = [before[i] for i in list(found) if i in before and before[i].id not in found]
                if not extra:
                    break
                found |= {v.id: v for v in reach(extra)}
            order: dict[int, Val] = {}

            def visit(val: Val) -> None:
                stack = [(val, False)]
                while stack:
                    v, ready = stack.pop()
                    if ready:
                        order.setdefault(v.id, v)
                    elif v.id not in order:
                        stack.append((v, True))
                        extra: tuple[Val, ...] = (before[v.id],) if v.id in before else ()
                        extra += tuple(a for other in together.get(v.id, ()) if other.id in found for a in other.args)
                        stack.extend((a, False) for a in reversed(v.args + extra))

            for k in sorted(found):
                visit(found[k])
            return list(order.values())

        printer.reach = with_previous  # type: ignore[method-assign]
        roots = [p.adjoint for p in pulls] + [
            a for p in pulls if p.kind in ("score", "net") for a in ([p.source] if p.kind == "net" else [p.source.args[0]])
        ]
        roots += [a for p in pulls if p.kind == "scatter" for a in p.source.args[1:]]
        roots += self.slopes(pulls) if self.step.dual else []
        printer.print([r for r in roots if r.op not in ("const", "param")])

    def slopes(self, pulls: list[Pull]) -> list[Val]:
        """The slopes that gradients go through, of outer functions with a centre."""
        seen: dict[int, Val] = {}
        stack = [pull.adjoint for pull in pulls]
        while stack:
            val = stack.pop()
            if val.id not in seen:
                seen[val.id] = val
                stack.extend(val.args)
        found = (v for v in seen.values() if v.op == "envelope_slope" and len(v.args) > 1)
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
        sampled = {v.attrs["axis"]: v.attrs["n"] / v.attrs["axis"].size for v in self.step.draws if v.op == "draw"}
        return math.prod(sampled.get(axis, 1.0) for axis in merge_axes(positions))

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
            for i, node in lowering.spans.items()
            if node.span.end > node.span.start and isinstance(node, ir.Reduce | ir.Apply | ir.NetCall | Smoothed)
        }
