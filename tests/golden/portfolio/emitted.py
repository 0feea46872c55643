"""portfolio: a solver for

    1  # Markowitz: the least risk at a required mean return, without short sales.
    2  # The simplex is projected on; the return is a constraint; the variance is an operator of its own.
    3  model portfolio;
    4
    5  set A;  # assets: the columns of the data
    6  data R : table(r: real[A]);  # one row per day, returns in percent
    7  param target default 0.05;  # mean daily return, in percent
    8  var x[A] in simplex(A);
    9
   10  minimize risk: variance[z ~ R] dot(z.r, x);
   11  subject to
   12    income: E[z ~ R] dot(z.r, x) >= target;

How it is solved

  SONEX, momentum steps, practical step sizes; beyond sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3
    (constrained): see practice
  variance: variance[z ~ R] dot(z.r, x) = E e^2 - (E e)^2: an outer function f(u) = -u^2 of the tracked mean, and a
    sampled mean
  projected: x (a simple set: simplex)
  smoothed: income (a constraint: the penalty rho [c]_+ (equality: rho |c|) by its Moreau envelope)

Names in this file

  w, w_prev     all variables in one flat vector, and the same one step before
  h             the settings of a step
  G             the stochastic gradient at w
  s_..., n_...  the scores of a set or a sample by its name, and its number of elements
  y1            income: E[z ~ R] dot(z.r, x) >= target
                envelope_y1 in its place, slope_y1 the gradient of that
                h.lam_y1 the smoothing parameter, c.y1 the centre: its multiplier, estimated
                u.y1 its argument, estimated

Run it beside its data:  python solver.py --help
"""

import argparse
import copy
import hashlib
import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import torch


def read_data(path, sha256, mapped=False):
    """The arrays of a file, after a check of its SHA-256 if one is given. ``mapped``: arrays stay in the
    file until they are used.
    """
    try:
        with open(path, "rb") as file:
            if sha256 is not None and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise SystemExit(
                    f"error[F0810] result: {path} is not the file that was written with this program"
                )
        return torch.load(path, weights_only=True, mmap=mapped)
    except Exception as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SystemExit(
            f"error[F0810] result: {path} does not hold the data of this program: {reason}"
        ) from None


def present(device):
    """The device, if this machine has it: ``cpu``, ``cuda`` or one of several, ``cuda:1``."""
    kind, _, number = device.partition(":")
    if (
        device == "cpu"
        or kind == "cuda"
        and (number or "0").isdigit()
        and int(number or 0) < torch.cuda.device_count()
    ):
        return device
    raise SystemExit(f"error[F0809] device: there is no device `{device}` here: use --device cpu")


# ---- constants of a run, unless its command line says otherwise
SEED = 0
PRECISION = 'float32'
SECONDS = 25.0
ITERATIONS = None
CALLS = None
PLANNED = None
WAY = None
PASSES = None
TOL = 1e-06
THREADS = 1
SIGN = 1
DATA_FILE = 'data.pt'
DATA_SHA256 = None
no_grad = torch.inference_mode


# ---- settings: what steps go by, and how it changes from stage to stage


# the source: LoopSettings, BlockSettings, Schedule, Practical, Solver, BlockSolver


@dataclass(kw_only=True)
class Settings(BlockSettings):
    """The settings of the first step."""

    eta: float = 0.0
    rho: float = 10.0
    lam: float = 0.0
    stage: int = 200
    longest: int = 4000
    gain: float = 0.0001
    patience: int = 12
    gamma: float = 0.1
    gamma_prime: float = 0.9
    beta: float = 0.1
    beta_prime: float = 0.01
    eps: float = 1e-08
    lam_y1: float = 0.1
    lam_inner: float = 0.01


# ---- data: 1 arrays, from DATA_FILE
INITIAL = {}
# the model's parameters; kinks of envelopes and factors of proximal maps may contain them too
PARAMETERS = {'target': 0.05}


def as_namespace(tensors, device, dtype):
    """The arrays on the device, real numbers in the working precision, and the model's parameters."""
    data = SimpleNamespace(device=torch.device(device), dtype=dtype, waiting={})
    for key, value in tensors.items():
        if key.startswith("net_"):
            INITIAL[key] = value
        if value.is_floating_point():
            value = value.to(dtype)
        setattr(data, key, value.to(device))
    vars(data).update(PARAMETERS)
    return data


def prepare(data):
    """Compute once what depends on the data alone."""
    return data


def prepare_full(data):
    """Compute once what full passes need from the data alone."""
    return data


# ---- variables: one flat vector w, and what steps keep beside it
# the entries of each variable in w, from first to last, and its shape
LAYOUT = {'x': (0, 8, (8,))}
DIMENSION = sum(last - first for first, last, _ in LAYOUT.values())


def start(rng, device, dtype):
    """The first iterate: zeros, moved into the simple sets; nets start from their own initial weights."""
    w = torch.zeros(DIMENSION, device=device, dtype=dtype)
    project(w, 0.0)
    return w


def buffers(device, dtype):
    """Estimates u of the inner expectations, one per block; NaN until first seen."""
    u = SimpleNamespace()
    u.y1 = torch.full((), math.nan, device=device, dtype=dtype)
    return u


def centres(device, dtype):
    """Centres of the smoothing: estimates of the multipliers."""
    c = SimpleNamespace()
    c.y1 = torch.zeros((), device=device, dtype=dtype)
    return c


# ---- sampling: the minibatches of T steps at once, on the device
def draw(data, rng, T):
    """The samples of T steps, with a leading dim of T: positions in the data, and uniform numbers."""
    return []


def project_simplex(v: torch.Tensor) -> torch.Tensor:
    """max(v - t, 0), t such that the entries (along the last axis) sum to 1."""
    v = v - v.amax(-1, keepdim=True)  # the same point, and 1 counts beside large entries too
    largest = v.sort(dim=-1, descending=True).values
    count = v.new_ones(v.shape[-1]).cumsum(0)
    t = ((largest.cumsum(-1) - 1) / count).amax(-1, keepdim=True)
    return (v - t).relu()


# ---- one step of SONEX: sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)
def begin(state, h):
    """Set v and s to zero."""
    state.v, state.s = torch.zeros_like(state.w), torch.zeros_like(state.w)


def momentum_step(state, G, h):
    """v <- (1 - beta) v + beta G;  w <- w - eta v. Returns the step size that a prox must use (a scalar)."""
    state.v.lerp_(G, h.beta)
    state.w.sub_(state.v, alpha=h.eta)
    return h.eta


def step_sizes(h: BlockSettings, inverse):
    """Set a step size of 0 to the inverse of the gradient's Lipschitz constant, which ``inverse()``
    measures at the start.
    """
    if h.eta <= 0:
        h.eta = inverse()


def together(state, G, h: BlockSettings):
    """The mean gradient of ``h.together`` batches at one w, or None before the last of them. ``state.met``
    counts the batches.
    """
    if h.together == 1:
        return G
    if state.met:
        state.sum = state.sum + G
    else:
        state.sum = G.clone()
    state.met = (state.met + 1) % h.together
    if state.met:
        return None
    return state.sum / h.together


def advance(solver: BlockSolver, data, state, u, c, batch, h: BlockSettings):
    """Make one step: the gradient at w, the update of w, proximal maps and projections.

    If ``h.together`` batches make a step, w moves after the last of them.
    """
    G = solver.gradient(data, state.w, state.w_prev, u, c, batch, h)
    state.w_prev.copy_(state.w)
    G = together(state, G, h)
    if G is not None:
        solver.project(state.w, solver.update(state, G, h))


def weigh(h: BlockSettings, share, least=0.0):
    """Multiply gamma by a share, but not below ``least``. If gamma' = 1 - gamma, it stays so."""
    paired = abs(h.gamma_prime + h.gamma - 1.0) < 1e-9
    h.gamma = max(share * h.gamma, min(h.gamma, least))
    if paired:
        h.gamma_prime = 1.0 - h.gamma


def falling(h: BlockSettings, share):
    """The settings within a stage when the step size is at a share of its first value. The weight of new
    values falls with it, down to a tenth, unless it must be constant (``steady``).
    """
    now = h.copy()
    now.eta = share * h.peak
    weigh(now, 1.0 if h.steady else max(share, 0.1))
    return now


def shrink_gamma(h: BlockSettings):
    """Lengthen the window over which estimates average, from stage to stage."""
    weigh(h, 0.7, least=0.05)


def slow_down(h: BlockSettings, gained):
    """After a stage without a gain: smaller steps and longer windows of the estimates; once these are at
    their longest, larger batches. The next stage is longer in any case.
    """
    if not gained:
        larger = h.gamma <= 0.05 and h.together < 16
        h.peak *= 0.8 if larger else 0.6
        h.together *= 2 if larger else 1
        shrink_gamma(h)
    h.stage = min(int(1.3 * h.stage), h.longest)


def next_stage(h: BlockSettings, gained, worst):
    """Lengthen the next stage. After a stage without a gain, steps become smaller and the estimates average
    over longer windows; once these are at their longest, batches become larger first.
    """
    slow_down(h, gained)


def project(w, step):
    """Apply the proximal maps of regularisers and the projections on simple sets to w, in place. ``step``:
    one step size, or one per coordinate."""
    # x in simplex(A)
    w[0:8] = project_simplex(w[0:8]).reshape(-1)


# ---- smoothing: a function f that is not smooth is replaced by its envelope, with the centre c,
#   envelope(t) = max over y of  <y, t> - f*(y) - lam / 2 |y - c|^2;
#   its gradient slope(t) is the y that attains the maximum
def slope_y1(t, c, h):
    """The y that attains the envelope of the penalty for income: E[z ~ R] dot(z.r, x) >= target."""
    lam = h.lam_y1
    x = t + lam * c
    width = h.rho * lam
    return h.rho * ((x / width).clamp(0, 1))


def envelope_y1(t, c, h):
    """The envelope of the penalty for income: E[z ~ R] dot(z.r, x) >= target."""
    lam = h.lam_y1
    y = slope_y1(t, c, h)
    return y * t - lam / 2 * (y - c).square()


# ---- f and g: the stochastic gradient, from the scores up
#   elements of a step: z all 1000, z_2 all 1000
def gradient(data, w, w_prev, u, c, batch, h):
    """The stochastic gradient G of portfolio: update the estimates u, then apply the chain rule."""
    n_z_2 = 1000
    n_z = 1000
    scores = data.R_r @ w
    y1 = slope_y1(data.target - scores.mean(), c.y1, h)
    t1 = ((-y1) / n_z_2).expand((1000,))
    t2 = ((-2 / n_z) * scores.mean()) + ((2 / n_z) * scores)
    t3 = t1 + t2
    u.y1[...] = (data.target - scores.mean())
    return t3 @ data.R_r


# ---- the problem itself on all rows, in float64
def evaluate(data, w):
    """The minimised objective, and each constraint's values (left minus right side)."""
    scores = data.R_r @ w
    g1 = (scores - scores.mean()).square().mean()  # line 10: variance[z ~ R] dot(z.r, x)
    t1 = data.target - scores.mean()  # line 12: E[z ~ R] dot(z.r, x) >= target
    return torch.as_tensor(g1), {'income': ('le', torch.as_tensor(t1))}


def blocks(data, w):
    """For each smoothed function its cells, exact arguments, slope, and largest slope (0: no penalty)."""
    scores = data.R_r @ w
    t1 = data.target - scores.mean()
    return {'y1': ((), t1, slope_y1, 1)}


# ---- the smoothed problem on all rows, for the finish
def whole(data, w, c, h):
    """The objective on all rows without the terms of ``regulariser``. Envelopes replace functions with kinks,
    and penalties replace constraints."""
    scores = data.R_r @ w
    t1 = envelope_y1(data.target - scores.mean(), c.y1, h)  # line 12: income: E[z ~ R] dot(z.r, x) >= target
    t2 = (scores.square().mean() + (-scores.mean().square())) + t1
    return torch.as_tensor(t2)


def regulariser(w):
    """The value of the terms that ``project`` handles by their proximal maps."""
    return 0.0


def all_blocks(data, w):
    """``blocks`` with the functions inside expectations, which have one entry a row."""
    return blocks(data, w)


def constraint_values(data, w):
    """Each constraint's values (left minus right side)."""
    scores = data.R_r @ w
    t1 = data.target - scores.mean()  # line 12: E[z ~ R] dot(z.r, x) >= target
    return {'income': ('le', torch.as_tensor(t1))}


# ---- the loop: stages of steps, how far they have come, and the finish by full passes


# the source: RunOptions, started, mixed, shuffled, thinned, opened, BlockRun, Work, drawn, copy_state,
#   mean_gradient, gradient_of_few, passes_over, Left, to_the_end, why_left, Watch, watching, merit, record,
#   left_early, steps_within, passes_first, paced, worked, ending, hearing, open_stage, ran_out, within_memory,
#   completed, reached, Outcome, running_means, status, gradients, spare, Rates, convolved, operation_price,
#   counting, priced, summary, value_at, starting_value, slope_at, smoothness, steepness, scale_smoothing,
#   inverse_smoothness, set_out, step_price, spaced, prepare_steps, least, go_back, keep_the_better, centre_at,
#   estimated, move_centres, close_stage, multipliers, fixing, some, gradient_of, slope_of, passes, Estimate,
#   assess, residual, observe, write_stage, one_step, take_steps, solve, cut_short, why_over, centre_rows,
#   differentiated, full_problem, no_step, is_least, forward_backward, at_once, direction, falls, with_pair,
#   shortened, at_rest, searched, panoc, cautious_step, from_the_first, shift_centres, stagnant, excess,
#   violation_noise, least_violation, around, downward, least_anywhere, conflict, first_point, begin_rounds,
#   unfinished, goes_on_with, within_numbers, allowed_nearby, levels_off, goes_on, falls_for_ever, raise_penalty,
#   next_round, allowed_further, drifts, without_end, descent_without_end, lowest_from, better_elsewhere,
#   start_elsewhere, all_rounds, finish, one_pass, measured, constraint_row, least_norm, jacobian, restore,
#   LastStage, passes_may_replace_steps, before_the_end, run_last_stage, steps_before_passes, one_look, allotted,
#   planned_end, solve_then_finish


# ---- the solver: the functions above in one record, as the loop takes them
SOLVER = BlockSolver(
    settings=Settings, schedule=Practical(falling=falling, next_stage=next_stage), as_namespace=as_namespace,
    prepare=prepare, prepare_full=prepare_full, start=start, centres=centres, draw=draw, project=project,
    evaluate=evaluate, blocks=blocks, gradient=gradient, buffers=buffers, whole=whole, all_blocks=all_blocks,
    regulariser=regulariser, constraint_values=constraint_values, begin=begin, update=momentum_step,
    step_sizes=step_sizes, advance=advance, solve=solve, finish=finish, one_pass=one_pass, restore=restore,
    own=DIMENSION, centred=True, direct=True, attained=True, oracles=3000, tol=TOL,
)


# ---- checkpoints: the state of a run in a folder


# the source: put_back, Keeper, FileKeeper, keeper_of_run, main
