"""Nets in emitted programs that are linear layers with functions of single entries between them: no
autograd is needed."""

from __future__ import annotations

import math

import torch


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


def layered(module: torch.nn.Module, shape: tuple[int, ...]) -> bool:
    """Whether a module is made of such layers, each with weights of its own, for rows of this shape."""
    layers = LayeredNet.row(module)
    linear = [layer for layer in layers if type(layer) is torch.nn.Linear]
    others = [layer for layer in layers if type(layer) is not torch.nn.Linear]
    known = all(type(layer) in LayeredNet.BACK and not getattr(layer, "inplace", False) for layer in others)
    rising = all(getattr(layer, "alpha", 1.0) >= 0 for layer in others)
    own = [id(p) for layer in linear for p in layer.parameters()]
    if not (known and rising and linear and own == [id(p) for p in module.parameters()]):
        return False
    with torch.no_grad():
        rows = next(module.parameters()).new_zeros((3, *shape))
        _, trace = LayeredNet(module, len(shape)).forward(
            torch.cat([p.reshape(-1) for p in module.parameters()]), (rows,)
        )
    return all(x.dim() == 2 for _, weights, x, _ in trace if weights is not None)
