"""Programs of several ranks: one rank equals two and more, whatever the sizes; ranks are threads here,
each with a program of its own, and sums go over a barrier."""

from __future__ import annotations

import threading
import types
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError

RNG = np.random.default_rng(7)
X = RNG.normal(size=(203, 4))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=203) > 0, 1, -1)
ROWS = {"D": {"x": X, "y": Y, "g": RNG.integers(0, 3, 203)}}
HEAD = "dim d; set K; data D : table(x: real[d], y: {-1, 1}, g: K); var w[d]; "
LOSS = "log1pexp(-z.y * dot(w, z.x))"
PAIRS = "0.3 * (dot(w, q.x) - dot(w, p.x))"
MODELS = {
    "pairs": f"minimize mean[p in D | p.y == 1] log(1 + E[q ~ D | q.y == -1] exp({PAIRS})) + 0.01 * "
    "sumsq(w);",
    "tail": f"minimize cvar(tail = 0.5)[p in D | p.y == 1] (E[q ~ D | q.y == -1] sqhinge(1 + {PAIRS})) + "
    "0.01 * sumsq(w);",
    "groups": f"minimize E[z ~ D] {LOSS} + 0.01 * sumsq(w); subject to c[k in K]: E[z ~ D | z.g == k] "
    f"{LOSS} <= 0.66;",
    "noise": "minimize mean[p in D] square(E[e ~ normal(0, 0.1)[d]] tanh(dot(w, p.x + e)) - p.y) + 0.01 "
    "* sumsq(w);",
    "variance": "minimize E[z ~ D] square(z.y - dot(w, z.x)) + variance[z ~ D] dot(w, z.x) + 0.01 * "
    "sumsq(w);",
}
FEW = {"outer_batch": 8, "inner_batch": 5}
#: batch sizes of models without blocks
SAMPLES = {"variance": {"inner_batch": 5}}


def program(name: str, algorithm: str, ranks: bool = True, **options: Any) -> Any:
    batches = SAMPLES.get(name, FEW)
    given = {
        "budget": "200it",
        "polish": False,
        "precision": "float64",
        "algorithm": algorithm,
        **batches,
        **options,
    }
    planned = (
        fccomodel.compile(HEAD + MODELS[name]).bind(data=ROWS).plan(unverified=True, ranks=ranks, **given)
    )
    return pipeline.emit(planned)


def solved(made: Any, ranks: int, steps: int = 200) -> list[Any]:
    """What each of so many ranks finds, and what they sent."""
    meeting, given, found = threading.Barrier(ranks, timeout=60), [None] * ranks, [None] * ranks

    def added(rank: int, x: torch.Tensor) -> torch.Tensor:
        given[rank] = x.clone()
        meeting.wait()
        total = sum(given)
        meeting.wait()
        return x.copy_(total)

    def work(rank: int) -> None:
        try:
            module = types.ModuleType("solver")
            exec(compile(made.text, "solver.py", "exec", dont_inherit=True), module.__dict__)
            if made.shares is not None:
                base = module.Ranks

                class Here(base):
                    count = ranks
                    rank = 0
                    least = 0  # looks are shared, however few the rows

                    def add(self, x):
                        self.calls, self.sent = self.calls + 1, self.sent + x.numel() * x.element_size()
                        return added(self.rank, x)

                Here.rank = rank
                module.RANKS = Here()
            with module.no_grad():
                end = module.solve(
                    module.SOLVER, dict(made.data), dtype=torch.float64, seconds=None, iterations=steps
                )
            end.sent = module.RANKS.sent if made.shares is not None else 0
            found[rank] = end
        except BaseException:
            meeting.abort()
            raise

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(end is not None for end in found)
    return found


CASES = [
    ("pairs", "msvr", "blocks"), ("tail", "sonex", "blocks"), ("groups", "alexr2", "samples"), ("variance", "hscg", "samples"),
]  # fmt: skip


@pytest.mark.parametrize("name, algorithm, what", CASES)
def test_one_process_equals_two_ranks(name, algorithm, what):
    """w to 1e-12, estimates row by row to 1e-11, and all ranks have the same; all algorithms are in
    ``tests/bench/ranks.py``."""
    (alone,) = solved(program(name, algorithm, ranks=False), 1, 30)
    made = program(name, algorithm)
    assert what in made.shares.sentence
    ranks = solved(made, 2, 30)
    assert float(alone.w.abs().max()) > 0.02
    for end in ranks:
        np.testing.assert_allclose(end.w, alone.w, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(end.w, ranks[0].w)
        for key, u in vars(alone.u or types.SimpleNamespace()).items():
            np.testing.assert_allclose(vars(end.u)[key], u, rtol=0, atol=1e-11)


def test_ranks_without_blocks_and_samples():
    """Three blocks in a step, of five ranks: some have none."""
    few = {"outer_batch": 3}
    (alone,) = solved(program("pairs", "sonex", ranks=False, **few), 1, 10)
    for end in solved(program("pairs", "sonex", **few), 5, 10):
        np.testing.assert_allclose(end.w, alone.w, rtol=0, atol=1e-12)


def test_what_is_sent_does_not_grow_with_rows_or_blocks():
    """A step sends the gradient; estimates stay with their owners, but where stages end."""
    made = program("pairs", "sonex", stage=1000)
    short, long = (solved(made, 2, steps)[0].sent for steps in (20, 40))
    assert long - short <= 20 * 8 * (4 + 6)


def test_nothing_to_share_is_refused():
    """Steps without blocks or samples are refused with the reason, and nothing is pretended."""
    with pytest.raises(FccoError, match="F0616") as refused:
        program("variance", "apg")
    assert "several ranks can share" in str(refused.value)


@pytest.mark.parametrize("name, algorithm", [("pairs", "sonex"), ("tail", "alexr2")])
def test_programs_can_keep_their_state(name, algorithm):
    """Whether or not owners have estimates, what makes a state whole is there for the keeper."""
    text = program(name, algorithm).text
    assert (
        text.count("def whole_state") == 1
        and "class KeeperOfAll(FileKeeper)" in text
        and "keeper_of_run(KeeperOfAll," in text
    )
