"""Values that are shared among ranks, and sums of them over all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fccomodel.program.operations.base import Op, Val, Writer
from fccomodel.program.operations.sources import Along

PLACED = "a gradient is placed on ranks once it is made"


class OverRanks(Op):
    """The sum of all ranks' parts of a value."""

    name, arguments = "over_ranks", ("part",)
    constant = PLACED

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """No derivative goes through it."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call that sums over ranks."""
        return f"over_ranks({writer.ref(val.args[0])})"


class Once(Op):
    """A value that all ranks have, as the part of the first of them: the others' is zero."""

    name, arguments = "once", ("value",)
    constant = PLACED

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """No derivative goes through it."""
        return False

    def combines(self, val: Val) -> bool:
        """Whether it combines the values of all ranks: always."""
        return True

    def text(self, writer: Writer, val: Val) -> str:
        """The call that counts a value on one rank alone."""
        return f"once({writer.ref(val.args[0])})"


class Own(Along):
    """Positions of a rank's own elements along an axis with all its elements."""

    name = "own"
    source: ClassVar[bool] = True

    def text(self, writer: Writer, val: Val) -> str:
        """The call that gives the places of this rank."""
        return f"placed({int(val.attrs['axis'].size)}, data.device)"

    def stem(self, val: Val) -> str:
        """``own`` with the name of the axis."""
        return f"own_{val.attrs['axis'].name}"


over_ranks = OverRanks()
once = Once()
own = Own()
