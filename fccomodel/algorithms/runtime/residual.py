"""How far the best point of a stage is from the KKT conditions of the problem: shown while a run goes on, and a reason to end it.

The multipliers y of the constraints are their centres; those of the other smoothed functions are the slopes at their exact
arguments, which are subgradients at arguments shifted by lam |y - centre|. With them the gradient G of the smoothed objective is
that of the Lagrangian. The residual is the largest of

    |w - prox(w - s G)| / s,      the violation of the constraints,      |slope(c + y) - y| of the penalties,      the shifts

G comes from a pass over all rows; of pairs that are too many, from passes over random rows; else from minibatches. From K samples
its mean misses G by no more than z s / sqrt(K) with 95% probability, s^2 being the sum of the variances of its entries (of all
normal vectors with this sum, those along a line are the worst: G. Szekely and N. Bakirov, Extremal probabilities for Gaussian
quadratic forms, 2003). The emitter copies it.
"""

import math
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from fccomodel.algorithms.runtime.progress import slope_at, thinned, value_at

if TYPE_CHECKING:  # what the emitted program defines around this text
    HEAVY = False
    INSIDE: dict[str, tuple[int, ...]] = {}
    whole: Any = None
    all_blocks = blocks = prepare_full = project = whole


def watching(tol, cost, z=1.96, few=8):
    """What ``observe`` keeps; ``cost``: seconds that an estimate may take, at first a guess. Without ``tol`` none is made.

    ``z`` standard errors are what a mean may miss by; a standard error takes ``few`` samples.
    """
    return SimpleNamespace(tol=tol, z=z, few=few, spent=0.0, cost=cost, held=0, kkt=None, error=None)


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


def slope_of(data, w, c, h):
    """The gradient of the smoothed objective, without prox terms."""
    with torch.inference_mode(False), torch.enable_grad():
        x = w.detach().to(data.dtype, copy=True).requires_grad_()
        return torch.autograd.grad(whole(data, x, c, h), x)[0].to(w.dtype)


def some(data, seed):
    """The data on random rows, in single precision."""
    part = thinned(data, seed)
    for key, x in vars(part).items():
        if torch.is_tensor(x) and x.is_floating_point():
            setattr(part, key, x.float())
    part.dtype = torch.float32
    return prepare_full(part)


def passes(data, w, c, h):
    """Gradients from passes over random rows, and the largest violations there."""
    for k in range(64):
        with torch.inference_mode(False), torch.no_grad():
            part = some(data, 2 + k)
            found = slope_of(part, w, c, h), value_at(part, w)[2]
        yield found
