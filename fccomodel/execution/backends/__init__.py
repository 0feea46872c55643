"""The backends, which run the steps of a program: one file each, found by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from fccomodel.core import options, process
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.errors import not_a_word
from fccomodel.core.registry import records
from fccomodel.execution import errors
from fccomodel.execution.backends._base import Backend, Unfit

__all__ = ["AUTO", "Backend", "Unfit", "all", "check", "equip"]

#: The name that lets the program choose a backend.
AUTO = "auto"
#: The backend that needs no start.
EAGER = "eager"
#: The shortest run that a backend is started for, in times of its start-up.
SHORTEST_RUN = 2.0
#: How many times the eager steps another backend must make to be worth the change.
WORTHWHILE_GAIN = 1.25


@cache
def all() -> Mapping[str, Backend]:
    """Every backend by its name, in alphabetical order."""
    return records(__name__, Backend)


def check(name: Any, origin: str = options.KEYWORD) -> str:
    """The name of a backend, or ``auto``. Raises F0808 for another name."""
    if name != AUTO and name not in all():
        refuse(not_a_word("backend", name, origin, (AUTO, *all())))
    return str(name)


@dataclass(eq=False)
class Equipped:
    """The backend of a program: its name, and a sentence on it.

    If the steps of a run are known only once it has begun, ``auto`` chooses then, and both change.
    """

    name: str = EAGER
    said: str = ""

    def later(self, module: ModuleType, program: Any, device: str, dtype: Any, seconds: float) -> Callable:
        """The solver with a ``leaping`` that chooses a backend during a run of this many ``seconds``."""
        from fccomodel.execution.backends.steps.several import Several

        def leaping(solver: Any, step: float, share: float | None) -> tuple[Any, float, float]:
            """The solver with a backend, the seconds of a step by it, and those of its start."""
            room = seconds if share is None else share
            able = {k: one for k, one in all().items() if not one.missing(device)}
            if not any(_pays(one, step, step, room) for one in able.values()):
                return solver, step, 0.0
            # a thread of its own does not have the run's inference mode
            with process.own_randomness(), ThreadPoolExecutor(1) as thread:
                try:
                    several = thread.submit(Several.of, module, program, device, dtype).result()
                    calls = thread.submit(several.calls).result()
                except Unfit:
                    return solver, step, 0.0
                better = [name for name, one in able.items() if _pays(one, step, calls, room)]
                for name in sorted(better, key=lambda name: -_foreseen(able[name], step, calls, room)):
                    one = able[name]
                    try:
                        leap, note = thread.submit(one.leap, several).result()
                    except Unfit as unfit:
                        self.said = self.said or _unfit(name, unfit)
                        continue
                    many = (
                        f"some {_foreseen(one, step, calls, room):.2g} steps by counted work, not "
                        f"{room / step:.2g} eager ones"
                    )
                    self.name, self.said = name, f"{note}: {many}"
                    return replace(solver, leap=leap), _step(one, step, calls), one.start
            return solver, step, 0.0

        return leaping


def equip(
    name: str,
    module: ModuleType,
    program: Any,
    *,
    device: str,
    dtype: Any,
    iterations: int | None,
    seconds: float | None = None,
) -> Equipped:
    """Put a backend into a program's loop.

    ``auto`` takes the backend that saves most time in a run of so many ``iterations``, or that makes
    most steps within so many ``seconds``, by counted work. It takes eager if neither is known, or if
    the other backend cannot run the steps. Raises F0818 if a backend asked for by name cannot.
    """
    from fccomodel.execution.backends.steps.several import Several

    equipment, asked = Equipped(), EAGER if name == AUTO and iterations is None else name
    if asked == EAGER:
        if name == AUTO and seconds is not None and hasattr(module.SOLVER, "leaping"):
            later = equipment.later(module, program, device, dtype, seconds)
            vars(module)["SOLVER"] = replace(module.SOLVER, leaping=later)
        return equipment
    try:
        several = Several.of(module, program, device, dtype)
        for asked in ranked(several, iterations or 0) if name == AUTO else (name,):
            if asked == EAGER:
                return equipment
            try:
                return _equipped(asked, several, module, device, iterations is None)
            except Unfit as unfit:
                if name != AUTO:
                    raise
                equipment.said = equipment.said or _unfit(asked, unfit)
    except Unfit as unfit:
        if name != AUTO:
            refuse(errors.not_run_by(name, str(unfit)))
        equipment.said = f"steps are eager: no other backend can take them ({unfit})"
    return equipment


def _equipped(name: str, several: Any, module: ModuleType, device: str, foreseeing: bool) -> Equipped:
    """Put a backend into a program's loop. Raises ``Unfit`` if it cannot run the steps.

    ``foreseeing``: the loop counts its steps by what they take with the backend.
    """
    one = all()[name]
    if missing := one.missing(device):
        raise Unfit(missing)
    leap, note = one.leap(several)
    equipped = several.equipped(leap)
    if foreseeing and one.share:
        calls = several.calls()
        equipped = replace(
            equipped, leaping=lambda solver, step, share: (solver, _step(one, step, calls), 0.0)
        )
    vars(module)["SOLVER"] = equipped
    return Equipped(name, note)


def _unfit(asked: str, unfit: Unfit) -> str:
    """A sentence on a backend that cannot take the steps."""
    return f"steps are eager: the {asked} backend cannot take them ({unfit})"


def equip_program(module: ModuleType, tensors: Any, asked: Any) -> None:
    """Put a backend into a program that runs by itself, as its command line asks (see ``equip``)."""
    import torch

    program = SimpleNamespace(text=Path(str(module.__file__)).read_text(), data=tensors, modules={})
    settings = {
        "device": asked.device,
        "dtype": getattr(torch, asked.precision),
        "iterations": asked.iterations,
    }
    try:
        equipment = equip(check(asked.backend, "--backend"), module, program, **settings)
    except FccoError as error:
        raise SystemExit(str(error)) from None
    print(equipment.said or f"steps by the {equipment.name} backend")


def ranked(several: Any, iterations: int) -> list[str]:
    """The backends that save time over ``iterations`` steps, best first, then eager.

    A backend saves a share of the calls of each step, less its start-up.
    """
    able = {name: one for name, one in all().items() if not one.missing(several.device)}
    calls = several.calls()
    saved = {name: one.share * calls * iterations - one.start for name, one in able.items()}
    worth_it = [name for name in saved if saved[name] > 0]
    return [*sorted(worth_it, key=lambda name: -saved[name]), EAGER]


def _step(one: Backend, step: float, calls: float) -> float:
    """Counted seconds of a step by a backend; ``calls`` are those of the eager step's calls."""
    return step - one.share * min(calls, step)


def _foreseen(one: Backend, step: float, calls: float, room: float) -> float:
    """Expected steps in ``room`` counted seconds; 0 if start-up would use too much of them."""
    if room >= SHORTEST_RUN * one.start:
        return (room - one.start) / _step(one, step, calls)
    return 0.0


def _pays(one: Backend, step: float, calls: float, room: float) -> bool:
    """Whether a backend makes enough more steps than eager to be worth the change."""
    return one.share > 0 and _foreseen(one, step, calls, room) > WORTHWHILE_GAIN * room / step
