"""``set G;``, ``set P = {z in D | z.y == 1};``, ``set N[i in P] = ...;``: sets and families of sets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, domains, families
from fccomodel.language.formulas.context import BinderRange, Context, SetFamilySymbol, SetSymbol
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class SetDecl(syntax.Statement):
    """``set name[family] = value;``; without a value the labels come with the data."""

    name: str
    family: syntax.Indexing | None = None
    value: syntax.Expr | None = None


def _read(c: list, at: Span) -> SetDecl:
    return SetDecl(name=declared(c[0]), family=c[1], value=c[2], span=at)


def _check(ctx: Context, node: SetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    if node.value is None:
        if node.family is not None:
            ctx.report(errors.declarations.family_without_value(node.name, span))
            declarations.broken(ctx, node, node.name)
            return
        labels = ir.LabelSet(name=node.name)
        if ctx.declare(
            SetSymbol(name=node.name, what="a set", span=span, set=labels, base=BinderRange(set=labels))
        ):
            ctx.sets[node.name] = labels
        return
    if node.family is not None:
        _set_family(ctx, node, span)
        return
    domain = domains.domain_of(ctx, declarations.HERE, node.value, "in")
    if domain is None:
        declarations.broken(ctx, node, node.name)
        return
    if isinstance(domain.set, ir.VectorSet | ir.Distribution):
        ctx.report(errors.declarations.set_of_no_elements(ctx.quote(node.value)))
        declarations.broken(ctx, node, node.name)
        return
    if domain.rules:
        if ctx.declare(SetSymbol(name=node.name, what="a set", span=span, set=None, base=domain)):
            ctx.used.discard(node.name)
        return
    is_name = isinstance(node.value, syntax.Name)
    if is_name:
        named = domain.set
    else:
        named = replace(domain.set, name=node.name)
    if ctx.declare(
        SetSymbol(name=node.name, what="a set", span=span, set=named, base=BinderRange(set=named))
    ):
        ctx.sets[node.name] = named


def _set_family(ctx: Context, node: SetDecl, span: Span) -> None:
    """``set N[i in P] = ...;``: the value is read anew for each use."""
    assert node.family is not None and node.value is not None
    head = families.family(ctx, node.family, "a family of sets")
    if head is None:
        declarations.broken(ctx, node, node.name)
        return
    errors_before = len(ctx.errors)
    domain = domains.domain_of(ctx, head.scope, node.value, "in")
    if domain is None or len(ctx.errors) > errors_before:
        declarations.broken(ctx, node, node.name)
        return
    ctx.declare(
        SetFamilySymbol(
            name=node.name,
            what="a family of sets",
            span=span,
            names=tuple(b.name for b in head.binders),
            binders=head.binders,
            value=node.value,
        )
    )


def _write(writer: TextWriter, node: SetDecl) -> None:
    writer("set ", node.name)
    writer.indexing(node.family)
    writer.after(" = ", node.value)


def _python(writer: PythonWriter, node: SetDecl, doc: str) -> str:
    value = node.value
    if value is None:
        return writer.assigned(node.name, writer.fc("labels"), [], doc)

    def code() -> str:
        """The value in Python."""
        if isinstance(value, syntax.SetComprehension):
            return writer.comprehension(value, "where")
        return writer.formula(value)

    return writer.named("set", node.name, writer.family(node.family, code), doc)


set_ = StatementKind(
    name="set",
    order=40,
    node=SetDecl,
    forms={"set": "set P = {z in D | z.y == 1};"},
    token="SET",
    follows="NAME",
    rules={"set": _read},
    check=_check,
    stands_for=lambda node: "set",
    write=_write,
    python=_python,
)
