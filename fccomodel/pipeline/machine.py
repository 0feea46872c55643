"""The device and the backend that options name, checked before anything runs: what is not there is
refused in every door."""

from __future__ import annotations

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.options import Origins, Unused


def at_hand(chosen: Origins) -> tuple[Origins, tuple[Unused, ...]]:
    """The options without those of the user's own defaults that this machine cannot follow, and these
    with the reason.

    Raises F0808 for a backend that there is not, F0809 for a device, F0818 for a backend that
    cannot run on the device.
    """
    aside: list[Unused] = []
    for name in ("device", "backend"):
        if name not in chosen:
            continue
        value, origin = chosen[name]
        try:
            _check(name, chosen)
        except FccoError as error:
            if origin != options.USER:
                raise
            aside.append(Unused(name, value, origin, f"{error.diagnostics[0].message}."))
            chosen = {key: entry for key, entry in chosen.items() if key != name}
    return chosen, tuple(aside)


def _check(name: str, chosen: Origins) -> None:
    """That the device is there, or that the backend runs on it."""
    device = options.pick_device(chosen.get("device", ("auto", ""))[0])
    if name == "device":
        return
    from fccomodel.execution import backends, errors

    asked = backends.check(*chosen["backend"])
    if asked != backends.AUTO and (missing := backends.all()[asked].missing(device)):
        refuse(errors.not_run_by(asked, missing))
