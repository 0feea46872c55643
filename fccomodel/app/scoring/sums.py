"""Sums around a score: what a model adds to it, such as an intercept, and whether it only compares scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.library import atoms, linear

#: A sign and an expression: one of the terms of a sum.
Term = tuple[int, ir.Expr]


@dataclass(frozen=True)
class Taken:
    """Where a score is in a model.

    at              whether a node is the score of a row, or of a difference of two rows
    is_difference   whether it is the score of a difference
    """

    at: Callable[[ir.Expr], bool]
    is_difference: Callable[[ir.Expr], bool]


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreInSum:
    """The score at one place of the model, and what is added to it there.

    row     the row that the score is taken of
    expr    the score
    terms   the terms beside it that have variables, with their signs relative to the score's
    """

    row: ir.Binder
    expr: ir.Expr
    terms: tuple[Term, ...]

    def total(self) -> ir.Expr:
        """The sum of the score and the terms."""
        total = self.expr
        for sign, term in self.terms:
            shape = max(total.shape, term.shape, key=len)
            op = "add" if sign > 0 else "sub"
            total = ir.Apply(op=op, args=(total, term), shape=shape, span=term.span)
        return total

    def text(self, problem: ir.Problem) -> str:
        """The terms as text, the same for every name of the row."""
        texts = [("+ " if sign > 0 else "- ") + problem.text(term) for sign, term in self.terms]
        return re.sub(rf"\b{re.escape(self.row.name)}\b", "row", " ".join(sorted(texts)))


def additions(problem: ir.Problem, taken: Taken) -> list[ScoreInSum]:
    """The terms that the model adds to a score, for each place where a sum has the score once."""
    sums = list(_sums(problem))
    thresholds = {variable.name for parts in sums for variable in _thresholds(parts, taken)}
    terms = []
    for parts in sums:
        scores = [(sign, term) for sign, term in parts if _is_score(term, taken)]
        others = [(sign, term) for sign, term in parts if not _is_score(term, taken)]
        if len(scores) != 1 or any(_has_score(term, taken) for _, term in others):
            continue
        sign, score = scores[0]
        row = next(iter(ir.free_binders(score)), None)
        if row is None or taken.is_difference(score):
            continue
        kept = tuple((sign * s, t) for s, t in others if _belongs(problem, t, row, thresholds))
        if kept or taken.at(score):
            terms.append(ScoreInSum(row=row, expr=score, terms=kept))
    return terms


@dataclass(frozen=True, eq=False)
class _Product:
    """A term of a sum as ``core`` times factors without variables.

    factors  their texts
    of_row   whether one of them depends on the row
    """

    core: ir.Expr
    factors: tuple[str, ...]
    of_row: bool


def scaled(problem: ir.Problem, taken: Taken) -> list[str]:
    """The score times its factors, and a term that the model adds to this product; [] if it adds none.

    In ``2 * dot(w, z.x) + b`` the model takes neither the score nor the score plus ``b``. A factor of the
    row, as in ``z.dose * dot(w, z.x) + b``, makes the score a part of its own, unless ``b`` has it too.
    """
    sums, thresholds = [], set()
    for parts in _sums(problem):
        products = [(_product(problem, term), term) for _, term in parts]
        scores = [(product, term) for product, term in products if product.factors and taken.at(product.core)]
        if not scores:
            thresholds |= {variable.name for variable in _thresholds(parts, taken)}
        elif len(scores) == 1 and not taken.is_difference(scores[0][0].core):
            sums.append((products, scores))
    for products, scores in sums:
        score, whole = scores[0]
        row = next(iter(ir.free_binders(score.core)), None)
        for product, term in products:
            beside = term is not whole and not ir.variables_of(term) & ir.variables_of(score.core)
            alike = product.factors == score.factors or not score.of_row
            if row is not None and beside and alike and _belongs(problem, term, row, thresholds):
                return [problem.text(whole), problem.text(term)]
    return []


def negated(problem: ir.Problem, taken: Taken) -> str:
    """A formula in which the model takes minus the score, as text; "" if there is none.

    Two places show it: a label times a sum with minus the score, as in ``z.y * (b - dot(w, z.x))``, and an
    even function of a sum where score and data have the same sign, as in ``(dot(w, z.x) + z.y)^2``.
    """
    for node in problem.expressions():
        if isinstance(node, ir.Apply):
            for summed in _label_times(node):
                if any(sign < 0 and taken.at(term) for sign, term in terms(_outermost(summed))):
                    return problem.text(node)
            if (base := _base_of_even(node)) is not None and _beside_data(_outermost(base), taken):
                return problem.text(node)
    return ""


def _base_of_even(node: ir.Apply) -> ir.Expr | None:
    """The argument u of an even function such as ``u^2``, ``abs(u)`` or ``huber(u, 1)``, or None."""
    atom = atoms.of(node)
    if atom is not None and atom.even and not atom.symbol:
        return node.args[0]
    return atoms.squared(node)


def _outermost(node: ir.Expr) -> ir.Expr:
    """The formula with the lets at its top written out."""
    while isinstance(node, ir.LetRef):
        node = node.let.body
    return node


def _label_times(node: ir.Apply) -> Iterator[ir.Expr]:
    """The factors with variables that the node multiplies by a number of a row."""
    if node.op == "mul":
        for factor, other in (node.args, node.args[::-1]):
            if ir.free_binders(other) and not ir.variables_of(other) and ir.variables_of(factor):
                yield factor


def _beside_data(summed: ir.Expr, taken: Taken) -> bool:
    """Whether a sum has the score, and numbers of a row without variables, all with the sign of the score."""
    parts = terms(summed)
    signs = {sign for sign, term in parts if taken.at(term) and not taken.is_difference(term)}
    of_data = {sign for sign, term in parts if ir.free_binders(term) and not ir.variables_of(term)}
    return len(signs) == 1 and signs == of_data


def _product(problem: ir.Problem, term: ir.Expr) -> _Product:
    """The term with its factors peeled off."""
    factors: list[str] = []
    of_row = False
    while isinstance(term, ir.Apply) and term.op in ("mul", "div"):
        (left, right), op = term.args, term.op
        if not ir.variables_of(right):
            factor, term = right, left
        elif op == "mul" and not ir.variables_of(left):
            factor, term = left, right
        else:
            break
        factors.append(f"{op} {problem.text(factor)}")
        of_row = of_row or bool(ir.free_binders(factor))
    return _Product(term, tuple(sorted(factors)), of_row)


def _is_score(node: ir.Expr, taken: Taken) -> bool:
    """Whether the node is the score, or a `let` whose sum has it."""
    if isinstance(node, ir.LetRef):
        return any(taken.at(term) for _, term in terms(node.let.body))
    return taken.at(node)


def _has_score(node: ir.Expr, taken: Taken) -> bool:
    """Whether the score is somewhere in an expression."""
    return any(taken.at(inner) for inner in ir.walk(node))


def only_compared(problem: ir.Problem, taken: Taken) -> bool:
    """Whether the model takes a score in differences alone: adding a constant to it changes nothing."""
    taking = [[(sign, term) for sign, term in parts if taken.at(term)] for parts in _sums(problem)]
    return any(taking) and all(
        sum(sign for sign, term in scores if not taken.is_difference(term)) == 0 for scores in taking
    )


def _sums(problem: ir.Problem) -> Iterator[list[Term]]:
    """The terms of every sum that is no part of another sum. An expression in no sum is one term."""
    for root in problem.roots:
        yield terms(root)
    for node in problem.expressions():
        if isinstance(node, ir.LetRef):
            yield terms(node.let.body)
        if not _is_sum(node) and not isinstance(node, ir.Item):
            for child in node.children:
                yield terms(child)


def _is_sum(node: ir.Expr) -> bool:
    """Whether the node is a sum, a difference or a negative."""
    return isinstance(node, ir.Apply) and node.op in ("add", "sub", "neg")


def terms(node: ir.Expr) -> list[Term]:
    """The terms of a sum with their signs; the node itself if it is none."""
    return [(term.sign, term.core) for term in linear.terms(node, fixed=lambda _: False)]


def _thresholds(parts: list[Term], taken: Taken) -> Iterator[ir.Var]:
    """The variables beside a loss of the score, as in a tail mean written out: ``t + E pos(loss - t)``."""
    if not any(_is_score(term, taken) for _, term in parts):
        variables = [term for _, term in parts if isinstance(term, ir.Var)]
        if variables and any(_has_score(term, taken) for _, term in parts):
            yield from variables


def _belongs(problem: ir.Problem, term: ir.Expr, row: ir.Binder, thresholds: set[str]) -> bool:
    """Whether a term belongs to the score: it has variables, and depends on the row alone.

    A threshold of a tail mean does not belong to it, nor does a slack, which has an entry for each row.
    """
    names = ir.variables_of(term)
    slack = any(
        dim in problem.tables or isinstance(problem.sets.get(str(dim)), ir.RowSet)
        for name in names
        for dim in problem.variables[name].shape
    )
    reads = ir.free_binders(term)
    return bool(names) and not slack and not names & thresholds and all(binder is row for binder in reads)
