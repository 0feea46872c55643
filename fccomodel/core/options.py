"""How a problem is to be solved: every value with where it came from.

A value given on the command line (or as a keyword argument) wins over the model's ``options``
block, that over the user's configuration file, and what nobody gave is chosen automatically.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from fccomodel.core import errors
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.files import read_text

Origins = dict[str, tuple[Any, str]]


class Budget(NamedTuple):
    """What a run may use; None: as much as it likes. An oracle call is one g_i(w; xi) at one point for
    one inner sample."""

    seconds: float | None = None
    iterations: int | None = None
    oracles: float | None = None

    def __str__(self) -> str:
        if self.oracles is not None:
            return f"{self.oracles:g}oracles"
        if self.iterations is not None:
            return f"{self.iterations}it"
        return f"{self.seconds or 0:g}s"


class Unused(NamedTuple):
    """An option that somebody gave and that nothing uses, with the reason."""

    name: str
    value: Any
    origin: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.name} = {self.value} ({self.origin}) is not used: "
            f"{self.reason[:1].lower()}{self.reason[1:].rstrip('.')}"
        )


COMMAND, KEYWORD, BLOCK, USER, AUTOMATIC = (
    "command line",
    "keyword argument",
    "options block",
    "user configuration",
    "automatic",
)
GIVEN = (COMMAND, KEYWORD, BLOCK, USER)
#: options of solves about other rows than those solved on
ABOUT_NEW_ROWS = ("holdout", "margin", "population")
#: seconds for solves on resampled rows (``population``), if nobody gives their number
POPULATION_SECONDS = 60.0
#: Bits of the longest integer that an option may have: a float has 1,024.
LONGEST_INTEGER = 1_000
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("float32", "float64")
#: options that take one of a few words
WORDS: dict[str, tuple[Any, ...]] = {
    "schedule": ("practical", "theory", "decay"),
    "unverified": (True, False),
    "polish": (True, False),
    "ranks": (True, False),
    "sampling": ("epochs", "iid"),
    "inner_sampling": ("shared", "per_block"),
    "draws": ("shared", "separate"),
    "gradient_batch": ("fresh", "same"),
}
ABOVE_ZERO = math.ulp(0.0)  # the least number above 0
#: what an algorithm's number may be: whole or not, from, to
NUMBERS: dict[str, tuple[bool, float, float]] = {
    **dict.fromkeys(
        ("outer_batch", "inner_batch", "inner_steps", "epochs", "stage", "longest", "patience"),
        (True, 1, math.inf),
    ),
    **dict.fromkeys(("gamma", "beta", "beta_prime", "shrink"), (False, ABOVE_ZERO, 1)),
    **dict.fromkeys(("probe", "look"), (True, 1, math.inf)),
    **dict.fromkeys(
        ("gamma_prime", "eta", "gain", "theta", "inner_eta", "nu", "lam", "mu"), (False, 0, math.inf)
    ),
    **dict.fromkeys(("alpha_power", "beta_power", "matrix", "horizon", "pass_limit"), (False, 0, math.inf)),
    "restarts": (True, 0, 1),
    "last": (True, 0, math.inf),
    "finer": (False, ABOVE_ZERO, 1),
    "values": (False, 1, math.inf),
    "fresh": (False, 0, 1),
    **dict.fromkeys(("eps", "rho", "tau", "epsilon", "warm", "tol"), (False, ABOVE_ZERO, math.inf)),
    "growth": (False, 1, math.inf),
}
UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def configuration_file() -> Path:
    """``$XDG_CONFIG_HOME/fccomodel/config.toml``, by default under ``~/.config``."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "fccomodel" / "config.toml"


def configuration(path: Path | None = None) -> dict[str, Any]:
    """The user's own defaults, ``name = value`` lines of a TOML file; empty where there is none."""
    path = path or configuration_file()
    if not path.is_file():
        return {}
    try:
        values = tomllib.loads(read_text(path, kind="configuration"))
    except tomllib.TOMLDecodeError as error:
        raise FccoError([errors.configuration_not_toml(path, error)]) from None
    if tables := [name for name, value in values.items() if isinstance(value, dict)]:
        refuse(errors.configuration_table(path, tables[0]))
    return values


def resolve(
    arguments: Mapping[str, Any],
    block: Mapping[str, Any],
    user: Mapping[str, Any],
    *,
    given_as: str = COMMAND,
) -> Origins:
    """Merge the three places that a value can be given in; a value of None counts as not given."""
    merged: Origins = {}
    for origin, values in ((USER, user), (BLOCK, block), (given_as, arguments)):
        for name, value in values.items():
            if value is not None:
                merged[name] = (check_value(name, writable(value), origin), origin)
    return merged


def writable(value: Any) -> Any:
    """An integer that no float holds, in words, since Python refuses to write its digits; anything
    else as it is."""
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return f"an integer of {value.bit_length():,} bits"
    return value


def value_of(text: str) -> Any:
    """An option's value as JSON reads it (numbers, true, false), and otherwise the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def check_value(name: str, value: Any, origin: str) -> Any:
    """The value in its own type, for the options that do not belong to an algorithm; others pass
    unchanged."""
    if name == "seed":
        return _seed(value, origin)
    if name == "device" and not (isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value)):
        refuse(errors.not_a_word(name, value, origin, DEVICES))
    if name == "precision" and value not in PRECISIONS:
        refuse(errors.not_a_word(name, value, origin, PRECISIONS))
    if name in WORDS and value not in WORDS[name]:
        refuse(errors.not_a_word(name, value, origin, tuple(str(word).lower() for word in WORDS[name])))
    if name == "budget":
        parse_budget(value, origin)
    if name == "holdout" and not isinstance(value, str):
        return _share(
            name, value, origin, f"{name} is a condition on rows, or a share of them between 0 and 1"
        )
    if name == "margin":
        return _share(name, value, origin, f"{name} is a confidence between 0 and 1: 0.95")
    if name == "population" and not isinstance(value, bool) and parse_budget(value, origin).seconds is None:
        refuse(
            errors.not_in_range(name, value, origin, f"{name} is the time for answers on resampled rows: 60s")
        )
    if name in NUMBERS:
        return _number(name, value, origin)
    return value


def _number(name: str, value: Any, origin: str) -> float:
    """A number of the kind and in the range that the option has."""
    whole, low, high = NUMBERS[name]
    number = _as_float(value)
    if not math.isfinite(number) or not low <= number <= high or whole and not number.is_integer():
        if low == ABOVE_ZERO:
            least = "above 0"
        else:
            least = f"of at least {low:g}"
        kind = f"{name} is a {'whole ' if whole else ''}number {least}" + (
            f" and at most {high:g}" if math.isfinite(high) else ""
        )
        refuse(errors.not_in_range(name, value, origin, kind))
    if whole:
        return int(number)
    return value if isinstance(value, int | float) else number


def _as_float(value: Any) -> float:
    """A number of any type; NaN for anything else, and for what 64 bits do not hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _share(name: str, value: Any, origin: str, kind: str) -> float:
    """A number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        refuse(errors.not_in_range(name, value, origin, kind))
    return float(value)


def _seed(value: Any, origin: str) -> int:
    """A seed that every random generator used takes: 0 .. 2^63 - 1."""
    whole = isinstance(value, Integral | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not 0 <= value < 2**63:
        refuse(errors.not_a_seed(value, origin))
    return int(value)


def parse_budget(value: Any, origin: str = KEYWORD) -> Budget:
    """``60s``, ``2m``, ``1h``; ``5000it`` iterations; ``1e6oracles``; None is no limit."""
    if value is None:
        return Budget()
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*(ms|s|m|min|h|it|oracles)\s*", str(value))
    if match:
        amount = float(match[1])
    else:
        amount = 0.0
    amount = amount if math.isfinite(amount) else 0.0
    if match and match[2] in ("it", "oracles") and amount == int(amount) and amount >= 1:
        if match[2] == "it":
            return Budget(iterations=int(amount))
        return Budget(oracles=amount)
    if match and match[2] in UNITS and amount > 0:
        return Budget(seconds=amount * UNITS[match[2]])
    refuse(errors.not_a_budget(value, origin))


def pick_device(name: str) -> str:
    """``auto`` as ``cuda`` where there is one; a GPU asked for by name must be there."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda"):
        number = int(name.partition(":")[2] or 0)
        if not torch.cuda.is_available() or number >= torch.cuda.device_count():
            if torch.cuda.is_available():
                count = torch.cuda.device_count()
            else:
                count = 0
            refuse(errors.no_device(name, count))
    return name
