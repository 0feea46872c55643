"""The normal form: minimise a sum of compositions f_i(E g_i) plus regularisers over simple sets,
constraints as penalties."""

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
    """What the algorithms solve, and what became of each part of the problem.

    chain       the reformulations applied, in order
    reformed    after those that give the same problem, before any smoothing or penalty
    variables   the user's and those that reformulations added
    objective   smooth where envelopes made it so; penalties of constraints included
    rest        the objective but its regularisers, before any smoothing
    prox        regularisers                              terms   the objective's summands and the constraints
    treatment   (text, how, why) per non-smooth or simple part: prox, projected, smoothed, subgradient
    kept        non-smooth parts left to a subgradient, each with whether it is inside an
                expectation; ``reasons`` why, for each
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
        """Every envelope, with the exact function beside it."""
        return tuple(envelopes(self.objective))

    @cached_property
    def penalties(self) -> Mapping[str, Smoothed | Penalty]:
        """Per constraint family: its penalty, or the envelope of that, whose slope is the multiplier."""
        exact = {node.label: node for node in ir.walk(self.objective) if isinstance(node, Penalty)}
        return exact | {s.penalty.label: s for s in self.smoothed if s.penalty is not None}

    @property
    def via(self) -> tuple[str, ...]:
        """Titles of the reformulations applied, in order."""
        return tuple(step.reformulation.title for step in self.chain.steps)


class Stated(NamedTuple):
    """A problem after the reformulations that keep it the same; ``smooth``: without its regularisers,
    before any smoothing."""

    chain: Chain
    reformed: ir.Problem
    smooth: ir.Problem
    prox: tuple[Prox, ...]
    terms: tuple[Term, ...]


class Forms:
    """The normal forms of a problem by what an algorithm makes of it, each part once; sizes and
    constants come from ``bound`` where there is one, else from defaults."""

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
        """
        outer, penalty   an algorithm's declared form (one that takes no constraint gets the
                         smoothed hinge all the same)
        inner            ``moreau`` or ``subgradient``: what it makes of kinks inside expectations
        coupled          it takes the worst of a family, a maximum or a tail mean, as one function
                         of all members
        surrogate        the reformulation by which it solves another problem
        """
        if (first := (coupled, surrogate)) not in self.stated:
            self.stated[first] = self._stated(coupled, surrogate)
        if (whole := (*first, outer, inner, penalty)) not in self.treated:
            self.treated[whole] = self._treated(self.stated[first], outer, inner, penalty)
        return self.treated[whole]

    @cached_property
    def passes(self) -> tuple[tuple[str, str, str], ...]:
        """What becomes of pairs of rows in full passes, the same in every form."""
        return tuple(without_pairs(self.problem, self.bound, self.constant))

    def _stated(self, coupled: bool, surrogate: str | None) -> Stated:
        forms = [r for r in reformulations.all() if r.role == "equivalent" or r.name == surrogate]
        unwanted = reformulations.STRUCTURE - (
            set(reductions.named(lambda kind: kind.tail)) if coupled else set()
        )
        if surrogate:
            unwanted |= {"worst case"}
        else:
            unwanted |= set()
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
        asked = {False: outer in ("moreau", "dual", "entropy", "conjugate"), True: inner == "moreau"}
        reasons = tuple(
            refusal(n, constant) if asked[inside] else "the algorithm takes its subgradients"
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
    """The features that an algorithm cannot take, and the reformulations that take them away in its
    own way."""
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
    """What became of each part that is not smooth, or simple: text, how, why."""
    for p in prox:
        yield p.text, "prox", f"no data, and the prox of {p.name} is known"
    for name, variable in problem.variables.items():
        for s in variable.sets:
            yield name, "projected", f"a simple set: {s.family}"
    for constraint in problem.constraints:
        if not ir.variables_of(constraint.body):
            yield constraint.label, "constant", "no variable is in it: the report says whether it holds"
    applied = {step.reformulation.name: step for step in chain.steps}
    for step in applied.values():
        if step.reformulation.role == "penalty":
            how = "smoothed" if "envelopes" in step.reformulation.gives else "penalised"
            yield from (
                (c.label, how, sentence)
                for c in problem.constraints
                if ir.variables_of(c.body)
                for sentence in step.sentences
            )
    for made in envelopes(objective):
        if made.penalty is None:
            yield (
                problem.text(made.stated),
                "smoothed",
                "inside an expectation" if made.inner else outer_words(made.original),
            )
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


def outer_words(original: ir.Expr) -> str:
    """What smoothing does to an outer function."""
    atom = atoms.of(original)
    least = atom is not None and atom.extreme < 0
    if least or isinstance(original, ir.Reduce) and reductions.of(original).sign < 0:
        return (
            "a concave non-smooth outer function, smoothed from below: the theorem covers the "
            "smoothed problem alone"
        )
    return "a non-smooth outer function, by its Moreau envelope"


def refuse_steps(problem: ir.Problem) -> None:
    """Raises F0610 for every condition on the variables: its derivative is zero wherever there is one."""
    if varying := [node for node in problem.expressions() if _step(node) and ir.variables_of(node)]:
        refuse(*(errors.step_function(problem, node) for node in varying), source=problem.source)


def _step(node: ir.Expr) -> bool:
    """A function of numbers that is constant wherever it has a derivative."""
    atom = atoms.of(node)
    return atom is not None and atom.flat and not any(_is_truth(child) for child in node.children)


def _is_truth(node: ir.Expr) -> bool:
    atom = atoms.of(node)
    return atom is not None and atom.boolean
