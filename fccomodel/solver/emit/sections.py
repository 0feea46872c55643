"""The sections of a solver that hold its data, variables and samples."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import torch

from fccomodel.algorithms.runtime.settings import LoopSettings
from fccomodel.core import ir
from fccomodel.core.quoting import attribute, comment, docstring, literal
from fccomodel.core.rewrite import shared
from fccomodel.data.bound import Bound
from fccomodel.normal import NormalForm, reformulations
from fccomodel.normal.smoothing import Smoothed
from fccomodel.plan import Plan
from fccomodel.solver.emit import flatnet
from fccomodel.solver.emit.carried import source
from fccomodel.solver.emit.template import AS_NAMESPACE, IMPORTS
from fccomodel.solver.lower import Lowering, State
from fccomodel.solver.operations import Val
from fccomodel.solver.operations.draws import draw, draw_range
from fccomodel.solver.operations.estimates import track


class Sections:
    """What every section knows: the problem, its data, the plan, the two graphs, and where each variable lies."""

    def __init__(self, problem: ir.Problem, bound: Bound, plan: Plan):
        self.problem, self.bound, self.plan = problem, bound, plan
        self.reference = reference(problem)
        self.normal: NormalForm = plan.normal
        record = plan.algorithm_record
        dual = record.outer == "dual"
        stable = hasattr(record.estimator, "track_log") and not dual
        state = State(
            bound=bound, full=False, batch=plan.batch, independent=plan.resamples, dual=dual, stable=stable,
            coupled="linear coupling" in record.requires,
            sampling=plan.options["sampling"][0], inner_sampling=plan.options["inner_sampling"][0],
        )  # fmt: skip
        self.step = Lowering(state)
        self.exact = Lowering(State(bound=bound, full=True, data=state.data))
        self.layout = self.lay_out()
        self.cells: set[str] = set()
        self.initial: dict[str, torch.Tensor] = {}
        self.root = self.lower()

    def lower(self) -> Val:
        """The objective in the step's graph."""
        self.step.state.logarithms.scan(self.normal.objective)
        return self.step.expr(self.normal.objective, {}, True)

    # ------------------------------------------------------------------------------------------------------- variables
    def lay_out(self) -> dict[str, tuple[int, int, tuple[int, ...]]]:
        layout, at = {}, 0
        for name, variable in self.normal.variables.items():
            if variable.net is not None:
                shape: tuple[int, ...] = (sum(p.numel() for p in self.bound.nets[variable.net].parameters()),)
            else:
                shape = self.step.state.shape(variable.shape)
            size = int(np.prod(shape)) if shape else 1
            layout[name] = (at, at + size, shape)
            at += size
        return layout

    @property
    def length(self) -> int:
        return max((stop for _, stop, _ in self.layout.values()), default=0)

    def tensors(self) -> dict[str, Any]:
        """Arrays as tensors: float64 numbers, int64 positions; and the nets' initial parameters."""
        tensors: dict[str, Any] = dict(self.initial)
        for key, array in self.step.state.data.items():
            array = np.asarray(array)
            tensors[key] = torch.from_numpy(np.ascontiguousarray(array if array.dtype.kind == "f" else array.astype(np.int64)))
        for name, net in self.bound.nets.items():
            tensors[f"net_{name}"] = torch.cat([p.detach().reshape(-1) for p in net.parameters()]).to(torch.float64)
            for key, buffer in net.named_buffers():
                tensors[f"net_{name}_buffer_{key}"] = buffer.detach().clone()
        return tensors

    def header(self) -> str:
        lines = self.problem.source.text.rstrip().split("\n")
        listing = "\n".join(f"  {k:>3}  {line}".rstrip() for k, line in enumerate(lines, 1))
        wrapped = (textwrap.wrap(line, 116, subsequent_indent="  ") for line in self.plan.summary)
        plan = "\n".join(f"  {line}" for lines in wrapped for line in lines)
        about = f"{self.problem.name}: a solver for\n\n{listing}\n\nHow it is solved\n\n{plan}\n\n"
        return f'"""{docstring(about)}Run it beside data.pt:  python solver.py --help\n"""\n\n{IMPORTS}'

    def settings_section(self, base: type[LoopSettings]) -> str:
        """The settings to begin with, on top of those of a form."""
        values = {
            **({"steady": True} if self.plan.steady else {}),
            **self.plan.hyper,
            **self.plan.algorithm_record.own,
            **{f"lam_{s.name}": self.plan.smoothing for s in self.normal.smoothed},
            "lam_inner": self.plan.inner_smoothing,
        }
        lines = [f"    {name}: {type(value).__name__} = {literal(value)}" for name, value in values.items()]
        about = '    """What steps go by, to begin with."""'
        return "\n".join(["@dataclass(kw_only=True)", f"class Settings({base.__name__}):", about, "", *lines])

    def constants_section(self) -> str:
        options = self.plan.options
        seconds, iterations, calls = self.plan.budget
        run = {
            "SEED": options.get("seed", (0, ""))[0],
            "PRECISION": options.get("precision", ("float32", ""))[0],
            "SECONDS": seconds,
            "ITERATIONS": iterations,
            "CALLS": calls,
            **({"WAY": None, "PASSES": None, "TOL": options["tol"][0]} if self.plan.polish else {}),
            "THREADS": self.plan.threads,
            "SIGN": -1 if self.problem.objective.sense == "maximize" else 1,
            "LAYOUT": dict(self.layout),
        }
        fixed = "\n".join(f"{name} = {literal(value)}" for name, value in run.items())
        taped = self.bound.nets or self.plan.algorithm_record.oracle == "vector"
        guard = "no_grad = torch.no_grad" if taped else "no_grad = torch.inference_mode"
        return f"{fixed}\n{guard}"

    def oracles(self) -> int:
        """Values g_i(w; xi) that a step asks for: samples of every expectation, for tracked ones once more per point or batch."""
        record = self.plan.algorithm_record
        tracked: set[int] = set()
        stack = [a for v in self.step.state.graph.vals if v.op is track for a in v.args[:1]]
        while stack:
            val = stack.pop()
            if val.id not in tracked:
                tracked.add(val.id)
                stack.extend(val.args)
        times = max(record.points, 1 + self.plan.remembers)
        return sum(count * (times if i in tracked else record.points) for i, count in self.step.state.sampled.items())

    def step_centres(self) -> list[Smoothed]:
        """The smoothed functions whose centres move."""
        return [s for s in self.normal.smoothed if s.name in self.step.state.centres]

    def inequalities(self) -> tuple[str, ...]:
        """The centres that are multipliers of inequalities, moved by the steps."""
        return tuple(s.name for s in self.step_centres() if self.step.state.dual and s.ends)

    def estimated(self) -> tuple[str, ...]:
        """The centres of penalties whose arguments are estimated in steps."""
        return () if self.step.state.dual else tuple(s.name for s in self.step_centres() if s.penalty is not None)

    def net_section(self) -> str:
        if not self.bound.nets:
            return ""
        wrapper = flatnet.FunctionalNet if self.plan.algorithm_record.oracle == "vector" else flatnet.FlatNet
        parts = ["# ---- nets", source(wrapper)]
        for name, net in self.bound.nets.items():
            parts.append(flatnet.constructor(name, net, len(self.problem.nets[name].input), wrapper))
        return "\n\n\n".join(parts)

    def data_section(self) -> str:
        keys = sorted(self.step.state.data)
        params = "\n".join(f"    data.{name} = {literal(value)}" for name, value in sorted(self.step.state.numbers.items()))
        return AS_NAMESPACE.format(count=len(keys), params=("\n" + params) if params else "")

    def taken(self) -> list[str]:
        """Names that lines of a section cannot have, beside those that mean something in every program: what it calls after the
        model's names."""
        nets, smoothed = (f"net_{n}" for n in self.bound.nets), (f"slope_{s.name}" for s in self.normal.smoothed)
        held = map(attribute, [*self.bound.params, *self.step.state.data])
        return [*(f"G_{n}" for n in self.layout), *nets, *smoothed, *held]

    def variables_section(self) -> str:
        lines = [
            "def start(rng, device, dtype):",
            '    """The first iterate: zero, inside the simple sets; nets start from their own initialisation."""',
        ]
        lines.append(f"    w = torch.zeros({self.length}, device=device, dtype=dtype)")
        for name, (a, b, _) in self.layout.items():
            variable = self.normal.variables[name]
            if variable.net is not None:
                lines.append(f"    w[{a}:{b}] = INITIAL[{literal(f'net_{variable.net}')}].to(device=device, dtype=dtype)")
        lines += ["    project(w, 0.0)", "    return w"]
        buffers = "\n".join(
            f"    # {comment(b.text, 110)}\n    u.{b.name} = torch.full({b.shape}, math.nan, device=device, dtype=dtype)"
            for b in self.step.state.buffers.values()
        )
        full = "torch.full({}, math.nan, device=device, dtype=dtype)"
        buffers += "".join(f"\n    u.{name} = {full.format(self.step.state.centres[name])}" for name in self.estimated())
        centres = "\n".join(
            f"    c.{name} = torch.zeros({shape}, device=device, dtype=dtype)" for name, shape in self.step.state.centres.items()
        )
        texts = [f"#   w[{a}:{b}] = {name}{list(shape) or ''}" for name, (a, b, shape) in self.layout.items()]
        estimates = [
            "def buffers(device, dtype):",
            '    """Estimates u of the inner expectations, one per block; NaN until first seen."""',
            "    u = SimpleNamespace()", *([buffers] if buffers else []), "    return u", "", "",
        ]  # fmt: skip
        return "\n".join(
            ["# ---- variables, one flat vector", *texts, *lines, "", "",
             *(estimates if self.plan.algorithm_record.oracle == "blocks" else []),
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
        if any(v.op is draw and v.attrs["how"] == "epochs" for v in self.step.state.draws):
            lines += [
                "    def epochs(name, n, size):",
                "        # without replacement within each pass over the n elements; the rest of a pass waits for the next call",
                "        left = data.waiting.get(name, [])",
                "        while sum(map(len, left)) < T * size:",
                "            left.append(torch.randperm(n, generator=rng, device=data.device))",
                "        taken, rest = torch.cat(left).tensor_split([T * size])",
                "        data.waiting[name] = [rest.clone()]",
                "        return taken.view(T, size)",
                "",
            ]
        for val in self.step.state.draws:
            axis = val.attrs["axis"]
            if val.op is draw and val.attrs["how"] == "epochs":
                lines.append(f"    {axis.name} = epochs({literal(axis.name)}, {val.attrs['n']}, {axis.size})")
                names.append(axis.name)
            elif val.op is draw:
                size = f"(T, {axis.size}), generator=rng, device=data.device"
                lines.append(f"    {axis.name} = torch.randint({val.attrs['n']}, {size})")
                names.append(axis.name)
            elif val.op is draw_range:
                shape = ", ".join(str(a.size) for a in val.axes)
                fine = ", dtype=torch.float64" if val.attrs["most"] > 1 << 16 else ""
                lines.append(f"    r_{axis.name} = torch.rand((T, {shape}), generator=rng, device=data.device{fine})")
                names.append(f"r_{axis.name}")
            else:
                shape = ", ".join(str(n) for n in [a.size for a in val.axes] + list(val.event))
                name = f"r_{val.attrs['name']}"
                lines.append(f"    {name} = noise({literal(val.attrs['family'])}, (T, {shape}), rng, data.device, data.dtype)")
                names.append(name)
        self.batch_names = names
        lines.append(f"    return [{', '.join(names)}]" if names else "    return []")
        return "\n".join(lines)


def reference(problem: ir.Problem) -> ir.Problem:
    """The problem that ``evaluate`` computes: the user's own, inner maxima by their duals."""
    return shared(reformulations.chain(problem, {"inner maximum"}).problem)
