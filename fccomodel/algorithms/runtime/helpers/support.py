"""Small functions that emitted programs may call. The emitter copies those that a program names.

They need only torch and the standard library, so the tests here run the text that users run.
"""

from __future__ import annotations

import hashlib
import math

from fccomodel.core.lazy import torch
from fccomodel.library.distributions import noise


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


def alike(arrays, key, like):
    """The array with this key on the device and in the precision of ``like``. It is made once for each, and
    kept with the arrays.
    """
    own_key, source = (key, like.device, like.dtype), arrays[key]
    if own_key not in arrays or arrays[own_key][0] is not source:
        with torch.inference_mode(False):
            arrays[own_key] = source, source.to(like)
    return arrays[own_key][1]


def gradient_of(value, x, keep=False):
    """The gradient of ``value`` with respect to x: 0 where it does not depend on x. ``keep``: keep the
    graph for further gradients.
    """
    if value.requires_grad:
        return torch.autograd.grad(value, x, retain_graph=keep)[0]
    return torch.zeros_like(x)


def in_range(start, size, r, skip=None):
    """Row positions start + floor(r * size) of uniform r in [0, 1), stepping over ``skip`` (an offset,
    or -1)."""
    k = (r * size).long().clamp(max=size - 1)
    if skip is None:
        return start + k
    return start + k + ((skip >= 0) & (k >= skip)).long()


def run_places(places, size):
    """Positions 0 .. n - 1 along the dim of n ``places`` in runs of ``size`` rows; in a longer run, rows at
    equal distances.
    """
    at = torch.arange(places.numel(), device=places.device).view(places.shape)
    longer = size > at.numel()
    if not longer.any():
        return at.expand(torch.broadcast_shapes(at.shape, size.shape))
    return torch.where(longer, at * size // at.numel(), at)


def run_weights(places, size, dtype):
    """How many rows each of the ``run_places`` represents: 0 behind the end of a run."""
    at = torch.arange(places.numel(), device=places.device).view(places.shape)
    longer, weights = size > at.numel(), (at < size).to(dtype)
    if not longer.any():
        return weights
    return torch.where(longer, size.to(dtype) / at.numel(), weights)


def mixed(x):
    """A hash of x with 63 bits, each of which depends on all of x (the finaliser of splitmix64, Steele, Lea
    and Flood 2014, without the sign bit).
    """
    x = (x ^ (x >> 30 & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ (x >> 27 & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return (x ^ (x >> 31 & 0x1FFFFFFFF)) & 0x7FFFFFFFFFFFFFFF


def shuffled(places, n, key):
    """The images of the places 0 <= k < n under a random permutation of all n, which the key determines.
    Memory is used for these places alone.

    k = l b + r is a point of an a x b grid with a b >= n. Six rounds move l or r by a hash of the other,
    which is a bijection of the grid (Black and Rogaway 2002). A point that leaves 0 .. n - 1 is moved again
    until it is back; at most a points leave.
    """
    a = math.isqrt(n - 1) + 1
    b = -(-n // a)

    def moved(k):
        """The position of k after six rounds of a Feistel network."""
        left, right = k // b, k % b
        for turn in range(0, 6, 2):
            left = (left + mixed(right * 8 + turn + key) % a) % a
            right = (right + mixed(left * 8 + turn + 1 + key) % b) % b
        return left * b + right

    images = moved(places)
    while bool((outside := images >= n).any()):
        images = torch.where(outside, moved(images), images)
    return images


def by_segment(values, dim, cells, sizes, shape, how):
    """Sums or means of ``values`` over the segments that ``cells`` assigns along ``dim``; ``dim``
    becomes ``shape``."""
    total = values.new_zeros(values.shape[:dim] + (len(sizes),) + values.shape[dim + 1 :]).index_add_(
        dim, cells, values
    )
    if how == "mean":
        total = total / sizes.to(values.dtype).view((-1,) + (1,) * (total.dim() - dim - 1))
    return total.reshape(total.shape[:dim] + tuple(shape) + total.shape[dim + 1 :])


def reduce_by_cell(reduce, values, first, size, shape, *options):
    """``reduce`` of the ``size`` rows from ``first`` on, for each cell; the cells have this shape.

    Cells of similar sizes are padded to one length, which is at most twice the length of each.
    """
    result = values.new_zeros(len(size))
    steps = (size.to(torch.float64).clamp(min=1).log2() - 1e-9).ceil()
    for step in steps.unique():
        cells = (steps == step).nonzero()[:, 0]
        places = torch.arange(int(size[cells].max()), device=size.device)
        inside = (places < size[cells, None]).to(values.dtype)
        at = (first[cells, None] + places).clamp(max=len(values) - 1)
        result = result.index_copy(0, cells, reduce(values[at], 1, *options, mask=inside))
    return result.view(shape)


def log_mean_by(x, shares, dim):
    """log mean exp(x) along ``dim`` from the shares of the terms in their sum: the largest x, minus the log
    of n times its share.
    """
    return x.amax(dim) - (x.shape[dim] * shares.amax(dim)).log()


def log_mean_exp(x, dim):
    """log mean exp(x) along ``dim``; at least -1e30, which stands for a mean of zeros."""
    count = math.prod(x.shape[k] for k in (dim if isinstance(dim, tuple) else (dim,)))
    if not x.requires_grad:
        return (torch.logsumexp(x, dim) - math.log(count)).clamp(min=-1e30)
    top = x.detach().amax(dim, keepdim=True)  # the same, its exponentials kept for the gradient
    top = top.clamp(-1e30, torch.finfo(x.dtype).max)
    total = (x - top).exp_().sum(dim).clamp(min=torch.finfo(x.dtype).tiny)
    return (top.squeeze(dim) + total.log() - math.log(count)).clamp(min=-1e30)


def log_by_segment(values, dim, cells, sizes, shape, how):
    """``by_segment`` for numbers that are given by their logarithms."""
    shape_of_segments = values.shape[:dim] + (len(sizes),) + values.shape[dim + 1 :]
    index = cells.view((-1,) + (1,) * (values.dim() - dim - 1)).expand_as(values)
    top = values.new_full(shape_of_segments, -1e30).scatter_reduce_(dim, index, values, "amax")
    total = by_segment((values - top.index_select(dim, cells)).exp(), dim, cells, sizes, (len(sizes),), how)
    return (
        (top + total.log())
        .clamp(min=-1e30)
        .reshape(shape_of_segments[:dim] + tuple(shape) + shape_of_segments[dim + 1 :])
    )


def cumulated(values, after, groups=None):
    """Sums of ``values`` from each one on (``after``) or up to each one, followed by a 0.

    ``groups`` (lines, longest) holds the positions in ``values`` of each line, and the length of ``values``
    where a line has ended.
    """
    if groups is None:
        lines = values
    else:
        lines = torch.cat([values, values.new_zeros(1)])[groups]
    if after:
        sums = lines.flip(-1).cumsum(-1).flip(-1)
    else:
        sums = lines.cumsum(-1)
    return torch.cat([sums.flatten(), values.new_zeros(1)])


def log_cumulated(values, after, groups=None):
    """``cumulated`` for numbers that are given by their logarithms."""
    if groups is None:
        lines = values
    else:
        lines = torch.cat([values, values.new_zeros(1)])[groups]
    if after:
        sums = lines.flip(-1).logcumsumexp(-1).flip(-1)
    else:
        sums = lines.logcumsumexp(-1)
    return torch.cat([sums.flatten(), values.new_full((1,), -math.inf)])


def increasing(x):
    """The order of numbers. It sorts their bits as integers, which is several times as fast in torch."""
    bits = x.view(torch.int64 if x.dtype == torch.float64 else torch.int32)
    return torch.where(bits < 0, bits ^ torch.iinfo(bits.dtype).max, bits).argsort()


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


def sum_of_pieces_in_runs(a, b, start, size, pieces):
    """sum of f(a + b_j) over the ``size`` rows j from ``start`` on, entry by entry; f as in
    ``mean_of_pieces``.

    It uses a merge sort tree: every range of rows consists of O(log n) blocks of 2^l rows, and the b of
    each block are sorted.
    """
    a, start, size = torch.broadcast_tensors(a, start, size)
    shape, n = a.shape, len(b)
    order = increasing(b.detach())
    centre = b.detach()[order[n // 2]]
    b, a = b - centre, a.reshape(-1) + centre
    rank = torch.empty_like(order)
    rank[order] = place = torch.arange(n, device=b.device)
    ends = [torch.searchsorted(b.detach()[order], (high - a).detach()) for high, *_ in pieces]
    total, at = torch.zeros_like(a), torch.stack([start.reshape(-1), (start + size).reshape(-1)]) + 1
    for level in range(n.bit_length()):
        keys, inside = ((place + 1 >> level) * n + rank).sort()
        ordered = b[inside]
        for sign, row in ((1, at[0]), (-1, at[1])):  # all rows from the start on, less those from the end on
            met = ((row >> level & 1 == 1) & (row <= n)).nonzero()[:, 0]
            if len(met):
                block = (row[met] >> level) * n
                first, *lasts = [
                    torch.searchsorted(keys, block + (x[met] if x is not None else 0)) for x in (None, *ends)
                ]
                total = total.index_add(0, met, sign * sum_of_pieces(a[met], ordered, first, lasts, pieces))
        at = at + (at & 1 << level)
    return total.view(shape)


def unsegment(values, dim, count, cells, sizes, how):
    """The reverse of ``by_segment``: each row gets the value of its segment. The segments are the ``count``
    dims from ``dim`` on.
    """
    rows = values.flatten(dim, dim + count - 1).index_select(dim, cells)
    if how == "mean":
        rows = rows / sizes[cells].to(rows.dtype).view((-1,) + (1,) * (rows.dim() - dim - 1))
    return rows


def spread(shape, index, values):
    """Zeros of ``shape`` with ``values`` added at ``index``."""
    index = tuple(
        torch.full((), k, dtype=torch.long, device=values.device) if isinstance(k, int) else k for k in index
    )
    return values.new_zeros(shape).index_put_(index, values, accumulate=True)


def row_blocks(rows, size):
    """The inputs of a net in blocks of rows: a tensor, or a tuple with one tensor for each input."""
    if isinstance(rows, tuple):
        return zip(*(one.split(size) for one in rows), strict=True)
    return rows.split(size)


def net_in_blocks(net, w, rows, precision):
    """The net's output for every row, without a gradient, in small blocks and in the precision of the
    steps.
    """
    working = getattr(torch, precision)
    with torch.no_grad():
        weights = w.to(working)
        several = tuple(one.to(working) for one in rows) if isinstance(rows, tuple) else rows.to(working)
        call = getattr(net, "exact", net)
        return torch.cat([call(weights, part) for part in row_blocks(several, 256)]).to(w.dtype)


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


def net_adjoints(net, w, rows, adjoint):
    """The gradients of <adjoint, output> in the parameters of a net and in each of its inputs; the output
    is computed again."""
    with torch.enable_grad():
        inputs = [one.detach().requires_grad_() for one in (rows if isinstance(rows, tuple) else (rows,))]
        w = w.detach().requires_grad_()
        out = net(w, tuple(inputs) if isinstance(rows, tuple) else inputs[0])
        total = (out * adjoint).sum()  # an adjoint given to ``grad`` would load sympy: half a second
    return torch.autograd.grad(total, [w, *inputs], materialize_grads=True)


def frozen_adjoints(net, rows, adjoint):
    """The gradients of <adjoint, output> in each input of a frozen net; the output is computed again."""
    with torch.enable_grad():
        inputs = [one.detach().requires_grad_() for one in (rows if isinstance(rows, tuple) else (rows,))]
        out = net(tuple(inputs) if isinstance(rows, tuple) else inputs[0])
        total = (out * adjoint).sum()
    return torch.autograd.grad(total, inputs, materialize_grads=True)


def fixed_noise(family, shape, seed, data):
    """The same draws at every call: common random numbers for a distribution that a full pass samples."""
    rng = torch.Generator(device="cpu").manual_seed(seed)
    return noise(family, shape, rng, "cpu", torch.float64).to(data.device, data.dtype)
