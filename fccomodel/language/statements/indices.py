"""``index i in P, j ~ N;``: declared indices, which stand as subscripts: ``mean_i``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, domains, reductions
from fccomodel.language.formulas.context import BrokenSymbol, Context, IndexSymbol
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter, keyword_argument
from fccomodel.language.statements import StatementKind


@dataclass(frozen=True, kw_only=True)
class IndexDecl(syntax.Statement):
    """``index i in P, j ~ N;``."""

    binders: tuple[syntax.Binder, ...]


def _read(c: list, at: Span) -> IndexDecl:
    return IndexDecl(binders=tuple(c), span=at)


def _check(ctx: Context, node: IndexDecl) -> None:
    for binder in node.binders:
        scope = reductions.indices_open(ctx, declarations.HERE, pending={})
        domain = domains.domain_of(ctx, scope, binder.domain, binder.kind)
        span = Span(start=binder.span.start, end=binder.span.start + len(binder.name))
        if domain is None:
            ctx.declare(BrokenSymbol(name=binder.name, what="an index", span=span))
            continue
        if isinstance(domain.set, ir.VectorSet) or binder.weight is not None:
            if binder.weight is not None:
                ctx.report(errors.reductions.weight_without_reduction(ctx.quote(binder)))
            else:
                ctx.report(errors.sets.index_over_vectors(ctx.quote(binder.domain)))
            ctx.declare(BrokenSymbol(name=binder.name, what="an index", span=span))
            continue
        ctx.declare(IndexSymbol(name=binder.name, what="an index", span=span, binder=binder))


def _names(node: IndexDecl) -> tuple[str, ...]:
    return tuple(binder.name for binder in node.binders)


def _without(node: IndexDecl, names: list[str]) -> IndexDecl | None:
    if not names:
        return None
    return replace(node, binders=tuple(binder for binder in node.binders if binder.name in names))


def _write(writer: TextWriter, node: IndexDecl) -> None:
    writer("index ")
    writer.listed(node.binders, writer.binder)


def _python(writer: PythonWriter, node: IndexDecl, doc: str) -> str:
    domains = [_domain(writer, binder) for binder in node.binders]
    if len(node.binders) == 1:
        return writer.assigned(node.binders[0].name, writer.fc("index"), domains, doc)
    named = [
        keyword_argument(binder.name, domain) for binder, domain in zip(node.binders, domains, strict=True)
    ]
    return writer.method("index", named, doc)


def _domain(writer: PythonWriter, binder: syntax.Binder) -> str:
    domain = writer.formula(binder.domain)
    if binder.kind == "in":
        return domain
    return f"{writer.fc('draw')}({domain})"


index = StatementKind(
    name="index",
    order=50,
    node=IndexDecl,
    forms={"index": "index i in P, j ~ N;"},
    token="INDEX",
    follows="NAME",
    rules={"index": _read},
    check=_check,
    names=_names,
    without=_without,
    stands_for=lambda node: "index",
    write=_write,
    python=_python,
)
