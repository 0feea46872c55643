"""Texts that cost more than others of the same meaning, and what to write instead.

``tutorials/guide/faster.md`` has the seconds that each of them takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from fccomodel.core import ir
from fccomodel.library import linear

#: Constraints written one by one from which a family is worth a note.
WRITTEN_ALONE = 20
#: The operation that makes 1 or 0 of a condition.
INDICATOR = "indicator"
#: The reductions that are means.
MEANS = ("E", "mean")


def costly(problem: ir.Problem) -> list[str]:
    """A note for each costly text of a model."""
    return [
        *_written_alone(problem),
        *_largest_by_a_variable(problem),
        *_tail_by_a_variable(problem),
        *_conditions_as_factors(problem),
    ]


def _written_alone(problem: ir.Problem) -> Iterator[str]:
    """A note on many constraints that have a statement each and no expectation."""
    alone = [c for c in problem.constraints if not c.binders and "Reduce" not in ir.contents(c.body)]
    statements = {c.label.removesuffix(".lower").removesuffix(".upper") for c in alone}
    if len(statements) >= WRITTEN_ALONE:
        yield (
            f"{len(statements)} constraints have a statement each, and each is analysed by itself. One "
            "family over a table of their coefficients says the same, and is analysed once: "
            "`data R : table(a: real[d], b: real);` and `rows[r in R]: dot(r.a, w) <= r.b;`"
        )


def _largest_by_a_variable(problem: ir.Problem) -> Iterator[str]:
    """A note on a variable that is minimised and bounds a family of expectations: it is their maximum."""
    sense = 1 if problem.objective.sense == "minimize" else -1
    word = "max" if sense > 0 else "min"
    for name in _scalars(problem):
        if _signs(problem.objective.expr, name) != [1]:
            continue
        bounded = [c for c in problem.constraints if name in ir.variables_of(c.body)]
        if len(bounded) == 1 and _is_bound_by(bounded[0], name, sense):
            over = ", ".join(f"{binder.name} in {binder.domain.name}" for binder in bounded[0].binders)
            yield (
                f"`{name}` with `{bounded[0].label}` stands for the {word}imum of the family: "
                f"`{word}[{over}] ...` in the objective says the same, without a variable and constraints"
            )


def _is_bound_by(constraint: ir.Constraint, name: str, sense: int) -> bool:
    """Whether a constraint is a family of expectations below a variable (above it, if it is maximised)."""
    if not constraint.binders or constraint.kind != "le" or "Reduce" not in ir.contents(constraint.body):
        return False
    return _signs(constraint.body, name) == [-sense]


def _tail_by_a_variable(problem: ir.Problem) -> Iterator[str]:
    """A note on tail means that are written out, ``t + E pos(loss - t) / a``."""
    for root in problem.roots:
        means = [term.core for term in linear.terms(root) if isinstance(term.core, ir.Reduce)]
        for name in _scalars(problem):
            if 1 in _signs(root, name, alone=False) and any(_is_excess(mean, name) for mean in means):
                yield (
                    f"`{name} + ... pos(loss - {name})` is a tail mean that is written out: "
                    "`cvar(tail = ...)[z ~ D] loss` says the same, without a variable"
                )


def _is_excess(mean: ir.Reduce, name: str) -> bool:
    """Whether a reduction is the mean of ``pos(loss - t)`` for the variable."""
    if mean.kind not in MEANS:
        return False
    match [term.core for term in linear.terms(mean.body)]:
        case [ir.Apply(op="pos", args=(argument,))]:
            return _signs(argument, name) == [-1]
    return False


def _conditions_as_factors(problem: ir.Problem) -> Iterator[str]:
    """Notes on conditions between two rows that multiply what a mean is of: all pairs are visited."""
    for mean in problem.expressions(ir.Reduce):
        if mean.kind not in (*MEANS, "sum"):
            continue
        for factor in _factors(mean.body):
            rows = [b for b in ir.free_binders(factor) if isinstance(b.domain, ir.RowSet)]
            inner = [b for b in rows if b in mean.binders]
            if isinstance(factor, ir.Apply) and factor.op == INDICATOR and inner and len(rows) > 1:
                text = problem.text(factor)
                yield (
                    f"`{text}` is a factor, so every pair of rows is visited. As a condition of the set, "
                    f"`[{inner[-1].name} ~ {inner[-1].domain.name} | {text}]`, it visits only the pairs that "
                    "fit (a mean is then over those pairs)"
                )


def _factors(node: ir.Expr) -> Iterator[ir.Expr]:
    """The factors of a product; the node itself if it is none."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, ir.Apply) and top.op == "mul":
            stack.extend(top.args)
        else:
            yield top


def _scalars(problem: ir.Problem) -> Iterator[str]:
    """The variables of one number without bounds."""
    return (name for name, of in problem.variables.items() if of.shape == () and not of.sets)


def _signs(expr: ir.Expr, name: str, *, alone: bool = True) -> list[int]:
    """The signs of a variable among the terms of a sum.

    Empty if it has a factor or, where it must stand ``alone``, if another term depends on it.
    """
    signs = []
    for term in linear.terms(expr):
        if isinstance(term.core, ir.Var) and term.core.name == name and not term.factors:
            signs.append(term.sign)
        elif alone and name in ir.variables_of(term.core):
            return []
    return signs
