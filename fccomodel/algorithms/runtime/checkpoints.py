"""Checkpoints: the loops of a program hand the state of a run to ``keep``, which writes it into
files and restores it. The emitter copies this text.

It needs only torch and the standard library. A program on its own writes the files of
``FileKeeper``; a run inside Python (``fccomodel.execution.checkpoints.keeper``) has files, messages
and errors of its own.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from fccomodel.core.lazy import torch


class Keeper:
    """Writes the state of a run at regular times, when a person asks to stop, on SIGTERM, and at the end of
    the steps.

    The loops call ``keep(stage, run)`` wherever a state is complete. ``again(stage, run)`` restores a
    state; ``ended(stage, outcome)`` records the result of a stage, and ``outcome(stage, ...)`` returns it.
    ``spent`` holds the seconds that the run took before this process. ``left`` holds the state, by stage,
    from which the run continues; it is empty once restored.

    A state contains everything that changes in a run. What follows from the program, its data and the seed
    is computed again.
    """

    def __init__(self, folder, every, left=None, spent=0.0, step=0):
        self.folder = folder
        self.every = every
        self.left = left or {}
        self.spent = spent
        self.step = step  # of the last state
        self.first = step  # at which this process went on
        self.base = 0  # steps of the stages before this one
        self.outcomes = {}
        self.began = time.perf_counter()
        self.due = self.began + every
        self.stopping = False
        self.terminated = False

    def terminate(self, *signalled):
        """Note that the process must end as soon as the state is written."""
        self.terminated = True

    def asked(self):
        """Whether a person wants the run to end."""
        return False

    def stop(self):
        """Whether the loops must stop because a person asked for it. The state before the stop is written
        by then.
        """
        return self.stopping

    def __call__(self, stage, run, reason=""):
        """Write the state after a step, if it is time to. ``reason`` says why this step is the last one; it
        is empty if more steps follow.
        """
        if self.stopping:
            return
        due, stopping, ending = self.requests(stage)
        if due or stopping or ending or reason not in ("", "interrupted"):
            if isinstance(run.count, int) and stage != "restore":
                self.step = self.base + run.count
            else:
                self.step = self.base
            self.write(stage, run)
            self.due = time.perf_counter() + self.every
        self.stopping = stopping
        if ending:
            print(
                f"terminated at step {self.step:,}: the checkpoint in {self.folder} goes on from there",
                file=sys.stderr,
            )
            raise SystemExit(128 + signal.SIGTERM)

    def requests(self, stage=""):
        """Three facts: whether it is time to write, whether a person wants the run to end, and whether the
        process was asked to terminate.
        """
        return time.perf_counter() >= self.due, self.asked(), self.terminated

    def write(self, stage, run):
        """Write the state into files."""
        raise NotImplementedError

    def again(self, stage, run):
        """Restore ``run`` if the state was written in this stage. Returns whether it was."""
        if stage not in self.left:
            return False
        self.back(self.left[stage], run)
        self.left = {}
        return True

    def ended(self, stage, outcome):
        """Record the result of a stage, unless a person ended it: all states from here on contain it."""
        if outcome.status != "interrupted":
            result = SimpleNamespace(
                **{name: value for name, value in vars(outcome).items() if name != "exact"}
            )
            self.base, self.outcomes = outcome.iterations, self.packed(result, f"after {stage}")

    def outcome(self, stage, solver, data, device, exact=None):
        """The result that a stage had before, or None if it is not known to have ended."""
        if f"after {stage}" not in self.left:
            return None
        outcome = self.back(self.left[f"after {stage}"])
        if exact is None:
            exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
        outcome.exact = exact
        self.ended(stage, outcome)
        return outcome

    def packed(self, held, name):
        """A copy of a part of the state."""
        return {name: copy.deepcopy(held)}

    def back(self, held, into=None):
        """Restore a part of the state, in place where ``into`` holds an object for it."""
        return put_back(held, into, {})


def put_back(held, into, replacements):
    """Restore the values of ``held`` in the objects of ``into``, to which others may refer as well.

    ``replacements`` maps the id of each object of ``held`` to the object that replaces it.
    """
    if id(held) in replacements:
        return replacements[id(held)]
    if isinstance(held, torch.Generator):
        if into is None:
            into = held
        into.set_state(held.get_state())
    elif isinstance(held, list):
        if not isinstance(into, list):
            into = []
        into[:] = [put_back(entry, None, replacements) for entry in held]
    elif isinstance(held, dict) or hasattr(held, "__dict__") and not torch.is_tensor(held):
        if type(into) is not type(held):
            into = copy.copy(held)
        replacements[id(held)] = into
        saved, there = (x if isinstance(x, dict) else vars(x) for x in (held, into))
        restored = {key: put_back(entry, there.get(key), replacements) for key, entry in saved.items()}
        there.clear()
        there.update(restored)
    else:
        into = held
    replacements[id(held)] = into
    return into


class FileKeeper(Keeper):
    """A keeper that writes into a folder. The folder has the last two states, each as ``000007/state.pt``
    beside a manifest. Files are written to a temporary name and renamed.

    identity   identifies the program, its data and settings, by name: a state of another run is refused
    classes    the dataclasses that a state may contain; nothing else but numbers, texts, lists and
               tensors is unpickled
    """

    def __init__(self, folder, every, identity, classes):
        self.folder, self.identity, self.classes = folder, identity, classes
        super().__init__(folder, every, *(self.newest() or ()))
        signal.signal(signal.SIGTERM, self.terminate)

    def states(self):
        """The states in the folder, the last one first."""
        return sorted(
            (p for p in self.folder.glob("[0-9]*") if p.name.isdecimal()), key=lambda p: -int(p.name)
        )

    def newest(self):
        """The last complete state, with the seconds and the steps before it; None if there is none."""
        for place in self.states():
            try:
                manifest = json.loads((place / "manifest.json").read_text())
                digest = hashlib.sha256((place / "state.pt").read_bytes()).hexdigest()
                complete = digest == manifest["sha256"]
            except (OSError, ValueError, KeyError):
                complete = False
            if not complete:
                continue
            theirs = manifest["identity"]
            differing = [name for name, ours in self.identity.items() if theirs.get(name) != ours]
            if differing:
                raise SystemExit(
                    f"error[F0817] checkpoint: {place} is of another run: {', '.join(differing)}; see --fresh"
                )
            with torch.serialization.safe_globals(self.classes):
                return (
                    torch.load(place / "state.pt", weights_only=True),
                    manifest["seconds"],
                    manifest["step"],
                )
        if self.states():
            raise SystemExit(f"error[F0817] checkpoint: what is in {self.folder} is damaged; see --fresh")
        return None

    def write(self, stage, run):
        """Write one more state, completely or not at all, and remove all but the last two.

        If writing fails, the run says so and continues, unless the process is about to end.
        """
        places = self.states()
        number = f"{1 + max((int(place.name) for place in places), default=0):06d}"
        new = self.folder / f".{number}.{os.getpid()}"
        seconds = self.spent + time.perf_counter() - self.began
        manifest = {"identity": self.identity, "stage": stage, "step": self.step, "seconds": seconds}
        try:
            new.mkdir(parents=True)
            torch.save({**self.outcomes, stage: run}, new / "state.pt")
            digest = hashlib.sha256((new / "state.pt").read_bytes()).hexdigest()
            (new / "manifest.json").write_text(json.dumps({**manifest, "sha256": digest}, indent=1))
            os.replace(new, self.folder / number)
        except (OSError, RuntimeError) as error:  # torch's word for a disk that is full is the latter
            if self.terminated:
                raise SystemExit(
                    f"error[F0806] output: no checkpoint could be written in {self.folder}: {error}"
                ) from None
            print(
                f"no checkpoint could be written in {self.folder}: {error}; the run goes on", file=sys.stderr
            )
            places = []
        finally:
            shutil.rmtree(new, ignore_errors=True)
        for place in places[1:]:
            shutil.rmtree(place, ignore_errors=True)


def keeper_of_run(keeper, arguments, identity, classes):
    """The keeper of a run's state in the folder that the command line names, or None if it names none.

    With ``--fresh`` the states in the folder are removed. A run goes on only from a state of the same
    program (``identity``), data, seed, precision and backend. ``classes`` are the dataclasses in a state.
    """
    if arguments.checkpoint is None:
        return None
    first = os.environ.get("RANK", "0") == "0"
    if arguments.fresh and first:
        for place in Path(arguments.checkpoint).glob("[0-9]*"):
            shutil.rmtree(place, ignore_errors=True)
    settings = {name: str(getattr(arguments, name, "")) for name in ("seed", "precision", "data", "backend")}
    allowed = [SimpleNamespace, torch.Generator, *classes]
    keep = keeper(Path(arguments.checkpoint), arguments.every, identity | settings, allowed)
    if keep.left and first:
        print(f"resumed at step {keep.first:,}", flush=True)
    return keep
