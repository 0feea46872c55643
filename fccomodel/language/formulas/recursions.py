"""Recursions: families whose members are made of earlier members, ``let x[t in T] = ... x[t - 1] ...``.

The members along the index that counts the steps are written out, each as a quantity of its own that
refers to those before it. So facts hold by induction, and structure, gradient and program are as long
as the recursion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, rewriting, syntax
from fccomodel.language.formulas import arrays, expressions, families, shapes
from fccomodel.language.formulas.context import Context, DimSymbol, LetSymbol, Recursion, Scope

#: Steps of the longest recursion that is written out.
MAX_STEPS = 150
#: Sizes that stand for a dim which counts steps until the data say it: the first that gives enough steps.
ASSUMED_SIZES = (4, 8, 16, 32, 64, 128)
#: Steps that are written out until the data say how many there are, unless there are fewer.
ASSUMED_STEPS = 3


# ------------------------------------------------------------------------------------------ reading
def uses_itself(name: str, value: syntax.Expr) -> syntax.Name | None:
    """A place where a formula mentions the name that it will have, or None.

    The index of a reduction inside may have that name too, which then means the index.
    """
    nodes = list(rewriting.walk(value))
    if any(isinstance(node, syntax.Binder) and node.name == name for node in nodes):
        return None
    mentioned = (node for node in nodes if isinstance(node, syntax.Name))
    return next((node for node in mentioned if node.id == name), None)


def _counter(name: str, value: syntax.Expr, binders: Sequence[ir.Binder]) -> tuple[int, float]:
    """The place of the index that counts the steps, and its shift in the first use; (0, 0) without one."""
    for use in rewriting.walk(value):
        if not isinstance(use, syntax.Index) or not isinstance(use.obj, syntax.Name) or use.obj.id != name:
            continue
        for place, (item, binder) in enumerate(zip(use.items, binders, strict=False)):
            shift = _shift(item, binder.name)
            if shift:
                return place, shift
    return 0, 0


def _shift(item: syntax.Expr, index: str) -> float:
    """The shift c of an index ``t + c``, -c of ``t - c``, and 0 of any other index."""
    match item:
        case syntax.Binary(op="+", left=syntax.Name(id=name), right=syntax.Number(value=shift)):
            return shift if name == index else 0
        case syntax.Binary(op="-", left=syntax.Name(id=name), right=syntax.Number(value=shift)):
            return -shift if name == index else 0
    return 0


# ----------------------------------------------------------------------------------------- checking
def family(
    ctx: Context, name: str, value: syntax.Expr, head: tuple[Scope, tuple[ir.Binder, ...]], span: Span
) -> ir.Let | None:
    """The family of a recursion, whose steps are written out; None after an error.

    head  the scope of its indices, and their binders
    """
    scope, binders = head
    order = _ordered(ctx, name, value, binders, span)
    if order is None:
        return None
    ctx.recursions[name] = order
    was_used = name in ctx.used
    try:
        for number in order.numbers:
            step = _step(ctx, order, value, scope, span)
            if step is None:
                del ctx.recursions[name]
                return None
            order.steps[number] = step
    finally:
        ctx.assumed.clear()
        ctx.symbols.pop(name, None)
        if not was_used:
            ctx.used.discard(name)
    return ir.Let(name=name, binders=order.binders, body=_any_member(order, span), span=span)


def _ordered(
    ctx: Context, name: str, value: syntax.Expr, binders: tuple[ir.Binder, ...], span: Span
) -> Recursion | None:
    """The recursion before its first step, or None after an error."""
    place, shift = _counter(name, value, binders)
    if not shift:
        used = uses_itself(name, value)
        assert used is not None
        ctx.report(errors.recursions.without_order(name, binders[-1].name, used.span))
        return None
    counter = binders[place]
    if not isinstance(counter.domain, ir.ValueSet):
        ctx.report(errors.recursions.not_numbers(name, counter.name, counter.domain.name, counter.span))
        return None
    numbers = shapes.members(counter.domain)
    if numbers is None:
        numbers = _assumed(ctx, counter.domain)
    if not numbers:
        ctx.report(errors.recursions.unknown_length(name, counter.name, counter.domain.name, counter.span))
        return None
    if len(numbers) > MAX_STEPS:
        ctx.report(errors.recursions.too_long(name, len(numbers), MAX_STEPS, counter.span))
        return None
    if shift > 0:
        numbers = numbers[::-1]
    return Recursion(name=name, binders=binders, place=place, numbers=numbers)


def _assumed(ctx: Context, domain: ir.ValueSet) -> tuple[float, ...]:
    """The numbers of a range whose ends are made of dims, as if each dim were one of ``ASSUMED_SIZES``.

    The dims are noted as those that count steps. Empty if the ends are made of anything else.
    """
    ends = [arrays.factors(end) for end in arrays.ends(domain)]
    if len(ends) != 2 or domain.step is not None:
        return ()
    low, high = ends
    if low is None or high is None:
        return ()
    dims = {dim for dim in (*low, *high) if isinstance(dim, str)}
    if not all(isinstance(ctx.symbols.get(dim), DimSymbol) for dim in dims):
        return ()
    for size in ASSUMED_SIZES:
        first, last = _at(low, size), _at(high, size)
        if last - first + 1 >= ASSUMED_STEPS:
            ctx.counting.update(dims)
            ctx.assumed.update(dict.fromkeys(dims, size))
            return tuple(first + step for step in range(int(last - first) + 1))
    return ()


def _at(amounts: Mapping[ir.Dim | None, float], size: int) -> float:
    """The value of a linear formula of dims if each dim is ``size``."""
    return sum(factor if dim is None else factor * size for dim, factor in amounts.items())


def _step(ctx: Context, found: Recursion, value: syntax.Expr, scope: Scope, span: Span) -> ir.Let | None:
    """The quantity of the next step, or its family over the other indices; None after an error.

    The first step says which further indices a recursion of arrays has.
    """
    name, counter, number = found.name, found.counter, found.next_number
    assert number is not None
    unknown = ir.Let(name=name, binders=found.binders, body=ir.Const(value=0.0), span=span)
    ctx.symbols[name] = LetSymbol(name=name, what="a `let`", span=span, let=unknown)
    at = scope.with_local(counter.name, ir.Const(value=number, span=counter.span))
    own = tuple(replace(binder) for binder in found.others if binder.name in scope.locals)
    for binder in own:
        at = at.with_local(binder.name, binder)
    body = arrays.operand(ctx, at, value)
    if body is not None and body.shape:
        axes = arrays.axes_of(ctx, body)
        with arrays.elements(ctx, body, axes, span) as elements:
            own += tuple(element.binder for element in elements)
            body = arrays.entry_of(ctx, body, elements)
    if body is None:
        return None
    body = expressions.as_number(ctx, body, "a `let`")
    if body is None or not families.settled(ctx, body, own, f"`let {name}`", family=True):
        return None
    if not found.steps:
        further = tuple(replace(binder) for binder in own[len(found.others) :])
        found.binders += further
    return ir.Let(name=f"{name}[{number:g}]", binders=own, body=body, span=span)


def _any_member(found: Recursion, span: Span) -> ir.Expr:
    """The member at any indices: an entry of the array of all steps."""
    args = tuple(ir.Element(binder=binder, span=span) for binder in found.others)
    steps = [found.steps[number] for number in sorted(found.numbers)]
    entries = tuple(ir.LetRef(let=step, args=args, span=span) for step in steps)
    if len(entries) == 1:
        return entries[0]
    side = ir.Apply(op="concat", args=entries, shape=(len(entries),), span=span)
    return ir.Item(base=side, indices=(ir.Element(binder=found.counter, span=span),), span=span)
