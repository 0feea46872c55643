"""One meaning, one plan: random rewritings of twenty models, each of which must be solved as the model
itself.

    PYTHONPATH=tests python tests/bench/rewritings.py [--count 10] [--seed 0]

``count`` texts of each model, of one to ten rewritings each; those with another value or another
plan are shown.
"""

from __future__ import annotations

import argparse
from collections import Counter

from support.random_rewritings import Rewriting
from support.rewritten_models import MODELS, compare

from fccomodel.core.diagnostics import FccoError


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    texts, wrong, used = 0, 0, Counter[str]()
    for name, model in MODELS.items():
        for k in range(given.count):
            seed = given.seed * 10_000 + k
            rewriting = Rewriting(model, seed, {"d": 3})
            text = rewriting.run(1 + k % 10)
            texts, used = texts + 1, used + Counter(rewriting.steps)
            try:
                apart = compare(name, text, seed)
            except FccoError as error:
                apart = [str(error)]
            if apart:
                wrong += 1
                print(
                    f"{name}, seed {seed}: {', '.join(rewriting.steps)}\n{text}",
                    *apart,
                    sep="\n  ",
                    flush=True,
                )
    print(
        f"{texts} texts of {len(MODELS)} models by {sum(used.values())} rewritings: {wrong} with another "
        "value or plan"
    )
    print(", ".join(f"{rule} {count}" for rule, count in used.most_common()))


if __name__ == "__main__":
    main()
