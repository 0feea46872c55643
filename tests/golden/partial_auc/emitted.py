"""partial_auc: a solver for

    1  # One-way partial AUC: rank the worst-ranked half of the positives above the negatives.
    2  # CVaR of the positives' pair losses, each an expectation over all negatives.
    3  model partial_auc;
    4
    5  dim d;
    6  data D : table(x: real[d], y: {0, 1});
    7  set P = {z in D | z.y == 1};
    8  set N = {z in D | z.y == 0};
    9  param a > 0, <= 1 default 0.5;  # the share of the positives that counts
   10  param mu >= 0 default 0.001;
   11  var w[d];
   12
   13  minimize loss: cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)))
   14      + mu * sumsq(w);

How it is solved

  SONEX (sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)), adam steps, practical step sizes;
    a stationary point in O(max(n / (B1 sqrt(B2)), 1 / min(B1, B2)) / eps^5) iterations, here max(174 / (174 *
    sqrt(512)), 1 / min(174, 512)) / eps^5 = 4.4e-02 / eps^5: 4.4e+13 at eps = 0.001
  variational tail mean: cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))) = min over s of s +
    (1/a) mean [e - s]_+: a scalar variable and the outer function f(u) = [u - s]_+
  prox: mu * sumsq(w) (no data, and the prox of squared_l2 is known)
  smoothed: cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))) (a non-smooth outer function, by
    its Moreau envelope)
  sorted: E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)) (from sums over sorted rows: an exact pass meets 1,623 + 174
    rows, not 282,402 pairs)

Names in this file

  w, w_prev     all variables in one flat vector, and the same one step before
  h             the settings of a step
  G             the stochastic gradient at w
  s_..., n_...  the scores of a set or a sample by its name, and its number of elements
  ..._prev      a value at w_prev, on the batch of this step
  u.u1          the estimate of E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))
  y1            cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)))
                envelope_y1 in its place, slope_y1 the gradient of that
                h.lam_y1 the smoothing parameter, c.y1 the centre: its multiplier, estimated

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


def in_line(x, dim):
    """The array with several dims merged into the last; a number stays as it is."""
    if torch.is_tensor(x) and x.dim():
        return x.movedim(dim, tuple(range(-len(dim), 0))).flatten(-len(dim))
    return x


def places(x, dim):
    """The indices 0, 1, 2, ... along ``dim``."""
    return torch.arange(x.shape[dim], device=x.device, dtype=x.dtype).view(
        (-1,) + (1,) * (x.dim() - 1 - dim % x.dim())
    )


def tail_mean(x, dim, weight, mask):
    """The mean of the largest elements along ``dim`` with total weight ``weight``, each at most
    1."""
    if mask is not None:
        x = x.masked_fill(mask == 0, float("-inf"))
    if isinstance(dim, tuple):
        x, weight, dim = in_line(x, dim), in_line(weight, dim), -1
    if not torch.is_tensor(weight):  # the same for all: no order is needed
        count = min(math.ceil(weight), x.shape[dim])
        if count <= 1:
            return x.amax(dim)
        largest = x.topk(count, dim=dim, sorted=False).values
        return (largest.sum(dim) - (count - weight) * largest.amin(dim)) / weight
    ordered = x.sort(dim=dim, descending=True).values
    share = (weight - places(ordered, dim)).clamp(0, 1).expand(x.shape)
    return (torch.where(share > 0, ordered, torch.zeros_like(ordered)) * share).sum(dim) / share.sum(dim)


def counted(x, dim, mask):
    """The number of elements along ``dim``, or of those the mask keeps, with dims of size 1."""
    if mask is None:
        return math.prod(x.shape[k] for k in (dim if isinstance(dim, tuple) else (dim,)))
    return torch.broadcast_to(mask, x.shape).to(x.dtype).sum(dim, keepdim=True)


def reduce_cvar(x, dim, tail, mask=None):
    """The mean of the largest ``tail`` fraction along ``dim``, the boundary element counted in part."""
    return tail_mean(x, dim, tail * counted(x, dim, mask), mask)


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


# ---- data: 3 arrays, from DATA_FILE
INITIAL = {}
# the model's parameters; kinks of envelopes and factors of proximal maps may contain them too
PARAMETERS = {'a': 0.5, 'mu': 0.001}


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
    data.x_P = data.D_x.index_select(0, data.P)
    data.t3 = 1 / data.a
    data.t4 = data.t3 / 174
    return data


def prepare_full(data):
    """Compute once what full passes need from the data alone."""
    data.t3 = 1 / data.a
    return data


# ---- variables: one flat vector w, and what steps keep beside it
# the entries of each variable in w, from first to last, and its shape
LAYOUT = {'w': (0, 64, (64,)), 'cvar_1': (64, 65, ())}
DIMENSION = sum(last - first for first, last, _ in LAYOUT.values())


def start(rng, device, dtype):
    """The first iterate: zeros, moved into the simple sets; nets start from their own initial weights."""
    w = torch.zeros(DIMENSION, device=device, dtype=dtype)
    project(w, 0.0)
    return w


def buffers(device, dtype):
    """Estimates u of the inner expectations, one per block; NaN until first seen."""
    u = SimpleNamespace()
    # E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))
    u.u1 = torch.full((1797,), math.nan, device=device, dtype=dtype)
    return u


def centres(device, dtype):
    """Centres of the smoothing: estimates of the multipliers."""
    c = SimpleNamespace()
    c.y1 = torch.zeros((1797,), device=device, dtype=dtype)
    return c


# ---- sampling: the minibatches of T steps at once, on the device
def draw(data, rng, T):
    """The samples of T steps, with a leading dim of T: positions in the data, and uniform numbers."""
    def epochs(name, elements, batch):
        # batches for T steps, without replacement within each pass over the elements; the rest of a pass
        # waits for the next call
        (rest,) = data.waiting.get(name, [()])
        pieces = []
        missing = T * batch
        while missing:
            if not len(rest):
                rest = torch.randperm(elements, generator=rng, device=data.device)
            pieces.append(rest[:missing])
            rest = rest[missing:]
            missing -= len(pieces[-1])
        data.waiting[name] = [rest]
        return torch.cat(pieces).view(T, batch)

    n = epochs('n', elements=1623, batch=512)
    N_n = data.N[n]
    return [N_n]


def prox_squared_l2(v: torch.Tensor, step: float | torch.Tensor, mu: float) -> torch.Tensor:
    """Shrinks v by the factor 1 + 2 step mu."""
    return v / (1 + 2 * step * mu)


# ---- one step of SONEX: sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)
def track(u, index, g, g_prev, h):
    """u_i <- (1 - gamma) u_i + gamma g_i(w_t) + gamma' (g_i(w_t) - g_i(w_{t-1})), one batch at both points.

    Returns the *previous* u_i (line 9), which does not share the batch of the gradient.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = old + h.gamma * (g - old) + h.gamma_prime * (g - g_prev)
    return old


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
    # mu * sumsq(w)
    w[0:64] = prox_squared_l2(w[0:64], step if isinstance(step, float) else step[0:64], mu=PARAMETERS['mu'])


# ---- smoothing: a function f that is not smooth is replaced by its envelope, with the centre c,
#   envelope(t) = max over y of  <y, t> - f*(y) - lam / 2 |y - c|^2;
#   its gradient slope(t) is the y that attains the maximum
def slope_y1(t, c, h):
    """The y that attains the envelope of cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w,
    p.x)))."""
    lam = h.lam_y1
    x = t + lam * c
    return (x / lam).clamp(0, 1)


def envelope_y1(t, c, h):
    """The envelope of cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)))."""
    lam = h.lam_y1
    y = slope_y1(t, c, h)
    return y * t - lam / 2 * (y - c).square()


# ---- f and g: the stochastic gradient, from the scores up
#   elements of a step: P all 174, n 512 of 1623
def gradient(data, w, w_prev, u, c, batch, h):
    """The stochastic gradient G of partial_auc: update the estimates u, then apply the chain rule."""
    N_n, = batch
    n_n = 512
    x_n = data.D_x.index_select(0, N_n)
    w_both = torch.stack([w[0:64], w_prev[0:64]])
    t1 = 1 + (w_both @ x_n.t())  # line 13: 1 + dot(w, n.x)
    s_both_P = w_both @ data.x_P.t()  # line 13: dot(w, p.x)
    t2 = (t1[:, None, :] - s_both_P[:, :, None]).relu()
    g1 = t2.square().mean(2)
    g2 = g1[1]
    u1 = track(u.u1, (data.P,), g1[0], g2, h)  # line 13: E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))
    c_y1 = c.y1[data.P]
    y1 = slope_y1(u1 - w[64], c_y1, h)
    t5 = data.t4 * y1
    t6 = 1 + (-t5.sum())
    t7 = (2 / n_n) * t5
    t8 = t7[:, None] * t2[0]
    g3 = t8.sum(0)
    t9 = -t8.sum(1)
    G_w = t9 @ data.x_P + g3 @ x_n
    G_cvar_1 = t6.reshape(1)
    return torch.cat([G_w, G_cvar_1])


# ---- the problem itself on all rows, in float64
def evaluate(data, w):
    """The minimised objective, and each constraint's values (left minus right side)."""
    w_2 = w[0:64]
    scores = data.D_x @ w_2
    s_P = scores[data.P]  # line 13: dot(w, p.x)
    s_N = scores[data.N]  # line 13: dot(w, n.x)
    t1 = mean_of_pieces(-s_P, (1 + s_N), [(0, 0, 0, 0), (float('inf'), 1, 0, 0)])
    t2 = reduce_cvar(t1, 0, data.a)  # line 13: cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) ...
    t3 = t2 + (data.mu * w_2.square().sum(-1))
    return torch.as_tensor(t3), {}


def blocks(data, w):
    """For each smoothed function its cells, exact arguments, slope, and largest slope (0: no penalty)."""
    scores = data.D_x @ w[0:64]
    s_P = scores[data.P]
    s_N = scores[data.N]
    t1 = mean_of_pieces(-s_P, (1 + s_N), [(0, 0, 0, 0), (float('inf'), 1, 0, 0)])
    t2 = t1 - w[64]
    return {'y1': ((data.P,), t2, slope_y1, 0)}


# ---- the smoothed problem on all rows, for the finish
def whole(data, w, c, h):
    """The objective on all rows without the terms of ``regulariser``. Envelopes replace functions with kinks,
    and penalties replace constraints."""
    cvar_1 = w[64]
    scores = data.D_x @ w[0:64]
    s_P = scores[data.P]  # line 13: dot(w, p.x)
    s_N = scores[data.N]  # line 13: dot(w, n.x)
    t1 = mean_of_pieces(-s_P, (1 + s_N), [(0, 0, 0, 0), (float('inf'), 1, 0, 0)])
    c_y1 = c.y1[data.P]
    # line 13: cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) ...
    t2 = envelope_y1(t1 - cvar_1, c_y1, h)
    t4 = cvar_1 + (data.t3 * t2.mean())
    return torch.as_tensor(t4)


def value_squared_l2(w: torch.Tensor, mu: float) -> torch.Tensor:
    """mu |w|_2^2"""
    return mu * w.square().sum()


def regulariser(w):
    """The value of the terms that ``project`` handles by their proximal maps."""
    return float(value_squared_l2(w[0:64], mu=PARAMETERS['mu']))


def all_blocks(data, w):
    """``blocks`` with the functions inside expectations, which have one entry a row."""
    return blocks(data, w)


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
#   start_elsewhere, all_rounds, finish, one_pass, LastStage, passes_may_replace_steps, before_the_end,
#   run_last_stage, steps_before_passes, one_look, allotted, planned_end, solve_then_finish


# ---- the solver: the functions above in one record, as the loop takes them
SOLVER = BlockSolver(
    settings=Settings, schedule=Practical(falling=falling, next_stage=next_stage), as_namespace=as_namespace,
    prepare=prepare, prepare_full=prepare_full, start=start, centres=centres, draw=draw, project=project,
    evaluate=evaluate, blocks=blocks, gradient=gradient, buffers=buffers, whole=whole, all_blocks=all_blocks,
    regulariser=regulariser, begin=begin, update=adam_step, step_sizes=step_sizes, advance=advance, solve=solve,
    finish=finish, one_pass=one_pass, own=64, centred=True, direct=True, attained=True, oracles=178176, tol=TOL,
)


# ---- checkpoints: the state of a run in a folder


# the source: put_back, Keeper, FileKeeper, keeper_of_run, main
