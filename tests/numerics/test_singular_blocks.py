"""Decompositions by blocks are those of the whole matrix."""

import numpy as np
import pytest

from fccomodel.numerics.singular_blocks import row_space, singular_blocks


def chained(size: int, cut: int) -> np.ndarray:
    """Differences of neighbours among ``size`` entries without every ``cut``-th, shuffled, one row twice."""
    rows = [np.eye(size)[k + 1] - np.eye(size)[k] for k in range(size - 1) if k % cut]
    random = np.random.default_rng(0)
    return np.stack([*rows, 3 * rows[5]])[random.permutation(len(rows) + 1)][:, random.permutation(size)]


def test_the_blocks_have_all_singular_values_and_make_up_the_matrix():
    matrix = chained(120, 7)
    blocks = singular_blocks(matrix)
    assert len(blocks) > 10
    values = np.sort(np.concatenate([block.values for block in blocks]))[::-1]
    assert values == pytest.approx(np.linalg.svd(matrix, compute_uv=False)[: len(values)], abs=1e-12)
    whole = np.zeros_like(matrix)
    for block in blocks:
        whole[np.ix_(block.rows, block.columns)] = block.left * block.values @ block.right
    assert whole == pytest.approx(matrix, abs=1e-12)


def test_the_row_space_is_that_of_the_whole_matrix():
    matrix = chained(120, 7)
    basis = row_space(matrix, 1e-10)
    _, values, right = np.linalg.svd(matrix, full_matrices=False)
    plain = right[values > 1e-10 * values[0]]
    assert basis @ basis.T == pytest.approx(np.eye(len(plain)), abs=1e-12)
    assert basis.T @ basis == pytest.approx(plain.T @ plain, abs=1e-12)


def test_a_row_of_zeros_is_a_block_of_its_own():
    matrix = np.vstack([chained(120, 7), np.zeros(120)])
    assert [len(block.values) for block in singular_blocks(matrix) if len(matrix) - 1 in block.rows] == [0]
