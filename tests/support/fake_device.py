"""Emitted programs on a device that is not there: its tensors are fake, with shapes and a device of
their own, and no numbers.

A tensor left on the host fails where it meets others, within a step at once; so do numbers that the
host reads or sends there, and shapes that go by numbers. Elsewhere a read number is made up, and
noted by the function of the program that reads it. The device is torch's for backends that others
add, so that gradients are those of autograd, and no build for a GPU is needed; a process that has
it should do nothing else.

    python tests/support/fake_device.py 'NAME' 'NAME|LINE'...

prints a line of JSON for each case of ``emitted_models``, or of one with a line more at the end of
its gradient.
"""

from __future__ import annotations

import json
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode

from fccomodel.execution.backends import Unfit, cuda_graph
from fccomodel.execution.backends.steps.several import Several

#: Functions of a program within which nothing may be read, nor be on the host: the parts of a step.
STEP = ("draw", "gradient", "inner", "inner_full", "outer", "outer_part", "project")
#: Functions within a step that wait for a number all the same, and why.
WAITS = {
    "accelerated_step": "APG's line search, by passes over all rows: the values decide how far it goes",
    "linearised_step": "the line search of the prox-linear method, by passes over all rows",
    "subproblem": "its subproblem, solved until the gradient is small",
    "weight": "ICPPAC's step size goes by the sum of the multipliers, and so do the proximal maps, which "
    "take it as a number",
    "multiplier": "ICPPAC adds the squared distance to the centre to each constraint, up to the middle "
    "between its ends",
}
#: Operations whose result is a number on the host; of those that are True, a truth value.
READS = dict.fromkeys(("aten::_local_scalar_dense", "aten::item"), False)
READS |= dict.fromkeys(("aten::is_nonzero", "aten::equal", "aten::allclose"), True)
#: constructors that send numbers of Python to a device
SENDS = (torch.tensor, torch.as_tensor, torch.Tensor.new_tensor)
#: the device, and why it cannot be had, or ""
DEVICE = "pretend"
MISSING = (
    ""
    if hasattr(backend_registration, "_setup_privateuseone_for_python_backend")
    else "torch is older than 2.10"
)


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
    """A program's text by its file name, the numbers that its functions read, and the parts of steps
    that are running.

    ``caller``: the functions that asked for a gradient, which autograd makes in threads of its own;
    ``captured``: what runs is captured as a graph, all of it; ``uncaptured``: why no graph takes
    the steps.
    """

    text: str
    step: tuple[str, ...] = STEP
    reads: Counter[str] = field(default_factory=Counter)
    caller: list[str] = field(default_factory=list)
    captured: bool = False
    uncaptured: str = ""

    def names(self) -> list[str]:
        """Functions of the program that run, the innermost first."""
        own = [f"{frame.f_code.co_name}:{frame.f_lineno}" for frame in frames(self.text)]
        return [name for name in own or self.caller if name[0] not in "<_"]

    def read(self, what: str) -> None:
        """A number is read by the function that runs, which is none of a step's."""
        names = [name.partition(":")[0] for name in self.names()] or ["?"]
        if self.captured or (names[0] not in WAITS and any(name in self.step for name in names)):
            raise OnTheHost(f"{what} in {' < '.join(self.names()[:3])}")
        self.reads[names[0]] += 1

    def stepping(self) -> bool:
        """Whether a part of a step runs; arrays of sets move to the device once, as a start or a
        finish is projected."""
        names = [name.partition(":")[0] for name in self.names()]
        once = names[:1] == ["alike"] and not {"gradient", "advance"} & {*names}
        return self.captured or (any(name in self.step for name in names) and not once)

    def refuse(self, what: str) -> None:
        raise OnTheHost(f"{what} in {(self.names() or ['?'])[0]}")


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
            return (
                True
                if READS[name] or args[0].dtype == torch.bool
                else 0.5
                if args[0].is_floating_point()
                else 0
            )
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
                self.device.refuse(f"{name} with a tensor on the host")
        if self.device.captured and torch.Tag.nondeterministic_seeded in func.tags:
            self.device.refuse(f"random numbers ({name})")
        return result


class Sends(TorchFunctionMode):
    """Numbers of Python come to the device by way of the host, within a step not at all; who asks for
    a gradient is kept."""

    def __init__(self, device: Device):
        super().__init__()
        self.device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.autograd.grad:
            self.device.caller = self.device.names()
        if func in SENDS and not (func is torch.as_tensor and isinstance(args[0], torch.Tensor)):
            like = args[0] if func is torch.Tensor.new_tensor else torch.empty(0)
            at = torch.device(kwargs.pop("device", None) or like.device)
            if at.type != "cpu":
                if self.device.stepping():
                    self.device.refuse("numbers come from the host")
                if func is torch.Tensor.new_tensor:
                    args, kwargs = args[1:], {"dtype": like.dtype, **kwargs}
                return torch.tensor(*args, **kwargs).to(at)
            kwargs["device"] = at
        return func(*args, **kwargs)


@cache
def registered() -> None:
    """The device is there from now on."""
    backend_registration._setup_privateuseone_for_python_backend(DEVICE)


@contextmanager
def pretended(device: Device) -> Iterator[None]:
    """Tensors on the device are fake, random numbers need no generator there."""
    from torch._subclasses import FakeTensorMode

    registered()
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
        Sends(device),
    ):
        yield


def captured(solver: Any, tensors: Mapping[str, torch.Tensor], device: Device) -> None:
    """Some steps as the ``cuda-graph`` backend captures them, by batches that move w one by one and
    together."""
    program = types.SimpleNamespace(text="", data=tensors, modules=vars(solver).get("MODULES", {}))

    class Once:
        def __init__(self, work: Callable[[], None]):
            device.captured = True
            try:
                work()
            finally:
                device.captured = False

    try:
        several = Several.of(solver, program, DEVICE, torch.float32)
        given, first = several.example(), len(several.fixed(several.data))
        for pooled in {several.pooled, False}:
            call = cuda_graph.Captured(several, Once)
            call.captured(
                given[:first], given[first:], len(several.moving(several.state, several.state.w)), pooled
            )
    except Unfit as unfit:
        device.uncaptured = str(unfit)


def parts_of(
    solver: Any, tensors: Mapping[str, torch.Tensor], device: Device
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What a program does, by name; each part goes on from those before it."""
    made, on, dtype = solver.SOLVER, DEVICE, torch.float32
    now = types.SimpleNamespace()

    def prepared() -> None:
        now.data = made.prepare(made.as_namespace(tensors, on, dtype))
        now.full = made.prepare_full(made.as_namespace(tensors, on, torch.float64))
        now.rng, now.h = torch.Generator(device=on), made.settings()
        now.w, now.c = made.start(now.rng, on, dtype), made.centres(on, dtype)
        now.exact = now.w.double()

    def step() -> None:
        now.batch = [part[0] for part in now.parts]
        made.step_sizes(now.h, lambda **_: 0.1)
        now.u, state = made.buffers(on, dtype), types.SimpleNamespace(w=now.w, w_prev=now.w.clone())
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
            setattr(centre, name, torch.zeros(shape, device=on, dtype=torch.float64))
        made.whole(now.full, now.exact, centre, now.h)
        if made.finish is not None:
            made.all_blocks(now.full, now.exact)
            made.regulariser(now.exact)

    def run(**more: Any) -> None:
        now.found = made.solve(made, tensors, device=on, seconds=None, iterations=3, **more)

    yield "prepare", prepared
    yield "draw", lambda: setattr(now, "parts", made.draw(now.data, now.rng, 3))
    yield "step", step if hasattr(made, "advance") else vector
    yield "capture", lambda: captured(solver, tensors, device)
    yield "evaluate", lambda: (made.evaluate(now.full, now.exact), made.blocks(now.full, now.exact))
    yield "run", lambda: run(tol=1e-3)
    if made.whole is not None:
        yield "pass", whole
    if made.finish is not None:
        yield "finish", lambda: made.finish(made, now.found, now.found.exact, passes=6)
        yield "price", lambda: made.one_pass(made, now.found.exact, on)
    if made.restore is not None:
        yield "restore", lambda: made.restore(made, now.found, now.found.exact, passes=4)


def outcome(
    solver: Any, tensors: Mapping[str, torch.Tensor], text: str, last: str = ""
) -> tuple[dict[str, str], Device]:
    """What failed of each part, up to the ``last``, of a program that was compiled as the file
    ``text``; who reads numbers."""
    own = [
        part.__name__
        for part in (solver.SOLVER.update, getattr(solver.SOLVER, "advance", None))
        if part is not None
    ]
    device, said = Device(text=text, step=(*STEP, *own)), {}
    with pretended(device), solver.no_grad():
        fake = {name: torch.empty_like(x) for name, x in tensors.items()}
        for name, part in parts_of(solver, fake, device):
            try:
                part()
                said[name] = ""
            except Exception as error:
                said[name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                if name in ("prepare", "draw", "run"):  # what others go on from
                    break
            if name == last:
                break
    return said, device


def tried(name: str, line: str = "") -> dict[str, Any]:
    """The outcome of a case of ``emitted_models``, with a line more in its gradient."""
    from support.emitted_models import make

    program = make(name).program
    head, gradient, rest = program.text.partition("def gradient(")
    text = (
        program.text
        if not line
        else head + gradient + rest.replace("    return ", f"    {line}\n    return ", 1)
    )
    solver = types.ModuleType("solver")
    vars(solver)["MODULES"] = {kept: one.module for kept, one in program.modules.items()}
    exec(compile(text, "solver.py", "exec", dont_inherit=True), vars(solver))  # noqa: S102
    said, device = outcome(solver, dict(program.data), "solver.py", "step" if line else "")
    return {"said": said, "reads": device.reads, "uncaptured": device.uncaptured}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    for asked in sys.argv[1:]:
        print(json.dumps(tried(*asked.split("|"))), flush=True)
