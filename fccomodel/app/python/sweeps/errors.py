"""Arguments of sweeps and paths that are refused."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT


def nothing_to_sweep() -> Diagnostic:
    """A sweep has values of a param."""
    fix = "Give a param several: sweep(tau=[0.05, 0.02]), or --param tau=0.05,0.02."
    return ARGUMENT.error("There are no values to sweep over", fix=fix)


def nothing_depends_on(name: str) -> Diagnostic:
    """A sweep is over params that the objective or a constraint depends on."""
    return ARGUMENT.error(
        f"Nothing in the model uses `{name}`: every solve would be the same", fix="Sweep over another param."
    )


def not_swept(name: str, params: Sequence[str]) -> Diagnostic:
    """A trade-off is drawn along a param that was swept."""
    return ARGUMENT.error(
        f"`{name}` was not swept", fix=did_you_mean(name, params) or f"Name one of {', '.join(params)}."
    )


def not_a_path(count: int, ratio: float) -> Diagnostic:
    """A path has one weight at least, and a ratio of the last to the first between 0 and 1."""
    return ARGUMENT.error(
        f"A path of {count} weights down to {ratio:g} of the first cannot be", fix="Say count=50, ratio=1e-3."
    )


def no_weight(name: str | None, known: Sequence[str]) -> Diagnostic:
    """A path is that of a param which multiplies a regulariser with a prox, of one variable and around
    zero."""
    if name is None and known:
        said = "Several params are weights of regularisers"
    else:
        said = "No param is the weight of a regulariser"
    if known:
        fix = f"Name one: path({known[0]!r})."
    else:
        fix = "Write it as a factor: `+ lam * norm1(w)`; `fccomodel atoms` has others."
    return ARGUMENT.error(said if name is None else f"`{name}` is not the weight of a regulariser", fix=fix)


def never_zero(param: str, variable: str) -> Diagnostic:
    """A path begins where zero is optimal: a regulariser with a kink there has such a weight, a square
    none."""
    reason = "Its regulariser has no kink at zero, or the constraints keep it away from there."
    return ARGUMENT.error(
        f"`{variable}` = 0 is optimal for no value of `{param}`", reason=reason, fix=f"sweep({param}=[...])"
    )


def no_gradient_at_zero(variable: str) -> Diagnostic:
    """A path begins by the gradient of the problem at zero."""
    return ARGUMENT.error(
        f"The problem has no finite gradient where `{variable}` = 0", fix="Name the values: sweep(...)."
    )
