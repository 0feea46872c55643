"""Scores ``X @ w`` and outputs of nets: where most variables are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fccomodel.program.operations.base import Axes, Event, Op, Pull, Reverse, Val, Writer, along, union
from fccomodel.program.operations.indexing import ADJOINT
from fccomodel.program.operations.sources import variable
from fccomodel.program.operations.sums import FULL_PASS


def pull_rows(writer: Writer, rows: Val, adjoint: Val) -> str:
    """``X[rows]ᵀ adjoint``."""
    if len(rows.axes) == 1:
        return f"{writer.expanded(adjoint, rows.axes)} @ {writer.ref(rows)}"
    return (
        f"{writer.expanded(adjoint, rows.axes)}.reshape(-1) @ {writer.ref(rows)}.reshape(-1, "
        f"{rows.event[-1]})"
    )


class Score(Op):
    """Rows times a vector of weights."""

    name, arguments = "score", ("rows", "weights")
    inline = True

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """None: a score is a number."""
        return ()

    def fault(self, val: Val) -> str:
        """A fault unless rows and weights are vectors of one length."""
        rows, weights = val.args
        fits = (
            len(rows.event) == 1 and rows.event == weights.event and (not weights.axes or len(rows.axes) == 1)
        )
        if fits:
            return ""
        return "its rows and weights do not fit"

    def text(self, writer: Writer, val: Val) -> str:
        """The product of rows and weights."""
        rows, weights = map(writer.ref, val.args)
        if val.args[1].axes:
            return f"{weights} @ {rows}.t()"
        return f"{rows} @ {weights}"

    def stem(self, val: Val) -> str:
        """``s`` with the names of the axes."""
        return f"s{along(val.axes) or '_'}"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Give the weighted sum of the rows to the weights, or to the variable."""
        rows, weights = val.args
        if weights.op is variable:
            to.pull(weights.attrs["name"], val, adjoint)
        else:
            to.give(weights, to.graph.make(score_t, [rows, adjoint], event=weights.event))

    def pulled(self, source: Val) -> tuple[Val, ...]:
        """The rows."""
        return source.args[:1]

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """The transposed rows times the adjoint."""
        return pull_rows(writer, pull.source.args[0], pull.adjoint)


class ScoreT(Op):
    """The sum of rows, weighted by their adjoints."""

    name, arguments, attributes = "score_t", ("rows", "adjoint"), {"event": Event}
    changing = True
    constant = ADJOINT

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: the result has the shape of the weights."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The transposed rows times the adjoint."""
        return pull_rows(writer, *val.args)


class TableScore(Op):
    """All rows of a table times a vector of weights."""

    name, arguments, attributes = "table_score", ("weights",), {"key": str, "event": Event}

    def fault(self, val: Val) -> str:
        """A fault unless the weights are a vector without axes."""
        if len(val.args[0].event) == 1 and not val.args[0].axes:
            return ""
        return "its weights are no vector"

    def text(self, writer: Writer, val: Val) -> str:
        """The product of the whole table and the weights."""
        rows, weights = f"data.{val.attrs['key']}", writer.ref(val.args[0])
        if writer.shared:
            return f"scored({rows}, {weights})"
        return f"{rows} @ {weights}"

    def stem(self, val: Val) -> str:
        """The name ``scores``."""
        return "scores"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Give the weighted sum of all rows to the weights, or to the variable."""
        (weights,) = val.args
        if weights.op is variable:
            to.pull(weights.attrs["name"], val, adjoint)
        else:
            to.give(
                weights, to.graph.make(table_score_t, [adjoint], key=val.attrs["key"], event=weights.event)
            )

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """The transposed table times the adjoint."""
        return f"{writer.ref(pull.adjoint)} @ data.{pull.source.attrs['key']}"


class TableScoreT(Op):
    """The sum of all rows of a table, weighted by their adjoints."""

    name, arguments, attributes = "table_score_t", ("adjoint",), {"key": str, "event": Event}
    changing = True
    constant = ADJOINT

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: the result has the shape of the weights."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The transposed table times the adjoint."""
        return f"{writer.ref(val.args[0])} @ data.{val.attrs['key']}"


class Middle(Op):
    """The middle of vectors along an axis, where distances to them are taken from."""

    name, arguments = "middle", ("v",)
    constant = "distances are the same from anywhere"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: it is one vector."""
        return ()

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """No derivative goes through it."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``middle``."""
        return f"middle({writer.ref(val.args[0])})"


class Beside(Op):
    """Vectors along an axis, from their middle, with what else distances to them need: once for all
    slices of a full pass."""

    name, arguments = "beside", ("v", "centre")
    constant = FULL_PASS

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """Two entries more than the vector."""
        return (args[0].event[0] + 2,)

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``beside``."""
        return f"beside({', '.join(map(writer.ref, val.args))})"


class SquaredDistances(Op):
    """|u - v|^2 of vectors along an axis each."""

    name, arguments = "squared_distances", ("u", "right", "centre")
    constant = FULL_PASS

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """No event dims."""
        return ()

    def fault(self, val: Val) -> str:
        """A fault unless the arguments are vectors, each along one axis, in layout order."""
        u, v, _ = val.args
        apart = len(u.axes) == len(v.axes) == 1 and u.axes[0].order < v.axes[0].order
        fits = len(u.event) == 1 and v.event == (u.event[0] + 2,)
        if apart and fits:
            return ""
        return "they are no vectors along an axis each, in order"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``squared_distances``."""
        return f"squared_distances({', '.join(map(writer.ref, val.args))})"


def net_call(writer: Writer, inputs: Sequence[Val], axes: Axes) -> str:
    """The text of the inputs of one call of a net: a tensor, or a tuple with one tensor for each input."""
    if len(inputs) == 1:
        return writer.ref(inputs[0])
    return f"({', '.join(writer.expanded(one, axes, one.event) for one in inputs)})"


class Net(Op):
    """Outputs of a net for some rows of each of its inputs."""

    name, arguments = "net", ("parameters", "rows...")
    attributes = {"net": str, "variable": str, "event": Event}
    silent = "calls of a net are made together"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the inputs."""
        return union(args[1:])

    def fault(self, val: Val) -> str:
        """A fault where an input depends on a variable: no derivative goes through inputs."""
        if any(one.varying for one in val.args[1:]):
            return "an input depends on a variable"
        return ""

    def stem(self, val: Val) -> str:
        """The net's name with the names of the axes."""
        return f"{val.attrs['net']}{along(val.axes) or '_'}"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Give the adjoint to the variable of the net's weights."""
        to.pull(val.attrs["variable"], val, adjoint)

    def pulled(self, source: Val) -> tuple[Val, ...]:
        """The outputs, whose adjoint gives the gradient of the weights."""
        return (source,)


class FrozenNet(Op):
    """Outputs of a net without variables for some rows of each of its inputs."""

    name, arguments, attributes = "frozen_net", ("rows...",), {"net": str, "event": Event}
    constant = "its inputs are data"

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """No derivative goes through it."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call of the net."""
        return f"net_{val.attrs['net']}({net_call(writer, val.args, val.axes)})"

    def stem(self, val: Val) -> str:
        """The net's name with the names of the axes."""
        return f"{val.attrs['net']}{along(val.axes) or '_'}"


class TableNet(Op):
    """Outputs of a net for all rows of a table, in parts; where autograd goes through them, they are
    computed again there. ``thrifty``: in small blocks, in the precision of the steps."""

    name, arguments = "table_net", ("parameters",)
    attributes = {"net": str, "variable": str, "keys": tuple[str, ...], "event": Event, "thrifty": bool}
    defaults = {"thrifty": False}
    constant = FULL_PASS

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: the outputs are a table."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The call that computes the outputs of all rows, in slices or blocks."""
        rows = ", ".join(f"data.{key}" for key in val.attrs["keys"])
        if len(val.attrs["keys"]) > 1:
            rows = f"({rows})"
        if val.attrs["thrifty"]:
            weights = writer.ref(val.args[0])
            return f"net_in_blocks(net_{val.attrs['net']}, {weights}, {rows}, PRECISION)"
        if writer.autograd:
            way = "net_in_slices"
        elif writer.shared and len(val.attrs["keys"]) == 1:
            way = "net_scored"
        else:
            way = "net_in_parts"
        return f"{way}(net_{val.attrs['net']}, {writer.ref(val.args[0])}, {rows})"

    def stem(self, val: Val) -> str:
        """The name ``scores``."""
        return "scores"


score = Score()
score_t = ScoreT()
table_score = TableScore()
table_score_t = TableScoreT()
middle = Middle()
beside = Beside()
squared_distances = SquaredDistances()
net = Net()
frozen_net = FrozenNet()
table_net = TableNet()
