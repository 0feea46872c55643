"""Why a part of a model has the curvature it has: the derivation, and the places where a stronger property is lost."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from fccomodel import atoms, diagnostics, ir
from fccomodel.facts import Fact, Facts, Standing
from fccomodel.structure import RULES, Analysis

CURVATURE = ("below", "above")


def wrap(text: str, width: int, first: str = "  ", rest: str | None = None) -> list[str]:
    """Text in lines of at most ``width`` columns; words are not broken."""
    rest = " " * len(first) if rest is None else rest
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def why(analysis: Analysis, subject: str, width: int) -> list[str]:
    """The derivation of one part's curvature, and where a stronger property is lost."""
    f, expr, maximised = _subject(analysis, subject)
    fact = f.curvature_fact
    lines = [f"{subject}: {f.curvature} ({fact.standing})" if f.curvature != "unknown" else f"{subject}: unknown curvature", ""]
    rules: dict[str, None] = {}
    if f.curvature == "unknown":
        for node, words, fix in unknown(analysis, f):
            lines += _failure(analysis, node, words, fix, width)
    else:
        lines += _tree(analysis, fact, width, rules)
        wanted = f.negated() if maximised else f
        if not wanted.convex:
            lines += ["", f"Not {'concave' if maximised else 'convex'}, because"]
            for node, words, fix in lost_convexity(analysis, f, maximised):
                lines += _failure(analysis, node, words, fix, width)
    if not f.smooth:
        lines += ["", "Not smooth, because"]
        for node, words, fix in kinks(analysis, f):
            lines += _failure(analysis, node, words, fix, width)
    if rules:
        lines += ["", "Rules"]
        for name in rules:
            lines += wrap(f"{name}: {RULES[name]}", width, "  ", "    ")
    return lines


def _subject(analysis: Analysis, name: str) -> tuple[Facts, ir.Expr, bool]:
    problem = analysis.problem
    if name in ("objective", problem.objective.label):
        return analysis.objective, problem.objective.expr, problem.objective.sense == "maximize"
    for c in problem.constraints:
        if c.label == name:
            return analysis.constraints[name], c.body, False
    labels = ["objective", *analysis.constraints]
    raise diagnostics.FccoError(
        [
            diagnostics.error(
                "F0691",
                f"the model has no `{name}` to explain",
                reason=f"It has {', '.join(labels)}.",
                fix=diagnostics.did_you_mean(name, labels) or "Name one of them.",
            )
        ],
        problem.source,
    )


def shown(analysis: Analysis, expr: ir.Expr, width: int) -> str:
    """The user's text of an expression, shortened to fit a line."""
    text = analysis.problem.text(expr) or type(expr).__name__.lower()
    return text if len(text) <= width else f"{text[: width - 3].rstrip()} .."


def _failure(analysis: Analysis, node: ir.Expr, words: str, fix: str, width: int) -> list[str]:
    line, column = analysis.problem.source.place(node.span)
    lines = [f"  {line}:{column}  {shown(analysis, node, width - 10)}"]
    lines += wrap(words, width, "      ")
    return lines + (wrap(f"Fix: {fix}", width, "      ", "           ") if fix else [])


def _tree(analysis: Analysis, root: Fact, width: int, rules: dict[str, None]) -> list[str]:
    """A fact and the facts it follows from, indented, each once; affine expressions are not taken apart."""
    lines: list[str] = []
    seen: set[int] = set()
    stack: list[tuple[Fact, int]] = [(root, 0)]
    while stack:
        fact, depth = stack.pop()
        fact = _through(fact)
        pad = "  " * min(depth, 14)
        text = shown(analysis, fact.subject, max(24, width - len(pad)))
        see = analysis.see(fact.subject)
        flat = fact.kind in (*CURVATURE, "gradient", "differentiable") and see.affine
        what = "affine" if flat and not see.constant else str(fact)
        standing = "" if fact.standing == Standing.PROVED else f", {fact.standing}"
        lines.append(f"{pad}{text}")
        if id(fact) in seen and fact.uses:
            lines += wrap(f"{what} (shown above)", width, f"{pad}  ")
            continue
        seen.add(id(fact))
        rules[fact.rule] = None
        said = f" ({fact.reason})" if fact.reason else ""
        lines += wrap(f"{what} by `{fact.rule}`{said}{standing}", width, f"{pad}  ", f"{pad}    ")
        if not flat:
            stack.extend((use, depth + 1) for use in reversed(_told(fact)))
    return lines


def _told(fact: Fact) -> list[Fact]:
    """The facts worth showing below one: none about constants, and one where curvature from both sides says affine."""
    found: list[Fact] = []
    for use in _terms(fact):
        if use.rule == "constant" or isinstance(use.subject, ir.Const):
            continue
        twin = next((u for u in found if u.subject is use.subject and u.kind in CURVATURE and use.kind in CURVATURE), None)
        if twin is None:
            found.append(use)
    return found


def _terms(fact: Fact) -> list[Fact]:
    """The facts used; for a sum of sums, those of all its terms."""
    found: list[Fact] = []
    stack = list(reversed(fact.uses))
    while stack:
        use = stack.pop()
        inner = use.subject
        if (
            fact.rule == use.rule == "sum"
            and fact.kind in CURVATURE
            and isinstance(inner, ir.Apply)
            and inner.op in ("add", "sub")
        ):
            stack.extend(reversed(use.uses))
        else:
            found.append(use)
    return found


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


# ------------------------------------------------------------------------------------------------------- where it is lost
Failure = tuple[ir.Expr, str, str]


def first(analysis: Analysis, failures: list[Failure]) -> str:
    """The first of some failures, with its place in the model."""
    if not failures:
        return "no rule gives it"
    node, words, _ = failures[0]
    line, column = analysis.problem.source.place(node.span)
    more = f", and {len(failures) - 1} more (--why)" if len(failures) > 1 else ""
    return f"{words}: {shown(analysis, node, 40)} at {line}:{column}{more}"


def _lowest(analysis: Analysis, expr: ir.Expr, good: Callable[[Facts], bool]) -> list[Facts]:
    """The expressions deepest down that lack a property while all they are made of have it."""
    found: list[Facts] = []
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
        children = [c.let.body if isinstance(c, ir.LetRef) else c for c in node.children if not _is_condition(c)]
        bad = [c for c in children if not good(analysis.see(c))]
        if bad:
            stack.extend(reversed(bad))
        elif not good(analysis.see(node)):
            found.append(analysis.see(node))
    return found


def _is_condition(expr: ir.Expr) -> bool:
    atom = atoms.get(expr.op) if isinstance(expr, ir.Apply) else None
    return atom is not None and atom.boolean


def lost_convexity(analysis: Analysis, f: Facts, maximised: bool) -> list[Failure]:
    """The nodes where the composition rules first give neither convexity nor concavity; the whole where its sign is wrong."""
    kind = "above" if maximised else "below"
    nodes = _lowest(analysis, f.expr, lambda g: g.convex or g.concave)
    if not nodes:
        fact = getattr(f, kind)
        if f.convex or f.concave:
            words = "it is convex, and it is maximised" if maximised else "it is concave, and it is minimised"
            return [(f.expr, words, fact.fix)]
        return [(f.expr, fact.lacks or fact.reason, fact.fix)]
    result = []
    for node in nodes:
        facts = [g for g in (getattr(node, kind), node.below, node.above) if g.lacks or g.rule == "no rule"]
        fact = facts[0] if facts else getattr(node, kind)
        result.append((node.expr, fact.lacks or fact.reason or RULES[fact.rule], fact.fix))
    return result


def unknown(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes where no curvature at all is known while that of their parts is."""
    nodes = _lowest(analysis, f.expr, lambda g: g.convex or g.concave or g.weakly_convex or g.weakly_concave)
    result = []
    for node in nodes or [f]:
        fact = node.below
        result.append((node.expr, fact.reason or fact.lacks or "no rule gives its curvature", fact.fix))
    return result


def kinks(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes that are not differentiable while all they are made of is."""
    nodes = _lowest(analysis, f.expr, lambda g: g.smooth)
    return [(n.expr, n.differentiable.reason or RULES[n.differentiable.rule], n.differentiable.fix) for n in nodes]
