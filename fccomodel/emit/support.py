"""Small functions that emitted programs may call; the emitter copies the source of those that are used.

Plain torch, no other import: what is tested here is the text that runs.
"""

from __future__ import annotations

import torch


def in_range(start, size, r, skip=None):
    """Row positions start + floor(r * size) of uniform r in [0, 1), leaving out ``skip`` (an offset, or -1)."""
    if skip is None:
        return start + torch.minimum((r * size).long(), size - 1)
    size = size - (skip >= 0).long()
    k = torch.minimum((r * size).long(), size - 1)
    return start + k + ((skip >= 0) & (k >= skip)).long()


def by_segment(values, dim, cells, sizes, shape, how):
    """Sums or means of ``values`` over the segments that ``cells`` assigns along ``dim``; ``dim`` becomes ``shape``."""
    total = values.new_zeros(values.shape[:dim] + (len(sizes),) + values.shape[dim + 1 :]).index_add_(dim, cells, values)
    if how == "mean":
        total = total / sizes.to(values.dtype).view((-1,) + (1,) * (total.dim() - dim - 1))
    return total.reshape(total.shape[:dim] + tuple(shape) + total.shape[dim + 1 :])


def unsegment(values, dim, count, cells, sizes, how):
    """The reverse of ``by_segment``: each row gets its segment's value, ``count`` dims from ``dim`` on being the segments."""
    rows = values.flatten(dim, dim + count - 1).index_select(dim, cells)
    if how == "mean":
        rows = rows / sizes[cells].to(rows.dtype).view((-1,) + (1,) * (rows.dim() - dim - 1))
    return rows


def spread(shape, index, values):
    """Zeros of ``shape`` with ``values`` added at ``index``."""
    return values.new_zeros(shape).index_put_(
        tuple(torch.as_tensor(k, device=values.device) for k in index), values, accumulate=True
    )


def onto_simplex(x, dim):
    """The nearest point of {q >= 0, sum q = 1} along ``dim``."""
    ordered = x.sort(dim=dim, descending=True).values
    count = torch.arange(1, x.shape[dim] + 1, device=x.device, dtype=x.dtype).view((-1,) + (1,) * (x.dim() - 1 - dim % x.dim()))
    shift = (ordered.cumsum(dim) - 1) / count
    last = (ordered > shift).sum(dim, keepdim=True) - 1
    return (x - shift.gather(dim, last)).clamp(min=0)


def reduce_max(x, dim, mask=None):
    return (x if mask is None else x.masked_fill(mask == 0, float("-inf"))).amax(dim)


def reduce_min(x, dim, mask=None):
    return (x if mask is None else x.masked_fill(mask == 0, float("inf"))).amin(dim)


def reduce_prod(x, dim, mask=None):
    return (x if mask is None else torch.where(mask == 0, torch.ones_like(x), x)).prod(dim)


def reduce_cvar(x, dim, tail, mask=None):
    """The mean of the largest ``tail`` fraction along ``dim``, the boundary element counted in part."""
    n = x.shape[dim] if mask is None else mask.sum(dim, keepdim=True)
    ordered = (x if mask is None else x.masked_fill(mask == 0, float("-inf"))).sort(dim=dim, descending=True).values
    count = torch.arange(x.shape[dim], device=x.device, dtype=x.dtype).view((-1,) + (1,) * (x.dim() - 1 - dim % x.dim()))
    weight = (tail * n - count).clamp(0, 1)
    return (torch.where(weight > 0, ordered, torch.zeros_like(ordered)) * weight).sum(dim) / weight.sum(dim)


def reduce_topk(x, dim, k, mask=None):
    """The mean of the ``k`` largest along ``dim``."""
    return reduce_cvar(x, dim, k / x.shape[dim], mask)


def reduce_logmeanexp(x, dim, theta=1.0, mask=None):
    n = x.shape[dim] if mask is None else mask.sum(dim)
    shifted = (x if mask is None else x.masked_fill(mask == 0, float("-inf"))) / theta
    return theta * (torch.logsumexp(shifted, dim) - torch.log(torch.as_tensor(n, dtype=x.dtype, device=x.device)))


def reduce_pmean(x, dim, p, mask=None):
    power = x.pow(p)
    return (power.mean(dim) if mask is None else (power * mask).sum(dim) / mask.sum(dim)).pow(1 / p)


def net_in_parts(net, w, rows):
    """The net's output for every row, without a gradient, in parts that fit the cache."""
    with torch.no_grad():
        return torch.cat([net(w, part) for part in rows.split(8192)])


def fixed_noise(family, shape, serial, data):
    """The same draws at every call: common random numbers for a distribution that is sampled in a full pass."""
    key = ("noise", serial)
    if not hasattr(data, "noise"):
        data.noise = {}
    if key not in data.noise:
        rng = torch.Generator(device=data.device).manual_seed(1729 + serial)
        data.noise[key] = noise(family, shape, rng, data.device).to(torch.float64)
    return data.noise[key]


def noise(family, shape, rng, device):
    """Standard draws: normal, laplace and exponential of scale 1, otherwise uniform on [0, 1)."""
    if family == "normal":
        return torch.randn(shape, generator=rng, device=device)
    uniform = torch.rand(shape, generator=rng, device=device)
    if family == "exponential":
        return -torch.log1p(-uniform)
    if family == "laplace":
        return torch.sign(uniform - 0.5) * -torch.log1p(-2 * (uniform - 0.5).abs())
    return uniform
