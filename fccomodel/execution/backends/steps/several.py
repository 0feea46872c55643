"""Several steps of a program's loop as one pure function of arrays, which backends compile or capture.

The function calls the program's own ``advance`` once per step. Numbers that change from step to
step (step sizes, weights of estimates, smoothing) become entries of an array, and functions of
numbers take arrays of one entry.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fccomodel.algorithms.runtime.loops.steps import adam_step, swept_adam_step
from fccomodel.core.work import Rates, priced
from fccomodel.execution.backends._base import Unfit

#: Steps of one call.
STEPS = 4
#: The entries of a step's row after the settings: whether it is the first or the last of the
#: batches at one w, and the number of these batches.
FLAGS = ("first", "last", "together")
#: Arrays of a state that move with each of the batches at one w.
APART = {"w_prev", "sum"}
#: The largest number of phases: steps that differ by the numbers beside their arrays.
LARGEST_ROUND = 12
Tensors = dict[str, torch.Tensor]


def tensors(space: SimpleNamespace) -> Tensors:
    """The tensors of a namespace, sorted by name; those of inner namespaces as ``outer.inner``."""
    by_name: Tensors = {}
    for name, x in sorted(vars(space).items()):
        if isinstance(x, torch.Tensor):
            by_name[name] = x
        elif isinstance(x, SimpleNamespace):
            by_name |= {f"{name}.{inner}": y for inner, y in tensors(x).items()}
    return by_name


def holding(space: SimpleNamespace, arrays: Mapping[str, torch.Tensor]) -> SimpleNamespace:
    """The namespace with other tensors in place of its own, named as by ``tensors``."""
    record = SimpleNamespace(**{**vars(space), **{name: x for name, x in arrays.items() if "." not in name}})
    for outer, inside in ((name, x) for name, x in vars(space).items() if isinstance(x, SimpleNamespace)):
        parts = {
            name.removeprefix(f"{outer}."): x for name, x in arrays.items() if name.startswith(f"{outer}.")
        }
        setattr(record, outer, holding(inside, parts))
    return record


def numbers(space: SimpleNamespace) -> dict[str, Any]:
    """The entries of a namespace that are neither tensors nor namespaces."""
    return {name: x for name, x in vars(space).items() if not isinstance(x, torch.Tensor | SimpleNamespace)}


def counts(space: SimpleNamespace) -> dict[str, Any]:
    """The numbers of a state, without the count of batches met at one w."""
    return {name: x for name, x in sorted(numbers(space).items()) if name != "met"}


@dataclass(eq=False, kw_only=True)
class Several:
    """The steps of a program (``module``) on the arrays of a run.

    data, state  as in the run's loop, with estimates ``u``, centres ``c`` and settings ``h``
    batches      a minibatch for each step
    after        the state's numbers after the steps; None if they must not change
    """

    module: ModuleType
    text: str
    device: str
    dtype: torch.dtype
    data: SimpleNamespace
    state: SimpleNamespace
    u: SimpleNamespace
    c: SimpleNamespace
    h: Any
    batches: list[Sequence[torch.Tensor]]
    after: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.moving(self.state, self.state.w)

    @classmethod
    def of(cls, module: ModuleType, program: Any, device: str, dtype: torch.dtype) -> Several:
        """The steps at the beginning of a run. Raises ``Unfit`` if they are not a function of arrays."""
        solver = module.SOLVER
        if not hasattr(solver, "advance"):
            raise Unfit("its loop estimates all inner expectations as one vector")
        if program.modules:
            raise Unfit("a net is at hand as a module of Python alone, without a text")
        if getattr(module, "MAPPED", None):
            raise Unfit("its rows stay in their files")
        rng, h = torch.Generator(device=device).manual_seed(0), solver.settings()
        with torch.no_grad():  # what is made under ``inference_mode`` cannot be traced
            data = solver.prepare(solver.as_namespace(dict(program.data), device, dtype))
            w = solver.start(rng, device, dtype)
            state = SimpleNamespace(w=w, w_prev=w.clone(), met=0)
            solver.step_sizes(h, lambda *_, **__: 1e-3)
            h.peak = h.eta
            solver.begin(state, h)
            u, c = solver.buffers(device, dtype), solver.centres(device, dtype)
            parts = [part.unbind() for part in solver.draw(data, rng, STEPS)]
        batches: list[Sequence[torch.Tensor]]
        if parts:
            batches = list(zip(*parts, strict=True))
        else:
            batches = [()] * STEPS
        steps = cls(
            module=module,
            text=program.text,
            device=device,
            dtype=dtype,
            data=data,
            state=state,
            u=u,
            c=c,
            h=h,
            batches=batches,
        )
        if any(x is None for x in vars(state).values()):  # the first step makes arrays that later ones find
            steps.state = steps.after_one()
        return steps

    @property
    def solver(self) -> Any:
        """The record of the program's steps; Adam's with operations that take arrays for numbers."""
        record = self.module.SOLVER
        if record.update.__name__ == swept_adam_step.__name__:
            return replace(record, update=adam_step)
        return record

    @property
    def settings(self) -> list[str]:
        """The names of the numeric settings of the steps."""
        return [name for name, value in vars(self.h).items() if isinstance(value, float)]

    @property
    def numbers(self) -> int:
        """The number of entries in a step's row."""
        return len(self.settings) + len(FLAGS)

    @property
    def pooled(self) -> bool:
        """Whether several batches may move w together."""
        return "together" in self.module.SOLVER.advance.__code__.co_names

    @property
    def nets(self) -> list[tuple[dict[str, Any], str]]:
        """The places of the nets' buffers: arrays that are not parameters."""
        modules = [
            net.module
            for net in vars(self.module).values()
            if isinstance(getattr(net, "module", None), torch.nn.Module)
        ]
        parts = [part._buffers for net in modules for part in net.modules()]
        return [(buffers, name) for buffers in parts for name, x in buffers.items() if x is not None]

    @property
    def sets(self) -> list[str]:
        """The names of the arrays of sets and proximal maps that the start was projected by."""
        w = self.state.w
        set_keys = (key for key in getattr(self.module, "INITIAL", ()) if isinstance(key, tuple))
        return sorted(name for name, device, dtype in set_keys if (device, dtype) == (w.device, w.dtype))

    def calls(self) -> float:
        """Counted seconds of the calls of one step. Raises ``Unfit`` if the step fails."""
        return priced(self.after_one)[1] - priced(self.after_one, Rates(call=0.0))[1]

    def after_one(self) -> SimpleNamespace:
        """The state after a step of the loop, on copies. Raises ``Unfit`` if the step fails.

        The loop itself then reports the failure in the model's terms.
        """
        state, u, c = map(self.module.copy_state, (self.state, self.u, self.c))
        try:
            with self.module.no_grad():
                solver, batch = self.module.SOLVER, self.batches[0]
                solver.advance(solver, self.data, state, u, c, batch, self.h.copy())
        except (ArithmeticError, RuntimeError) as error:
            raise Unfit(f"its step fails: {error}") from None
        return state

    @cached_property
    def arrays(self) -> set[str]:
        """The names of the arrays that steps find in a state."""
        return tensors(self.state).keys() - APART

    def takes(self, state: SimpleNamespace) -> bool:
        """Whether a state has the arrays that steps find; a run's first step makes some of them."""
        return tensors(state).keys() - APART == self.arrays

    def equipped(self, leap: Any) -> Any:
        """The record for the loop, with the function that takes several steps at once."""
        return replace(self.module.SOLVER, leap=leap)

    # -------------------------------------------------------------------------------- its arguments
    def fixed(self, data: SimpleNamespace) -> list[torch.Tensor]:
        """The arguments that stay the same throughout a run."""
        sets = [self.module.alike(self.module.INITIAL, key, self.state.w) for key in self.sets]
        return [*tensors(data).values(), *(held[name] for held, name in self.nets), *sets]

    def moving(self, state: SimpleNamespace, average: torch.Tensor) -> list[torch.Tensor]:
        """The arguments that come back as results."""
        if self.pooled and not hasattr(state, "sum"):
            state.sum = torch.zeros_like(state.w)
        return [*tensors(state).values(), average]

    def kept(self, u: SimpleNamespace, c: SimpleNamespace) -> list[torch.Tensor]:
        """The arguments that change in place."""
        return [*tensors(u).values(), *tensors(c).values()]

    def example(self) -> list[torch.Tensor]:
        """The arguments at the beginning of a run."""
        steps = len(self.batches)
        rows = torch.ones(steps, self.numbers, device=self.device, dtype=self.dtype)
        weights = torch.zeros(steps, device=self.device, dtype=self.dtype)
        samples = [part for batch in self.batches for part in batch]
        fixed = self.fixed(self.data)
        moving = self.moving(self.state, self.state.w.clone())
        estimates_and_centres = self.kept(self.u, self.c)
        return [*fixed, *moving, *estimates_and_centres, rows, weights, *samples]

    def beginning(self, before: Mapping[str, Any]) -> Several:
        """The steps with other initial numbers beside the arrays; ``after`` will have the final numbers."""
        return replace(self, state=SimpleNamespace(**{**vars(self.state), **before}), after={})

    def phases(self) -> tuple[list[dict[str, Any]], list[int]]:
        """The phases: the numbers that steps begin with, until they repeat; and the phase after each.

        Raises ``Unfit`` if there are more than ``LARGEST_ROUND``.
        """
        counts_seen, following = [counts(self.state)], list[int]()
        while len(following) < len(counts_seen):
            one = replace(self, batches=self.batches[:1]).beginning(counts_seen[len(following)])
            with torch.inference_mode(False), torch.no_grad():
                one(*apart(one.example(), len(one.fixed(one.data))), pooled=False)
            if (after := counts(SimpleNamespace(**(one.after or {})))) not in counts_seen:
                counts_seen.append(after)
            following.append(counts_seen.index(after))
            if len(counts_seen) > LARGEST_ROUND:
                raise Unfit("its steps count rounds that are long")
        return counts_seen, following

    # --------------------------------------------------------------------------------- the function
    def __call__(self, *given: torch.Tensor, pooled: bool = True) -> list[torch.Tensor]:
        """The state after the steps, and the average of iterates. Estimates and centres change in place.

        given   ``fixed``, ``moving``, ``kept``, a row of numbers per step, the weights of the iterates
                in the average, and the minibatches, step by step
        pooled  several batches may move w together; otherwise each moves it by itself
        """
        left = list(given)

        def taken(names: Collection[Any]) -> list[torch.Tensor]:
            """The next arguments, one for each name."""
            values, left[:] = left[: len(names)], left[len(names) :]
            return values

        def space(of: SimpleNamespace) -> SimpleNamespace:
            """A namespace with the same names for the next arguments."""
            names = tensors(of)
            return holding(of, dict(zip(names, taken(names), strict=True)))

        data = space(self.data)
        buffers = taken(self.nets)
        sets = dict(zip(self.sets, taken(self.sets), strict=True))
        state = space(self.state)
        copies = {name: x.clone() for name, x in tensors(state).items()}
        state = holding(state, copies)
        (average,) = taken(["average"])
        kept = list(left)
        u = space(self.u)
        c = space(self.c)
        (rows,) = taken(["rows"])
        (weights,) = taken(["weights"])
        with torch.no_grad(), in_numbers(self, buffers, sets):
            for row, weight in zip(rows.unbind(), weights.unbind(), strict=True):
                batch = taken(self.batches[0])
                self.step(data, state, u, c, batch, row.unbind(), pooled and self.pooled)
                average = average.lerp(state.w, weight)
            if self.after is not None:
                self.after.update(numbers(state))
            for place, x in zip(kept, self.kept(u, c), strict=False):
                if x is not place:
                    place.copy_(x)
        return [*tensors(state).values(), average]

    def step(
        self,
        data: SimpleNamespace,
        state: SimpleNamespace,
        u: SimpleNamespace,
        c: SimpleNamespace,
        batch: Sequence[torch.Tensor],
        row: Sequence[torch.Tensor],
        pooled: bool,
    ) -> None:
        """Take one step: ``advance`` as if w moved after each batch.

        If more batches are to come at the same w, the state stays as before, except for their sum.
        Raises ``Unfit`` if the step changes settings, or counts.
        """
        flags = SimpleNamespace(**dict(zip(FLAGS, row[-len(FLAGS) :], strict=True)))
        h, before = self.h.copy(), numbers(state)
        vars(h).update(zip(self.settings, row, strict=False))
        settings = dict(vars(h))
        if pooled:
            clones = {name: x.clone() for name, x in tensors(state).items()}
        else:
            clones = {}
        expected = [*tensors(state)]
        vars(self.module)["together"] = lambda state, G, _: met(state, G, flags) if pooled else G
        self.solver.advance(self.solver, data, state, u, c, batch, h)
        changed = any(vars(h)[name] is not x for name, x in settings.items())
        if changed or len(vars(h)) != len(settings):
            raise Unfit("its steps change their own settings")
        if [*tensors(state)] != expected:
            raise Unfit("its steps keep arrays that are not there as they begin")
        if self.after is None and any(before.get(name) != x for name, x in numbers(state).items()):
            raise Unfit("its steps count rounds of their own")
        chosen = {
            k: torch.where(flags.last > 0, x, clones[k])
            for k, x in tensors(state).items()
            if k in clones.keys() - APART
        }
        vars(state).update(vars(holding(state, chosen)))


@torch.inference_mode(False)
def apart(arrays: Sequence[torch.Tensor], fixed: int) -> list[torch.Tensor]:
    """Copies of the arrays, except the ``fixed`` first ones, which nothing changes."""
    return [x if k < fixed else x.clone() for k, x in enumerate(arrays)]


def met(state: SimpleNamespace, G: torch.Tensor, flags: SimpleNamespace) -> torch.Tensor:
    """``together`` without branches: the mean gradient of the batches so far, of which only the last is
    used.
    """
    state.sum = torch.where(flags.first > 0, G, state.sum + G)
    return state.sum / flags.together


@contextmanager
def in_numbers(several: Several, buffers: Sequence[torch.Tensor], sets: Tensors) -> Iterator[None]:
    """Within this block a program's functions of numbers take arrays of one entry too.

    Its nets have these buffers, and its sets these arrays.
    """
    names, own = vars(several.module), [held[name] for held, name in several.nets]
    shims = {**SHIMS, "alike": lambda arrays, key, like: sets[key]}
    before = {name: names.get(name) for name in (*shims, "together")}
    used = [name for name in shims if name in names or hasattr(builtins, name)]
    names.update({name: shims[name] for name in used})
    try:
        for (held, name), x in zip(several.nets, buffers, strict=True):
            held[name] = x
        with NumberArrays():
            yield
    finally:
        for (held, name), x in zip(several.nets, own, strict=True):
            held[name] = x
        for name, was in before.items():
            names.pop(name, None)
            if was is not None:
                names[name] = was


def number(x: Any) -> bool:
    """Whether a value is an array that stands for a number."""
    return isinstance(x, torch.Tensor) and x.dim() == 0


def is_instance(x: Any, kinds: Any) -> bool:
    """``isinstance``, for which an array of one entry is a ``float`` too."""
    if kinds in (float, as_float):
        return number(x) or isinstance(x, float)
    return isinstance(x, kinds)


def as_float(x: Any) -> Any:
    """``float``, which leaves an array of one entry an array."""
    if isinstance(x, torch.Tensor):
        return x.reshape(())
    return float(x)


def extreme(of: Callable, clamped: str) -> Callable:
    """``min`` or ``max``, also for two arguments if one of them is an array of one entry."""

    def found(*args: Any, **given: Any) -> Any:
        """The smaller or larger argument."""
        if len(args) != 2 or not any(map(number, args)):
            return of(*args, **given)
        if number(args[0]):
            x, other = args
        else:
            x, other = args[::-1]
        return x.clamp(**{clamped: other})

    return found


def log_weight(x: Any) -> Any:
    """log x of a weight x >= 0; -inf at 0."""
    if isinstance(x, torch.Tensor):
        return x.log()
    if x > 0:
        return math.log(x)
    return -math.inf


#: Functions of numbers that take arrays of one entry too, by their names in a program.
SHIMS: dict[str, Callable] = {
    "isinstance": is_instance,
    "float": as_float,
    "min": extreme(min, "max"),
    "max": extreme(max, "min"),
    "log_weight": log_weight,
}


class NumberArrays(TorchFunctionMode):
    """A mode in which number arguments of torch's functions may be arrays of one entry."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        for name in ("alpha", "value"):
            if number(given.get(name)) and len(args) > 1:
                scaled = args[1] * given.pop(name)
                args = (args[0], scaled, *args[2:])
        clamps = getattr(func, "__name__", "").startswith("clamp")
        if clamps and any(map(number, (*args[1:], *given.values()))):
            clamped, *bounds = args
            args = (clamped, *(bound(x, clamped) for x in bounds))
            given = {name: bound(x, clamped) for name, x in given.items()}
        return func(*args, **given)


def bound(x: Any, like: torch.Tensor) -> Any:
    """A bound of ``clamp`` as an array: either all bounds are arrays or none is."""
    if isinstance(x, int | float):
        return torch.full((), x, device=like.device, dtype=like.dtype)
    return x
