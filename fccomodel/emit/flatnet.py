"""Nets in emitted programs: a module whose parameters are a slice of the flat vector w."""

from __future__ import annotations

import torch


class FlatNet:
    """A torch module evaluated at a flat parameter vector, in the order of ``named_parameters``."""

    def __init__(self, module):
        self.module = module.eval()
        self.shapes = [(name, tuple(p.shape), p.numel()) for name, p in module.named_parameters()]
        self.tape = {}

    def parameters(self, w, taped):
        parts = w.split([size for _, _, size in self.shapes])
        return {
            name: part.view(shape).detach().requires_grad_(taped)
            for part, (name, shape, _) in zip(parts, self.shapes, strict=True)
        }

    def __call__(self, w, x):
        """Outputs for the rows of x, without a gradient."""
        if next(self.module.buffers(), w).dtype != w.dtype:
            self.module.to(w.dtype)
        return self.squeeze(torch.func.functional_call(self.module, self.parameters(w, False), (x,)), x)

    def taped(self, w, x):
        """Outputs for the rows of x, kept until ``vjp``."""
        with torch.enable_grad():
            parameters = self.parameters(w, True)
            out = self.squeeze(torch.func.functional_call(self.module, parameters, (x,)), x)
        plain = out.detach()
        self.tape[id(plain)] = (plain, out, list(parameters.values()))
        return plain

    def squeeze(self, out, x):
        """A last dim of 1 is dropped: a real output."""
        return out.squeeze(-1) if out.dim() == x.dim() and out.shape[-1] == 1 else out

    def vjp(self, plain, adjoint):
        """The flat gradient of <adjoint, out> in the parameters."""
        _, out, parameters = self.tape.pop(id(plain))
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(out, parameters, adjoint)])


def constructor(name: str, module: torch.nn.Module) -> str:
    """The text that makes the module again: torch's own layers by their printed form, anything else by its file."""
    text = layers(module)
    if text is not None:
        return f"net_{name} = FlatNet({text})"
    source = type(module)
    import inspect

    code = inspect.getsource(source).rstrip()
    return f"import torch.nn as nn\nimport torch.nn.functional as F\n\n\n{code}\n\n\nnet_{name} = FlatNet({source.__name__}())"


def layers(module: torch.nn.Module) -> str | None:
    """A sequential stack of torch's own layers as text, or None."""
    kind = type(module)
    if isinstance(module, torch.nn.Sequential):
        parts = [layers(child) for child in module]
        return None if None in parts else f"torch.nn.Sequential({', '.join(p for p in parts if p)})"
    if isinstance(module, torch.nn.Linear):
        return f"torch.nn.Linear({module.in_features}, {module.out_features}, bias={module.bias is not None})"
    if kind.__module__.startswith("torch.nn") and not list(module.parameters()):
        extra = module.extra_repr()
        return f"torch.nn.{kind.__name__}({extra})"
    return None
