"""Why a part of a model has its curvature: the derivation, and where a stronger property is lost."""

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
SHOWN_LEVELS = 10  # indentation levels of a path to a failing node
SHOWN_PARTS = 6  # parts of a failing node that are listed
DOMAIN_FIX = (
    "state the sign or the bounds where it is declared, or keep away from the edge, as in "
    "log(1e-6 + u) for u >= 0."
)


def wrap(text: str, width: int, first: str = "  ", rest: str | None = None) -> list[str]:
    """The text in lines of at most ``width`` columns; words are not broken.

    ``first`` is put before the first line, ``rest`` (by default as many spaces) before the others.
    """
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
    """The facts of one part, the derivation of its curvature, and where a stronger property is lost."""
    f, maximised = _subject(analysis, subject)
    fact = f.curvature_fact
    rules: dict[str, None] = {}
    if f.curvature == "unknown":
        lines = [
            f"{subject}: unknown curvature",
            "",
            "Neither convex, concave nor weakly convex, because",
        ]
        lines += _lost(analysis, f.expr, weakly_curved, _why_unknown, width)
    else:
        lines = [f"{subject}: {f.curvature} ({fact.standing})", ""]
        lines += _tree(analysis, fact, width, rules)
        if maximised:
            minimised = f.negated()
        else:
            minimised = f
        if not minimised.convex:
            lines += ["", f"Not {'concave' if maximised else 'convex'}, because"]
            lines += _lost(analysis, f.expr, curved, lambda g: _why_curved(g, f, maximised), width)
    if not f.smooth:
        lines += ["", "Not smooth, because"]
        lines += _lost(analysis, f.expr, lambda g: g.smooth, _why_kink, width, parts=False)
    if f.domain:
        lines += ["", "Not proved to be defined"]
        for condition in f.domain:
            lines += _failure(analysis, condition.subject, condition.reason, DOMAIN_FIX, width)
    lines += ["", "Known", *_properties(f, width)]
    if rules:
        lines += ["", "Rules"]
        for name in rules:
            lines += wrap(f"{name}: {RULES[name]}", width, "  ", "    ")
    return lines


def _properties(f: Facts, width: int) -> list[str]:
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
        text = str(fact)
        if fact.holds and fact.rule != "no rule":
            text += f" by `{fact.rule}`"
        if fact.holds and fact.standing != Standing.PROVED:
            text += f", {fact.standing}"
        lines += wrap(text, width, f"  {name:<12} ", " " * 15)
    directions = {"increasing": "non-decreasing", "decreasing": "non-increasing", "none": "not monotone"}
    for variable in sorted(f.leaves):
        lines += wrap(f"{directions[f.monotone(variable)]}", width, f"  in {variable:<9} ", " " * 15)
    return lines


def _subject(analysis: Analysis, name: str) -> tuple[Facts, bool]:
    """The facts of a named part, and whether it is maximised. An unknown name is refused."""
    problem = analysis.problem
    if name in ("objective", problem.objective.label):
        return analysis.objective, problem.objective.sense == "maximize"
    for c in problem.constraints:
        if c.label == name:
            return analysis.constraints[name], False
    labels = ["objective", *analysis.constraints]
    refuse(errors.nothing_to_explain(name, labels), source=problem.source)


def shown(analysis: Analysis, expr: ir.Expr, width: int) -> str:
    """The user's text of an expression, shortened to fit a line.

    An expression that a reformulation made is named after the part of it that the user wrote.
    """
    part = written(expr)
    text = analysis.problem.text(part)
    if part is not expr:
        if text:
            text = f"a function of {text}"
        else:
            text = "what a reformulation added"
    return brief(text, width)


def written(expr: ir.Expr) -> ir.Expr:
    """The outermost part of an expression that the user wrote, or the expression if there is none."""
    last_first = reversed(list(ir.walk(expr)))
    return next((node for node in last_first if node.span != ir.NOWHERE), expr)


def _place(analysis: Analysis, expr: ir.Expr) -> str:
    """The line and column of an expression or of its written part, or "" if it has none."""
    span = written(expr).span
    if span == ir.NOWHERE:
        return ""
    return "{}:{}  ".format(*analysis.problem.source.place(span))


def brief(text: str, width: int) -> str:
    """The text in at most ``width`` characters: contents of brackets are left out.

    The deepest brackets go first, among them the longest.
    """
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
            return f"{text[: width - 3].rsplit(' ', 1)[0].rstrip()} .."
        deepest = max(brackets)[0]
        _, length, start = max(bracket for bracket in brackets if bracket[0] == deepest)
        text = f"{text[: start + 1]}..{text[start + length :]}"
    return text


def _failure(analysis: Analysis, node: ir.Expr, words: str, fix: str, width: int) -> list[str]:
    """A failing node with its place, the reason in words, and a fix if there is one."""
    lines = [f"  {_place(analysis, node)}{shown(analysis, node, width - 10)}"]
    lines += wrap(words, width, "      ")
    if fix:
        lines += wrap(f"Fix: {fix}", width, "      ", "           ")
    return lines


@dataclass(frozen=True)
class DerivationStep:
    """One fact of a derivation.

    depth     number of facts above it
    fact      the fact
    says      its content in words
    premises  the facts that it follows from
    again     whether the derivation showed its premises before
    """

    depth: int
    fact: Fact
    says: str
    premises: tuple[Fact, ...]
    again: bool


def steps(analysis: Analysis, root: Fact) -> Iterator[DerivationStep]:
    """A fact and the facts that it follows from, depth first.

    Premises are shown once per fact, and not for affine expressions.
    """
    seen: set[int] = set()
    stack: list[tuple[Fact, int]] = [(root, 0)]
    while stack:
        fact, depth = stack.pop()
        fact = _through(fact)
        subject = analysis.see(fact.subject)
        affine = fact.kind in (*CURVATURE, "gradient", "differentiable") and subject.affine
        again = id(fact) in seen and bool(fact.uses)
        seen.add(id(fact))
        premises = () if again or affine else tuple(_premises(fact))
        if affine and not subject.constant:
            words = "affine"
        else:
            words = str(fact)
        yield DerivationStep(depth, fact, words, premises, again)
        stack.extend((use, depth + 1) for use in reversed(premises))


def _tree(analysis: Analysis, root: Fact, width: int, rules: dict[str, None]) -> list[str]:
    """A derivation in indented lines; the rules used are added to ``rules``."""
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
    """The rule that gives a fact, why it applies, and its standing if it is not proved."""
    text = f"`{fact.rule}`"
    if fact.reason:
        text += f" ({fact.reason})"
    if fact.standing != Standing.PROVED:
        text += f", {fact.standing}"
    return text


def _premises(fact: Fact) -> list[Fact]:
    """The facts worth showing below one.

    Facts about constants are left out, and only one curvature is kept per expression.
    """
    chosen: list[Fact] = []
    curvature_of: set[int] = set()
    for use in _terms(fact):
        if use.rule == "constant" or isinstance(use.subject, ir.Const):
            continue
        if use.kind in CURVATURE:
            if id(use.subject) in curvature_of:
                continue
            curvature_of.add(id(use.subject))
        chosen.append(use)
    return chosen


def _terms(fact: Fact) -> list[Fact]:
    """The facts that a fact uses; for nested sums, the facts of all their terms."""
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
    """The fact behind facts that only repeat the one they use, as an entry of a vector does."""
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
    """The first failure, with its place in the model, and the number of the others."""
    if not failures:
        return "no rule gives it"
    node, words, _ = failures[0]
    text = f"{words}: {shown(analysis, node, 56)}"
    place = _place(analysis, node).strip()
    if place:
        text += f" at {place}"
    if len(failures) > 1:
        text += f", and {len(failures) - 1} more (--why)"
    return text


def _lowest(analysis: Analysis, expr: ir.Expr, good: Callable[[Facts], bool]) -> list[Facts]:
    """The subexpressions that lack a property while all their children have it."""
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
        formulas = [child for child in node.children if not _is_condition(child)]
        children = [child.let.body if isinstance(child, ir.LetRef) else child for child in formulas]
        bad = [c for c in children if not good(analysis.see(c))]
        if bad:
            stack.extend(reversed(bad))
        elif not good(analysis.see(node)):
            lowest.append(analysis.see(node))
    return lowest


def _is_condition(expr: ir.Expr) -> bool:
    """Whether an expression is a condition, such as a comparison."""
    if not isinstance(expr, ir.Apply):
        return False
    atom = atoms.get(expr.op)
    return atom is not None and atom.boolean


def _is_sum(node: ir.Expr) -> bool:
    """Whether the node is a sum or a difference of two terms."""
    return len(atoms.signed(node) or ()) > 1


def _parts(node: ir.Expr) -> list[ir.Expr]:
    """The children of an expression; ``let`` names and nested sums among them are opened."""
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
    """The path from an expression down to the nodes where a property is lost, in lines.

    good   whether facts have the property
    words  why a node lacks it, and a fix
    parts  whether the curvatures of a failing node's parts are listed
    """
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
        children = _parts(node)
        bad = [c for c in children if not good(analysis.see(c))]
        stack.extend((c, depth + 1) for c in reversed(bad))
        if bad and depth > SHOWN_LEVELS:
            continue
        pad = "  " * (1 + min(depth, SHOWN_LEVELS))
        if bad:
            place = ""
        else:
            place = _place(analysis, node)
        lines.append(f"{pad}{place}{shown(analysis, node, max(24, width - len(pad) - len(place)))}")
        if parts:
            listed = _worth_listing(analysis, children, bad)
        else:
            listed = []
        if bad and not (listed and isinstance(node, ir.Apply) and atoms.signed(node) is None):
            continue
        explanation = words(analysis.see(node))
        reason, fix = explanation
        if explanation in explained:
            reason, fix = f"{reason} (as above)", ""
        explained.add(explanation)
        lines += wrap(reason, width, f"{pad}    ")
        for part in listed:
            text = f"{shown(analysis, part, 50)} is {analysis.see(part).curvature}"
            lines += wrap(text, width, f"{pad}    - ", f"{pad}      ")
        if fix and not bad:
            lines += wrap(f"Fix: {fix}", width, f"{pad}    ", f"{pad}         ")
    return lines


def _worth_listing(analysis: Analysis, children: list[ir.Expr], bad: list[ir.Expr]) -> list[ir.Expr]:
    """The children with the property that are neither constants nor variables; none if they are many."""
    composed = [c for c in children if not isinstance(c, ir.Var) and c not in bad]
    others = [c for c in composed if not analysis.see(c).constant]
    if len(others) <= SHOWN_PARTS:
        return others
    return []


# -------------------------------------------------------------------------- properties and failures
def curved(f: Facts) -> bool:
    """Whether an expression is convex or concave."""
    return f.convex or f.concave


def weakly_curved(f: Facts) -> bool:
    """Whether an expression is weakly convex or weakly concave."""
    return f.weakly_convex or f.weakly_concave


def _why_curved(g: Facts, whole: Facts, maximised: bool) -> tuple[str, str]:
    """Why a node is neither convex nor concave, and a fix.

    For the whole, it is why its curvature is the wrong one.
    """
    side = g.above if maximised else g.below
    if g.expr is whole.expr and curved(g):
        if maximised:
            words = "it is convex, and it is maximised"
        else:
            words = "it is concave, and it is minimised"
        return words, side.fix
    missing = (fact for fact in (side, g.below, g.above) if fact.lacks or fact.rule == "no rule")
    fact = next(missing, side)
    return fact.lacks or fact.reason or RULES[fact.rule], fact.fix


def _why_unknown(g: Facts) -> tuple[str, str]:
    """Why no curvature of a node is known, and a fix."""
    return g.below.reason or g.below.lacks or "no rule gives its curvature", g.below.fix


def _why_kink(g: Facts) -> tuple[str, str]:
    """Why a node is not differentiable, and a fix."""
    return g.differentiable.reason or RULES[g.differentiable.rule], g.differentiable.fix


def lost_convexity(analysis: Analysis, f: Facts, maximised: bool) -> list[Failure]:
    """The nodes where the composition rules first give neither convexity nor concavity.

    If every node is convex or concave, it is the whole, whose sign is wrong.
    """
    nodes = _lowest(analysis, f.expr, curved) or [f]
    return [(g.expr, *_why_curved(g, f, maximised)) for g in nodes]


def unknown(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes of unknown curvature whose children have a known, at least weak curvature."""
    return [(g.expr, *_why_unknown(g)) for g in _lowest(analysis, f.expr, weakly_curved) or [f]]


def kinks(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes that are not differentiable while all their children are."""
    return [_named(analysis, g) for g in _lowest(analysis, f.expr, lambda g: g.smooth)]


def _named(analysis: Analysis, g: Facts) -> Failure:
    """A kink in the user's words.

    If a reformulation wrote the function, the kink is that of the reduction that it stands for.
    """
    words, fix = _why_kink(g)
    text = analysis.problem.text(g.expr)
    as_written = isinstance(g.expr, ir.Apply) and g.expr.op in text
    kinked = "|".join(reductions.named(lambda kind: kind.kinked))
    reduction = re.match(rf"({kinked})\b.*\[", text)
    if as_written or reduction is None or isinstance(g.expr, ir.Reduce):
        return g.expr, words, fix
    return g.expr, f"{reduction[1]} has kinks where its members change places", ""
