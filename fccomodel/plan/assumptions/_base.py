"""The records of an assumption, of a finding about it, and of the parts of a problem."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.core.ir import NOWHERE
from fccomodel.core.rewrite import const
from fccomodel.core.source import Span
from fccomodel.data.bound import Bound
from fccomodel.library.atoms import Interval
from fccomodel.library.sums import summands
from fccomodel.normal_form import NormalForm, Term, reformulations, sampled
from fccomodel.plan.assumptions._parallel import Parallel, parallel
from fccomodel.plan.sizes import Batch
from fccomodel.structure import Analysis
from fccomodel.structure import why as derivation
from fccomodel.structure.facts import DECREASING, Fact, Facts, Standing, combine

#: Words of findings that assume bounded values of the expectations.
RANGE = "on the range seen"
#: Words of findings that assume bounded iterates.
WEIGHTS = "on bounded sets"
TRUST = (
    f"'{RANGE}' and '{WEIGHTS}' assume that the iterates stay bounded, and that arguments of roots and "
    "logarithms, and denominators, stay away from 0"
)
#: End of a bounded range in place of an infinite one.
RANGE_END = 100.0
#: Distance of a bounded range from an open end.
OPEN_GAP = 1e-3


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether an assumption holds for a model: the reason in the model's own words, or the missing
    property.

    standing  how far that can be trusted: proved, bounded from data, estimated, assumed
    subject   the part of the model that decides, as its text; ``span`` is its place
    fix       what to write instead, where a rewrite is known
    practice  what is run all the same where it does not hold: no theorem covers that; empty where
              there is no such thing
    """

    holds: bool
    why: str
    standing: Standing = Standing.PROVED
    subject: str = ""
    span: Span = NOWHERE
    fix: str = ""
    practice: str = ""

    @property
    def met(self) -> bool:
        """Whether it holds, or something is run in its place."""
        return self.holds or bool(self.practice)


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """An assumption, as theorems state it.

    meaning  a clause that follows "it needs"
    decide   (setting) -> finding
    form     an algorithm that needs it has no form for a problem without it: it cannot run even unverified
    """

    name: str
    meaning: str
    decide: Callable[[Setting], Finding]
    form: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Inner:
    """A tracked expectation u = E g: the facts of the expectation and of one sample of it; ``hole`` is
    its name in f.

    flipped  f is affine and falls in u: f and -g are what theorems speak of
    """

    hole: str
    expr: ir.Expr
    mean: Facts
    sample: Facts
    flipped: bool = False

    @property
    def signed(self) -> Facts:
        """The facts of g, or of -g where that is what theorems speak of."""
        if self.flipped:
            return self.mean.negated()
        return self.mean


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A part ``f(E g_1, .., E g_d1)`` of the minimised objective. For a constraint f includes the penalty."""

    label: str
    text: str
    span: Span
    f: Facts
    local: Facts
    see: Analysis
    inner: tuple[Inner, ...]
    term: Term | None = None
    edge: bool = False

    @property
    def words(self) -> str:
        """The function f in the model's words."""
        if self.label != "objective":
            return f"the penalty of {self.label}"
        return short(self.text)

    @property
    def arguments(self) -> int:
        """The number of arguments of f."""
        if self.term is not None:
            return self.term.d1
        return len(self.inner)

    @property
    def curved(self) -> bool:
        """Whether f is not affine."""
        return not self.f.affine


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """A problem in the form that an algorithm solves, with the known facts about it.

    normal    its normal form, every kink smoothed that can be
    analysis  of the problem as
              the user wrote it
    penalty   how the algorithm takes constraints; None: not at all
    rho       the largest multiplier that the penalty allows
    batch     how many members of a set a step takes, where that is known
    free      the same problem without penalties
    """

    normal: NormalForm
    analysis: Analysis
    bound: Bound | None = None
    penalty: str | None = reformulations.PENALTY
    rho: float = 10.0
    batch: Batch | None = None
    free: Setting | None = None

    @property
    def problem(self) -> ir.Problem:
        """The problem as the user wrote it."""
        return self.normal.problem

    @property
    def reformed(self) -> ir.Problem:
        """The problem after the reformulations that keep it the same."""
        return self.normal.reformed

    @property
    def constrained(self) -> list[ir.Constraint]:
        """The constraints that a variable is in, and that are no simple sets."""
        return [c for c in self.reformed.constraints if ir.variables_of(c.body)]

    @cached_property
    def parallel(self) -> tuple[Parallel, ...]:
        """The pairs of inequalities whose gradients are parallel at every point."""
        if self.free is not None:
            return self.free.parallel
        return tuple(parallel(self.constrained))

    @cached_property
    def boxed(self) -> ir.Problem:
        """The reformulated problem with every variable in a bounded box."""
        return boxed(self.reformed)

    @cached_property
    def _seers(self) -> dict[tuple[object, ...], structure.Analyser]:
        """The analysers of functions of expectations, which alike statements share (see ``seer``)."""
        return {}

    def seer(self, holes: Mapping[str, Interval], *, bound: bool, in_box: bool = False) -> structure.Analyser:
        """The analyser for expectations in these intervals; the same one for the same intervals.

        bound   whether it uses the data
        in_box  whether the variables are in a bounded box
        """
        if self.free is not None:
            return self.free.seer(holes, bound=bound, in_box=in_box)
        key = (bound, in_box, *holes.items())
        if key not in self._seers:
            problem = self.boxed if in_box else self.reformed
            self._seers[key] = structure.seer(problem, self.bound if bound else None, holes)
        return self._seers[key]

    @cached_property
    def see(self) -> Analysis:
        """The analysis of the reformulated problem, or of the user's problem if no variable is added or
        bounded.
        """
        if self.free is not None:
            return self.free.see
        if dict(self.reformed.variables) == dict(self.problem.variables):
            self.analysis.see.recognise(self.reformed.roots, self.problem.roots)
            return self.analysis
        return dataclasses.replace(
            self.analysis, problem=self.reformed, see=structure.seer(self.reformed, self.bound)
        )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Everything that is minimised but the regularisers; constraints only where the algorithm
        takes them."""
        free = self.free or self
        return (*free.composed, *self.penalties, *free.plain)

    @cached_property
    def composed(self) -> tuple[Block, ...]:
        """The objective's functions of expectations."""
        terms = [term for term in self.normal.terms if term.label == "objective" and term.d1]
        return tuple(self._block(term.label, term.text, term.f, term.means, term) for term in terms)

    @cached_property
    def plain(self) -> tuple[Block, ...]:
        """The objective's functions of the variables alone."""
        parts = [p for p in summands(self.normal.rest) if ir.variables_of(p) and not sampled(p)]
        return tuple(self._block("objective", self.reformed.text(p), p, (), None) for p in parts)

    @cached_property
    def penalties(self) -> tuple[Block, ...]:
        """The constraints' penalties; none where the algorithm takes no constraints."""
        kinds = {c.label: c.kind for c in self.reformed.constraints}
        blocks = []
        for term in self.normal.terms:
            if (
                term.label in kinds
                and self.penalty is not None
                and not (term.label == "objective" and term.d1)
            ):
                f: ir.Expr
                if term.d1:
                    f = term.f
                else:
                    f = ir.Hole(name="u1")
                means = term.means if term.d1 else (term.f,)
                blocks.append(
                    self._block(term.label, term.text, self.penalised(f, kinds[term.label]), means, term)
                )
        return tuple(blocks)

    def penalised(self, f: ir.Expr, kind: str) -> ir.Expr:
        """The penalty of a constraint's value."""
        assert self.penalty is not None
        return reformulations.penalty(self.penalty).of(f, kind, self.rho)

    def _block(self, label: str, text: str, f: ir.Expr, means: Iterable[ir.Expr], term: Term | None) -> Block:
        see = self.see.see
        inner = tuple(
            Inner(hole=f"u{k}", expr=m, mean=see(m), sample=see(m.body if isinstance(m, ir.Reduce) else m))
            for k, m in enumerate(means, 1)
        )
        holes = {g.hole: g.mean.interval.value for g in inner}
        raised, steep = {}, structure.steep_at_0(f)
        with_data = bool(steep) or not of_holes(f)
        if holes:
            analyser = self.seer(holes, bound=with_data)
        else:
            analyser = see
        facts = analyser(f)
        if steep and not tame(facts):
            raised = {g.hole: r.interval for g in inner if (r := see.raised(g.mean)) is not g.mean}
        if raised:
            holes |= {hole: lies.value for hole, lies in raised.items()}
            analyser = self.seer(holes, bound=with_data)
            facts = combine(facts, resting(analyser(f), raised.values()))
        if term is not None and term.kind == "expectation":
            inner = tuple(
                dataclasses.replace(g, flipped=facts.leaves.get(g.hole) == DECREASING) for g in inner
            )
        local = facts
        for near in ranges(holes, facts):
            if tame(local):
                break
            local = self.seer(near, bound=with_data, in_box=True)(f)
        steep = [e for e in steep if analyser(e).interval.value.lo == 0]
        if not tame(local) and (facts.domain or steep):
            near = {name: compact(where) for name, where in holes.items()}
            inside = {e: Interval(OPEN_GAP, RANGE_END) for e in (*(d.subject for d in facts.domain), *steep)}
            local = structure.seer(self.boxed, self.bound, near, within=inside)(f)
        span = next((n.span for n in reversed(list(ir.walk(f))) if n.span != NOWHERE), NOWHERE)
        source = self.reformed.source
        return Block(
            label=label,
            text=text or source.text[span.start : span.end],
            span=span,
            f=facts,
            local=local,
            inner=inner,
            term=term,
            see=dataclasses.replace(self.analysis, problem=self.reformed, see=analyser),
            edge=bool(facts.domain or steep),
        )


def of_holes(f: ir.Expr) -> bool:
    """Whether a function is of expectations and written numbers alone, so that data say nothing about it."""
    return all(isinstance(node, ir.Hole | ir.Const | ir.Apply) for node in ir.walk(f))


def short(text: str, width: int = 60) -> str:
    """A text cut to fit into a sentence."""
    return derivation.brief(text, width)


def resting(facts: Facts, ground: Iterable[Fact]) -> Facts:
    """The facts, with the certainty of some other facts."""
    ground = tuple(ground)
    worst = max(g.standing for g in ground)

    def on(fact: Fact) -> Fact:
        """The fact, resting on the ground as well."""
        return dataclasses.replace(fact, standing=max(fact.standing, worst), uses=(*fact.uses, *ground))

    return dataclasses.replace(
        facts,
        below=on(facts.below),
        above=on(facts.above),
        lipschitz=on(facts.lipschitz),
        gradient=on(facts.gradient),
        differentiable=on(facts.differentiable),
        interval=on(facts.interval),
    )


def tame(facts: Facts) -> bool:
    """Whether a function is defined, Lipschitz with a Lipschitz gradient, and weakly convex."""
    return facts.gradient.value.finite and facts.is_lipschitz and facts.weakly_convex and not facts.domain


def ranges(holes: Mapping[str, Interval], facts: Facts) -> Iterable[dict[str, Interval]]:
    """Compact sets in which the expectations may stay: of all their values first; then, for those by
    which f is not proved to be defined, of positive and of negative ones."""
    whole = {name: compact(where) for name, where in holes.items()}
    yield whole
    named = {e.name for d in facts.domain for e in ir.walk(d.subject) if isinstance(e, ir.Hole)}
    doubtful = [name for name in holes if name in named]
    ends = [whole[name] for name in doubtful[:4]]
    sides = [(Interval(max(e.lo, OPEN_GAP), e.hi), Interval(e.lo, min(e.hi, -OPEN_GAP))) for e in ends]
    for chosen in itertools.product(*sides) if doubtful else ():
        if all(side.lo < side.hi for side in chosen):
            yield whole | dict(zip(doubtful, chosen, strict=False))


def compact(where: Interval) -> Interval:
    """A compact part of an interval: infinite and open ends moved inwards."""
    if where.lo == -inf:
        low = -RANGE_END
    else:
        low = where.lo + OPEN_GAP * where.lo_open
    if where.hi == inf:
        high = RANGE_END
    else:
        high = where.hi - OPEN_GAP * where.hi_open
    if high > -RANGE_END:
        low = max(low, -RANGE_END)
    if low < RANGE_END:
        high = min(high, RANGE_END)
    return Interval(low, high)


def boxed(problem: ir.Problem) -> ir.Problem:
    """The problem with every variable in a bounded box, besides its own sets."""
    box = ir.VectorSet(name="range seen", family="box", args=(const(-RANGE_END), const(RANGE_END)))
    variables = {
        name: dataclasses.replace(v, sets=(*v.sets, dataclasses.replace(box, shape=v.shape)))
        for name, v in problem.variables.items()
    }
    return dataclasses.replace(problem, variables=variables)


# ----------------------------------------------------------------------------------------- findings
def holds(
    why: str, *facts: Fact, standing: Standing = Standing.PROVED, subject: str = "", span: Span = NOWHERE
) -> Finding:
    """The finding that an assumption holds, with the certainty of the weakest of some facts."""
    worst = max([standing, *(f.standing for f in facts)])
    return Finding(holds=True, why=why, standing=worst, subject=subject, span=span)


def lacks(what: str, subject: str = "", span: Span = NOWHERE, fix: str = "", practice: str = "") -> Finding:
    """The finding that an assumption does not hold, as far as is known. ``practice``: what is run all the
    same.
    """
    return Finding(holds=False, why=what, subject=subject, span=span, fix=fix, practice=practice)


def assumed(facts: Iterable[Fact]) -> list[str]:
    """Sentences on what some facts assume without proof."""
    reasons: dict[str, None] = {}
    seen: set[int] = set()
    stack = list(facts)
    while stack:
        fact = stack.pop()
        if id(fact) not in seen and fact.standing == Standing.ASSUMED:
            seen.add(id(fact))
            if not any(u.standing == Standing.ASSUMED for u in fact.uses):
                reasons[fact.reason or structure.RULES[fact.rule]] = None
            stack.extend(fact.uses)
    return list(reasons)


def lost(see: Analysis, failures: list[derivation.Failure]) -> tuple[str, Span, str]:
    """Sentences on the place where a property is lost, with advice on what to write there."""
    if not failures:
        return derivation.first(see, failures), NOWHERE, ""
    return derivation.first(see, failures), derivation.written(failures[0][0]).span, failures[0][2]


def every(findings: Iterable[Finding], otherwise: str) -> Finding:
    """The first that does not hold (one without a practice before the others); else the one that is
    least certain; ``otherwise`` where there is none."""
    findings = list(findings)
    if not findings:
        return holds(otherwise)
    failed = [one for one in findings if not one.holds]
    if failed:
        return next((one for one in failed if not one.practice), failed[0])
    worst = max(findings, key=lambda one: one.standing)
    others = sum(one.standing == worst.standing for one in findings) - 1
    if others:
        more = f" ({others} more alike)"
    else:
        more = ""
    return dataclasses.replace(worst, why=worst.why + more)
