"""The normal form: minimise a sum of compositions f_i(E g_i) plus regularisers over simple sets, constraints as penalties."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from fccomodel import atoms, diagnostics, elements, ir, reformulations
from fccomodel.bound import Bound
from fccomodel.penalty import Penalty
from fccomodel.reformulations._base import Chain
from fccomodel.rewrite import apply as make
from fccomodel.rewrite import const, shared, with_children
from fccomodel.smoothing import Smoothed, Smoother

#: functions that are constant wherever they have a derivative
STEPS = {"le", "lt", "ge", "gt", "eq", "ne", "sign", "step"}
#: a reduction over rows, whose value a minibatch can only estimate
SAMPLED = ("E", "mean", "sum", "prob")
#: terms from which a sum is built as a tree
MANY = 100


@dataclass(frozen=True, eq=False, kw_only=True)
class Term:
    """A summand of the objective or a constraint: ``scale * mean over outer of f(u_1, .., u_d1)``, ``u_j = E g_j``.

    label   ``objective`` or the constraint's label     text   the user's text
    outer   its outer reduction, as text, or ''          inner  the texts of the tracked expectations
    f       the outer function with holes u1, u2, ..., scale and sign included
    means   the tracked expectations                     g      their bodies
    n       number of blocks (None without data)         d1     number of arguments of f
    depth   levels of expectation below the outer function
    kind    ``composition``, ``expectation`` (f is affine: merged into sampling), or ``deterministic``
    """

    label: str
    text: str
    outer: str
    inner: tuple[str, ...]
    f: ir.Expr
    means: tuple[ir.Reduce, ...]
    g: tuple[ir.Expr, ...]
    n: int | None
    d1: int
    depth: int
    kind: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Prox:
    """A regulariser split off the objective: applied by its prox."""

    variable: str
    text: str
    name: str
    coefficients: Mapping[str, float]


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalForm:
    """What the algorithms solve, and what became of each part of the problem.

    variables   the user's and those that reformulations added
    objective   smooth where ``smoothed`` made it so; penalties of constraints included
    rest        the objective but its regularisers, before any smoothing
    penalty     the reformulation that took the constraints
    penalties   per constraint family: its penalty, or the envelope of that, whose slope is the multiplier
    smoothed    every envelope, with the exact function beside it
    kept        non-smooth parts left to a subgradient, each with whether it is inside an expectation
    treatment   (text, how, why) per non-smooth or simple part: prox, projected, smoothed, subgradient
    """

    problem: ir.Problem
    chain: Chain
    variables: Mapping[str, ir.Variable]
    objective: ir.Expr
    rest: ir.Expr
    penalties: Mapping[str, Smoothed | Penalty]
    smoothed: tuple[Smoothed, ...]
    prox: tuple[Prox, ...]
    terms: tuple[Term, ...]
    treatment: tuple[tuple[str, str, str], ...]
    kept: tuple[tuple[ir.Expr, bool], ...] = ()
    penalty: str = "smoothed_hinge"

    @property
    def via(self) -> tuple[str, ...]:
        """Names of the reformulations applied, in order."""
        names = [name for name, _ in self.chain.steps]
        if self.penalties:
            names.append(f"{self.penalty} penalty".replace("_", " "))
        if any(s.penalty is None and not s.inner for s in self.smoothed):
            names.append("outer Moreau smoothing")
        if any(s.inner for s in self.smoothed):
            names.append("nested Moreau smoothing")
        return tuple(names)


def normalise(
    problem: ir.Problem,
    bound: Bound | None = None,
    *,
    outer: str = "moreau",
    inner: str = "moreau",
    penalty: str | None = "smoothed_hinge",
) -> NormalForm:
    """The normal form of a problem; sizes and constants come from ``bound`` where there is one, else from defaults.

    ``outer`` and ``penalty`` are an algorithm's declared form (one that takes no constraint gets the smoothed hinge all the
    same), ``inner`` (``moreau`` or ``subgradient``) is what it makes of kinks inside expectations.
    """
    refuse_steps(problem)
    chain = reformulations.chain(problem)
    reformed = shared(chain.problem)
    constant = constants(reformed, bound)
    treatment: list[tuple[str, str, str]] = []
    terms = [describe("objective", part, reformed, bound) for part in summands(reformed.objective.expr)]
    rest, prox = split_regularisers(reformed, constant)
    treatment += [(p.text, "prox", f"no data, and the prox of {p.name} is known") for p in prox]
    reformed = dataclasses.replace(reformed, variables=projections(reformed, constant, prox))
    for name, variable in reformed.variables.items():
        treatment += [(name, "projected", f"a simple set: {s.family}") for s in variable.sets]
    reformed = dataclasses.replace(reformed, objective=dataclasses.replace(reformed.objective, expr=rest))
    form = penalty or "smoothed_hinge"
    penalised, _, account = reformulations.get(form).apply(reformed)
    for constraint in reformed.constraints:
        if not ir.variables_of(constraint.body):
            treatment.append((constraint.label, "constant", "no variable is in it: the report says whether it holds"))
            continue
        terms.append(describe(constraint.label, constraint.body, reformed, bound))
        treatment += [(constraint.label, "smoothed" if form == "smoothed_hinge" else "penalised", line) for line in account]
    smoother = Smoother(constant=constant, outer=outer in ("moreau", "dual"), inside=inner == "moreau")
    objective = smoother(penalised.objective.expr)
    present = {id(node): node for node in ir.walk(objective)}
    smoothed = tuple(s for s in smoother.found if id(s) in present)
    treatment += [
        (reformed.text(s.original), "smoothed", "inside an expectation" if s.inner else outer_words(s.original))
        for s in smoothed
        if s.penalty is None
    ]
    treatment += [
        (reformed.text(node), "subgradient", "no prox is known for it" if asked else "the algorithm takes its subgradients")
        for node, inside in smoother.kept
        for asked in [smoother.inside if inside else smoother.outer]
    ]
    treatment += [(reformed.text(node), "plug-in", "its draw is met once, so that a minibatch stands for it: a biased estimate")
                  for node in plug_ins(objective)]  # fmt: skip
    penalties: dict[str, Smoothed | Penalty] = {n.label: n for n in present.values() if isinstance(n, Penalty)}
    penalties |= {s.penalty.label: s for s in smoothed if s.penalty is not None}
    return NormalForm(
        problem=problem, chain=chain, variables=reformed.variables, objective=objective, rest=rest, penalties=penalties,
        smoothed=smoothed, prox=tuple(prox), terms=tuple(terms), treatment=tuple(treatment), kept=tuple(smoother.kept),
        penalty=form,
    )  # fmt: skip


def plug_ins(expr: ir.Expr) -> list[ir.Reduce]:
    """Expectations that depend on a random draw around them and stand under a nonlinear function: no block remembers them."""
    found: list[ir.Reduce] = []
    for node in ir.walk(expr):
        if isinstance(node, ir.Reduce) and any(isinstance(b.domain, ir.Distribution) for b in node.binders):
            holes: list[ir.Reduce] = []
            f = _cut(node.body, holes, {})
            if not (isinstance(f, ir.Hole) or _affine(f)):
                found += [h for h in holes if any(b in node.binders for b in ir.free_binders(h))]
    return found


def projections(problem: ir.Problem, constant: Callable[[ir.Expr], float | None], prox: Sequence[Prox]) -> dict[str, ir.Variable]:
    """The variables with one set each, bounds that meet being one box; F0611 where no projection on all at once is known."""
    from fccomodel import regularisers

    result: dict[str, ir.Variable] = {}
    refused: list[diagnostics.Diagnostic] = []
    for name, variable in problem.variables.items():
        sets = intersection(variable.sets, constant)
        terms = [p for p in prox if p.variable == name]
        if len(sets) > 1:
            refused.append(_no_projection(name, variable, f"{sets[0].name} and {sets[1].name}"))
        elif sets and len(terms) > 1 or any(not regularisers.all()[p.name].then_projected(s.family) for p in terms for s in sets):
            refused.append(_no_projection(name, variable, f"{sets[0].name} and the regulariser {terms[0].text}"))
        result[name] = dataclasses.replace(variable, sets=sets)
    if refused:
        raise diagnostics.FccoError(refused, problem.source)
    return result


def intersection(sets: tuple[ir.VectorSet, ...], constant: Callable[[ir.Expr], float | None]) -> tuple[ir.VectorSet, ...]:
    """Boxes (bounds, ``nonneg``) as one box; other sets as they are, without repetitions of what a simplex implies."""
    boxes = [s for s in sets if s.family in ("box", "nonneg")]
    others = tuple(s for s in sets if s.family not in ("box", "nonneg"))
    ends = [(0.0, inf) if s.family == "nonneg" else tuple(constant(a) for a in s.args) for s in boxes]
    if others and all(s.family in ("simplex", "capped_simplex") for s in others):
        implied = [e[0] is not None and e[0] <= 0 and e[1] is not None and e[1] >= 1 for e in ends]
        boxes = [s for s, known in zip(boxes, implied, strict=True) if not known]
    if len(boxes) < 2 or any(end is None for pair in ends for end in pair):
        return (*boxes, *others)
    low, high = max(e[0] for e in ends), min(e[1] for e in ends)  # type: ignore[type-var]
    joined = dataclasses.replace(
        boxes[0],
        name=", ".join(s.name for s in boxes),
        family="box",
        args=(const(low), const(high)),  # type: ignore[arg-type]
    )
    return (joined, *others)


def _no_projection(name: str, variable: ir.Variable, what: str) -> diagnostics.Diagnostic:
    return diagnostics.error(
        "F0611",
        f"no projection on {what} at once is known for `{name}`",
        span=variable.span,
        reason="Two projections (or a prox and a projection) one after the other are not the projection on both.",
        fix="Keep the set that is hard to meet on the variable, and write the other as a labelled constraint.",
    )


def refuse_steps(problem: ir.Problem) -> None:
    """Raises F0610 for every condition on the variables: its derivative is zero wherever there is one."""
    roots = [problem.objective.expr, *(c.body for c in problem.constraints)]
    nodes = {id(n): n for root in roots for n in ir.walk(root) if isinstance(n, ir.Apply) and n.op in STEPS}
    if found := [node for node in nodes.values() if ir.variables_of(node)]:
        raise diagnostics.FccoError(
            [
                diagnostics.error(
                    "F0610",
                    f"`{problem.text(node)}` is a step function of the decision variables",
                    span=node.span,
                    reason="Its derivative is zero wherever it exists, so no step of any algorithm here would see it.",
                    fix="Replace it by a surrogate, sigmoid(t * u), hinge(1 - u) or log1pexp(-u); judge by the step.",
                )
                for node in found
            ],
            problem.source,
        )


def outer_words(original: ir.Expr) -> str:
    """What smoothing does to an outer function."""
    kind = original.op if isinstance(original, ir.Apply) else original.kind if isinstance(original, ir.Reduce) else ""
    if kind == "min":
        return "a concave non-smooth outer function, smoothed from below: the theorem covers the smoothed problem alone"
    return "a non-smooth outer function, by its Moreau envelope"


def constants(problem: ir.Problem, bound: Bound | None) -> Callable[[ir.Expr], float | None]:
    """The value of a scalar expression of constants, params and sizes; None where anything else enters."""
    memo: dict[int, tuple[ir.Expr, float | None]] = {}

    def value(node: ir.Expr) -> float | None:
        if id(node) not in memo:
            memo[id(node)] = (node, compute(node))
        return memo[id(node)][1]

    def compute(node: ir.Expr) -> float | None:
        match node:
            case ir.Const(value=v):
                return v
            case ir.Param(name=name) if not node.shape:
                if bound is not None and name in bound.params:
                    return float(bound.params[name])
                default = problem.params[name].default if name in problem.params else None
                return None if default is None else value(default)
            case ir.Size(dim=dim) if bound is not None:
                return float(elements.size(bound, dim))
            case ir.Apply(op=op, args=args) if not node.shape:
                numbers = [value(a) for a in args]
                atom = atoms.get(op)
                if isinstance(atom, atoms.ScalarAtom) and all(v is not None for v in numbers):
                    with np.errstate(all="ignore"):
                        return float(atom.value(*(np.float64(v) for v in numbers)))
        return None

    return value


def summands(expr: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum, left to right (differences keep their sign in the term)."""
    result: list[ir.Expr] = []
    stack = [(expr, 1)]
    while stack:
        node, sign = stack.pop()
        match node:
            case ir.Apply(op="add", args=args):
                stack.extend((a, sign) for a in reversed(args))
            case ir.Apply(op="sub", args=(a, b)):
                stack.extend([(b, -sign), (a, sign)])
            case ir.Apply(op="neg", args=(a,)):
                stack.append((a, -sign))
            case _:
                result.append(node if sign > 0 else make("neg", node, span=node.span))
    return result


def split_regularisers(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> tuple[ir.Expr, list[Prox]]:
    """The objective without the terms that have no data and a known prox, and those terms."""
    from fccomodel import regularisers

    kept: list[ir.Expr] = []
    recognised: list[tuple[ir.Expr, regularisers.Recognised]] = []
    for term in summands(problem.objective.expr):
        found = None
        names = ir.variables_of(term)
        if len(names) == 1 and not any(isinstance(n, ir.Reduce) for n in ir.walk(term)):
            found = regularisers.recognise(term, next(iter(names)), constant)
        if found is not None and problem.variables[found.variable].net is None:
            recognised.append((term, found))
        else:
            kept.append(term)
    prox = [
        Prox(
            variable=made.variable,
            text=" + ".join(problem.text(t) for t, f in recognised if f.variable == made.variable),
            name=made.name,
            coefficients=made.coefficients,
        )
        for made in regularisers.combine([f for _, f in recognised])
    ]
    return total(kept), prox


def total(terms: list[ir.Expr]) -> ir.Expr:
    """The sum of some terms, left to right; where they are many, as a tree of logarithmic depth."""
    if len(terms) > MANY:
        half = len(terms) // 2
        return make("add", total(terms[:half]), total(terms[half:]), span=terms[half].span)
    result = terms[0] if terms else const(0)
    for term in terms[1:]:
        result = make("add", result, term, span=term.span)
    return result


def describe(label: str, part: ir.Expr, problem: ir.Problem, bound: Bound | None) -> Term:
    """A summand as ``mean of f(E g)``."""
    body, outer = part, ""
    n: int | None = 1
    scales: list[ir.Apply] = []
    while isinstance(body, ir.Apply) and body.op in ("mul", "neg") and sum(_has_reduce(a) for a in body.args) == 1:
        scales.append(body)
        body = next(a for a in body.args if _has_reduce(a))
    while isinstance(body, ir.Reduce) and body.kind in SAMPLED and _nonlinear_below(body.body):
        outer = problem.source.text[body.span.start : body.body.span.start].strip() or body.kind
        n = n * _count(body, bound) if bound is not None and n is not None else None
        body = body.body
    holes: list[ir.Reduce] = []
    f = _cut(body, holes, {})
    for scale in reversed(scales):
        f = with_children(scale, tuple(f if _has_reduce(a) else a for a in scale.args))
    kind = "deterministic" if not holes else "expectation" if isinstance(f, ir.Hole) or _affine(f) else "composition"
    return Term(
        label=label, text=problem.text(part), outer=outer, inner=tuple(problem.text(h) for h in holes),
        f=f, means=tuple(holes), g=tuple(h.body for h in holes), n=n, d1=len(holes),
        depth=max((_depth(h) for h in holes), default=0), kind=kind,
    )  # fmt: skip


def _has_reduce(node: ir.Expr) -> bool:
    return any(isinstance(n, ir.Reduce) for n in ir.walk(node))


def _nonlinear_below(node: ir.Expr) -> bool:
    """A composition stands below: some expectation under a function that is not affine."""
    holes: list[ir.Reduce] = []
    f = _cut(node, holes, {})
    if not holes:
        return False
    return _nonlinear_below(holes[0].body) if isinstance(f, ir.Hole) else not _affine(f)


def _cut(node: ir.Expr, holes: list[ir.Reduce], memo: dict[int, ir.Expr]) -> ir.Expr:
    """The expression with its topmost expectations over rows replaced by holes u1, u2, ..."""
    if id(node) in memo:
        return memo[id(node)]
    if isinstance(node, ir.LetRef):
        result = _cut(node.let.body, holes, memo)
    elif isinstance(node, ir.Reduce) and node.kind in SAMPLED:
        holes.append(node)
        result = ir.Hole(name=f"u{len(holes)}", shape=node.shape, span=node.span)
    elif not node.children:
        result = node
    else:
        children = tuple(_cut(c, holes, memo) for c in node.children)
        result = node if all(a is b for a, b in zip(children, node.children, strict=True)) else with_children(node, children)
    memo[id(node)] = result
    return result


def _affine(f: ir.Expr) -> bool:
    """Affine in its holes, by sums and constant factors."""
    match f:
        case ir.Hole():
            return True
        case ir.Apply(op="add" | "sub" | "neg", args=args):
            return all(_affine(a) or not _has_hole(a) for a in args)
        case ir.Apply(op="mul", args=(a, b)):
            return (_affine(a) and not _has_hole(b)) or (_affine(b) and not _has_hole(a))
        case ir.Apply(op="div", args=(a, b)):
            return _affine(a) and not _has_hole(b)
    return not _has_hole(f)


def _has_hole(node: ir.Expr) -> bool:
    return any(isinstance(n, ir.Hole) for n in ir.walk(node))


def _depth(node: ir.Reduce) -> int:
    return 1 + max((_depth(n) for n in ir.walk(node.body) if isinstance(n, ir.Reduce) and n.kind in SAMPLED), default=0)


def _count(node: ir.Reduce, bound: Bound) -> int:
    """The number of members of an outer reduction (an upper bound where a condition relates binders)."""
    from fccomodel import selection

    total = 1
    for sel in selection.split(node.binders, node.condition):
        if not isinstance(sel.binder.domain, ir.Distribution):
            total *= len(
                selection.realise(bound, dataclasses.replace(sel, keys=(), orders=(), excludes=(), masks=(), parents=())).rows
            )
    return total
