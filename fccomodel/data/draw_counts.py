"""The number of draws that represent a distribution in a pass over all elements."""

from __future__ import annotations

MOST_NUMBERS = 1 << 26  # numbers that one sample, or one product with a sample, may hold
FEWEST_JOINT = 8  # draws at least for each element drawn together with others
FEWEST_ALONE = 256  # draws at least of a binder that is drawn alone


def count(draws: int, around: int, joint: int) -> int:
    """The number of draws of a binder for each of ``joint`` elements that are drawn together with it.

    Each draw is combined with ``around`` numbers. The number is at most ``draws``; it is smaller if the
    results would not fit, or if there are many elements.
    """
    if joint == 1:
        return max(1, min(draws, max(FEWEST_ALONE, MOST_NUMBERS // max(1, around))))
    joint_draws = max(FEWEST_JOINT, -(-4 * draws // joint))
    return max(1, min(draws, joint_draws, max(1, MOST_NUMBERS // max(1, around))))
