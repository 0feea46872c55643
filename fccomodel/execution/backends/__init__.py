"""What runs the steps of a program: one file per backend, found by itself."""

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

AUTO, EAGER = "auto", "eager"
#: steps for so many times what a backend needs to start are the least that it is started for
SHORTEST = 2.0
#: and so many times the eager steps are worth it
MORE = 1.25


@cache
def all() -> Mapping[str, Backend]:
    """Every backend by its name, in alphabetical order."""
    return records(__name__, Backend)


def check(name: Any, origin: str = options.KEYWORD) -> str:
    """The name of a backend, or ``auto``; F0808 for another."""
    if name != AUTO and name not in all():
        refuse(not_a_word("backend", name, origin, (AUTO, *all())))
    return str(name)


@dataclass(eq=False)
class Equipped:
    """What runs the steps of a program: the backend's name, and a sentence on it. Where a run's steps
    are known only once it has begun, ``auto`` chooses then, and both change."""

    name: str = EAGER
    said: str = ""

    def later(self, module: ModuleType, program: Any, device: str, dtype: Any, seconds: float) -> Callable:
        """``leaping`` of a run of so many ``seconds``: by counted work alone, so that the same command
        always takes the same."""
        from fccomodel.execution.backends.steps.several import Several

        def leaping(solver: Any, step: float, share: float | None) -> tuple[Any, float, float]:
            room, able = (
                seconds if share is None else share,
                {k: one for k, one in all().items() if not one.missing(device)},
            )
            if not any(_pays(one, step, step, room) for one in able.values()):
                return solver, step, 0.0
            with (
                process.own_randomness(),
                ThreadPoolExecutor(1) as thread,
            ):  # which has no inference mode of the run
                try:
                    several = thread.submit(Several.of, module, program, device, dtype).result()
                    calls = thread.submit(several.calls).result()
                except Unfit:
                    return solver, step, 0.0
                better = [name for name, one in able.items() if _pays(one, step, calls, room)]
                for name in sorted(better, key=lambda name: -_foreseen(able[name], step, calls, room)):
                    one = able[name]
                    try:
                        leap, said = thread.submit(one.leap, several).result()
                    except Unfit as unfit:
                        self.said = self.said or _unfit(name, unfit)
                        continue
                    many = (
                        f"some {_foreseen(one, step, calls, room):.2g} steps by counted work, not "
                        f"{room / step:.2g} eager ones"
                    )
                    self.name, self.said = name, f"{said}: {many}"
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
    """Puts a backend into a program's loop. ``auto`` takes the one that saves most of the time of a
    run of so many ``iterations``, or that makes most steps within so many ``seconds``, by counted
    work; eager where neither is known, and where the other cannot run the steps.

    Raises F0818 where the one that was asked for cannot.
    """
    from fccomodel.execution.backends.steps.several import Several

    found, asked = Equipped(), EAGER if name == AUTO and iterations is None else name
    if asked == EAGER:
        if name == AUTO and seconds is not None and hasattr(module.SOLVER, "leaping"):
            later = found.later(module, program, device, dtype, seconds)
            vars(module)["SOLVER"] = replace(module.SOLVER, leaping=later)
        return found
    try:
        several = Several.of(module, program, device, dtype)
        for asked in ranked(several, iterations or 0) if name == AUTO else (name,):
            if asked == EAGER:
                return found
            try:
                return _equipped(asked, several, module, device, iterations is None)
            except Unfit as unfit:
                if name != AUTO:
                    raise
                found.said = found.said or _unfit(asked, unfit)
    except Unfit as unfit:
        if name != AUTO:
            refuse(errors.not_run_by(name, str(unfit)))
        found.said = f"steps are eager: no other backend can take them ({unfit})"
    return found


def _equipped(name: str, several: Any, module: ModuleType, device: str, foreseeing: bool) -> Equipped:
    """A program's loop with a backend; ``foreseeing``: its steps are counted by what they take then.
    Unfit where it cannot."""
    one = all()[name]
    if missing := one.missing(device):
        raise Unfit(missing)
    leap, said = one.leap(several)
    equipped = several.equipped(leap)
    if foreseeing and one.share:
        calls = several.calls()
        equipped = replace(
            equipped, leaping=lambda solver, step, share: (solver, _step(one, step, calls), 0.0)
        )
    vars(module)["SOLVER"] = equipped
    return Equipped(name, said)


def _unfit(asked: str, unfit: Unfit) -> str:
    return f"steps are eager: the {asked} backend cannot take them ({unfit})"


def equip_program(module: ModuleType, tensors: Any, asked: Any) -> None:
    """``equip`` of a program that runs by itself, by its command line; it ends by the same errors."""
    import torch

    program = SimpleNamespace(text=Path(str(module.__file__)).read_text(), data=tensors, modules={})
    given = {"device": asked.device, "dtype": getattr(torch, asked.precision), "iterations": asked.iterations}
    try:
        found = equip(check(asked.backend, "--backend"), module, program, **given)
    except FccoError as error:
        raise SystemExit(str(error)) from None
    print(found.said or f"steps by the {found.name} backend")


def ranked(several: Any, iterations: int) -> list[str]:
    """The backends by what they save of the calls of ``iterations`` steps, less what they take to
    start; those that save any, and eager."""
    able = {name: one for name, one in all().items() if not one.missing(several.device)}
    calls = several.calls()
    saved = {name: one.share * calls * iterations - one.start for name, one in able.items()}
    return [*sorted((name for name in saved if saved[name] > 0), key=lambda name: -saved[name]), EAGER]


def _step(one: Backend, step: float, calls: float) -> float:
    """Counted seconds of a step, those of its ``calls`` among them, by a backend."""
    return step - one.share * min(calls, step)


def _foreseen(one: Backend, step: float, calls: float, room: float) -> float:
    """So many steps a backend makes in that many counted seconds; none where its start takes a large
    part of them."""
    if room >= SHORTEST * one.start:
        return (room - one.start) / _step(one, step, calls)
    return 0.0


def _pays(one: Backend, step: float, calls: float, room: float) -> bool:
    """It makes more steps than eager ones, by what is worth the change."""
    return one.share > 0 and _foreseen(one, step, calls, room) > MORE * room / step
