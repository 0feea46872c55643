"""Nets whose inputs depend on variables: compositions of nets, inputs that are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.program.operations.base import Axes, Event, Op, Pull, Reverse, Val, Writer, along, union
from fccomodel.program.operations.indexing import ADJOINT
from fccomodel.program.operations.scores import net_call


class MovingNet(Op):
    """Outputs of a net at inputs that depend on variables; ``variable`` is that of its weights, "" of a
    frozen net. ``full``: at all rows, in parts."""

    name, arguments = "moving_net", ("inputs...",)
    attributes = {"net": str, "variable": str, "event": Event, "full": bool}

    def stem(self, val: Val) -> str:
        """The net's name with the names of the axes."""
        return f"{val.attrs['net']}{along(val.axes) or '_'}"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of the net."""
        weights, rows = taken(writer, val)
        called = f"net_{val.attrs['net']}"
        if not weights:
            return f"{called}({rows})"
        if not (val.attrs["full"] and val.axes):
            return f"{called}({weights}, {rows})"
        way = "net_in_slices" if writer.autograd else "net_in_parts"
        return f"{way}({called}, {weights}, {rows})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Give the adjoint to the weights, and to the inputs that vary."""
        attrs = {"net": val.attrs["net"], "variable": val.attrs["variable"], "event": val.event}
        back = to.graph.make(net_back, [*val.args, adjoint], **attrs)
        if val.attrs["variable"]:
            to.pull(val.attrs["variable"], val, back)
        for place, one in enumerate(val.args):
            if one.varying and not (place == 0 and val.attrs["variable"]):
                part = to.graph.make(net_back_part, [back], place=place, axes=val.axes, event=one.event)
                to.give(one, part)

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """The flat gradient of the weights, which is the first part of the backward pass's result."""
        return f"{writer.ref(pull.adjoint)}[0]"


def taken(writer: Writer, val: Val) -> tuple[str, str]:
    """The texts of the weights that a call takes, empty for a frozen net, and of its inputs."""
    if not val.attrs["variable"]:
        return "", net_call(writer, val.args, val.axes)
    return writer.ref(val.args[0]), net_call(writer, val.args[1:], union(val.args[1:]))


class NetBack(Op):
    """The gradients of <adjoint, output> in the weights of a net and in each of its inputs, as a tuple."""

    name, arguments = "net_back", ("inputs...",)
    attributes = {"net": str, "variable": str, "event": Event}
    changing = True
    constant = ADJOINT

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: it is a tuple."""
        return ()

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """No derivative goes through it."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call that computes the outputs again, and goes back through them."""
        *inputs, adjoint = val.args
        axes = union(inputs[1:] if val.attrs["variable"] else inputs)
        over = writer.expanded(adjoint, axes, val.event)
        called = f"net_{val.attrs['net']}"
        if not val.attrs["variable"]:
            return f"frozen_adjoints({called}, {net_call(writer, inputs, axes)}, {over})"
        rows = net_call(writer, inputs[1:], axes)
        return f"net_adjoints({called}, {writer.ref(inputs[0])}, {rows}, {over})"


class NetBackPart(Op):
    """Selects the gradient of ``net_back`` in the argument at ``place``."""

    name, arguments = "net_back_part", ("gradients",)
    attributes = {"place": int, "axes": Axes, "event": Event}
    changing = True
    constant = ADJOINT

    def text(self, writer: Writer, val: Val) -> str:
        """The part of the tuple."""
        return f"{writer.ref(val.args[0])}[{val.attrs['place']}]"


moving_net = MovingNet()
net_back = NetBack()
net_back_part = NetBackPart()
