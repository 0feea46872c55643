"""neyman_pearson: a solver for

    1  # Neyman-Pearson classification: of all linear scores that miss few tumours, the one with the fewest false alarms.
    2  # Both error rates are expectations over one class; the logistic loss stands for the error itself.
    3  model neyman_pearson;
    4
    5  dim d;
    6  data D : table(x: real[d], y: {0, 1});  # y = 1: malignant
    7  param tau >= 0 default 0.05;  # bound on the surrogate miss rate
    8  param mu >= 0 default 0.005;
    9  var w[d];
   10  def score(x) = dot(w, x);
   11
   12  minimize false_alarms: E[z ~ D | z.y == 0] log1pexp(score(z.x)) + mu * sumsq(w);
   13  subject to
   14    misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau;

How it is solved

  SONEX (sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)), adam steps, practical step sizes;
    O(n / (B1 sqrt(B2) eps^5)) iterations, here 1 / (1 * sqrt(569) * eps^5) = 4.2e-02 / eps^5: 4.2e+13 at eps = 0.001
  prox: mu * sumsq(w) (no data, and the prox of squared_l2 is known)
  smoothed: misses (a constraint: the penalty rho [c]_+ (equality: rho |c|) by its Moreau envelope)

Run it beside data.pt:  python solver.py --help
"""

import argparse
import math
import time
from pathlib import Path
from types import SimpleNamespace

import torch


SEED = 0
PRECISION = 'float32'
SECONDS = 25.0
ITERATIONS = None
CALLS = None
WAY = None
PASSES = None
TOL = 1e-06
THREADS = 1
SIGN = 1
LAYOUT = {'w': (0, 31, (31,))}
OWN = 31
THIN = {}
HEAVY = False
ORACLES = 569
no_grad = torch.inference_mode

# ---- hyper-parameters
HYPER = {
    'theory': 0,
    'decay': 0,
    'blind': 0,
    'together': 1,
    'steady': 0,
    'eta': 0.05,
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


# ---- data: 3 arrays
INITIAL = {}


def as_namespace(tensors, device, dtype):
    """The arrays on the device, numbers in the working precision; parameters of the model."""
    data = SimpleNamespace(device=torch.device(device), dtype=dtype, waiting={})
    for key, value in tensors.items():
        if key.startswith("net_"):
            INITIAL[key] = value
        setattr(data, key, value.to(device=device, dtype=dtype) if value.is_floating_point() else value.to(device))
    data.mu = 0.005
    data.tau = 0.05
    return data


def prepare(data):
    """What depends on the data alone, computed once."""
    data.all_z = torch.arange(357, device=data.device)
    data.all_z_2 = torch.arange(212, device=data.device)
    data.x_z_2 = data.D_x[data.D_z_2]
    return data


def prepare_full(data):
    """What a full pass needs of the data alone."""
    data.all_z = torch.arange(357, device=data.device)
    data.all_z_2 = torch.arange(212, device=data.device)
    data.all_z_3 = torch.arange(357, device=data.device)
    data.all_z_2_2 = torch.arange(212, device=data.device)
    data.all_z_4 = torch.arange(212, device=data.device)
    return data


# ---- variables, one flat vector
#   w[0:31] = w[31]
def start(rng, device, dtype):
    """The first iterate: zero, inside the simple sets; nets start from their own initialisation."""
    w = torch.zeros(31, device=device, dtype=dtype)
    project(w, 0.0, SimpleNamespace(**HYPER))
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


# ---- sampling, on the device
def draw(data, rng, T):
    """Positions and uniform numbers for T steps, each with a leading dim of T."""
    return []


def prox_squared_l2(v: torch.Tensor, step: float | torch.Tensor, mu: float) -> torch.Tensor:
    """Shrinks v by the factor 1 + 2 step mu."""
    return v / (1 + 2 * step * mu)


# ---- SONEX: sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)
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
    # mu * sumsq(w)
    w.copy_(prox_squared_l2(w, step, mu=0.005))


# ---- f and g: the stochastic gradient, from the scores up
def gradient(data, w, w_prev, u, c, batch, h):
    """G for neyman_pearson: estimates updated, then the chain rule through them."""
    scores = data.D_x @ w
    s_z = scores[data.D_z]  # line 10: dot(w, x)
    t1 = -(data.x_z_2 @ w)  # line 14: -score(z.x)
    c_y1 = c.y1
    t2 = torch.nn.functional.softplus(t1, threshold=40).mean() - data.tau
    y1 = h.rho * (((t2 + h.lam_y1 * c_y1) / (h.rho * h.lam_y1)).clamp(0, 1))
    t3 = -((y1 / 212) * t1.sigmoid())
    t4 = w.new_zeros(569).index_add_(0, data.D_z, (0.0028011204481792717 * s_z.sigmoid()))
    u.y1[...] = t2
    return t3 @ data.x_z_2 + t4 @ data.D_x


# ---- the problem itself, on all rows, in float64
def evaluate(data, w):
    """The minimised objective, and each constraint's values (left minus right side)."""
    scores = data.D_x @ w
    s_z = scores[data.D_z]  # line 10: dot(w, x)
    # line 12: E[z ~ D | z.y == 0] log1pexp(score(z.x)) + mu * sumsq(w)
    t1 = torch.nn.functional.softplus(s_z, threshold=40).mean() + (data.mu * w.square().sum(-1))
    s_z_2 = scores[data.D_z_2]  # line 10: dot(w, x)
    # line 14: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau
    t2 = torch.nn.functional.softplus((-s_z_2), threshold=40).mean() - data.tau
    return torch.as_tensor(t1), {'misses': ('le', torch.as_tensor(t2))}


def blocks(data, w):
    """Per smoothed function: cells, exact arguments, slope, and its largest slope if it is a penalty."""
    scores_2 = data.D_x @ w
    s_z_2_2 = scores_2[data.D_z_2]
    t3 = torch.nn.functional.softplus((-s_z_2_2), threshold=40).mean() - data.tau
    def slope_y1(t, y, h):  # misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau
        return h.rho * (((t + h.lam_y1 * y) / (h.rho * h.lam_y1)).clamp(0, 1))
    return {'y1': ((), t3, slope_y1, 1)}


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
    scores = data.D_x @ w
    s_z = scores[data.D_z]  # line 10: dot(w, x)
    s_z_2 = scores[data.D_z_2]  # line 10: dot(w, x)
    c_y1 = c.y1
    t1 = torch.nn.functional.softplus((-s_z_2), threshold=40).mean() - data.tau
    # line 14: misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau
    t2 = h.rho * (((t1 + h.lam_y1 * c_y1) / (h.rho * h.lam_y1)).clamp(0, 1) * ((t1 + h.lam_y1 * c_y1) - (h.rho * h.lam_y1) / 2 * ((t1 + h.lam_y1 * c_y1) / (h.rho * h.lam_y1)).clamp(0, 1))) - h.lam_y1 / 2 * c_y1.square()
    # line 14: misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau
    t3 = torch.nn.functional.softplus(s_z, threshold=40).mean() + t2
    return torch.as_tensor(t3)


def value_squared_l2(w: torch.Tensor, mu: float) -> torch.Tensor:
    """mu |w|_2^2"""
    return mu * w.square().sum()


def regulariser(w):
    """The terms with a prox."""
    return float(value_squared_l2(w[0:31], mu=0.005))


def all_blocks(data, w):
    """``blocks``, and the same of functions inside expectations, row by row."""
    return {**blocks(data, w)}


def constraint_values(data, w):
    """Each constraint's values (left minus right side)."""
    scores = data.D_x @ w
    s_z = scores[data.D_z_2]  # line 10: dot(w, x)
    # line 14: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau
    t1 = torch.nn.functional.softplus((-s_z), threshold=40).mean() - data.tau
    return {'misses': ('le', torch.as_tensor(t1))}


def cautious_step(at, w):
    """Half of one over the gradient's Lipschitz constant near w."""
    largest = smoothness(lambda x: at(x)[1], w)
    return 0.5 / largest if largest > 0 and math.isfinite(largest) else 1.0


def forward_backward(at, prox, w, step):
    """The proximal gradient step from w, and the forward-backward envelope there (``prox(x, step)`` moves x, in place, to the
    proximal point of the rest, and returns the rest's value there)."""
    value, gradient = at(w)
    while True:
        new = w - step * gradient
        rest = prox(new, step)
        move = new - w
        model = float(gradient @ move) + float(move @ move) / (2 * step)
        envelope = value + model + rest
        if math.isfinite(envelope) or step < 1e-14:
            break
        step *= 0.1
    return SimpleNamespace(w=w, value=value, gradient=gradient, new=new, move=move, model=model, envelope=envelope, step=step)


def direction(pairs, residual):
    """-H residual, by the two loops of L-BFGS over pairs (change of w, change of the residual)."""
    d, left = -residual.clone(), []
    for s, y in reversed(pairs):
        a = float(s @ d) / float(s @ y)
        d -= a * y
        left.append(a)
    if pairs:
        s, y = pairs[-1]
        d *= float(s @ y) / float(y @ y)
    for (s, y), a in zip(pairs, reversed(left), strict=True):
        d += (a - float(y @ d) / float(s @ y)) * s
    return d


def panoc(at, prox, w, step, tol, limit):
    """Minimise the function that ``at`` differentiates, plus the rest that ``prox`` knows, from w until the fixed-point residual
    is ``tol`` or ``limit()`` says stop.

    Returns the point, its residual |w - prox(w - step grad)| / step, and the step.
    """
    pairs: list = []
    now = forward_backward(at, prox, w, step)
    while True:
        size = float(now.move.norm()) / now.step
        if size <= tol or limit():
            return now.new, size, now.step
        while True:  # the step must be below 1/L near w
            ahead = forward_backward(at, prox, now.new, now.step)
            if ahead.value <= now.value + now.model + 1e-12 * abs(now.value) or now.step < 1e-14:
                break
            now, pairs = forward_backward(at, prox, now.w, 0.5 * now.step), []
        residual = -now.move / now.step
        d = direction(pairs, residual) if pairs else now.move
        enough, tau, after = now.envelope - 1e-4 * now.step * size**2, 1.0, ahead
        while pairs and tau > 0.05:
            tried = forward_backward(at, prox, now.w + (1 - tau) * now.move + tau * d, now.step)
            level = now.envelope + 1e-13 * abs(now.envelope)  # where rounding hides the descent, the residual tells
            nearer = tried.envelope <= level and float(tried.move.norm()) <= 0.9 * float(now.move.norm())
            if (tried.envelope <= enough or nearer) and tried.step == now.step:
                after = tried
                break
            tau *= 0.5
        bend = ahead.value - now.value - float(now.gradient @ now.move)
        if after is ahead and bend <= 0.2 * float(now.move @ now.move) / (2 * now.step):  # hardly curved along the move
            now, pairs = forward_backward(at, prox, ahead.w, 2 * ahead.step), []
            continue
        s, y = after.w - now.w, -after.move / after.step - residual
        if float(s @ y) > 1e-12 * float(s.norm()) * float(y.norm()) and after.step == now.step:
            pairs = [*pairs[-14:], (s, y)]
        now = after


def excess(data, w):
    """By how much each constraint is violated, differentiable in w."""
    return {label: t if kind == "eq" else t.clamp(min=0) for label, (kind, t) in constraint_values(data, w).items()}


def least_violation(data, w, h, limit, count, most=2000):
    """Minimise 1/2 sum_k v_k^2 of the violations v over the simple sets, from w, by at most ``most`` passes.

    Returns the point x, v there by label, the largest, and how near a feasible point can be where constraints are convex: for
    every y of the simple sets sum_k v_k c_k(y) >= |v|^2 - |g| |y - x|, g being the gradient with the nearest normal of the
    sets, which leaves no feasible point nearer than |v|^2 / |g|.
    """

    def at(w):
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            total = 0.5 * sum(t.square().sum() for t in excess(data, x).values())
        return float(total), torch.autograd.grad(total, x)[0]

    def prox(x, step):
        project(x, 0.0, h)
        return 0.0

    last = count.passes + most
    x, _, step = panoc(at, prox, w, cautious_step(at, w), 1e-10, lambda: limit() or count.passes > last)
    moved = forward_backward(at, prox, x, step)
    x, normal = moved.new, -moved.move / moved.step - moved.gradient
    left = float((at(x)[1] + normal).norm())
    weights = {label: t.abs() for label, t in excess(data, x).items()}
    squares = sum(float(t.square().sum()) for t in weights.values())
    worst = max((float(t.max()) for t in weights.values()), default=0.0)
    return SimpleNamespace(w=x, violation=worst, weights=weights, nearest=squares / left if left else math.inf)


def stagnant(history):
    """The violation of the best point has not halved over the second half of the stages."""
    violations = [entry["violation"] for entry in history]
    return len(violations) > 3 and violations[-1] > 0.5 * violations[len(violations) // 2]


def conflict(least, enough, far=0.0):
    """The failure that a point of least violation is evidence of: more than ``enough`` is left, and no feasible point is within
    ``far`` times its size (all where constraints are convex)."""
    if least.violation <= enough or least.nearest < far * (1 + float(least.w.norm())):
        return None
    return {"kind": "infeasible", "violation": least.violation, "weights": least.weights, "nearest": least.nearest}


def falls_for_ever(data, w, d, h, tol, limit, count):
    """How the objective goes on from w along d, as far as 100 (1 + |w|): ``unbounded`` where it falls in proportion or faster,
    ``unattained`` where more slowly; None where it rises, or a constraint or a set ends it. Points that violate a constraint are
    moved to the nearest that do so little; what that little may be worth, at ``h.weight`` for each unit, is no fall. The model's
    own variables go on, not those of reformulations alone."""
    length = float(d.norm())
    if not length > 0 or not math.isfinite(length):
        return None
    here, fallen = summary(evaluate(data, w)), []
    for far in (1.0, 3.0, 10.0, 100.0):
        way = far * (1 + float(w.norm()))
        x = w + d * (way / length)
        inside = x.clone()
        project(inside, 0.0, h)
        value, allowed = summary(evaluate(data, x)), max(tol, here[2]) + 1e-6 * way
        end = x
        if value[2] > allowed and math.isfinite(value[2]):
            back = least_violation(data, x, h, limit, count).w
            if float((back - x).norm()) < 0.5 * way:
                end, value = back, summary(evaluate(data, back))
        if float((end - w)[:OWN].norm()) < 0.1 * way:
            return None
        fallen.append(here[0] - merit(value, h.weight))
        if value[2] > allowed or not torch.allclose(inside, x) or not fallen[-1] > 1e-10 * (1e-6 + abs(here[0])):
            return None
    return "unbounded" if fallen[-1] > 3 * fallen[-2] else "unattained"


def without_end(data, w, further, h, tol, limit, count):
    """That the objective falls for ever along w itself or towards a point found ``further`` on, or None."""
    for d in (further - w, w):
        kind = falls_for_ever(data, w, d, h, tol, limit, count)
        if kind:
            return {"kind": kind, "direction": d}
    return None


def differentiated(data, c, h, count):
    """w -> value and gradient of ``whole``; ``count`` has their number, the last value and the size of the last w."""

    def at(w):
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = whole(data, x, c, h)
        count.value, count.size = float(value), float(w.norm())
        return count.value, torch.autograd.grad(value, x)[0]

    return at


def centre_rows(data, w, c, h):
    """Centres for the functions inside expectations, one per row, smoothed on a tenth of their arguments' size."""
    found = all_blocks(data, w) if INSIDE else {}
    for name, shape in INSIDE.items():
        t = found[name][1]
        setattr(c, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
        setattr(h, "lam_" + name, max(0.1 * float(t[t.isfinite()].square().mean().sqrt()), 1e-6))


def shift_centres(data, w, c, h):
    """Moves the centres to the slopes at w. Returns by how much, in units of the functions' arguments; whether a multiplier is
    at its bound; and the largest one."""
    shifts, saturated, largest = {}, False, 0.0
    for name, (index, t, slope, bounded) in all_blocks(data, w).items():
        centre = getattr(c, name)
        index = index if index else (...,)
        new = slope_at(t, slope, centre[index], h)
        shifts[name] = getattr(h, "lam_" + name) * float((new - centre[index]).abs().max())
        centre[index] = new
        if bounded:
            steepest = float(centre.abs().max()) / bounded
            largest = max(largest, steepest)
            saturated |= steepest >= 0.99 * h.rho
    return shifts, saturated, largest


def full_problem(found, data, *, seconds, passes, tol, stop):
    """What rounds work on, from where ``found`` ended, on ``data`` in float64: the smoothed problem with its centres c and its
    parameters h, ``at`` (value and gradient), ``prox`` (of the rest), ``limit()`` (to stop at), ``endless()`` (w runs away)."""
    began = time.perf_counter()
    h = SimpleNamespace(**vars(found.h))
    c = SimpleNamespace(**{name: centre.to(data.device).double().clone() for name, centre in vars(found.c).items()})
    w = found.w.to(data.device).double().clone()
    centre_rows(data, w, c, h)
    count = SimpleNamespace(passes=0, value=0.0, size=0.0)
    value = summary(evaluate(data, w))
    floor, ceiling = -1e10 * (1 + abs(value[0])), 1e9 * (1 + float(w.norm()))

    def endless():
        return count.value < floor or count.size > ceiling

    def limit():
        late = seconds is not None and time.perf_counter() - began > seconds
        return late or (passes is not None and count.passes >= passes) or (stop is not None and stop()) or endless()

    def prox(x, step):
        project(x, step, h)
        return regulariser(x)

    at = differentiated(data, c, h, count)
    return SimpleNamespace(
        data=data, c=c, h=h, w=w, value=value, at=at, prox=prox, limit=limit, endless=endless, count=count, tol=tol
    )


def first_point(full, history):
    """Where rounds start: w, the best point and its value so far, the step, the accuracy of the first round; and the failure of
    constraints that conflict, where the stages before could not lower their violation."""
    data, h, w, value, count, tol = full.data, full.h, full.w, full.value, full.count, full.tol
    h.weight = 2 * max(0.05 * h.rho, shift_centres(data, w, full.c, h)[2])
    step = cautious_step(full.at, w)
    enough = max(tol, 0.1 * float(forward_backward(full.at, full.prox, w, step).move.norm()) / step)
    best, failure = w, None
    if value[2] > max(tol, 1e-4) and stagnant(history):
        least = least_violation(data, w, h, full.limit, count, 200)
        failure = conflict(least, max(tol, 1e-3 * value[2]), far=100.0)
        best = w if failure is None else least.w
    return SimpleNamespace(
        w=w, best=best, value=value, step=step, enough=enough, error=math.inf, failure=failure, shifts={}, raised=[],
        searched=False,
    )  # fmt: skip


def raise_penalty(now, full, violation):
    """A penalty whose multiplier is at its bound becomes stronger. Once that has helped little, the least violation that there is
    tells whether constraints conflict; where they do not, the next round starts there."""
    full.h.rho *= 4
    now.raised.append(violation)
    if now.searched or len(now.raised) <= 3 or violation <= 0.3 * now.raised[0]:
        return
    now.searched, least = True, least_violation(full.data, now.w, full.h, full.limit, full.count)
    if least.violation > max(1e-2 * full.tol, 1e-3 * violation) and not full.limit():
        now.best, now.failure = least.w, conflict(least, 0.0)
    else:
        now.w = least.w


def next_round(now, full):
    """Minimises the smoothed problem at fixed centres, then moves these; the point is kept if it is the best. False where the
    penalty was too weak to hold the point: it is stronger now."""
    data, h, count, tol = full.data, full.h, full.count, full.tol
    begin, last = now.w, count.passes + 500
    now.w, residual, now.step = panoc(
        full.at, full.prox, now.w, 2 * now.step, now.enough, lambda: full.limit() or count.passes > last
    )
    value = summary(evaluate(data, now.w))
    if full.endless() and value[2] > 1e-6 * float(now.w.norm()):
        now.w, count.value, count.size, now.step = now.best.clone(), 0.0, 0.0, 0.1 * now.step
        h.rho *= 4
        return False
    shifts, saturated, steepest = shift_centres(data, now.w, full.c, h)
    h.weight = max(h.weight, 2 * steepest)
    if merit(value, h.weight) <= merit(now.value, h.weight) + 1e-9 * (1 + abs(now.value[0])):
        now.best, now.value = now.w.clone(), value
    for name, shift in shifts.items():
        if shift > tol and shift > 0.5 * now.shifts.get(name, math.inf):
            setattr(h, "lam_" + name, 0.5 * getattr(h, "lam_" + name))
    if count.passes > last and falls_for_ever(data, now.w, now.w - begin, h, tol, full.limit, count) == "unbounded":
        now.failure = {"kind": "unbounded", "direction": now.w - begin}
    if saturated and value[2] > tol:
        raise_penalty(now, full, value[2])
    now.shifts, now.error = shifts, max([residual, value[2], *shifts.values()])
    now.enough = max(tol, min(now.enough, 0.3 * now.error))
    return True


def descent_without_end(now, full):
    """The failure of an objective that goes on falling from the best point on, or None; where rounds have converged, a stricter
    one shows in which direction."""
    count, tol, further = full.count, full.tol, now.best
    if now.error <= tol:
        end = count.passes + 200
        further, _, _ = panoc(full.at, full.prox, now.best, now.step, 1e-3 * tol, lambda: full.limit() or count.passes > end)
    return without_end(full.data, now.best, further, full.h, tol, full.limit, count)


def finish(found, data, *, seconds=None, passes=None, tol=1e-6, progress=None, stop=None):
    """Continue from what ``solve`` found, on ``data`` in float64; its point is replaced by one of as small a merit.

    ``passes`` bounds the evaluations of ``whole``, ``seconds`` the time; ``tol`` is the stationarity, the violation and the
    shift of the centres to end at. ``failure`` of what it returns names why there is no solution, with the evidence, or is None.
    """
    began = time.perf_counter() - found.seconds
    full = full_problem(found, data, seconds=seconds, passes=passes, tol=tol, stop=stop)
    history, rounds = list(found.history), 0
    now = first_point(full, history)
    while now.error > tol and not full.limit() and rounds < 100 and now.failure is None:
        rounds += 1
        if next_round(now, full):
            told = {"iteration": found.iterations, "oracles": history[-1]["oracles"], "eta": now.step, "kkt": now.error}
            record(history, progress, began, now.value, full.h.weight, **told, passes=full.count.passes)
    failure = now.failure or descent_without_end(now, full)
    ended = status(stop, now.error <= tol)
    reason = "the budget is used up" if found.status == "converged" else found.reason
    if now.error <= tol:
        reason = f"converged: stationarity, violation and shift of the multipliers at most {tol:g}"
    reason = ended if ended == "interrupted" else failure["kind"] if failure else reason
    more = {"w": now.best, "c": full.c, "h": full.h, "history": history, "exact": data, "passes": full.count.passes}
    more |= {"way": "finish", "failure": failure, "reason": reason, "status": ended}
    return SimpleNamespace(**{**vars(found), **more})


def one_pass(data, device):
    """Seconds that ``whole`` and its gradient take, the least of a few times after the first."""
    h, c = SimpleNamespace(**HYPER), centres(device, torch.float64)
    w = start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    centre_rows(data, w, c, h)
    at = differentiated(data, c, h, SimpleNamespace(passes=0))
    at(w)
    taken: list = []
    while len(taken) < 5 and sum(taken) < 0.2:
        began = time.perf_counter()
        at(w)
        taken.append(time.perf_counter() - began)
    return min(taken)


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
