"""The sections of a standalone solver: data, variables, step, evaluation, loop, report."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch

from fccomodel import diagnostics, interpret, ir, regularisers, sets
from fccomodel.algorithms import _driver
from fccomodel.bound import Bound
from fccomodel.derivative import backward, previous
from fccomodel.emit import flatnet, support
from fccomodel.emit.printer import Printer
from fccomodel.emit.template import AS_NAMESPACE, IMPORTS, REPORT
from fccomodel.emit.texts import ball_text, number, slope_text
from fccomodel.graph import Val, merge_axes
from fccomodel.lower import Lowering, Slot
from fccomodel.normal import NormalForm
from fccomodel.plan import Plan
from fccomodel.reformulations import robust
from fccomodel.rewrite import shared
from fccomodel.smoothing import Smoothed


@dataclass(frozen=True, kw_only=True)
class Program:
    """``text`` is a complete Python program that imports torch and the standard library alone; ``data`` is what it reads
    from ``data.pt`` beside it. ``layout`` says where each variable lies in the flat vector w; ``penalties`` name the centre
    that holds each constraint family's multipliers, ``smoothed`` the other envelopes: text, and width of the dual domain."""

    text: str
    data: Mapping[str, Any]
    layout: Mapping[str, tuple[int, int, tuple[int, ...]]]
    penalties: Mapping[str, tuple[str, float]]
    smoothed: Mapping[str, tuple[str, float]]


def emit(problem: ir.Problem, bound: Bound, plan: Plan) -> Program:
    """The program of a plan on bound data."""
    return Emitter(problem, bound, plan).program()


class Emitter:
    """Builds the sections one after another."""

    def __init__(self, problem: ir.Problem, bound: Bound, plan: Plan):
        self.problem, self.bound, self.plan = problem, bound, plan
        self.reference = reference(problem)
        self.normal: NormalForm = plan.normal
        self.step = Lowering(bound=bound, full=False, batch=plan.batch)
        self.exact = Lowering(bound=bound, full=True, data=self.step.data)
        self.layout = self.lay_out()
        self.cells: set[str] = set()
        self.initial: dict[str, torch.Tensor] = {}

    # ------------------------------------------------------------------------------------------------------- variables
    def lay_out(self) -> dict[str, tuple[int, int, tuple[int, ...]]]:
        layout, at = {}, 0
        for name, variable in self.normal.variables.items():
            if variable.net is not None:
                shape: tuple[int, ...] = (sum(p.numel() for p in self.bound.nets[variable.net].parameters()),)
            else:
                shape = self.step.shape(variable.shape)
            size = int(np.prod(shape)) if shape else 1
            layout[name] = (at, at + size, shape)
            at += size
        return layout

    @property
    def length(self) -> int:
        return max((stop for _, stop, _ in self.layout.values()), default=0)

    # -------------------------------------------------------------------------------------------------------- sections
    def program(self) -> Program:
        self.root = self.step.expr(self.normal.objective, {}, True)
        draw = self.draw_section()
        gradient, prepare = self.gradient_section()
        evaluate, prepare_full, blocks = self.evaluation_section()
        assert not set(self.exact.thin) & self.cells, "rows that index centres are never thinned"
        body = "\n\n\n".join(
            part
            for part in [
                self.constants_section(),
                self.net_section(),
                self.data_section(),
                prepare,
                prepare_full,
                self.variables_section(),
                draw,
                self.update_section(),
                gradient,
                evaluate,
                blocks,
                source_of(_driver),
                REPORT,
            ]
            if part
        )
        helpers = [inspect.getsource(f).rstrip() for name, f in functions(support).items() if re.search(rf"\b{name}\(", body)]
        more = [
            inspect.getsource(f).rstrip()
            for name, f in functions(support).items()
            if any(re.search(rf"\b{name}\(", x) for x in helpers)
        ]
        head = self.header()
        text = "\n\n\n".join([head, *dict.fromkeys([*helpers, *more]), body]) + "\n"
        centred = {
            label: (s.name, s.graph.lipschitz if s.graph is not None else 1.0) for label, s in self.normal.penalties.items()
        }
        smoothed = {
            s.name: (
                shorten(self.problem.text(s.original)),
                s.graph.slopes[1] - s.graph.slopes[0] if s.graph is not None else 2**0.5,
            )
            for s in self.step_centres()
            if s not in self.normal.penalties.values()
        }
        return Program(text=text, data=self.tensors(), layout=self.layout, penalties=centred, smoothed=smoothed)

    def tensors(self) -> dict[str, Any]:
        """Arrays as tensors: float64 numbers, int64 positions; and the nets' initial parameters."""
        tensors: dict[str, Any] = dict(self.initial)
        for key, array in self.step.data.items():
            array = np.asarray(array)
            tensors[key] = torch.from_numpy(np.ascontiguousarray(array if array.dtype.kind == "f" else array.astype(np.int64)))
        for name, net in self.bound.nets.items():
            tensors[f"net_{name}"] = torch.cat([p.detach().reshape(-1) for p in net.parameters()]).to(torch.float64)
            for key, buffer in net.named_buffers():
                tensors[f"net_{name}_buffer_{key}"] = buffer.detach().clone()
        return tensors

    def header(self) -> str:
        lines = self.problem.source.text.rstrip().split("\n")
        listing = (
            "\n".join(f"  {k:>3}  {line}".rstrip() for k, line in enumerate(lines, 1)).replace("\\", "\\\\").replace('"""', "'''")
        )
        wrapped = (textwrap.wrap(line, 116, subsequent_indent="  ") for line in self.plan.summary)
        plan = "\n".join(f"  {line}" for lines in wrapped for line in lines)
        return (
            f'"""{self.problem.name}: a solver for\n\n{listing}\n\nHow it is solved\n\n{plan}\n\n'
            'Run it beside data.pt:  python solver.py --help\n"""\n\n' + IMPORTS
        )

    def constants_section(self) -> str:
        hyper = {
            **self.plan.hyper,
            **{f"lam_{s.name}": self.plan.smoothing for s in self.normal.smoothed},
            "lam_inner": self.plan.inner_smoothing,
        }
        items = "\n".join(f"    {name!r}: {value!r}," for name, value in hyper.items())
        centred = bool(self.step_centres())
        options = self.plan.options
        seconds, iterations = self.plan.budget
        run = {
            "SEED": options.get("seed", (0, ""))[0],
            "PRECISION": options.get("precision", ("float32", ""))[0],
            "SECONDS": seconds,
            "ITERATIONS": iterations,
            "THREADS": self.plan.threads,
            "SIGN": -1 if self.problem.objective.sense == "maximize" else 1,
            "LAYOUT": dict(self.layout),
            "THIN": dict(self.exact.thin),
        }
        fixed = "\n".join(f"{name} = {value!r}" for name, value in run.items())
        guard = "no_grad = torch.no_grad" if self.bound.nets else "no_grad = torch.inference_mode"
        block = f"BLOCK = {self.plan.block}  # steps whose samples are drawn together"
        return f"{fixed}\n{guard}\n\n# ---- hyper-parameters\nHYPER = {{\n{items}\n}}\n{block}\nCENTRED = {centred}"

    def step_centres(self) -> list[Smoothed]:
        """The smoothed functions whose centres move."""
        return [s for s in self.normal.smoothed if s.name in self.step.centres]

    def net_section(self) -> str:
        if not self.bound.nets:
            return ""
        parts = ["# ---- nets", inspect.getsource(flatnet.FlatNet).rstrip()]
        for name, net in self.bound.nets.items():
            parts.append(flatnet.constructor(name, net, len(self.problem.nets[name].input)))
        return "\n\n\n".join(parts)

    def data_section(self) -> str:
        keys = sorted(self.step.data)
        params = "\n".join(f"    data.{name} = {value!r}" for name, value in sorted(self.parameters.items()))
        return AS_NAMESPACE.format(count=len(keys), params=("\n" + params) if params else "")

    @property
    def parameters(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.bound.params.items() if np.ndim(value) == 0}

    def variables_section(self) -> str:
        lines = [
            "def start(rng, device, dtype):",
            '    """The first iterate: zero, inside the simple sets; nets start from their own initialisation."""',
        ]
        lines.append(f"    w = torch.zeros({self.length}, device=device, dtype=dtype)")
        for name, (a, b, _) in self.layout.items():
            variable = self.normal.variables[name]
            if variable.net is not None:
                lines.append(f"    w[{a}:{b}] = INITIAL[{f'net_{variable.net}'!r}].to(device=device, dtype=dtype)")
        lines += ["    project(w, 0.0, SimpleNamespace(**HYPER))", "    return w"]
        buffers = "\n".join(
            f"    # {shorten(b.text, 110)}\n    u.{b.name} = torch.full({b.shape}, math.nan, device=device, dtype=dtype)"
            for b in self.step.buffers.values()
        )
        centres = "\n".join(
            f"    c.{name} = torch.zeros({shape}, device=device, dtype=dtype)" for name, shape in self.step.centres.items()
        )
        texts = [f"#   w[{a}:{b}] = {name}{list(shape) or ''}" for name, (a, b, shape) in self.layout.items()]
        return "\n".join(
            ["# ---- variables, one flat vector", *texts, *lines, "", "",
             "def buffers(device, dtype):",
             '    """Estimates u of the inner expectations, one per block; NaN until first seen."""',
             "    u = SimpleNamespace()", *([buffers] if buffers else []), "    return u", "", "",
             "def centres(device, dtype):", '    """Centres of the smoothing: estimates of the multipliers."""',
             "    c = SimpleNamespace()", *([centres] if centres else []), "    return c"]
        )  # fmt: skip

    def draw_section(self) -> str:
        """Samples for a block of steps, on the device."""
        lines = [
            "# ---- sampling, on the device",
            "def draw(data, rng, T):",
            '    """Positions and uniform numbers for T steps, each with a leading dim of T."""',
        ]
        names = []
        if any(v.op == "draw" for v in self.step.draws):
            lines += [
                "    def epochs(n, size):",
                "        # without replacement within each pass over the n elements",
                "        passes = [torch.randperm(n, generator=rng, device=data.device) for _ in range(-(-T * size // n))]",
                "        return torch.cat(passes)[: T * size].view(T, size)",
                "",
            ]
        for val in self.step.draws:
            axis = val.attrs["axis"]
            if val.op == "draw":
                lines.append(f"    {axis.name} = epochs({val.attrs['n']}, {axis.size})")
                names.append(axis.name)
            elif val.op == "draw_range":
                shape = ", ".join(str(a.size) for a in val.axes)
                lines.append(f"    r_{axis.name} = torch.rand((T, {shape}), generator=rng, device=data.device)")
                names.append(f"r_{axis.name}")
            else:
                shape = ", ".join(str(n) for n in [a.size for a in val.axes] + list(val.event))
                name = f"r_{val.attrs['name']}"
                lines.append(f"    {name} = noise({val.attrs['family']!r}, (T, {shape}), rng, data.device, data.dtype)")
                names.append(name)
        self.batch_names = names
        lines.append(f"    return [{', '.join(names)}]" if names else "    return []")
        return "\n".join(lines)

    def update_section(self) -> str:
        algorithm = self.plan.algorithm_record
        step = algorithm.steps[self.plan.step]
        estimator = algorithm.estimator
        text = [
            f"# ---- {algorithm.title}: {algorithm.theorem}",
            *([inspect.getsource(estimator.track).rstrip(), "", ""] if self.step.buffers else []),
            re.sub(r"^def \w+\(", "def update(", inspect.getsource(step).rstrip()),
            "",
            "",
            "def project(w, step, h):",
            '    """Proximal maps of regularisers, projections on simple sets, in place; one step or one per coordinate."""',
        ]
        helpers, lines = self.proximal_lines()
        return "\n".join([*helpers, *text, *(lines or ["    return"])])

    def proximal_lines(self) -> tuple[list[str], list[str]]:
        helpers: dict[str, str] = {}
        lines: list[str] = []
        for p in self.normal.prox:
            start, stop, shape = self.layout[p.variable]
            regulariser = regularisers.get(p.name)
            assert regulariser is not None, p.name
            function = regulariser.prox
            helpers[function.__name__] = inspect.getsource(function).rstrip()
            piece = f"w[{start}:{stop}]"
            arguments = ", ".join(f"{key}={value!r}" for key, value in p.coefficients.items())
            lines.append(f"    # {shorten(p.text, 110)}")
            if len(self.layout) == 1:
                lines.append(f"    w.copy_({function.__name__}(w, step, {arguments}))")
            else:
                own = f"step if isinstance(step, float) else step[{start}:{stop}]"
                lines.append(f"    {piece} = {function.__name__}({piece}, {own}, {arguments})")
        for name, (start, stop, shape) in self.layout.items():
            for domain in self.normal.variables[name].sets:
                record = sets.get(domain.family)
                assert record is not None, domain.family
                helpers[record.project.__name__] = inspect.getsource(record.project).rstrip()
                arguments = "".join(f", {text}" for text in self.set_arguments(name, domain))
                piece = f"w[{start}:{stop}]"
                viewed = piece if len(shape) == 1 else f"{piece}.view({', '.join(map(str, shape)) or '()'})"
                lines.append(f"    # {name} in {domain.name}")
                lines.append(f"    {piece} = {record.project.__name__}({viewed}{arguments}).reshape(-1)")
        return [line for text in helpers.values() for line in (text, "", "")], lines

    def set_arguments(self, name: str, domain: ir.VectorSet) -> list[str]:
        """What the projection takes, as text: numbers, and arrays kept with the initial values."""
        record = sets.get(domain.family)
        assert record is not None, domain.family
        values = [self.set_value(a) for a in domain.args]
        shape = self.layout[name][2]
        if reason := record.empty(shape, *values):
            message, span = f"{domain.name}, the set of {name}, has no point", domain.args[0].span if domain.args else None
            error = diagnostics.error("F0609", message, span=span, reason=reason, fix="Correct its arguments.")
            raise diagnostics.FccoError([error], self.problem.source)
        texts = []
        for k, value in enumerate(record.prepare(*values)):
            if isinstance(value, torch.Tensor) and value.dim():
                key = f"net_set_{name}_{domain.family}_{k}"
                self.initial[key] = value.to(torch.float64)
                texts.append(f"INITIAL[{key!r}].to(w)")
            else:
                texts.append(number(float(value)))
        return texts

    def set_value(self, node: ir.Expr) -> Any:
        """An argument of a set: a number, or a tensor."""
        value = interpret.evaluate(self.bound, node, {})
        return value if value.dim() else float(value)

    # -------------------------------------------------------------------------------------------------------- gradient
    def gradient_section(self) -> tuple[str, str]:
        lowering = self.step
        graph = lowering.graph
        pulls = backward(graph, {self.root: graph.const(1.0)})
        printer = Printer(graph=graph, layout=self.layout, comments=self.comments(lowering))
        for val in lowering.draws:
            printer.counters[val.attrs["axis"].name] = 1
            if val.op == "draw":
                printer.names[val.id] = val.attrs["axis"].name
        estimator = self.plan.algorithm_record.estimator
        tracks = [v for v in graph.vals if v.op == "track"]
        before = {v.id: previous(graph, v.args[0]) for v in tracks} if estimator.needs_previous else {}
        self.print_with_tracks(printer, pulls, before)
        used = [(pull.variable, printer.pull(pull)) for pull in pulls if pull.kind != "net"]
        used += printer.net_pulls([pull for pull in pulls if pull.kind == "net"])
        lines = printer.lines
        lines += self.assemble(used)
        names = self.batch_names
        unpack = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = batch"] if names else []
        body = "\n".join("    " + line for line in [*unpack, *lines])
        text = (
            "# ---- f and g: the stochastic gradient, from the scores up\n"
            "def gradient(data, w, w_prev, u, c, batch, h):\n"
            f'    """G for {shorten(self.problem.name, 40)}: estimates updated, then the chain rule through them."""\n{body}'
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
            extra = f", {self.spread_to(printer, before[val.id], val)}" if val.id in before else ""
            return f"track(u.{name}, {key}, {g_text}{extra}, h)"

        printer.op_track = op_track  # type: ignore[method-assign]
        reach = printer.reach
        together = printer.group_nets(self.step.graph)

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
        printer.print([r for r in roots if r.op not in ("const", "param")])

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
            i: f"line {source.place(node.span)[0]}: {shorten(self.problem.text(node), 60)}"
            for i, node in lowering.spans.items()
            if node.span.end > node.span.start and isinstance(node, ir.Reduce | ir.Apply | ir.NetCall | Smoothed)
        }

    # ------------------------------------------------------------------------------------------------------ evaluation
    def evaluation_section(self) -> tuple[str, str, str]:
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
        prepared = "\n".join("    " + line for line in printer.prepared)
        prepare = (
            "def prepare_full(data):\n"
            + f'    """What a full pass needs of the data alone."""\n{prepared}'
            + ("\n" if prepared else "")
            + "    return data"
        )
        return evaluate, prepare, blocks

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
            if s.ball is not None:
                inner, bounded = ball_text(s.ball, f"t / h.lam_{s.name} + y", len(value.event)), "0"
            elif s.graph is not None:
                inner = slope_text(s.graph, s.bound, f"h.lam_{s.name}", f"(t + h.lam_{s.name} * y)")
                bounded = number(s.graph.lipschitz) if s.bound else "0"
            else:
                dim = ", ".join(str(axes.index(a)) for a in over) if over else "-1"
                dim = f"({dim})" if len(over) > 1 else dim
                inner, bounded = f"onto_simplex(t / h.lam_{s.name} + y, {dim})", "0"
            lines.append(f"def {slope}(t, y, h):  # {shorten(self.problem.text(s.original))}")
            lines.append(f"    return {inner}")
            key = f"({index},)" if ids else "()"
            entries.append(f"{s.name!r}: ({key}, {t}, {slope}, {bounded})")
        lines.append(f"return {{{', '.join(entries)}}}")
        about = "Per smoothed function: cells, exact arguments, slope, and its largest slope if it is a penalty."
        head = f'def blocks(data, w):\n    """{about}"""\n'
        return head + "\n".join("    " + x for x in lines)


def reference(problem: ir.Problem) -> ir.Problem:
    """The problem that ``evaluate`` computes: the user's own, inner maxima by their duals."""
    return shared(robust.reformulation.apply(problem)[0])


def functions(module: ModuleType) -> dict[str, Any]:
    """The module's own functions, in order."""
    return {name: f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__}


def source_of(module: ModuleType) -> str:
    """The functions of a module as text."""
    return "# ---- the loop\n" + "\n\n\n".join(inspect.getsource(f).rstrip() for f in functions(module).values())


def shorten(text: str, width: int = 72) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
