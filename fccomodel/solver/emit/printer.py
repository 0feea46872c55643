"""A graph of values as readable torch statements, in order."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fccomodel.library.graph import Val
from fccomodel.solver.emit.gradients import Gradients
from fccomodel.solver.emit.texts import bare

#: operations that print inside the expression that uses them, when only one does
INLINE = {"ew", "mean_axes", "sum_axes", "sum_event", "array", "score", "number", "var"}
#: operations inside one another on one line
DEEPEST = 16


class Printer(Gradients):
    """Prints the statements for some roots and all they need."""

    # -------------------------------------------------------------------------------------------------------- printing
    def print(self, roots: Iterable[Val]) -> None:
        """Statements for the roots and all they need."""
        roots = list(roots)
        needed = self.reach(roots)
        self.needed = {v.id for v in needed}
        for val in needed:
            for arg in val.args:
                self.uses[arg.id] = self.uses.get(arg.id, 0) + (2 if self.stretches(val, arg) else 1)
        for root in roots:
            self.uses[root.id] = self.uses.get(root.id, 0) + 2
        inside = {v.id for v in needed if any(a.kind == "chunk" for a in v.axes) and v.op != "chunked"}
        sliced = [v for v in needed if v.id in inside]
        for val in needed:
            if val.id not in inside:
                self.statement(val, sliced)

    def reach(self, roots: Iterable[Val]) -> list[Val]:
        seen: dict[int, Val] = {}
        stack = list(roots)
        while stack:
            val = stack.pop()
            if val.id not in seen:
                seen[val.id] = val
                stack.extend(val.args)
        return [seen[k] for k in sorted(seen)]

    def stretches(self, val: Val, arg: Val) -> bool:
        """``arg`` must be given new dims where ``val`` uses it, so it needs a name."""
        if val.op not in ("ew", "mul"):
            return False
        return bool(arg.axes) and self.view(arg, val.axes, len(val.event)) != ""

    def statement(self, val: Val, inside: list[Val]) -> None:
        if val.id in self.names or val.op in ("const", "param", "hyper"):
            return
        if val.static:
            return
        if val.op == "chunked":
            self.chunked(val, inside)
            return
        if val.op == "net":
            self.nets(val, self.needed)
            return
        if val.op in INLINE and self.uses.get(val.id, 0) == 1:
            depth = 1 + max((self.depths.get(a.id, 0) for a in val.args), default=0)
            if depth <= DEEPEST:
                self.depths[val.id] = depth
                return
        text = bare(self.text(val))
        if text.isidentifier():
            self.names[val.id] = text
            return
        name = self.name(val)
        comment = self.comments.get(val.id)
        self.put(f"{name} = {text}", comment)
        self.names[val.id] = name

    def static(self, val: Val) -> None:
        """A value of the data alone: computed once, kept as an attribute of ``data``."""
        if val.id in self.names:
            return
        for arg in val.args:
            if arg.op not in ("const", "param"):
                self.static(arg)
        if val.op == "arange":
            name = f"data.{self.fresh('all_' + val.attrs['axis'].name)}"
            self.prepared.append(f"{name} = torch.arange({val.attrs['axis'].size}, device=data.device)")
        elif val.op == "array_data":
            name = f"data.{val.attrs['key']}"
        elif val.op == "take" and val.args[0].op == "arange":
            name = f"data.{val.attrs['key']}"
        else:
            text = bare(self.text(val))
            name = next((left for left, right in (x.split(" = ", 1) for x in self.prepared) if right == text), "")
            if not name:
                name = f"data.{self.fresh(self.stem(val))}"
                self.prepared.append(f"{name} = {text}")
        self.names[val.id] = name

    def chunked(self, val: Val, inside: list[Val]) -> None:
        """A loop over slices of one axis, as a function of the slice."""
        axis = val.attrs["axis"]
        self.counters.setdefault(axis.name, 1)
        body = val.args[0]
        needed = {v.id for v in self.reach([body])}
        here = [v for v in inside if v.id in needed]
        saved, self.lines = self.lines, []
        for v in here:
            if v.op == "chunk":
                self.names[v.id] = axis.name
            else:
                self.statement(v, [])
        result = self.ref(body)
        inner, self.lines = self.lines, saved
        function = self.fresh(f"over_{axis.name}")
        name = self.name(val)
        self.lines += [f"def {function}({axis.name}):", *("    " + line for line in inner), f"    return {result}"]
        width = max((math.prod(a.size for a in v.axes if a.kind != "chunk") for v in here), default=1)
        step = max(1, (1 << 20) // max(width, 1))
        dim = body.axes.index(axis)
        key = next((v.attrs["key"] for v in here if v.op == "chunk" and v.attrs["axis"] is axis), None)
        length = axis.size if key is None else f"len(data.{key})"
        call = f"torch.utils.checkpoint.checkpoint({function}, part, use_reentrant=False)"
        call = call if self.recomputed else f"{function}(part)"
        pieces = f"{call} for part in torch.arange({length}, device=data.device).split({step})"
        self.lines.append(f"{name} = torch.cat([{pieces}], {dim})")
        self.names[val.id] = name
