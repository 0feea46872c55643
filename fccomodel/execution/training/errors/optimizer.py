"""F0711, F0712, F0805, F0826: what a run by somebody's optimizer refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fccomodel.core.diagnostics import Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT, START
from fccomodel.core.options import writable
from fccomodel.execution.errors import NOTHING_FINITE
from fccomodel.program.errors import CRITERION


def loop_without_net(given: Sequence[str]) -> Diagnostic:
    """Steps by another optimizer are of nets."""
    words = ", ".join(f"`{name}=`" for name in given)
    return CRITERION.error(
        f"{words}: this model has no net",
        reason="These keywords are for the steps of networks; a model without one is solved by an algorithm "
        "whose step sizes follow from it.",
        fix="Leave them out, or declare a net: `net s : real[d] -> real; var w = params(s);`.",
    )


def not_with_optimizer(what: str, given: Sequence[str]) -> Diagnostic:
    """A keyword has no meaning where the steps are those of another optimizer."""
    words = ", ".join(f"`{name}=`" for name in given)
    return ARGUMENT.error(
        f"`{what}` does not go with {words}",
        reason="It is about the steps of the algorithm, or repeats the solve on other rows.",
        fix=f"Leave out `{what}`, or {words}.",
    )


def not_in_train_mode(what: str) -> Diagnostic:
    """Statements about new rows need answers on other rows, whose steps have nets in evaluation mode."""
    return ARGUMENT.error(
        f"`{what}` does not go with nets in train mode",
        reason="It repeats the solve on other rows, by steps that take a net as a function of one row.",
        fix="Judge the answer by rows left out (holdout), or bind the module after .eval().",
    )


def no_oracles() -> Diagnostic:
    """Steps by another optimizer are not counted in oracle calls."""
    return ARGUMENT.error(
        "A run with an optimizer of yours has no budget in oracle calls",
        reason="Its steps take the rows of a batch once, for all uses.",
        fix='Give steps or seconds: `budget="5000it"`, `budget="60s"`.',
    )


def not_a_function(name: str, value: Any) -> Diagnostic:
    """An optimizer, a schedule and a callback are functions."""
    examples = {
        "optimizer": "lambda p: torch.optim.AdamW(p, lr=1e-3)",
        "scheduler": "lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5000)",
        "callback": "lambda state: print(state.step, state.values)",
    }
    return ARGUMENT.error(
        f"`{name}` is a {type(value).__name__}, not a function",
        reason="The run makes its own copies of the nets, so it calls you with what is to be trained.",
        fix=f"Give a function: `{name}={examples[name]}`.",
    )


def recipe_value(name: str, value: Any, takes: str) -> Diagnostic:
    """A setting of a run with an optimizer has a value that it does not take."""
    return ARGUMENT.error(f"{name}={writable(value)!r} is not {takes}", fix=f"Give {takes}.")


def not_watched(text: str, labels: Sequence[str], lets: Sequence[str]) -> Diagnostic:
    """Early stopping can watch the objective, a constraint, the violation, or a let."""
    name = text.rpartition(" ")[2]
    known = ["objective", "violation", *labels, *lets]
    if name in lets:
        fix = f"Say which is better: `watch='maximize {name}'` or `watch='minimize {name}'`."
    else:
        fix = did_you_mean(name, known) or f"There are {', '.join(known)}."
    return ARGUMENT.error(
        f"`{text}` cannot be watched",
        reason="Watched are `objective`, `violation`, a constraint by its label, or a `let` with its sense, "
        "as in `maximize auc`.",
        fix=fix,
    )


def not_validation(value: Any, tables: Sequence[str]) -> Diagnostic:
    """Validation rows are tables by name, or those that were held out."""
    shown = ", ".join(f'"{name}": ...' for name in tables)
    return ARGUMENT.error(
        f"`validate` is a {type(value).__name__}, not tables by name",
        reason="Validation takes other data for tables of the model, or the rows that `holdout=` leaves out.",
        fix=f'Give `validate={{{shown}}}`, or `holdout=0.2, validate="holdout"`.',
    )


def nothing_held_out() -> Diagnostic:
    """Validation on held-out rows needs some."""
    return ARGUMENT.error(
        '`validate="holdout"`: no rows are held out',
        fix='Add `holdout=0.2`, a share of the rows, or a condition such as `holdout="fold == 1"`.',
    )


def without_validation(name: str) -> Diagnostic:
    """Early stopping is on validation rows."""
    return ARGUMENT.error(
        f"`{name}=` is given without `validate=`",
        reason="What is watched, and how patiently, is about validation rows.",
        fix='Add `validate={"D": frame}`, or leave it out.',
    )


def not_an_optimizer(value: Any) -> Diagnostic:
    """`optimizer` is a function that returns an optimizer of torch."""
    return ARGUMENT.error(
        f"`optimizer` returned a {type(value).__name__}, not an optimizer of torch",
        fix="Return one: `optimizer=lambda p: torch.optim.AdamW(p, lr=1e-3)`.",
    )


def needs_closure(value: Any) -> Diagnostic:
    """A step has one gradient: estimates move with each batch."""
    return ARGUMENT.error(
        f"{type(value).__name__} computes the loss several times in a step",
        reason="Each loss is of a batch, and moves the estimates: a line search on it would compare numbers "
        "of different batches.",
        fix="Take an optimizer whose step() needs no closure: torch.optim.AdamW, SGD, RMSprop. For a "
        "deterministic method on all rows leave `optimizer` out.",
    )


def epochs_of_loop(epochs: Any) -> Diagnostic:
    """The length of a run is its budget."""
    return ARGUMENT.error(
        f"`epochs={writable(epochs)}` is not how a run with an optimizer of yours ends",
        reason="Its budget is in steps or in seconds.",
        fix='Give steps, `budget="1200it"`: an epoch has len(problem.criterion(batch=64).sampler()) of them. '
        'Or seconds, `budget="60s"`.',
    )


def other_parameters() -> Diagnostic:
    """An optimizer moves the parameters that it was called with."""
    return ARGUMENT.error(
        "The optimizer has parameters that are not of this run",
        reason="The run trains copies of the nets that were bound.",
        fix="Make the optimizer of the parameters it is called with; `p.named` has them by name: "
        '`lambda p: AdamW([{"params": [q for n, q in p.named.items() if n.startswith("s.0")]}])`.',
    )


def other_optimizer_state(error: Exception) -> Diagnostic:
    """The state of an optimizer goes on in one with the same groups."""
    return START.error(
        "The start's optimizer has other groups of parameters",
        reason=(str(error).splitlines() or [""])[0],
        fix="Make the same groups as in the run that gave the start, or start from its variables: "
        "`start=result.variables`.",
    )


def not_finite_from_the_start(error: str) -> Diagnostic:
    """No look of a run was finite."""
    return NOTHING_FINITE.error(
        "The objective is not finite at the first weights, nor at any later ones",
        reason=error,
        fix="Look at the data and at the net's first outputs; a smaller learning rate may help.",
    )
