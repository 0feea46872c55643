"""Maxima of maxima as one maximum: the terms of an inner maximum take its place.

max(0, max_k t_k) is the largest of 0 and all t_k, so its subgradients are weighted means of those of
the t_k. A maximum absorbs an inner maximum if it is a nondecreasing affine function of it; a minimum
absorbs minima in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation.interpret import Evaluator, ranging
from fccomodel.evaluation.interpret.spaces import Listing, Product
from fccomodel.evaluation.sets.axes import Env, Named, align
from fccomodel.library import atoms, reductions

Pieces = tuple[tuple[float, float], ...]


def of(node: ir.Expr, sign: float) -> bool:
    """Whether the node is the maximum (``sign`` -1: minimum) of its arguments or elements, or a
    maximum of affine functions of a number."""
    if isinstance(node, ir.Reduce):
        kind = reductions.of(node)
        over_vectors = any(isinstance(binder.domain, ir.VectorSet) for binder in node.binders)
        return kind.extreme and kind.sign == sign and not over_vectors
    if not isinstance(node, ir.Apply):
        return False
    atom = atoms.of(node)
    if not isinstance(atom, atoms.ScalarAtom):
        return False
    return atom.extreme == sign or sign > 0 and len(_typical(atom)) > 1


def nested(node: ir.Expr, sign: float) -> bool:
    """Whether the node is a maximum of numbers that absorbs an inner maximum."""
    return of(node, sign) and not node.shape and any(_listed(child, sign) for child in absorbed(node))


def absorbed(node: ir.Expr) -> tuple[ir.Expr, ...]:
    """The arguments that this maximum can absorb."""
    if isinstance(node, ir.Reduce):
        return (node.body,)
    atom = atoms.of(node)
    if not isinstance(node, ir.Apply) or not isinstance(atom, atoms.ScalarAtom):
        return ()
    if atom.extreme:
        return node.args
    rises = all(slope >= 0 for slope, _ in _typical(atom)) and not any(
        ir.free_binders(arg) for arg in node.args[1:]
    )
    if rises:
        return node.args[:1]
    return ()


def leaves(node: ir.Expr, sign: float) -> Iterator[ir.Expr]:
    """The expressions that the terms are, or are affine functions of."""
    if not _listed(node, sign):
        yield node
    elif summed := _summed(node):
        for factor, part in summed:
            yield from leaves(part, sign * factor)
    elif inside := absorbed(node):
        for child in inside:
            yield from leaves(child, sign)
    else:
        yield node.children[0]


def signed(node: ir.Expr, sign: float) -> bool:
    """Whether some term is a decreasing function of a leaf."""
    if not _listed(node, sign):
        return False
    if summed := _summed(node):
        falls = any(factor < 0 and ir.variables_of(part) for factor, part in summed)
        return falls or any(signed(part, sign * factor) for factor, part in summed)
    atom = atoms.of(node)
    falls = isinstance(atom, atoms.ScalarAtom) and any(slope < 0 for slope, _ in _typical(atom))
    return falls or any(signed(child, sign) for child in absorbed(node))


def terms(evaluator: Evaluator, node: ir.Expr, env: Env, *, sign: float, most: int) -> Named | None:
    """The terms along a last dim, or None if they are more than ``most`` or of an unknown form."""
    if not _listed(node, sign):
        value = evaluator.value(node, env)
        return Named(value.data.unsqueeze(-1), value.axes)
    if isinstance(node, ir.Reduce):
        return _elements(evaluator, node, env, sign, most)
    if summed := _summed(node):
        parts = [
            (factor, terms(evaluator, part, env, sign=sign * factor, most=most)) for factor, part in summed
        ]
        return _sums([(factor, part) for factor, part in parts if part is not None], len(parts), most)
    assert isinstance(node, ir.Apply)
    atom = atoms.of(node)
    assert isinstance(atom, atoms.ScalarAtom)
    if not atom.extreme:
        return _pieces(evaluator, node, atom, env, sign, most)
    among = [terms(evaluator, arg, env, sign=sign, most=most) for arg in node.args]
    if any(part is None for part in among):
        return None
    return _side_by_side([part for part in among if part is not None])


def _listed(node: ir.Expr, sign: float) -> bool:
    """Whether the node is a maximum, or a sum that contains one."""
    if node.shape:
        return False
    return of(node, sign) or any(_listed(part, sign * factor) for factor, part in _summed(node))


def _summed(node: ir.Expr) -> tuple[tuple[float, ir.Expr], ...]:
    """The parts of a sum or a difference of numbers, with their signs; none for other nodes."""
    return tuple((float(sign), part) for sign, part in atoms.signed(node) or ())


def _sums(parts: list[tuple[float, Named]], wanted: int, most: int) -> Named | None:
    """Every sum of one term from each part, or None if a part is missing or they are more than ``most``."""
    if len(parts) < wanted:
        return None
    combinations = math.prod(part.data.shape[-1] for _, part in parts)
    if combinations * max(part.data.numel() for _, part in parts) > most:
        return None
    factor, total = parts[0]
    total = Named(factor * total.data, total.axes)
    for factor, part in parts[1:]:
        (left, right), axes = align([total, part], entrywise=False)
        both = left.unsqueeze(-1) + factor * right.unsqueeze(-2)
        total = Named(both.flatten(-2), axes)
    return total


def _typical(atom: atoms.ScalarAtom) -> Pieces:
    """The affine pieces (slope, shift) of a maximum at typical parameters; none for other atoms."""
    if atom.variadic:
        return ()
    return atom.affine_pieces(*atom.typical)


def _pieces(
    evaluator: Evaluator, node: ir.Apply, atom: atoms.ScalarAtom, env: Env, sign: float, most: int
) -> Named | None:
    """The affine functions of an argument's terms. A constant term counts as one."""
    if any(ir.free_binders(arg) for arg in node.args[1:]):
        return None
    if absorbed(node):
        argument = terms(evaluator, node.args[0], env, sign=sign, most=most)
        if argument is None:
            return None
        data = argument.data
    else:
        argument = evaluator.value(node.args[0], env)
        data = argument.data.unsqueeze(-1)
    pieces = atom.affine_pieces(*(float(evaluator.value(arg, {}).data) for arg in node.args[1:]))
    parts = [
        slope * data + shift if slope else torch.full_like(data[..., :1], shift) for slope, shift in pieces
    ]
    return Named(torch.cat(parts, -1), argument.axes)


def _elements(evaluator: Evaluator, node: ir.Reduce, env: Env, sign: float, most: int) -> Named | None:
    """The elements of a reduction along a last dim.

    If each cell has a list of its own, shorter lists repeat their first element.
    """
    space, inner = ranging.space(evaluator, node, env)
    if isinstance(space, Listing):
        if space.over or _listed(node.body, sign):
            return None
        return _runs(evaluator, node, space, inner, most)
    if not isinstance(space, Product) or math.prod(space.lengths.values()) > most:
        return None
    evaluator.not_empty(node, space, space.count, inner)
    body = terms(evaluator, node.body, inner, sign=sign, most=most)
    if body is None:
        return None
    full = space.full(body)
    order = sorted(range(len(space.axes)), key=lambda k: space.axes[k] in space.over)
    ordered = full.permute((*order, len(order)))
    return Named(ordered.reshape((*space.shape, -1)), space.kept)


def _runs(evaluator: Evaluator, node: ir.Reduce, space: Listing, inner: Env, most: int) -> Named | None:
    """The elements of each cell's list, the shorter ones filled up with their first element."""
    if math.prod(space.lengths[axis] for axis in space.kept) * space.total_size > most:
        return None
    block = space.whole()
    cell, count = block.cell.numpy(), np.bincount(block.cell.numpy(), minlength=space.entries)
    evaluator.not_empty(node, space, torch.from_numpy(count).to(torch.float64), inner)
    longest = int(count.max(initial=0))
    if math.prod(space.shape) * longest > most:
        return None
    value = evaluator.in_block(node.body, inner, evaluator.leaves(node.body, space, inner)[0], block)
    full, order = block.full(value), np.argsort(cell, kind="stable")
    rank = np.arange(longest)[None]
    first = np.cumsum(count) - count
    within = np.where(rank < count[:, None], rank, 0)
    places = order[first[:, None] + within]
    return space.finish(full[..., torch.from_numpy(places)])


def _side_by_side(parts: list[Named]) -> Named:
    """The terms of all parts along one last dim."""
    tensors, axes = align(parts, entrywise=False)
    shape = torch.broadcast_shapes(*(tensor.shape[:-1] for tensor in tensors))
    expanded = [tensor.expand(*shape, tensor.shape[-1]) for tensor in tensors]
    return Named(torch.cat(expanded, -1), axes)
