"""The options of a solve, each with its value and its origin.

A value given on the command line (or as a keyword argument) wins over the model's ``options`` block,
which wins over the user's configuration file. Options that nobody gave are chosen automatically.
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

#: Options by name: the value, and where it was given (COMMAND, KEYWORD, BLOCK, USER or AUTOMATIC).
Origins = dict[str, tuple[Any, str]]


class Budget(NamedTuple):
    """The resources that a run may use: seconds, iterations or oracle calls; None means no limit.

    An oracle call is one g_i(w; xi) at one point for one inner sample.
    """

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


#: The origins of a value.
COMMAND = "command line"
KEYWORD = "keyword argument"
BLOCK = "options block"
USER = "user configuration"
AUTOMATIC = "automatic"
#: The origins of a value that somebody gave.
GIVEN = (COMMAND, KEYWORD, BLOCK, USER)
#: Options about rows that the problem is not solved on.
ABOUT_NEW_ROWS = ("holdout", "margin", "population")
#: Seconds for solves on resampled rows (``population``), if nobody gives a time.
POPULATION_SECONDS = 60.0
#: Bits of the longest integer that an option may have (the largest float has 1,024).
LONGEST_INTEGER = 1_000
#: Values of ``device``, beside ``cuda:NUMBER``.
DEVICES = ("auto", "cpu", "cuda")
#: Values of ``precision``.
PRECISIONS = ("float32", "float64", "bfloat16")
#: The precision in which only nets run, in steps; all else is then in float32.
HALF = "bfloat16"
#: Precisions of stored vectors.
STORED = ("float32", "float64")
#: Options that take one of a few words, with these words.
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
#: The least number above 0.
ABOVE_ZERO = math.ulp(0.0)
#: Options that take a number: whether it is whole, its smallest and its largest value.
NUMBERS: dict[str, tuple[bool, float, float]] = {
    **dict.fromkeys(
        ("outer_batch", "inner_batch", "inner_steps", "epochs", "stage", "longest", "patience"),
        (True, 1, math.inf),
    ),
    **dict.fromkeys(("gamma", "beta", "beta_prime", "shrink"), (False, ABOVE_ZERO, 1)),
    **dict.fromkeys(("probe", "look"), (True, 1, math.inf)),
    **dict.fromkeys(
        ("gamma_prime", "eta", "gain", "theta", "inner_eta", "nu", "lam", "mu", "flat"), (False, 0, math.inf)
    ),
    **dict.fromkeys(("alpha_power", "beta_power", "matrix", "horizon", "pass_limit"), (False, 0, math.inf)),
    "restarts": (True, 0, 1),
    "starts": (True, 1, 1_000),
    "last": (True, 0, math.inf),
    "finer": (False, ABOVE_ZERO, 1),
    "values": (False, 1, math.inf),
    "fresh": (False, 0, 1),
    **dict.fromkeys(("eps", "rho", "tau", "epsilon", "warm", "tol"), (False, ABOVE_ZERO, math.inf)),
    "growth": (False, 1, math.inf),
}
#: Seconds of each unit of time that a budget may have.
UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def configuration_file() -> Path:
    """The user's configuration: ``$XDG_CONFIG_HOME/fccomodel/config.toml``, by default in ``~/.config``."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "fccomodel" / "config.toml"


def configuration(path: Path | None = None) -> dict[str, Any]:
    """The user's own defaults, from ``name = value`` lines of a TOML file; empty if there is no file.

    Raises FccoError (F0807) for a file that is not TOML, or has tables.
    """
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
    """Merge the three places where a value can be given; None counts as not given.

    Raises FccoError (F0808) for a value that its option does not take.
    """
    merged: Origins = {}
    for origin, values in ((USER, user), (BLOCK, block), (given_as, arguments)):
        for name, value in values.items():
            if value is not None:
                merged[name] = (check_value(name, writable(value), origin), origin)
    return merged


def writable(value: Any) -> Any:
    """A value that can be printed: a huge integer in words, any other value as it is.

    Python refuses to write the digits of very long integers.
    """
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return f"an integer of {value.bit_length():,} bits"
    return value


def value_of(text: str) -> Any:
    """An option's value: what JSON reads (numbers, true, false), or else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def check_value(name: str, value: Any, origin: str) -> Any:
    """The value in its own type, for options that do not belong to an algorithm; others pass unchanged.

    Raises FccoError (F0808) for a value that the option does not take.
    """
    if name == "seed":
        return _seed(value, origin)
    if name == "holdout" and not isinstance(value, str):
        return _share(
            name, value, origin, f"{name} is a condition on rows, or a share of them between 0 and 1"
        )
    if name == "margin":
        return _share(name, value, origin, f"{name} is a confidence between 0 and 1: 0.95")
    if name in NUMBERS:
        return _number(name, value, origin)
    if name == "budget":
        parse_budget(value, origin)
    if name == "population" and not isinstance(value, bool) and parse_budget(value, origin).seconds is None:
        kind = f"{name} is the time for answers on resampled rows: 60s"
        refuse(errors.not_in_range(name, value, origin, kind))
    _check_word(name, value, origin)
    return value


def working(precision: str) -> str:
    """The precision of weights, estimates and algebra in steps."""
    if precision == HALF:
        return "float32"
    return precision


def check_stored(dtype: Any) -> None:
    """Refuse what is no precision of stored vectors."""
    if dtype not in STORED:
        refuse(errors.not_a_word("dtype", dtype, KEYWORD, STORED))


def _check_word(name: str, value: Any, origin: str) -> None:
    """Refuse a value of an option that takes other words."""
    if name == "device" and not (isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value)):
        refuse(errors.not_a_word(name, value, origin, DEVICES))
    if name == "precision" and value not in PRECISIONS:
        refuse(errors.not_a_word(name, value, origin, PRECISIONS))
    if name in WORDS and value not in WORDS[name]:
        refuse(errors.not_a_word(name, value, origin, tuple(str(word).lower() for word in WORDS[name])))


def _number(name: str, value: Any, origin: str) -> float:
    """The number of an option, if it is whole or not and in the range that NUMBERS says."""
    whole, low, high = NUMBERS[name]
    number = _as_float(value)
    if not math.isfinite(number) or not low <= number <= high or (whole and not number.is_integer()):
        if whole:
            kind = f"{name} is a whole number"
        else:
            kind = f"{name} is a number"
        if low == ABOVE_ZERO:
            kind += " above 0"
        else:
            kind += f" of at least {low:g}"
        if math.isfinite(high):
            kind += f" and at most {high:g}"
        refuse(errors.not_in_range(name, value, origin, kind))
    if whole:
        return int(number)
    if isinstance(value, int | float):
        return value
    return number


def _as_float(value: Any) -> float:
    """A number of any type as a float; NaN for anything else, and for a number too large for a float."""
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
    """A seed that every random generator takes: 0 .. 2^63 - 1."""
    whole = isinstance(value, Integral | float) and not isinstance(value, bool) and value == value // 1
    if not whole or not 0 <= value < 2**63:
        refuse(errors.not_a_seed(value, origin))
    return int(value)


def parse_budget(value: Any, origin: str = KEYWORD) -> Budget:
    """The budget that a text states: ``60s``, ``2m``, ``1h``, ``5000it``, ``1e6oracles``; None is no limit.

    Raises FccoError (F0808) for any other text.
    """
    if value is None:
        return Budget()
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*(ms|s|m|min|h|it|oracles)\s*", str(value))
    if match:
        amount, unit = float(match[1]), match[2]
        if unit in UNITS and 0 < amount < math.inf:
            return Budget(seconds=amount * UNITS[unit])
        if unit not in UNITS and 1 <= amount < math.inf and amount == int(amount):
            if unit == "it":
                return Budget(iterations=int(amount))
            return Budget(oracles=amount)
    refuse(errors.not_a_budget(value, origin))


def pick_device(name: str) -> str:
    """A device of torch: ``auto`` becomes ``cuda`` if there is a GPU, else ``cpu``.

    Raises FccoError (F0809) for a GPU that does not exist.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "cpu"
    if name.startswith("cuda"):
        number = int(name.partition(":")[2] or 0)
        if torch.cuda.is_available():
            count = torch.cuda.device_count()
        else:
            count = 0
        if number >= count:
            refuse(errors.no_device(name, count))
    return name
