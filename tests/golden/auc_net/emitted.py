"""auc_net: a solver for

    1  # A neural network trained for the area under the ROC curve, its mean score held near 0.
    2  # The objective is an expectation over pairs; without the constraint, adding a number to every score would change nothing.
    3  model auc_net;
    4
    5  dim d;
    6  data D : table(x: real[d], y: {0, 1});
    7  set P = {z in D | z.y == 1};
    8  set N = {z in D | z.y == 0};
    9  param centre >= 0 default 0.05;
   10  net s : real[d] -> real;
   11  var w = params(s);
   12
   13  maximize auc: E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));
   14  subject to
   15    centred: abs(E[z ~ D] s(w; z.x)) <= centre;

How it is solved

  SONEX (sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)), adam steps, practical step sizes;
    a stationary point in O(max(n / (B1 sqrt(B2)), 1 / min(B1, B2)) / eps^5) iterations, here max(1 / (1 *
    sqrt(22272)), 1 / min(1, 22272)) / eps^5 = 1.0e+00 / eps^5: 1.0e+15 at eps = 0.001
  minimised: maximize F becomes minimize -F; multipliers are those of the minimised problem
  smoothed: centred (a constraint: the penalty rho [c]_+ (equality: rho |c|) by its Moreau envelope)

Names in this file

  w, w_prev     all variables in one flat vector, and the same one step before
  h             the settings of a step
  G             the stochastic gradient at w
  s_..., n_...  the scores of a set or a sample by its name, and its number of elements
  ..._prev      a value at w_prev, on the batch of this step
  u.u1          the estimate of E[z ~ D] s(w; z.x)
  y1            centred: abs(E[z ~ D] s(w; z.x)) <= centre
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


def row_blocks(rows, size):
    """The inputs of a net in blocks of rows: a tensor, or a tuple with one tensor for each input."""
    if isinstance(rows, tuple):
        return zip(*(one.split(size) for one in rows), strict=True)
    return rows.split(size)


def net_in_parts(net, w, rows):
    """The net's output for every row, without a gradient, in parts that fit the cache."""
    with torch.no_grad():
        call = getattr(net, "exact", net)
        return torch.cat([call(w, part) for part in row_blocks(rows, 8192)])


def net_in_slices(net, w, rows):
    """The net's output for every row, in slices that autograd computes again in the backward pass.

    A single slice is computed once: it needs no less memory in the backward pass.
    """
    call = getattr(net, "exact", net)
    parts = list(row_blocks(rows, 8192))
    if len(parts) == 1:
        return call(w, parts[0])
    checkpoint = torch.utils.checkpoint.checkpoint
    return torch.cat([checkpoint(call, w, part, use_reentrant=False) for part in parts])


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
SIGN = -1
DATA_FILE = 'data.pt'
DATA_SHA256 = None
no_grad = torch.inference_mode


# ---- settings: what steps go by, and how it changes from stage to stage


# the source: LoopSettings, BlockSettings, Schedule, Practical, Solver, BlockSolver


@dataclass(kw_only=True)
class Settings(BlockSettings):
    """The settings of the first step."""

    annealed: bool = True
    eta: float = 0.004
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


# ---- nets: functions of their flat parameters and their inputs


def batched(calls, ranks, whole):
    """The shape of the rows of each call of a net, and all their rows as one batch for each input of the
    net. A call is a tensor, or a tuple of one for each input; ``ranks`` are the dims of one row of each."""
    calls = [call if isinstance(call, tuple) else (call,) for call in calls]
    along = [call[0].shape[: call[0].dim() - ranks[0]] for call in calls]
    rows = []
    for k, rank in enumerate(ranks):
        parts = [call[k].reshape(-1, *call[k].shape[call[k].dim() - rank :]) for call in calls]
        batch = torch.cat(parts) if len(parts) > 1 else parts[0]
        rows.append(batch.round().long() if k in whole else batch)
    return along, rows


def follow(module, tensor):
    """Move a module to the device and the precision of a tensor, if its buffers are elsewhere."""
    if any(
        b.device != tensor.device or b.is_floating_point() and b.dtype != tensor.dtype
        for b in module.buffers()
    ):
        module.to(tensor.device, tensor.dtype)


class LayeredNet:
    """A torch module of layers one after the other, evaluated at a flat parameter vector, in the order
    of ``named_parameters``.

    A step of an MLP takes 40% of the time that it takes by autograd (64-16-1), 60% (64-64-64-1) or 80%
    (64-256-256-1), in float32 on one core.

    ``rank`` is the number of dims of one input. Several inputs go through the layers as one batch.
    Where nothing asks autograd, the gradient goes back from layer to layer by these formulas: a the
    adjoint of the output y at the input x.
    """

    BACK = {
        torch.nn.ELU: lambda layer, a, x, y: torch.ops.aten.elu_backward.default(
            a, layer.alpha, 1, 1, True, y
        ),
        torch.nn.GELU: lambda layer, a, x, y: torch.ops.aten.gelu_backward.default(
            a, x, approximate=layer.approximate
        ),
        torch.nn.LeakyReLU: lambda layer, a, x, y: torch.where(x > 0, a, layer.negative_slope * a),
        torch.nn.ReLU: lambda layer, a, x, y: torch.ops.aten.threshold_backward.default(a, y, 0),
        torch.nn.SiLU: lambda layer, a, x, y: torch.ops.aten.silu_backward.default(a, x),
        torch.nn.Sigmoid: lambda layer, a, x, y: torch.ops.aten.sigmoid_backward.default(a, y),
        torch.nn.Softplus: lambda layer, a, x, y: torch.ops.aten.softplus_backward.default(
            a, x, layer.beta, layer.threshold
        ),
        torch.nn.Tanh: lambda layer, a, x, y: torch.ops.aten.tanh_backward.default(a, y),
        torch.nn.Dropout: lambda layer, a, x, y: a,
        torch.nn.Identity: lambda layer, a, x, y: a,
        torch.nn.Flatten: lambda layer, a, x, y: a.reshape(x.shape),
        torch.nn.Unflatten: lambda layer, a, x, y: a.reshape(x.shape),
    }

    def __init__(self, module, rank):
        self.module, self.rank = module.eval(), rank
        self.layers = self.row(module)
        self.sizes = [p.numel() for p in module.parameters()]
        self.tape: tuple = ()
        self.views: list = []
        self.rows: tuple = ((), None)

    @classmethod
    def row(cls, module):
        """The layers, each as often as rows go through it."""
        inside = type(module) is torch.nn.Sequential
        if inside:
            return [layer for part in module for layer in cls.row(part)]
        return [module]

    def layered(self, w):
        """Each layer with its weights and its bias, views of w. Those of the last two vectors are
        kept: steps change these in place."""
        inference = torch.is_inference_mode_enabled()
        for vector, mode, views in () if w.requires_grad else self.views:
            if vector is w and mode is inference:
                return views
        parts, views = iter(w.split(self.sizes)), []
        for layer in self.layers:
            linear = type(layer) is torch.nn.Linear
            if linear:
                weights = next(parts).view(layer.weight.shape)
            else:
                weights = None
            views.append((layer, weights, next(parts) if linear and layer.bias is not None else None))
        if not w.requires_grad:
            self.views = [(w, inference, views), *self.views[:1]]
        return views

    def joined(self, inputs):
        """The rows of all inputs. A few are kept as they were put together: a step asks for the same
        at two iterates."""
        asked = (*inputs, torch.is_inference_mode_enabled())
        known, rows = self.rows
        if len(known) == len(asked) and all(x is y for x, y in zip(known, asked, strict=True)):
            return rows
        parts = [x.reshape(-1, *x.shape[x.dim() - self.rank :]) for x in inputs]
        if len(parts) > 1:
            rows = torch.cat(parts)
        else:
            rows = parts[0]
        if not rows.requires_grad and rows.numel() <= 1 << 20:
            self.rows = asked, rows
        return rows

    def forward(self, w, inputs):
        """Outputs, and the trace: each layer with its weights, its input and its output."""
        y, trace, k = self.joined(inputs), [], self.rank
        for layer, weights, bias in self.layered(w):
            x, y = y, layer.forward(y) if weights is None else torch.nn.functional.linear(y, weights, bias)
            trace.append((layer, weights, x, y))
        if len(inputs) == 1 and inputs[0].dim() == k + 1:
            return [y], trace
        outs = zip(
            y.split_with_sizes([math.prod(x.shape[: x.dim() - k]) for x in inputs]), inputs, strict=True
        )
        return [
            o if x.dim() == k + 1 else o.view(x.shape[: x.dim() - k] + y.shape[1:]) for o, x in outs
        ], trace

    def __call__(self, w, *inputs):
        """Outputs for the rows of each input, with a gradient where w asks for one."""
        outs, _ = self.forward(w, inputs)
        if len(outs) == 1:
            return outs[0]
        return outs

    def taped(self, w, *inputs):
        """Outputs for the rows of each input, kept until ``vjp``."""
        outs, self.tape = self.forward(w, inputs)
        if len(outs) == 1:
            return outs[0]
        return outs

    def vjp(self, *adjoints):
        """The flat gradient of the sum of <adjoint, output> in the parameters, for the outputs of the
        last ``taped``."""
        trace, self.tape, left = self.tape, (), len(self.sizes)
        parts: list[torch.Tensor] = []
        last = trace[-1][-1]
        rows = [part.reshape(-1, *last.shape[1:]) for part in adjoints]
        if len(rows) > 1:
            a = torch.cat(rows)
        else:
            a = rows[0]
        for layer, weights, x, y in reversed(trace):
            if weights is None:
                a = self.BACK[type(layer)](layer, a, x, y)
                continue
            mine = [a.t() @ x, a.sum(0)][: 1 if layer.bias is None else 2]
            parts, left = mine + parts, left - len(mine)
            if not left:
                break
            a = a @ weights
        return torch.cat([part.reshape(-1) for part in parts])


net_s = LayeredNet(
    torch.nn.Sequential(
        torch.nn.Linear(64, 16, bias=True), torch.nn.ELU(alpha=1.0), torch.nn.Linear(16, 1, bias=True),
        torch.nn.Flatten(start_dim=-2, end_dim=-1)
    ), 1
)


class HookedNet:
    """A net of this program whose steps differentiate the module's own parameters by ``backward()``, so
    that their hooks run.

    ``called`` is what steps call in place of the module: with
    ``DistributedDataParallel(net.module)`` the gradient is the mean over the processes.
    """

    def __init__(self, net, called=None):
        self.net, self.module, self.called = net, net.module, called or net.module
        self.ranks = getattr(net, "ranks", None) or (net.rank,)
        self.whole = getattr(net, "whole", ())
        self.own = list(self.module.parameters())
        self.tape: tuple = ()

    def __call__(self, w, *inputs):
        """Outputs for the rows of each input, by the net as it was."""
        return self.net(w, *inputs)

    def place(self, w):
        """The module's own parameters become views of w; 0 for their gradients."""
        follow(self.module, w)
        parts = w.detach().split([p.numel() for p in self.own])
        for own, part in zip(self.own, parts, strict=True):
            own.grad, own.data = None, part.view(own.shape)

    def taped(self, w, *inputs):
        """Outputs for the rows of each input, kept until ``vjp``."""
        self.place(w)
        along, rows = batched(inputs, self.ranks, self.whole)
        with torch.enable_grad():
            whole = self.called(*rows)
        self.tape = (whole,)
        outs = whole.detach().split([shape.numel() for shape in along])
        outs = [out.view(shape + out.shape[1:]) for out, shape in zip(outs, along, strict=True)]
        if len(outs) == 1:
            return outs[0]
        return outs

    def vjp(self, *adjoints):
        """The flat gradient of the sum of <adjoint, output> in the parameters, for the outputs of the
        last ``taped``."""
        (whole,), self.tape = self.tape, ()
        whole.backward(torch.cat([a.reshape(-1, *whole.shape[1:]) for a in adjoints]))
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.own]
        return torch.cat([part.detach().reshape(-1) for part in parts])


# For gradients by backward(), with hooks as those of DistributedDataParallel, take away the `# `:
# no_grad = torch.no_grad
# net_s = HookedNet(net_s, torch.nn.parallel.DistributedDataParallel(net_s.module))


# ---- data: 3 arrays, from DATA_FILE
INITIAL = {}
# the model's parameters; kinks of envelopes and factors of proximal maps may contain them too
PARAMETERS = {'centre': 0.05}


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
    return data


def prepare_full(data):
    """Compute once what full passes need from the data alone."""
    return data


# ---- variables: one flat vector w, and what steps keep beside it
# the entries of each variable in w, from first to last, and its shape
LAYOUT = {'w': (0, 1057, (1057,))}
DIMENSION = sum(last - first for first, last, _ in LAYOUT.values())


def start(rng, device, dtype):
    """The first iterate: zeros, moved into the simple sets; nets start from their own initial weights."""
    w = torch.zeros(DIMENSION, device=device, dtype=dtype)
    first, last, _ = LAYOUT['w']
    w[first:last] = INITIAL['net_s'].to(device=device, dtype=dtype)
    project(w, 0.0)
    return w


def buffers(device, dtype):
    """Estimates u of the inner expectations, one per block; NaN until first seen."""
    u = SimpleNamespace()
    # E[z ~ D] s(w; z.x)
    u.u1 = torch.full((), math.nan, device=device, dtype=dtype)
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

    n = epochs('n', elements=1623, batch=128)
    z = epochs('z', elements=1797, batch=128)
    N_n = data.N[n]
    return [z, N_n]


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


def begin_late(state, h):
    """Set v and s to zero, and the step count t to infinity.

    torch's Adam divides v and s by 1 - (1 - beta)^t and 1 - (1 - beta')^t, which are 1 at t = infinity.
    """
    begin(state, h)
    state.late = torch.full((), math.inf, dtype=torch.float32, device=state.w.device)


def swept_adam_step(state, G, h):
    """v <- (1 - beta) v + beta G;  s <- (1 - beta') s + beta' G*G;  w <- w - eta v / (sqrt(s) +
    eps), in one sweep over them.

    sonex-alexr2-2025, appendix E. No prox asks for the step size of each coordinate.
    """
    # torch.optim.Adam(fused=True) always corrects the bias of v and s, which this algorithm does not:
    # only the function below it takes the step count, and at an infinite count the corrections are 1.
    # For 1,000,000 weights and 32 rows a step takes 2.7 ms with it and 4.7 ms by ``adam_step``.
    torch._fused_adam_(
        [state.w],
        [G.contiguous()],
        [state.v],
        [state.s],
        [],
        [state.late],
        lr=h.eta,
        beta1=1 - h.beta,
        beta2=1 - h.beta_prime,
        eps=h.eps,
        weight_decay=0.0,
        amsgrad=False,
        maximize=False,
    )


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
    return


# ---- smoothing: a function f that is not smooth is replaced by its envelope, with the centre c,
#   envelope(t) = max over y of  <y, t> - f*(y) - lam / 2 |y - c|^2;
#   its gradient slope(t) is the y that attains the maximum
def slope_y1(t, c, h):
    """The y that attains the envelope of the penalty for centred: abs(E[z ~ D] s(w; z.x)) <= centre (kinks at
    -0.05, 0.05)."""
    lam = h.lam_y1
    x = t + lam * c
    width = h.rho * lam
    return h.rho * (((x + 0.05) / width).clamp(-1, 0) + ((x - 0.05) / width).clamp(0, 1))


def envelope_y1(t, c, h):
    """The envelope of the penalty for centred: abs(E[z ~ D] s(w; z.x)) <= centre (kinks at -0.05, 0.05)."""
    lam = h.lam_y1
    x = t + lam * c
    width = h.rho * lam
    slope_1 = ((x + 0.05) / width).clamp(-1, 0)
    slope_2 = ((x - 0.05) / width).clamp(0, 1)
    return (
        h.rho * (slope_1 * ((x + 0.05) - width / 2 * slope_1) + slope_2 * ((x - 0.05) - width / 2 * slope_2))
        - lam / 2 * c.square()
    )


# ---- f and g: the stochastic gradient, from the scores up
#   elements of a step: P all 174, n 128 of 1623, z 128 of 1797
def gradient(data, w, w_prev, u, c, batch, h):
    """The stochastic gradient G of auc_net: update the estimates u, then apply the chain rule."""
    z, N_n = batch
    n_z = 128
    n_P = 174
    n_n = 128
    x_n = data.D_x.index_select(0, N_n)
    x_z = data.D_x.index_select(0, z)
    # line 13: s(w; p.x); line 13: s(w; n.x); line 15: s(w; z.x)
    s_P, s_n, s_z = net_s.taped(w, data.x_P, x_n, x_z)
    t1 = (s_P[:, None] - s_n).sigmoid()  # line 13: sigmoid(s(w; p.x) - s(w; n.x))
    s_z_prev = net_s(w_prev, x_z)
    g_prev1 = s_z_prev.mean()
    u1 = track(u.u1, (), s_z.mean(), g_prev1, h)  # line 15: E[z ~ D] s(w; z.x)
    y1 = slope_y1(u1, c.y1, h)
    t2 = y1 / n_z
    t3 = t1 * (1 - t1)
    t4 = (-1 / n_P / n_n) * t3.sum(1)
    t5 = (1 / n_P / n_n) * t3.sum(0)
    u.y1[...] = u1
    return net_s.vjp(t4, t5, t2.expand((128,)))


# ---- the problem itself on all rows, in float64
def evaluate(data, w):
    """The minimised objective, and each constraint's values (left minus right side)."""
    scores = net_in_parts(net_s, w, data.D_x)
    s_P = scores[data.P]  # line 13: s(w; p.x)
    s_N = scores[data.N]  # line 13: s(w; n.x)
    t1 = -(s_P[:, None] - s_N).sigmoid().mean(1).mean()
    t2 = scores.mean().abs() - data.centre  # line 15: abs(E[z ~ D] s(w; z.x)) <= centre
    return torch.as_tensor(t1), {'centred': ('le', torch.as_tensor(t2))}


def blocks(data, w):
    """For each smoothed function its cells, exact arguments, slope, and largest slope (0: no penalty)."""
    scores = net_in_parts(net_s, w, data.D_x)
    g1 = scores.mean()
    return {'y1': ((), g1, slope_y1, 1)}


# ---- the smoothed problem on all rows, for the finish
def whole(data, w, c, h):
    """The objective on all rows without the terms of ``regulariser``. Envelopes replace functions with kinks,
    and penalties replace constraints."""
    scores = net_in_slices(net_s, w, data.D_x)
    s_P = scores[data.P]  # line 13: s(w; p.x)
    s_N = scores[data.N]  # line 13: s(w; n.x)
    t1 = envelope_y1(scores.mean(), c.y1, h)  # line 15: centred: abs(E[z ~ D] s(w; z.x)) <= centre
    t2 = (-(s_P[:, None] - s_N).sigmoid().mean(1).mean()) + t1
    return torch.as_tensor(t2)


def regulariser(w):
    """The value of the terms that ``project`` handles by their proximal maps."""
    return 0.0


def all_blocks(data, w):
    """``blocks`` with the functions inside expectations, which have one entry a row."""
    return blocks(data, w)


def constraint_values(data, w):
    """Each constraint's values (left minus right side)."""
    scores = net_in_slices(net_s, w, data.D_x)
    t1 = scores.mean().abs() - data.centre  # line 15: abs(E[z ~ D] s(w; z.x)) <= centre
    return {'centred': ('le', torch.as_tensor(t1))}


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
    regulariser=regulariser, constraint_values=constraint_values, begin=begin_late, update=swept_adam_step,
    step_sizes=step_sizes, advance=advance, solve=solve, finish=finish, one_pass=one_pass, restore=restore,
    own=DIMENSION, centred=True, nonconvex=True, oracles=22528, tol=TOL,
)


# ---- checkpoints: the state of a run in a folder


# the source: put_back, Keeper, FileKeeper, keeper_of_run, main
