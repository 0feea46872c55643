"""Values that the training loop of a user passes to a step: rows, their weights, scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.program.operations.base import Axes, Axis, Event, Op, Pull, Reverse, Val, Writer


class Given(Op):
    """Numbers of the rows of a batch, by the attribute of ``given`` that holds them."""

    name, attributes = "given", {"name": str, "axes": tuple[Axis, ...], "event": Event}
    changing = True
    constant = "it is handed to the step, whatever the variables"

    def text(self, writer: Writer, val: Val) -> str:
        """The attribute of ``given`` with this name."""
        return f"given.{val.attrs['name']}"


class GivenScores(Op):
    """Outputs of a net for the rows of a batch, computed outside; ``previous``: at the iterate before.

    The gradient ends here: the step returns the adjoint of these scores, by ``name``.
    """

    name = "given_scores"
    attributes = {"name": str, "axes": tuple[Axis, ...], "event": Event, "previous": bool}
    defaults = {"previous": False}
    changing = True

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes that the attributes name."""
        return attrs["axes"]

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """Whether the scores are those of the current weights."""
        return not attrs["previous"]

    def text(self, writer: Writer, val: Val) -> str:
        """The scores handed in: ``given.NAME``, or ``given.NAME_prev`` of the weights before."""
        return f"given.{val.attrs['name']}{'_prev' if val.attrs['previous'] else ''}"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Hand the adjoint to the scores themselves."""
        to.pull(val.attrs["name"], val, adjoint)

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """The adjoint, laid out as the scores are."""
        return writer.expanded(pull.adjoint, pull.source.axes, pull.source.event)


given = Given()
given_scores = GivenScores()
