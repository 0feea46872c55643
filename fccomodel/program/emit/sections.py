"""The sections of a solver that hold its constants, settings, nets, data and variables."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Collection, Mapping
from typing import Any

import torch

from fccomodel.algorithms.runtime import ranks as over
from fccomodel.algorithms.runtime.loops.settings import LoopSettings
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.options import working
from fccomodel.core.pages import expect
from fccomodel.core.quoting import comment, docstring, literal
from fccomodel.data.bound import mapped
from fccomodel.data.drawn import drawn
from fccomodel.data.net_costs import input_shapes
from fccomodel.evaluation.sets.mapped import MappedProducts, MappedTensor, Sums, in_memory
from fccomodel.program import errors, starts
from fccomodel.program.emit import fetching, flatnet, layers, modules
from fccomodel.program.emit.carried import Carried, carried, source
from fccomodel.program.emit.hooked import HookedNet
from fccomodel.program.emit.page import as_tensor, function
from fccomodel.program.emit.template import AS_NAMESPACE, IMPORTS, MAPPED, PASSING
from fccomodel.program.lower import BlockSteps, Lowered, LoweredSteps, VectorSteps
from fccomodel.program.operations.sources import variable
from fccomodel.structure.exchange import exchangeable

#: the share of the steps' work that looks at all rows take at most, where these are dear; and where
#: multipliers move only after looks
LOOKING = 0.1
LOOKING_AT_CONSTRAINTS = 0.15
#: the array of the first iterate, where it is given, and the beginning of the names of centres and
#: estimates; no net is called 0
START = "net_0"
PARAMETERS_HEAD = (
    "# the model's parameters; kinks of envelopes and factors of proximal maps may contain them too\n"
)


def header(lowered: Lowered) -> str:
    """The model, how it is solved, and the imports."""
    lines = lowered.problem.source.text.rstrip().split("\n")
    listing = "\n".join(f"  {k:>3}  {line}".rstrip() for k, line in enumerate(lines, 1))
    wrapped = (textwrap.wrap(line, 116, subsequent_indent="  ") for line in lowered.plan.summary)
    plan = "\n".join(f"  {line}" for lines in wrapped for line in lines)
    about = f"{lowered.problem.name}: a solver for\n\n{listing}\n\nHow it is solved\n\n{plan}\n\n"
    about += "\n".join(["Names in this file", "", *names(lowered)]) + "\n\n"
    return f'"""{docstring(about)}Run it beside its data:  python solver.py --help\n"""\n\n{IMPORTS}'


def names(lowered: Lowered) -> list[str]:
    """The table of names: what a step keeps, and what belongs to each smoothed function."""
    rows = [("w, w_prev", "all variables in one flat vector, and the same one step before")]
    rows += [("h", "the settings of a step"), ("G", "the stochastic gradient at w")]
    rows.append(("s_..., n_...", "the scores of a set or a sample by its name, and its number of elements"))
    blocks = isinstance(lowered.steps, BlockSteps)
    if blocks:
        if any(v.op is variable and v.attrs["previous"] for v in lowered.steps.state.graph.vals):
            rows.append(("..._prev", "a value at w_prev, on the batch of this step"))
        rows += [
            (f"u.{b.name}", f"the estimate of {comment(b.text, 90)}")
            for b in lowered.steps.state.buffers.values()
        ]
    else:
        rows.append(("u", "the estimate of F(w), the vector of the expectations"))
    for smoothed in lowered.centred:
        name = smoothed.name
        rows.append((name, comment(lowered.problem.text(smoothed.original), 90)))
        rows.append(("", f"envelope_{name} in its place, slope_{name} the gradient of that"))
        rows.append(
            ("", f"h.lam_{name} the smoothing parameter, c.{name} the centre: its multiplier, estimated")
        )
        if blocks and name in lowered.estimated:
            rows.append(("", f"u.{name} its argument, estimated"))
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {text}" for name, text in rows]


def constants(lowered: Lowered, kinds: Mapping[str, type]) -> str:
    """The constants of a run, which its command line may change."""
    plan, options = lowered.plan, lowered.plan.options
    seconds, iterations, calls = plan.budget
    run = {
        "SEED": options.get("seed", (0, ""))[0],
        "PRECISION": working(options.get("precision", ("float32", ""))[0]),
        "SECONDS": seconds,
        "ITERATIONS": iterations,
        "CALLS": calls,
        "PLANNED": None,
        **({"WAY": None, "PASSES": None, "TOL": options["tol"][0]} if plan.polish else {}),
        "THREADS": plan.threads,
        "SIGN": -1 if lowered.problem.objective.sense == "maximize" else 1,
        "DATA_FILE": "data.pt",
        "DATA_SHA256": None,
    }
    fixed = "\n".join(f"{name} = {literal(value)}" for name, value in run.items())
    by_autograd = {*kinds.values()} - {layers.LayeredNet, flatnet.FrozenNet} or moved(lowered)
    taped = by_autograd or isinstance(lowered.steps, VectorSteps)
    head = "# ---- constants of a run, unless its command line says otherwise"
    return f"{head}\n{fixed}\nno_grad = {'torch.no_grad' if taped else 'torch.inference_mode'}"


def settings(lowered: Lowered, base: type[LoopSettings]) -> str:
    """The class of the settings: those of a loop, with the values to begin with."""
    values = {
        **({"steady": True} if lowered.plan.steady else {}),
        **({"annealed": True} if lowered.plan.annealed else {}),
        **({"once": True} if lowered.plan.once else {}),
        **({"looking": looking(lowered)} if lowered.plan.thrifty else {}),
        **lowered.plan.hyper,
        **lowered.plan.algorithm_record.own,
        **{f"lam_{s.name}": lowered.plan.smoothing for s in lowered.normal.smoothed},
        "lam_inner": lowered.plan.inner_smoothing,
        **starts.settings(lowered),
    }
    lines = [f"    {name}: {type(value).__name__} = {literal(value)}" for name, value in values.items()]
    about = '    """The settings of the first step."""'
    return "\n".join(["@dataclass(kw_only=True)", f"class Settings({base.__name__}):", about, "", *lines])


def looking(lowered: Lowered) -> float:
    """The share of the steps' work that looks take at most."""
    if lowered.centred:
        return LOOKING_AT_CONSTRAINTS
    return LOOKING


def nets(lowered: Lowered, texts: modules.Texts, kinds: Mapping[str, type]) -> str:
    """The modules, each as a function of its parameters."""
    if not texts:
        return ""
    constructors = (
        modules.constructor(n, one, lowered.problem.nets[n].inputs, kinds[n]) for n, one in texts.items()
    )
    if None in texts.values():
        at_hand = [modules.AT_HAND]
    else:
        at_hand = []
    return "\n\n\n".join(
        [
            "# ---- nets: functions of their flat parameters and their inputs",
            source(flatnet.batched),
            source(flatnet.follow),
            *map(
                source, dict.fromkeys(base for kind in kinds.values() for base in reversed(kind.__mro__[:-1]))
            ),
            *at_hand,
            *constructors,
            *hooks(kinds),
        ]
    )


def hooks(kinds: Mapping[str, type]) -> list[str]:
    """The class for gradients by ``backward()``, and how it is put to use; steps do not need it."""
    names = [name for name, kind in kinds.items() if kind in (flatnet.FlatNet, layers.LayeredNet)]
    if not names:
        return []
    lines = [
        "# For gradients by backward(), with hooks as those of DistributedDataParallel, take away the `# `:",
        "# no_grad = torch.no_grad",
        *(
            f"# net_{n} = HookedNet(net_{n}, torch.nn.parallel.DistributedDataParallel(net_{n}.module))"
            for n in names
        ),
    ]
    return [source(HookedNet), "\n".join(lines)]


def wrappers(lowered: Lowered, texts: modules.Texts) -> dict[str, type]:
    """The classes by which steps call nets: ``LayeredNet`` needs no autograd."""
    return {name: _wrapper(lowered, name, text) for name, text in texts.items()}


def moved(lowered: Lowered) -> set[str]:
    """The nets that some formula applies to inputs that depend on variables."""
    return {
        node.net
        for node in lowered.normal.problem.expressions(ir.NetCall)
        if any(ir.variables_of(one) for one in node.inputs)
    }


def _wrapper(lowered: Lowered, name: str, text: tuple[str, str] | None) -> type:
    """The class by which steps call one net."""
    declared = lowered.problem.nets[name]
    if declared.frozen:
        return flatnet.FrozenNet
    if isinstance(lowered.steps, VectorSteps):
        return flatnet.FunctionalNet
    if lowered.plan.half:
        return flatnet.HalfNet
    plain = len(declared.inputs) == 1 and not declared.inputs[0].whole and name not in moved(lowered)
    if text and plain and layers.layered(lowered.bound.nets[name], input_shapes(lowered.bound, name)[0]):
        return layers.LayeredNet
    return flatnet.FlatNet


def data(lowered: Lowered) -> str:
    """The function that puts the arrays on a device."""
    declared = parameters(lowered)
    params = "\n    vars(data).update(PARAMETERS)" if declared else ""
    mapped_keys = staying(lowered)
    if mapped_keys:
        passing, mapping = (PASSING, MAPPED)
    else:
        passing, mapping = ("", "")
    head = f"{declared}\n" if declared else ""
    text = AS_NAMESPACE.format(
        count=len(lowered.data), declared=head, passing=passing, params=mapping + params
    )
    if not mapped_keys:
        return text
    return "\n\n\n".join(
        [
            *map(source, (expect, MappedTensor, in_memory, MappedProducts, Sums)),
            f"MAPPED = {literal(mapped_keys)}",
            text,
            *fetching.text(lowered),
        ]
    )


def parameters(lowered: LoweredSteps) -> str:
    """The numbers of the model's parameters by name, or an empty string if it has none."""
    numbers = sorted(lowered.steps.state.numbers.items())
    if not numbers:
        return ""
    return f"{PARAMETERS_HEAD}PARAMETERS = {literal(dict(numbers))}"


def sizes(lowered: LoweredSteps) -> list[str]:
    """Statements that give each variable its entries of w, and w its length."""
    return [
        "# the entries of each variable in w, from first to last, and its shape",
        f"LAYOUT = {literal(dict(lowered.layout))}",
        "DIMENSION = sum(last - first for first, last, _ in LAYOUT.values())",
    ]


def staying(lowered: Lowered) -> list[str]:
    """The keys of the arrays that stay in their files, or in what draws their rows."""
    return [key for key, array in lowered.data.items() if mapped(array)]


def tensors(lowered: Lowered, sets: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Arrays as tensors: those of the sets' projections, float64 numbers, int64 positions; and the
    nets' initial parameters."""
    arrays: dict[str, Any] = dict(sets)
    for key, array in lowered.data.items():
        arrays[key] = array if drawn(array) else as_tensor(array)
    if (w := starts.first(lowered)) is not None:
        arrays[START] = torch.from_numpy(w)
    arrays |= {
        f"{START}_c_{name}": torch.from_numpy(value) for name, value in starts.centres(lowered).items()
    }
    arrays |= {
        f"{START}_u_{name}": torch.from_numpy(value) for name, value in starts.estimates(lowered).items()
    }
    arrays |= {f"{START}_{name}": torch.from_numpy(value) for name, value in starts.moments(lowered).items()}
    if (pairs := starts.pairs(lowered)) is not None:
        arrays[f"{START}_pairs"] = torch.from_numpy(pairs)
    for name, net in lowered.bound.nets.items():
        if lowered.problem.nets[name].frozen:
            continue
        parameters = [p.detach().reshape(-1) for p in net.parameters()]
        arrays[f"net_{name}"] = torch.cat(parameters).to(torch.float64)
    return arrays


def variables(lowered: Lowered) -> str:
    """The place of each variable in w, the first iterate, and what steps keep for each block."""
    if isinstance(lowered.steps, BlockSteps):
        estimates = [buffers(lowered)]
    else:
        estimates = []
    parts = [start(lowered), *paired(lowered), *moments(lowered), *estimates, centres(lowered)]
    return "\n".join(
        [
            "# ---- variables: one flat vector w, and what steps keep beside it",
            *sizes(lowered),
            "",
            "",
            "\n\n\n".join(parts),
        ]
    )


def start(lowered: LoweredSteps) -> str:
    """The function that gives the first iterate."""
    if lowered.plan.start is not None:
        about = _about_start(lowered)
        lines = [f"w = {initial(START)}", "project(w, 0.0)", "return w"]
        return function("start", about, lines, "rng, device, dtype")
    lines = ["w = torch.zeros(DIMENSION, device=device, dtype=dtype)"]
    for name in lowered.layout:
        if (net := lowered.normal.variables[name].net) is not None:
            lines.append(f"first, last, _ = LAYOUT[{literal(name)}]")
            lines.append(f"w[first:last] = INITIAL[{literal(f'net_{net}')}].to(device=device, dtype=dtype)")
    apart = sorted(scattered(lowered))
    for name in apart:
        a, b, shape = lowered.layout[name]
        lines.append(
            f"w[{a}:{b}] = torch.randn({b - a}, generator=rng, device=device, dtype=dtype) * "
            f"{(b - a) ** -0.5:.3g}"
        )
    about = "The first iterate: zeros, moved into the simple sets; nets start from their own initial weights."
    if apart:
        about += " Rows that could change places start at random: steps never part equal ones."
    return function("start", about, [*lines, "project(w, 0.0)", "return w"], "rng, device, dtype")


def _about_start(lowered: LoweredSteps) -> str:
    """The docstring of ``start`` for a first iterate that is given."""
    start = lowered.plan.start
    if start is not None and start.declared:
        return "The first iterate, as the model says it, or with centres among the rows."
    return "The first iterate, as it was given: the point that another run came to."


def scattered(lowered: LoweredSteps) -> frozenset[str]:
    """The variables that start at random: those with rows alike, where equal rows may be a saddle."""
    if lowered.plan.convex:
        return frozenset()
    return exchangeable(lowered.problem) & lowered.layout.keys()


def initial(key: str) -> str:
    """The text of an array that a run begins with."""
    return f"INITIAL[{literal(key)}].to(device=device, dtype=dtype, copy=True)"


def paired(lowered: Lowered) -> list[str]:
    """The function that gives the pairs of a finish that another run kept, if there are any."""
    if starts.pairs(lowered) is None:
        return []
    about = "Changes of w and of the residual by which another run knew the curvature, with their products."
    lines = [f"s, y = INITIAL[{literal(f'{START}_pairs')}].to(device=device, dtype=torch.float64)"]
    return [
        function(
            "pairs",
            about,
            [*lines, "return [(a, b, float(a @ b)) for a, b in zip(s, y, strict=True)]"],
            "device",
        )
    ]


def moments(lowered: Lowered) -> list[str]:
    """The function that gives the running means of gradients that another run kept, if there are any."""
    names = starts.moments(lowered)
    if not names:
        return []
    about = "Running means of gradients (v) and of their squares (s) that another run ended with."
    entries = ", ".join(f"{literal(name)}: {initial(f'{START}_{name}')}" for name in names)
    return [function("moments", about, [f"return {{{entries}}}"], "device, dtype")]


def buffers(lowered: Lowered) -> str:
    """The function that gives the estimates that steps keep."""
    full, state = "torch.full({}, math.nan, device=device, dtype=dtype)", lowered.steps.state
    lines = ["u = SimpleNamespace()"]
    for buffer in state.buffers.values():
        lines += [f"# {comment(buffer.text, 110)}", f"u.{buffer.name} = {full.format(buffer.shape)}"]
    lines += [f"u.{name} = {full.format(state.centres[name])}" for name in lowered.estimated]
    lines += [f"u.{name} = {initial(f'{START}_u_{name}')}" for name in starts.estimates(lowered)]
    about = "Estimates u of the inner expectations, one per block; NaN until first seen."
    return function("buffers", about, [*lines, "return u"], "device, dtype")


def centres(lowered: Lowered) -> str:
    """The function that gives the centres of smoothing."""
    shapes = lowered.steps.state.centres.items()
    lines = [f"c.{name} = torch.zeros({shape}, device=device, dtype=dtype)" for name, shape in shapes]
    lines += [f"c.{name} = {initial(f'{START}_c_{name}')}" for name in starts.centres(lowered)]
    about = "Centres of the smoothing: estimates of the multipliers."
    return function("centres", about, ["c = SimpleNamespace()", *lines, "return c"], "device, dtype")


def ranks(lowered: Lowered, loop: Collection[Carried]) -> str:
    """The functions that ranks run together, around the loop's own functions.

    Raises F0616 for steps that consist of full passes only.
    """
    if lowered.shares is None:
        return ""
    algorithm = lowered.plan.algorithm_record
    functions = carried(algorithm.functions(lowered.plan.step, lowered.plan.pace).values())
    sampling = any("batch" in f.__code__.co_names for f in functions if inspect.isfunction(f))
    if isinstance(lowered.steps, VectorSteps) and not sampling:
        refuse(errors.nothing_to_share(algorithm.name, {"the rows": "its steps are passes over them"}))
    around = {
        "ending": "agreed(ending)",
        "priced": "by_rank_0(priced)",
        "to_the_end": "unhurried(to_the_end)",
        "within_memory": "unguarded(within_memory)",
        "finish": "led(finish)",
        "restore": "led(restore)",
    }
    if lowered.shares.owners:
        around |= {"take_steps": "wholly(take_steps, OWNERS)"}
    around |= {"solve": "joint(solve)"}
    names = [name for name in around if name in {f.__name__ for f in loop}]
    called = [
        f
        for f in vars(over).values()
        if inspect.isfunction(f) and f"{f.__name__}(" in "".join(around[n] for n in names)
    ]
    return "\n\n\n".join(
        [
            f"# ---- ranks: {comment(lowered.shares.sentence, 100)}",
            *map(source, carried([over.Ranks, over.joined, over.whole_state, *called], loop)),
            "\n".join(
                [
                    f"RANKS = Ranks()\nOWNERS = {literal(dict(lowered.shares.owners))}",
                    *(f"{n} = {around[n]}" for n in names),
                ]
            ),
        ]
    )
