"""What runs the steps of a program: one file per backend, found by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.errors import not_a_word
from fccomodel.core.registry import records
from fccomodel.solver import errors
from fccomodel.solver.backends._base import Backend, Unfit

__all__ = ["AUTO", "Backend", "Unfit", "all", "check", "equip"]

AUTO, EAGER = "auto", "eager"


@cache
def all() -> Mapping[str, Backend]:
    """Every backend by its name, in alphabetical order."""
    return records(__name__, Backend)


def check(name: Any, origin: str = options.KEYWORD) -> str:
    """The name of a backend, or ``auto``; F0808 for another."""
    if name != AUTO and name not in all():
        refuse(not_a_word("backend", name, origin, (AUTO, *all())))
    return str(name)


def equip(name: str, module: ModuleType, program: Any, *, device: str, dtype: Any, iterations: int | None) -> tuple[str, str]:
    """Puts a backend into a program's loop: its name, and a sentence on it. ``auto`` takes the one that saves most of the time of
    a run of so many ``iterations``, by counted work; eager where that is not known, and where the other cannot run the steps.

    Raises F0818 where the one that was asked for cannot.
    """
    from fccomodel.solver.backends._several import Several

    asked = EAGER if name == AUTO and iterations is None else name
    if asked == EAGER:
        return EAGER, ""
    try:
        several = Several.of(module, program, device, dtype)
        asked = _best(several, iterations or 0) if asked == AUTO else asked
        if asked == EAGER:
            return EAGER, ""
        if missing := all()[asked].missing(device):
            raise Unfit(missing)
        leap, said = all()[asked].leap(several)
    except Unfit as unfit:
        if name != AUTO:
            refuse(errors.not_run_by(asked, str(unfit)))
        return EAGER, f"steps are eager: the {asked} backend cannot take them ({unfit})"
    vars(module)["SOLVER"] = several.equipped(leap)
    return asked, said


def equip_program(module: ModuleType, tensors: Any, asked: Any) -> None:
    """``equip`` of a program that runs by itself, by its command line; it ends by the same errors."""
    import torch

    program = SimpleNamespace(text=Path(str(module.__file__)).read_text(), data=tensors, modules={})
    given = {"device": asked.device, "dtype": getattr(torch, asked.precision), "iterations": asked.iterations}
    try:
        chosen, said = equip(check(asked.backend, "--backend"), module, program, **given)
    except FccoError as error:
        raise SystemExit(str(error)) from None
    print(said or f"steps by the {chosen} backend")


def _best(several: Any, iterations: int) -> str:
    """The backend that saves most of the calls of ``iterations`` steps, less what it takes to start."""
    able = {name: one for name, one in all().items() if not one.missing(several.device)}
    saved = {name: one.share * several.calls() * iterations - one.start for name, one in able.items()}
    return max(saved, key=lambda name: (saved[name], name == EAGER))
