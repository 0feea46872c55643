"""The sections with passes over all rows: the problem itself, the arguments that centres follow, and
for the finish the smoothed problem."""

from __future__ import annotations

from fccomodel.core.quoting import literal
from fccomodel.library import regularisers
from fccomodel.program.emit.carried import source
from fccomodel.program.emit.page import function, printer_of, shaped, taken
from fccomodel.program.emit.printer import FunctionPrinter, PreparedValues
from fccomodel.program.emit.projection import centre_key, centred, coefficients
from fccomodel.program.emit.smoothing import Smoothing
from fccomodel.program.lower import (
    Constrained,
    Constraints,
    Lowered,
    LoweredSteps,
    SmoothedFunction,
    SmoothedProblem,
)
from fccomodel.program.names import Names
from fccomodel.program.operations import union
from fccomodel.program.operations.base import MoreauEnvelope, number, python, shape_text
from fccomodel.program.operations.estimates import function_dims


class EvaluationText:
    """``evaluate``, ``blocks``; for the finish ``whole``, ``regulariser``, ``all_blocks``,
    ``constraint_values``; and what they ``prepared``."""

    def __init__(self, lowered: Lowered, smoothing: Smoothing):
        self.lowered, self.prepared, self.smoothing = lowered, PreparedValues(), smoothing
        self.shared = lowered.shares is not None
        self.printer = printer_of(lowered, lowered.exact.state, self.prepared, shared=self.shared)
        self.parts = [self.evaluate(), self.blocks()]
        if lowered.whole:
            self.parts += self.finish(lowered.whole)
        if lowered.constrained:
            self.parts += [self.constraint_values(lowered.constrained)]

    @property
    def text(self) -> str:
        """The functions one after another."""
        return "\n\n\n".join(self.parts)

    def evaluate(self) -> str:
        """The problem itself, in float64."""
        exact, printer = self.lowered.exact, self.printer
        printer.print([exact.objective, *(value for _, value in exact.constraints.values())])
        result = (
            f"return torch.as_tensor({printer.ref(exact.objective)}), {entries(printer, exact.constraints)}"
        )
        about = "The minimised objective, and each constraint's values (left minus right side)."
        head = "# ---- the problem itself on all rows, in float64\n"
        return head + function("evaluate", about, [*printer.body, result])

    # --------------------------------------------------------------------------------------- blocks
    def blocks(self) -> str:
        """The exact arguments of the smoothed functions, and their slopes: where centres and
        multipliers come from."""
        if not self.lowered.exact.blocks:
            return function("blocks", "No function is smoothed with a centre.", ["return {}"])
        lines, inside = self.block_lines(self.lowered.exact.blocks)
        about = (
            "For each smoothed function its cells, exact arguments, slope, and largest slope (0: no penalty)."
        )
        return function("blocks", about, [*lines, f"return {{{', '.join(inside)}}}"])

    def all_blocks(self, blocks: list[SmoothedFunction]) -> str:
        """``blocks`` with the functions inside expectations."""
        lines, inside = self.block_lines(blocks)
        about = "``blocks`` with the functions inside expectations, which have one entry a row."
        result = f"{{{', '.join(['**blocks(data, w)', *inside])}}}" if inside else "blocks(data, w)"
        return function("all_blocks", about, [*lines, f"return {result}"])

    def block_lines(self, blocks: list[SmoothedFunction]) -> tuple[list[str], list[str]]:
        """Statements, and the entries of ``blocks``."""
        texts = {i: text for i, text in self.printer.texts.items() if text.startswith("data.")}
        names = Names([*taken(self.lowered), *self.prepared.taken])
        layout = self.lowered.layout
        printer = FunctionPrinter(
            layout=layout, prepared=self.prepared, names=names, texts=texts, shared=self.shared
        )
        printer.print([block.argument for block in blocks])
        entries = [self.block(printer, block) for block in blocks]
        return printer.body, entries

    def block(self, printer: FunctionPrinter, block: SmoothedFunction) -> str:
        """The entry of a smoothed function in ``blocks``."""
        s, value = block.smoothed, block.argument
        axes, event = union([*block.ids, value]), len(value.event)
        index = "".join(f"{printer.ref(i, axes, 0)}, " for i in block.ids)
        dims = function_dims(s.function, block.over, axes, event)
        form = MoreauEnvelope(function=s.function, name=s.name, scale=s.bound, dims=dims)
        if s.penalty:
            largest_slope = number(max(map(abs, s.units)))
        else:
            largest_slope = "0"
        if python(value):
            argument = f"w.new_tensor({printer.ref(value)})"
        else:
            argument = printer.ref(value, axes, event)
        if value.axes != axes:
            argument += f".expand({shape_text(axes, value.event)})"
        cells = f"({index.rstrip(' ') if len(block.ids) == 1 else index.rstrip(', ')})"
        slope = self.smoothing.name("slope", form)
        return f"{literal(s.name)}: ({cells}, {argument}, {slope}, {largest_slope})"

    # ----------------------------------------------------------------------------------- the finish
    def finish(self, whole: SmoothedProblem) -> list[str]:
        """The objective with envelopes and penalties, and what else a finish needs."""
        printer = printer_of(
            self.lowered, whole.state, self.prepared, autograd=True, smoother=self.smoothing.call
        )
        printer.print([whole.root])
        result = f"return torch.as_tensor({printer.ref(whole.root)})"
        lines = [*printer.body, result]
        about = (
            "The objective on all rows without the terms of ``regulariser``. Envelopes replace functions "
            "with kinks, and penalties replace constraints."
        )
        head = "# ---- the smoothed problem on all rows, for the finish\n"
        if whole.affordable:
            terms = regulariser(self.lowered)
        else:
            terms = []
        return [
            head + function("whole", about, lines, "data, w, c, h"),
            *terms,
            self.all_blocks(whole.blocks),
        ]

    def constraint_values(self, constrained: Constrained) -> str:
        """The constraints as ``evaluate`` has them, for autograd."""
        printer = printer_of(self.lowered, constrained.state, self.prepared, autograd=True)
        printer.print([value for _, value in constrained.constraints.values()])
        about = "Each constraint's values (left minus right side)."
        result = f"return {entries(printer, constrained.constraints)}"
        return function("constraint_values", about, [*printer.body, result])


def entries(printer: FunctionPrinter, constraints: Constraints) -> str:
    """Constraints by label as a dictionary's text."""
    values = {
        label: f"({literal(kind)}, torch.as_tensor({printer.ref(v)}))"
        for label, (kind, v) in constraints.items()
    }
    return f"{{{', '.join(f'{literal(label)}: {text}' for label, text in values.items())}}}"


def regulariser(lowered: LoweredSteps, differentiable: bool = False) -> list[str]:
    """The value of the terms whose prox is used, after the functions that it calls.

    It is a number, or a tensor if it is to be ``differentiable``.
    """
    helpers, terms = {}, []
    for term in lowered.normal.prox:
        start, stop, shape = lowered.layout[term.variable]
        value = regularisers.all()[term.name].value
        helpers[value.__name__] = source(value)
        arguments = coefficients(lowered, term)
        if term.centre is not None:
            minus_centre = f" - {centred(lowered, centre_key(term), term.centre)[0]}"
        else:
            minus_centre = ""
        piece = "w" if len(lowered.layout) == 1 else f"w[{start}:{stop}]"
        call = f"{value.__name__}({piece}{shaped(shape)}{minus_centre}, {arguments})"
        if differentiable:
            terms.append(call)
        else:
            terms.append(f"float({call})")
    return [
        *helpers.values(),
        function(
            "regulariser",
            "The value of the terms that ``project`` handles by their proximal maps.",
            [f"return {' + '.join(terms) or '0.0'}"],
            "w",
        ),
    ]
