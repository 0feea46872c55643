"""What a run's checkpoints are of: names and values that must be the same where another goes on from them."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fccomodel.core import options
from fccomodel.core.version import __version__
from fccomodel.pipeline import emit
from fccomodel.pipeline.records import Planned

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound
    from fccomodel.execution.run import Keeper
    from fccomodel.program.emit import Program

#: names in a program that say how long it runs
BUDGET = {"SECONDS", "ITERATIONS", "CALLS", "PLANNED", "WAY", "PASSES"}
#: options of all runs, given or not; and those that change nothing of a run
ALWAYS, NEVER = ("seed", "device", "precision"), {"budget", "ranks", *options.ABOUT_NEW_ROWS}
#: numbers of a parameter that are written as they are
FEW = 8


def keeper(planned: Planned, program: Program, part: str) -> Keeper:
    """What writes the checkpoints of one run of a plan, and has that which it goes on from; F0817
    where this is of another. Those of a program of ranks are of the run in one process: any number
    of ranks goes on from them."""
    from fccomodel.execution import ranks
    from fccomodel.execution.run import Keeper

    assert planned.checkpoints is not None
    if not planned.ranks:
        return Keeper(planned.checkpoints.part(part), identity(planned, program))
    alone = emit(replace(planned, options={**planned.options, "ranks": (False, options.AUTOMATIC)}))
    return ranks.Keeper(planned.checkpoints.part(part), identity(planned, alone))


def identity(planned: Planned, program: Program) -> dict[str, Any]:
    """By name: version, model, parameters, options, data, and the program but for its budget."""
    from fccomodel.execution.checkpoints import digest

    wanted = {
        name: entry[0]
        for name, entry in planned.options.items()
        if name in ALWAYS or entry[1] in options.GIVEN
    }
    known = {"fccomodel": __version__, "model": planned.compiled.hash, **parameters(planned.bound)}
    known |= {
        f"option {name}": value for name, value in sorted(wanted.items()) if name not in NEVER | {"algorithm"}
    }
    known |= {"algorithm": planned.plan.algorithm}
    known |= {f"data {name}": digest(value) for name, value in sorted(program.data.items())}
    return {**known, "program": _program(program.text)}


def parameters(bound: Bound) -> dict[str, Any]:
    """Their values, of long ones a hash."""
    from fccomodel.execution.checkpoints import digest

    values = sorted(bound.params.items())
    return {f"param {name}": x.tolist() if x.size <= FEW else digest(x) for name, x in values}


def _program(text: str) -> str:
    """A hash of what a program does, whatever its budget and its comments."""
    tree = ast.parse(text)
    tree.body = [one for one in tree.body[1:] if not isinstance(one, ast.Assign) or _name(one) not in BUDGET]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]


def _name(one: ast.Assign) -> str:
    if isinstance(one.targets[0], ast.Name):
        return one.targets[0].id
    return ""
