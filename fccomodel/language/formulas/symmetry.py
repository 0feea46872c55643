"""Whether a matrix is symmetric whatever the data are."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.language.formulas.context import Context
from fccomodel.library import sets

#: Operations whose value is symmetric if each operand that is a matrix is.
KEEPS = ("add", "sub", "neg", "mul", "div", "inverse", "transpose")


def is_symmetric(ctx: Context, value: ir.Expr) -> bool:
    """Whether a square matrix is proved to be symmetric: by its declaration, or by how it is written."""
    match value:
        case ir.Const():
            return True
        case ir.Var():
            return _declared_symmetric(ctx, value)
        case ir.Param():
            return value.name in ctx.arrays and ctx.arrays[value.name].type.definite
        case ir.Apply(op="diagonal"):
            return True
        case ir.Apply(op="outer", args=(left, right)):
            return ir.same(left, right)
        case ir.Apply(op="add", args=(left, right)) if _transposes(left, right):
            return True
        case ir.Apply(op="matmul", args=(left, right)):
            return _congruence(ctx, left, right)
        case ir.Apply() if value.op in KEEPS:
            matrices = [argument for argument in value.args if argument.shape]
            entrywise = value.op in ("mul", "div") and len(matrices) > 1
            return not entrywise and all(is_symmetric(ctx, matrix) for matrix in matrices)
        case ir.Reduce(kind="sum" | "mean" | "E"):
            return is_symmetric(ctx, value.body)
        case ir.LetRef():
            return is_symmetric(ctx, value.let.body)
    return False


def _declared_symmetric(ctx: Context, variable: ir.Var) -> bool:
    """Whether one of a variable's sets has only symmetric matrices."""
    declared = ctx.variables.get(variable.name)
    if declared is None:
        return False
    families = sets.all()
    return any(families[domain.family].symmetric for domain in declared.sets)


def _transposes(left: ir.Expr, right: ir.Expr) -> bool:
    """Whether one matrix is the other one transposed."""
    return _is_transposed(left, right) or _is_transposed(right, left)


def _is_transposed(one: ir.Expr, other: ir.Expr) -> bool:
    return isinstance(one, ir.Apply) and one.op == "transpose" and ir.same(one.args[0], other)


def _congruence(ctx: Context, left: ir.Expr, right: ir.Expr) -> bool:
    """Whether a product is ``A @ transpose(A)``, or ``A @ M @ transpose(A)`` of a symmetric M."""
    if _transposes(left, right):
        return True
    if isinstance(left, ir.Apply) and left.op == "matmul":
        outside, inside = left.args
        return _transposes(outside, right) and is_symmetric(ctx, inside)
    return False
