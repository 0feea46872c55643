"""The torch expression of every operation of a graph."""

from __future__ import annotations

from fccomodel.library.graph import Axis, Val, atom_of, merge_axes, site
from fccomodel.library.proximal import Proximal
from fccomodel.solver.emit.references import References
from fccomodel.solver.emit.texts import bare, envelope_text, lam_text, merged, number, slope_text


class Operations(References):
    """One method per operation, ``op_NAME``."""

    # ------------------------------------------------------------------------------------------------------- operations
    def text(self, val: Val) -> str:
        """The torch expression of one operation."""
        return getattr(self, f"op_{val.op}")(val)

    def op_ew(self, val: Val) -> str:
        texts = tuple(self.ref(a, val.axes, len(val.event)) for a in val.args)
        return atom_of(val.attrs["atom"]).lower(texts, site(val))

    def op_array(self, val: Val) -> str:
        atom = atom_of(val.attrs["atom"])
        if atom.variadic and val.axes:  # arrays side by side: each on all axes
            return atom.lower(tuple(f"({self.expanded(a, val.axes, a.event)})" for a in val.args), site(val))
        deepest = max((len(a.event) for a in val.args), default=0)
        texts = tuple(self.ref(a, val.axes, len(a.event) if a.event else deepest) for a in val.args)
        return atom.lower(texts, site(val))

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

    def op_contract(self, val: Val) -> str:
        """Sums of outer products, without the products."""
        letters = {a: chr(ord("a") + k) for k, a in enumerate(merge_axes(val.args))}
        left, right = ("".join(letters[a] for a in arg.axes) for arg in val.args)
        out = "".join(letters[a] for a in val.axes)
        return f'torch.einsum("{left}y,{right}z->{out}yz", {self.ref(val.args[0])}, {self.ref(val.args[1])})'

    def op_log_mean_axes(self, val: Val) -> str:
        return f"log_mean_exp({self.ref(val.args[0])}, {self.dims(val.args[0], val.attrs['over'])})"

    def op_piecewise_mean(self, val: Val) -> str:
        return f"mean_of_pieces({', '.join(map(self.ref, val.args))}, {pieces_text(val)})"

    def op_piecewise_runs(self, val: Val) -> str:
        a, b, start, size = val.args
        texts = self.ref(a, val.axes), self.ref(b), self.ref(start, val.axes), self.ref(size, val.axes)
        return f"sum_of_pieces_in_runs({', '.join(texts)}, {pieces_text(val)})"

    def op_cumulated(self, val: Val) -> str:
        groups = f", data.{val.attrs['groups']}" if val.attrs["groups"] else ""
        return f"{'log_' if val.attrs['log'] else ''}cumulated({self.ref(val.args[0])}, {val.attrs['after']}{groups})"

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
        axes, n, event = val.attrs["onto"], val.event[0], val.event[1:]
        values = self.expanded(adjoint, axes, event)
        if index.op == "arange" and index.axes[0].size == n:
            return values
        flat = "" if len(axes) == 1 else ".reshape(-1)"
        rows = "" if len(axes) == 1 else f".reshape({', '.join(map(str, (-1, *event)))})"
        return f"w.new_zeros({', '.join(map(str, val.event))}).index_add_(0, {self.ref(index)}{flat}, {values}{rows})"

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
        if adjoint.op in ("const", "param"):
            return f"spread({shape}, ({', '.join(grid + keys)},), w.new_full((), {self.ref(adjoint)}))"
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
        if adjoint.op in ("const", "param"):
            return f"spread({shape}, ({', '.join(keys)},), w.new_full((), {self.ref(adjoint)}))"
        return f"spread({shape}, ({', '.join(keys)},), {self.ref(adjoint, val.attrs['extra'], len(val.event))})"

    def op_segment(self, val: Val) -> str:
        arg = val.args[0]
        parents, axis = val.attrs["parents"], val.attrs["axis"]
        dim = arg.axes.index(axis) if axis in arg.axes else None
        log = val.op == "log_segment"
        if dim is None and val.attrs["how"] == "mean":
            return self.ref(arg)
        if dim is None:
            return f"{self.ref(arg)} {'+' if log else '*'} data.{val.attrs['sizes']}" + (".log()" if log else "")
        shape = tuple(p.size for p in parents)
        cells = f"data.{val.attrs['cells']}, data.{val.attrs['sizes']}"
        text = f"{'log_' if log else ''}by_segment({self.ref(arg)}, {dim}, {cells}, {shape}, {val.attrs['how']!r})"
        order = [a for a in arg.axes[:dim]] + list(parents) + [a for a in arg.axes[dim + 1 :]]
        if tuple(order) != val.axes:
            places = [order.index(a) for a in val.axes] + list(range(len(order), len(order) + len(val.event)))
            text += f".permute({', '.join(map(str, places))})"
        return text

    op_log_segment = op_segment

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

    def lam(self, val: Val) -> str:
        """The smoothing parameter's text; of a block that keeps its y, times tau."""
        lam = f"h.lam_{val.attrs['name']}"
        return f"(h.tau * {lam})" if self.dual and len(val.args) > 1 else lam

    def smoothing(self, val: Val, axes: tuple[Axis, ...]) -> tuple[Proximal, str | None, str, str, str, tuple[int, ...]]:
        """A smoothed function and its scale; the texts of argument, smoothing parameter and centre; the dims that it takes."""
        function, event = val.attrs["function"], len(val.args[0].event)
        t, *c = (self.ref(arg, axes, event) for arg in val.args)
        dims = tuple(axes.index(a) for a in val.attrs["over"]) or tuple(range(-event, 0) if function.rank else ())
        return function, val.attrs["scale"], t, lam_text(function, self.lam(val)), c[0] if c else "", dims

    def op_envelope_slope(self, val: Val) -> str:
        if val.attrs["ends"]:
            _, _, t, lam, c, _ = self.smoothing(val, val.axes)
            return f"multiplier({t}, {c}, {bare(lam)}, {', '.join(map(number, val.attrs['ends']))}, h)"
        return slope_text(*self.smoothing(val, val.axes))

    def op_envelope(self, val: Val) -> str:
        return envelope_text(*self.smoothing(val, merged(val, val.attrs["over"])))

    def op_weights(self, val: Val) -> str:
        body, index, everyone, alpha = val.args
        t = self.ref(body, val.axes, 0)
        return f"couple(c.{val.attrs['name']}, {self.ref(everyone)}, {self.ref(index)}, {t}, h.tau, {self.ref(alpha)})"

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


def pieces_text(val: Val) -> str:
    """The pieces of a piecewise quadratic function: up to where, and its coefficients."""
    texts = (", ".join(map(number, piece)) for piece in val.attrs["pieces"])
    return f"[{', '.join(f'({text})' for text in texts)}]"
