"""The finished runs of a comparison on disk: a killed comparison goes on with the other runs.

``comparison.json`` has what all runs share. Each run has a folder with the checkpoints of its steps;
once it is judged, ``run.json`` replaces them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from dataclasses import dataclass
from typing import Any

from fccomodel.app.stored.comparison.runs import Job, JobOutcome, Task
from fccomodel.app.stored.results import plain
from fccomodel.core.diagnostics import refuse
from fccomodel.core.files import write_text
from fccomodel.core.version import __version__
from fccomodel.data.bound import Bound
from fccomodel.execution import errors
from fccomodel.execution.checkpoints import digest, remove
from fccomodel.execution.checkpoints.identity import parameters
from fccomodel.execution.run import Checkpoints

#: The file with the identity of the comparison.
COMPARISON = "comparison.json"
#: The file of a finished run.
RUN = "run.json"
#: The digits of a hash that name the folder of a run.
DIGITS = 16


@dataclass(frozen=True)
class ComparisonFolder:
    """The folder of a comparison."""

    at: Checkpoints

    def place(self, job: Job) -> Checkpoints:
        """The folder where a run keeps its state."""
        return self.at.part(hashlib.sha256(repr(job).encode()).hexdigest()[:DIGITS])

    def read(self, job: Job) -> JobOutcome | None:
        """The run if it is finished, else None. A run with a damaged record is done again, with a message."""
        path = self.place(job).folder / RUN
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            content = json.loads(record["run"])
            if hashlib.sha256(record["run"].encode()).hexdigest() != record["sha256"]:
                raise ValueError("another record than was written")
            return JobOutcome(**{**content, "job": job, "history": tuple(content["history"])})
        except (OSError, ValueError, KeyError, TypeError):
            print(f"{path} is damaged: that run is done again", file=sys.stderr)
            return None

    def write(self, run: JobOutcome) -> None:
        """Write a finished run in place of its checkpoints."""
        place = self.place(run.job)
        content = json.dumps(plain({**vars(run), "job": dataclasses.asdict(run.job)}))
        record = {"run": content, "sha256": hashlib.sha256(content.encode()).hexdigest()}
        write_text(place.folder / RUN, json.dumps(record) + "\n")
        for part in [p for p in place.folder.iterdir() if p.is_dir()]:
            remove(place.part(part.name))


def begun(at: Checkpoints, task: Task, bound: Bound, model: str) -> ComparisonFolder:
    """The folder of this comparison. Raises F0817 if it has the runs of another one."""
    path, known = at.folder / COMPARISON, identity(task, bound, model)
    if path.is_file():
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
            differing = [name for name in {**known, **there} if there.get(name) != known.get(name)]
        except (OSError, ValueError, TypeError, AttributeError):
            refuse(errors.checkpoint_damaged(path))
        if differing:
            refuse(errors.checkpoint_of_another(path, differing))
    else:
        write_text(path, json.dumps(known, indent=1) + "\n")
    return ComparisonFolder(at)


def identity(task: Task, bound: Bound, model: str) -> dict[str, Any]:
    """Everything that all runs of a comparison share, by name."""
    known: dict[str, Any] = {"fccomodel": __version__, "model": model, **parameters(bound)}
    known |= {f"option {name}": entry[0] for name, entry in sorted(task.chosen.items()) if name != "ranks"}
    variants = {label: [one.algorithm, dict(one.options)] for label, one in task.variants.items()}
    known |= {
        f"algorithm {label}": json.loads(json.dumps(plain(variant))) for label, variant in variants.items()
    }
    known |= {"show": list(task.show), "test": task.test, "validation": task.validation}
    known |= {f"data {name}": digest(array) for name, array in sorted(bound.arrays.items())}
    for name, table in sorted(bound.tables.items()):
        known |= {f"data {name}.{column}": digest(array) for column, array in sorted(table.columns.items())}
    return known
