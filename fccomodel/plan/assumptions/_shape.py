"""Assumptions of theorems about the structure of a problem: its sums, its levels, its blocks."""

from __future__ import annotations

from collections.abc import Iterator

from fccomodel.core import ir
from fccomodel.evaluation.sets import elements
from fccomodel.library import atoms, reductions
from fccomodel.library.sums import summands
from fccomodel.normal_form.reformulations import robust
from fccomodel.normal_form.smoothing import entry_of_vector
from fccomodel.normal_form.terms import is_sampled, nonlinear_below, plug_ins
from fccomodel.plan.assumptions._base import Assumption, Finding, Setting, holds, lacks, short
from fccomodel.structure.facts import Standing

LARGEST = 100_000  # tracked expectations that one vector holds


def _roots(setting: Setting) -> list[ir.Expr]:
    return list(setting.reformed.roots)


def _reductions(setting: Setting) -> Iterator[ir.Reduce]:
    return (n for root in _roots(setting) for n in ir.walk(root) if isinstance(n, ir.Reduce))


def finite_sum(setting: Setting) -> Finding:
    """Whether every expectation is over the rows of a table."""
    tables = set()
    for node in _reductions(setting):
        for binder in node.binders:
            if isinstance(binder.domain, ir.Distribution):
                text = setting.reformed.text(node)
                return lacks(
                    f"{binder.name} is drawn from {binder.domain.family}, which has no end of samples",
                    text,
                    node.span,
                )
            if isinstance(binder.domain, ir.RowSet):
                tables.add(binder.domain.table)
    return holds(
        f"every expectation is over the rows of {', '.join(sorted(tables))}"
        if tables
        else "no expectation is left"
    )


def two_levels(setting: Setting) -> Finding:
    """Whether no composition is inside a tracked expectation: a mean of means is one mean, and a sum
    over a listed set that every step takes as a whole is a part of the outer function."""
    for term in setting.normal.terms:
        for mean, text in zip(term.means, term.inner, strict=True):
            inside = [n for n in ir.walk(mean.body) if is_sampled(n)]
            if inside and nonlinear_below(mean.body):
                nested = setting.reformed.text(inside[0])
                return lacks(
                    f"{short(nested)} is an expectation inside the tracked expectation {short(text)}",
                    nested,
                    inside[0].span,
                )
        for node in (n for n in ir.walk(term.f) if isinstance(n, ir.Reduce) and reductions.of(n).linear):
            if any(isinstance(n, ir.Hole) for n in ir.walk(node.body)) and (part := _in_part(setting, node)):
                text = setting.reformed.text(node)
                return lacks(f"steps take {part} members of the sum {short(text)}", text, node.span)
    return holds("no expectation is inside a tracked expectation")


def _in_part(setting: Setting, node: ir.Reduce) -> str:
    """``64 of 5,000``: how many members of a reduction a step takes, where these are not all; ""
    otherwise."""
    if setting.bound is None or setting.batch is None:
        return ""
    for binder in node.binders:
        count = len(elements.ids(setting.bound, binder.domain))
        samples = setting.batch(binder, count, False)
        if samples is not None and samples < count:
            return f"{samples:,} of {count:,}"
    return ""


def tracked(setting: Setting) -> Finding:
    """Whether every block can have an estimate of its own. A draw from a distribution is met only once."""
    for node in (n for root in _roots(setting) for n in plug_ins(root)):
        text = setting.reformed.text(node)
        why = f"{short(text)} belongs to a draw from a distribution, which is met once: nothing tracks it"
        return lacks(why, text, node.span)
    return holds("every block can be listed, and its estimate kept")


def scalar_inner(setting: Setting) -> Finding:
    """Whether every outer function has one expectation."""
    for block in setting.blocks:
        if (count := block.arguments) > 1:
            return lacks(f"{block.words} has {count:,} expectations", block.words, block.span)
    return holds("every outer function has one expectation")


def plain_expectations(setting: Setting) -> Finding:
    """Whether no expectation stands under a nonlinear function."""
    for term in setting.normal.terms:
        if term.kind == "composition":
            return lacks(f"{short(term.text)} is a nonlinear function of expectations", term.text)
    return holds("objective and constraints are expectations, or smooth functions beside them")


def shared_inner(setting: Setting) -> Finding:
    """Whether all tracked expectations fit into one vector."""
    for node in _reductions(setting):
        inside = any(isinstance(n, ir.Reduce) for n in ir.walk(node.body))
        if inside and (random_binders := [b for b in node.binders if isinstance(b.domain, ir.Distribution)]):
            text = setting.reformed.text(node)
            return lacks(
                f"{random_binders[0].name} is drawn from a distribution: its blocks cannot be listed",
                text,
                node.span,
            )
    sizes = [term.n * term.d1 if term.n is not None else None for term in setting.normal.terms]
    counted = [size for size in sizes if size is not None]
    reduces = (n for n in ir.walk(setting.normal.objective) if isinstance(n, ir.Reduce))
    if not any(block.inner for block in setting.blocks) or not any(map(entry_of_vector, reduces)):
        return lacks("there is no expectation to be tracked")
    if len(counted) < len(sizes):
        return holds("the number of tracked expectations comes with the data", standing=Standing.ASSUMED)
    total = sum(counted)
    if total > LARGEST:
        return lacks(f"the model tracks {total:,} expectations, more than {LARGEST:,}")
    return holds(
        f"{total:,} tracked expectations in one vector",
        standing=Standing.BOUNDED if setting.bound else Standing.PROVED,
    )


def linear_coupling(setting: Setting) -> Finding:
    """Whether the objective is a maximum over a polytope of weights of group losses, plus regularisers."""
    if setting.constrained:
        return lacks("the model has constraints", setting.constrained[0].label, setting.constrained[0].span)
    problem = setting.problem
    composed = [
        p for p in summands(problem.objective.expr) if any(isinstance(n, ir.Reduce) for n in ir.walk(p))
    ]
    if len(composed) != 1 or problem.objective.sense != "minimize":
        return lacks("the objective is not one maximum, cvar or topk of group losses")
    node = composed[0]
    text = problem.text(node)
    is_family = (
        isinstance(node, ir.Reduce)
        and reductions.of(node).coupling
        and all(b.kind == "in" for b in node.binders)
    )
    if isinstance(node, ir.Reduce) and is_family and len(node.binders) > 1:
        return lacks(f"{short(text)} is over pairs, not over one set", text, node.span)
    if (inside := _largest_of_risks(node, is_family)) is not None:
        part = problem.text(inside)
        return lacks(
            f"{short(part)} is not over the members of one set, which have a weight each", part, inside.span
        )
    if isinstance(node, ir.Reduce):
        dual = robust.tilted(node, problem)
    else:
        dual = None
    if dual is not None and (dual.divergence is not None or dual.ball is not None):
        return lacks(
            f"the weights in {short(text)} carry a divergence: not a maximum over a polytope", text, node.span
        )
    if not (is_family or dual is not None):
        return lacks(f"{short(text)} is not a maximum, cvar or topk of group losses", text, node.span)
    return holds(
        f"{short(text)} is a maximum over a polytope of weights of its group losses",
        subject=text,
        span=node.span,
    )


def _largest_of_risks(node: ir.Expr, is_family: bool) -> ir.Expr | None:
    """A maximum of a list of expectations, or a family inside the family: what no weights of one set's
    members tell."""
    for inside in ir.walk(node.body if is_family and isinstance(node, ir.Reduce) else node):
        atom = atoms.of(inside)
        listed = atom is not None and atom.extreme > 0
        nested = is_family and isinstance(inside, ir.Reduce) and reductions.of(inside).coupling
        if (listed or nested) and any(isinstance(n, ir.Reduce) for n in inside.children for n in ir.walk(n)):
            return inside
    return None


def blocks_partition_rows(setting: Setting) -> Finding:
    """Whether every tracked expectation is over the rows of one table: the rows of a group for each block,
    or all rows.
    """
    table = None
    for term in setting.normal.terms:
        for mean, text in zip(term.means, term.inner, strict=True):
            domains = [b.domain for b in mean.binders]
            if len(domains) != 1 or not isinstance(domains[0], ir.RowSet):
                return lacks(f"{short(text)} is not over the rows of one table", text, mean.span)
            if table not in (None, domains[0].table):
                return lacks(f"{short(text)} is over another table than {table}", text, mean.span)
            table = domains[0].table
            if mean.condition is not None and not _picks_group(mean.condition, mean.binders[0]):
                return lacks(
                    f"the condition of {short(text)} does not pick one group of rows per block",
                    text,
                    mean.span,
                )
            if mean.condition is None and term.n not in (None, 1):
                return lacks(f"every block of {short(text)} is over the same rows", text, mean.span)
    return holds(f"each row of {table} is in one block" if table else "the model has no expectation")


def _picks_group(condition: ir.Expr, row: ir.Binder) -> bool:
    """``row.column == k`` for the element k of an outer binder."""
    if not (isinstance(condition, ir.Apply) and condition.op == "eq"):
        return False
    if isinstance(condition.args[0], ir.Column):
        column, element = condition.args
    else:
        column, element = condition.args[::-1]
    return (
        isinstance(column, ir.Column)
        and column.binder is row
        and isinstance(element, ir.Element)
        and element.binder is not row
    )


ASSUMPTIONS = (
    Assumption(name="finite sum", meaning="expectations over finite tables", decide=finite_sum, form=True),
    Assumption(
        name="two levels", meaning="no expectation inside a tracked expectation", decide=two_levels, form=True
    ),
    Assumption(
        name="tracked blocks",
        meaning="blocks that can be listed, each with an estimate of its own",
        decide=tracked,
    ),
    Assumption(name="scalar inner", meaning="one expectation in each outer function", decide=scalar_inner),
    Assumption(
        name="plain expectations",
        meaning="expectations under no nonlinear function",
        decide=plain_expectations,
    ),
    Assumption(
        name="shared inner",
        meaning="tracked expectations that fit one vector",
        decide=shared_inner,
        form=True,
    ),
    Assumption(
        name="linear coupling",
        meaning="a maximum, cvar or topk of group losses",
        decide=linear_coupling,
        form=True,
    ),
    Assumption(
        name="blocks partition rows",
        meaning="blocks that are groups of one table",
        decide=blocks_partition_rows,
        form=True,
    ),
)
