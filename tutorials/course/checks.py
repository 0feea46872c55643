"""What the exercises of the course are checked by; answers are in ``answers.py``, to be read last.

``check("1.1", answer)`` says whether an answer is right; an answer that is still ``...`` is left alone. Models are
judged by their mathematics: names, order and notation do not count (``fc.grade``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import fccomodel as fc
from fccomodel.core import ir
from fccomodel.evaluation.values import level
from fccomodel.normal_form import normalise

#: Whether an answer is right, or what is wrong with it.
Verdict = bool | str
CHECKS: dict[str, Callable[[Any], Verdict]] = {}


def exercise(name: str) -> Callable[[Callable[[Any], Verdict]], Callable[[Any], Verdict]]:
    """Registers the check of an exercise."""

    def register(test: Callable[[Any], Verdict]) -> Callable[[Any], Verdict]:
        CHECKS[name] = test
        return test

    return register


def check(name: str, answer: Any) -> bool | None:
    """Whether the answer is right, in words as well; None where there is none yet."""
    if answer is ...:
        print(f"{name}: no answer yet")
        return None
    verdict = CHECKS[name](answer)
    right = bool(verdict) and not isinstance(verdict, str)
    print(f"{name}: {'right' if right else 'not yet right'}")
    if isinstance(verdict, str):
        print(verdict)
    return right


def states(name: str, text: str) -> Verdict:
    """Whether a model states the problem of an exercise; else where it differs."""
    from answers import ANSWERS

    found = fc.grade(f"{text}\n", ANSWERS[name], cost=False)
    return True if found.same else found.text(hints=True)


def compiled(text: str) -> Any:
    """The problem of a model, or the errors of its text."""
    try:
        return fc.compile(f"{text}\n").compiled.problem
    except fc.FccoError as error:
        return str(error)


@exercise("1.1")
def _(ending: float) -> bool:
    return abs(ending - 1 / (1 + 2**2 / 4)) < 1e-6


@exercise("1.2")
def _(text: str) -> Verdict:
    problem = compiled(text)
    if isinstance(problem, str):
        return problem
    means = [node for node in problem.expressions(ir.Reduce) if any(map(is_standard, node.binders))]
    if not any(ir.variables_of(node) for node in means):
        return "No expectation over normal(1, 1) depends on w."
    if {term.kind for term in normalise(problem).terms} - {"expectation", "deterministic"}:
        return "The function around the expectation is not affine."
    bound = fc.compile(text).bind().bound
    at = {w: level(bound, {"w": np.array(w)}).objective for w in np.linspace(-2, 2, 9)}
    middles = [at[w] < (at[w - 0.5] + at[w + 0.5]) / 2 - 1e-9 for w in np.linspace(-1.5, 1.5, 7)]
    return all(middles) or "It is not strictly convex."


def is_standard(binder: ir.Binder) -> bool:
    """Whether a binder is a draw from normal(1, 1)."""
    domain = binder.domain
    if not isinstance(domain, ir.Distribution) or domain.family != "normal":
        return False
    return [getattr(arg, "value", None) for arg in domain.args] == [1.0, 1.0]


@exercise("1.3")
def _(text: str) -> Verdict:
    return states("1.3", text)


@exercise("2.1")
def _(variance: float) -> bool:
    return abs(variance - 0.1 / (2 - 0.1)) < 1e-6


@exercise("2.2")
def _(gammas: list[float]) -> bool:
    slow, fast = gammas
    return 0 < slow < fast <= 1


@exercise("2.3")
def _(text: str) -> Verdict:
    return states("2.3", text)


@exercise("3.1")
def _(value: float) -> bool:
    return abs(value - 3.75) < 1e-6


@exercise("3.2")
def _(centre: float) -> bool:
    return abs(centre - 4.0) < 1e-6


@exercise("3.3")
def _(gap: float) -> bool:
    return abs(gap - 2.25) < 1e-6


@exercise("4.1")
def _(next_y: float) -> bool:
    return abs(next_y - 1.5) < 1e-6


@exercise("4.2")
def _(y: list[float]) -> bool:
    """Slopes of absolute values that cancel, so that the bound has no w, and is 5."""
    value = -(y[0] * 1 + y[1] * 2 + y[2] * 6)
    return max(map(abs, y)) <= 1 and abs(sum(y)) < 1e-9 and abs(value - 5) < 1e-6


@exercise("4.3")
def _(text: str) -> Verdict:
    problem = compiled(text)
    if isinstance(problem, str):
        return problem
    if any(isinstance(node, ir.Apply) and node.op == "abs" for node in problem.expressions()):
        return "It has an absolute value."
    return states("4.3", text)


@exercise("5.1")
def _(multiplier: float) -> bool:
    return abs(multiplier - 2.0) < 1e-6


@exercise("5.2")
def _(text: str) -> bool:
    result = fc.compile(text).bind().solve(budget="5s")
    active = {label for label, row in result.report.constraints.items() if abs(row.value) < 1e-4}
    return bool(active) and all(abs(result.report.constraints[k].multiplier) < 1e-3 for k in active)


@exercise("5.3")
def _(text: str) -> Verdict:
    return states("5.3", text)


@exercise("6.1")
def _(variance: float) -> bool:
    return abs(variance - 0.1 / 1.9) < 1e-3


@exercise("6.2")
def _(calls: int) -> bool:
    return calls == 5 * 1000 + 2 * (10 + 20 + 40 + 80 + 160)


@exercise("6.3")
def _(steps: int) -> bool:
    return steps == 4500


@exercise("7.1")
def _(cvar: float) -> bool:
    return abs(cvar - (10 + 9 + 0.5 * 8) / 2.5) < 1e-6


@exercise("7.2")
def _(text: str) -> Verdict:
    return states("7.2", text)


@exercise("7.3")
def _(text: str) -> Verdict:
    return states("7.3", text)


@exercise("8.1")
def _(rows: float) -> bool:
    return abs(rows / (132 * (0.128 / 0.02) ** 2) - 1) < 0.05


@exercise("8.2")
def _(text: str) -> Verdict:
    return states("8.2", text)


@exercise("8.3")
def _(text: str) -> Verdict:
    return states("8.3", text)


@exercise("9.1")
def _(areas: list[float]) -> bool:
    return np.allclose(areas, [0.75, 0.5])


@exercise("9.2")
def _(text: str) -> Verdict:
    return states("9.2", text)


@exercise("9.3")
def _(text: str) -> Verdict:
    return states("9.3", text)


@exercise("10.1")
def _(rho: float) -> bool:
    return abs(rho - 0.25) < 1e-4


@exercise("10.2")
def _(step: Callable[..., Any]) -> bool:
    import torch

    state = SimpleNamespace(w=torch.tensor([1.0, 2.0, 3.0]), v=torch.tensor([0.5, -0.5, 0.1]))
    sizes = step(state, torch.tensor([1.0, 1.0, -1.0]), SimpleNamespace(eta=0.1, beta=0.2))
    right = torch.allclose(state.v, torch.tensor([0.6, -0.2, -0.12])) and torch.allclose(state.w, torch.tensor([0.9, 2.1, 3.1]))
    return right and torch.allclose(torch.as_tensor(sizes), torch.tensor(0.1))


@exercise("10.3")
def _(constant: float) -> bool:
    return abs(constant - 2.0) < 1e-4
