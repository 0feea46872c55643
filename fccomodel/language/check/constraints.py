"""The objective, the constraints and the options."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.check import functions, index_sets
from fccomodel.language.formulas import expressions, indexing, literals, reductions, shapes, signs
from fccomodel.language.formulas.context import Context, Scope


def objective(ctx: Context, node: syntax.Objective) -> ir.Objective | None:
    """The function that is minimised or maximised: a scalar without anything left to draw."""
    body = expressions.number(ctx, _open(ctx), node.body, "the objective")
    if body is None or not functions.settled(ctx, body, (), "the objective"):
        return None
    if not ir.variables_of(body):
        ctx.report(errors.problem.constant_objective(node.body.span))
    return ir.Objective(sense=node.sense, expr=body, label=node.label, span=node.span)


def _open(ctx: Context) -> Scope:
    ctx.pending = {}
    return reductions.indices_open(ctx, Scope())


def constraint(ctx: Context, node: syntax.Constraint, label: str) -> list[ir.Constraint]:
    """One constraint, or two for ``lo <= e <= hi``."""
    relation = node.relation
    assert isinstance(relation, syntax.Compare)  # and closed: the syntax has no others
    scope, condition = _open(ctx), None
    binders: tuple[ir.Binder, ...] = ()
    if node.family is not None:
        head = index_sets.family(ctx, node.family, "a family of constraints", scope)
        if head is None:
            return []
        scope, binders, condition = head.scope, head.binders, head.condition
    sides = [
        expressions.number(ctx, scope, operand, "a side of a constraint", scalar=False)
        for operand in relation.operands
    ]
    options = _with(ctx, node)
    if any(s is None for s in sides) or options is None:
        return []
    operands, axes = _entries(ctx, scope, [s for s in sides if s is not None], relation)
    if not operands:
        return []
    binders = (*binders, *axes)
    pairs = list(zip(operands, operands[1:], strict=False))
    if relation.ops[0] == ">=":
        pairs = pairs[::-1]
    bodies = [
        _difference(*(pair[::-1] if relation.ops[0] == ">=" else pair), relation.span) for pair in pairs
    ]
    constraints: list[ir.Constraint] = []
    if len(bodies) == 1:
        suffixes = [""]
    else:
        suffixes = [".lower", ".upper"]
    for suffix, body, (left, right) in zip(suffixes, bodies, pairs, strict=True):
        if not _all_settled(ctx, body, binders):
            return []
        free = reductions.needed(body, {b: c for b, c in ctx.pending.items() if b.kind == "in"})
        joint = conjunction([*(ctx.pending[b] for b in free), condition])
        kind = "eq" if relation.ops[0] == "==" else "le"
        one = ir.Constraint(
            label=label + suffix,
            body=body,
            written=(left, relation.ops[0], right),
            kind=kind,
            binders=(*free, *binders),
            condition=joint,
            options=options,
            span=node.span,
        )
        if not _possible(ctx, one, relation):
            return []
        constraints.append(one)
    _lint(ctx, constraints, node, label)
    return constraints


def _entries(
    ctx: Context, scope: Scope, sides: list[ir.Expr], relation: syntax.Compare
) -> tuple[list[ir.Expr], tuple[ir.Binder, ...]]:
    """The sides of a constraint on arrays entry by entry, with an index for each axis; no sides after
    an error."""
    whole = max(sides, key=lambda side: len(side.shape))
    for side in sides:
        if shapes.is_net_parameters(side):
            ctx.report(errors.shapes.not_a_scalar("a side of a constraint", shapes.described(ctx, side)))
            return [], ()
        if side.shape and not shapes.same_shape(ctx, side.shape, whole.shape):
            left, right = sorted((side, whole), key=lambda s: s.span.start)
            ends = shapes.described(ctx, left), shapes.described(ctx, right)
            ctx.report(
                errors.shapes.operands(
                    relation.ops[0], *ends, relation.span, (len(left.shape), len(right.shape))
                )
            )
            return [], ()
    names = (
        name
        for name in (*"ijkl", *(f"i{k}" for k in range(100)))
        if name not in {*ctx.symbols, *scope.locals}
    )
    binders = []
    for dim, name in zip(whole.shape, names, strict=False):
        members = indexing.members(ctx, indexing.axis_of(ctx, dim), relation.span)
        if members is None:
            return [], ()
        binders.append(ir.Binder(name=name, kind="in", domain=members, span=relation.span))
    at = tuple(ir.Element(binder=binder, span=relation.span) for binder in binders)
    entries = [ir.Item(base=side, indices=at, span=side.span) if side.shape else side for side in sides]
    return entries, tuple(binders)


def _all_settled(ctx: Context, body: ir.Expr, binders: tuple[ir.Binder, ...]) -> bool:
    """Draws must be averaged; free ``in`` indices make a family."""
    open_in = tuple(b for b in ctx.pending if b.kind == "in")
    return functions.settled(ctx, body, (*binders, *open_in), "a constraint")


def _difference(left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
    """Left minus right, without a zero."""
    if isinstance(right, ir.Const) and right.value == 0:
        return left
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return ir.Const(value=left.value - right.value, span=span)
    if isinstance(left, ir.Const) and left.value == 0:
        return ir.Apply(op="neg", args=(right,), span=span)
    return ir.Apply(op="sub", args=(left, right), span=span)


def _possible(ctx: Context, one: ir.Constraint, relation: syntax.Compare) -> bool:
    """True, or an error where no point can satisfy a constraint."""
    enclosure = signs.interval(ctx, one.body)
    infeasible = enclosure.positive or (one.kind == "eq" and enclosure.negative)
    if infeasible:
        ctx.report(errors.problem.infeasible(ctx.quote(relation), enclosure, equality=one.kind == "eq"))
    return not infeasible


def _lint(ctx: Context, constraints: list[ir.Constraint], node: syntax.Constraint, label: str) -> None:
    """Remarks: no variable in it; a plain bound on a variable, which a declaration would project on."""
    relation = node.relation
    for one in constraints:
        if not ir.variables_of(one.body):
            ctx.report(errors.problem.constant_constraint(label, relation.span))
            return
    if (bounds := _as_bounds(ctx, node, constraints)) is not None:
        ctx.report(errors.problem.bound_as_constraint(ctx.quote(relation), bounds))


def _as_bounds(ctx: Context, node: syntax.Constraint, constraints: list[ir.Constraint]) -> str | None:
    """``x[K] >= 0, <= 1`` where a constraint bounds a variable, or every entry of one, by constants;
    None elsewhere."""
    relation = node.relation
    assert isinstance(relation, syntax.Compare)
    flipped = {"<=": ">=", ">=": "<="}
    if "==" in relation.ops or any(c.condition is not None for c in constraints):
        return None
    for k, operand in enumerate(relation.operands):
        if isinstance(operand, syntax.Index) and node.family is not None:
            base = operand.obj
        else:
            base = operand
        other_operands = [o for o in relation.operands if o is not operand]
        if (
            not isinstance(base, syntax.Name)
            or base.id not in ctx.variables
            or not all(_is_number(o) for o in other_operands)
        ):
            continue
        shape = ctx.variables[base.id].shape
        if k + 1 < len(relation.operands):
            parts = [f"{relation.ops[k]} {ctx.text(relation.operands[k + 1].span)}"]
        else:
            parts = []
        if k:
            parts += [f"{flipped[relation.ops[k - 1]]} {ctx.text(relation.operands[k - 1].span)}"]
        return base.id + (f"[{', '.join(map(str, shape))}]" if shape else "") + " " + ", ".join(parts)
    return None


def _is_number(node: syntax.Expr) -> bool:
    return isinstance(node, syntax.Number) or (
        isinstance(node, syntax.Unary) and isinstance(node.arg, syntax.Number)
    )


def _with(ctx: Context, node: syntax.Constraint) -> dict[str, ir.Expr] | None:
    """``with name = value``: numbers that are fixed, or words."""
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


def label_of(
    ctx: Context, node: syntax.Constraint, taken: dict[str, Span], number: int, reserved: set[str]
) -> tuple[str, int]:
    """The constraint's label; an unlabelled one is c1, c2, ..., and noted."""
    if node.label is not None:
        span = Span(start=node.span.start, end=node.span.start + len(node.label))
        if node.label in taken:
            ctx.report(errors.names.label_twice(node.label, ctx.line(taken[node.label]), span))
        taken.setdefault(node.label, span)
        return node.label, number
    number += 1
    while f"c{number}" in taken or f"c{number}" in reserved:
        number += 1
    label = f"c{number}"
    taken[label] = node.span
    ctx.report(errors.problem.no_label(ctx.quote(node.relation), label))
    return label, number


# ------------------------------------------------------------------------------------------ options
def options(ctx: Context, node: syntax.Options, into: dict[str, object]) -> None:
    """Dotted names with plain values: numbers, texts, words, true and false."""
    for item in node.items:
        value = _plain(ctx, item.value)
        if value is None:
            ctx.report(errors.declarations.not_an_option(ctx.quote(item.value)))
            continue
        into[item.name] = value


def _plain(ctx: Context, node: syntax.Expr) -> object:
    match node:
        case syntax.Name():
            symbol_value = {"true": True, "false": False}.get(node.id)
            return node.id if symbol_value is None else symbol_value
        case syntax.String():
            return node.value
        case syntax.Number():
            is_whole = node.text.isdigit()
            if is_whole:
                return int(node.text)
            return node.value
        case syntax.Unary(op="-", arg=syntax.Number() as inner):
            value = _plain(ctx, inner)
            return -value if isinstance(value, int | float) else None
        case syntax.SetLiteral():
            values = [_plain(ctx, i) for i in node.items]
            if any(v is None for v in values):
                return None
            return tuple(values)
        case syntax.Call():
            return ctx.text(node.span)
        case syntax.Binary():
            reported = len(ctx.diagnostics)
            value = expressions.evaluate(ctx, Scope(), node)
            del ctx.diagnostics[reported:]
            return value.value if isinstance(value, ir.Const) else None
    return None
