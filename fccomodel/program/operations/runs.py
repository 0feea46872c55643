"""Rows of runs along an axis of places: each combination of elements around has a run of its own, of
its own length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.program.operations.base import Event, Op, Val, Writer

DATA = "it is known from the data"


class RunPlaces(Op):
    """The place in its run of each of the rows along an axis; rows at equal distances of a run that
    has more."""

    name, arguments = "run_places", ("places", "sizes")
    constant = DATA

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """No event dims."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``run_places``."""
        places, lengths = (writer.ref(arg, val.axes, 0) for arg in val.args)
        return f"run_places({places}, {lengths})"


class RunWeights(RunPlaces):
    """The number of rows of its run that each place stands for: 0 behind its end, 1, or more if a run
    has more rows than places."""

    name = "run_weights"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``run_weights``."""
        places, lengths = (writer.ref(arg, val.axes, 0) for arg in val.args)
        return f"run_weights({places}, {lengths}, data.dtype)"


run_places = RunPlaces()
run_weights = RunWeights()
