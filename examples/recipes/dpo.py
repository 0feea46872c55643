"""A small transformer prefers real sentences to shuffled ones, and does not forget how to write them: DPO
with a bound on the drift.

The text is the description of scikit-learn's data sets.

    python examples/recipes/dpo.py
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from common import HERE, fit
from language import Language, pretrained
from sklearn import datasets

import fccomodel as fc

#: letters of a text; those given
LENGTH, GIVEN = 24, 8


def pairs() -> tuple[np.ndarray, np.ndarray, int]:
    """Pieces of the text, the same with the letters after the first eight in another order, and how many
    different letters there are."""
    text = "".join(load().DESCR for load in (datasets.load_digits, datasets.load_wine, datasets.load_iris))
    letters, codes = np.unique(list(" ".join(text.split())), return_inverse=True)
    chosen = np.stack([codes[k : k + LENGTH] for k in range(0, len(codes) - LENGTH, 6)])
    rng = np.random.default_rng(0)
    chosen = rng.permutation(chosen)
    rejected = chosen.copy()
    rejected[:, GIVEN:] = rng.permuted(chosen[:, GIVEN:], axis=1)
    return chosen, rejected, len(letters)


def main(epochs: int = 8) -> dict[str, float]:
    """Share of test pairs that the model prefers rightly by a clear margin; the drift on training texts."""
    chosen, rejected, letters = pairs()
    good, bad = torch.from_numpy(chosen), torch.from_numpy(rejected)
    train, test = slice(0, 1000), slice(1000, None)
    reference = pretrained(Language(letters, LENGTH, GIVEN), good[train], 150)
    with torch.no_grad():
        ref_good, ref_bad = reference(good), reference(bad)
    columns = {"chosen": chosen, "rejected": rejected, "ref_chosen": ref_good, "ref_rejected": ref_bad}
    table = {name: np.asarray(value, dtype=float)[train] for name, value in columns.items()}
    shape = torch.nn.Sequential(torch.nn.Linear(LENGTH, 1), torch.nn.Flatten(0))
    problem = fc.compile(HERE / "dpo.fcco").bind(D=table, nets={"s": shape})
    criterion, net = problem.criterion(batch=32), copy.deepcopy(reference)

    def scores(rows: list[int]) -> dict[str, dict[str, torch.Tensor]]:
        """Log-likelihoods of both texts."""
        one, other = net(torch.cat([good[rows], bad[rows]])).chunk(2)
        return {"s": {"chosen": one, "rejected": other}}

    fit(criterion, [net], scores, epochs=epochs, lr=1e-3)
    with torch.no_grad():
        margin = (net(good) - ref_good) - (net(bad) - ref_bad)
        drift = (ref_good - net(good))[train].mean()
    return {"preferred": float((margin[test] > 1).double().mean()), "drift": float(drift)}


if __name__ == "__main__":
    print(main())
