# ruff: noqa: E501  (a model is easier to read on one line)
"""One meaning, one plan: models rewritten at random are solved alike (tests/bench/rewritings.py does
it by the hundred)."""

from __future__ import annotations

import pytest
from support.random_rewritings import RULES, Rewriting
from support.rewritten_models import HEAD, MODELS, bind, compare, plan, summary

#: texts that once had another plan
MENDED = {
    "sparse_and_round": "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + lam * norm1(w) + norm2(lam * w);",
    "stay_near": "minimize lam * (sum[i in d] abs(prev[i] - w[i]) + 0.2 * dot(w - prev, w - prev)) + "
                 "mean[z in D] log1pexp(-z.y * dot(w, z.x));",
    "lasso": "let size = norm1(4 * w) / 4; maximize -(E[z ~ D] (log1pexp(-z.y * dot(w, z.x)) + lam * size));",
    "groups": "minimize mu * sumsq(w) + lam * group_norm(w, 1) + E[z ~ D] log1pexp(-z.y * dot(w, z.x));",
    "in_a_ball_around": "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x));\nsubject to\n  near: 0 >= "
                        "sqrt(sumsq(2 * prev - 2 * w)) / 2 - 0.5;",
    "in_a_box_around": "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + lam * norm1(w);\nsubject to\n  "
                       "near[i in d]: abs(w[i] - prev[i]) <= 0.3;",
    "pairs": "minimize mu * (w[3]^2 + w[1] * w[1] + w[2]^2) + mean[p in P] mean[n in N] sqhinge(1 - "
             "dot(w, p.x) + dot(w, n.x));",
    "composition_and_mean": "minimize (sum[i in d] mu * w[i]^2) + mean[i in P] log(1 + mean[j in N] "
                            "exp(dot(w, j.x) - dot(w, i.x)));",
    "kink_of_a_mean": "minimize max(max(0, 0.5 * sum(w)), E[z ~ N] dot(w, z.x)) + mu * norm2(w)^2 + "
                      "abs(3 - 3 * E[z ~ P] dot(w, z.x)) / 3;",
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_mended(name: str) -> None:
    assert compare(name, HEAD + MENDED[name], 0) == []


@pytest.mark.parametrize(("k", "name"), list(enumerate(MODELS)))
def test_rewritten_models_have_one_plan(k: int, name: str) -> None:
    rewriting = Rewriting(MODELS[name], k, {"d": 3})
    text = rewriting.run(5)
    assert len(rewriting.steps) == 5
    assert compare(name, text, k) == [], text


def test_every_rewriting_has_a_place() -> None:
    """Each of them applies to some model, and has its meaning in words."""
    used: set[str] = set()
    for k, text in enumerate(MODELS.values()):
        for seed in range(3):
            rewriting = Rewriting(text, 100 * k + seed, {"d": 3})
            rewriting.run(12)
            used |= set(rewriting.steps)
    assert used == {rule.__name__ for rule in RULES} and all(rule.__doc__ for rule in RULES)


@pytest.mark.parametrize(
    "sum_of", ["0.1 * norm1(w) + 0.2 * norm1(w - prev)", "0.1 * group_norm(w, 3) + 0.2 * norm2(w - prev)"]
)
def test_of_two_regularisers_without_a_prox_together_one_is_chosen_whatever_their_order(sum_of: str) -> None:
    one, _, other = sum_of.partition(" + ")
    summaries = []
    for text in (f"{one} + {other}", f"{other} + {one}"):
        problem, bound = bind(f"{HEAD}minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + {text};")
        summaries.append(summary(plan(problem, bound), bound))
    assert (
        summaries[0] == summaries[1]
        and len(summaries[0]["prox"]) == 1
        and len(summaries[0]["envelopes"]) == 1
    )
