"""Errors in the arguments of sweeps and paths."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT


def nothing_to_sweep(params: Sequence[str], given: Sequence[str] = ()) -> Diagnostic:
    """A sweep takes several values of a param of the model.

    params  the names of the model's params
    given   the names that the call has and the model has not
    """
    if not params:
        return ARGUMENT.error(
            "The model has no params to sweep over", fix="Declare one: `param tau default 0.1;`."
        )
    near = [hint for name in given if (hint := did_you_mean(name, params))]
    name = params[0]
    fix = f"Give a param several: sweep({name}=[0.05, 0.02]), or --param {name}=0.05,0.02."
    return ARGUMENT.error(
        "There are no values to sweep over",
        reason=f"The model's params are {', '.join(f'`{param}`' for param in params)}.",
        fix=" ".join([*near, fix]),
    )


def nothing_depends_on(name: str) -> Diagnostic:
    """A sweep over a param that neither the objective nor a constraint depends on."""
    return ARGUMENT.error(
        f"Nothing in the model uses `{name}`: every solve would be the same", fix="Sweep over another param."
    )


def not_swept(name: str, params: Sequence[str]) -> Diagnostic:
    """A trade-off curve along a param that was not swept."""
    return ARGUMENT.error(
        f"`{name}` was not swept", fix=did_you_mean(name, params) or f"Name one of {', '.join(params)}."
    )


def not_a_path(count: int, ratio: float) -> Diagnostic:
    """A path without weights, or whose ratio of last to first weight is not between 0 and 1."""
    return ARGUMENT.error(
        f"A path of {count} weights down to {ratio:g} of the first cannot be", fix="Say count=50, ratio=1e-3."
    )


def no_weight(name: str | None, known: Sequence[str]) -> Diagnostic:
    """A path needs the weight of a regulariser of one variable, with a prox around zero.

    name    the param that was asked for; None if the model should decide it
    known   the params that are such weights
    """
    if name is not None:
        message = f"`{name}` is not the weight of a regulariser"
    elif known:
        message = "Several params are weights of regularisers"
    else:
        message = "No param is the weight of a regulariser"
    if known:
        fix = f"Name one: path({known[0]!r})."
    else:
        fix = "Write it as a factor: `+ lam * norm1(w)`; `fccomodel atoms` has others."
    return ARGUMENT.error(message, fix=fix)


def never_zero(param: str, variable: str) -> Diagnostic:
    """A path that cannot begin, because no weight makes zero optimal.

    A regulariser with a kink at zero has such a weight, a square has none.
    """
    reason = "Its regulariser has no kink at zero, or the constraints keep it away from there."
    return ARGUMENT.error(
        f"`{variable}` = 0 is optimal for no value of `{param}`", reason=reason, fix=f"sweep({param}=[...])"
    )


def no_gradient_at_zero(variable: str) -> Diagnostic:
    """A path that cannot begin, because the problem has no finite gradient at zero."""
    return ARGUMENT.error(
        f"The problem has no finite gradient where `{variable}` = 0", fix="Name the values: sweep(...)."
    )
