"""What the loops of a program call ``keep``: the state of a run goes into files as it goes, and comes
back.

The emitter copies it: plain torch and the standard library. A program by itself writes
``FileKeeper``'s files; a run inside Python (``fccomodel.execution.checkpoints.keeper``) has files,
messages and errors of its own.
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
    """Writes the state of a run every so many seconds, once a person asks to stop, on SIGTERM, and
    where steps end.

    ``keep(stage, run)`` is called wherever a state is whole; ``again(stage, run)`` puts one back;
    ``ended(stage, outcome)`` is told what a stage came to, and ``outcome(stage, ...)`` gives it.
    ``spent`` are the seconds that the run took before, and ``left`` is the state by stages that it
    goes on from, until it is put back.

    A state is everything that changes in a run, and what is made of the program, its data and the
    seed is made anew.
    """

    def __init__(self, folder, every, left=None, spent=0.0, step=0):
        self.folder, self.every, self.left, self.spent, self.step, self.first = (
            folder,
            every,
            left or {},
            spent,
            step,
            step,
        )
        self.began, self.base, self.outcomes = time.perf_counter(), 0, {}
        self.due = self.began + every
        self.stopping = self.terminated = False

    def terminate(self, *signalled):
        """The process is asked to end, once the state is written."""
        self.terminated = True

    def asked(self):
        """Whether a person wants the run to end."""
        return False

    def stop(self):
        """What the loops ask: that a person wants them to end, once the state of before is written."""
        return self.stopping

    def __call__(self, stage, run, reason=""):
        """A state that is whole, after a step; ``reason``: why it is the last, where no step was cut."""
        if self.stopping:
            return
        due, stopping, ending = self.word(stage)
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

    def word(self, stage=""):
        """Whether it is time to write, a person wants the run to end, and the process is asked to."""
        return time.perf_counter() >= self.due, self.asked(), self.terminated

    def write(self, stage, run):
        """Puts it into files."""
        raise NotImplementedError

    def again(self, stage, run):
        """Whether the state was written in this stage: then ``run`` stands as it did."""
        if stage not in self.left:
            return False
        self.back(self.left[stage], run)
        self.left = {}
        return True

    def ended(self, stage, outcome):
        """What a stage came to, unless a person ended it, is part of all states from here on."""
        if outcome.status != "interrupted":
            held = SimpleNamespace(
                **{name: value for name, value in vars(outcome).items() if name != "exact"}
            )
            self.base, self.outcomes = outcome.iterations, self.packed(held, f"after {stage}")

    def outcome(self, stage, solver, data, device, exact=None):
        """What a stage came to before; None where it is not known to have ended."""
        if f"after {stage}" not in self.left:
            return None
        outcome = self.back(self.left[f"after {stage}"])
        if exact is None:
            exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
        outcome.exact = exact
        self.ended(stage, outcome)
        return outcome

    def packed(self, held, name):
        """A part of the state as it stands."""
        return {name: copy.deepcopy(held)}

    def back(self, held, into=None):
        """A part of the state again, in the place of what ``into`` holds."""
        return put_back(held, into, {})


def put_back(held, into, made):
    """What ``held`` says, in the objects that ``into`` has: others hold them too. ``made``: what
    stands for each object of it."""
    if id(held) in made:
        return made[id(held)]
    if isinstance(held, torch.Generator):
        into = held if into is None else into
        into.set_state(held.get_state())
    elif isinstance(held, list):
        if isinstance(into, list):
            into = into
        else:
            into = []
        into[:] = [put_back(x, None, made) for x in held]
    elif isinstance(held, dict) or hasattr(held, "__dict__") and not torch.is_tensor(held):
        if type(into) is type(held):
            into = into
        else:
            into = copy.copy(held)
        made[id(held)] = into
        entries, there = (x if isinstance(x, dict) else vars(x) for x in (held, into))
        entries = {key: put_back(x, there.get(key), made) for key, x in entries.items()}
        there.clear()
        there.update(entries)
    else:
        into = held
    made[id(held)] = into
    return into


class FileKeeper(Keeper):
    """One with a folder that has the last two states, ``000007/state.pt`` beside a manifest, each
    written beside and renamed.

    identity   what the program, its data and settings are known by, by name: a state of others is refused
    classes    what a state has of beside numbers, texts, lists and tensors; nothing else is unpickled
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
        """The last whole state, the seconds and the steps before it; None where there is none."""
        for place in self.states():
            try:
                manifest = json.loads((place / "manifest.json").read_text())
                whole = hashlib.sha256((place / "state.pt").read_bytes()).hexdigest() == manifest["sha256"]
            except (OSError, ValueError, KeyError):
                whole = False
            if not whole:
                continue
            if differing := [
                name for name, known in self.identity.items() if manifest["identity"].get(name) != known
            ]:
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
        """One more state, whole or not at all, and those before the last two are removed; where that
        fails the run goes on, and says so, unless it is about to be ended."""
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


def kept(keeper, arguments, identity, classes):
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
    settled = {name: str(getattr(arguments, name, "")) for name in ("seed", "precision", "data", "backend")}
    known = [SimpleNamespace, torch.Generator, *classes]
    keep = keeper(Path(arguments.checkpoint), arguments.every, identity | settled, known)
    if keep.left and first:
        print(f"resumed at step {keep.first:,}", flush=True)
    return keep
