"""The types of the entries of ``result.json`` that are read back."""

from __future__ import annotations

from fccomodel.core.schema import (
    anything,
    by_name,
    count,
    either,
    flag,
    maybe,
    nested_numbers,
    number,
    record,
    several,
    text,
)

_NAMES = maybe(several(either(text, number)))
_AXES = several(lambda axis: isinstance(axis, list) and len(axis) == 2 and text(axis[0]) and _NAMES(axis[1]))
_CONSTRAINT = record(
    dict.fromkeys(("value", "multiplier", "complementarity", "left", "right"), maybe(number)),
    {"relation": text},
)
_OWN = record(
    {"multipliers": by_name(maybe(number))}, dict.fromkeys(("stationarity", "complementarity"), maybe(number))
)
_INTERVAL = record({"value": maybe(number), "half": maybe(number)}, {"holds": maybe(flag)})
_BINDING = record(
    {
        "spec": maybe(by_name(anything)),
        "data": by_name(maybe(text)),
        "params": by_name(nested_numbers),
        "nets": by_name(maybe(text)),
        "data_dir": maybe(text),
    }
)

#: The type of each entry.
ENTRIES = {
    "model": text,
    "model_hash": text,
    "algorithm": text,
    "theorem": maybe(text),
    "paper": maybe(text),
    "sense": text,
    "verdict": text,
    "solved": flag,
    "exact": flag,
    "advice": text,
    "status": text,
    "stopped": text,
    "objective": maybe(number),
    "epsilon": maybe(number),
    "wall_s": number,
    "seed": count,
    "iterations": count,
    "passes": count,
    "constraints": maybe(by_name(_CONSTRAINT)),
    "kkt": record(
        dict.fromkeys(("stationarity", "feasibility", "complementarity"), maybe(number))
        | {"own": maybe(_OWN)}
    ),
    "gap": maybe(record({"value": maybe(number), "bound": maybe(number), "how": text, "why": text})),
    "heldout": maybe(record({"objective": _INTERVAL, "constraints": by_name(_INTERVAL)})),
    "holdout": maybe(record({"given": either(text, number, by_name(text)), "rows": maybe(by_name(count))})),
    "params": by_name(nested_numbers),
    "values": by_name(anything),
    "options": by_name(record({"value": anything, "origin": text})),
    "versions": record({"fccomodel": text}),
    "source": record({"name": text, "text": text}),
    "binding": _BINDING,
    "sources": by_name(record({}, {"spec": anything, "origin": maybe(text), "rows": count})),
    "encoding": by_name(by_name(by_name(anything))),
    "sizes": by_name(count),
    "labels": by_name(several(text)),
    "axes": record({"variables": by_name(_AXES), "constraints": by_name(_AXES)}),
    "assumptions": by_name(record({"clause": text, "holds": flag, "standing": maybe(text), "why": text})),
    "rejected": by_name(several(text)),
    "practice": several(text),
    "unverified": several(text),
    "notes": several(text),
    "history": several(by_name(maybe(either(number, flag, text)))),
    "files": by_name(text),
}
#: The types of entries that earlier versions did not write.
LATER = {"answered_by": record({"method": text})}
