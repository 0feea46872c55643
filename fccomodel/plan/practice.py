"""Sentences on what a run does beyond the theorem of its algorithm: steps, proxes, sizes, samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fccomodel.core.options import Budget, Origins
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import DrawnColumn
from fccomodel.library import regularisers
from fccomodel.plan.candidates import Candidate, finishable
from fccomodel.plan.settings import value
from fccomodel.plan.sharing import SharedStrata

SIZES = {
    "practical": "step sizes, smoothing and weights: adapted stage by stage, where the theorem fixes "
    "them (schedule = theory)",
    "decay": "step sizes: by the budget, where the theorem fixes them (schedule = theory)",
}


FINISH = (
    "finish: full passes over all rows by proximal L-BFGS follow the steps where the budget has room for "
    "them, and often "
    "give the answer (--no-polish leaves them out)"
)
BIASED = (
    "estimates: expectations under nonlinear functions are estimated by one minibatch at a time, which is "
    "biased however long the run"
)
RESTORATION = (
    "restoration: full passes that lower the violation of constraints may follow the steps "
    "(--no-polish: none)"
)
INTERIOR = (
    "interior-point method: gives the answer where the problem is a conic program of moderate size and "
    "the rest has not "
    "converged soon (--no-polish leaves it out)"
)


def added(
    chosen: Candidate,
    settled: Origins,
    step: str,
    budget: Budget,
    counts: Mapping[str, int] | None,
    shared: Sequence[SharedStrata],
    *,
    convex: bool,
) -> tuple[str, ...]:
    """All sentences, with the sentences about the model first.

    counts   n, B1, B2 and rows, or None before binding
    shared   the rows that expectations share
    convex   whether the problem is convex
    """
    record, schedule = chosen.record, str(value(settled, "schedule"))
    said = [*chosen.adds(), *_smooth_proxes(chosen)]
    if step == "adam":
        said.append(f"steps: Adam-type; {record.adaptive or 'the theorem is about momentum'}")
    if schedule in SIZES:
        said += [SIZES[schedule]]
    if schedule != "theory" and record.estimator is not None and value(settled, "gamma_prime") == 0:
        said.append(
            "estimates: moving averages, where the theorem adds differences of values at two iterates "
            "(gamma_prime)"
        )
    if chosen.biased:
        said.append(BIASED)
    if schedule != "theory":
        said += record.practice
    said += _endings(chosen, settled, budget, convex)
    if record.oracle == "blocks":
        said += [*map(_together, shared), *_samples(settled, counts)]
    return tuple(said)


def _endings(chosen: Candidate, settled: Origins, budget: Budget, convex: bool) -> list[str]:
    """The methods that may follow or replace the steps, if the budget is in seconds and ``polish`` is on."""
    if not value(settled, "polish") or budget.seconds is None:
        return []
    said = []
    if finishable(chosen.record):
        said.append(FINISH)
    elif chosen.setting.constrained:
        said.append(RESTORATION)
    if convex:
        said.append(INTERIOR)
    return said


def _smooth_proxes(chosen: Candidate) -> list[str]:
    """Smooth regularisers whose prox is used although the theorem makes them a part of F."""
    if "unregularised" not in chosen.findings:
        return []
    texts = [p.text for p in chosen.setting.normal.prox if regularisers.all()[p.name].smooth]
    if texts:
        return [
            f"{', '.join(texts)}: by the prox after each step, where the theorem has the gradient of the "
            "whole"
        ]
    return []


def looks(share: float) -> tuple[str, ...]:
    """That the best point is kept by a sample of the rows, if it is."""
    if share >= 1.0:
        return ()
    return (f"looks: the best point is kept by its values on a fixed sample of {share:.0%} of the rows",)


def drawn_rows(bound: Bound | None) -> tuple[str, ...]:
    """That a row has other values at each draw of a step, where theorems have one value for each."""
    if bound is None:
        return ()
    changing = [
        f"{name}.{column}"
        for name, table in bound.tables.items()
        for column, values in table.columns.items()
        if isinstance(values, DrawnColumn) and values.changing
    ]
    if not changing:
        return ()
    return (
        f"rows: {', '.join(changing)} is transformed at every draw, where the theorem has one value for each "
        "row; looks and the report see one",
    )


def _together(strata: SharedStrata) -> str:
    """Several expectations share one batch of rows: each is unbiased, but they are dependent."""
    if len(strata.sizes) > 1:
        kinds = f" in {len(strata.sizes)} strata"
    else:
        kinds = ""
    shared = f"{len(strata.cells)} expectations share {strata.size} rows of {strata.table}{kinds}"
    return f"samples: {shared}, where the theorem's are drawn for each apart (draws = separate)"


def _samples(settled: Origins, counts: Mapping[str, int] | None) -> list[str]:
    """Samples that are dependent, unless every step takes all of them."""
    if counts is not None and counts["B1"] >= counts["n"] and counts["B2"] >= counts["rows"]:
        return []
    said = []
    if value(settled, "sampling") == "epochs":
        said.append(
            "samples: each pass takes all of them once, where the theorem's are independent (sampling = iid)"
        )
    if value(settled, "inner_sampling") == "shared" and (counts is None or counts["n"] > 1):
        said.append(
            "inner samples: blocks share them, where the theorem's have their own (inner_sampling = "
            "per_block)"
        )
    return said
