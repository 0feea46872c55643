"""Whether the device and the backend that options name are there.

It is checked before anything runs, however a solve was started.
"""

from __future__ import annotations

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.options import Origins, Unused


def available(chosen: Origins) -> tuple[Origins, tuple[Unused, ...]]:
    """The options that this machine can follow, and those set aside, with the reason.

    Only an option from the user's configuration is set aside. Raises F0808 for an unknown backend,
    F0809 for a missing device, F0818 for a backend that cannot run on the device.
    """
    unused: list[Unused] = []
    for name in ("device", "backend"):
        if name not in chosen:
            continue
        value, origin = chosen[name]
        try:
            _check(name, chosen)
        except FccoError as error:
            if origin != options.USER:
                raise
            unused.append(Unused(name, value, origin, f"{error.diagnostics[0].message}."))
            chosen = {key: entry for key, entry in chosen.items() if key != name}
    return chosen, tuple(unused)


def _check(name: str, chosen: Origins) -> None:
    """Refuse a device that is not there, or a backend that does not run on the device."""
    device = options.pick_device(chosen.get("device", ("auto", ""))[0])
    if name == "device":
        return
    from fccomodel.execution import backends, errors

    backend = backends.check(*chosen["backend"])
    if backend == backends.AUTO:
        return
    missing = backends.all()[backend].missing(device)
    if missing:
        refuse(errors.not_run_by(backend, missing))
