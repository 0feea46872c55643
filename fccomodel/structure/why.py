"""Why a part of a model has the curvature it has: the derivation, and the places where a stronger
property is lost."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.library import atoms, reductions
from fccomodel.structure import RULES, Analysis, errors
from fccomodel.structure.facts import Fact, Facts, Standing

CURVATURE = ("below", "above")
#: levels of a path that are shown; parts of a failing node that are listed
DEEPEST, MOST_GIVEN = 10, 6
DOMAIN_FIX = (
    "state the sign or the bounds where it is declared, or keep away from the edge, as in "
    "log(1e-6 + u) for u >= 0."
)


def wrap(text: str, width: int, first: str = "  ", rest: str | None = None) -> list[str]:
    """Text in lines of at most ``width`` columns; words are not broken."""
    if rest is None:
        rest = " " * len(first)
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def why(analysis: Analysis, subject: str, width: int) -> list[str]:
    """What is known of one part, the derivation of its curvature, and where a stronger property is lost."""
    f, expr, maximised = _subject(analysis, subject)
    fact = f.curvature_fact
    lines = [
        f"{subject}: {f.curvature} ({fact.standing})"
        if f.curvature != "unknown"
        else f"{subject}: unknown curvature",
        "",
    ]
    rules: dict[str, None] = {}
    if maximised:
        minimised = f.negated()
    else:
        minimised = f
    if f.curvature == "unknown":
        lines += ["Neither convex, concave nor weakly convex, because"]
        lines += _lost(analysis, f.expr, weakly_curved, _why_unknown, width)
    else:
        lines += _tree(analysis, fact, width, rules)
        if not minimised.convex:
            lines += ["", f"Not {'concave' if maximised else 'convex'}, because"]
            lines += _lost(analysis, f.expr, curved, lambda g: _why_curved(g, f, maximised), width)
    if not f.smooth:
        lines += [
            "",
            "Not smooth, because",
            *_lost(analysis, f.expr, lambda g: g.smooth, _why_kink, width, parts=False),
        ]
    if f.domain:
        lines += ["", "Not proved to be defined"]
        for one in f.domain:
            lines += _failure(analysis, one.subject, one.reason, DOMAIN_FIX, width)
    lines += ["", "Known", *_properties(analysis, f, width)]
    if rules:
        lines += ["", "Rules"]
        for name in rules:
            lines += wrap(f"{name}: {RULES[name]}", width, "  ", "    ")
    return lines


def _properties(analysis: Analysis, f: Facts, width: int) -> list[str]:
    """Range, monotonicity, constants and smoothness, each with its rule and its standing."""
    lines = []
    for name, fact in (
        ("range", f.interval),
        ("value", f.lipschitz),
        ("gradient", f.gradient),
        ("smoothness", f.differentiable),
    ):
        if name == "gradient" and not f.smooth:
            continue
        if fact.holds and fact.rule != "no rule":
            by = f" by `{fact.rule}`"
        else:
            by = ""
        if fact.standing != Standing.PROVED and fact.holds:
            standing = f", {fact.standing}"
        else:
            standing = ""
        lines += wrap(f"{fact}{by}{standing}", width, f"  {name:<12} ", " " * 15)
    directions = {"increasing": "non-decreasing", "decreasing": "non-increasing", "none": "not monotone"}
    for variable in sorted(f.leaves):
        lines += wrap(f"{directions[f.monotone(variable)]}", width, f"  in {variable:<9} ", " " * 15)
    return lines


def _subject(analysis: Analysis, name: str) -> tuple[Facts, ir.Expr, bool]:
    problem = analysis.problem
    if name in ("objective", problem.objective.label):
        return analysis.objective, problem.objective.expr, problem.objective.sense == "maximize"
    for c in problem.constraints:
        if c.label == name:
            return analysis.constraints[name], c.body, False
    labels = ["objective", *analysis.constraints]
    refuse(errors.nothing_to_explain(name, labels), source=problem.source)


def shown(analysis: Analysis, expr: ir.Expr, width: int) -> str:
    """The user's text of an expression, or of what it was made from, shortened to fit a line."""
    part = written(expr)
    text = analysis.problem.text(part)
    return brief(
        text if part is expr else f"a function of {text}" if text else "what a reformulation added", width
    )


def written(expr: ir.Expr) -> ir.Expr:
    """An expression that the user wrote; of one that a reformulation made, the outermost part of which
    that is so."""
    return next((node for node in reversed(list(ir.walk(expr))) if node.span != ir.NOWHERE), expr)


def _place(analysis: Analysis, expr: ir.Expr) -> str:
    """The line and column of an expression, where it or a part of it has one."""
    span = written(expr).span
    if span == ir.NOWHERE:
        return ""
    return "{}:{}  ".format(*analysis.problem.source.place(span))


def brief(text: str, width: int) -> str:
    """A text of at most ``width`` characters: what stands in brackets left out, the deepest and
    longest first."""
    while len(text) > width:
        opened: list[int] = []
        brackets: list[tuple[int, int, int]] = []
        for at, letter in enumerate(text):
            if letter in "([":
                opened.append(at)
            elif letter in ")]" and opened:
                start = opened.pop()
                if at - start > 3:
                    brackets.append((len(opened), at - start, start))
        if not brackets:
            if len(text) <= width:
                return text
            return f"{text[: width - 3].rsplit(' ', 1)[0].rstrip()} .."
        deepest = max(brackets)[0]
        _, length, start = max(bracket for bracket in brackets if bracket[0] == deepest)
        text = f"{text[: start + 1]}..{text[start + length :]}"
    return text


def _failure(analysis: Analysis, node: ir.Expr, words: str, fix: str, width: int) -> list[str]:
    lines = [f"  {_place(analysis, node)}{shown(analysis, node, width - 10)}"]
    lines += wrap(words, width, "      ")
    return lines + (wrap(f"Fix: {fix}", width, "      ", "           ") if fix else [])


@dataclass(frozen=True)
class Step:
    """A fact in a derivation: how deep, its content in words, the facts below it; ``again`` where it
    was taken apart before."""

    depth: int
    fact: Fact
    says: str
    premises: tuple[Fact, ...]
    again: bool


def steps(analysis: Analysis, root: Fact) -> Iterator[Step]:
    """A fact and the facts it follows from, each taken apart once; affine expressions are not taken apart."""
    seen: set[int] = set()
    stack: list[tuple[Fact, int]] = [(root, 0)]
    while stack:
        fact, depth = stack.pop()
        fact = _through(fact)
        see = analysis.see(fact.subject)
        flat = fact.kind in (*CURVATURE, "gradient", "differentiable") and see.affine
        again = id(fact) in seen and bool(fact.uses)
        seen.add(id(fact))
        premises = () if again or flat else tuple(_premises(fact))
        yield Step(depth, fact, "affine" if flat and not see.constant else str(fact), premises, again)
        stack.extend((use, depth + 1) for use in reversed(premises))


def _tree(analysis: Analysis, root: Fact, width: int, rules: dict[str, None]) -> list[str]:
    """A derivation in lines, indented."""
    lines: list[str] = []
    for step in steps(analysis, root):
        fact, pad = step.fact, "  " * min(step.depth, 14)
        lines.append(f"{pad}{shown(analysis, fact.subject, max(24, width - len(pad)))}")
        if step.again:
            lines += wrap(f"{step.says} (shown above)", width, f"{pad}  ")
            continue
        rules[fact.rule] = None
        lines += wrap(f"{step.says} by {grounds(fact)}", width, f"{pad}  ", f"{pad}    ")
    return lines


def grounds(fact: Fact) -> str:
    """The rule that gives a fact, why it applies, and how sure it is."""
    if fact.reason:
        reason = f" ({fact.reason})"
    else:
        reason = ""
    return f"`{fact.rule}`{reason}{'' if fact.standing == Standing.PROVED else f', {fact.standing}'}"


def _premises(fact: Fact) -> list[Fact]:
    """The facts worth showing below one: none about constants, and one where curvature from both sides
    says affine."""
    chosen: list[Fact] = []
    for use in _terms(fact):
        if use.rule == "constant" or isinstance(use.subject, ir.Const):
            continue
        twin = next(
            (u for u in chosen if u.subject is use.subject and u.kind in CURVATURE and use.kind in CURVATURE),
            None,
        )
        if twin is None:
            chosen.append(use)
    return chosen


def _terms(fact: Fact) -> list[Fact]:
    """The facts used; for a sum of sums, those of all its terms."""
    terms: list[Fact] = []
    stack = list(reversed(fact.uses))
    while stack:
        use = stack.pop()
        inner = use.subject
        if fact.rule == use.rule == "sum" and fact.kind in CURVATURE and _is_sum(inner):
            stack.extend(reversed(use.uses))
        else:
            terms.append(use)
    return terms


def _through(fact: Fact) -> Fact:
    """Skip a fact that only repeats the one it uses, as an entry of a vector does."""
    while (
        len(fact.uses) == 1
        and fact.uses[0].kind == fact.kind
        and fact.rule == fact.uses[0].rule
        and fact.reason == fact.uses[0].reason
    ):
        fact = fact.uses[0]
    return fact


# --------------------------------------------------------------------------------- where it is lost
Failure = tuple[ir.Expr, str, str]


def first(analysis: Analysis, failures: list[Failure]) -> str:
    """The first of some failures, with its place in the model."""
    if not failures:
        return "no rule gives it"
    node, words, _ = failures[0]
    place = _place(analysis, node).strip()
    if len(failures) > 1:
        more = f", and {len(failures) - 1} more (--why)"
    else:
        more = ""
    return f"{words}: {shown(analysis, node, 56)}" + (f" at {place}" if place else "") + more


def _lowest(analysis: Analysis, expr: ir.Expr, good: Callable[[Facts], bool]) -> list[Facts]:
    """The expressions deepest down that lack a property while all they are made of have it."""
    lowest: list[Facts] = []
    seen: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ir.LetRef):
            stack.append(node.let.body)
            continue
        children = [
            c.let.body if isinstance(c, ir.LetRef) else c for c in node.children if not _is_condition(c)
        ]
        bad = [c for c in children if not good(analysis.see(c))]
        if bad:
            stack.extend(reversed(bad))
        elif not good(analysis.see(node)):
            lowest.append(analysis.see(node))
    return lowest


def _is_condition(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Apply):
        atom = atoms.get(expr.op)
    else:
        atom = None
    return atom is not None and atom.boolean


def _is_sum(node: ir.Expr) -> bool:
    """A sum or a difference of two."""
    return len(atoms.signed(node) or ()) > 1


def _parts(node: ir.Expr) -> list[ir.Expr]:
    """What an expression is made of: names that ``let`` gives opened, the terms of a long sum side by
    side."""
    parts: list[ir.Expr] = []
    stack = [c for c in reversed(node.children) if not _is_condition(c)]
    long = _is_sum(node)
    while stack:
        part = stack.pop()
        while isinstance(part, ir.LetRef):
            part = part.let.body
        if long and _is_sum(part):
            stack.extend(reversed(part.children))
        else:
            parts.append(part)
    return parts


def _lost(
    analysis: Analysis,
    root: ir.Expr,
    good: Callable[[Facts], bool],
    words: Callable[[Facts], tuple[str, str]],
    width: int,
    parts: bool = True,
) -> list[str]:
    """The path from an expression down to where a property is lost: the rule that failed, and
    (``parts``) what it met."""
    lines: list[str] = []
    seen: set[int] = set()
    explained: set[tuple[str, str]] = set()
    stack: list[tuple[ir.Expr, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        while isinstance(node, ir.LetRef):
            node = node.let.body
        if id(node) in seen:
            continue
        seen.add(id(node))
        made_of = _parts(node)
        bad = [c for c in made_of if not good(analysis.see(c))]
        stack.extend((c, depth + 1) for c in reversed(bad))
        if bad and depth > DEEPEST:
            continue
        pad = "  " * (1 + min(depth, DEEPEST))
        if bad:
            place = ""
        else:
            place = _place(analysis, node)
        lines.append(f"{pad}{place}{shown(analysis, node, max(24, width - len(pad) - len(place)))}")
        others = [
            c for c in made_of if not analysis.see(c).constant and not isinstance(c, ir.Var) and c not in bad
        ]
        if parts and len(others) <= MOST_GIVEN:
            others = others
        else:
            others = []
        if bad and not (others and isinstance(node, ir.Apply) and atoms.signed(node) is None):
            continue
        explanation = words(analysis.see(node))
        if explanation not in explained:
            reason, fix = explanation
        else:
            reason, fix = (f"{explanation[0]} (as above)", "")
        explained.add(explanation)
        lines += wrap(reason, width, f"{pad}    ")
        for part in others:
            lines += wrap(
                f"{shown(analysis, part, 50)} is {analysis.see(part).curvature}",
                width,
                f"{pad}    - ",
                f"{pad}      ",
            )
        if fix and not bad:
            lines += wrap(f"Fix: {fix}", width, f"{pad}    ", f"{pad}         ")
    return lines


# -------------------------------------------------------------------------- properties and failures
def curved(f: Facts) -> bool:
    """Convex or concave."""
    return f.convex or f.concave


def weakly_curved(f: Facts) -> bool:
    """Convex or concave but for a square."""
    return f.weakly_convex or f.weakly_concave


def _why_curved(g: Facts, whole: Facts, maximised: bool) -> tuple[str, str]:
    """Why a node is neither convex nor concave; of the whole, why it has the wrong one."""
    kind = "above" if maximised else "below"
    side = getattr(g, kind)
    if g.expr is whole.expr and curved(g):
        return (
            "it is convex, and it is maximised" if maximised else "it is concave, and it is minimised"
        ), side.fix
    facts = [fact for fact in (side, g.below, g.above) if fact.lacks or fact.rule == "no rule"]
    if facts:
        fact = facts[0]
    else:
        fact = side
    return fact.lacks or fact.reason or RULES[fact.rule], fact.fix


def _why_unknown(g: Facts) -> tuple[str, str]:
    return g.below.reason or g.below.lacks or "no rule gives its curvature", g.below.fix


def _why_kink(g: Facts) -> tuple[str, str]:
    return g.differentiable.reason or RULES[g.differentiable.rule], g.differentiable.fix


def lost_convexity(analysis: Analysis, f: Facts, maximised: bool) -> list[Failure]:
    """The nodes where the composition rules first give neither convexity nor concavity; the whole
    where its sign is wrong."""
    nodes = _lowest(analysis, f.expr, curved) or [f]
    return [(g.expr, *_why_curved(g, f, maximised)) for g in nodes]


def unknown(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes where no curvature at all is known while that of their parts is."""
    return [(g.expr, *_why_unknown(g)) for g in _lowest(analysis, f.expr, weakly_curved) or [f]]


def kinks(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes that are not differentiable while all they are made of is."""
    return [_named(analysis, g) for g in _lowest(analysis, f.expr, lambda g: g.smooth)]


def _named(analysis: Analysis, g: Facts) -> Failure:
    """A kink in the user's words: of a function that a reformulation wrote, that of the reduction that
    it was written for."""
    words, fix = _why_kink(g)
    text = analysis.problem.text(g.expr)
    written = isinstance(g.expr, ir.Apply) and g.expr.op in text
    reduction = re.match(rf"({'|'.join(reductions.named(lambda kind: kind.kinked))})\b.*\[", text)
    if written or reduction is None or isinstance(g.expr, ir.Reduce):
        return g.expr, words, fix
    return g.expr, f"{reduction[1]} has kinks where its members change places", ""
