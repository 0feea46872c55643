"""Arrays of affine functions of a conic program's variables, with the linear operations of a tensor.

The evaluator evaluates a model with these arrays instead of tensors. Changes of layout, such as
reshaping and selection, copy references to rows; only sums and products make new rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy import sparse

# The relation of a row to the value that it represents. A row times -1 has minus this relation.
#: The row is the value.
EXACT = 0
#: The row is an upper estimate of a convex function.
OVER = 1
#: The row is a lower estimate of a concave function.
UNDER = -1
#: The row is a sum of upper and lower estimates, on which no condition is allowed.
NEITHER = 2


class NotConic(Exception):
    """The model has no conic program by these rules; the message is the obstacle."""


def number(value: Any) -> np.ndarray:
    """A constant as a float64 array."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(torch.float64).numpy()
    return np.asarray(value, dtype=np.float64)


class Affine:
    """An array of functions ``rows z + const`` of all variables z.

    index        for each entry of the array, its row
    rows, const  a csr matrix (m, n) and an array (m,)
    kind         for each row EXACT, OVER, UNDER or NEITHER
    """

    __array_ufunc__ = None

    def __init__(self, rows: sparse.csr_matrix, const: np.ndarray, kind: np.ndarray, index: np.ndarray):
        self.rows, self.const, self.kind, self.index = rows, const, kind, index

    # --------------------------------------------------------------------------------------- layout
    @property
    def shape(self) -> torch.Size:
        """The shape of the array."""
        return torch.Size(self.index.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.index.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self.index.ndim

    def numel(self) -> int:
        """The number of entries."""
        return self.index.size

    def __len__(self) -> int:
        return len(self.index)

    def size(self, dim: int) -> int:
        """The length of a dimension."""
        return self.index.shape[dim]

    def laid(self, index: np.ndarray) -> Affine:
        """An array with the same rows and another index."""
        return Affine(self.rows, self.const, self.kind, index)

    def reshape(self, *shape: Any) -> Affine:
        """The entries in another shape."""
        return self.laid(self.index.reshape(_sizes(shape)))

    def flatten(self, start: int = 0, end: int = -1) -> Affine:
        """The dimensions from ``start`` to ``end`` merged into one."""
        shape = self.index.shape
        first = start % self.ndim
        after = end % self.ndim + 1
        merged = math.prod(shape[first:after])
        return self.reshape((*shape[:first], merged, *shape[after:]))

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Affine:
        """One dimension split into several."""
        dim %= self.ndim
        before, after = self.index.shape[:dim], self.index.shape[dim + 1 :]
        return self.reshape((*before, *sizes, *after))

    def expand(self, *shape: Any) -> Affine:
        """The array repeated along dimensions of length 1 (-1: keep the length)."""
        sizes = list(_sizes(shape))
        old = (1,) * (len(sizes) - self.ndim) + self.index.shape
        for dim, size in enumerate(sizes):
            if size == -1:
                sizes[dim] = old[dim]
        return self.laid(np.broadcast_to(self.index, sizes))

    def expand_as(self, other: Any) -> Affine:
        """The array expanded to the shape of another."""
        return self.expand(tuple(other.shape))

    def unsqueeze(self, dim: int) -> Affine:
        """The array with a new dimension of length 1."""
        return self.laid(np.expand_dims(self.index, dim))

    def squeeze(self, dim: int) -> Affine:
        """The array without a dimension, if its length is 1."""
        if self.index.shape[dim] == 1:
            return self.laid(self.index.squeeze(dim))
        return self

    def permute(self, *dims: Any) -> Affine:
        """The dimensions in another order."""
        return self.laid(self.index.transpose(_sizes(dims)))

    def movedim(self, source: int, destination: int) -> Affine:
        """One dimension moved to another place."""
        return self.laid(np.moveaxis(self.index, source, destination))

    def diagonal(self, *, dim1: int, dim2: int) -> Affine:
        """The diagonals of square matrices in the last two dimensions."""
        at = torch.arange(self.shape[-1])
        return self[..., at, at]

    @property
    def mT(self) -> Affine:
        """The last two dimensions exchanged."""
        return self.laid(np.swapaxes(self.index, -1, -2))

    def __getitem__(self, key: Any) -> Affine:
        if not isinstance(key, tuple):
            key = (key,)
        keys = list(key)
        for k, part in enumerate(keys):
            if isinstance(part, torch.Tensor):
                keys[k] = part.numpy()
        return self.laid(self.index[tuple(keys)])

    def select(self, dim: int, at: int) -> Affine:
        """One slice along a dimension."""
        return self.laid(self.index.take(at, dim))

    def narrow(self, dim: int, start: int, length: int) -> Affine:
        """``length`` slices along a dimension."""
        return self.laid(self.index.take(np.arange(start, start + length), dim))

    def index_select(self, dim: int, at: torch.Tensor) -> Affine:
        """The slices at these places along a dimension."""
        return self.laid(self.index.take(at.numpy(), dim))

    def to(self, *_: Any, **__: Any) -> Affine:
        """The array itself: rows have no type or device."""
        return self

    def new_zeros(self, *shape: Any) -> torch.Tensor:
        """A constant array of zeros."""
        return torch.zeros(_sizes(shape), dtype=torch.float64)

    # -------------------------------------------------------------------------------------- entries
    def entries(self) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
        """Rows, constants and kinds of every entry in order."""
        at = self.index.ravel()
        in_order = np.arange(len(at))
        if len(at) == len(self.const) and (at == in_order).all():
            return self.rows, self.const, self.kind
        return self.rows[at], self.const[at], self.kind[at]

    def upper(self) -> Affine:
        """The array with all rows marked as upper estimates."""
        return Affine(self.rows, self.const, np.full_like(self.kind, OVER), self.index)

    def lower(self) -> Affine:
        """The array with all rows marked as lower estimates."""
        return Affine(self.rows, self.const, np.full_like(self.kind, UNDER), self.index)

    @property
    def exact(self) -> bool:
        """Whether no entry is an estimate."""
        return not self.kind[self.index].any()

    # ----------------------------------------------------------------------------------- arithmetic
    def __neg__(self) -> Affine:
        return self * -1.0

    def __add__(self, other: Any) -> Affine:
        if not isinstance(other, Affine):
            return self._plus_numbers(number(other))
        shape = np.broadcast_shapes(self.index.shape, other.index.shape)
        rows, const, kind = self.laid(np.broadcast_to(self.index, shape)).entries()
        other_rows, other_const, other_kind = other.laid(np.broadcast_to(other.index, shape)).entries()
        rows, other_rows = level(rows, other_rows)
        return _fresh(rows + other_rows, const + other_const, _mixed(kind, other_kind), shape)

    def _plus_numbers(self, values: np.ndarray) -> Affine:
        """The sum with constants; one constant keeps the rows."""
        if values.size == 1:
            shape = np.broadcast_shapes(self.index.shape, values.shape)
            const = self.const + values.reshape(())
            return Affine(self.rows, const, self.kind, np.broadcast_to(self.index, shape))
        left, right = _spread(self, values)
        rows, const, kind = left.entries()
        return _fresh(rows, const + right.ravel(), kind, left.index.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Affine:
        return self + -other

    def __rsub__(self, other: Any) -> Affine:
        return -self + other

    def __mul__(self, other: Any) -> Affine:
        if isinstance(other, Affine):
            raise NotConic("a product of two functions of the variables")
        values = number(other)
        if values.size == 1:
            factor = float(values.reshape(()))
            shape = np.broadcast_shapes(self.index.shape, values.shape)
            index = np.broadcast_to(self.index, shape)
            kind = _turned(self.kind, np.sign(factor))
            return Affine(self.rows * factor, self.const * factor, kind, index)
        left, right = _spread(self, values)
        factors = right.ravel()
        rows, const, kind = left.entries()
        kind = _turned(kind, np.sign(factors))
        return _fresh(sparse.diags_array(factors) @ rows, const * factors, kind, left.index.shape)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Affine:
        if isinstance(other, Affine):
            raise NotConic("a quotient of two functions of the variables")
        divisor = number(other)
        if not divisor.all():
            raise NotConic("a division by zero")
        return self * (1 / divisor)

    def __rtruediv__(self, other: Any) -> Affine:
        raise NotConic("a quotient by a function of the variables")

    def sum(self, dim: Any = None, keepdim: bool = False) -> Affine:
        """Sums along one or several dimensions, or over all."""
        if dim is None:
            dim = tuple(range(self.ndim))
        elif not isinstance(dim, tuple):
            dim = (dim,)
        dims = [d % self.ndim for d in dim]
        shape = list(self.index.shape)
        for d in dims:
            shape[d] = 1
        count = math.prod(shape)
        places = np.broadcast_to(np.arange(count).reshape(shape), self.index.shape)
        sums = self.gathered(places.ravel(), count)
        if not keepdim:
            shape = [n for d, n in enumerate(shape) if d not in dims]
        return sums.reshape(shape)

    def mean(self, dim: Any = None) -> Affine:
        """Means along one or several dimensions, or over all."""
        total = self.sum(dim)
        return total * (total.numel() / self.numel())

    def gathered(self, places: np.ndarray, count: int) -> Affine:
        """``count`` sums of entries; ``places`` has the number of its sum for every entry in order."""
        at = self.index.ravel()
        ones = np.ones(len(at))
        entries_before = len(self.const)
        sums = sparse.csr_matrix((ones, (places, at)), shape=(count, entries_before))
        has_over = sums @ (self.kind == OVER) > 0
        has_under = sums @ (self.kind == UNDER) > 0
        has_neither = sums @ (self.kind == NEITHER) > 0
        kind = np.full(count, EXACT, dtype=np.int8)
        kind[has_under] = UNDER
        kind[has_over] = OVER
        kind[has_neither | (has_over & has_under)] = NEITHER
        return _fresh(sums @ self.rows, sums @ self.const, kind, (count,))

    def transformed(self, matrix: Any) -> Affine:
        """The products (m, k) of each row of an exact array (m, n) with a sparse matrix (k, n)."""
        rows, const, _ = self.entries()
        count = self.shape[0]
        whole = sparse.csr_matrix(sparse.kron(sparse.eye_array(count), matrix))
        exact = np.full(whole.shape[0], EXACT, dtype=np.int8)
        return _fresh(whole @ rows, whole @ const, exact, (count, matrix.shape[0]))

    def __matmul__(self, other: Any) -> Affine:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Affine:
        return _product(other, self)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        handler = _OPERATIONS.get(func.__name__)
        if handler is None:
            raise NotConic(f"`{func.__name__}` of a function of the variables")
        return handler(*args, **(kwargs or {}))


def level(a: sparse.csr_matrix, b: sparse.csr_matrix) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Two matrices, both with the number of columns of the wider one."""
    columns = max(a.shape[1], b.shape[1])
    return widened(a, columns), widened(b, columns)


def widened(rows: sparse.csr_matrix, columns: int) -> sparse.csr_matrix:
    """The matrix with one column for each variable that exists by now."""
    if rows.shape[1] == columns:
        return rows
    shape = (rows.shape[0], columns)
    return sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=shape)


def stacked(parts: Sequence[Affine]) -> Affine:
    """Arrays of one shape, side by side along a new last dimension."""
    shape = np.broadcast_shapes(*(part.index.shape for part in parts))

    def stack(indices: list[np.ndarray]) -> np.ndarray:
        """The indices in their common shape, stacked."""
        return np.stack([np.broadcast_to(index, shape) for index in indices], -1)

    return _united(parts, stack)


def constant(values: np.ndarray) -> Affine:
    """Numbers as functions that use no variable."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    rows = sparse.csr_matrix((len(flat), 0), dtype=np.float64)
    exact = np.zeros(len(flat), dtype=np.int8)
    return _fresh(rows, flat, exact, np.shape(values))


def joined(parts: Sequence[Any], dim: int = 0) -> Affine:
    """Arrays one after the other along a dimension."""
    arrays = [part if isinstance(part, Affine) else constant(number(part)) for part in parts]
    return _united(arrays, lambda places: np.concatenate(places, dim))


def _united(parts: Sequence[Affine], laid: Callable[[list[np.ndarray]], np.ndarray]) -> Affine:
    """Arrays joined into one; ``laid`` joins their indices.

    Rows that several arrays share are stored once.
    """
    starts: dict[tuple[int, int, int], int] = {}
    different: list[Affine] = []
    count = 0
    indices = []
    for part in parts:
        key = (id(part.rows), id(part.const), id(part.kind))
        if key not in starts:
            different.append(part)
            starts[key] = count
            count += len(part.const)
        indices.append(part.index + starts[key])
    columns = max(part.rows.shape[1] for part in parts)
    rows = sparse.vstack([widened(part.rows, columns) for part in different], format="csr")
    const = np.concatenate([part.const for part in different])
    kind = np.concatenate([part.kind for part in different])
    return Affine(rows, const, kind, laid(indices))


def _fresh(rows: sparse.csr_matrix, const: np.ndarray, kind: np.ndarray, shape: Sequence[int]) -> Affine:
    """An array of this shape with a row for each entry, in order."""
    index = np.arange(len(const)).reshape(shape)
    return Affine(sparse.csr_matrix(rows), const, kind, index)


def _mixed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The kinds of sums of two rows of these kinds."""
    mixed = np.where((other == EXACT) | (one == other), one, NEITHER)
    return np.where(one == EXACT, other, mixed).astype(np.int8)


def _sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that are given one by one or as one sequence."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        return tuple(shape[0])
    return tuple(shape)


def _spread(left: Affine, right: np.ndarray) -> tuple[Affine, np.ndarray]:
    """Both arrays in their common shape."""
    shape = np.broadcast_shapes(left.index.shape, right.shape)
    spread_left = left.laid(np.broadcast_to(left.index, shape))
    return spread_left, np.broadcast_to(right, shape)


def _turned(kind: np.ndarray, sign: Any) -> np.ndarray:
    """The kinds of rows that are multiplied by numbers of these signs."""
    neither = np.abs(sign) * NEITHER
    return np.where(kind == NEITHER, neither, kind * sign).astype(np.int8)


def _product(left: Any, right: Any) -> Affine:
    """A matrix product with one constant factor, on either side."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        raise NotConic("a product of two functions of the variables")
    if isinstance(right, Affine) and right.ndim == 1 and left.dim() == 2 and right.exact:
        return _matrix_times(number(left), right)
    first = left
    if left.dim() == 1:
        first = left.unsqueeze(0)
    second = right
    if right.dim() == 1:
        second = right.unsqueeze(-1)
    product = (first.unsqueeze(-1) * second.unsqueeze(-3)).sum(-2)
    if left.dim() == 1:
        product = product.squeeze(-2)
    if right.dim() == 1:
        return product.squeeze(-1)
    return product


def _matrix_times(matrix: np.ndarray, vector: Affine) -> Affine:
    """A constant matrix times an exact vector."""
    count, width = matrix.shape
    places = np.repeat(np.arange(count), width)
    rows_of_vector = np.tile(vector.index, count)
    shape = (count, len(vector.const))
    weights = sparse.csr_matrix((matrix.ravel(), (places, rows_of_vector)), shape)
    weights.eliminate_zeros()
    exact = np.full(count, EXACT, dtype=np.int8)
    return _fresh(weights @ vector.rows, weights @ vector.const, exact, (count,))


def _index_add(zero: torch.Tensor, dim: int, at: torch.Tensor, part: Affine) -> Affine:
    """Sums of slices along a dimension, by place."""
    indices_first = part.movedim(dim, 0)
    shape = (zero.shape[dim], *indices_first.shape[1:])
    width = math.prod(shape[1:])
    first = at.numpy() * width
    places = (first[:, None] + np.arange(width)[None, :]).ravel()
    sums = indices_first.gathered(places, math.prod(shape))
    return sums.reshape(shape).movedim(0, dim)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b if isinstance(a, Affine) else b + a,
    "sub": lambda a, b: a - b if isinstance(a, Affine) else b.__rsub__(a),
    "rsub": lambda a, b: b - a if isinstance(b, Affine) else a.__rsub__(b),
    "mul": lambda a, b: a * b if isinstance(a, Affine) else b * a,
    "div": lambda a, b: a / b if isinstance(a, Affine) else b.__rtruediv__(a),
    "matmul": _product,
    "linalg_vecdot": lambda a, b: (a * b if isinstance(a, Affine) else b * a).sum(-1),
    "cat": lambda parts, dim=0: joined(parts, dim),
    "index_add": _index_add,
    "diag_embed": lambda a: a.unsqueeze(-1) * torch.eye(a.shape[-1], dtype=torch.float64),
    "broadcast_to": lambda a, shape: a.expand(tuple(shape)),
}
_OPERATIONS |= {f"__{name}__": _OPERATIONS[name] for name in ("add", "sub", "mul", "matmul")}
_OPERATIONS |= {f"__r{name}__": _OPERATIONS[name] for name in ("add", "mul")}
_OPERATIONS |= {"__rsub__": _OPERATIONS["rsub"], "__truediv__": _OPERATIONS["div"]}
