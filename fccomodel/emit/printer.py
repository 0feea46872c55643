"""A graph of values as readable torch statements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fccomodel.derivative import Pull
from fccomodel.graph import RESERVED, Axis, Graph, Val, atom_of, site
from fccomodel.piecewise import PiecewiseLQ

#: operations that print inside the expression that uses them, when only one does
INLINE = {"ew", "mean_axes", "sum_axes", "sum_event", "array", "score", "number", "var"}
LONGEST = 64
#: operations inside one another on one line
DEEPEST = 16


@dataclass(eq=False)
class Printer:
    """Prints values in order; what depends on the data alone goes to ``prepared``, once.

    layout    variables' slices of the flat vector w: name -> (start, stop, shape)
    comments  the model's own text beside the line that computes it, by value id
    """

    graph: Graph
    layout: Mapping[str, tuple[int, int, tuple[int, ...]]]
    comments: Mapping[int, str] = field(default_factory=dict)
    params: dict[str, float] = field(default_factory=dict)
    prepared: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESERVED, 1))
    uses: dict[int, int] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)
    together: dict[int, list[Val]] = field(default_factory=dict)
    needed: set[int] = field(default_factory=set)
    double: bool = False

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
        if val.id in self.names or val.op in ("const", "param"):
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

    def put(self, line: str, comment: str | None = None) -> None:
        """A statement, the model's own line beside it, or above it where both are long."""
        if comment and len(line) + len(comment) > 106:
            self.lines.append(f"# {comment}")
            comment = None
        self.lines.append(f"{line}  # {comment}" if comment else line)

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
            name = f"data.{self.fresh(self.stem(val))}"
            self.prepared.append(f"{name} = {bare(self.text(val))}")
        self.names[val.id] = name

    def chunked(self, val: Val, inside: list[Val]) -> None:
        """A loop over slices of one axis, as a function of the slice."""
        axis = val.attrs["axis"]
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
        pieces = f"{function}(part) for part in torch.arange({length}, device=data.device).split({step})"
        self.lines.append(f"{name} = torch.cat([{pieces}], {dim})")
        self.names[val.id] = name

    # ------------------------------------------------------------------------------------------------------------ names
    def fresh(self, stem: str) -> str:
        """A name not used before: the stem, or its number raised."""
        while True:
            self.counters[stem] = self.counters.get(stem, 0) + 1
            count = self.counters[stem]
            if stem[-1] == "1" and not stem[-2:-1].isdigit():
                return f"{stem[:-1]}{count}"
            if count == 1:
                return stem
            if (name := f"{stem}_{count}") not in self.counters:
                self.counters[name] = 1
                return name

    def name(self, val: Val) -> str:
        return self.fresh(self.stem(val))

    def stem(self, val: Val) -> str:
        axes = "_".join(a.name for a in val.axes)
        match val.op:
            case "take" | "take_val" if val.event or val.op == "take_val":
                stem = val.attrs.get("key", "s").split("_", 1)[-1] if val.op == "take" else "s"
                return f"{stem}_{axes}" if axes else stem
            case "take":
                return f"{val.attrs['key'].split('_', 1)[-1]}_{axes}"
            case "score":
                return f"s_{axes}"
            case "net":
                return f"{val.attrs['net']}_{axes}"
            case "table_score" | "table_net":
                return "scores"
            case "track":
                return val.attrs["name"]
            case "draw" | "draw_range":
                return f"{val.attrs['axis'].name}"
            case "var":
                return val.attrs["name"] + ("_prev" if val.attrs.get("previous") else "")
            case "centre":
                return f"c_{val.attrs['name']}"
            case "envelope_slope" | "simplex_weights":
                return "y1"
            case "mean_axes" | "sum_axes" | "segment":
                return "g1"
        return "t1"

    # ------------------------------------------------------------------------------------------------------- references
    def view(self, val: Val, axes: tuple[Axis, ...], event: int) -> str:
        """The index that lines a value up with other axes: ``[:, None]``, or nothing."""
        parts = [":" if a in val.axes else "None" for a in axes]
        parts += ["None"] * (event - len(val.event)) + [":"] * len(val.event)
        while parts and parts[0] == "None":
            parts.pop(0)
        return f"[{', '.join(parts)}]" if "None" in parts else ""

    def ref(self, val: Val, axes: tuple[Axis, ...] | None = None, event: int | None = None) -> str:
        """A value's name, number or (once only) its expression, lined up with the given axes."""
        if val.op == "const":
            return number(val.attrs["value"])
        if val.op == "param":
            self.params[val.attrs["name"]] = val.attrs["value"]
            return f"data.{val.attrs['name']}"
        if val.id not in self.names and val.static:
            self.static(val)
        if val.id not in self.names:
            text = self.text(val)
            if len(text) <= LONGEST:
                lined = (
                    self.view(val, val.axes if axes is None else axes, len(val.event) if event is None else event)
                    if val.axes
                    else ""
                )
                return (f"({text})" if not simple(text) else text) + lined
            self.names[val.id] = self.name(val)
            self.lines.append(f"{self.names[val.id]} = {bare(text)}")
        name = self.names[val.id]
        if not val.axes:
            return name
        return name + (self.view(val, val.axes if axes is None else axes, len(val.event) if event is None else event))

    def dims(self, val: Val, over: Iterable[Axis]) -> str:
        places = sorted(val.axes.index(a) for a in over)
        return str(places[0]) if len(places) == 1 else str(tuple(places))

    # ------------------------------------------------------------------------------------------------------- operations
    def text(self, val: Val) -> str:
        """The torch expression of one operation."""
        return getattr(self, f"op_{val.op}")(val)

    def op_ew(self, val: Val) -> str:
        texts = tuple(self.ref(a, val.axes, len(val.event)) for a in val.args)
        return atom_of(val.attrs["atom"]).lower(texts, site(val))

    def op_array(self, val: Val) -> str:
        deepest = max((len(a.event) for a in val.args), default=0)
        texts = tuple(self.ref(a, val.axes, len(a.event) if a.event else deepest) for a in val.args)
        return atom_of(val.attrs["atom"]).lower(texts, site(val))

    def op_number(self, val: Val) -> str:
        return f"{self.ref(val.args[0])}.to(data.dtype)"

    def op_mean_axes(self, val: Val) -> str:
        arg = val.args[0]
        whole = len(val.attrs["over"]) == len(arg.axes) and not arg.event
        return f"{self.ref(arg)}.mean({'' if whole else self.dims(arg, val.attrs['over'])})"

    def op_sum_axes(self, val: Val) -> str:
        arg = val.args[0]
        whole = len(val.attrs["over"]) == len(arg.axes) and not arg.event
        return f"{self.ref(arg)}.sum({'' if whole else self.dims(arg, val.attrs['over'])})"

    def op_sum_event(self, val: Val) -> str:
        arg = val.args[0]
        return f"{self.ref(arg)}.sum({'' if not val.axes else tuple(range(-len(arg.event), 0))})"

    def op_arange(self, val: Val) -> str:
        return f"torch.arange({val.attrs['axis'].size}, device=data.device)"

    def op_take(self, val: Val) -> str:
        index = self.ref(val.args[0])
        return f"data.{val.attrs['key']}[{index}]"

    def op_cell(self, val: Val) -> str:
        if not val.args:
            return f"data.{val.attrs['key']}[()]"
        return f"data.{val.attrs['key']}[{', '.join(self.ref(a, val.axes, 0) for a in val.args)}]"

    def op_array_data(self, val: Val) -> str:
        return f"data.{val.attrs['key']}"

    def op_draw(self, val: Val) -> str:
        raise AssertionError("draws are arguments of the step")

    def op_draw_range(self, val: Val) -> str:
        start, size, *skip = val.args
        axis = val.attrs["axis"]
        others = tuple(a for a in val.axes if a is not axis)
        spread = (*others, axis)
        uniform = f"r_{axis.name}"
        if not skip:
            return f"in_range({self.ref(start, spread, 0)}, {self.ref(size, spread, 0)}, {uniform})"
        return f"in_range({self.ref(start, spread, 0)}, {self.ref(size, spread, 0)}, {uniform}, {self.ref(skip[0], spread, 0)})"

    def op_fixed_noise(self, val: Val) -> str:
        sizes = tuple(a.size for a in val.axes) + val.event
        return f"fixed_noise({val.attrs['family']!r}, {sizes}, {val.attrs['seed']}, data)"

    def op_noise(self, val: Val) -> str:
        axes, event = val.axes, len(val.event)
        args = [self.ref(a, axes, event) for a in val.args]
        base = args.pop() if val.attrs["fixed_seed"] else f"r_{val.attrs['name']}"
        match val.attrs["family"]:
            case "normal" | "laplace":
                return f"{args[0]} + {args[1]} * {base}"
            case "uniform":
                return f"{args[0]} + ({args[1]} - {args[0]}) * {base}"
            case "bernoulli":
                return f"({base} < {args[0]}).to({base}.dtype)"
        return f"{base} / {args[0]}"

    def op_var(self, val: Val) -> str:
        start, stop, shape = self.layout[val.attrs["name"]]
        vector = "w_prev" if val.attrs.get("previous") else "w"
        whole = len(self.layout) == 1
        if shape == ():
            return f"{vector}[{start}]"
        text = vector if whole else f"{vector}[{start}:{stop}]"
        return text if len(shape) == 1 else f"{text}.view({', '.join(map(str, shape))})"

    def op_score(self, val: Val) -> str:
        rows, weights = val.args
        return f"{self.ref(rows)} @ {self.ref(weights)}"

    def op_score_t(self, val: Val) -> str:
        rows, adjoint = val.args
        return self.pull_rows(rows, adjoint)

    def op_table_score(self, val: Val) -> str:
        return f"data.{val.attrs['key']} @ {self.ref(val.args[0])}"

    def op_table_score_t(self, val: Val) -> str:
        return f"{self.ref(val.args[0])} @ data.{val.attrs['key']}"

    def op_scatter_val(self, val: Val) -> str:
        adjoint, index = val.args
        axes, n = val.attrs["onto"], val.event[0]
        values = self.expanded(adjoint, axes)
        if index.op == "arange" and index.axes[0].size == n:
            return values
        flat = "" if len(axes) == 1 else ".reshape(-1)"
        return f"w.new_zeros({n}).index_add_(0, {self.ref(index)}{flat}, {values}{flat})"

    def op_table_net(self, val: Val) -> str:
        return f"net_in_parts(net_{val.attrs['net']}, {self.ref(val.args[0])}, data.{val.attrs['key']})"

    def op_take_val(self, val: Val) -> str:
        whole, index = val.args
        if index.op == "arange" and index.axes[0].size == whole.event[0]:
            return self.ref(whole)
        return f"{self.ref(whole)}[{self.ref(index)}]"

    def op_net(self, val: Val) -> str:
        call = ".taped" if val.varying else ""
        return f"net_{val.attrs['net']}{call}({self.ref(val.args[0])}, {self.ref(val.args[1])})"

    def group_nets(self, graph: Graph) -> dict[int, list[Val]]:
        """Calls of one net at one parameter vector go through it as one batch: by each call's id, all of them."""
        groups: dict[tuple[int, str, bool], list[Val]] = {}
        for val in graph.vals:
            if val.op == "net":
                groups.setdefault((val.args[0].id, val.attrs["net"], val.varying), []).append(val)
        self.together = {val.id: group for group in groups.values() for val in group}
        return self.together

    def nets(self, val: Val, needed: set[int]) -> None:
        """One statement for all calls that are made together."""
        group = [v for v in self.together.get(val.id, [val]) if v.id in needed]
        for v in group:
            self.names[v.id] = self.name(v)
        call = ".taped" if val.varying else ""
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

    def op_entry(self, val: Val) -> str:
        base, *moving = val.args
        fixed, queue = val.attrs["fixed"], list(moving)
        if base.axes:
            last = len(base.event) - len(fixed)
            keys = [str(k) if k is not None else self.ref(queue.pop(0), val.axes, 0) for k in fixed]
            if not moving:
                return f"{self.ref(base)}[..., {', '.join(keys + [':'] * last)}]"
            grid = [self.grid(a, val.axes) for a in base.axes]
            return f"{self.ref(base)}[{', '.join(grid + keys)}]"
        keys = [str(k) if k is not None else self.ref(queue.pop(0), val.axes, 0) for k in fixed]
        return f"{self.ref(base)}[{', '.join(keys)}]"

    def grid(self, axis: Axis, axes: tuple[Axis, ...]) -> str:
        """Positions along an axis, lined up with others."""
        after = len(axes) - axes.index(axis) - 1
        return f"torch.arange({axis.size}, device=data.device)" + (f"[:{', None' * after}]" if after else "")

    def op_entry_t(self, val: Val) -> str:
        adjoint, *moving = val.args
        fixed, queue = val.attrs["fixed"], list(moving)
        keys = [str(k) if k is not None else self.ref(queue.pop(0), val.axes, 0) for k in fixed]
        sizes = [a.size for a in val.axes]
        grid = [self.grid(a, val.axes) for a in val.axes]
        shape = tuple(sizes) + val.event
        return f"spread({shape}, ({', '.join(grid + keys)},), {self.ref(adjoint, val.axes, len(adjoint.event))})"

    def op_stack(self, val: Val) -> str:
        parts = [f"w.new_full((), {self.ref(a)})" if a.op in ("const", "param") else self.ref(a, val.axes, 0) for a in val.args]
        return f"torch.stack(torch.broadcast_tensors({', '.join(parts)}), -1)"

    def op_pick(self, val: Val) -> str:
        base, *moving = val.args
        keys, rest = self.pick_keys(base, list(moving), val)
        del rest
        return f"{self.ref(base)}[{', '.join(keys)}]"

    def pick_keys(self, base: Val, moving: list[Val], val: Val) -> tuple[list[str], None]:
        """Index texts for every axis of ``base``: members of the family, and everything along other axes."""
        over, fixed = val.attrs["over"], val.attrs["fixed"]
        target = val.axes if val.op == "pick" else val.attrs["extra"]
        queue = list(moving)
        chosen = {
            axis: (str(k) if k is not None else self.ref(queue.pop(0), target, 0)) for axis, k in zip(over, fixed, strict=True)
        }
        others = [a for a in base.axes if a not in over]
        if not others:
            return [chosen[a] for a in base.axes], None
        return [chosen[a] if a in chosen else self.grid(a, target) for a in base.axes], None

    def op_unpick(self, val: Val) -> str:
        adjoint, *moving = val.args
        stand_in = Val(id=-1, op="const", axes=val.axes, event=val.event)
        keys, _ = self.pick_keys(stand_in, list(moving), val)
        shape = tuple(a.size for a in val.axes) + val.event
        return f"spread({shape}, ({', '.join(keys)},), {self.ref(adjoint, val.attrs['extra'], len(val.event))})"

    def op_segment(self, val: Val) -> str:
        arg = val.args[0]
        parents, axis = val.attrs["parents"], val.attrs["axis"]
        dim = arg.axes.index(axis) if axis in arg.axes else None
        if dim is None:
            return f"{self.ref(arg)}" if val.attrs["how"] == "mean" else f"{self.ref(arg)} * data.{val.attrs['sizes']}"
        shape = tuple(p.size for p in parents)
        cells = f"data.{val.attrs['cells']}, data.{val.attrs['sizes']}"
        text = f"by_segment({self.ref(arg)}, {dim}, {cells}, {shape}, {val.attrs['how']!r})"
        order = [a for a in arg.axes[:dim]] + list(parents) + [a for a in arg.axes[dim + 1 :]]
        if tuple(order) != val.axes:
            places = [order.index(a) for a in val.axes] + list(range(len(order), len(order) + len(val.event)))
            text += f".permute({', '.join(map(str, places))})"
        return text

    def op_unsegment(self, val: Val) -> str:
        adjoint = val.args[0]
        onto, parents, axis = val.attrs["onto"], val.attrs["parents"], val.attrs["axis"]
        dim = val.axes.index(axis)
        others = [a for a in val.axes if a is not axis]
        order = others[:dim] + list(parents) + others[dim:]
        event = len(val.event)
        sizes = tuple(a.size for a in onto) + val.event
        text = self.ref(adjoint, onto, event)
        if adjoint.axes != onto or adjoint.op in ("const", "param"):
            text = f"w.new_full({sizes}, {text})" if adjoint.op in ("const", "param") else f"{text}.expand({sizes})"
        if tuple(order) != onto:
            places = [onto.index(a) for a in order] + list(range(len(order), len(order) + event))
            text += f".permute({', '.join(map(str, places))})"
        cells = f"data.{val.attrs['cells']}, data.{val.attrs['sizes']}"
        return f"unsegment({text}, {dim}, {len(parents)}, {cells}, {val.attrs['how']!r})"

    def op_reduce(self, val: Val) -> str:
        body, *options = val.args
        over = [a for a in val.attrs["over"] if a in body.axes]
        mask = f", mask={self.ref(options.pop(), merged(val, over), len(body.event))}" if val.attrs["masked"] else ""
        extra = "".join(f", {self.ref(o)}" for o in options)
        whole = self.ref(body, merged(val, over), len(body.event))
        places = [merged(val, over).index(a) for a in over]
        dims = str(places[0]) if len(places) == 1 else str(tuple(places))
        return f"reduce_{val.attrs['kind']}({whole}, {dims}{extra}{mask})"

    def op_track(self, val: Val) -> str:
        raise AssertionError("estimators print themselves")

    def op_centre(self, val: Val) -> str:
        index = ", ".join(self.ref(p, val.axes, 0) for p in val.args)
        return f"c.{val.attrs['name']}[{index}]" if index else f"c.{val.attrs['name']}"

    def shifted(self, val: Val) -> tuple[str, str]:
        """The smoothing parameter's text, and that of the argument moved by the centre: t + lam c."""
        lam = f"h.lam_{val.attrs['name']}"
        event = len(val.args[0].event)
        t = self.ref(val.args[0], val.axes, event)
        if len(val.args) > 1:
            t = f"({t} + {lam} * {self.ref(val.args[1], val.axes, event)})"
        return lam, t

    def op_envelope_slope(self, val: Val) -> str:
        lam, t = self.shifted(val)
        return slope_text(val.attrs["graph"], val.attrs["scale"], lam, t)

    def op_envelope(self, val: Val) -> str:
        """max over y of y t - f*(y) - lam/2 (y - c)^2: the envelope at t + lam c, less lam/2 c^2."""
        lam, t = self.shifted(val)
        scale = val.attrs["scale"]
        text = val.attrs["graph"].envelope_text(lam if scale is None else f"(h.{scale} * {lam})", t)
        text = f"({text})" if scale is None else f"h.{scale} * ({text})"
        if len(val.args) > 1:
            text += f" - {lam} / 2 * {self.ref(val.args[1], val.axes, len(val.event))}.square()"
        return f"({text})"

    def op_norm_slope(self, val: Val) -> str:
        body, *centre = val.args
        c = f" + {self.ref(centre[0], val.axes, len(body.event))}" if centre else ""
        point = f"{self.ref(body, val.axes, len(body.event))} / h.lam_{val.attrs['name']}{c}"
        return ball_text(val.attrs["ball"], point, len(body.event))

    def op_norm_envelope(self, val: Val) -> str:
        body, *centre = val.args
        t, c = self.ref(body), self.ref(centre[0], body.axes, len(body.event)) if centre else "0"
        y = ball_text(val.attrs["ball"], f"{t} / h.lam_{val.attrs['name']} + {c}", len(body.event))
        dims = tuple(range(-len(body.event), 0))
        return f"smoothed_value({t}, {y}, {c}, h.lam_{val.attrs['name']}, {dims})"

    def op_simplex_weights(self, val: Val) -> str:
        body, *centre = val.args
        t = f"{self.ref(body)} / h.lam_{val.attrs['name']}"
        if centre:
            t += f" + {self.ref(centre[0], body.axes, len(body.event))}"
        return f"onto_simplex({t}, {self.dims(body, val.attrs['over']) if val.attrs['over'] else '-1'})"

    def op_smooth_max(self, val: Val) -> str:
        """max over y of the simplex of y.t - lam/2 |y - c|^2."""
        body, *centre = val.args
        c = self.ref(centre[0], body.axes, len(body.event)) if centre else "0"
        lam, dims = f"h.lam_{val.attrs['name']}", self.dims(body, val.attrs["over"]) if val.attrs["over"] else "-1"
        y = f"onto_simplex({self.ref(body)} / {lam} + {c}, {dims})"
        return f"smoothed_value({self.ref(body)}, {y}, {c}, {lam}, {dims})"

    def op_spread(self, val: Val) -> str:
        arg = val.args[0]
        sizes = tuple(a.size for a in val.axes) + val.event
        text = self.ref(arg, val.axes, len(val.event))
        if arg.op in ("const", "param"):
            return f"torch.full({sizes}, {text}, dtype=data.dtype, device=data.device)"
        return f"{text}.expand({sizes})"

    def op_fill(self, val: Val) -> str:
        arg, sizes = val.args[0], tuple(a.size for a in val.axes) + val.event
        if arg.op in ("const", "param"):
            return f"torch.full({sizes}, {self.ref(arg)}, dtype=data.dtype, device=data.device)"
        return f"{self.ref(arg, val.axes, 0)}[{', '.join(['...'] + ['None'] * len(val.event))}].expand({sizes})"

    def op_masked(self, val: Val) -> str:
        body, mask = val.args
        return (
            f"{self.ref(body, val.axes, len(val.event))}.masked_fill({self.ref(mask, val.axes, len(val.event))} == 0, -math.inf)"
        )

    def op_reduce_slope(self, val: Val) -> str:
        body, *options, whole = val.args
        masked = val.attrs["masked"]
        over = [a for a in val.attrs["over"] if a in body.axes]
        mask = f", mask={self.ref(options.pop(), body.axes, len(body.event))}" if masked else ""
        extra = "".join(f", {self.ref(o)}" for o in options)
        value = self.ref(whole, body.axes, len(body.event))
        return f"slope_{val.attrs['kind']}({self.ref(body)}, {value}, {self.dims(body, over)}{extra}{mask})"

    # -------------------------------------------------------------------------------------------------------- gradients
    def pull_rows(self, rows: Val, adjoint: Val) -> str:
        """``X[rows]ᵀ adjoint``."""
        if len(rows.axes) == 1:
            return f"{self.expanded(adjoint, rows.axes)} @ {self.ref(rows)}"
        return f"{self.expanded(adjoint, rows.axes)}.reshape(-1) @ {self.ref(rows)}.reshape(-1, {rows.event[-1]})"

    def expanded(self, val: Val, axes: tuple[Axis, ...]) -> str:
        sizes = tuple(a.size for a in axes)
        if val.op in ("const", "param"):
            return f"w.new_full({sizes}, {self.ref(val)})"
        if val.axes == axes:
            return self.ref(val)
        return f"{self.ref(val, axes, 0)}.expand({sizes})"

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


def merged(val: Val, over: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes of a reduction's elements, in layout order."""
    return tuple(sorted((*val.axes, *over), key=lambda a: a.order))


def ball_text(ball: str, point: str, dims: int) -> str:
    """The nearest point of a unit ball."""
    axes = tuple(range(-dims, 0))
    match ball:
        case "linf":
            return f"({point}).clamp(-1, 1)"
        case "l2":
            return f"onto_ball({point}, {axes})"
    return f"onto_cross_polytope({point})"


def slope_text(graph: PiecewiseLQ, scale: str | None, lam: str, t: str) -> str:
    """The slope at ``t`` of the Moreau envelope of ``scale * graph``: an element of the dual domain, the multiplier."""
    if scale is None:
        return graph.gradient_text(lam, t)
    return f"h.{scale} * ({graph.gradient_text(f'(h.{scale} * {lam})', t)})"


def number(value: float) -> str:
    """A number as Python text, integers without a decimal point."""
    if value != value or value in (float("inf"), float("-inf")):
        return f"float('{value}')"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value)}" if value >= 0 else f"({int(value)})"
    return repr(value) if value >= 0 else f"({value!r})"


def bare(text: str) -> str:
    """The text without parentheses around the whole of it."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for place, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if depth == 0 and place < len(text) - 1:
                return text
        text = text[1:-1]
    return text


def simple(text: str) -> bool:
    """A name, a call or an index that may stand anywhere without parentheses."""
    depth = 0
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and not (char.isalnum() or char in "._"):
            return False
    return True
