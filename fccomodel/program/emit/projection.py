"""The function that applies proximal maps and projections."""

from __future__ import annotations

import re
from typing import Any

import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.quoting import attribute as quoted
from fccomodel.core.quoting import comment, literal
from fccomodel.evaluation import interpret
from fccomodel.library import regularisers, sets
from fccomodel.normal_form import Prox
from fccomodel.program import errors
from fccomodel.program.emit.carried import Carried, carried
from fccomodel.program.emit.page import function, shaped
from fccomodel.program.lower import LoweredSteps
from fccomodel.program.operations.base import number


class Projection:
    """``project``: its ``lines``, the functions that they call (``called``), the arrays that these
    take (``arrays``)."""

    def __init__(self, lowered: LoweredSteps):
        self.lowered = lowered
        self.called: dict[str, Carried] = {}
        self.arrays: dict[str, torch.Tensor] = {}
        self.lines = [*self.proximal(), *self.projected()]

    @property
    def asks(self) -> bool:
        """Whether a map needs the step size."""
        return any("step" in line for line in self.lines if not line.startswith("#"))

    @property
    def text(self) -> str:
        """The function ``project``."""
        about = (
            "Apply the proximal maps of regularisers and the projections on simple sets to w, in place. "
            "``step``: one step size, or one per coordinate."
        )
        return function("project", about, self.lines or ["return"], "w, step")

    def proximal(self) -> list[str]:
        """Statements for the terms whose prox is used."""
        lines: list[str] = []
        for term in self.lowered.normal.prox:
            start, stop, shape = self.lowered.layout[term.variable]
            regulariser = regularisers.get(term.name)
            assert regulariser is not None, term.name
            name = regulariser.prox.__name__
            self.called[name] = regulariser.prox
            alone = len(self.lowered.layout) == 1
            piece, view = "w" if alone else f"w[{start}:{stop}]", shaped(shape)
            arguments = coefficients(self.lowered, term)
            if alone and not view:
                size = "step"
            else:
                size = f"step if isinstance(step, float) else step[{start}:{stop}]{view}"
            before, after = self.around(centre_key(term), term.centre)
            call = f"{name}({piece}{view}{before}, {size}, {arguments})"
            if view and after:
                call = f"({call}{after}).reshape(-1)"
            else:
                call = f"{call}{'.reshape(-1)' if view else ''}{after}"
            lines += [f"# {comment(term.text, 110)}", f"w.copy_({call})" if alone else f"{piece} = {call}"]
        return lines

    def projected(self) -> list[str]:
        """Statements for the simple sets of variables."""
        lines: list[str] = []
        for name in self.lowered.layout:
            for domain in self.lowered.normal.variables[name].sets:
                lines += [f"# {comment(f'{name} in {domain.name}', 110)}", *self.onto(name, domain)]
        return lines

    def onto(self, name: str, domain: ir.VectorSet) -> list[str]:
        """The statement for one set; steps of their own for each coordinate project in their metric."""
        start, stop, shape = self.lowered.layout[name]
        record = sets.get(domain.family)
        assert record is not None, domain.family
        scaled = record.in_steps if self.lowered.plan.step == "adam" else None
        self.called |= {f.__name__: f for f in carried([record.project, *([scaled] if scaled else [])])}
        arguments = "".join(f", {text}" for text in self.arguments(name, domain, record))
        piece, view = f"w[{start}:{stop}]", shaped(shape)
        before, after = self.around(f"net_set_{name}_{domain.family}_centre", domain.centre)

        def moved(call: str) -> str:
            """The statement that replaces the piece by a call's value."""
            if after:
                return f"{piece} = ({call}{after}).reshape(-1)"
            return f"{piece} = {call}.reshape(-1)"

        plain = moved(f"{record.project.__name__}({piece}{view}{before}{arguments})")
        if scaled is None:
            return [plain]
        metric = moved(f"{scaled.__name__}({piece}{view}{before}, step[{start}:{stop}]{view}{arguments})")
        return ["if isinstance(step, float):", f"    {plain}", "else:", f"    {metric}"]

    def arguments(self, name: str, domain: ir.VectorSet, record: sets.SimpleSet) -> list[str]:
        """The arguments of the projection as texts: numbers, and arrays stored with the initial values."""
        values = [self.value(a) for a in domain.args]
        if reason := record.empty(self.lowered.layout[name][2], *values):
            refuse(errors.empty_set(name, domain, reason), source=self.lowered.problem.source)
        texts = []
        for k, value in enumerate(record.prepare(*values)):
            if isinstance(value, torch.Tensor) and value.dim():
                key = f"net_set_{name}_{domain.family}_{k}"
                self.arrays[key] = value.to(torch.float64)
                texts.append(f"alike(INITIAL, {literal(key)}, w)")
            else:
                texts.append(number(float(value)))
        return texts

    def around(self, key: str, centre: ir.Expr | None) -> tuple[str, str]:
        """The texts that subtract a point from a variable before a map, and that add it after the map."""
        if centre is None:
            return "", ""
        text, array = centred(self.lowered, key, centre)
        if array is not None:
            self.arrays[key] = array
        return f" - {text}", f" + {text}"

    def value(self, node: ir.Expr) -> Any:
        """An argument of a set: a number, or a tensor."""
        return fixed_value(self.lowered, node)


def fixed_value(lowered: LoweredSteps, node: ir.Expr) -> Any:
    """The value of an expression without variables: a number, or a tensor."""
    value = interpret.evaluate(lowered.bound, node, {})
    if value.dim():
        return value
    return float(value)


def centred(lowered: LoweredSteps, key: str, centre: ir.Expr) -> tuple[str, torch.Tensor | None]:
    """The text of a point that a map is around, and its array, kept by ``key`` with the initial
    values; None of a number."""
    value = fixed_value(lowered, centre)
    if not isinstance(value, torch.Tensor):
        return number(value), None
    return f"alike(INITIAL, {literal(key)}, w)", value.to(torch.float64)


def coefficients(lowered: LoweredSteps, term: Prox) -> str:
    """The coefficients of a regulariser as keyword arguments: parameters by their names, else numbers."""
    parameters = lowered.steps.state.numbers

    def text(value: float) -> str:
        """``PARAMETERS['mu']`` if the term is mu times a plain regulariser, otherwise the number."""
        product = re.fullmatch(r"(\w+) \* \w+\(\w+\)", term.text)
        name = quoted(product[1]) if product else ""
        if value and parameters.get(name) == value:
            return f"PARAMETERS[{literal(name)}]"
        return literal(value)

    return ", ".join(f"{key}={text(value)}" for key, value in term.coefficients.items())


def centre_key(term: Prox) -> str:
    """The key of a regulariser's point."""
    return f"net_centre_{term.variable}"
