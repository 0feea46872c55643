"""The smoothed problem on all rows, as text that autograd goes through: what the finish of a run minimises."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from fccomodel import regularisers
from fccomodel.diagnostics import FccoError
from fccomodel.emit.exact import Exact
from fccomodel.emit.taped import TapedPrinter
from fccomodel.graph import RESERVED, Val
from fccomodel.lower import Lowering
from fccomodel.lower._state import Env
from fccomodel.smoothing import Smoothed

#: a pass over more numbers than this takes too long to be made hundreds of times
MOST = 1 << 24


@dataclass(eq=False)
class Whole(Lowering):
    """A full pass in which non-smooth functions are their envelopes."""

    def smoothed(self, node: Smoothed, env: Env) -> Val:
        return self.envelope(node, env)


class Finishing(Exact):
    """``whole`` and ``regulariser``."""

    def whole_text(self, prepared: list[str]) -> str | None:
        """The objective with envelopes and penalties on all rows; None where a pass is not affordable."""
        lowering = Whole(bound=self.bound, full=True, data=self.exact.data)
        if lowering.pairs(self.normal.objective) > MOST:
            return None
        try:
            root = lowering.expr(self.normal.objective, {}, True)
        except FccoError:
            return None
        taken = {name: 1 for line in prepared for name in re.findall(r"^data\.(\w+) =", line)}
        printer = TapedPrinter(
            graph=lowering.graph, layout=self.layout, comments=self.comments(lowering), prepared=prepared, recomputed=True,
            counters=dict.fromkeys(RESERVED, 1) | taken, double=True,
        )  # fmt: skip
        printer.print([root] if root.op not in ("const", "param") else [])
        lines = [*printer.lines, f"return torch.as_tensor({printer.ref(root)})"]
        return "\n".join(
            [
                "# ---- the finish: what it minimises",
                "def whole(data, w, c, h):",
                '    """The objective with envelopes and penalties for its non-smooth parts, on all rows, without prox terms."""',
                *("    " + line for line in lines),
                "",
                "",
                *self.regulariser_lines(),
            ]
        )

    def regulariser_lines(self) -> list[str]:
        """The value of the terms whose prox is used."""
        helpers: dict[str, str] = {}
        terms = []
        for p in self.normal.prox:
            start, stop, shape = self.layout[p.variable]
            function = regularisers.all()[p.name].value
            helpers[function.__name__] = inspect.getsource(function).rstrip()
            view = "" if len(shape) == 1 else f".view({', '.join(map(str, shape)) or '()'})"
            arguments = ", ".join(f"{key}={value!r}" for key, value in p.coefficients.items())
            terms.append(f"float({function.__name__}(w[{start}:{stop}]{view}, {arguments}))")
        return [
            *(line for text in helpers.values() for line in (text, "", "")),
            "def regulariser(w):",
            '    """The terms with a prox."""',
            f"    return {' + '.join(terms) or '0.0'}",
        ]
