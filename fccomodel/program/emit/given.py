"""The text of a criterion's functions: value, adjoints and watched values of a batch that is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch

from fccomodel.core.quoting import literal
from fccomodel.program import starts
from fccomodel.program.emit import sections
from fccomodel.program.emit.carried import carried, source
from fccomodel.program.emit.evaluation import regulariser
from fccomodel.program.emit.gradient import GradientText
from fccomodel.program.emit.page import as_tensor, function
from fccomodel.program.emit.program import helpers
from fccomodel.program.emit.projection import Projection
from fccomodel.program.emit.sampling import StepDraws
from fccomodel.program.emit.smoothing import smoothing_of
from fccomodel.program.graph import below
from fccomodel.program.lower.given import GivenSteps
from fccomodel.program.operations import Val
from fccomodel.program.operations.base import Axes
from fccomodel.program.operations.given import given

STEP_ARGUMENTS = "data, w, w_prev, u, c, y, v, batch, h, given"


class GivenGradient(GradientText):
    """``step``: the estimates move, then value, adjoints of the scores, gradient of the variables.

    The objective and the constraints as written move too, as running means: what they have in common with
    the step is computed once.
    """

    lowered: GivenSteps

    @cached_property
    def blocks(self) -> dict[str, str]:
        """The names of the blocks that a batch has, by the text that says whether it has them."""
        return {}

    @property
    def present(self) -> Mapping[int, Val]:
        """Whether a batch has the blocks of an estimate or of a slope, by its id."""
        return self.lowered.present

    @property
    def text(self) -> str:
        """The function ``step`` of a training criterion."""
        about = "Value, adjoints of the scores by name, gradient of other variables, running values by label."
        return function("step", about, self.lines, STEP_ARGUMENTS)

    def statements(self) -> list[str]:
        """The statements from the scores to their adjoints."""
        printer, pulls, slopes = self.printer, self.steps.pulls, self.slopes()
        printer.names.claim("given")
        pulled = [val for p in pulls for val in (p.adjoint, *p.source.op.pulled(p.source))]
        valued = all(not v.op.silent or v.op.name == "draw" for v in below([self.steps.root]).values())
        watched = [value for _, value in self.lowered.watched.values()]
        printer.print([*pulled, *slopes, *([self.steps.root] if valued else []), *watched])
        contributions = printer.contributions(pulls)
        assignments = [self.keep("y", slope, slope) for slope in slopes]
        if self.steps.state.dual:
            assignments += [self.keep("c", slope, slope) for slope in slopes]
        assignments += [
            self.keep("u", slope, slope.args[0])
            for slope in slopes
            if slope.attrs["name"] in self.lowered.estimated
        ]
        if valued:
            value = printer.ref(self.steps.root)
        else:
            value = "math.nan"
        return [*printer.body, *assignments, *self.returned(contributions, value)]

    def returned(self, contributions: list[tuple[str, str]], value: str) -> list[str]:
        """The statement that hands back the value and all gradients."""
        by_name: dict[str, list[str]] = {}
        for name, text in contributions:
            by_name.setdefault(name, []).append(text)

        def entries(names: Iterable[str]) -> str:
            """The entries of a dictionary with these names."""
            return ", ".join(f"{literal(n)}: {' + '.join(by_name[n])}" for n in names if n in by_name)

        adjoints = entries(asked.name for asked in self.lowered.scores)
        watched = ", ".join(
            f"{literal(k)}: {self.printer.ref(v)}" for k, (_, v) in self.lowered.watched.items()
        )
        return [f"return {value}, {{{adjoints}}}, {{{entries(self.lowered.layout)}}}, {{{watched}}}"]

    def estimate(self, val: Val) -> str:
        """The call that moves an estimate, if the batch has rows of its block."""
        if val.id in self.lowered.running:
            return self.running(val)
        if not val.attrs["name"]:
            return super().estimate(val)
        value, *positions = val.args
        return self.moved(val)

    def moved(self, val: Val) -> str:
        """The call of ``tracked``: an estimator for the present blocks alone."""
        printer, (value, *positions) = self.printer, val.args
        text = printer.expanded(value, val.axes, val.event)
        estimator = self.lowered.plan.algorithm_record.estimator
        extra = ""
        if estimator is not None and estimator.needs_previous:
            before = self.steps.before.get(val.id, value)
            extra = f", {printer.expanded(before, val.axes, val.event)}"
        index = "".join(f"{printer.ref(p, val.axes, 0)}, " for p in positions)
        here = self.here(val, val.axes)
        way = "track_log" if val.attrs["log"] else "track"
        return f"tracked({way}, u.{val.attrs['name']}, ({index}), {text}, {here}, h{extra})"

    def running(self, val: Val) -> str:
        """The call that moves a running mean."""
        printer, (value, *positions) = self.printer, val.args
        index = "".join(f"{printer.ref(p, val.axes, 0)}, " for p in positions)
        here = self.here(val, val.axes)
        text = printer.expanded(value, val.axes, val.event)
        if any(position.op is given for position in positions):
            weight = "WATCHING_ROWS"
        else:
            weight = "WATCHING"
        if val.attrs["log"]:
            way = "mean_log"
        else:
            way = "mean"
        return f"tracked({way}, v.{val.attrs['name']}, ({index}), {text}, {here}, {weight})"

    def here(self, val: Val, axes: Axes) -> str:
        """The name of the blocks of a value that the batch has. Values of the same blocks share it."""
        text = self.printer.expanded(self.present[val.id], axes)
        if text not in self.blocks:
            self.blocks[text] = self.printer.names.fresh("here")
            self.printer.put(f"{self.blocks[text]} = BatchBlocks({text})")
        return self.blocks[text]

    def keep(self, where: str, slope: Val, val: Val) -> str:
        """The statement that keeps a value of the blocks that the batch has."""
        centre = slope.args[1]
        index = self.index(centre.args, centre)
        event = len(slope.event)
        text = self.printer.ref(val, centre.axes, event)
        here = self.here(slope, centre.axes)
        return f"keep({where}.{centre.attrs['name']}, ({index}{',' if index else ''}), {text}, {here})"


@dataclass(frozen=True, kw_only=True)
class GivenProgram:
    """The functions of a criterion as text, with the arrays that they read, as tensors.

    text      defines ``step``, ``prepare``, ``start``, ``project``, ``regulariser`` and, where the model
              has noise, ``draw``; it reads ``INITIAL``
    initial   the arrays ``INITIAL``: of projections, and of the point that variables start from
    projects  whether a variable beside the nets is in a set
    noise     whether a step takes noise
    """

    text: str
    data: Mapping[str, torch.Tensor]
    numbers: Mapping[str, float]
    initial: Mapping[str, torch.Tensor]
    projects: bool
    noise: bool


def given_program(lowered: GivenSteps) -> GivenProgram:
    """The text of the functions of a criterion, and its data."""
    samples = StepDraws([*lowered.state.draws, *lowered.watching.draws])
    smoothing = smoothing_of(lowered)
    gradient = GivenGradient(lowered, lowered.steps, samples, smoothing)
    projection = Projection(lowered)
    estimator = lowered.plan.algorithm_record.estimator
    if estimator is not None:
        known = vars(estimator)
    else:
        known = {}
    offered = ("track", "track_log", "extrapolate", "multiplier", "couple")
    parts = [source(f) for f in carried(known[name] for name in offered if name in known)]
    parts += [source(f) for f in carried(projection.called.values())]
    parts += ["\n".join(sections.sizes(lowered)), sections.parameters(lowered)]
    parts += [projection.text]
    if smoothing.text:
        parts += [smoothing.text]
    parts += [gradient.text, samples.text]
    parts.append(
        function(
            "prepare",
            "Compute once what depends on the data alone.",
            [*gradient.prepared.lines, "return data"],
            "data",
        )
    )
    parts.append(sections.start(lowered))
    parts += regulariser(lowered, differentiable=True)
    initial = dict(projection.arrays)
    if (first := starts.first(lowered)) is not None:
        initial[sections.START] = torch.from_numpy(first)
    parts = [part for part in parts if part]
    text = "\n\n\n".join([*map(source, helpers(parts)), *parts])
    return GivenProgram(
        text=f"import math\n\nimport torch\n\n\n{text}\n",
        data={key: as_tensor(array) for key, array in lowered.data.items() if f"data.{key}" in text},
        numbers=lowered.state.numbers,
        initial=initial,
        projects=bool(projection.lines),
        noise=bool(samples.draws),
    )
