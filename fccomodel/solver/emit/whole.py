"""The smoothed problem on all rows, as text that autograd goes through: what the finish of a run minimises."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.quoting import literal
from fccomodel.core.rewrite import Rewriter
from fccomodel.evaluation import elements
from fccomodel.library import regularisers
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.emit.carried import source
from fccomodel.solver.emit.exact import Exact, entries, function
from fccomodel.solver.emit.printer import Printer
from fccomodel.solver.lower import Lowering, State
from fccomodel.solver.names import Names

#: a pass over more numbers than this takes too long to be made hundreds of times
MOST = 1 << 24
#: numbers that the centres of functions inside expectations may be
MOST_CENTRES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class WholeText:
    """``text`` of the smoothed problem on all rows, ``inside`` the shapes of centres inside expectations; hundreds of passes are
    ``affordable``."""

    text: str
    inside: Mapping[str, tuple[int, ...]]
    affordable: bool


class Finishing(Exact):
    """``whole``, ``regulariser``, ``all_blocks`` and ``constraint_values``."""

    def whole_text(self) -> WholeText | None:
        """The objective with envelopes and penalties on all rows, and what else a finish needs, if there is such a text."""
        lowering = Lowering(State(bound=self.bound, full=True, enveloped=True, data=self.exact.state.data))
        rows = [s for s in self.normal.smoothed if self.centred_rows(s, lowering)]
        names = {s.name for s in rows}
        centred = Rewriter(lambda node: replace(node, inner=False) if isinstance(node, Smoothed) and node.name in names else None)
        try:
            root = lowering.expr(centred(self.normal.objective), {}, True)
        except FccoError:
            return None
        printer = self.taped(lowering)
        printer.print([root])
        lines = [*printer.lines, f"return torch.as_tensor({printer.ref(root)})"]
        about = "The objective with envelopes and penalties for its non-smooth parts, on all rows, without prox terms."
        shapes = {name: lowering.state.centres[name] for name in sorted(names)}
        affordable = self.plan.finishing and lowering.sizes.pairs(self.normal.objective) <= MOST
        parts = ["# ---- the smoothed problem, on all rows\n" + function("whole", about, lines, "data, w, c, h")]
        parts += ["\n".join(self.regulariser_lines())] if affordable else []
        text = "\n\n\n".join([*parts, self.all_blocks_text(rows)])
        return WholeText(text=text, inside=shapes, affordable=affordable)

    def taped(self, lowering: Lowering) -> Printer:
        """A printer beside those of ``evaluate``: what depends on the data alone is shared."""
        prepared = self.shared.prepared
        names = Names([*self.taken(), *prepared.taken])
        return Printer(layout=self.layout, comments=self.comments(lowering), prepared=prepared, names=names, autograd=True)

    def centred_rows(self, node: Smoothed, lowering: Lowering) -> bool:
        """A function inside an expectation over rows that are few enough for a centre each."""
        if not node.inner:
            return False
        binders = dict.fromkeys(b for a in node.args for b in lowering.state.free(a))
        if any(isinstance(b.domain, ir.Distribution | ir.VectorSet) for b in binders):
            return False
        return math.prod(len(elements.ids(self.bound, b.domain)) for b in binders) <= MOST_CENTRES

    def all_blocks_text(self, rows: Iterable[Smoothed]) -> str:
        """``blocks`` with the functions inside expectations."""
        lines, inside = self.block_lines(self.blocks_of(rows))
        about = "``blocks``, and the same of functions inside expectations, row by row."
        return function("all_blocks", about, [*lines, f"return {{{', '.join(['**blocks(data, w)', *inside])}}}"])

    def constraint_text(self) -> str | None:
        """The constraints as ``evaluate`` has them, for autograd; None where there are none, or a pass is not affordable."""
        pairs = max((self.exact.sizes.pairs(c.body) for c in self.reference.constraints), default=math.inf)
        if pairs > MOST:
            return None
        lowering = Lowering(State(bound=self.bound, full=True, data=self.exact.state.data))
        constraints, printer = self.constraints_of(lowering), self.taped(lowering)
        printer.print([v for _, v in constraints.values()])
        about = "Each constraint's values (left minus right side)."
        return function("constraint_values", about, [*printer.lines, f"return {entries(printer, constraints)}"])

    def regulariser_lines(self) -> list[str]:
        """The value of the terms whose prox is used."""
        helpers: dict[str, str] = {}
        terms = []
        for p in self.normal.prox:
            start, stop, shape = self.layout[p.variable]
            function = regularisers.all()[p.name].value
            helpers[function.__name__] = source(function)
            view = "" if len(shape) == 1 else f".view({', '.join(map(str, shape)) or '()'})"
            arguments = ", ".join(f"{key}={literal(value)}" for key, value in p.coefficients.items())
            terms.append(f"float({function.__name__}(w[{start}:{stop}]{view}, {arguments}))")
        return [
            *(line for text in helpers.values() for line in (text, "", "")),
            "def regulariser(w):",
            '    """The terms with a prox."""',
            f"    return {' + '.join(terms) or '0.0'}",
        ]
