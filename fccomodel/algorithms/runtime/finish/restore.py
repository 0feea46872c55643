"""Feasibility restoration where the objective's full passes are too long to finish by: Gauss-Newton
steps on the constraints from the best stochastic point, which never make it worse. The emitter
copies it."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

from fccomodel.algorithms.runtime.helpers.support import gradient_of
from fccomodel.algorithms.runtime.loops.progress import (
    Work,
    completed,
    cut_short,
    merit,
    passes_over,
    summary,
    thinned,
)
from fccomodel.algorithms.runtime.loops.settings import RunOptions
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced, within_memory


def constraint_row(solver: Solver, data, w):
    """The values of all constraints as one vector, and which of them are equalities."""
    constraints = solver.constraint_values(data, w).values()
    values = torch.cat([t.reshape(-1) for _, t in constraints])
    equal = torch.cat([torch.full((t.numel(),), kind == "eq", device=t.device) for kind, t in constraints])
    return values, equal


def jacobian(solver: Solver, data, w, chosen):
    """Gradients of the chosen constraints, one backward pass each."""
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        values = constraint_row(solver, data, x)[0].unbind()
    return torch.stack([gradient_of(values[k], x, keep=True) for k in chosen.tolist()])


def least_norm(J, values, equal):
    """The shortest d with values + J d <= 0 (= 0 where ``equal``).

    d = -J' y, where coordinate descent finds the dual y (Hildreth 1957). It runs on the host: there are few
    coordinates, and each depends on the one before.
    """
    K, values, equal = (J @ J.T).cpu(), values.cpu(), equal.tolist()
    y = torch.zeros_like(values)
    K.diagonal().add_(1e-10 * float(K.diagonal().max()))
    for _ in range(300):
        for k in range(len(y)):
            new = y[k] + (values[k] - K[k] @ y) / K[k, k]
            if equal[k]:
                y[k] = new
            else:
                y[k] = new.clamp(min=0)
    return -(J.T @ y.to(J.device))


def measured(work, most):
    """Counted seconds of ``work()``; infinity if they are more than ``most``, or if memory runs out."""
    prices = [math.inf]
    within_memory(lambda: prices.append(priced(work, most=most)[1]))
    return prices[-1]


def restore(solver: Solver, outcome, data, *, most=256, dear=0.05, **given):
    """Lower the largest violation of the point that ``solve`` found, by least-norm steps on the violated
    constraints and those near their bounds.

    A step is kept if the violation falls and the objective (on ``thinned`` rows if there are many pairs)
    rises by no more than the multipliers allow. The options are those of ``RunOptions``; ``passes`` bounds
    the evaluations of the constraints, and ``most`` the constraints of a step. If a pass costs more than
    ``dear`` counted seconds, it is left before its end once the time is over.
    """
    asked = RunOptions(**given)
    keep, seconds, tol = asked.keep, asked.seconds, 1e-6 if asked.tol is None else asked.tol
    began, timed, history = time.perf_counter(), False, list(outcome.history)
    quick, weight, w = thinned(solver, data), outcome.h.weight, outcome.w.to(data.device).double().clone()
    run = SimpleNamespace(w=w, count=1, moved=True, history=history)
    if keep is not None:
        keep.again("restore", run)

    def violations(x):
        """The violations at x, the values of the constraints, and which are equalities."""
        values, equal = constraint_row(solver, data, x)
        return torch.where(equal, values.abs(), values.clamp(min=0)), values, equal

    def limit():
        """Whether the passes, the time or the run itself are over."""
        nonlocal timed
        if (asked.passes is not None and run.count >= asked.passes) or (
            asked.stop is not None and asked.stop()
        ):
            return True
        timed |= seconds is not None and time.perf_counter() - began > seconds
        return timed

    def lower_violations():
        """Make steps as long as they lower the violation."""
        amount, values, equal = violations(run.w)
        worst, value = float(amount.max()), summary(solver.evaluate(quick, run.w))
        while run.moved and worst > tol and not limit():
            near = torch.where(equal, values.abs(), values).topk(min(most, len(values)))
            chosen = near.indices[near.values > -worst]
            d = least_norm(jacobian(solver, data, run.w, chosen), values[chosen], equal[chosen])
            run.count, run.moved, step = run.count + 1, False, 1.0
            while not run.moved and step > 0.05 and not limit():
                x = run.w + step * d
                solver.project(x, 0.0)
                run.count += 1
                less, new_values, _ = violations(x)
                after = summary(solver.evaluate(quick, x))
                risen = after[0] - value[0] - weight * float(amount.sum() - less.sum())
                less_violated = float(less.max()) < (1 - 0.1 * step) * worst
                run.moved = less_violated and risen <= 1e-9 * (1 + abs(value[0]))
                if run.moved:
                    run.w, amount, values, worst, value = x, less, new_values, float(less.max()), after
                step *= 0.5
            entry = {**history[-1], "stage": len(history) + 1, "objective": value[0], "violation": worst}
            entry |= {"merit": merit(value, weight), "seconds": outcome.seconds + time.perf_counter() - began}
            entry |= {"kkt": None, "kkt_error": None}  # those of the point before
            history.append({**entry, "passes": run.count})
            if asked.progress is not None:
                asked.progress(history[-1])
            if keep is not None:
                keep("restore", run)

    work, price = Work(), measured(lambda: violations(run.w), dear)
    if not completed(lower_violations, passes_over(began, asked.stop, seconds), work, price > dear):
        cut_short(outcome, asked.stop, work)
    more = {
        "w": run.w,
        "history": history,
        "exact": data,
        "passes": run.count,
        "way": "restore",
        "timed": outcome.timed or timed,
    }
    more["moved"] = not torch.equal(run.w, outcome.w.to(run.w))
    return SimpleNamespace(**{**vars(outcome), **more})
