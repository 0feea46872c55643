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
    O(n / (B1 sqrt(B2) eps^5)) iterations, here 1 / (1 * sqrt(22,272) * eps^5) = 6.7e-03 / eps^5: 6.7e+12 at eps =
    0.001
  minimised: maximize F becomes minimize -F; multipliers are those of the minimised problem
  smoothed: centred (a constraint: the penalty rho [c]_+ (equality: rho |c|) by its Moreau envelope)

Run it beside data.pt:  python solver.py --help
"""

import argparse
import math
import time
from pathlib import Path
from types import SimpleNamespace

import torch


def net_in_parts(net, w, rows):
    """The net's output for every row, without a gradient, in parts that fit the cache."""
    with torch.no_grad():
        return torch.cat([net(w, part) for part in rows.split(8192)])


def net_in_slices(net, w, rows):
    """The net's output for every row, slices of it computed again when autograd comes back."""
    checkpoint = torch.utils.checkpoint.checkpoint
    return torch.cat([checkpoint(net, w, part, use_reentrant=False) for part in rows.split(8192)])


SEED = 0
PRECISION = 'float32'
SECONDS = 25.0
ITERATIONS = None
CALLS = None
WAY = None
PASSES = None
TOL = 1e-06
THREADS = 1
SIGN = -1
LAYOUT = {'w': (0, 1057, (1057,))}
OWN = 1057
THIN = {}
HEAVY = False
ORACLES = 22528
no_grad = torch.no_grad

# ---- hyper-parameters
HYPER = {
    'theory': 0,
    'decay': 0,
    'blind': 0,
    'together': 1,
    'steady': 0,
    'eta': 0.002,
    'rho': 10.0,
    'lam': 0.0,
    'stage': 200,
    'longest': 4000,
    'gain': 0.0001,
    'patience': 12,
    'gamma': 0.1,
    'gamma_prime': 0.9,
    'beta': 0.1,
    'beta_prime': 0.01,
    'eps': 1e-08,
    'lam_y1': 0.1,
    'lam_inner': 0.01,
}
BLOCK = 64  # steps whose samples are drawn together
CENTRED = True


# ---- nets


class FlatNet:
    """A torch module evaluated at a flat parameter vector, in the order of ``named_parameters``.

    ``rank`` is the number of dims of one input. Several inputs go through the module as one batch.
    """

    def __init__(self, module, rank):
        self.module, self.rank = module.eval(), rank
        self.shapes = [(name, tuple(p.shape), p.numel()) for name, p in module.named_parameters()]
        self.tape: tuple = ()

    def forward(self, w, inputs, taped):
        parts = w.split([size for _, _, size in self.shapes])
        named = zip(parts, self.shapes, strict=True)
        parameters = {name: part.view(shape) for part, (name, shape, _) in named}
        if taped:
            parameters = {name: part.detach().requires_grad_() for name, part in parameters.items()}
        if any(b.is_floating_point() and b.dtype != w.dtype for b in self.module.buffers()):
            self.module.to(w.dtype)
        rows = [x.reshape(-1, *x.shape[x.dim() - self.rank :]) for x in inputs]
        out = torch.func.functional_call(self.module, parameters, (torch.cat(rows) if len(rows) > 1 else rows[0],))
        outs = out.split([len(x) for x in rows])
        return (
            [o.view(x.shape[: x.dim() - self.rank] + out.shape[1:]) for o, x in zip(outs, inputs, strict=True)],
            out,
            parameters,
        )

    def __call__(self, w, *inputs):
        """Outputs for the rows of each input, with a gradient where w asks for one."""
        with torch.set_grad_enabled(w.requires_grad and torch.is_grad_enabled()):
            outs, _, _ = self.forward(w, inputs, False)
        return outs[0] if len(outs) == 1 else outs

    def taped(self, w, *inputs):
        """Outputs for the rows of each input, kept until ``vjp``."""
        with torch.enable_grad():
            outs, whole, parameters = self.forward(w, inputs, True)
        self.tape = whole, list(parameters.values())
        outs = [o.detach() for o in outs]
        return outs[0] if len(outs) == 1 else outs

    def vjp(self, *adjoints):
        """The flat gradient of the sum of <adjoint, output> in the parameters, for the outputs of the last ``taped``."""
        (whole, parameters), self.tape = self.tape, ()
        adjoint = torch.cat([a.reshape(-1, *whole.shape[1:]) for a in adjoints])
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(whole, parameters, adjoint)])


net_s = FlatNet(torch.nn.Sequential(torch.nn.Linear(64, 16, bias=True), torch.nn.ELU(alpha=1.0), torch.nn.Linear(16, 1, bias=True), torch.nn.Flatten(start_dim=-2, end_dim=-1)), 1)


# ---- data: 3 arrays
INITIAL = {}


def as_namespace(tensors, device, dtype):
    """The arrays on the device, numbers in the working precision; parameters of the model."""
    data = SimpleNamespace(device=torch.device(device), dtype=dtype, waiting={})
    for key, value in tensors.items():
        if key.startswith("net_"):
            INITIAL[key] = value
        setattr(data, key, value.to(device=device, dtype=dtype) if value.is_floating_point() else value.to(device))
    data.centre = 0.05
    return data


def prepare(data):
    """What depends on the data alone, computed once."""
    data.all_p = torch.arange(174, device=data.device)
    data.x_p = data.D_x[data.P]
    return data


def prepare_full(data):
    """What a full pass needs of the data alone."""
    data.all_p = torch.arange(174, device=data.device)
    data.all_n = torch.arange(1623, device=data.device)
    data.all_p_2 = torch.arange(174, device=data.device)
    data.all_n_2 = torch.arange(1623, device=data.device)
    return data


# ---- variables, one flat vector
#   w[0:1057] = w[1057]
def start(rng, device, dtype):
    """The first iterate: zero, inside the simple sets; nets start from their own initialisation."""
    w = torch.zeros(1057, device=device, dtype=dtype)
    w[0:1057] = INITIAL['net_s'].to(device=device, dtype=dtype)
    project(w, 0.0, SimpleNamespace(**HYPER))
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


# ---- sampling, on the device
def draw(data, rng, T):
    """Positions and uniform numbers for T steps, each with a leading dim of T."""
    def epochs(name, n, size):
        # without replacement within each pass over the n elements; the rest of a pass waits for the next call
        left = data.waiting.get(name, [])
        while sum(map(len, left)) < T * size:
            left.append(torch.randperm(n, generator=rng, device=data.device))
        taken, rest = torch.cat(left).tensor_split([T * size])
        data.waiting[name] = [rest.clone()]
        return taken.view(T, size)

    n = epochs('n', 1623, 128)
    z = epochs('z', 1797, 128)
    return [n, z]


# ---- SONEX: sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)
def track(u, index, g, g_prev, h):
    """u_i <- (1 - gamma) u_i + gamma g_i(w_t) + gamma' (g_i(w_t) - g_i(w_{t-1})), one batch at both points.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    new = old + h.gamma * (g - old) + h.gamma_prime * (g - g_prev)
    u[index] = new
    return new


def step_sizes(h, inverse):
    """A step of 0 becomes the inverse of the gradient's Lipschitz constant, which ``inverse()`` measures at the start."""
    if h.eta <= 0:
        h.eta = inverse()


def begin(state, h):
    """v and s, at zero."""
    state.v, state.s = torch.zeros_like(state.w), torch.zeros_like(state.w)


def update(state, G, h):
    """v <- (1 - beta) v + beta G;  s <- (1 - beta') s + beta' G*G;  w <- w - eta v / (sqrt(s) + eps).

    sonex-alexr2-2025, appendix E. Returns the step size of each coordinate, which a separable prox must use.
    """
    state.v.lerp_(G, h.beta)
    state.s.mul_(1 - h.beta_prime).addcmul_(G, G, value=h.beta_prime)
    step = h.eta / (state.s.sqrt() + h.eps)
    state.w.addcmul_(state.v, step, value=-1)
    return step


def together(state, G, h):
    """The mean gradient of ``h.together`` batches at one w; None before the last of them (``state.met``: how many were met)."""
    if h.together == 1:
        return G
    state.sum = state.sum + G if state.met else G.clone()
    state.met = (state.met + 1) % h.together
    return None if state.met else state.sum / h.together


def advance(data, state, u, c, batch, h):
    """One step: the gradient at w, the update of w, prox and projections. Of several batches together w moves after the last."""
    G = gradient(data, state.w, state.w_prev, u, c, batch, h)
    state.w_prev.copy_(state.w)
    G = together(state, G, h)
    if G is not None:
        project(state.w, update(state, G, h), h)


def weigh(h, share, least=0.0):
    """gamma at a share of what it is, above ``least``; gamma' = 1 - gamma stays so."""
    if not hasattr(h, "gamma"):
        return
    paired = abs(getattr(h, "gamma_prime", 0.0) + h.gamma - 1.0) < 1e-9
    h.gamma = max(share * h.gamma, min(h.gamma, least))
    if paired:
        h.gamma_prime = 1.0 - h.gamma


def falling(h, share):
    """Within a stage: the step size at a share of its first, and with it, down to a tenth, the weight of new values, unless it is
    to be steady."""
    now = SimpleNamespace(**vars(h))
    now.eta = share * h.peak
    weigh(now, 1.0 if h.steady else max(share, 0.1))
    return now


def shrink_gamma(h):
    """From stage to stage estimates average over a longer window."""
    weigh(h, 0.7, least=0.05)


def slow_down(h, gained):
    """Where a stage gained nothing: smaller steps and longer windows of the estimates; at the longest, larger batches first."""
    if not gained:
        larger = getattr(h, "gamma", 0.0) <= 0.05 and h.together < 16
        h.peak *= 0.8 if larger else 0.6
        h.together *= 2 if larger else 1
        shrink_gamma(h)
    h.stage = min(int(1.3 * h.stage), h.longest)


def next_stage(h, gained, worst):
    """The next stage is longer; after one that gained nothing, steps are smaller, windows longer, at last batches larger."""
    if not h.theory:
        slow_down(h, gained)


def project(w, step, h):
    """Proximal maps of regularisers, projections on simple sets, in place; one step or one per coordinate."""
    return


# ---- f and g: the stochastic gradient, from the scores up
def gradient(data, w, w_prev, u, c, batch, h):
    """G for auc_net: estimates updated, then the chain rule through them."""
    n, z = batch
    N_n = data.N[n]
    x_n = data.D_x[N_n]
    x_z = data.D_x[z]
    # line 13: s(w; p.x); line 13: s(w; n.x); line 15: s(w; z.x)
    s_p, s_n, s_z = net_s.taped(w, data.x_p, x_n, x_z)
    t1 = (s_p[:, None] - s_n).sigmoid()  # line 13: sigmoid(s(w; p.x) - s(w; n.x))
    s_z_2 = net_s(w_prev, x_z)
    g1 = s_z_2.mean()
    u1 = track(u.u1, (), s_z.mean(), g1, h)  # line 15: E[z ~ D] s(w; z.x)
    c_y1 = c.y1
    y1 = h.rho * ((((u1 + h.lam_y1 * c_y1) + 0.05) / (h.rho * h.lam_y1)).clamp(-1, 0) + (((u1 + h.lam_y1 * c_y1) - 0.05) / (h.rho * h.lam_y1)).clamp(0, 1))
    t2 = y1 / 128
    t3 = t1 * (1 - t1)
    g2 = ((-4.489942528735632e-05) * t3).sum(1)
    g3 = (4.489942528735632e-05 * t3).sum(0)
    u.y1[...] = u1
    return net_s.vjp(g2, g3, t2.expand((128,)))


# ---- the problem itself, on all rows, in float64
def evaluate(data, w):
    """The minimised objective, and each constraint's values (left minus right side)."""
    scores = net_in_parts(net_s, w, data.D_x)
    s_p = scores[data.P]  # line 13: s(w; p.x)
    s_n = scores[data.N]  # line 13: s(w; n.x)
    t1 = -(s_p[:, None] - s_n).sigmoid().mean(1).mean()
    t2 = scores.mean().abs() - data.centre  # line 15: abs(E[z ~ D] s(w; z.x)) <= centre
    return torch.as_tensor(t1), {'centred': ('le', torch.as_tensor(t2))}


def blocks(data, w):
    """Per smoothed function: cells, exact arguments, slope, and its largest slope if it is a penalty."""
    scores_2 = net_in_parts(net_s, w, data.D_x)
    g1 = scores_2.mean()
    def slope_y1(t, y, h):  # centred: abs(E[z ~ D] s(w; z.x)) <= centre
        return h.rho * ((((t + h.lam_y1 * y) + 0.05) / (h.rho * h.lam_y1)).clamp(-1, 0) + (((t + h.lam_y1 * y) - 0.05) / (h.rho * h.lam_y1)).clamp(0, 1))
    return {'y1': ((), g1, slope_y1, 1)}


# ---- the loop


def slope_at(t, slope, centre, h):
    """The slope of a smoothed function at its argument, 0 where it is not finite: where its centre goes."""
    new = slope(t, centre.to(t.dtype), h)
    return torch.where(new.isfinite(), new, torch.zeros_like(new)).to(centre.dtype)


def centre_at(data, w, c, h):
    """c <- the slope of the smoothed function at the exact argument; where blocks keep their own y, moved in every step, that."""
    found = blocks(data, w)
    for name, (index, t, slope, _) in found.items():
        if not hasattr(h, "tau"):
            centre, index = getattr(c, name), index or (...,)
            centre[index] = slope_at(t, slope, centre[index], h)
    return found


def ending(began, stop, seconds, iterations, oracles=None):
    """``ended(count, calls)``: why a run ends after so many steps and oracle calls, or "" where it goes on."""

    def ended(count, calls=0):
        if stop is not None and stop():
            return "interrupted"
        spent = seconds is not None and time.perf_counter() - began > seconds
        spent = spent or (iterations is not None and count >= iterations) or (oracles is not None and calls >= oracles)
        return "the budget is used up" if spent else ""

    return ended


def summary(values):
    """Objective, summed and largest violation of an evaluation; all infinite where anything is not finite."""
    objective, constraints = values
    violations = [t.abs() if kind == "eq" else t.clamp(min=0) for kind, t in constraints.values()]
    found = float(objective), sum(float(t.sum()) for t in violations), max((float(t.max()) for t in violations), default=0.0)
    return found if all(map(math.isfinite, found)) else (math.inf, math.inf, math.inf)


def value_at(data, w):
    """The summary of the evaluation at w."""
    return summary(evaluate(data, w.to(data.dtype)))


def merit(point, weight):
    """Objective plus exact penalty; the weight follows the multipliers, since the penalty is exact above them alone."""
    return point[0] + weight * point[1] if point[1] else point[0]


def least(data, points, weight):
    """The summary of the point whose merit is the least, and that point."""
    return min(((value_at(data, x), x) for x in points), key=lambda pair: merit(pair[0], weight))


def leave_flat_start(w, G, rng):
    """Small random numbers where the derivative at the start is exactly zero: products of variables have it at zero, which
    no step would ever leave. Harmless at a minimum."""
    if w.numel() and float(G(w).abs().max()) == 0.0:
        w.add_(torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype), alpha=w.numel() ** -0.5)


def steepness(penalties, w, c, h, G):
    """The length of the constraints' summed gradients at w: that of G with all multipliers at 1, less that with all at 0."""
    kept, held = dict(vars(h)), {name: getattr(c, name).clone() for name in penalties}
    vars(h).update(dict.fromkeys(["rho", *("lam_" + name for name in penalties)], 1e6))
    slopes = []
    for y in (0.0, 1.0):
        for name in penalties:
            getattr(c, name).fill_(y)
        slopes.append(G(w).clone())
    vars(h).update(kept)
    for name in penalties:
        getattr(c, name).copy_(held[name])
    return float((slopes[1] - slopes[0]).norm())


def estimated(name, index, t, u, h):
    """How far a penalty's argument is off as steps estimate it: root mean square over its cells, of the last stages."""
    known = "off_" + name
    if hasattr(u, name):
        off = getattr(u, name)[index or (...,)] - t
        square = float(off[off.isfinite()].square().mean())
        if math.isfinite(square):
            setattr(h, known, math.sqrt(0.8 * square + 0.2 * getattr(h, known, math.sqrt(square)) ** 2))
    return getattr(h, known, 0.0)


def move_centres(data, w, c, h, worst, before, G, dtype, u=None):
    """Centres move to the slopes at w. Smoothing follows the spread of the arguments, that of penalties the square of their
    gradients where these become smaller, and is reduced where the violation does not fall tenfold, less so in the loop without
    estimates ``u``, whose steps do not fall within a stage, and not below twice what these are off over the multipliers' size (a
    tenth of rho at least). The merit's weight follows the multipliers, and rho grows where one at its bound does not help."""
    saturated, largest, kept, found = False, 0.0, hasattr(h, "tau"), centre_at(data, w, c, h)
    penalties = {name: bounded for name, (*_, bounded) in found.items() if bounded}
    if penalties and 0 < (steep := steepness(penalties, w.to(dtype), c, h, G)) < h.steep:
        for name in penalties:
            setattr(h, "lam_" + name, max((steep / h.steep) ** 2 * getattr(h, "lam_" + name), 1e-6))
        h.steep = steep
    for name, bounded in penalties.items():
        steepest = float(getattr(c, name).abs().max()) / bounded
        largest = max(largest, steepest)
        saturated |= steepest >= 0.99 * h.rho
    for name, (index, t, _, bounded) in found.items():
        lam, finite = getattr(h, "lam_" + name), t[t.isfinite()]
        if bounded and not kept:
            less = min(max(0.1 * before / worst, 0.7 if u is None else 0.25), 1.0) if worst > 1e-5 else 1.0
            lam = max(less * lam, 2 * estimated(name, index, t, u, h) / max(largest, 0.1 * h.rho))
        elif finite.numel() > 1 and not kept:
            spread = float((finite - finite.mean()).square().mean().sqrt())
            lam = min(lam, max(0.3 * spread, 0.25 * lam))
        setattr(h, "lam_" + name, lam)
    h.weight = max(h.weight, 2 * largest)
    if saturated and worst > 1e-3 and worst > 0.5 * before:
        h.rho *= 4


def thinned(data, seed=1):
    """The same data with fewer rows where pairs are many: evaluations between stages use these, the final one does not."""
    if not THIN:
        return data
    quick = SimpleNamespace(**vars(data))
    rng = torch.Generator(device=data.device).manual_seed(seed)
    for key, count in THIN.items():
        rows = getattr(data, key)
        chosen = torch.randperm(len(rows), generator=rng, device=data.device)[:count]
        setattr(quick, key, rows[chosen.sort().values])
    return quick


def opened(data, device, dtype, exact=None):
    """The bound data for exact values (float64), for those between stages (thinned where they are dear), and for steps."""
    exact = prepare_full(as_namespace(data, device, torch.float64)) if exact is None else exact
    quick = prepare_full(thinned(as_namespace(data, device, dtype))) if HEAVY else exact
    return exact, quick, prepare(as_namespace(data, device, dtype))


def record(history, progress, began, value, weight, **entry):
    """One more stage in the history, by the summary of the best point so far; ``progress`` sees it."""
    found = {"objective": value[0], "violation": value[2], "merit": merit(value, weight), "seconds": time.perf_counter() - began}
    history.append({"stage": len(history) + 1, **entry, **found})
    if progress is not None:
        progress(history[-1])


def smoothness(G, w):
    """The gradient's Lipschitz constant near w along its steepest direction: power iteration on differences of gradients."""
    base = G(w).clone()
    direction, size, found = base, 1e-3 * (1.0 + float(w.norm())), 0.0
    for _ in range(8):
        length = float(direction.norm())
        if not math.isfinite(length) or length == 0.0:
            break
        direction = (G(w + direction * (size / length)) - base) / size
        found = max(found, float(direction.norm())) if math.isfinite(float(direction.norm())) else found
    return found


def scale_smoothing(data, w, c, h, G, dtype):
    """lam and rho to begin with: a non-smooth objective is smoothed on a tenth of its arguments' size, on all of it where blocks
    keep their y, which a visit then moves by 1 / tau of its range; a penalty so that its curvature |grad c|^2 / lam is ten
    times the objective's, or the largest slope of all at the start a tenth of rho: by its own, a constraint that hardly is
    violated there would have no smoothing. rho is at least ten times |grad g_0| / |grad c|.

    ``G(w)`` is the gradient under the smoothing and the centres as they are.
    """
    penalties, violation, share = [], 0.0, 1.0 if hasattr(h, "tau") else 0.1
    for name, (index, t, slope, bounded) in blocks(data, w).items():
        finite = t[t.isfinite()]
        size = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
        setattr(h, "lam_" + name, 1e6 if bounded else h.lam or max(share * size, 1e-6))
        if bounded:
            penalties.append(name)
            violation = max(violation, 1e6 * float(slope_at(t, slope, getattr(c, name)[index or (...,)], h).abs().max()))
    if not penalties:
        return
    begin = w.to(dtype)
    curvature, free, h.steep = smoothness(G, begin), float(G(begin).norm()), steepness(penalties, begin, c, h, G)
    if h.steep > 1e-6 * free and math.isfinite(h.steep):
        h.rho *= 1.0 if h.decay else min(max(1.0, free / h.steep), 1e4)
        lam = 0.1 * h.steep**2 / curvature if curvature > 0 else 10 * h.steep / h.rho
    else:
        lam = 0.1
    for name in penalties:
        setattr(h, "lam_" + name, h.lam or min(max(lam, 1e-6), 10 * violation / h.rho or 1e4))


def status(stop, converged):
    """``converged``, ``interrupted`` or ``stopped``."""
    return "interrupted" if stop is not None and stop() else "converged" if converged else "stopped"


def tenfold(spent):
    """1, then 0.1 from half of the budget on, 0.01 from three quarters (sox-2022, section 4; sonex-alexr2-2025, appendix F)."""
    return 0.1 ** ((spent >= 0.5) + (spent >= 0.75))


def multipliers(data, w, c, h):
    """The slopes of the smoothed functions at w, of penalties their centres; and the most by which they are none there."""
    y, shift = SimpleNamespace(**{name: centre.clone() for name, centre in vars(c).items()}), 0.0
    unit = SimpleNamespace(**{k: 1.0 if k.startswith("lam_") else v for k, v in vars(h).items()})
    for name, (index, t, slope, bounded) in (blocks if whole is None else all_blocks)(data, w.to(data.dtype)).items():
        centre, index = getattr(y, name), index or (...,)
        new = slope_at(t, slope, centre[index], unit if bounded else h)
        length = 1.0 if bounded else getattr(h, "lam_" + name, 0.0)
        shift = max(shift, length * float((new - centre[index]).abs().max()))
        if not bounded:
            centre[index] = new
    return y, shift


def fixing(h):
    """Smoothing so wide that slopes are their centres."""
    return SimpleNamespace(**{k: 1e9 if k.startswith("lam_y") or k == "tau" else v for k, v in vars(h).items()})


def some(data, seed):
    """The data on random rows, in single precision."""
    part = thinned(data, seed)
    for key, x in vars(part).items():
        if torch.is_tensor(x) and x.is_floating_point():
            setattr(part, key, x.float())
    part.dtype = torch.float32
    return prepare_full(part)


def slope_of(data, w, c, h):
    """The gradient of the smoothed objective, without prox terms."""
    with torch.inference_mode(False), torch.enable_grad():
        x = w.detach().to(data.dtype, copy=True).requires_grad_()
        return torch.autograd.grad(whole(data, x, c, h), x)[0].to(w.dtype)


def passes(data, w, c, h):
    """Gradients from passes over random rows, and the largest violations there."""
    for k in range(64):
        with torch.inference_mode(False), torch.no_grad():
            part = some(data, 2 + k)
            found = slope_of(part, w, c, h), value_at(part, w)[2]
        yield found


def assess(w, G, spread, violations, shift, h, watch):
    """The residual from the mean G of some samples, ``spread`` being the sum of their squared distances from it."""
    count = len(violations)
    violation, times = sum(violations) / count, max(count * (count - 1), 1)
    apart = sum((v - violation) ** 2 for v in violations)
    step = min(1.0, 1e-3 * (1 + float(w.norm())) / max(float(G.norm()), 1e-300))
    moved = w - step * G
    project(moved, step, h)
    size = max(float((w - moved).norm()) / step, violation, shift)
    enough = count >= watch.few or (whole is not None and not HEAVY)
    return SimpleNamespace(residual=size, error=watch.z * math.sqrt(max(spread, apart) / times), enough=enough)


def residual(data, w, value, c, h, minibatches, watch, end):
    """The residual at w, how far it may be off (0: it is exact), and whether the samples are enough to tell."""
    held = SimpleNamespace(**vars(h))
    held.lam_inner = 0.1 * watch.tol
    if whole is None:
        y, shift = multipliers(data, w, c, held)
        samples: Any = ((G, value[2]) for G in minibatches(w, y, fixing(held)))
    else:
        with torch.inference_mode(False), torch.no_grad():
            w = w.double().clone()
            centre = SimpleNamespace(**{name: x.double().clone() for name, x in vars(c).items()})
            for name, shape in INSIDE.items():
                setattr(centre, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
                setattr(held, "lam_" + name, 0.1 * watch.tol)
            y, shift = multipliers(some(data, 1) if HEAVY else data, w, centre, held)
        held = fixing(held)
        samples = passes(data, w, y, held) if HEAVY else [(slope_of(data, w, y, held), value[2])]
    mean, spread, violations, count = torch.zeros_like(w), 0.0, [], 0
    for G, violation in samples:
        count += 1
        apart = G - mean
        mean = mean + apart / count
        spread += float(apart @ (G - mean))
        violations.append(violation)
        late = time.perf_counter() > end and count > 1
        if late or (count >= watch.few and count & (count - 1) == 0):  # at powers of two
            found = assess(w, mean, spread, violations, shift, h, watch)
            if late or not found.residual - found.error <= watch.tol < found.residual + found.error:
                return found
    return assess(w, mean, spread, violations, shift, h, watch)


def observe(watch, data, w, value, c, h, elapsed, minibatches):
    """Estimates the residual at w, unless that takes more than 3% of the time so far (15% where it is likely to decide), and
    counts the stages running in which it is at most ``tol`` with 95% probability. Returns both for the history.

    ``value`` is the summary of the evaluation at w; ``minibatches(w, y, h)`` goes on giving gradients with the multipliers y.
    """
    if watch.tol is None:
        return {}
    likely = watch.tol >= 1e-4 or (watch.kkt is not None and watch.kkt - watch.error <= 3 * watch.tol)
    room = (0.15 if likely else 0.03) * elapsed - watch.spent
    if watch.cost <= room:
        began = time.perf_counter()
        found = residual(data, w, value, c, h, minibatches, watch, began + room)
        if watch.kkt is not None:  # the first one warms up
            watch.cost = time.perf_counter() - began
            watch.spent += watch.cost
        if math.isfinite(found.residual):
            watch.kkt, watch.error = found.residual, found.error
            watch.held = watch.held + 1 if found.enough and found.residual + found.error <= watch.tol else 0
    return {"kkt": watch.kkt, "kkt_error": watch.error}


def reached(watch):
    """Why a run may end by the residual, in words, or ""."""
    if watch.held < 2:
        return ""
    sure = f" +- {watch.error:.1g}" if watch.error else ""
    return f"KKT residual {watch.kkt:.1g}{sure} at most {watch.tol:g}{', 95%' if watch.error else ''}, two stages running"


def watching(tol, cost, z=1.96, few=8):
    """What ``observe`` keeps; ``cost``: seconds that an estimate may take, at first a guess. Without ``tol`` none is made.

    ``z`` standard errors are what a mean may miss by; a standard error takes ``few`` samples.
    """
    return SimpleNamespace(tol=tol, z=z, few=few, spent=0.0, cost=cost, held=0, kkt=None, error=None)


def copy_state(state):
    """All that the step keeps, so that a stage can be taken back."""
    return SimpleNamespace(**{k: x.clone() if torch.is_tensor(x) else x for k, x in vars(state).items()})


def drawn(data, rng, count):
    """So many minibatches, one after another."""
    parts = draw(data, rng, count)
    return list(zip(*(part.unbind() for part in parts), strict=True)) if parts else [()] * count


def gradients(data, w, c, h, rng):
    """The gradients at w by one minibatch after another, each with estimates of its own."""
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    u = buffers(w.device, w.dtype)
    while True:
        for batch in drawn(data, rng, BLOCK):
            yield gradient(data, w, w, u, copy_state(c), batch, h)


def inverse_smoothness(G, w, value=None):
    """One over the gradient's Lipschitz constant at w, constraints active; no further than a first step goes downhill, by the
    gradient at its end or, where gradients jump, as ``value(w)`` falls in a parabola of this curvature."""
    largest = max(smoothness(G, w), smoothness(lambda x: G(x, 1.0), w) if CENTRED else 0.0)
    step, slope = 1.0 / largest if largest > 0 else 0.05, G(w)
    for _ in range(40):
        ahead, fall = w - step * slope, 0.5 * step * float(slope @ slope)
        if float(G(ahead) @ slope) >= 0 or (value is not None and value(ahead) <= value(w) - fall):
            break
        step *= 0.5
    return step


def mean_gradient(data, x, c, h, batches):
    """The gradient at x over some minibatches, each with estimates of its own."""
    return sum(gradient(data, x, x, buffers(x.device, x.dtype), copy_state(c), batch, h) for batch in batches) / len(batches)


def set_out(run, data, h, G, rng):
    """Step sizes, smoothing, the penalty's weight and the estimates to begin with."""
    w = run.state.w
    leave_flat_start(w, G, rng)
    run.state.w_prev.copy_(w)
    if CENTRED and not h.theory:
        scale_smoothing(data, w.to(data.dtype), run.c, h, G, w.dtype)

    def inverse(jumps=False):
        value = (lambda x: merit(value_at(data, x), h.rho)) if jumps else None
        return inverse_smoothness(lambda x, y=None: G(x, y, 1), w, value)

    step_sizes(h, inverse)
    h.peak, h.weight, run.eta = h.eta, 0.1 * h.rho, h.eta
    begin(run.state, h)
    run.u, run.average = buffers(w.device, w.dtype), w.clone()
    run.best, run.best_c, run.rho = copy_state(run.state), copy_state(run.c), h.rho


def take_steps(run, data, rng, h, length, iterations, ended):
    """So many steps; the average of the second half's iterates, by a theorem's constants of all. Why the run ends, or ""."""
    done, reason = 0, ""
    run.state.met, run.kept = 0, run.kept if h.theory else 0
    while done < length and not reason:
        h.eta = h.peak
        now = h if h.theory or h.decay else falling(h, max(1 - done / length, 0.02))
        for batch in drawn(data, rng, min(BLOCK, length - done)):
            if h.decay:
                h.eta = h.peak * tenfold(run.count / iterations)
            advance(data, run.state, run.u, run.c, batch, now)
            if h.theory or (2 * done >= length and not h.decay):
                run.kept += 1
                run.average.lerp_(run.state.w, 1.0 / run.kept)
            done, run.count = done + 1, run.count + 1
            reason = ended(run.count)
            if reason:
                break
        if run.broken is None and not math.isfinite(float(run.state.w.sum())):
            run.broken = run.count
    return reason


def go_back(run, h, finite):
    """To the best point; the estimates belong to the one that is left. What reformulations added has no place in the objective
    that points are compared by, and stays."""
    added = run.state.w[OWN:].clone()
    run.state, run.c, run.u = copy_state(run.best), copy_state(run.best_c), buffers(added.device, added.dtype)
    if finite:
        run.state.w[OWN:] = added
    begin(run.state, h)


def keep_the_better(run, data, h):
    """Of the last iterate and the average: steps go on from it, and it is the best point so far if it gains; else they go back.
    Returns its violation, whether its value is finite, and whether it gains enough."""
    value, chosen = least(data, [run.state.w, run.average] if run.kept else [run.state.w], h.weight)
    gain, finite = merit(run.value, h.weight) - merit(value, h.weight), math.isfinite(value[0])
    adapts = not h.theory and not h.decay
    if finite and adapts:
        run.state.w.copy_(chosen)
    if gain > 0 or h.decay or h.blind:
        run.best, run.value, run.best_c, run.rho = copy_state(run.state), value, copy_state(run.c), h.rho
        run.best.w.copy_(chosen)
    elif adapts and not (finite and CENTRED):
        go_back(run, h, finite)
    gained = h.blind or gain >= h.gain * abs(merit(run.value, h.weight))
    run.calm = 0 if gained else run.calm + 1
    return value[2], finite, gained


def solve(
    data, *, seed=0, device="cpu", dtype=torch.float32, seconds=30.0, iterations=None, oracles=None, progress=None, stop=None,
    tol=None, exact=None,
):  # fmt: skip
    """Run to the end of the budget, or until stages gain nothing more, or until the KKT residual is at most ``tol`` in two of
    them running. Returns the best point seen (``h.decay``: the last).

    ``oracles`` bounds the values g_i(w; xi) that steps ask for; evaluations between stages are no part of the algorithm.
    ``broken`` is the step by which iterates were not finite (the loop went back to the best point), or None.

    ``run`` is where it stands: the algorithm's state, estimates u and centres c; the average of the ``kept`` iterates; the best
    point so far with its value, centres and rho; how many steps (``count``) and how many stages without a gain (``calm``).
    """
    began = time.perf_counter()
    if oracles is not None:
        iterations = min(iterations or math.inf, max(1, int(oracles // max(ORACLES, 1))))
    ended = ending(began, stop, seconds, iterations)
    exact, quick, data = opened(data, device, dtype, exact)
    rng = torch.Generator(device=device).manual_seed(seed)
    h = SimpleNamespace(**HYPER)
    adapts = not h.theory and not h.decay
    w = start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone())
    run = SimpleNamespace(state=state, c=centres(device, dtype), kept=0, count=0, calm=0, broken=None)
    few = drawn(data, rng, min(8, math.ceil(256 / max(ORACLES, 1))))

    def G(x, y=None, most=None):
        c = run.c if y is None else SimpleNamespace(**{name: torch.full_like(v, y) for name, v in vars(run.c).items()})
        return mean_gradient(data, x, c, h, few[:most])

    def minibatches(x, y, held):
        return gradients(data, x, y, held, torch.Generator(device=device).manual_seed(seed + 1 + run.count))

    set_out(run, quick, h, G, rng)
    looked = time.perf_counter()
    run.value = value_at(quick, run.state.w)
    watch = watching(tol, 8 * (time.perf_counter() - looked))
    history: list = []
    worst, reason = run.value[2], ""
    while not reason:
        length = max(h.stage, iterations // 50) if h.decay else min(h.stage, (iterations or math.inf) - run.count)
        reason = take_steps(run, data, rng, h, length, iterations, ended)
        before, (worst, finite, gained) = worst, keep_the_better(run, quick, h)
        if not h.decay:
            next_stage(h, gained, worst)
        if adapts:
            run.state.w_prev.copy_(run.state.w)
        if CENTRED and finite and adapts:
            move_centres(quick, run.state.w.to(quick.dtype), run.c, h, worst, before, G, dtype, run.u)
        told = {"iteration": run.count, "oracles": run.count * ORACLES, "eta": h.eta if h.decay else h.peak}
        told |= observe(watch, exact, run.best.w, run.value, run.c, h, time.perf_counter() - began, minibatches)
        record(history, progress, began, run.value, h.weight, **told)
        if not reason and adapts:
            reason = reached(watch) or ("stages gain nothing more" if run.calm >= h.patience else "")
    if CENTRED and not adapts:
        centre_at(exact, run.best.w.double(), run.c, h)
    h.rho, w = run.rho, run.best.w.double()
    project(w, 0.0, h)  # to double precision
    return SimpleNamespace(
        w=w, c=run.c, h=h, eta=run.eta, history=history, iterations=run.count, seconds=time.perf_counter() - began,
        reason=reason, status=status(stop, adapts and watch.held >= 2), broken=run.broken, exact=exact,
    )  # fmt: skip


# ---- the finish: what it minimises
INSIDE = {}  # centres of functions inside expectations


def whole(data, w, c, h):
    """The objective with envelopes and penalties for its non-smooth parts, on all rows, without prox terms."""
    scores = net_in_slices(net_s, w, data.D_x)
    s_p = scores[data.P]  # line 13: s(w; p.x)
    s_n = scores[data.N]  # line 13: s(w; n.x)
    c_y1 = c.y1
    # line 15: centred: abs(E[z ~ D] s(w; z.x)) <= centre
    t1 = h.rho * ((((scores.mean() + h.lam_y1 * c_y1) + 0.05) / (h.rho * h.lam_y1)).clamp(-1, 0) * (((scores.mean() + h.lam_y1 * c_y1) + 0.05) - (h.rho * h.lam_y1) / 2 * (((scores.mean() + h.lam_y1 * c_y1) + 0.05) / (h.rho * h.lam_y1)).clamp(-1, 0)) + (((scores.mean() + h.lam_y1 * c_y1) - 0.05) / (h.rho * h.lam_y1)).clamp(0, 1) * (((scores.mean() + h.lam_y1 * c_y1) - 0.05) - (h.rho * h.lam_y1) / 2 * (((scores.mean() + h.lam_y1 * c_y1) - 0.05) / (h.rho * h.lam_y1)).clamp(0, 1))) - h.lam_y1 / 2 * c_y1.square()
    # line 15: centred: abs(E[z ~ D] s(w; z.x)) <= centre
    t2 = (-(s_p[:, None] - s_n).sigmoid().mean(1).mean()) + t1
    return torch.as_tensor(t2)


def all_blocks(data, w):
    """``blocks``, and the same of functions inside expectations, row by row."""
    return {**blocks(data, w)}


finish = None


def constraint_values(data, w):
    """Each constraint's values (left minus right side)."""
    scores = net_in_slices(net_s, w, data.D_x)
    t1 = scores.mean().abs() - data.centre  # line 15: abs(E[z ~ D] s(w; z.x)) <= centre
    return {'centred': ('le', torch.as_tensor(t1))}


def constraint_row(data, w):
    """All constraints' values as one vector, and which are equalities."""
    found = constraint_values(data, w).values()
    values = torch.cat([t.reshape(-1) for _, t in found])
    equal = torch.cat([torch.full((t.numel(),), kind == "eq", device=t.device) for kind, t in found])
    return values, equal


def jacobian(data, w, chosen):
    """Gradients of the chosen constraints, one backward pass each."""
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        values = constraint_row(data, x)[0].unbind()
    return torch.stack([torch.autograd.grad(values[k], x, retain_graph=True)[0] for k in chosen.tolist()])


def least_norm(J, values, equal):
    """The shortest d with values + J d <= 0 (= 0 where ``equal``): its dual y by coordinates (Hildreth 1957), d = -J' y."""
    K, y = J @ J.T, torch.zeros_like(values)
    K.diagonal().add_(1e-10 * float(K.diagonal().max()))
    for _ in range(300):
        for k in range(len(y)):
            new = y[k] + (values[k] - K[k] @ y) / K[k, k]
            y[k] = new if equal[k] else new.clamp(min=0)
    return -(J.T @ y)


def restore(found, data, *, seconds=None, passes=None, tol=1e-6, progress=None, stop=None, most=256):
    """Lowers the largest violation of what ``solve`` found, by least-norm steps on the violated constraints and those near.

    A step is kept if the violation falls and the objective (on ``thinned`` rows where pairs are many) rises by no more than the
    multipliers let it. ``passes`` bounds the evaluations of constraints, ``most`` the constraints of a step.
    """
    began, count, history = time.perf_counter(), 0, list(found.history)
    quick, h, w = thinned(data), found.h, found.w.to(data.device).double().clone()
    weight = getattr(h, "weight", 2 * h.rho)

    def violations(x):
        values, equal = constraint_row(data, x)
        return torch.where(equal, values.abs(), values.clamp(min=0)), values, equal

    def limit():
        late = seconds is not None and time.perf_counter() - began > seconds
        return late or (passes is not None and count >= passes) or (stop is not None and stop())

    amount, values, equal = violations(w)
    worst, value, count, moved = float(amount.max()), summary(evaluate(quick, w)), 1, True
    while moved and worst > tol and (count == 1 or not limit()):
        near = torch.where(equal, values.abs(), values).topk(min(most, len(values)))
        chosen = near.indices[near.values > -worst]
        d = least_norm(jacobian(data, w, chosen), values[chosen], equal[chosen])
        count, moved, step = count + 1, False, 1.0
        while not moved and step > 0.05:
            x = w + step * d
            project(x, 0.0, h)
            count += 1
            less, new_values, _ = violations(x)
            after = summary(evaluate(quick, x))
            risen = after[0] - value[0] - weight * float(amount.sum() - less.sum())
            moved = float(less.max()) < (1 - 0.1 * step) * worst and risen <= 1e-9 * (1 + abs(value[0]))
            if moved:
                w, amount, values, worst, value = x, less, new_values, float(less.max()), after
            step *= 0.5
        entry = {**history[-1], "stage": len(history) + 1, "objective": value[0], "violation": worst}
        entry |= {"merit": merit(value, weight), "seconds": found.seconds + time.perf_counter() - began}
        entry |= {"kkt": None, "kkt_error": None}  # those of the point before
        history.append({**entry, "passes": count})
        if progress is not None:
            progress(history[-1])
    return SimpleNamespace(**{**vars(found), "w": w, "history": history, "exact": data, "passes": count, "way": "restore"})


def solve_then_finish(
    data, *, way=None, passes=None, device="cpu", seconds=None, iterations=None, oracles=None, progress=None, stop=None, **more
):
    """``solve``, then ``finish`` if a quarter of a typical number of passes (400) fits into the time, else ``restore``.

    ``way`` and ``passes`` ask for one of them (or, empty, for none), and for that many passes. A budget of steps or oracle calls
    is the algorithm's alone.
    """
    began, own = time.perf_counter(), seconds
    with torch.inference_mode(False), torch.no_grad():
        exact = prepare_full(as_namespace(data, device, torch.float64))
        if way is None:
            way = ""
            if seconds is not None and iterations is None and oracles is None:
                needed = 400 * one_pass(exact, device) if finish is not None else float("inf")
                if needed < 1.6 * seconds:
                    way, own = "finish", min(needed + 1.0, 0.6 * seconds)
                elif restore is not None:
                    way, own = "restore", 0.7 * seconds
    limits = {"seconds": own, "iterations": iterations, "oracles": oracles}
    found = solve(data, device=device, progress=progress, stop=stop, tol=TOL, exact=exact, **limits, **more)
    if not way:
        return found
    with torch.inference_mode(False), torch.no_grad():
        left = None if seconds is None else max(seconds - (time.perf_counter() - began), 0.3 * seconds)
        end = finish if way == "finish" else restore
        return end(found, exact, seconds=left, passes=passes, tol=TOL, progress=progress, stop=stop)


# ---- report
def main():
    parser = argparse.ArgumentParser(description="Solve the model at the head of this file.")
    beside = Path(__file__).with_name("data.pt")
    parser.add_argument("--data", default=beside, help="the bound data (default: data.pt beside this file)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["float32", "float64"], default=PRECISION)
    parser.add_argument("--seconds", type=float, help=f"budget of time (default: {SECONDS}, or none where another is given)")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--oracles", type=float, default=CALLS, help="budget of values g_i(w; xi) that steps ask for")
    parser.add_argument("--out", help="write the variables here (torch.save)")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    if seconds is None and arguments.iterations is None and arguments.oracles is None:
        seconds = SECONDS
    torch.set_num_threads(THREADS)
    tensors = torch.load(arguments.data, weights_only=True)

    def show(entry):
        line = "stage {stage:>3}  step {iteration:>7}  objective {objective:.6g}  violation {violation:.2e}  {seconds:.1f} s"
        print(line.format(**entry), flush=True)

    with no_grad():
        found = solve_then_finish(tensors, seed=arguments.seed, device=arguments.device, dtype=getattr(torch, arguments.precision),
                      seconds=seconds, iterations=arguments.iterations, oracles=arguments.oracles, progress=show, way=WAY, passes=PASSES)
        objective, constraints = evaluate(found.exact, found.w)
    print(f"objective {SIGN * float(objective):.10g}   ({found.reason}, {found.iterations} steps)")
    for label, (_, values) in constraints.items():
        print(f"{label}: largest value {float(values.max()):.6g}")
    if arguments.out:
        torch.save({name: found.w[a:b].view(shape) for name, (a, b, shape) in LAYOUT.items()}, arguments.out)


if __name__ == "__main__":
    main()
