"""Minibatches: in expectation they are the whole, and each pass over a set takes every element once."""

from __future__ import annotations

import types

import pytest
import torch
from emitted_models import HEAD, NET, Case, make, mlp

from fccomodel import interpret

#: models that are affine in every sampled reduction, so that a minibatch gradient is unbiased
LINEAR = {
    "subset": "E[z ~ P] sigmoid(dot(w, z.x)) * z.time",
    "static_condition": "E[z ~ P | z.time > 1 and z.a == 0] sigmoid(dot(w, z.x))",
    "sum": "sum[z in P] sigmoid(dot(w, z.x)) / 30",
    "pairs": "E[p ~ P, n ~ N] sigmoid(dot(w, n.x - p.x) * p.time)",
    "nested": "mean[p in P] E[n ~ N] sigmoid(dot(w, n.x - p.x) * p.time)",
    "order": "mean[i in D] E[j ~ D | j.time >= i.time] tanh(dot(w, j.x - i.x) * i.time)",
    "order_strict": "mean[i in {z in D | z.time > 0.7}] E[j ~ D | j.time < i.time] tanh(dot(w, j.x - i.x) * i.time)",
    "order_sum": "mean[i in D] sum[j in D | j.time >= i.time] tanh(dot(w, j.x - i.x) * i.time)",
    "leave_out": "mean[i in D] E[j ~ D | j != i] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "leave_out_sum": "sum[i in D] sum[j in D | j != i] tanh(dot(w, j.x - 0.3 * i.x) * i.time) / 3600",
    "key": "mean[i in D] E[j ~ D | j.g == i.g] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "key_and_leave_out": "mean[i in D] E[j ~ P | j.g == i.g and j.a == i.a and j != i] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "key_and_order": "mean[i in D] sum[j in D | j.g == i.g and j.time >= i.time] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "key_of_set": "sum[k in K] k * (E[j ~ D | j.b == k and j.a == 1] tanh(dot(w, j.x) * k))",
    "mask": "mean[i in D] E[j ~ D | j.time + i.time > 2] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "mask_sum": "mean[i in D] sum[j in D | j.time + i.time > 2 and j != i] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "mask_and_key": "mean[i in D] E[j ~ D | j.a == i.a and abs(j.time - i.time) < 4] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "combinations": "E[i ~ D, j ~ D | j.time > i.time] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "combinations_keyed": "E[i ~ P, j ~ D | j.g == i.g and j.time > i.time] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "combinations_masked": "E[i ~ D, j ~ D | i.time + j.time > 4] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "combinations_sum": "sum[i in P, j in D | j.time > i.time and j.g == i.g] tanh(dot(w, j.x - 0.3 * i.x) * i.time) / 300",
    "combinations_of_three": "E[i ~ D, j ~ P, l ~ N | j.time > i.time and l.time > j.time] tanh(dot(w, j.x - i.x + l.x))",
    "combinations_per_group": "mean[k in K] E[i ~ D, j ~ D | i.b == k and j.time > i.time] tanh(k * dot(w, j.x - 0.3 * i.x))",
    "draw": "E[z ~ D, e ~ normal(0, 1)] tanh(dot(w, z.x) + 0 * e) * (1 + 0 * e)",
    "draw_alone": "E[e ~ uniform(0, 1)] tanh(0 * e + w[1]) + E[e ~ bernoulli(1)] tanh(e * w[2]) + w[3]^4 * w[1]",
}


def linear(body: str) -> Case:
    return Case(text=f"model m;{HEAD}minimize {body};", options={"outer_batch": 6, "inner_batch": 8})


def spread(case: Case, steps: int = 500) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean and standard error of minibatch gradients, and the gradient of the whole by the interpreter."""
    made = make("m", case)
    solver, w = made.solver, made.point()
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    rng, h = torch.Generator().manual_seed(5), types.SimpleNamespace(**solver.HYPER)
    parts = solver.draw(data, rng, steps)
    u, c = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64)
    found = torch.stack([solver.gradient(data, w, w, u, c, [part[k] for part in parts], h) for k in range(steps)])
    assert not vars(u), "an affine model tracks nothing"
    leaves = {name: w[a:b].reshape(shape).clone().requires_grad_() for name, (a, b, shape) in made.program.layout.items()}
    interpret.evaluate(made.bound, made.emitter.problem.objective.expr, leaves).backward()
    sign = solver.SIGN
    exact = torch.cat([sign * leaf.grad.reshape(-1) for leaf in leaves.values() if leaf.grad is not None])
    return found.mean(0), found.std(0) / steps**0.5, exact


@pytest.mark.parametrize("name", LINEAR)
def test_minibatches_are_unbiased(name: str) -> None:
    mean, error, exact = spread(linear(LINEAR[name]))
    assert bool(((mean - exact).abs() <= 5 * error + 1e-9).all()), (mean, exact, error)


def test_minibatches_of_nets_are_unbiased() -> None:
    groups = "mean[i in D] E[j ~ D | j.g == i.g and j != i] s(v; j.x)"
    text = f"model m;{NET}minimize E[p ~ P, n ~ N] sigmoid(s(v; n.x) - s(v; p.x)) + {groups};"
    mean, error, exact = spread(Case(text=text, nets=lambda: {"s": mlp()}, scale=0.0))
    assert bool(((mean - exact).abs() <= 5 * error + 1e-9).all())


def test_small_batches_are_truly_random() -> None:
    """What is compared above is spread: a test of means would be void if every batch were the whole."""
    _, error, _ = spread(linear(LINEAR["order"]), 50)
    assert bool((error > 0).all())


def test_epochs_are_without_replacement() -> None:
    made = make("m", linear(LINEAR["pairs"]))
    solver = made.solver
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float32))
    for part in solver.draw(data, torch.Generator().manual_seed(0), 20):
        flat, n = part.reshape(-1), 30
        for start in range(0, len(flat) - n + 1, n):
            assert flat[start : start + n].sort().values.tolist() == list(range(n))


def test_whole_batches_are_exact() -> None:
    """Where batches hold everything, the gradient is that of the problem itself."""
    for body in LINEAR.values():
        if "~ normal" in body or "| j.time" in body or "mask" in body:
            continue
        case = Case(text=f"model m;{HEAD}minimize {body};", options={"outer_batch": 10_000, "inner_batch": 10_000})
        made = make("m", case)
        if made.emitter.step.draws:
            continue
        mean, _, exact = spread(case, 2)
        assert torch.allclose(mean, exact, rtol=1e-9, atol=1e-12)
