"""Nets in emitted programs: a module whose parameters are a slice of the flat vector w."""

from __future__ import annotations

import torch


class FlatNet:
    """A torch module evaluated at a flat parameter vector, in the order of ``named_parameters``: views
    of it stand in for its own parameters while it is called.

    ``rank`` is the number of dims of one input. Several inputs go through the module as one batch.
    """

    def __init__(self, module, rank):
        self.module, self.rank = module.eval(), rank
        self.own = list(module.parameters())
        self.sizes, self.shapes = [p.numel() for p in self.own], [p.shape for p in self.own]
        number = {id(p): k for k, p in enumerate(self.own)}
        owners = [part._parameters for part in module.modules()]
        self.places = [
            (held, name, number[id(p)]) for held in owners for name, p in held.items() if p is not None
        ]
        self.tape: tuple = ()

    def forward(self, w, inputs, taped):
        """The module's outputs with the weights w, (n, *output)."""
        if any(
            b.device != w.device or b.is_floating_point() and b.dtype != w.dtype
            for b in self.module.buffers()
        ):
            self.module.to(w.device, w.dtype)
        parameters = [part.view(shape) for part, shape in zip(w.split(self.sizes), self.shapes, strict=True)]
        if taped:
            parameters = [part.detach().requires_grad_() for part in parameters]
        rows = [x.reshape(-1, *x.shape[x.dim() - self.rank :]) for x in inputs]
        try:
            self.hold(parameters)
            out = self.module(torch.cat(rows) if len(rows) > 1 else rows[0])
        finally:
            self.hold(self.own)
        outs = out.split([len(x) for x in rows])
        return (
            [
                o.view(x.shape[: x.dim() - self.rank] + out.shape[1:])
                for o, x in zip(outs, inputs, strict=True)
            ],
            out,
            parameters,
        )

    def hold(self, parameters):
        """Put parameters in their places in the module."""
        for held, name, k in self.places:
            held[name] = parameters[k]

    def __call__(self, w, *inputs):
        """Outputs for the rows of each input, with a gradient where w asks for one."""
        with torch.set_grad_enabled(w.requires_grad and torch.is_grad_enabled()):
            outs, _, _ = self.forward(w, inputs, False)
        if len(outs) == 1:
            return outs[0]
        return outs

    def taped(self, w, *inputs):
        """Outputs for the rows of each input, kept until ``vjp``."""
        with torch.enable_grad():
            outs, whole, parameters = self.forward(w, inputs, True)
        self.tape = whole, parameters
        outs = [o.detach() for o in outs]
        if len(outs) == 1:
            return outs[0]
        return outs

    def vjp(self, *adjoints):
        """The flat gradient of the sum of <adjoint, output> in the parameters, for the outputs of the
        last ``taped``."""
        (whole, parameters), self.tape = self.tape, ()
        adjoint = torch.cat([a.reshape(-1, *whole.shape[1:]) for a in adjoints])
        with torch.enable_grad():
            total = (whole * adjoint).sum()
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(total, parameters)])


class FunctionalNet:
    """A torch module as a function of a flat parameter vector (in the order of ``named_parameters``)
    and of rows; autograd goes through it. ``rank`` is the number of dims of one input.
    """

    def __init__(self, module, rank):
        self.module, self.rank = module.eval(), rank
        self.shapes = [(name, tuple(p.shape), p.numel()) for name, p in module.named_parameters()]

    def __call__(self, w, x):
        parts = w.split([size for _, _, size in self.shapes])
        parameters = {
            name: part.view(shape) for part, (name, shape, _) in zip(parts, self.shapes, strict=True)
        }
        if any(
            b.device != w.device or b.is_floating_point() and b.dtype != w.dtype
            for b in self.module.buffers()
        ):
            self.module.to(w.device, w.dtype)
        rows = x.reshape(-1, *x.shape[x.dim() - self.rank :])
        out = torch.func.functional_call(self.module, parameters, (rows,))
        return out.view(x.shape[: x.dim() - self.rank] + out.shape[1:])
