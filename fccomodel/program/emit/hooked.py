"""A net in an emitted program whose gradient comes by autograd's own ``backward()``, hooks included."""

from __future__ import annotations

import torch

from fccomodel.program.emit.flatnet import batched, follow


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
