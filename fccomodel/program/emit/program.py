"""A standalone solver: its sections put together."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from fccomodel.algorithms.runtime import ranks
from fccomodel.algorithms.runtime.checkpoints import FileKeeper, keeper_of_run
from fccomodel.algorithms.runtime.helpers import raised, support, sweep
from fccomodel.core import ir
from fccomodel.core.quoting import shorten
from fccomodel.data.net_costs import input_shapes
from fccomodel.library import distances, distributions, reductions
from fccomodel.library.proximal import maps
from fccomodel.normal_form.penalty import Penalty
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program.emit import fetching, modules, sections
from fccomodel.program.emit.carried import Carried, carried, read, source
from fccomodel.program.emit.evaluation import EvaluationText
from fccomodel.program.emit.gradient import GradientText
from fccomodel.program.emit.page import function, taken
from fccomodel.program.emit.projection import Projection
from fccomodel.program.emit.record import SolverText
from fccomodel.program.emit.sampling import LookedUp, StepDraws
from fccomodel.program.emit.smoothing import smoothing_of
from fccomodel.program.emit.template import report
from fccomodel.program.emit.update import chosen, update
from fccomodel.program.emit.vector import CompositionText
from fccomodel.program.lower import BlockSteps, Layout, Lowered, RankShares, VectorSteps, together
from fccomodel.program.lower.records import EstimatorState
from fccomodel.program.names import Names
from fccomodel.program.operations.sources import fetch


@dataclass(frozen=True, kw_only=True)
class EnvelopeText:
    """A smoothed function: its ``text``, the ``width`` of its dual domain, and the ``binders`` whose
    elements have a y each."""

    text: str
    width: float
    binders: tuple[ir.Binder, ...]

    @classmethod
    def of(cls, lowered: Lowered, smoothed: Smoothed) -> EnvelopeText:
        """The envelope of a smoothed function as the emitted program has it."""
        binders = dict.fromkeys(b for node in smoothed.args for b in ir.free_binders(node))
        binders |= dict.fromkeys(smoothed.over.binders if smoothed.over is not None else ())
        text = shorten(lowered.problem.text(smoothed.original))
        return cls(text=text, width=smoothed.function.diameter, binders=tuple(binders))


@dataclass(frozen=True, kw_only=True)
class Program:
    """A complete Python program that imports only torch and the standard library, and its data.

    text       the text of the program
    data       the arrays of the file ``DATA_FILE`` beside it; ``DATA_SHA256`` may have the file's SHA-256
    layout     the slice of each variable in the flat vector w
    penalties  the penalty of each constraint
    smoothed   the other smoothed functions, by the names of their centres
    estimates  the estimates of inner expectations, by their names in the program
    runtime    the parts of the text that do not depend on the model: its loop, the report, the command line
    modules    the nets that have no text: a run in Python uses the modules, a file their torch.export
    shares     the share of the rows of each rank, if there are several ranks
    """

    text: str
    data: Mapping[str, Any]
    layout: Layout
    penalties: Mapping[str, Smoothed | Penalty]
    smoothed: Mapping[str, EnvelopeText]
    estimates: Mapping[str, EstimatorState]
    runtime: tuple[str, ...]
    modules: Mapping[str, modules.KeptModule] = field(default_factory=dict)
    shares: RankShares | None = None


def emit(lowered: Lowered) -> Program:
    """The text of a lowered plan, section by section."""
    steps, projection = lowered.steps, Projection(lowered)
    looked = LookedUp()
    if isinstance(steps, BlockSteps) and lowered.shares is None:
        steps = together(steps)
        looked = LookedUp.of(steps.state.graph, steps.roots, Names(taken(lowered)), sections.staying(lowered))
    fetches = tuple(val for val in steps.state.graph.vals if val.op is fetch)
    changing = any(fetching.changing(lowered.data[val.attrs["key"]]) for val in fetches)
    samples = StepDraws(steps.state.draws, lowered.shares, looked, fetches, changing)
    smoothing = smoothing_of(lowered)
    if isinstance(steps, VectorSteps):
        oracle: CompositionText | GradientText = CompositionText(lowered, steps, samples, smoothing)
    else:
        oracle = GradientText(lowered, steps, samples, smoothing)
    evaluation = EvaluationText(lowered, smoothing)
    record = SolverText(lowered=lowered, form=oracle.form, functions=chosen(lowered, projection))
    calls = "\n".join([oracle.text, evaluation.text, *oracle.prepared.lines, *evaluation.prepared.lines])
    texts = {
        name: modules.text(name, net)
        for name, net in lowered.bound.nets.items()
        if not lowered.problem.nets[name].frozen or f"net_{name}(" in calls
    }
    staying, kinds = sections.staying(lowered), sections.wrappers(lowered, texts)
    kind = {"finishing": lowered.plan.polish, "mapped": bool(staying), "ranks": lowered.shares is not None}
    main = report(
        solve=lowered.plan.algorithm_record.solve.__name__,
        device=_asked(lowered, "device", "cpu"),
        backend=_asked(lowered, "backend", "eager"),
        run_class=record.form.run.__name__,
        fetched=bool(fetching.keys(lowered)),
        **kind,
    )
    classes, loop = record.classes(), record.loop()
    keeper = FileKeeper if lowered.shares is None else ranks.KeeperOfAll
    keeping = carried([keeper, keeper_of_run], [*loop, ranks.Ranks, *carried([ranks.whole_state])])
    of_model = [samples.text, smoothing.text, oracle.text, evaluation.text, record.text()]
    parts = [
        sections.constants(lowered, kinds),
        "# ---- settings: what steps go by, and how it changes from stage to stage",
        *map(source, classes),
        sections.settings(lowered, record.form.settings),
        sections.nets(lowered, texts, kinds),
        sections.data(lowered),
        preparing(
            "prepare",
            "Compute once what depends on the data alone.",
            oracle.prepared.statements("\n".join([*of_model, *evaluation.prepared.lines])),
        ),
        preparing(
            "prepare_full",
            "Compute once what full passes need from the data alone.",
            evaluation.prepared.statements("\n".join([*of_model, *oracle.prepared.lines])),
        ),
        sections.variables(lowered),
        samples.text,
        update(lowered, projection, [*classes, *loop]),
        smoothing.text,
        oracle.text,
        evaluation.text,
        "# ---- the loop: stages of steps, how far they have come, and the finish by full passes",
        *map(source, loop),
        sections.ranks(lowered, loop),
        record.text(),
        "# ---- checkpoints: the state of a run in a folder",
        *map(source, keeping),
        main,
    ]
    parts = [part for part in parts if part]
    envelopes = (s for s in lowered.centred if s.penalty is None)
    return Program(
        text="\n\n\n".join([sections.header(lowered), *map(source, helpers(parts)), *parts]) + "\n",
        data=sections.tensors(lowered, projection.arrays),
        layout=lowered.layout,
        penalties=lowered.normal.penalties,
        estimates={b.name: b for b in steps.state.buffers.values()} if isinstance(steps, BlockSteps) else {},
        smoothed={s.name: EnvelopeText.of(lowered, s) for s in envelopes},
        runtime=(*map(source, [*classes, *loop, *keeping]), main),
        shares=lowered.shares,
        modules={
            name: modules.KeptModule.of(
                lowered.bound.nets[name], input_shapes(lowered.bound, name), lowered.problem.nets[name].whole
            )
            for name, text in texts.items()
            if text is None
        },
    )


def _asked(lowered: Lowered, name: str, default: str) -> str:
    """The machine setting that the program was asked to use, or the default."""
    value = lowered.plan.options.get(name, ("auto", ""))[0]
    if value == "auto":
        return default
    return str(value)


def preparing(name: str, about: str, statements: list[str]) -> str:
    """The function that computes what others need of the data alone."""
    return function(name, about, [*statements, "return data"], "data")


def helpers(parts: Iterable[str]) -> list[Carried]:
    """The small functions that the parts of a program name and none of them defines."""
    offered = {
        name: f
        for module in (maps, support, sweep, raised, distances, ranks)
        for name, f in functions(module).items()
    }
    offered |= {"noise": distributions.noise, **distributions.programs(), **reductions.programs()}
    names, defined = (set().union(*each) for each in zip(*map(read, parts), strict=True))
    return [
        f for f in carried(f for name, f in offered.items() if name in names) if f.__name__ not in defined
    ]


def functions(module: ModuleType) -> dict[str, Carried]:
    """The module's own functions, in order."""
    return {
        name: f
        for name, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__
    }
