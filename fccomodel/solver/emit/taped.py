"""Statements that autograd goes through."""

from __future__ import annotations

from fccomodel.library.graph import Val
from fccomodel.solver.emit.printer import Printer


class TapedPrinter(Printer):
    """Nets are called plainly, whole tables of them in slices whose values are computed again in the backward pass."""

    def op_table_net(self, val: Val) -> str:
        return f"net_in_slices(net_{val.attrs['net']}, {self.ref(val.args[0])}, data.{val.attrs['key']})"

    def nets(self, val: Val, needed: set[int]) -> None:
        self.names[val.id] = self.name(val)
        call = f"net_{val.attrs['net']}({self.ref(val.args[0])}, {self.ref(val.args[1])})"
        self.put(f"{self.names[val.id]} = {call}", self.comments.get(val.id))
