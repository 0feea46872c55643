"""F0608, F0609, F0616, F0704, F0711, F0713, F0817, F0818: what cannot be in a solver or over ranks,
runs that find nothing, checkpoints that are of no use, and backends that cannot take steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.memory import in_words
from fccomodel.core.source import Span
from fccomodel.evaluation.errors import TOO_LARGE
from fccomodel.library import distributions, reductions
from fccomodel.plan.errors import RACE

NOT_EMITTED = Code("F0608", "not emitted")
EMPTY_SET = Code("F0609", "empty set of a variable")
NOT_SHARED = Code("F0616", "not over ranks")
CRITERION = Code("F0826", "criterion")


# ----------------------------------------------------------------------------- parts without a text
def _not_solved(what: str, span: Span, reason: str, fix: str) -> Diagnostic:
    return NOT_EMITTED.error(f"{what} cannot be solved for", span=span, reason=reason, fix=fix)


def no_value(problem: ir.Problem, node: ir.Expr) -> Diagnostic:
    """Every node of a model has a value that a program computes."""
    return _not_solved(
        f"`{problem.text(node)}`",
        node.span,
        "It has no value that a solver could compute.",
        "Write it by other means.",
    )


def no_atom(op: str, span: Span) -> Diagnostic:
    """Every operation is an atom."""
    return _not_solved(f"`{op}`", span, "There is no such atom.", "Write it by other means.")


def maximum_of_a_list(span: Span) -> Diagnostic:
    """An algorithm that weighs a family's members weighs those of a set."""
    fix = "Write it as a max over a set, or choose another algorithm."
    return _not_solved(
        "a maximum of a list by weights", span, "Its weights are those of a family over a set.", fix
    )


def not_one_family(kind: str, span: Span) -> Diagnostic:
    """An algorithm that weighs a family's members has one such family."""
    fix = "Use it over one set, once, or choose another algorithm."
    return _not_solved(f"`{kind}` of this form by weights", span, "Its weights are those of one family.", fix)


def inner_problem(binder: ir.Binder) -> Diagnostic:
    """An inner problem over a set of vectors has a dual."""
    fix = "Write it as max[q in simplex(K)] (sum[k in K] q[k] * r[k] - mu * kl(q, uniform(K))), or its dual."
    return _not_solved(f"an inner problem over `{binder.name}`", binder.span, "It has no known dual.", fix)


def condition_on_draws(binder: ir.Binder) -> Diagnostic:
    """Random draws come without a condition."""
    fix = "Draw from the distribution that the condition leaves, or bind a table of draws."
    return _not_solved(
        f"a condition on `{binder.name}`", binder.span, "Draws are not sorted or filtered.", fix
    )


def sampler_of_an_index(family: str, span: Span) -> Diagnostic:
    """A sampler from Python is called with plain numbers."""
    reason = "A sampler from Python is called once, with plain numbers."
    fix = (
        f"Use one of {', '.join(distributions.all())}, or scale the draws in the formula: E[z ~ "
        f"{family}(1)] f(rate[i] * z)."
    )
    return _not_solved(
        f"a draw from `{family}` whose parameters depend on an index around it", span, reason, fix
    )


def all_in_every_step(kind: str, size: int, span: Span) -> Diagnostic:
    """A set must be small if every step needs all of its elements."""
    reason = "It needs all of them at once: a minibatch says little of it."
    fix = "Use E, mean or sum, logmeanexp, cvar, or a smaller set."
    known = reductions.get(kind)
    if known is not None and (through := known.through_log) is not None:
        reason = (
            "It needs all of them at once, and of so many the result is beyond double precision "
            "unless all are nearly 1."
        )
        fix = (
            f"Of positive terms write `{through.name}` of their logarithms, which samples tell: it is "
            f"optimal where the `{kind}` "
            f"is, and `{kind} >= c` says the same as `{through.name} of logarithms >= log(c)`."
        )
    return _not_solved(f"`{kind}` over {size} elements in every step", span, reason, fix)


def smoothed_in_every_step(size: int, span: Span) -> Diagnostic:
    """A maximum that is smoothed has few elements."""
    fix = "Use cvar, logmeanexp or pmean of them, or a constraint for each of them."
    reason = "Its smoothing needs all of them at once."
    return _not_solved(f"a maximum over {size} elements in every step", span, reason, fix)


def random_vector(problem: ir.Problem, node: ir.Expr) -> Diagnostic:
    """An algorithm that estimates F as one vector has one vector."""
    fix = "Bind a table of draws, or use an algorithm that estimates block by block."
    return _not_solved(
        f"`{problem.text(node)}`", node.span, "It depends on a random draw around it: F is no vector.", fix
    )


def net(name: str, reason: str) -> Diagnostic:
    """A net is written into a file as torch's own layers, as the text of its class, or by torch.export."""
    return NOT_EMITTED.error(
        f"the net `{name}` cannot be written into a solver's file",
        reason=reason,
        fix="Solve in Python, which takes the module as it is; or build it of torch's own layers, "
        "without branches on values.",
    )


def empty_set(variable: str, domain: ir.VectorSet, reason: str) -> Diagnostic:
    """The set of a variable has a point."""
    return EMPTY_SET.error(
        f"{domain.name}, the set of {variable}, has no point",
        span=domain.args[0].span if domain.args else None,
        reason=reason,
        fix="Correct its arguments.",
    )


def nothing_to_share(algorithm: str, whole: Mapping[str, str]) -> Diagnostic:
    """The steps of a program on several ranks have blocks or samples that these can share."""
    reasons = "; ".join(f"every rank needs all of {name}: {reason}" for name, reason in whole.items())
    return NOT_SHARED.error(
        f"There is nothing in the steps of {algorithm} that several ranks can share",
        reason=reasons or "They have neither blocks nor samples.",
        fix="Solve it in one process (without torchrun), or by another algorithm: --algorithm NAME.",
    )


def no_program(entrants: Sequence[str]) -> Diagnostic:
    """A program has one algorithm."""
    return RACE.error(
        "a race has no program of its own",
        reason=f"Which of {', '.join(entrants)} goes on is found by running them.",
        fix="Name one of them, or solve with --out: solver.py is the program of the one that won.",
    )


def memory_foreseen(needed: float, left: float, largest: float, of: str, span: Span) -> Diagnostic:
    """A run must fit into the available memory; ``of`` has the bytes foreseen, in all and for the
    ``largest`` array.
    """
    return TOO_LARGE.error(
        f"a run would take {in_words(needed)} of memory",
        span=span,
        reason=f"The largest array, {in_words(largest)}, is that of `{of}`; {in_words(left)} are available.",
        fix="Use fewer rows, or a condition by equal keys (`j.g == i.g`) or an order; means are taken "
        "block by block, tails and "
        "products over pairs are not.",
    )


# ---------------------------------------------------------------------------- one's own training loop
def criterion_without_net() -> Diagnostic:
    """A criterion is a loss of scores: outputs of a net."""
    return CRITERION.error(
        "this model has no net, so there is no criterion",
        reason="A criterion takes the outputs of a net for the rows of a batch.",
        fix="Declare one, `net s : real[d] -> real; var w = params(s);`, or use problem.solve().",
    )


def net_of_no_column(node: ir.NetCall) -> Diagnostic:
    """The scores of a batch are one for each of its rows."""
    return CRITERION.error(
        f"the net `{node.net}` is not applied to a column of one row",
        span=node.span,
        reason="A criterion is handed one output of the net for each row of the batch.",
        fix=f"Bind what the net takes as a column, and write `{node.net}(w; z.x)`; or use problem.solve().",
    )


def all_rows_of_a_batch(binder: ir.Binder) -> Diagnostic:
    """A step has the rows of its batch alone."""
    return CRITERION.error(
        f"`{binder.name}` goes through all rows of a table in every step",
        span=binder.span,
        reason="A batch has some rows; a maximum, or a family of constraints, over rows needs all of them.",
        fix="Take a mean over rows (`E`, `cvar`). For the worst of some groups declare them, `set G;` with a "
        "column `g: G`, and write `max[k in G] E[z ~ D | z.g == k] ...`; a family of constraints is "
        "`fair[k in G]: E[z ~ D | z.g == k] ... <= 0.1`.",
    )


def weights_outside(nets: Sequence[str]) -> Diagnostic:
    """The weights of a net belong to the optimizer of the loop."""
    names = ", ".join(f"`{name}`" for name in nets)
    return CRITERION.error(
        f"the model uses the weights {names} of a net outside of it",
        reason="In a loop of your own the optimizer has these weights; a criterion has scores alone.",
        fix="Take the term out of the model and use the optimizer's weight decay; or use problem.solve().",
    )


def criterion_algorithm(name: str, known: Sequence[str]) -> Diagnostic:
    """Steps by somebody else's optimizer have estimates block by block."""
    return CRITERION.error(
        f"{name} has no criterion",
        reason="Its estimates depend on its own steps, or on all rows at once.",
        fix='Leave `algorithm` out, or use `algorithm="sonex"`: unbiased in the limit, with constraints. '
        f"Those that have one are {', '.join(known)}.",
    )
