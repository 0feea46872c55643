"""The section with the algorithm's step: estimator, update, prox and projections."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.quoting import comment, literal
from fccomodel.evaluation import interpret
from fccomodel.library import regularisers, sets
from fccomodel.solver import errors
from fccomodel.solver.emit.carried import Carried, carried, source
from fccomodel.solver.emit.sections import Sections
from fccomodel.solver.operations._base import number
from fccomodel.solver.operations.estimates import track


class Update(Sections):
    """The algorithm's functions, and ``project``."""

    def functions(self) -> dict[str, Carried]:
        """The algorithm's own, by their names in the solver's record."""
        return self.plan.algorithm_record.functions(self.plan.step, self.plan.pace)

    def update_section(self, elsewhere: Collection[Carried]) -> str:
        """With what they call that does not stand ``elsewhere`` in the program."""
        algorithm = self.plan.algorithm_record
        estimator = algorithm.estimator
        used = [getattr(estimator, name) for name in self.trackers()]
        used += [estimator.extrapolate] if estimator and self.step.state.dual and self.plan.remembers else []
        used += [estimator.multiplier] if estimator and self.inequalities() else []
        used += [estimator.couple] if estimator and self.step.state.coupled else []
        text = [
            f"# ---- {algorithm.title}: {algorithm.theorem}",
            *(line for f in carried([*used, *self.functions().values()], elsewhere) for line in (source(f), "", "")),
            "def project(w, step):",
            '    """Proximal maps of regularisers, projections on simple sets, in place; one step or one per coordinate."""',
        ]
        helpers, lines = self.proximal_lines()
        return "\n".join([*helpers, *text, *(lines or ["    return"])])

    def trackers(self) -> list[str]:
        """The functions of the estimator that some estimate is updated by."""
        if self.plan.algorithm_record.estimator is None:
            return []
        tracks = [v for v in self.step.state.graph.vals if v.op is track and v.attrs["name"]]
        return sorted({"track_log" if v.attrs.get("log") else "track" for v in tracks})

    def proximal_lines(self) -> tuple[list[str], list[str]]:
        helpers: dict[str, str] = {}
        lines: list[str] = []
        for p in self.normal.prox:
            start, stop, shape = self.layout[p.variable]
            regulariser = regularisers.get(p.name)
            assert regulariser is not None, p.name
            function = regulariser.prox
            helpers[function.__name__] = source(function)
            alone = len(self.layout) == 1
            piece = "w" if alone else f"w[{start}:{stop}]"
            size = "step" if alone else f"step if isinstance(step, float) else step[{start}:{stop}]"
            arguments = ", ".join(f"{key}={literal(value)}" for key, value in p.coefficients.items())
            lines.append(f"    # {comment(p.text, 110)}")
            if len(shape) == 1:
                found = f"{function.__name__}({piece}, {size}, {arguments})"
            else:
                view = f".view({', '.join(map(str, shape)) or '()'})"
                entries = f"step if isinstance(step, float) else step[{start}:{stop}]{view}"
                found = f"{function.__name__}({piece}{view}, {entries}, {arguments}).reshape(-1)"
            lines.append(f"    w.copy_({found})" if alone else f"    {piece} = {found}")
        for name, (start, stop, shape) in self.layout.items():
            for domain in self.normal.variables[name].sets:
                record = sets.get(domain.family)
                assert record is not None, domain.family
                scaled = record.in_steps if self.plan.step == "adam" else None
                used = [record.project, *([scaled] if scaled else [])]
                helpers |= {f.__name__: source(f) for f in carried(used)}
                arguments = "".join(f", {text}" for text in self.set_arguments(name, domain))
                piece = f"w[{start}:{stop}]"
                view = "" if len(shape) == 1 else f".view({', '.join(map(str, shape)) or '()'})"
                found = f"{record.project.__name__}({piece}{view}{arguments})"
                lines.append(f"    # {comment(f'{name} in {domain.name}', 110)}")
                if scaled:
                    lines += [
                        "    if isinstance(step, float):",
                        f"        {piece} = {found}.reshape(-1)",
                        "    else:",
                        f"        {piece} = {scaled.__name__}({piece}{view}, step[{start}:{stop}]{view}{arguments}).reshape(-1)",
                    ]
                else:
                    lines.append(f"    {piece} = {found}.reshape(-1)")
        return [line for text in helpers.values() for line in (text, "", "")], lines

    def set_arguments(self, name: str, domain: ir.VectorSet) -> list[str]:
        """What the projection takes, as text: numbers, and arrays kept with the initial values."""
        record = sets.get(domain.family)
        assert record is not None, domain.family
        values = [self.set_value(a) for a in domain.args]
        shape = self.layout[name][2]
        if reason := record.empty(shape, *values):
            refuse(errors.empty_set(name, domain, reason), source=self.problem.source)
        texts = []
        for k, value in enumerate(record.prepare(*values)):
            if isinstance(value, torch.Tensor) and value.dim():
                key = f"net_set_{name}_{domain.family}_{k}"
                self.initial[key] = value.to(torch.float64)
                texts.append(f"INITIAL[{literal(key)}].to(w)")
            else:
                texts.append(number(float(value)))
        return texts

    def set_value(self, node: ir.Expr) -> Any:
        """An argument of a set: a number, or a tensor."""
        value = interpret.evaluate(self.bound, node, {})
        return value if value.dim() else float(value)
