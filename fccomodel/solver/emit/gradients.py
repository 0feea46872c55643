"""Contributions to the variables' gradients as text, and nets whose calls go through them together."""

from __future__ import annotations

from fccomodel.library.graph import Graph, Val
from fccomodel.solver.backward import Pull
from fccomodel.solver.emit.operations import Operations


class Gradients(Operations):
    """From the adjoints of scores and net outputs to the flat gradient."""

    def group_nets(self, graph: Graph, pulls: list[Pull]) -> dict[int, list[Val]]:
        """Calls of one net at one parameter vector go through it as one batch, those with a gradient apart: by each call's id,
        all of them."""
        self.taped = {pull.source.id for pull in pulls if pull.kind == "net"}
        groups: dict[tuple[int, str, bool], list[Val]] = {}
        for val in graph.vals:
            if val.op == "net":
                groups.setdefault((val.args[0].id, val.attrs["net"], val.id in self.taped), []).append(val)
        self.together = {val.id: group for group in groups.values() for val in group}
        return self.together

    def nets(self, val: Val, needed: set[int]) -> None:
        """One statement for all calls that are made together."""
        group = [v for v in self.together.get(val.id, [val]) if v.id in needed]
        for v in group:
            self.names[v.id] = self.name(v)
        call = ".taped" if val.id in self.taped else ""
        inputs = ", ".join(self.ref(v.args[1]) for v in group)
        left = ", ".join(self.names[v.id] for v in group)
        comments = "; ".join(dict.fromkeys(self.comments[v.id] for v in group if v.id in self.comments))
        line = f"{left} = net_{val.attrs['net']}{call}({self.ref(val.args[0])}, {inputs})"
        self.put(line, comments if len(comments) < 110 else "")

    def net_pulls(self, pulls: list[Pull]) -> list[tuple[str, str]]:
        """One vector-Jacobian product per net, for all its calls."""
        by_variable: dict[str, list[Pull]] = {}
        for pull in pulls:
            by_variable.setdefault(pull.variable, []).append(pull)
        result = []
        for variable, group in by_variable.items():
            order = [v for v in self.together[group[0].source.id] if v.id in self.names]
            found = {p.source.id: p for p in group}
            texts = []
            for v in order:
                if v.id not in found:
                    texts.append(f"torch.zeros_like({self.names[v.id]})")
                elif v.event:
                    texts.append(f"{self.ref(found[v.id].adjoint, v.axes, len(v.event))}.expand_as({self.names[v.id]})")
                else:
                    texts.append(self.expanded(found[v.id].adjoint, v.axes))
            result.append((variable, f"net_{group[0].source.attrs['net']}.vjp({', '.join(texts)})"))
        return result

    def pull(self, pull: Pull) -> str:
        """A contribution to the gradient of one variable, flat."""
        start, stop, shape = self.layout[pull.variable]
        size = stop - start
        match pull.kind:
            case "score":
                return self.pull_rows(pull.source.args[0], pull.adjoint)
            case "table_score":
                return f"{self.ref(pull.adjoint)} @ data.{pull.source.attrs['key']}"
            case "add":
                if pull.adjoint.op in ("const", "param"):
                    return f"w.new_full(({size},), {self.ref(pull.adjoint)})"
                text = self.ref(pull.adjoint)
                if pull.adjoint.event != shape:
                    return f"{text}.expand({size})"
                return text if len(shape) == 1 else f"{text}.reshape({size})"
            case "scatter":
                moving, fixed = list(pull.source.args[1:]), pull.source.attrs["fixed"]
                axes = pull.source.axes
                keys = [str(k) if k is not None else self.ref(moving.pop(0), axes, 0) for k in fixed]
                adjoint = self.expanded(pull.adjoint, axes) if axes and not pull.source.event else self.ref(pull.adjoint)
                if pull.adjoint.op in ("const", "param") and not axes:
                    adjoint = f"w.new_full((), {self.ref(pull.adjoint)})"
                return f"spread({shape}, ({', '.join(keys)},), {adjoint})" + ("" if len(shape) == 1 else f".reshape({size})")
        raise AssertionError(pull.kind)
