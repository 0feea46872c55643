"""Reports on chains of definitions, each of which uses the one before more than once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import fccomodel
from fccomodel import report as judging
from fccomodel.app.python.session import BoundModel
from fccomodel.core import process
from fccomodel.pipeline.boundary import quoted
from fccomodel.report.point.pairs import MOST_DEEP, pairs_of
from fccomodel.report.point.system import System


def chain(levels: int, body: str) -> BoundModel:
    """``var x`` and definitions l1, l2, ... by ``body``, in which L is the one before."""
    lets = "".join(f"let l{i + 1} = {body.replace('L', f'l{i}')};\n" for i in range(levels))
    return fccomodel.compile(f"var x;\nlet l0 = x - 1;\n{lets}minimize l{levels} + x^2;").bind()


def slope(levels: int, body: str, x: float) -> float:
    """The derivative of the chain's objective, by a difference quotient."""
    names = {"abs": abs, "pos": lambda u: max(u, 0.0), "min": min, "max": max}

    def value(x: float) -> float:
        level = x - 1
        for _ in range(levels):
            level = eval(body, {**names, "L": level})
        return level + x**2

    return (value(x + 1e-7) - value(x - 1e-7)) / 2e-7


@pytest.mark.parametrize("body", ["abs(L) + L", "pos(L) + min(L, 1)"])
def test_a_chain_has_few_pairs_of_kinks(body: str) -> None:
    """There are 2^10 ways from the objective to the first kink; derivatives are right all the same."""
    bound, point = chain(10, body).bound, {"x": np.array(1.2)}
    pairs, topped = pairs_of(System(bound, point), weighed=True)
    assert len(pairs) <= 2 * MOST_DEEP and 0 < len(topped) <= 10 * MOST_DEEP
    assert judging.report(bound, point).gradient == pytest.approx(abs(slope(10, body, 1.2)), rel=1e-5)


def test_stages_may_recurse_down_the_deepest_model() -> None:
    """The limit of a plain program, 1000 frames, is not enough for models of 220 levels."""
    limit = quoted(lambda problem: sys.getrecursionlimit())
    assert limit(chain(1, "abs(L)").bound.problem) >= process.FRAMES
