"""Nets in emitted programs: a module whose parameters are a slice of the flat vector w."""

from __future__ import annotations

import torch


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


class FlatNet:
    """A torch module evaluated at a flat parameter vector, in the order of ``named_parameters``: views
    of it stand in for its own parameters while it is called.

    ``rank`` is the number of dims of one input; for a module of several inputs a tuple, and ``whole``
    numbers the inputs that are whole. Several calls go through the module as one batch.
    """

    def __init__(self, module, rank, whole=()):
        self.module, self.whole = module.eval(), whole
        self.ranks = rank if isinstance(rank, tuple) else (rank,)
        self.own = list(module.parameters())
        self.sizes = [p.numel() for p in self.own]
        self.shapes = [p.shape for p in self.own]
        number = {id(p): k for k, p in enumerate(self.own)}
        owners = [part._parameters for part in module.modules()]
        self.places = [
            (held, name, number[id(p)]) for held in owners for name, p in held.items() if p is not None
        ]
        self.tape: tuple = ()

    def forward(self, w, inputs, taped):
        """The module's outputs with the weights w, (n, *output)."""
        follow(self.module, w)
        parts = zip(w.split(self.sizes), self.shapes, strict=True)
        parameters = [part.view(shape) for part, shape in parts]
        if taped:
            parameters = [part.detach().requires_grad_() for part in parameters]
        along, rows = batched(inputs, self.ranks, self.whole)
        try:
            self.hold(parameters)
            out = self.run(rows, w.dtype)
        finally:
            self.hold(self.own)
        outs = out.split([shape.numel() for shape in along])
        return (
            [o.view(shape + out.shape[1:]) for o, shape in zip(outs, along, strict=True)],
            out,
            parameters,
        )

    def run(self, rows, dtype):
        """The module's outputs with the parameters that it holds, in the precision ``dtype``."""
        return self.module(*rows)

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
        gradients = torch.autograd.grad(total, parameters, materialize_grads=True)  # 0 for those not used
        return torch.cat([g.reshape(-1) for g in gradients])


class HalfNet(FlatNet):
    """A ``FlatNet`` that steps run in bfloat16, by autocast; its weights and outputs stay in the precision
    of w, and so do passes over all rows."""

    half = True

    def run(self, rows, dtype):
        """The module's outputs, by autocast in steps."""
        with torch.autocast(rows[0].device.type, torch.bfloat16, enabled=self.half):
            return self.module(*rows).to(dtype)

    def exact(self, w, *inputs):
        """Outputs in the precision of w."""
        self.half = False
        try:
            return self(w, *inputs)
        finally:
            self.half = True


class FunctionalNet:
    """A torch module as a function of a flat parameter vector (in the order of ``named_parameters``)
    and of rows; autograd goes through it. ``rank`` and ``whole`` are as of ``FlatNet``.
    """

    def __init__(self, module, rank, whole=()):
        self.module, self.whole = module.eval(), whole
        self.ranks = rank if isinstance(rank, tuple) else (rank,)
        self.shapes = [(name, tuple(p.shape), p.numel()) for name, p in module.named_parameters()]

    def __call__(self, w, x):
        parts = w.split([size for _, _, size in self.shapes])
        parameters = {
            name: part.view(shape) for part, (name, shape, _) in zip(parts, self.shapes, strict=True)
        }
        follow(self.module, w)
        (along,), rows = batched([x], self.ranks, self.whole)
        out = torch.func.functional_call(self.module, parameters, tuple(rows))
        return out.view(along + out.shape[1:])


class FrozenNet:
    """A torch module whose weights stay as they are, as a function of rows. ``rank`` and ``whole`` are as
    of ``FlatNet``."""

    def __init__(self, module, rank, whole=()):
        self.module, self.whole = module.eval(), whole
        self.ranks = rank if isinstance(rank, tuple) else (rank,)

    def __call__(self, x):
        """The outputs for some rows, with a gradient in rows that ask for one."""
        first = x[0] if isinstance(x, tuple) else x
        follow(self.module, first)
        (along,), rows = batched([x], self.ranks, self.whole)
        needs_gradient = any(one.requires_grad for one in rows)
        with torch.set_grad_enabled(needs_gradient and torch.is_grad_enabled()):
            out = self.module(*rows)
        return out.view(along + out.shape[1:])
