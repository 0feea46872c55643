"""``net s : real[d], int[t] -> real assume smooth;``: torch modules, which ``bind`` brings."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import atom_calls, declarations, expressions, literals
from fccomodel.language.formulas.context import Context, NetSymbol
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared

#: What can be assumed of a net, with the name of its constant, which may be left out; empty without one.
ASSUMPTIONS = {"smooth": "L", "lipschitz": "C", "weakly_convex": "rho", "convex": ""}


@dataclass(frozen=True, kw_only=True)
class NetDecl(syntax.Statement):
    """``net s : real[d], int[t] -> real assume smooth, lipschitz(2);`` where each assumption is a Name or
    a Call; ``net t : real[d] -> real frozen;`` is a net whose weights stay as they are."""

    name: str
    inputs: tuple[syntax.TypeExpr, ...]
    output: syntax.TypeExpr
    frozen: bool = False
    assume: tuple[syntax.Expr, ...] = ()


def _read(c: list, at: Span) -> NetDecl:
    return NetDecl(
        name=declared(c[0]), inputs=c[1], output=c[2], frozen=c[3] is not None, assume=c[4] or (), span=at
    )


def _read_inputs(c: list, at: Span) -> tuple[syntax.TypeExpr, ...]:
    return tuple(c)


def _read_assumptions(c: list, at: Span) -> tuple[syntax.Expr, ...]:
    return tuple(c)


def _check(ctx: Context, node: NetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    inputs = expressions.complete([_input(ctx, end) for end in node.inputs])
    output = _output(ctx, node.output)
    assume = expressions.complete([_assumption(ctx, assumption) for assumption in node.assume])
    taken = node.name in atom_calls.named_atoms()
    if taken:
        declarations.taken(ctx, node.name, span)
    if node.frozen and node.assume:
        ctx.report(errors.declarations.assumption_of_frozen_net(node.name, node.assume[0].span))
        assume = None
    if inputs is None or output is None or assume is None or taken:
        declarations.broken(ctx, node, node.name)
        return
    network = ir.Net(
        name=node.name,
        inputs=tuple(inputs),
        output=output,
        frozen=node.frozen,
        assume=tuple(assume),
        span=span,
    )
    if ctx.declare(NetSymbol(name=node.name, what="a net", span=span, net=network)):
        ctx.nets[node.name] = network


def _input(ctx: Context, end: syntax.TypeExpr) -> ir.NetInput | None:
    """The declaration of one input of a net, or None after an error."""
    if end.name not in ("real", "int"):
        ctx.report(errors.declarations.not_taken_by_nets(ctx.quote(end)))
        return None
    shape = literals.declared_shape(ctx, declarations.HERE, end.shape)
    if shape is None:
        return None
    return ir.NetInput(shape=shape, whole=end.name == "int")


def _output(ctx: Context, end: syntax.TypeExpr) -> ir.Shape | None:
    """The shape of a net's output, or None after an error."""
    if end.name != "real":
        ctx.report(errors.declarations.not_given_by_nets(ctx.quote(end)))
        return None
    return literals.declared_shape(ctx, declarations.HERE, end.shape)


def _assumption(ctx: Context, node: syntax.Expr) -> tuple[str, tuple[float, ...]] | None:
    """An assumption's name and constants, or None after an error."""
    name = ""
    args: tuple[syntax.Expr, ...] = ()
    if isinstance(node, syntax.Name):
        name = node.id
    elif isinstance(node, syntax.Call):
        name, args = node.func, node.args
    if name not in ASSUMPTIONS:
        ctx.report(errors.declarations.unknown_assumption(ctx.quote(node), name, ASSUMPTIONS))
        return None
    allowed = 1 if ASSUMPTIONS[name] else 0
    values = expressions.complete(
        [expressions.number(ctx, declarations.HERE, arg, "a constant") for arg in args]
    )
    if values is None:
        return None
    constants = tuple(value.value for value in values if isinstance(value, ir.Const) and value.value >= 0)
    if len(args) > allowed or len(constants) < len(args):
        ctx.report(errors.declarations.constants_of_assumption(ctx.quote(node), name, allowed))
        return None
    return name, constants


def _write(writer: TextWriter, node: NetDecl) -> None:
    writer("net ", node.name, " : ")
    writer.listed(node.inputs, writer.type)
    writer(" -> ")
    writer.type(node.output)
    if node.frozen:
        writer(" frozen")
    if node.assume:
        writer(" assume ")
        writer.listed(node.assume, writer.expression)


def _python(writer: PythonWriter, node: NetDecl, doc: str) -> str:
    inputs = [writer.type(one) for one in node.inputs]
    arguments = [inputs[0] if len(inputs) == 1 else f"({', '.join(inputs)})", writer.type(node.output)]
    if node.frozen:
        arguments.append("frozen=True")
    if node.assume:
        arguments.append(f"assume={{{', '.join(_python_assumption(writer, a) for a in node.assume)}}}")
    return writer.assigned(node.name, writer.fc("net"), arguments, doc)


def _python_assumption(writer: PythonWriter, node: syntax.Expr) -> str:
    if isinstance(node, syntax.Call):
        args = writer.listed(node.args)
        if len(node.args) != 1:
            args = f"({args})"
        return f"{node.func!r}: {args}"
    if isinstance(node, syntax.Name):
        return f"{node.id!r}: True"
    return ""


net = StatementKind(
    name="net",
    order=90,
    node=NetDecl,
    forms={"net": "net s : real[d], int[d] -> real assume smooth;"},
    elsewhere={"network": "net"},
    token="NET",
    follows="NAME",
    clauses=("ASSUME", "FROZEN"),
    spaced_colon=True,
    rules={"net": _read, "net_inputs": _read_inputs, "assumptions": _read_assumptions},
    check=_check,
    stands_for=lambda node: "frozen net" if node.frozen else "net",
    write=_write,
    python=_python,
)
