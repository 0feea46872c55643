"""The composition rules in words: the rule that gives a curvature, or the conditions that are missing."""

from __future__ import annotations

from fccomodel.library.amounts import Amount
from fccomodel.structure.declarations import REALS
from fccomodel.structure.facts import DECREASING, INCREASING, NEITHER, Facts
from fccomodel.structure.rules.placed import Placed

WORDS = {
    INCREASING: "non-decreasing",
    DECREASING: "non-increasing",
    NEITHER: "neither non-decreasing nor non-increasing",
}


def why(f: Placed, kind: str, bend: Amount, total: Amount) -> tuple[str, str]:
    """The name of the rule that gives the curvature ``total``, and its reason here.

    ``bend`` is the part of ``total`` that comes from the atom's own curvature.
    """
    name = f.called
    curved = "convex" if kind == "below" else "concave"
    if total.zero and all(a.affine for _, a in f.active):
        shape = f.curvature if f.curvature in ("affine", "constant") else curved
        return (
            "affine argument",
            f"{name} is {shape} where its argument lies, and {_arguments(f.active)} affine",
        )
    if total.zero:
        parts = [f"{WORDS[f.signs[i]]} in its {_curved(a)} argument" for i, a in f.active]
        return "composition", f"{name} is {curved}, and {' and '.join(dict.fromkeys(parts))}"
    if not total.finite:
        return "no rule", lacks(f, kind) + _lacks_constants(f, kind, bend)
    if bend.zero and all(f.signs[i] != NEITHER for i, _ in f.active):
        return (
            "monotone over weakly convex",
            f"{name} is {curved}, monotone and Lipschitz, and {_arguments(f.active)} weakly {curved}",
        )
    slopes = [str(f.slopes[i]) for i, _ in f.active]
    slope = " and ".join(dict.fromkeys(slopes))
    return "weak composition", f"{name} has slope {slope} and bends by {bend} where its argument lies"


def lacks(f: Placed, kind: str) -> str:
    """Why the rule of convex (or concave) composition does not apply, or "" if it does."""
    name = f.called
    if kind == "below":
        curved, opposite = ("convex", "concave")
    else:
        curved, opposite = ("concave", "convex")
    shape = f.curvature
    if shape not in (curved, "affine", "constant"):
        if f.intervals[0] == REALS:
            where = ""
        else:
            where = f" over {f.intervals[0]}"
        if shape != "none":
            return f"{name} is {shape}{where}, not {curved}"
        return f"{name} is neither convex nor concave{where}"
    for i, arg in f.active:
        value, _ = f.side(i, kind)
        if not value.zero:
            needs = {INCREASING: curved, DECREASING: opposite, NEITHER: "affine"}[f.signs[i]]
            if len(f.args) == 1:
                argument = "its argument"
            else:
                argument = f"argument {i + 1}"
            return (
                f"{name} is {curved} and {WORDS[f.signs[i]]}, so {argument} must be {needs}, and it "
                f"is {_curvature_words(arg)}"
            )
    return ""


def _lacks_constants(f: Placed, kind: str, bend: Amount) -> str:
    """The constants that are missing for the rule of weak composition."""
    missing = []
    for i, arg in f.active:
        if not f.side(i, kind)[0].finite:
            if not f.slopes[i].finite:
                missing.append(f"{f.called} has no bounded slope where its argument lies")
            elif not arg.smooth and not arg.gradient.value.finite:
                missing.append("the argument is not known to be smooth")
            elif not arg.gradient.value.finite:
                missing.append("the argument's gradient has no Lipschitz constant")
    if not bend.finite:
        missing.append(f"{f.called} bends without bound where its argument lies")
    elif not bend.zero and any(not a.lipschitz.value.finite for _, a in f.active):
        missing.append("the argument has no Lipschitz constant")
    if missing:
        return "; nor is it weakly convex by composition: " + ", ".join(dict.fromkeys(missing))
    return ""


def _arguments(active: tuple[tuple[int, Facts], ...]) -> str:
    if len(active) == 1:
        return "its argument is"
    return "its arguments are"


def _curved(a: Facts) -> str:
    if a.curvature != "unknown":
        return a.curvature
    return "argument's"


def _curvature_words(a: Facts) -> str:
    if a.curvature == "unknown":
        return "of unknown curvature"
    return a.curvature
