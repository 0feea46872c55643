"""card_form: a solver for

    1  # Subscripts for declared indices: mean_i f(E_j g(w; i, j)) as on paper.
    2  # `index` declares i, j, k and z once; `mean_i` ranges over P, `E_j` draws from N, and `E[h_k(w)]` draws the declared z.
    3  model card_form;
    4
    5  dim d;
    6  set K = {1, 2};
    7  data D : table(x: real[d], y: {-1, 1});
    8  set P = {z in D | z.y == 1};
    9  set N = {z in D | z.y == -1};
   10  index i in P, j ~ N, k in K, z ~ D;
   11  var w[d];
   12  def g(w, i, j) = sqhinge(1 + dot(w, j.x) - dot(w, i.x));  # a pair in the wrong order costs
   13  def f(u) = log(1 + u);
   14  def h(w, k, z) = sqhinge(1 - z.y * dot(w, z.x)) - 0.05 * k;
   15
   16  minimize mean_i f(E_j g(w; i, j)) + 0.001 * sumsq(w)
   17  s.t.
   18    missed: E[h_k(w)] <= 0;

How it is solved

  SONEX (sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)), adam steps, practical step sizes;
    a stationary point in O(max(n / (B1 sqrt(B2)), 1 / min(B1, B2)) / eps^5) iterations, here max(212 / (212 *
    sqrt(569)), 1 / min(212, 569)) / eps^5 = 4.2e-02 / eps^5: 4.2e+13 at eps = 0.001
  prox: 0.001 * sumsq(w) (no data, and the prox of squared_l2 is known)
  smoothed: missed (a constraint: the penalty rho [c]_+ (equality: rho |c|) by its Moreau envelope)
  sorted: E_j g(w; i, j) (from sums over sorted rows: an exact pass meets 357 + 212 rows, not 75,684 pairs)

Names in this file

  w, w_prev     all variables in one flat vector, and the same one step before
  h             the settings of a step
  G             the stochastic gradient at w
  s_..., n_...  the scores of a set or a sample by its name, and its number of elements
  y1            missed: E[h_k(w)] <= 0
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


def increasing(x):
    """The order of numbers. It sorts their bits as integers, which is several times as fast in torch."""
    bits = x.view(torch.int64 if x.dtype == torch.float64 else torch.int32)
    return torch.where(bits < 0, bits ^ torch.iinfo(bits.dtype).max, bits).argsort()


def sum_of_pieces(a, ordered, first, ends, pieces):
    """Sums of f(a + b_j) over the positions j in ``ordered`` from ``first`` on, where the j up to each of
    ``ends`` belong to its piece.
    """
    zero, total = ordered.new_zeros(1), torch.zeros_like(a)
    sums, squares = (torch.cat([zero, x.cumsum(0)]) for x in (ordered, ordered.square()))
    for last, (_, p, q, r) in zip(ends, pieces, strict=True):
        count, s, t = (last - first).to(a.dtype), sums[last] - sums[first], squares[last] - squares[first]
        total = total + p * (a * (a * count + 2 * s) + t) + q * (a * count + s) + r * count
        first = last
    return total


def mean_of_pieces(a, b, pieces):
    """mean over j of f(a + b_j) at every entry of a, for sorted b.

    f(u) = p u^2 + q u + r up to u = high, for each of ``pieces`` (high, p, q, r) in turn. Each piece needs
    the number of b between its kinks, their sum and the sum of their squares.
    """
    order = increasing(b.detach())
    centre = b.detach()[order[len(b) // 2]]
    ordered, a = (b - centre)[order], a + centre
    ends = [torch.searchsorted(ordered.detach(), (high - a).detach().contiguous()) for high, *_ in pieces]
    return sum_of_pieces(a, ordered, torch.zeros_like(ends[0]), ends, pieces) / len(b)


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

    eta: float = 0.05
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


# ---- data: 6 arrays, from DATA_FILE
INITIAL = {}


def as_namespace(tensors, device, dtype):
    """The arrays on the device, real numbers in the working precision, and the model's parameters."""
    data = SimpleNamespace(device=torch.device(device), dtype=dtype, waiting={})
    for key, value in tensors.items():
        if key.startswith("net_"):
            INITIAL[key] = value
        if value.is_floating_point():
            value = value.to(dtype)
        setattr(data, key, value.to(device))
    return data


def prepare(data):
    """Compute once what depends on the data alone."""
    data.x_P = data.D_x.index_select(0, data.P)
    data.all_K = torch.arange(2, device=data.device)
    data.t3 = 0.05 * data.K_values
    return data


def prepare_full(data):
    """Compute once what full passes need from the data alone."""
    data.t3 = 0.05 * data.K_values
    data.y_D = data.D_y.index_select(0, data.D)
    data.all_K = torch.arange(2, device=data.device)
    return data


# ---- variables: one flat vector w, and what steps keep beside it
# the entries of each variable in w, from first to last, and its shape
LAYOUT = {'w': (0, 31, (31,))}
DIMENSION = sum(last - first for first, last, _ in LAYOUT.values())


def start(rng, device, dtype):
    """The first iterate: zeros, moved into the simple sets; nets start from their own initial weights."""
    w = torch.zeros(DIMENSION, device=device, dtype=dtype)
    project(w, 0.0)
    return w


def buffers(device, dtype):
    """Estimates u of the inner expectations, one per block; NaN until first seen."""
    u = SimpleNamespace()
    u.y1 = torch.full((2,), math.nan, device=device, dtype=dtype)
    return u


def centres(device, dtype):
    """Centres of the smoothing: estimates of the multipliers."""
    c = SimpleNamespace()
    c.y1 = torch.zeros((2,), device=device, dtype=dtype)
    return c


# ---- sampling: the minibatches of T steps at once, on the device
def draw(data, rng, T):
    """The samples of T steps, with a leading dim of T: positions in the data, and uniform numbers."""
    return []


def prox_squared_l2(v: torch.Tensor, step: float | torch.Tensor, mu: float) -> torch.Tensor:
    """Shrinks v by the factor 1 + 2 step mu."""
    return v / (1 + 2 * step * mu)


# ---- one step of SONEX: sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)
def begin(state, h):
    """Set v and s to zero."""
    state.v, state.s = torch.zeros_like(state.w), torch.zeros_like(state.w)


def adam_step(state, G, h):
    """v <- (1 - beta) v + beta G;  s <- (1 - beta') s + beta' G*G;  w <- w - eta v / (sqrt(s) + eps).

    sonex-alexr2-2025, appendix E, with the new s where it has the one before. Returns the step size of
    each coordinate, which a separable prox must use.
    """
    state.v.lerp_(G, h.beta)
    state.s.lerp_(G.square(), h.beta_prime)
    step = h.eta / (state.s.sqrt() + h.eps)
    state.w.addcmul_(state.v, step, value=-1)
    return step


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
    # 0.001 * sumsq(w)
    w.copy_(prox_squared_l2(w, step, mu=0.001))


# ---- smoothing: a function f that is not smooth is replaced by its envelope, with the centre c,
#   envelope(t) = max over y of  <y, t> - f*(y) - lam / 2 |y - c|^2;
#   its gradient slope(t) is the y that attains the maximum
def slope_y1(t, c, h):
    """The y that attains the envelope of the penalty for missed: E[h_k(w)] <= 0."""
    lam = h.lam_y1
    x = t + lam * c
    width = h.rho * lam
    return h.rho * ((x / width).clamp(0, 1))


def envelope_y1(t, c, h):
    """The envelope of the penalty for missed: E[h_k(w)] <= 0."""
    lam = h.lam_y1
    y = slope_y1(t, c, h)
    return y * t - lam / 2 * (y - c).square()


# ---- f and g: the stochastic gradient, from the scores up
#   elements of a step: P all 212, N all 357, K all 2, z all 569
def gradient(data, w, w_prev, u, c, batch, h):
    """The stochastic gradient G of card_form: update the estimates u, then apply the chain rule."""
    n_z = 569
    n_P = 212
    n_N = 357
    scores = data.D_x @ w
    s_N = scores[data.N]  # line 12: dot(w, j.x)
    s_P = data.x_P @ w  # line 12: dot(w, i.x)
    t1 = ((1 + s_N) - s_P[:, None]).relu()
    t2 = (1 - (data.D_y * scores)).relu()
    c_y1 = c.y1[data.all_K]
    y1 = slope_y1(t2.square().mean() - data.t3, c_y1, h)
    t4 = (-(((2 / n_z) * y1.sum()) * t2)) * data.D_y
    t5 = (2 / n_P / n_N) * (1 / (1 + t1.square().mean(1)))
    t6 = t5[:, None] * t1
    t7 = -t6.sum(1)
    t8 = w.new_zeros(569).index_add_(0, data.N, t6.sum(0))
    t9 = t4 + t8
    u.y1[data.all_K] = (t2.square().mean() - data.t3)
    return t7 @ data.x_P + t9 @ data.D_x


# ---- the problem itself on all rows, in float64
def evaluate(data, w):
    """The minimised objective, and each constraint's values (left minus right side)."""
    scores = data.D_x @ w
    s_P = scores[data.P]  # line 12: dot(w, i.x)
    s_N = scores[data.N]  # line 12: dot(w, j.x)
    t1 = mean_of_pieces(-s_P, (1 + s_N), [(0, 0, 0, 0), (float('inf'), 1, 0, 0)])
    # line 16: mean_i f(E_j g(w; i, j)) + 0.001 * sumsq(w)
    t2 = (1 + t1).log().mean() + (0.001 * w.square().sum(-1))
    # line 14: sqhinge(1 - z.y * dot(w, z.x)) - 0.05 * k
    t4 = (1 - (data.D_y * scores)).relu().square().mean() - data.t3
    return torch.as_tensor(t2), {'missed': ('le', torch.as_tensor(t4))}


def blocks(data, w):
    """For each smoothed function its cells, exact arguments, slope, and largest slope (0: no penalty)."""
    scores = data.D_x @ w
    s_D = scores[data.D]
    t1 = (1 - (data.y_D * s_D)).relu().square().mean() - data.t3
    return {'y1': ((data.all_K,), t1, slope_y1, 1)}


# ---- the smoothed problem on all rows, for the finish
def whole(data, w, c, h):
    """The objective on all rows without the terms of ``regulariser``. Envelopes replace functions with kinks,
    and penalties replace constraints."""
    n_K = 2
    scores = data.D_x @ w
    s_P = scores[data.P]  # line 12: dot(w, i.x)
    s_N = scores[data.N]  # line 12: dot(w, j.x)
    t1 = mean_of_pieces(-s_P, (1 + s_N), [(0, 0, 0, 0), (float('inf'), 1, 0, 0)])
    c_y1 = c.y1[data.all_K]
    # line 18: missed: E[h_k(w)] <= 0
    t2 = envelope_y1((1 - (data.D_y * scores)).relu().square().mean() - data.t3, c_y1, h)
    t4 = (1 + t1).log().mean() + (n_K * t2.mean())
    return torch.as_tensor(t4)


def value_squared_l2(w: torch.Tensor, mu: float) -> torch.Tensor:
    """mu |w|_2^2"""
    return mu * w.square().sum()


def regulariser(w):
    """The value of the terms that ``project`` handles by their proximal maps."""
    return float(value_squared_l2(w, mu=0.001))


def all_blocks(data, w):
    """``blocks`` with the functions inside expectations, which have one entry a row."""
    return blocks(data, w)


def constraint_values(data, w):
    """Each constraint's values (left minus right side)."""
    scores = data.D_x @ w
    # line 14: sqhinge(1 - z.y * dot(w, z.x)) - 0.05 * k
    t1 = (1 - (data.D_y * scores)).relu().square().mean() - data.t3
    return {'missed': ('le', torch.as_tensor(t1))}


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
    regulariser=regulariser, constraint_values=constraint_values, begin=begin, update=adam_step, step_sizes=step_sizes,
    advance=advance, solve=solve, finish=finish, one_pass=one_pass, restore=restore, own=DIMENSION, centred=True,
    direct=True, nonconvex=True, oracles=76253, tol=TOL,
)


# ---- checkpoints: the state of a run in a folder


# the source: put_back, Keeper, FileKeeper, keeper_of_run, main
