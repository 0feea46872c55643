"""The identity of a run: names and values that must be equal in a run that continues from a checkpoint."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from typing import Any

from fccomodel.core import options
from fccomodel.core.version import __version__
from fccomodel.data.bound import Bound
from fccomodel.execution.checkpoints import digest

#: Names in a program that say how long it runs.
BUDGET_NAMES = {"SECONDS", "ITERATIONS", "CALLS", "PLANNED", "WAY", "PASSES"}
#: Options that are part of the identity, given or not.
ALWAYS = ("seed", "device", "precision")
#: Options that change nothing of a run; ``algorithm`` is taken from the plan.
NEVER = {"budget", "ranks", "algorithm", *options.ABOUT_NEW_ROWS}
#: The longest parameter that is written as its numbers, in entries.
LONGEST_WRITTEN = 8


def identity(
    bound: Bound,
    data: Mapping[str, Any],
    *,
    text: str = "",
    model: str,
    algorithm: str,
    chosen: options.Origins,
) -> dict[str, Any]:
    """Version, model, parameters, options, data and the program without its budget, by name.

    data    the data that the run reads, by name
    text    the program for one process, if one is emitted
    model   the hash of the model's text
    chosen  the options of the run with their origins
    """
    settings = {
        name: entry[0] for name, entry in chosen.items() if name in ALWAYS or entry[1] in options.GIVEN
    }
    known = {"fccomodel": __version__, "model": model, **parameters(bound)}
    known |= {f"option {name}": value for name, value in sorted(settings.items()) if name not in NEVER}
    known |= {"algorithm": algorithm}
    known |= {f"data {name}": digest(value) for name, value in sorted(data.items())}
    return {**known, "program": _program_hash(text)}


def parameters(bound: Bound) -> dict[str, Any]:
    """The values of the params; a hash of long ones."""
    values = sorted(bound.params.items())
    return {f"param {name}": x.tolist() if x.size <= LONGEST_WRITTEN else digest(x) for name, x in values}


def _program_hash(text: str) -> str:
    """A hash of the program without its budget and its comments."""
    tree = ast.parse(text)
    tree.body = [s for s in tree.body[1:] if not isinstance(s, ast.Assign) or _name(s) not in BUDGET_NAMES]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _name(assignment: ast.Assign) -> str:
    """The name that is assigned to, or an empty text."""
    target = assignment.targets[0]
    if isinstance(target, ast.Name):
        return target.id
    return ""
