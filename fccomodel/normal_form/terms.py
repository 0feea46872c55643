"""The summands of a problem as compositions: mean of f(E g)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, with_children
from fccomodel.data.bound import Bound
from fccomodel.library import atoms, reductions
from fccomodel.library.sums import summands

LONG_SUM = 100  # terms; longer sums are built as trees of logarithmic depth


@dataclass(frozen=True, eq=False, kw_only=True)
class Term:
    """A summand of the objective, or a constraint: ``mean over outer of f(u_1, .., u_d1)``, ``u_j = E g_j``.

    label   ``objective`` or the constraint's label
    text    the user's text
    outer   its outer reduction as text, or ""
    inner   the texts of the tracked expectations
    f       the outer function with holes u1, u2, ..., scale and sign included
    means   the tracked expectations
    g       their bodies
    n       number of blocks, or None without data
    d1      number of arguments of f, counting all members of a set
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


def plug_ins(expr: ir.Expr) -> list[ir.Reduce]:
    """Expectations under a nonlinear function that depend on a random draw around them.

    No block can track their values, because each draw is seen only once.
    """
    expectations: list[ir.Reduce] = []
    for node in ir.walk(expr):
        if isinstance(node, ir.Reduce) and any(isinstance(b.domain, ir.Distribution) for b in node.binders):
            holes: list[ir.Reduce] = []
            f = _cut(node.body, holes, {})
            if not (isinstance(f, ir.Hole) or _affine(f)):
                expectations += [h for h in holes if any(b in node.binders for b in ir.free_binders(h))]
    return expectations


def total(terms: list[ir.Expr]) -> ir.Expr:
    """The sum of the terms, left to right; more than ``LONG_SUM`` terms are added as a tree."""
    if len(terms) > LONG_SUM:
        half = len(terms) // 2
        return make("add", total(terms[:half]), total(terms[half:]), span=terms[half].span)
    if not terms:
        return const(0)
    result = terms[0]
    for term in terms[1:]:
        result = make("add", result, term, span=term.span)
    return result


def compositions(expr: ir.Expr) -> list[ir.Expr]:
    """The summands of an expression; a mean of a sum of compositions counts as a sum of means."""
    result: list[ir.Expr] = []
    for part in summands(expr):
        above, body = _peeled(part)
        if not (above and isinstance(body, ir.Reduce) and nonlinear_below(body.body)):
            result.append(part)
            continue
        inside = [dataclasses.replace(body, body=e) for e in compositions(body.body)]
        if len(inside) > 1:
            result += [_wrapped(above, e) for e in inside]
        else:
            result += [part]
    return result


def _peeled(part: ir.Expr) -> tuple[list[ir.Expr], ir.Expr]:
    """The multiples around a reduction from the outside to the reduction itself, and the reduction."""
    above, body = [part], part
    while (
        isinstance(body, ir.Apply)
        and body.op in ("mul", "div", "neg")
        and sum(_has_reduce(a) for a in body.args) == 1
    ):
        inner = next(a for a in body.args if _has_reduce(a))
        if body.op == "div" and inner is not body.args[0]:
            break
        body = inner
        above.append(body)
    return above, body


def _wrapped(above: list[ir.Expr], new: ir.Expr) -> ir.Expr:
    """The nested multiples with ``new`` in the place of the last of them."""
    for node, old in zip(reversed(above[:-1]), reversed(above[1:]), strict=True):
        new = with_children(node, tuple(new if c is old else c for c in node.children))
    return new


def describe(label: str, part: ir.Expr, problem: ir.Problem, bound: Bound | None) -> Term:
    """A summand of the objective or a constraint as ``mean of f(E g)``."""
    body, outer = part, ""
    n: int | None = 1
    scales: list[ir.Expr] = []
    while True:
        above, body = _peeled(body)
        scales += above[:-1]
        if not (is_sampled(body) and isinstance(body, ir.Reduce) and nonlinear_below(body.body)):
            break
        outer = outer or problem.source.text[body.span.start : body.body.span.start].strip() or body.kind
        if bound is None or n is None:
            n = None
        else:
            n = n * _count(body, bound)
        body = body.body
    holes: list[ir.Reduce] = []
    f = _cut(body, holes, {})
    for scale in reversed(scales):
        f = with_children(scale, tuple(f if _has_reduce(a) else a for a in scale.children))
    if not holes:
        kind = "deterministic"
    elif isinstance(f, ir.Hole) or _affine(f):
        kind = "expectation"
    else:
        kind = "composition"
    return Term(
        label=label,
        text=problem.text(part),
        outer=outer,
        inner=tuple(problem.text(h) for h in holes),
        f=f,
        means=tuple(holes),
        g=tuple(h.body for h in holes),
        n=n,
        d1=sum(_arguments(f, h, bound) for h in holes),
        depth=max((_depth(h) for h in holes), default=0),
        kind=kind,
    )


def _arguments(f: ir.Expr, mean: ir.Reduce, bound: Bound | None) -> int:
    """The number of arguments of f that an expectation stands for.

    It is 1, or the number of members of the sets over which f reduces it (2 without data).
    """
    within = {b for node in ir.walk(f) if isinstance(node, ir.Reduce) for b in node.binders}
    own = tuple(b for b in within if b in ir.free_binders(mean))
    if not own:
        return 1
    if bound is None:
        return 2
    return _members(own, None, bound)


def sampled(expr: ir.Expr) -> bool:
    """Whether some part of the expression is a reduction that minibatches estimate."""
    return any(is_sampled(n) for n in ir.walk(expr))


def is_sampled(node: ir.Expr) -> bool:
    """Whether the node is a linear reduction, which minibatches estimate and algorithms track."""
    return isinstance(node, ir.Reduce) and reductions.of(node).linear


def _has_reduce(node: ir.Expr) -> bool:
    """Whether a reduction stands in the expression."""
    return "Reduce" in ir.contents(node)


def nonlinear_below(node: ir.Expr) -> bool:
    """Whether some expectation in the expression stands under a function that is not affine.

    Each node remembers it, so that sums nested in one another are looked at once.
    """
    memo = "_nonlinear_below"
    if memo not in vars(node):
        vars(node)[memo] = _nonlinear_below(node)
    return vars(node)[memo]


def _nonlinear_below(node: ir.Expr) -> bool:
    """Whether some expectation in the expression stands under a function that is not affine."""
    holes: list[ir.Reduce] = []
    f = _cut(node, holes, {})
    if not holes:
        return False
    if _affine(f):
        return any(nonlinear_below(h.body) for h in holes)
    return True


def of_compositions(node: ir.Expr) -> bool:
    """Whether the node is a sum or mean of nonlinear functions of expectations over a listed set.

    Steps take it as a part of the function around it. An example is ``log(sum[k in G] exp(E ..))``,
    a function of the expectations of all groups.
    """
    if not isinstance(node, ir.Reduce) or not reductions.of(node).linear:
        return False
    listed = all(b.kind == "in" and isinstance(b.domain, ir.ValueSet | ir.LabelSet) for b in node.binders)
    return listed and nonlinear_below(node.body)


def _cut(node: ir.Expr, holes: list[ir.Reduce], memo: dict[int, ir.Expr]) -> ir.Expr:
    """The expression with its topmost expectations over rows replaced by holes u1, u2, ..."""
    if id(node) in memo:
        return memo[id(node)]
    if isinstance(node, ir.LetRef):
        result = _cut(node.let.body, holes, memo)
    elif isinstance(node, ir.Reduce) and is_sampled(node) and not of_compositions(node):
        holes.append(node)
        result = ir.Hole(name=f"u{len(holes)}", shape=node.shape, span=node.span)
    elif not node.children:
        result = node
    else:
        children = tuple(_cut(c, holes, memo) for c in node.children)
        if all(a is b for a, b in zip(children, node.children, strict=True)):
            result = node
        else:
            result = with_children(node, children)
    memo[id(node)] = result
    return result


def curved(node: ir.Expr) -> bool:
    """Whether the node is an operation that is not linear in the expectations below it."""
    if not isinstance(node, ir.Apply):
        return False
    holes: list[ir.Reduce] = []
    f, atom = _cut(node, holes, {}), atoms.of(node)
    return bool(holes) and (atom is None or not atom.linear([_has_hole(a) for a in f.children]))


def affine_part(node: ir.Expr) -> ir.Expr | None:
    """The largest part that is affine in all expectations of the node, or None if there is none."""
    while isinstance(node, ir.Apply):
        below = [a for a in node.args if sampled(a)]
        if len(below) != 1:
            return None
        node = below[0]
        if _affine(_cut(node, [], {})):
            return node
    return None


def _affine(f: ir.Expr) -> bool:
    """Whether an expression is affine in its holes, by sums and constant factors."""
    if isinstance(f, ir.Hole) or not _has_hole(f):
        return True
    atom = atoms.of(f)
    linear = atom is not None and atom.linear([_has_hole(a) for a in f.children])
    return linear and all(_affine(a) for a in f.children)


def _has_hole(node: ir.Expr) -> bool:
    """Whether a hole stands in the expression."""
    return "Hole" in ir.contents(node)


def _depth(node: ir.Reduce) -> int:
    """The number of sampled reductions nested in each other, counting the node."""
    deepest: dict[int, int] = {}
    for n in ir.walk(node.body):
        if isinstance(n, ir.LetRef):
            inner = (*n.children, n.let.body)
        else:
            inner = n.children
        deepest[id(n)] = max((deepest[id(part)] for part in inner), default=0) + (
            isinstance(n, ir.Reduce) and is_sampled(n)
        )
    return 1 + deepest[id(node.body)]


def _count(node: ir.Reduce, bound: Bound) -> int:
    """The number of members of an outer reduction (an upper bound if a condition relates binders)."""
    return _members(node.binders, node.condition, bound)


def _members(binders: tuple[ir.Binder, ...], condition: ir.Expr | None, bound: Bound) -> int:
    """The number of combinations of elements of the binders (an upper bound if a condition relates them)."""
    from fccomodel.evaluation.sets import realising, selections

    total = 1
    for part in selections.split(binders, condition):
        if not isinstance(part.binder.domain, ir.Distribution):
            alone = dataclasses.replace(part, keys=(), orders=(), excludes=(), masks=(), parents=())
            total *= len(realising.realise(bound, alone).rows)
    return total
