"""Singular value decompositions of matrices that fall apart into blocks without common rows and columns.

The decomposition of such a matrix is that of its blocks. Gradients of constraints on few variables
each, as of neighbours in a chain, have many small blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
#: Rows or columns up to which a matrix is taken as one block.
ONE_BLOCK_SIZE = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class SingularBlock:
    """The decomposition of one block: the matrix at its rows and columns is ``left * values @ right``.

    rows, columns  numbers of the block's rows and columns in the matrix
    values         singular values, the largest first
    """

    rows: Array
    columns: Array
    left: Array
    values: Array
    right: Array


def singular_blocks(matrix: Array) -> list[SingularBlock]:
    """The decompositions of all blocks; a row of zeros is a block without columns."""
    decomposed = []
    for rows, columns in _blocks(matrix):
        part = matrix[np.ix_(rows, columns)]
        left, values, right = np.linalg.svd(part, full_matrices=False)
        block = SingularBlock(rows=rows, columns=columns, left=left, values=values, right=right)
        decomposed.append(block)
    return decomposed


def row_space(matrix: Array, tolerance: float) -> Array:
    """An orthonormal basis of the space of the rows, by row.

    ``tolerance`` is the singular value, relative to the largest, up to which one counts as 0.
    """
    blocks = singular_blocks(matrix)
    largest = max((block.values.max(initial=1e-300) for block in blocks), default=1e-300)
    kept = [block.values > tolerance * largest for block in blocks]
    basis = np.zeros((sum(int(some.sum()) for some in kept), matrix.shape[1]))
    first = 0
    for block, some in zip(blocks, kept, strict=True):
        last = first + int(some.sum())
        basis[first:last, block.columns] = block.right[some]
        first = last
    return basis


def _blocks(matrix: Array) -> Iterator[tuple[Array, Array]]:
    """The numbers of the rows and columns of each block."""
    rows, columns = matrix.shape
    if min(rows, columns) <= ONE_BLOCK_SIZE:
        yield np.arange(rows), np.arange(columns)
        return
    from scipy import sparse
    from scipy.sparse import csgraph

    entries = sparse.coo_array(matrix)
    places = (entries.row, entries.col + rows)
    size = rows + columns
    graph = sparse.coo_array((np.ones(entries.nnz), places), shape=(size, size))
    count, labels = csgraph.connected_components(graph, directed=False)
    of_rows = _by_label(labels[:rows], count)
    of_columns = _by_label(labels[rows:], count)
    for some_rows, some_columns in zip(of_rows, of_columns, strict=True):
        if len(some_rows):
            yield some_rows, some_columns


def _by_label(labels: Array, count: int) -> list[Array]:
    """The places of each label, for labels from 0 to ``count`` - 1."""
    ordered = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=count))[:-1]
    return np.split(ordered, ends)
