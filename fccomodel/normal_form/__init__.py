"""The normal form: minimise a sum of compositions f_i(E g_i) plus regularisers over simple sets.

Constraints enter the sum as penalties.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.rewrite import shared
from fccomodel.data.bound import Bound
from fccomodel.library import atoms, reductions
from fccomodel.library.identities import canonical
from fccomodel.normal_form import errors, reformulations
from fccomodel.normal_form._passes import without_pairs
from fccomodel.normal_form._sets import Prox, projections, split_regularisers
from fccomodel.normal_form.constants import constant_values, known_sizes
from fccomodel.normal_form.outer_functions import refusal
from fccomodel.normal_form.penalty import Penalty
from fccomodel.normal_form.reformulations import Chain, Reformulation
from fccomodel.normal_form.smoothing import Smoothed, envelopes
from fccomodel.normal_form.terms import Term, compositions, describe, plug_ins, sampled

__all__ = ["Forms", "NormalForm", "Prox", "Term", "constant_values", "normalise", "sampled"]


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalForm:
    """The problem that the algorithms solve, and how each part of the user's problem is treated.

    chain       the reformulations applied, in order
    reformed    the problem after the equivalent reformulations, before any smoothing or penalty
    variables   the user's variables and those that reformulations added
    objective   the minimised function with envelopes and with penalties of constraints
    rest        the objective without its regularisers, before any smoothing
    prox        the regularisers
    terms       the objective's summands and the constraints
    treatment   (text, how, why) per non-smooth or simple part: prox, projected, smoothed, subgradient
    kept        non-smooth parts left to a subgradient, each with whether it is inside an expectation
    reasons     for each of ``kept``, why
    """

    problem: ir.Problem
    chain: Chain
    reformed: ir.Problem
    variables: Mapping[str, ir.Variable]
    objective: ir.Expr
    rest: ir.Expr
    prox: tuple[Prox, ...]
    terms: tuple[Term, ...]
    treatment: tuple[tuple[str, str, str], ...]
    kept: tuple[tuple[ir.Expr, bool], ...] = ()
    reasons: tuple[str, ...] = ()

    @cached_property
    def smoothed(self) -> tuple[Smoothed, ...]:
        """The envelopes in the objective; each also holds the exact function."""
        return tuple(envelopes(self.objective))

    @cached_property
    def penalties(self) -> Mapping[str, Smoothed | Penalty]:
        """The penalty of each constraint family, or the penalty's envelope, by the family's label.

        The slope of either is the multiplier.
        """
        exact = {node.label: node for node in ir.walk(self.objective) if isinstance(node, Penalty)}
        return exact | {s.penalty.label: s for s in self.smoothed if s.penalty is not None}

    @property
    def via(self) -> tuple[str, ...]:
        """Titles of the reformulations applied, in order."""
        return tuple(step.reformulation.title for step in self.chain.steps)


class Stated(NamedTuple):
    """A problem after the equivalent reformulations, before any smoothing.

    chain     the reformulations
    reformed  the problem that they give
    smooth    ``reformed`` without its regularisers
    prox      the regularisers
    terms     the objective's summands and the constraints
    """

    chain: Chain
    reformed: ir.Problem
    smooth: ir.Problem
    prox: tuple[Prox, ...]
    terms: tuple[Term, ...]


class Forms:
    """The normal forms of a problem for different algorithms; common parts are computed once.

    Sizes and constants come from ``bound`` if it is given, otherwise from the declared defaults.
    """

    def __init__(self, problem: ir.Problem, bound: Bound | None = None):
        refuse_steps(problem)
        self.problem, self.bound = problem, bound
        self.constant, self.sizes = constant_values(problem, bound), known_sizes(problem, bound)
        self.canonical = canonical(problem, self.sizes)
        self.stated: dict[tuple[bool, str | None], Stated] = {}
        self.treated: dict[tuple[Any, ...], NormalForm] = {}

    def __call__(
        self,
        *,
        outer: str = "moreau",
        inner: str = "moreau",
        penalty: str | None = reformulations.PENALTY,
        coupled: bool = False,
        surrogate: str | None = None,
    ) -> NormalForm:
        """The normal form for an algorithm.

        outer      how the algorithm treats kinks of outer functions
        inner      how it treats kinks inside expectations: ``moreau`` or ``subgradient``
        penalty    its penalty for constraints; None (it takes no constraint) means the smoothed hinge
        coupled    whether it takes the worst of a family (a maximum or a tail mean) as one function
                   of all members
        surrogate  the reformulation by which it solves another problem, or None
        """
        stated_key = (coupled, surrogate)
        if stated_key not in self.stated:
            self.stated[stated_key] = self._stated(coupled, surrogate)
        key = (*stated_key, outer, inner, penalty)
        if key not in self.treated:
            self.treated[key] = self._treated(self.stated[stated_key], outer, inner, penalty)
        return self.treated[key]

    @cached_property
    def passes(self) -> tuple[tuple[str, str, str], ...]:
        """(text, how, why) for the pairs of rows that full passes avoid; the same in every form."""
        return tuple(without_pairs(self.problem, self.bound, self.constant))

    def _stated(self, coupled: bool, surrogate: str | None) -> Stated:
        forms = [r for r in reformulations.all() if r.role == "equivalent" or r.name == surrogate]
        unwanted = reformulations.STRUCTURE
        if coupled:
            unwanted -= set(reductions.named(lambda kind: kind.tail))
        if surrogate:
            unwanted |= {"worst case"}
        chain = reformulations.chain(self.canonical, unwanted, forms, self.constant)
        reformed = shared(canonical(chain.problem, self.sizes))
        terms = [
            describe("objective", part, reformed, self.bound)
            for part in compositions(reformed.objective.expr)
        ]
        rest, prox = split_regularisers(reformed, self.constant)
        smooth = dataclasses.replace(
            reformed,
            variables=projections(reformed, self.constant),
            objective=dataclasses.replace(reformed.objective, expr=rest),
        )
        terms += [
            describe(c.label, c.body, smooth, self.bound)
            for c in smooth.constraints
            if ir.variables_of(c.body)
        ]
        return Stated(chain, reformed, smooth, tuple(prox), tuple(terms))

    def _treated(self, stated: Stated, outer: str, inner: str, penalty: str | None) -> NormalForm:
        reformed, constant = stated.smooth, self.constant
        treated = reformulations.chain(reformed, *form(outer, inner, penalty), constant)
        objective = treated.problem.objective.expr
        kept = reformulations.kinks([objective], constant)
        envelopes = {False: outer in ("moreau", "dual", "entropy", "conjugate"), True: inner == "moreau"}
        reasons = tuple(
            refusal(n, constant) if envelopes[inside] else "the algorithm takes its subgradients"
            for n, inside in kept
        )
        whys = dict(zip((n for n, _ in kept), reasons, strict=True))
        return NormalForm(
            problem=self.problem,
            chain=stated.chain.then(treated),
            reformed=stated.reformed,
            objective=objective,
            variables=treated.problem.variables,
            rest=reformed.objective.expr,
            prox=stated.prox,
            terms=stated.terms,
            kept=tuple(kept),
            reasons=reasons,
            treatment=(
                *treatment(reformed, objective, stated.terms, stated.prox, whys, treated),
                *self.passes,
            ),
        )


def normalise(problem: ir.Problem, bound: Bound | None = None, **treatment: Any) -> NormalForm:
    """One normal form of a problem (see ``Forms``)."""
    return Forms(problem, bound)(**treatment)


def form(outer: str, inner: str, penalty: str | None) -> tuple[set[str], list[Reformulation]]:
    """The features that an algorithm cannot take, and the reformulations by which it removes them."""
    ways = [reformulations.get(penalty or reformulations.PENALTY)]
    unwanted = {"constraints"}
    if outer == "smooth" and penalty is not None:
        unwanted, ways = unwanted | {"worst case"}, [*ways, reformulations.get("worst_group")]
    if outer in ("moreau", "dual"):
        unwanted, ways = unwanted | {"kinks outside"}, [*ways, reformulations.get("moreau")]
    if outer == "entropy":
        unwanted, ways = unwanted | {"kinks outside"}, [*ways, reformulations.get("entropic")]
    if outer == "conjugate":
        unwanted, ways = (
            unwanted | {"kinks outside", "curves outside"},
            [*ways, reformulations.get("conjugate")],
        )
    if inner == "moreau":
        unwanted, ways = unwanted | {"kinks inside"}, [*ways, reformulations.get("nested_moreau")]
    return unwanted, ways


def treatment(
    problem: ir.Problem,
    objective: ir.Expr,
    terms: tuple[Term, ...],
    prox: tuple[Prox, ...],
    kept: Mapping[ir.Expr, str],
    chain: Chain,
) -> Iterator[tuple[str, str, str]]:
    """(text, how, why) for each part that is not smooth, or that is simple."""
    for p in prox:
        yield p.text, "prox", f"no data, and the prox of {p.name} is known"
    for name, variable in problem.variables.items():
        for s in variable.sets:
            yield name, "projected", f"a simple set: {s.family}"
    yield from _constraints(problem, chain)
    for envelope in envelopes(objective):
        if envelope.penalty is None:
            if envelope.inner:
                why = "inside an expectation"
            else:
                why = outer_words(envelope.original)
            yield problem.text(envelope.stated), "smoothed", why
    yield from ((problem.text(node), "subgradient", reason) for node, reason in kept.items())
    for term in terms:
        if term.kind == "expectation" and term.d1 > 1:
            yield (
                term.text,
                "merged",
                "an affine function of expectations is one: E[a g + b] is sampled, without an estimate",
            )
    for node in plug_ins(objective):
        yield (
            problem.text(node),
            "plug-in",
            "its draw is met once, so that a minibatch stands for it: a biased estimate",
        )


def _constraints(problem: ir.Problem, chain: Chain) -> Iterator[tuple[str, str, str]]:
    """(label, how, why) for each constraint."""
    varying = []
    for constraint in problem.constraints:
        if ir.variables_of(constraint.body):
            varying.append(constraint)
        else:
            yield constraint.label, "constant", "no variable is in it: the report says whether it holds"
    applied = {step.reformulation.name: step for step in chain.steps}
    for step in applied.values():
        if step.reformulation.role == "penalty":
            how = "smoothed" if "envelopes" in step.reformulation.gives else "penalised"
            yield from ((c.label, how, sentence) for c in varying for sentence in step.sentences)


def outer_words(original: ir.Expr) -> str:
    """How an outer function is smoothed, in words."""
    atom = atoms.of(original)
    least = atom is not None and atom.extreme < 0
    if least or isinstance(original, ir.Reduce) and reductions.of(original).sign < 0:
        return (
            "a concave non-smooth outer function, smoothed from below: the theorem covers the "
            "smoothed problem alone"
        )
    return "a non-smooth outer function, by its Moreau envelope"


def refuse_steps(problem: ir.Problem) -> None:
    """Raise F0610 for every condition on the variables: its derivative is zero wherever it exists."""
    if varying := [node for node in problem.expressions() if _step(node) and ir.variables_of(node)]:
        refuse(*(errors.step_function(problem, node) for node in varying), source=problem.source)


def _step(node: ir.Expr) -> bool:
    """Whether the node is a function of numbers that is constant wherever it has a derivative."""
    atom = atoms.of(node)
    return atom is not None and atom.flat and not any(_is_truth(child) for child in node.children)


def _is_truth(node: ir.Expr) -> bool:
    """Whether the value of the node is true or false."""
    atom = atoms.of(node)
    return atom is not None and atom.boolean
