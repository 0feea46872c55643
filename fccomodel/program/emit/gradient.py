"""The section with the stochastic gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from fccomodel.algorithms.runtime.loops.block_loop import BlockRun
from fccomodel.algorithms.runtime.loops.settings import BlockSettings
from fccomodel.algorithms.runtime.loops.solver import BlockSolver
from fccomodel.core.quoting import comment, docstring, shorten
from fccomodel.program.emit.nets import Calls
from fccomodel.program.emit.page import function, printer_of
from fccomodel.program.emit.record import LoopForm
from fccomodel.program.emit.sampling import StepDraws
from fccomodel.program.emit.smoothing import Smoothing
from fccomodel.program.graph import below
from fccomodel.program.lower import BlockSteps, LoweredSteps
from fccomodel.program.operations import Val, union
from fccomodel.program.operations.base import number
from fccomodel.program.operations.draws import draw
from fccomodel.program.operations.estimates import envelope_slope, track


class GradientText:
    """The text of the function ``gradient``: it updates the estimates, then applies the chain rule.

    ``prepared`` has the statements that need the data alone, computed before the first step.
    """

    def __init__(self, lowered: LoweredSteps, steps: BlockSteps, samples: StepDraws, smoothing: Smoothing):
        self.lowered, self.steps, self.samples = lowered, steps, samples
        calls, dual = Calls.of(steps.state.graph, steps.pulls), steps.state.dual
        self.printer = printer_of(
            lowered,
            steps.state,
            calls=calls,
            before=steps.before,
            estimator=self.estimate,
            smoother=smoothing.call,
            dual=dual,
            present=self.present,
        )
        self.prepared = self.printer.prepared
        samples.introduce(self.printer)
        self.lines = [*samples.unpacked, *self.statements()]

    @property
    def present(self) -> Mapping[int, Val]:
        """Whether a batch has the blocks of an estimate, by its id: nothing where a step draws its own."""
        return {}

    @property
    def text(self) -> str:
        """The function ``gradient`` with its head."""
        name = docstring(shorten(self.lowered.problem.name, 40))
        about = f"The stochastic gradient G of {name}: update the estimates u, then apply the chain rule."
        head = f"# ---- f and g: the stochastic gradient, from the scores up\n{self.sizes}"
        return head + function("gradient", about, self.lines, "data, w, w_prev, u, c, batch, h")

    @property
    def sizes(self) -> str:
        """The line that says which numbers in the gradient are sizes: of minibatches, or of whole sets."""
        sampled_from = {v.attrs["axis"]: v.attrs["n"] for v in self.samples.draws if v.op is draw}
        axes = union(val for pull in self.steps.pulls for val in below([pull.adjoint]).values())
        known = [a for a in axes if a in sampled_from or a.kind == "all" and a.name != "both"]
        texts = (
            f"{a.title} {a.size} of {sampled_from[a]}" if a in sampled_from else f"{a.title} all {a.size}"
            for a in known
        )
        line = ", ".join(dict.fromkeys(texts))
        if line:
            return f"#   elements of a step: {comment(line, 100)}\n"
        return ""

    def statements(self) -> list[str]:
        """The statements from the scores to the gradient."""
        pulls, slopes = self.steps.pulls, self.slopes()
        if self.steps.state.dual:
            own_multipliers = slopes
        else:
            own_multipliers = []
        pulled = [val for p in pulls for val in (p.adjoint, *p.source.op.pulled(p.source))]
        self.printer.print([*pulled, *own_multipliers])
        contributions = self.printer.contributions(pulls)
        assignments = [self.keep("c", slope, slope) for slope in own_multipliers]
        assignments += [
            self.keep("u", slope, slope.args[0])
            for slope in slopes
            if slope.attrs["name"] in self.lowered.estimated
        ]
        return [*self.printer.body, *assignments, *self.assembled(contributions)]

    def assembled(self, contributions: list[tuple[str, str]]) -> list[str]:
        """The flat gradient from the contributions of each variable."""
        by_name: dict[str, list[str]] = {}
        for name, text in contributions:
            by_name.setdefault(name, []).append(text)
        layout = self.lowered.layout
        parts = [
            " + ".join(by_name.get(name, [f"w.new_zeros({stop - start})"]))
            for name, (start, stop, _) in layout.items()
        ]
        end = "return over_ranks({})" if self.lowered.shares else "return {}"
        if len(parts) == 1:
            return [end.format(parts[0])]
        lines = [f"G_{name} = {text}" for name, text in zip(layout, parts, strict=True)]
        return [*lines, end.format(f"torch.cat([{', '.join('G_' + name for name in layout)}])")]

    # ------------------------------------------------------------------------------------ estimates
    def estimate(self, val: Val) -> str:
        """The call that moves an estimate."""
        estimator, before = self.lowered.plan.algorithm_record.estimator, self.steps.before.get(val.id)
        value, *positions = val.args
        text = self.printer.expanded(value, val.axes, val.event)
        if before:
            earlier = self.printer.expanded(before, val.axes, val.event)
        else:
            earlier = ""
        if not val.attrs["name"]:
            if before:
                return f"extrapolate({text}, {earlier}, h)"
            return text
        index = self.index(positions, val)
        needs_previous = bool(estimator and estimator.needs_previous)
        if needs_previous:
            extra = f", {earlier or text}"
        else:
            extra = ""
        if getattr(estimator, "needs_share", False):
            share = f", {number(self.share(positions))}"
        else:
            share = ""
        way = "track_log" if val.attrs["log"] else "track"
        return (
            f"{way}(u.{val.attrs['name']}, {f'({index},)' if positions else '()'}, {text}{extra}, h{share})"
        )

    def index(self, positions: Iterable[Val], val: Val) -> str:
        """The text of the blocks at some positions, lined up with a value."""
        return ", ".join(self.printer.ref(p, val.axes, 0) for p in positions)

    def share(self, positions: list[Val]) -> float:
        """n / B1 of the blocks at some positions: elements of their sets for each that a step visits."""
        sampled = {
            v.attrs["axis"]: v.attrs["n"] / v.attrs["axis"].size for v in self.samples.draws if v.op is draw
        }
        return math.prod(sampled.get(axis, 1.0) for axis in union(positions))

    def slopes(self) -> list[Val]:
        """The slopes that the gradient goes through, of outer functions with a centre."""
        adjoints = below(pull.adjoint for pull in self.steps.pulls).values()
        slopes = sorted(
            (v for v in adjoints if v.op is envelope_slope and len(v.args) > 1), key=lambda v: v.id
        )
        return list({v.attrs["name"]: v for v in slopes}.values())

    def keep(self, where: str, slope: Val, val: Val) -> str:
        """The statement that keeps a value for the blocks of a slope: itself as y (``c``), or its
        argument (``u``)."""
        centre = slope.args[1]
        index = self.index(centre.args, centre)
        return (
            f"{where}.{centre.attrs['name']}[{index or '...'}] = "
            f"{self.printer.ref(val, centre.axes, len(slope.event))}"
        )

    # ------------------------------------------------------------------------------------- the loop
    @property
    def form(self) -> LoopForm:
        """The functions that the loop over blocks needs."""
        surrogate, inequalities = bool(self.lowered.plan.surrogates), self.lowered.inequalities
        values = {"oracles": self.oracles(), "surrogate": surrogate, "inequalities": inequalities}
        return LoopForm(
            record=BlockSolver,
            run=BlockRun,
            settings=BlockSettings,
            defined=("gradient", "buffers"),
            values=values,
        )

    def oracles(self) -> int:
        """Values g_i(w; xi) that a step asks for: samples of every expectation, for tracked ones once
        more per point or batch."""
        plan, state = self.lowered.plan, self.lowered.steps.state
        tracked, points = (
            below(v.args[0] for v in state.graph.vals if v.op is track),
            plan.algorithm_record.points,
        )
        times = max(points, 1 + plan.remembers)
        return sum(count * (times if i in tracked else points) for i, count in state.sampled.items())
