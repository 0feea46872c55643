"""The checkpoints that a user asks for: a folder, the time between two, whether to begin anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fccomodel.app import errors
from fccomodel.app.stored import store
from fccomodel.core import options, process
from fccomodel.core.diagnostics import FccoError, refuse

if TYPE_CHECKING:
    from fccomodel.execution.run import Checkpoints

#: The time between two checkpoints, by default.
EVERY = "60s"

#: The longest time between two checkpoints, in seconds: some thousand years.
LONGEST = 1e11


@contextmanager
def kept(folder: str | Path | None, every: str | float | None, fresh: bool) -> Iterator[Checkpoints | None]:
    """The checkpoints in a folder, or None without a folder.

    No other process writes there until the block ends. ``fresh`` removes what is kept there. Raises
    F0805 for a time or ``fresh`` without a folder, F0806 if another run uses the folder or nothing
    can be written there.
    """
    from fccomodel.execution.run import Checkpoints

    if folder is None:
        if every is not None or fresh:
            refuse(errors.no_folder_for_checkpoints("fresh" if fresh else "every"))
        yield None
        return
    seconds = _seconds(EVERY if every is None else every)
    if process.rank() > 0:  # the first process of a launcher reads and writes for all
        yield Checkpoints(folder=Path(folder), every=seconds)
        return
    with store.claim(Path(folder)) as claimed:
        if fresh:
            _clear(claimed.folder)
        yield Checkpoints(folder=claimed.folder, every=seconds)


def _clear(folder: Path) -> None:
    """Remove the checkpoints of all runs, and the records of a comparison. Other files stay."""
    from fccomodel.app.stored.comparison.checkpoints import COMPARISON, DIGITS, RUN
    from fccomodel.execution.checkpoints import Checkpoints, remove

    (folder / COMPARISON).unlink(missing_ok=True)
    for part in [p for p in folder.iterdir() if p.is_dir() and not p.is_symlink()]:
        for run in [p for p in part.iterdir() if p.is_dir()]:
            remove(Checkpoints(folder=run))
        if len(part.name) == DIGITS:
            (part / RUN).unlink(missing_ok=True)
        remove(Checkpoints(folder=part))


def _seconds(every: str | float) -> float:
    """The seconds of a time, which is written like a budget or is a number of seconds."""
    if isinstance(every, int | float) and not isinstance(every, bool) and 0 <= every <= LONGEST:
        return float(every)
    try:
        seconds = options.parse_budget(every).seconds
    except FccoError:
        seconds = None
    if seconds is None:
        refuse(errors.not_a_time("every", options.writable(every)))
    return seconds
