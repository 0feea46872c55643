"""Emitted programs on a device that is not there: fake ``cuda`` tensors have shapes and devices, and no numbers.

A tensor left on the host fails where it meets others, within a step at once; so do numbers that the host reads there, and
shapes that go by numbers. Elsewhere a read number is made up, and noted by the function of the program that reads it. Nothing is
differentiated, since autograd wants a real device: a gradient is zero, and nets are run forward only.
"""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

#: Functions of a program within which nothing may be read, nor be on the host: the parts of a step.
STEP = ("draw", "gradient", "inner", "inner_full", "outer", "outer_part", "project")
#: Functions within a step that wait for a number all the same, and why.
WAITS = {
    "accelerated_step": "APG's line search, by passes over all rows: the values decide how far it goes",
    "linearised_step": "the line search of the prox-linear method, by passes over all rows",
    "subproblem": "its subproblem, solved until the gradient is small",
    "weight": "ICPPAC's step size goes by the sum of the multipliers, and so do the proximal maps, which take it as a number",
    "multiplier": "ICPPAC adds the squared distance to the centre to each constraint, up to the middle between its ends",
}
#: Operations whose result is a number on the host; of those that are True, a truth value.
READS = dict.fromkeys(("aten::_local_scalar_dense", "aten::item"), False)
READS |= dict.fromkeys(("aten::is_nonzero", "aten::equal", "aten::allclose"), True)
#: why fake cuda tensors cannot be had, or ""
MISSING = "" if torch.backends.cuda.is_built() else "torch has no CUDA build here"


class OnTheHost(Exception):
    """An operation that the host takes part in: what it is, and the line of the program."""


def frames(text: str) -> Iterator[types.FrameType]:
    """Those of a program, the innermost first."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == text:
            yield frame
        frame = frame.f_back


@dataclass
class Device:
    """A program's text by its file name, the numbers that its functions read, and the parts of steps that are running."""

    text: str
    step: tuple[str, ...] = STEP
    reads: Counter[str] = field(default_factory=Counter)

    def read(self, what: str) -> None:
        """A number is read by the function that runs, which is none of a step's."""
        names = [name for frame in frames(self.text) if (name := frame.f_code.co_name)[0] not in "<_"] or ["?"]
        if names[0] not in WAITS and any(name in self.step for name in names):
            raise OnTheHost(f"{what} in {' < '.join(names[:3])}, line {next(frames(self.text)).f_lineno}")
        self.reads[names[0]] += 1

    def stepping(self) -> bool:
        """Whether a part of a step runs; arrays of sets move to the device once, as a start or a finish is projected."""
        names = [frame.f_code.co_name for frame in frames(self.text)]
        return any(name in self.step for name in names) and (names[0] != "alike" or "gradient" in names or "advance" in names)


class Reads(TorchDispatchMode):
    """Answers what the host reads with True, 0 and 0.5, and refuses tensors on the host within a step."""

    def __init__(self, device: Device):
        super().__init__()
        self.device = device

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        if name in READS:
            if args[0].device.type != "cpu":
                self.device.read("a number is read")
            return True if READS[name] or args[0].dtype == torch.bool else 0.5 if args[0].is_floating_point() else 0
        if name in ("aten::nonzero", "aten::nonzero_numpy"):
            self.device.read("a shape depends on numbers")
            found = args[0].new_zeros((args[0].numel(), args[0].dim()), dtype=torch.long)
            return found if name == "aten::nonzero" else list(found.unbind(1))
        if name == "aten::index" and any(k is not None and k.dtype == torch.bool for k in args[1]):
            self.device.read("a shape depends on numbers")
            (mask,) = args[1]
            return args[0].flatten(0, mask.dim() - 1)
        result = func(*args, **(kwargs or {}))
        if self.device.stepping():
            held = [*args, *(result if isinstance(result, list | tuple) else [result])]
            held = [x for part in held for x in (part if isinstance(part, list | tuple) else [part])]
            if any(isinstance(x, torch.Tensor) and x.device.type == "cpu" for x in held):
                frame = next(frames(self.device.text))
                raise OnTheHost(f"{name} with a tensor on the host in {frame.f_code.co_name}, line {frame.f_lineno}")
        return result


class Undifferentiated(TorchFunctionMode):
    """No tensor asks for a gradient, and every gradient is zero."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.requires_grad_:
            return args[0]
        if func is torch.autograd.grad:
            asked, grads = args[1], args[2] if len(args) > 2 else None
            one = isinstance(asked, torch.Tensor)
            many = (len(grads),) if kwargs.get("is_grads_batched") else ()
            return tuple(x.new_zeros(many + tuple(x.shape)) for x in ([asked] if one else asked))
        return func(*args, **kwargs)


@contextmanager
def pretended(device: Device) -> Iterator[None]:
    """Tensors on ``cuda`` are fake, random numbers need no generator there."""
    from torch._subclasses import FakeTensorMode

    generator = torch.Generator

    class OfTheHost:
        def __new__(cls, device: Any = None) -> Any:
            return generator()

    def plain(function: Callable, *args: Any, **given: Any) -> Any:
        return function(*args)

    with (
        mock.patch.object(torch, "Generator", OfTheHost),
        mock.patch("torch.utils.checkpoint.checkpoint", plain),
        FakeTensorMode(allow_non_fake_inputs=True),
        Reads(device),
        Undifferentiated(),
    ):
        yield


def parts_of(solver: Any, tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a program does, by name; each part goes on from those before it."""
    made, device, dtype = solver.SOLVER, "cuda", torch.float32
    now = types.SimpleNamespace()

    def prepared() -> None:
        now.data = made.prepare(made.as_namespace(tensors, device, dtype))
        now.full = made.prepare_full(made.as_namespace(tensors, device, torch.float64))
        now.rng, now.h = torch.Generator(device=device), made.settings()
        now.w, now.c = made.start(now.rng, device, dtype), made.centres(device, dtype)
        now.exact = now.w.double()

    def step() -> None:
        now.batch = [part[0] for part in now.parts]
        made.step_sizes(now.h, lambda **_: 0.1)
        now.u, state = made.buffers(device, dtype), types.SimpleNamespace(w=now.w, w_prev=now.w.clone())
        made.begin(state, now.h)
        for _ in range(2):
            made.advance(made, now.data, state, now.u, now.c, now.batch, now.h)

    def vector() -> None:
        batch = [part[0] for part in now.parts]
        u = made.inner(now.data, now.w, batch, now.h)
        made.inner_full(now.data, now.w, now.h)
        made.outer(now.data, now.w, u, now.c, now.h)
        if made.outer_part is not None:
            made.outer_part(now.data, now.w, u, now.c, batch, now.h)
        made.project(now.w, 0.1)

    def whole() -> None:
        centre = types.SimpleNamespace(**{name: x.double() for name, x in vars(now.c).items()})
        for name, shape in made.inside.items():
            setattr(centre, name, torch.zeros(shape, device=device, dtype=torch.float64))
        made.whole(now.full, now.exact, centre, now.h)
        if made.finish is not None:
            made.all_blocks(now.full, now.exact)
            made.regulariser(now.exact)

    def run(**more: Any) -> None:
        now.found = made.solve(made, tensors, device=device, seconds=None, iterations=3, **more)

    yield "prepare", prepared
    yield "draw", lambda: setattr(now, "parts", made.draw(now.data, now.rng, 3))
    yield "step", step if hasattr(made, "advance") else vector
    yield "evaluate", lambda: (made.evaluate(now.full, now.exact), made.blocks(now.full, now.exact))
    yield "run", lambda: run(tol=1e-3)
    if made.whole is not None:
        yield "pass", whole
    if made.finish is not None:
        yield "finish", lambda: made.finish(made, now.found, now.found.exact, passes=6)
        yield "price", lambda: made.one_pass(made, now.found.exact, device)
    if made.restore is not None:
        yield "restore", lambda: made.restore(made, now.found, now.found.exact, passes=4)


def outcome(solver: Any, tensors: Mapping[str, torch.Tensor], text: str) -> tuple[dict[str, str], Counter[str]]:
    """What failed of each part of a program that was compiled as the file ``text``, "" where nothing did; who reads numbers."""
    own = [part.__name__ for part in (solver.SOLVER.update, getattr(solver.SOLVER, "advance", None)) if part is not None]
    device, said = Device(text=text, step=(*STEP, *own)), {}
    with pretended(device), solver.no_grad():
        fake = {name: torch.empty_like(x) for name, x in tensors.items()}
        for name, part in parts_of(solver, fake):
            try:
                part()
                said[name] = ""
            except Exception as error:
                said[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                if name in ("prepare", "draw", "run"):  # what others go on from
                    break
    return said, device.reads
