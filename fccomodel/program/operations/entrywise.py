"""Atoms of the language at values, and what changes the layout of a value."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fccomodel.library import atoms
from fccomodel.library.formulas import atom_of
from fccomodel.program.operations.base import (
    Axis,
    Builder,
    Event,
    Op,
    Reverse,
    Val,
    Writer,
    bare,
    einsum,
    python,
    shape_text,
    spread_text,
)
from fccomodel.program.operations.indexing import entry


def broadcast(events: Iterable[Event]) -> Event:
    """The shape of an entrywise operation: scalars spread over arrays."""
    return functools.reduce(lambda a, b: a if len(a) >= len(b) else b, events, ())


def differentiable(atom: atoms.Atom, val: Val) -> list[Val]:
    """The arguments that have a derivative: all but the atom's parameters."""
    return [
        arg
        for name, arg in zip(atom.names(len(val.args)), val.args, strict=True)
        if name not in atom.parameters
    ]


def truth(val: Val) -> bool:
    """Whether the text is a truth value: a comparison, or a product of truth values."""
    if val.op is not entrywise:
        return False
    return atom_of(val.attrs["atom"]).boolean or val.attrs["atom"] == "mul" and all(map(truth, val.args))


def as_tensor(text: str) -> str:
    """A Python number as a tensor without dims."""
    return f"torch.tensor({bare(text)}, dtype=data.dtype, device=data.device)"


def site(val: Val, tensors: Sequence[bool] = ()) -> atoms.Site:
    """How the atom of a value is used; ``tensors``: the arguments that are made tensors."""
    numbers = tuple(a.attrs["value"] if a.op.name == "const" else None for a in val.args)
    plain = tuple(
        python(a) and not made for a, made in zip(val.args, tensors or [False] * len(val.args), strict=True)
    )
    return atoms.Site(shapes=tuple(a.event for a in val.args), numbers=numbers, python=plain)


class Entrywise(Op):
    """A scalar atom, entry by entry."""

    name, arguments, attributes = "ew", ("args...",), {"atom": str}
    inline = spreads = True

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """The largest shape: scalars spread over arrays."""
        return broadcast(a.event for a in args)

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """A flat atom, a comparison for instance, has no derivative."""
        return not atom_of(attrs["atom"]).flat and super().varying(args, attrs)

    def combines(self, val: Val) -> bool:
        """Arithmetic on Python numbers gives a Python number; a comparison does not."""
        atom = atom_of(val.attrs["atom"])
        return bool(atom.symbol) and not atom.boolean

    def fault(self, val: Val) -> str:
        """Arguments are scalars or have the shape of the value."""
        if all(a.event in ((), val.event) for a in val.args):
            return ""
        return "its arguments' shapes do not fit"

    def text(self, writer: Writer, val: Val) -> str:
        """The atom's own text, lined up on the axes of the value."""
        texts = [writer.ref(a, val.axes, len(val.event)) for a in val.args]
        tensors = [False] * len(texts)
        if not python(val) and all(map(python, differentiable(atom_of(val.attrs["atom"]), val))):
            texts[0], tensors[0] = as_tensor(texts[0]), True
        return atom_of(val.attrs["atom"]).lower(tuple(texts), site(val, tensors))

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The chain rule with the atom's derivative; of a maximum, the first argument that attains it."""
        g, atom = to.graph, atom_of(val.attrs["atom"])
        if atom.extreme:
            for arg, weight in self.chosen(g, val, atom.extreme):
                contribution = g.apply("mul", adjoint, weight)
                to.give(arg, g.make(number, [contribution]) if truth(contribution) else contribution)
            return
        names = dict(zip(atom.names(len(val.args)), val.args, strict=True)) | {"y": val}
        for arg, formula in zip(differentiable(atom, val), atom.derivatives(site(val)), strict=True):
            if arg.varying:
                to.give(arg, g.apply("mul", adjoint, g.evaluate(formula, names)))

    def chosen(self, g: Builder, val: Val, extreme: int) -> Iterable[tuple[Val, Val]]:
        """Weights of the largest or smallest argument: the first one that is it."""
        if extreme > 0:
            attains, fails = ("ge", "lt")
        else:
            attains, fails = ("le", "gt")
        before: Val = g.const(1.0)
        for arg in val.args:
            yield arg, g.apply("mul", before, g.apply(attains, arg, val))
            before = g.apply("mul", before, g.apply(fails, arg, val))


class ArrayAtom(Op):
    """An array atom on event dims, batched over axes."""

    name, arguments, attributes = "array", ("args...",), {"atom": str, "event": Event}
    inline = spreads = True

    def text(self, writer: Writer, val: Val) -> str:
        """The atom's own text, batched over the axes."""
        atom = atom_of(val.attrs["atom"])
        if atom.variadic and val.axes:  # arrays side by side: each on all axes
            return atom.lower(
                tuple(f"({writer.expanded(a, val.axes, a.event)})" for a in val.args), site(val)
            )
        if (
            val.attrs["atom"] == "dot"
            and all(a.axes for a in val.args)
            and not {*val.args[0].axes} & {*val.args[1].axes}
        ):
            return einsum(
                writer, val.args, ("y", "y"), val.axes, ""
            )  # of all pairs, without the products of their entries
        deepest = max((len(a.event) for a in val.args), default=0)
        texts = [writer.ref(a, val.axes, len(a.event) if a.event else deepest) for a in val.args]
        tensors = [
            python(a) and name not in atom.parameters
            for name, a in zip(atom.names(len(texts)), val.args, strict=True)
        ]
        texts = [as_tensor(text) if made else text for text, made in zip(texts, tensors, strict=True)]
        return atom.lower(tuple(texts), site(val, tensors))

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The chain rule with the atom's formulas for its adjoint."""
        g, atom = to.graph, atom_of(val.attrs["atom"])
        names = dict(zip(atom.names(len(val.args)), val.args, strict=True)) | {"y": val, "dy": adjoint}
        whole = names | {
            "dy": adjoint if adjoint.event == val.event else g.make(fill, [adjoint], event=val.event)
        }
        for arg, formula in zip(differentiable(atom, val), atom.derivatives(site(val)), strict=True):
            if arg.varying:
                to.give(arg, g.evaluate(formula, whole if "(" in formula or "@" in formula else names))


class Number(Op):
    """A truth value as 0 or 1."""

    name, arguments = "number", ("truth",)
    inline = True
    constant = "it is flat"

    def text(self, writer: Writer, val: Val) -> str:
        """The truth value in the working precision."""
        text = writer.ref(val.args[0])
        if python(val.args[0]):
            return as_tensor(text)
        return f"{text}.to(data.dtype)"


class Fill(Op):
    """An array of one number."""

    name, arguments, attributes = "fill", ("number",), {"event": Event}
    spreads = True

    def text(self, writer: Writer, val: Val) -> str:
        """``torch.full``, or an expanded view of a tensor."""
        (arg,) = val.args
        if python(arg):
            return (
                f"torch.full({shape_text(val.axes, val.event)}, {writer.ref(arg)}, dtype=data.dtype, "
                "device=data.device)"
            )
        wider = ", ".join(["...", *["None"] * len(val.event)])
        return f"{writer.ref(arg, val.axes, 0)}[{wider}].expand({shape_text(val.axes, val.event)})"

    def fault(self, val: Val) -> str:
        """The argument is a number."""
        if not val.args[0].event:
            return ""
        return "it fills with an array"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """An adjoint that is one number counts once for each entry."""
        count = to.graph.const(1 if adjoint.event else math.prod(val.event))
        to.give(val.args[0], to.graph.apply("mul", count, adjoint))


class Spread(Op):
    """A value on more axes."""

    name, arguments, attributes = "spread", ("value",), {"axes": tuple[Axis, ...]}
    spreads = True

    def fault(self, val: Val) -> str:
        """The axes of the argument stay."""
        if {*val.args[0].axes} <= {*val.axes}:
            return ""
        return "its argument has axes that it lacks"

    def text(self, writer: Writer, val: Val) -> str:
        """``torch.full``, or an expanded view of a tensor."""
        (arg,) = val.args
        text = writer.ref(arg, val.axes, len(val.event))
        if python(arg):
            return (
                f"torch.full({shape_text(val.axes, val.event)}, {text}, dtype=data.dtype, device=data.device)"
            )
        return f"{text}.expand({spread_text(arg.axes, val.axes, val.event)})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The adjoint, which is summed over the new axes when it is given."""
        to.give(val.args[0], adjoint)


class Masked(Op):
    """A value where a mask lets it through, elsewhere minus infinity: what a maximum leaves out."""

    name, arguments = "masked", ("value", "mask")
    spreads = True

    def text(self, writer: Writer, val: Val) -> str:
        """``x.masked_fill(..., -math.inf)``."""
        body, mask = val.args
        if mask.op is number and truth(mask.args[0]) and not python(mask.args[0]):
            out = f"~{writer.ref(mask.args[0], val.axes, len(val.event))}"
        else:
            out = f"{writer.ref(mask, val.axes, len(val.event))} == 0"
        return f"{writer.ref(body, val.axes, len(val.event))}.masked_fill({out}, -math.inf)"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The adjoint is zero where an element is left out."""
        to.give(val.args[0], adjoint)


class Stack(Op):
    """Numbers as a vector."""

    name, arguments = "stack", ("numbers...",)
    spreads = True

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """One dim, with an entry for each argument."""
        return (len(args),)

    def fault(self, val: Val) -> str:
        """The arguments are numbers."""
        if not any(a.event for a in val.args):
            return ""
        return "it stacks arrays"

    def text(self, writer: Writer, val: Val) -> str:
        """``torch.stack`` along the last dim."""
        parts = [
            writer.filled("()", writer.ref(a)) if python(a) else writer.ref(a, val.axes, 0) for a in val.args
        ]
        return f"torch.stack(torch.broadcast_tensors({', '.join(parts)}), -1)"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Each argument has its entry of the adjoint."""
        for k, arg in enumerate(val.args):
            to.give(arg, to.graph.make(entry, [adjoint], fixed=(k,)))


entrywise = Entrywise()
array = ArrayAtom()
number = Number()
fill = Fill()
spread = Spread()
masked = Masked()
stack = Stack()
