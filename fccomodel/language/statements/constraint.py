"""``label[k in K]: left <= right;``: constraints and families of them, after ``subject to``."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, latex, syntax
from fccomodel.language.formulas import (
    arrays,
    chances,
    expressions,
    families,
    literals,
    names,
    places,
    reductions,
    shapes,
    signs,
)
from fccomodel.language.formulas.context import Context, FormulaArray, Scope
from fccomodel.language.latex import LatexPrinter, Row
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter, labelled
from fccomodel.language.statements import Key, StatementKind, no_names
from fccomodel.language.tree import Refusal, declared, distinct


@dataclass(frozen=True, kw_only=True)
class Constraint(syntax.Statement):
    """``label[family]: relation with options;``; an unlabelled one has ``label`` None."""

    relation: syntax.Expr
    label: str | None = None
    family: syntax.Indexing | None = None
    options: tuple[syntax.Keyword, ...] = ()


#: The relations whose greater side stands first.
AT_LEAST = (">=", ">>")


# ---------------------------------------------------------------------------------------------- tree
def _read(c: list, at: Span) -> Constraint:
    label, family, relation, options = c
    _check_relation(relation)
    if label is not None:
        label = declared(label)
    return Constraint(relation=relation, label=label, family=family, options=options or (), span=at)


def _check_relation(relation: syntax.Expr) -> None:
    """Refuse all but ``a <= b``, ``a >= b``, ``a == b``, ``lo <= e <= hi``, ``hi >= e >= lo``, and ``<<``
    and ``>>`` in the places of ``<=`` and ``>=``."""
    if isinstance(relation, syntax.Binary) and relation.op in ("and", "or"):
        raise Refusal(errors.syntax.connected_constraints(relation.op, relation.span))
    if not isinstance(relation, syntax.Compare):
        raise Refusal(errors.syntax.compares_nothing(relation.span))
    for op, left, right in zip(relation.ops, relation.operands, relation.operands[1:], strict=False):
        if op not in ("<=", ">=", "==", *ir.MATRIX_RELATIONS):
            raise Refusal(errors.syntax.open_constraint(op, left.span | right.span))
    twice = [(op, op) for op in ("<=", ">=", *ir.MATRIX_RELATIONS)]
    if len(relation.ops) > 1 and relation.ops not in twice:
        raise Refusal(errors.syntax.several_comparisons(relation.ops, relation.span))


# -------------------------------------------------------------------------------------------- checks
def _announce(ctx: Context, node: Constraint) -> None:
    if node.label is not None:
        ctx.reserved_labels.add(node.label)


def _check(ctx: Context, node: Constraint) -> None:
    ctx.constraints.extend(_constraints(ctx, node, _label(ctx, node)))


def _label(ctx: Context, node: Constraint) -> str:
    """The constraint's label. A constraint without one is called c1, c2, ..., and a note says so."""
    if node.label is not None:
        span = Span(start=node.span.start, end=node.span.start + len(node.label))
        if node.label in ctx.labels:
            ctx.report(errors.names.label_twice(node.label, ctx.line(ctx.labels[node.label]), span))
        ctx.labels.setdefault(node.label, span)
        return node.label
    ctx.last_number += 1
    while f"c{ctx.last_number}" in ctx.labels or f"c{ctx.last_number}" in ctx.reserved_labels:
        ctx.last_number += 1
    label = f"c{ctx.last_number}"
    ctx.labels[label] = node.span
    ctx.report(errors.problem.no_label(ctx.quote(node.relation), label))
    return label


def _constraints(ctx: Context, node: Constraint, label: str) -> list[ir.Constraint]:
    """One constraint, or two for ``lo <= e <= hi``; none after an error."""
    assert isinstance(node.relation, syntax.Compare)  # and closed: the syntax has no others
    scope, condition = families.open_scope(ctx), None
    binders: tuple[ir.Binder, ...] = ()
    if node.family is not None:
        head = families.family(ctx, node.family, "a family of constraints", scope)
        if head is None:
            return []
        scope, binders, condition = head.scope, head.binders, head.condition
    relation, sides = _sides(ctx, scope, node.relation)
    options = _option_values(ctx, node)
    if sides is None or options is None:
        return []
    op = relation.ops[0]
    operands, axes = _compared(ctx, scope, sides, relation)
    if not operands:
        return []
    binders = (*binders, *axes)
    pairs = list(zip(operands, operands[1:], strict=False))
    if op in AT_LEAST:
        pairs.reverse()
    constraints: list[ir.Constraint] = []
    if len(pairs) == 1:
        suffixes = [""]
    else:
        suffixes = [".lower", ".upper"]
    for suffix, (left, right) in zip(suffixes, pairs, strict=True):
        chance: ir.Chance | None = None
        written = left, op, right
        if chances.find(*written) is not None:
            kept = chances.surrogate(ctx, written, options, relation.span)
            if kept is None:
                return []
            written, chance = kept
        body = _body(written[1], written[0], written[2], relation.span)
        if not _all_settled(ctx, body, binders):
            return []
        free = reductions.needed(body, {b: c for b, c in ctx.pending.items() if b.kind == "in"})
        constraint = ir.Constraint(
            label=label + suffix,
            body=body,
            written=written,
            kind="eq" if op == "==" else "le",
            binders=(*free, *binders),
            condition=conjunction([*(ctx.pending[b] for b in free), condition]),
            options=options,
            chance=chance,
            span=node.span,
        )
        if not _possible(ctx, constraint, relation):
            return []
        constraints.append(constraint)
    _add_remarks(ctx, constraints, node, label)
    return constraints


def _sides(
    ctx: Context, scope: Scope, relation: syntax.Compare
) -> tuple[syntax.Compare, list[ir.Expr] | None]:
    """A relation without quantiles and its sides, which are None after an error."""
    plain = chances.of_quantile(ctx, scope, relation)
    if plain is None:
        return relation, None
    inner, relation = plain
    return relation, expressions.complete([_side(ctx, inner, operand) for operand in relation.operands])


def _side(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Expr | None:
    """A side of a constraint, which may be an array; None after an error."""
    value = arrays.operand(ctx, scope, node)
    if value is None or isinstance(value, FormulaArray):
        return value
    return expressions.as_number(ctx, value, "a side of a constraint")


def _entries(
    ctx: Context, scope: Scope, sides: list[ir.Expr], relation: syntax.Compare
) -> tuple[list[ir.Expr], tuple[ir.Binder, ...]]:
    """The sides of a constraint on arrays, entry by entry, with an index for each axis.

    No sides after an error.
    """
    whole = max(sides, key=lambda side: len(side.shape))
    if any(isinstance(side, FormulaArray) for side in sides):
        return _entries_by_formula(ctx, sides, relation)
    for side in sides:
        if shapes.is_net_parameters(side):
            ctx.report(errors.shapes.not_a_scalar("a side of a constraint", shapes.described(ctx, side)))
            return [], ()
        if side.shape and not shapes.same_shape(ctx, side.shape, whole.shape):
            left, right = sorted((side, whole), key=lambda s: s.span.start)
            ends = shapes.described(ctx, left), shapes.described(ctx, right)
            axes = len(left.shape), len(right.shape)
            ctx.report(errors.shapes.operands(relation.ops[0], *ends, relation.span, axes))
            return [], ()
    indices = names.spare_indices({*ctx.symbols, *scope.locals})
    binders = []
    for dim, name in zip(whole.shape, indices, strict=False):
        members = places.members(ctx, places.axis_of(ctx, dim), relation.span)
        if members is None:
            return [], ()
        binders.append(ir.Binder(name=name, kind="in", domain=members, span=relation.span))
    at = tuple(ir.Element(binder=binder, span=relation.span) for binder in binders)
    entries = [ir.Item(base=side, indices=at, span=side.span) if side.shape else side for side in sides]
    return entries, tuple(binders)


def _entries_by_formula(
    ctx: Context, sides: list[ir.Expr], relation: syntax.Compare
) -> tuple[list[ir.Expr], tuple[ir.Binder, ...]]:
    """The entries of both sides if one of them is an array by formula; empty after an error."""
    for side in sides:
        if shapes.is_net_parameters(side):
            ctx.report(errors.shapes.not_a_scalar("a side of a constraint", shapes.described(ctx, side)))
            return [], ()
    joined = arrays.entrywise(ctx, sides, lambda parts: parts[0], relation.ops[0], relation.span)
    if joined is None:
        return [], ()
    with arrays.elements(ctx, joined, joined.axes, relation.span) as at:
        entries = expressions.complete([arrays.entry_of(ctx, side, at) for side in sides])
    if entries is None:
        return [], ()
    numbers = [expressions.as_number(ctx, entry, "a side of a constraint") for entry in entries]
    return expressions.complete(numbers) or [], tuple(element.binder for element in at)


def _compared(
    ctx: Context, scope: Scope, sides: list[ir.Expr], relation: syntax.Compare
) -> tuple[list[ir.Expr], tuple[ir.Binder, ...]]:
    """The sides that a constraint compares: numbers, entries of arrays with their indices, or matrices."""
    if relation.ops[0] in ir.MATRIX_RELATIONS:
        return _matrices(ctx, sides, relation), ()
    return _entries(ctx, scope, sides, relation)


def _body(op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
    """The expression that is at most 0: the lesser side minus the greater; of matrices its
    largest eigenvalue."""
    if op in AT_LEAST:
        left, right = right, left
    difference = _difference(left, right, span)
    if op in ir.MATRIX_RELATIONS:
        return ir.Apply(op="lambda_max", args=(difference,), span=span)
    return difference


def _matrices(ctx: Context, sides: list[ir.Expr], relation: syntax.Compare) -> list[ir.Expr]:
    """The sides of a matrix inequality, square matrices of one size or 0. No sides after an error."""
    written = [
        expressions.written_out(ctx, side) if isinstance(side, FormulaArray) else side for side in sides
    ]
    values = expressions.complete(written)
    if values is None:
        return []
    whole = max(values, key=lambda value: len(value.shape))
    if not shapes.is_square(ctx, whole.shape) or shapes.is_net_parameters(whole):
        ctx.report(errors.shapes.matrix_inequality(relation.ops[0], shapes.described(ctx, whole)))
        return []
    for value in values:
        zero = isinstance(value, ir.Const) and value.value == 0 and not value.shape
        if not zero and not value.shape:
            ctx.report(errors.shapes.matrix_and_number(relation.ops[0], ctx.quote(value)))
            return []
        if not zero and not shapes.same_shape(ctx, value.shape, whole.shape):
            first, second = sorted((value, whole), key=lambda s: s.span.start)
            ends = shapes.described(ctx, first), shapes.described(ctx, second)
            ctx.report(errors.shapes.matrices_of_two_sizes(relation.ops[0], *ends, relation.span))
            return []
    return values


def _all_settled(ctx: Context, body: ir.Expr, binders: tuple[ir.Binder, ...]) -> bool:
    """Whether every draw is averaged; open ``in`` indices may stay, since they make a family."""
    open_in = tuple(b for b in ctx.pending if b.kind == "in")
    return families.settled(ctx, body, (*binders, *open_in), "a constraint")


def _difference(left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
    """Left side minus right side. A side that is zero is left out."""
    if isinstance(right, ir.Const) and right.value == 0:
        return left
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return ir.Const(value=left.value - right.value, shape=left.shape, span=span)
    if isinstance(left, ir.Const) and left.value == 0:
        return ir.Apply(op="neg", args=(right,), shape=right.shape, span=span)
    return ir.Apply(op="sub", args=(left, right), shape=left.shape, span=span)


def _possible(ctx: Context, constraint: ir.Constraint, relation: syntax.Compare) -> bool:
    """Whether some point may satisfy a constraint. Reports an error if none can."""
    enclosure, equality = signs.interval(ctx, constraint.body), constraint.kind == "eq"
    infeasible = enclosure.positive or (equality and enclosure.negative)
    if infeasible:
        ctx.report(errors.problem.infeasible(ctx.quote(relation), enclosure, constraint.written[1]))
    return not infeasible


def _add_remarks(ctx: Context, constraints: list[ir.Constraint], node: Constraint, label: str) -> None:
    """Remarks on a constraint without a variable, and on a bound that a declaration could state."""
    relation = node.relation
    if not all(ir.variables_of(constraint.body) for constraint in constraints):
        ctx.report(errors.problem.constant_constraint(label, relation.span))
        return
    bounds = _as_bounds(ctx, node, constraints)
    if bounds is not None:
        ctx.report(errors.problem.bound_as_constraint(ctx.quote(relation), bounds))


def _as_bounds(ctx: Context, node: Constraint, constraints: list[ir.Constraint]) -> str | None:
    """``x[K] >= 0, <= 1`` if a constraint bounds a variable or each of its entries by numbers, else None."""
    relation = node.relation
    assert isinstance(relation, syntax.Compare)
    if not {"<=", ">="} & set(relation.ops) or any(
        constraint.condition is not None for constraint in constraints
    ):
        return None
    for k, operand in enumerate(relation.operands):
        base = operand
        if isinstance(operand, syntax.Index) and node.family is not None:
            base = operand.obj
        others = [other for other in relation.operands if other is not operand]
        if not isinstance(base, syntax.Name) or base.id not in ctx.variables:
            continue
        if not all(_is_number(other) for other in others):
            continue
        shape = ctx.variables[base.id].shape
        if shape:
            sizes = f"[{', '.join(map(str, shape))}]"
        else:
            sizes = ""
        return f"{base.id}{sizes} {', '.join(_bounds_beside(ctx, relation, k))}"
    return None


def _bounds_beside(ctx: Context, relation: syntax.Compare, k: int) -> list[str]:
    """The operands on both sides of operand k as bounds of it: ``<= 1``, ``>= 0``."""
    flipped = {"<=": ">=", ">=": "<="}
    bounds = []
    if k + 1 < len(relation.operands):
        bounds.append(f"{relation.ops[k]} {ctx.text(relation.operands[k + 1].span)}")
    if k > 0:
        bounds.append(f"{flipped[relation.ops[k - 1]]} {ctx.text(relation.operands[k - 1].span)}")
    return bounds


def _is_number(node: syntax.Expr) -> bool:
    """Whether an operand is a number written out, with or without a sign."""
    if isinstance(node, syntax.Unary):
        node = node.arg
    return isinstance(node, syntax.Number)


def _option_values(ctx: Context, node: Constraint) -> dict[str, ir.Expr] | None:
    """``with name = value``: fixed numbers or words; None after an error."""
    option_values: dict[str, ir.Expr] = {}
    for option in node.options:
        value: ir.Expr | None
        if isinstance(option.value, syntax.Name) and option.value.id not in ctx.symbols:
            value = ir.Label(text=option.value.id, span=option.value.span)
        else:
            value = expressions.evaluate(ctx, Scope(), option.value)
        if value is None or not literals.is_fixed(ctx, value):
            return None
        option_values[option.name] = value
    return option_values


# ----------------------------------------------------------------------------------------- notations
def _keys(node: Constraint) -> frozenset[Key]:
    if node.label is None:
        return frozenset()
    return frozenset({("constraint", node.label)})


def _write(writer: TextWriter, node: Constraint) -> None:
    if node.label is not None:
        writer(node.label)
        writer.indexing(node.family)
        writer(": ")
    writer.expression(node.relation)
    if node.options:
        writer(" with ")
        writer.listed(node.options, writer.keyword)


def _python(writer: PythonWriter, node: Constraint, doc: str) -> str:
    relation = writer.family(node.family, lambda: writer.formula(node.relation))
    arguments = [labelled(node.label, relation)]
    if node.options:
        arguments.append(f"using={writer.mapping(node.options)}")
    return writer.method("subject_to", arguments, doc)


def _latex(printer: LatexPrinter, problem: ir.Problem) -> list[Row]:
    return [latex.constraint(printer, family, first=k == 0) for k, family in enumerate(problem.constraints)]


constraint = StatementKind(
    name="constraint",
    order=160,
    node=Constraint,
    forms={"": "label[k in K]: left <= right;"},
    clauses=("WITH",),
    group="problem",
    rules={"constraint": _read, "withs": lambda c, at: distinct(c)},
    announce=_announce,
    check=_check,
    names=no_names,
    keys=_keys,
    write=_write,
    python=_python,
    latex=_latex,
)
