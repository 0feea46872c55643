"""Nets in emitted programs: a module whose parameters are a slice of the flat vector w."""

from __future__ import annotations

import torch


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
        if any(b.device != w.device or b.is_floating_point() and b.dtype != w.dtype for b in self.module.buffers()):
            self.module.to(w.device, w.dtype)
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


class FunctionalNet:
    """A torch module as a function of a flat parameter vector (in the order of ``named_parameters``) and of rows; autograd goes
    through it. ``rank`` is the number of dims of one input.
    """

    def __init__(self, module, rank):
        self.module, self.rank = module.eval(), rank
        self.shapes = [(name, tuple(p.shape), p.numel()) for name, p in module.named_parameters()]

    def __call__(self, w, x):
        parts = w.split([size for _, _, size in self.shapes])
        parameters = {name: part.view(shape) for part, (name, shape, _) in zip(parts, self.shapes, strict=True)}
        if any(b.device != w.device or b.is_floating_point() and b.dtype != w.dtype for b in self.module.buffers()):
            self.module.to(w.device, w.dtype)
        rows = x.reshape(-1, *x.shape[x.dim() - self.rank :])
        out = torch.func.functional_call(self.module, parameters, (rows,))
        return out.view(x.shape[: x.dim() - self.rank] + out.shape[1:])
