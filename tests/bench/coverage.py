"""How often statements about new rows are true: on problems drawn at random, whose populations are
known.

    python tests/bench/coverage.py [--count 200] [--seed 0] [--rows 200]

A population is a table of some thousand rows, each as likely as any other; a sample is drawn from
it with replacement, and solved. Of every problem are judged

    values   the intervals of the objective and of each constraint at the population's own optimum
             (two-sided, nominal 95%)
    gap      the interval of the gap of the sample's answer (two-sided, nominal 95%: 39 answers on
             resampled rows)
    bound    the one-sided bound of the gap of an answer on half of the rows by two replications on
             the others: at least 95%
    margin   that with --margin 0.95 all constraints hold for the population: at least 95% (of
             single active constraints 95%) fallback the same with Bonferroni's margins, without
             resampling: that answers suit their own rows does not count then

A statement that is refused (no interval, no margin) is counted apart. Counts of 200 have a standard
error of 1.5 points. What was seen stands in ``coverage.md``.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

import fccomodel
from fccomodel import FccoError, pipeline
from fccomodel.app import new_rows
from fccomodel.app.python.session import BoundModel
from fccomodel.evaluation.passes import values
from fccomodel.report.new_rows.intervals import intervals

HEAD = (
    "model drawn; dim d; set G = {0, 1, 2}; data D : table(x: real[d], y: real, c: {-1, 1}, g: G); "
    "var w[d];\n"
)
LOGISTIC = "log1pexp(-z.c * dot(w, z.x))"
SQUARE = "(dot(w, z.x) - z.y)^2"
#: (what is minimised, what is bounded); a bound is half way between the least value and that without it
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "logistic": (f"E[z ~ D] {LOGISTIC} + 0.01 * sumsq(w)", ()),
    "least squares": (f"E[z ~ D] {SQUARE}", ()),
    "huber and l1": ("E[z ~ D] huber(dot(w, z.x) - z.y, delta = 0.5) + 0.02 * norm1(w)", ()),
    "entropic": (f"0.5 * log(mean[k in G] exp(E[z ~ D | z.g == k] {SQUARE} / 0.5))", ()),
    "root of mean": (f"sqrt(E[z ~ D] {SQUARE}) + 0.05 * sumsq(w)", ()),
    "tail": (f"cvar(tail = 0.3)[z ~ D] {SQUARE} + 0.01 * sumsq(w)", ()),
    "tail at a kink": (
        f"cvar(tail = 0.3)[z ~ D] {LOGISTIC} + 0.01 * sumsq(w)",
        (),
    ),  # w = 0 whatever the rows
    "small tail": ("cvar(tail = 0.1)[z ~ D] abs(dot(w, z.x) - z.y)", ()),
    "Neyman-Pearson": (
        "E[z ~ D | z.c == -1] log1pexp(dot(w, z.x)) + 0.01 * sumsq(w)",
        ("E[z ~ D | z.c == 1] log1pexp(-dot(w, z.x))",),
    ),
    "with threshold": (
        "E[z ~ D | z.c == -1] log1pexp(dot(w, z.x) + w[1]) + 0.01 * sumsq(w)",
        ("E[z ~ D | z.c == 1] log1pexp(-dot(w, z.x) - w[1])",),
    ),
    "groups": ("sumsq(w)", ("[k in G] E[z ~ D | z.g == k] " + SQUARE,)),
    "root bounded": ("norm1(w)", (f"sqrt(E[z ~ D] {SQUARE})",)),
    "two bounded": ("E[z ~ D] exp(dot(w, z.x) / 2)", (f"E[z ~ D] {SQUARE}", f"E[z ~ D] {LOGISTIC}")),
}


def population(rng: np.random.Generator, size: int = 1500, d: int = 4) -> dict[str, np.ndarray]:
    x = rng.normal(size=(size, d)) * rng.uniform(0.5, 1.5, size=d)
    score = x @ rng.normal(size=d) / 2
    labels = np.where(rng.uniform(size=size) < 1 / (1 + np.exp(-2 * score - 0.5)), 1.0, -1.0)
    return {"x": x, "y": score + 0.5 * rng.normal(size=size), "c": labels, "g": rng.integers(0, 3, size)}


class NoAnswer(Exception):
    """A problem is infeasible, or not solved in time."""


def solved(model: BoundModel) -> dict[str, np.ndarray]:
    planned = model.plan()
    answer = new_rows.answer(planned, planned.bound, 60.0)
    if answer is None:
        raise NoAnswer
    return dict(answer)


def bound_to(table: dict[str, np.ndarray], text: str) -> BoundModel:
    return fccomodel.compile(HEAD + text).bind(D=table)


def worst(text: str) -> tuple[str, str]:
    """A family as its binder and its body, and the largest of them."""
    binder, _, body = text.partition("] ")
    return (f"{binder}]", f"max{binder}] {body}") if text.startswith("[") else ("", text)


def text_of(kind: str, table: dict[str, np.ndarray], rng: np.random.Generator) -> str:
    """The model, its bounds by what can be reached on the population."""
    goal, bounded = KINDS[kind]
    text = f"minimize {goal};\n"
    free = solved(bound_to(table, text))
    limits = []
    for k, one in enumerate(bounded):
        binder, whole = worst(one)
        model = bound_to(table, f"minimize {whole};")
        least, now = (values(model.bound, point)[0][0] for point in (solved(model), free))
        limit = float(least + rng.uniform(0.5, 0.8) * (now - least))
        limits.append(f"c{k}{binder}: {one.removeprefix(binder)} <= {limit!r};")
    return text + (f"subject to {' '.join(limits)}" if limits else "")


@dataclasses.dataclass(frozen=True)
class Judged:
    """One statement: about what, and whether it is true; None where it is refused."""

    of: str
    true: bool | None


def judge(kind: str, seed: int, rows: int, of: set[str], answers: int) -> Iterator[Judged]:
    """The statements about one problem; none where some of its solves have no answer."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    table = population(rng)
    text = text_of(kind, table, rng)
    whole = bound_to(table, text)
    best = solved(whole)
    chosen = rng.integers(0, len(table["y"]), rows)
    sample = bound_to({name: column[chosen] for name, column in table.items()}, text)
    truth = values(whole.bound, best)[0]
    if "values" in of:
        sure = intervals(sample.bound, best, seed=seed)
        for estimate, value in zip((sure.objective, *sure.constraints.values()), truth, strict=True):
            yield Judged("values", abs(estimate.value - value) <= estimate.half)
    if not of & {"gap", "bound", "margin", "fallback"}:
        return
    planned, answer = sample.plan(seed=seed), solved(sample)
    if "gap" in of:
        bag = new_rows.bagged(planned, planned.bound, 600.0, answers)
        gap = new_rows.interval(planned, answer, bag)
        true = values(whole.bound, answer)[0][0] - truth[0]
        true = true if len(truth) > 1 else max(true, 0.0)  # else by rounding
        yield Judged("gap", None if gap.why else gap.low <= true <= gap.high)
    if "bound" in of:
        half = sample.plan(seed=seed, holdout=0.5)
        point = new_rows.answer(half, half.bound, 60.0)
        if point is not None:
            most = new_rows.replicated(half, point, 600.0)
            yield Judged(
                "bound", None if np.isnan(most) else values(whole.bound, point)[0][0] - truth[0] <= most
            )
    for name in sorted(of & {"margin", "fallback"} if len(truth) > 1 else ()):
        point = with_margins(planned, answer, 600.0 if name == "margin" else 0.0, answers)
        yield Judged(name, None if point is None else bool((values(whole.bound, point)[0][1:] <= 1e-7).all()))


def with_margins(
    planned: pipeline.Planned, plain: new_rows.Point, seconds: float, answers: int
) -> new_rows.Point | None:
    """The answer with margins, None where they are refused or leave none."""
    try:
        made = new_rows.estimated_margins(planned, plain, 0.95, seconds, answers)
    except FccoError:
        return None
    tight = new_rows.tight(planned, made.factor, made.errors)
    return new_rows.answer(tight, tight.bound, 60.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="problems")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--of", default="values,gap,bound,margin,fallback", help="which statements")
    parser.add_argument("--answers", type=int, default=39, help="on resampled rows")
    given = parser.parse_args()
    kinds, of, began = given.kinds.split(","), set(given.of.split(",")), time.perf_counter()
    total: dict[tuple[str, str], list[bool | None]] = defaultdict(list)
    lost = 0
    for k in range(given.count):
        kind = kinds[k % len(kinds)]
        try:
            for one in judge(kind, given.seed * 100_000 + k, given.rows, of, given.answers):
                total[one.of, kind].append(one.true)
                total[one.of, "all"].append(one.true)
        except NoAnswer:
            lost += 1
        if (k + 1) % (4 * len(kinds)) == 0 or k + 1 == given.count:
            print(
                f"{k + 1} problems, {lost} without an answer, {time.perf_counter() - began:.0f} s", flush=True
            )
            for (name, which), true in sorted(
                total.items(), key=lambda entry: (entry[0][1] != "all", entry[0])
            ):
                said = [one for one in true if one is not None]
                share = f"{sum(said)} of {len(said)}" + (f" ({np.mean(said):.1%})" if said else "")
                print(f"  {name:8s} {which:16s} {share:24s}{len(true) - len(said):4d} refused", flush=True)


if __name__ == "__main__":
    main()
