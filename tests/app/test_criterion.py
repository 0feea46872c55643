"""The criterion of a training loop: its gradient is that of the emitted solver and of the problem."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.places import ROOT

import fccomodel
from fccomodel import FccoError
from fccomodel.execution.run.loading import loaded
from fccomodel.program.emit import emit, sections
from fccomodel.program.lower import lower

HEAD = (
    "model m; dim d; set G; data D : table(x: real[d], y: {0, 1}, g: G);"
    "set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0};"
    "net s : real[d] -> real; var w = params(s);"
)
AUC = HEAD + (
    "maximize auc: E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));"
    "subject to centred: abs(E[z ~ D] s(w; z.x)) <= 0.05;"
)
#: KL partial AUC: a logarithm of a mean for each positive
PARTIAL = HEAD + "minimize E[p ~ P] log(E[n ~ N] exp((s(w; n.x) - s(w; p.x)) / 2));"
SQUARES = HEAD + "minimize E[p ~ P] square(s(w; p.x) - 1) + square(E[n ~ N] s(w; n.x));"
GROUPS = HEAD + (
    "minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.x));"
    "subject to fair[k in G]: E[z ~ D | z.g == k] log1pexp(-(2 * z.y - 1) * s(w; z.x)) <= 0.5;"
)
#: a threshold beside the net, and pairs of one set with itself
PAIRS = HEAD + (
    "var t >= -1, <= 1;"
    "minimize E[a ~ D, b ~ D] square(s(w; a.x) - s(w; b.x) - a.y + b.y) + square(E[z ~ D] s(w; z.x) - t);"
)


def rows(n: int = 120, d: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = (x[:, 0] + rng.normal(size=n) > 0.6).astype(int)
    return {"x": x, "y": y, "g": np.array(["a", "b", "c"])[rng.integers(3, size=n)]}


def mlp(d: int = 5) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.Linear(d, 8), torch.nn.ELU(), torch.nn.Linear(8, 1), torch.nn.Flatten(-2)
    return torch.nn.Sequential(*layers).double()


def bound(text: str, data: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any], torch.nn.Module]:
    data = data or rows()
    net = mlp()
    return fccomodel.compile(text).bind(D=data, nets={"s": copy.deepcopy(net).float()}), data, net


def gradient_of(net: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None])


# ------------------------------------------------------------------------ the same as emitted solvers
@pytest.mark.parametrize(
    ("text", "algorithm", "which"),
    [
        (SQUARES, "sonex", -1),
        (PARTIAL, "sonex", -1),
        (PARTIAL, "sox", -1),
        (PARTIAL, "soap", -1),
        (GROUPS, "sonex", 0),
    ],
    ids=["squares", "partial sonex", "partial sox", "partial soap", "groups"],
)
def test_the_gradient_is_that_of_the_emitted_solver(text: str, algorithm: str, which: int) -> None:
    """The solver's own batches, its estimates and iterates, over five steps: the same gradients.

    ``which`` of the arrays of a batch has its row numbers.
    """
    problem, data, net = bound(text)
    options: dict[str, Any] = {"algorithm": algorithm, "inner_batch": 16}
    if text == PARTIAL:
        options["outer_batch"] = 12
    planned = problem.plan(unverified=True, **options)
    criterion = problem.criterion(batch=48, **options)
    lowered = lower(planned.problem, planned.bound, planned.plan)
    solver = loaded(emit(lowered)).SOLVER
    arrays = solver.prepare(solver.as_namespace(sections.tensors(lowered, {}), "cpu", torch.float64))
    u, c, h = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64), solver.settings()
    x, rng, w_prev, before = torch.from_numpy(data["x"]), torch.Generator().manual_seed(0), None, None
    for _ in range(5):
        w = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
        batch = [part[0] for part in solver.draw(arrays, rng, 1)]
        expected = solver.gradient(arrays, w, w if w_prev is None else w_prev, u, c, batch, h)
        rows = batch[which]
        last = before if before is not None else net
        net.zero_grad()
        criterion(rows, previous={"s": last(x[rows])}, s=net(x[rows])).backward()
        assert torch.allclose(gradient_of(net), expected, rtol=0, atol=1e-10)
        w_prev, before = w, copy.deepcopy(net)
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.05 * p.grad
    assert f"algorithm={algorithm}, batch=48" in repr(criterion)


@pytest.mark.parametrize("text", [AUC, PARTIAL, GROUPS], ids=["auc", "partial", "groups"])
def test_the_gradient_of_a_part_is_that_of_these_rows(text: str) -> None:
    """Rows outside the batch have no part in it, and filling up changes nothing."""
    problem, data, net = bound(text)
    x = torch.from_numpy(data["x"])
    whole, small = problem.criterion(batch=120), problem.criterion(batch=64)
    first = whole.sampler(seed=1, batch=50).__iter__().__next__()
    values = []
    for criterion in (whole, small):
        net.zero_grad()
        loss = criterion(first, s=net(x[first]))
        loss.backward()
        values.append((float(loss.detach()), gradient_of(net).clone()))
    assert values[0][0] == pytest.approx(values[1][0], abs=1e-12)
    assert torch.allclose(values[0][1], values[1][1], rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------ limits, and no bias
def test_a_full_batch_has_the_gradient_of_the_objective() -> None:
    problem, data, net = bound(PAIRS)
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"]).double()
    criterion = problem.criterion(batch=120, algorithm="sox")
    with torch.no_grad():
        criterion.variables["t"].fill_(0.3)
    loss = criterion(torch.arange(120), s=net(x))
    loss.backward()
    mine = gradient_of(net).clone(), criterion.variables["t"].grad.clone()
    net.zero_grad()
    t = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    r = net(x) - y
    exact = (r[:, None] - r).square().mean() + (net(x).mean() - t).square()
    exact.backward()
    assert float(loss.detach()) == pytest.approx(float(exact.detach()), abs=1e-10)
    assert torch.allclose(mine[0], gradient_of(net), atol=1e-10)
    assert torch.allclose(mine[1], t.grad, atol=1e-10)


def test_a_tail_over_rows_has_its_threshold_as_a_parameter() -> None:
    text = HEAD + "minimize cvar(tail = 0.25)[z ~ D] square(s(w; z.x) - z.y);"
    problem, data, net = bound(text)
    criterion = problem.criterion(batch=120)
    (threshold,) = criterion.parameters()
    with torch.no_grad():
        threshold.fill_(0.4)
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"]).double()
    criterion(range(120), s=net(x)).backward()
    mine, slope = gradient_of(net).clone(), float(threshold.grad)
    net.zero_grad()
    losses = (net(x) - y).square()
    ((losses - 0.4).clamp(min=0).mean() / 0.25).backward()
    assert torch.allclose(mine, gradient_of(net), atol=2e-2)
    assert slope == pytest.approx(1 - float((losses > 0.4).double().mean()) / 0.25, abs=0.1)
    assert np.isfinite(criterion.values()["objective"])


def test_variables_keep_their_sets_and_their_regularisers() -> None:
    """A threshold starts inside its bounds and comes back to them; terms in it alone are in the loss,
    with their kinks."""
    text = HEAD + (
        "var t[2] >= 0.5, <= 2; minimize E[z ~ D] square(s(w; z.x) - t[1] - z.y)"
        " + 3 * sumsq(t) + 0.7 * norm1(t - 1);"
    )
    problem, data, net = bound(text)
    criterion = problem.criterion(batch=120, algorithm="sox")
    (t,) = criterion.parameters()
    assert t.tolist() == [0.5, 0.5]
    with torch.no_grad():
        t.copy_(torch.tensor([2.5, 0.6]))
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"]).double()
    loss = criterion(range(120), s=net(x))
    loss.backward()
    copy_of_t = t.detach().clone().requires_grad_()
    exact = (net(x).detach() - copy_of_t[0] - y).square().mean()
    exact = exact + 3 * copy_of_t.square().sum() + 0.7 * (copy_of_t - 1).abs().sum()
    exact.backward()
    assert loss.item() == pytest.approx(exact.item(), abs=1e-10)
    assert torch.allclose(t.grad, copy_of_t.grad, atol=1e-10)
    criterion.step()
    assert t.tolist() == pytest.approx([2.0, 0.6], abs=1e-6)


@pytest.mark.parametrize("stratified", [False, True])
def test_pairs_of_one_batch_are_unbiased(stratified: bool) -> None:
    """The mean over many batches of a linear expectation over pairs is its value; also where batches
    have more positives than the table."""
    text = HEAD + (
        "minimize E[a ~ D, b ~ D] square(s(w; a.x) - s(w; b.x) - a.y + b.y)"
        " + E[p ~ P, n ~ N] sigmoid(s(w; n.x) - s(w; p.x));"
    )
    problem, data, net = bound(text)
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"]).double()
    criterion = problem.criterion(batch=16)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        s = net(x)
        r = s - y
        exact = float((r[:, None] - r).square().mean() + (s[y == 0] - s[y == 1][:, None]).sigmoid().mean())
        seen = []
        sampler = criterion.sampler(seed=0)
        for _ in range(150):
            batches = sampler if stratified else [rng.choice(120, 16, replace=False) for _ in range(8)]
            seen += [float(criterion(batch, s=s[batch])) for batch in batches]
    error = np.std(seen) / len(seen) ** 0.5
    assert abs(np.mean(seen) - exact) < 4 * error + 1e-3 * abs(exact)


def test_a_set_without_a_row_contributes_nothing() -> None:
    problem, data, net = bound(GROUPS)
    x, g = torch.from_numpy(data["x"]), data["g"]
    criterion = problem.criterion(batch=32, algorithm="sonex")
    criterion(torch.arange(120), s=net(x))
    (name,) = [b.name for b in criterion.made[32].lowered.state.buffers.values() if b.shape == (3,)]
    before = criterion.get_buffer(f"u_{name}").clone()
    some = np.flatnonzero(g != "b")[:20]
    criterion(some, s=net(x[some]))
    after = criterion.get_buffer(f"u_{name}")
    assert after[1] == before[1]
    assert (after != before).tolist() == [True, False, True]
    assert torch.isfinite(after).all()


# -------------------------------------------------------------------------------------------- training
def test_a_loop_with_batch_norm_and_flips_trains() -> None:
    """Images in a plain loop: the ranking is learned, the constraint is met, its multiplier moves."""
    rng = np.random.default_rng(0)
    n = 256
    y = (rng.random(n) < 0.3).astype(int)
    x = rng.normal(size=(n, 1, 8, 8)).astype(np.float32)
    x[y == 1, :, 2:6, 2:6] += 0.7
    text = (
        "model cnn; dim c; dim a; dim b; data D : table(x: real[c, a, b], y: {0, 1});"
        "set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0};"
        "net s : real[c, a, b] -> real; var w = params(s);"
        "maximize E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));"
        "subject to rate: E[z ~ D] sigmoid(s(w; z.x)) <= 0.25;"
    )
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ELU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(128, 1), torch.nn.Flatten(0),
    )  # fmt: skip
    shape = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1), torch.nn.Flatten(-2))
    problem = fccomodel.compile(text).bind(D={"x": x, "y": y}, nets={"s": shape})
    criterion = problem.criterion(batch=32)
    data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    numbers = fccomodel.numbered(data)
    loader = torch.utils.data.DataLoader(numbers, batch_sampler=criterion.sampler(seed=0))
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    for _ in range(40):
        for batch, (images, _) in loader:
            flipped = images.flip(-1) if torch.rand(()) < 0.5 else images
            loss = criterion(batch, s=net(flipped))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            criterion.step()
    assert net.training
    seen = criterion.evaluate(torch.utils.data.DataLoader(numbers, batch_size=64), s=net)
    assert net.training
    assert seen.objective > 0.85
    assert seen.violation < 0.03
    values = criterion.values()
    assert values["multipliers"]["rate"] > 0.01
    assert abs(values["objective"] - seen.objective) < 0.1
    assert seen.rows == {"D": n}


def test_the_state_goes_on_to_the_same_bits() -> None:
    problem, data, net = bound(AUC)
    x = torch.from_numpy(data["x"])

    def train(criterion: Any, net: torch.nn.Module, optimizer: Any, batches: list[list[int]]) -> None:
        for batch in batches:
            optimizer.zero_grad()
            criterion(batch, s=net(x[batch])).backward()
            optimizer.step()
            criterion.step()

    rng = np.random.default_rng(0)
    batches = [rng.choice(120, 24).tolist() for _ in range(500)]
    one, other = problem.criterion(batch=24), problem.criterion(batch=24)
    twin = copy.deepcopy(net)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    train(one, net, optimizer, batches)
    second = torch.optim.Adam(twin.parameters(), 1e-2)
    train(other, twin, second, batches[:300])
    again = problem.criterion(batch=24)
    again.load_state_dict(copy.deepcopy(other.state_dict()))
    train(again, twin, second, batches[300:])
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)
    assert float(one.c_y1) != 0.0


def test_in_evaluation_mode_nothing_moves() -> None:
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    x = torch.from_numpy(data["x"])
    criterion(range(24), s=net(x[:24]))
    before = copy.deepcopy(dict(criterion.named_buffers()))
    criterion.eval()
    criterion(range(24, 48), s=net(x[24:48]))
    for name, value in criterion.named_buffers():
        assert torch.equal(value.nan_to_num(), before[name].nan_to_num())


def test_previous_scores_correct_the_estimates() -> None:
    """With them the estimate follows the step: u moves by gamma' times the difference."""
    problem, data, net = bound(AUC)
    x, batch = torch.from_numpy(data["x"]), list(range(40))
    found = []
    for given in (False, True):
        criterion = problem.criterion(batch=40, algorithm="sonex")
        criterion.settings.gamma, criterion.settings.gamma_prime = 0.5, 0.25
        s = net(x[batch]).detach()
        criterion(batch, s=s)
        criterion(batch, previous={"s": s} if given else None, s=s + 1.0)
        found.append(float(criterion.u_u1))
    assert found[1] - found[0] == pytest.approx(0.25)


# --------------------------------------------------------------------------------------------- report
def test_report_and_evaluate_agree() -> None:
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    numbers = fccomodel.numbered(torch.from_numpy(data["x"]))
    loader = torch.utils.data.DataLoader(numbers, batch_size=50)
    seen, report = criterion.evaluate(loader, s=net), criterion.report(s=net)
    assert seen.objective == pytest.approx(report.objective, abs=1e-9)
    assert str(report).startswith("objective ") and "centred" in str(report) and len(repr(report)) < 300
    assert seen.constraints["centred"] == pytest.approx(report.constraints["centred"].value, abs=1e-9)
    part = torch.utils.data.Subset(numbers, range(60))
    half = criterion.evaluate(torch.utils.data.DataLoader(part, batch_size=50), s=net)
    assert half.rows == {"D": 60}
    y = data["y"][:60]
    s = net(torch.from_numpy(data["x"][:60])).detach().numpy()
    exact = 1 / (1 + np.exp(s[y == 0] - s[y == 1][:, None]))
    assert half.objective == pytest.approx(exact.mean(), abs=1e-9)


def test_a_net_over_a_net_in_ones_own_loop() -> None:
    """The gradient of a batch of all rows is that of the formula; report and evaluate agree with it."""
    text = (
        "model m; dim d; dim k; data D : table(x: real[d]); net enc : real[d] -> real[k];"
        "net dec : real[k] -> real[d]; var a = params(enc); var b = params(dec);"
        "minimize E[z ~ D] sumsq(dec(b; enc(a; z.x)) - z.x);"
    )
    x = rows()["x"]
    torch.manual_seed(0)
    enc = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).double()
    dec = torch.nn.Linear(2, 5).double()
    problem = fccomodel.compile(text).bind(D={"x": x}, nets={"enc": enc, "dec": dec})
    criterion, inputs = problem.criterion(batch=120), torch.from_numpy(x)
    criterion(np.arange(120), dec=dec(enc(inputs))).backward()
    both = torch.nn.ModuleList([enc, dec])
    found = gradient_of(both)
    both.zero_grad()
    exact = (dec(enc(inputs)) - inputs).square().sum(1).mean()
    exact.backward()
    torch.testing.assert_close(found, gradient_of(both), rtol=1e-9, atol=1e-12)
    loader = torch.utils.data.DataLoader(fccomodel.numbered(inputs), batch_size=50)
    exact = exact.detach()
    seen = criterion.evaluate(loader, dec=lambda rows: dec(enc(rows)))
    assert seen.objective == pytest.approx(float(exact), rel=1e-9)
    assert criterion.report(enc=enc, dec=dec).objective == pytest.approx(float(exact), rel=1e-6)
    with pytest.raises(FccoError, match="the module of `enc` is missing"):
        criterion.report(dec=dec)


def test_a_result_of_ones_own_loop(tmp_path: Path) -> None:
    """Trained by hand, judged, predicted with and kept as the answer of a solve is."""
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    x = torch.from_numpy(data["x"])
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for batch in criterion.sampler(seed=0):
        optimizer.zero_grad()
        criterion(batch, s=net(x[batch])).backward()
        optimizer.step()
    result = criterion.result(s=net)
    assert "no theorem is claimed" in str(result.details)
    assert result.objective == pytest.approx(criterion.report(s=net).objective)
    assert torch.allclose(result.module("s").double()(x), net(x), atol=1e-6)
    again = fccomodel.load(result.save(tmp_path / "out"))
    assert np.allclose(again.variables["w"], result.variables["w"])


def test_two_columns_of_one_net() -> None:
    """Two views of each row: scores are given by column; together they are the whole gradient."""
    text = (
        "model m; dim d; data D : table(a: real[d], b: real[d]); net s : real[d] -> real;"
        "var w = params(s); minimize E[z ~ D] square(s(w; z.a) - s(w; z.b) - 1)"
        " + log(E[z ~ D, q ~ D] exp(s(w; q.b) - s(w; z.a)));"
    )
    rng, net = np.random.default_rng(1), mlp()
    a, b = rng.normal(size=(2, 30, 5))
    problem = fccomodel.compile(text).bind(D={"a": a, "b": b}, nets={"s": copy.deepcopy(net).float()})
    criterion = problem.criterion(batch=30, algorithm="sox")
    u, v = net(torch.from_numpy(a)), net(torch.from_numpy(b))
    with pytest.raises(FccoError, match="several columns: a, b"):
        criterion(range(30), s=u)
    criterion(range(30), s={"a": u, "b": v}).backward()
    mine = gradient_of(net).clone()
    net.zero_grad()
    u, v = net(torch.from_numpy(a)), net(torch.from_numpy(b))
    exact = (u - v - 1).square().mean() + (v - u[:, None]).exp().mean().log()
    exact.backward()
    assert torch.allclose(mine, gradient_of(net), atol=1e-10)
    tuples = [(np.arange(30), (torch.from_numpy(a), torch.from_numpy(b)))]
    assert criterion.evaluate(tuples, s=net).objective == pytest.approx(exact.item(), abs=1e-10)
    swapped = [(rows, (second, first)) for rows, (first, second) in tuples]
    seen = criterion.evaluate(swapped, inputs=lambda batch: {"a": batch[1], "b": batch[0]}, s=net, data={})
    assert seen.objective == pytest.approx(exact.item(), abs=1e-10)
    with pytest.raises(FccoError, match="does not have the columns a, b"):
        criterion.evaluate([(np.arange(30), torch.from_numpy(a))], s=net)


def test_nets_on_different_columns_are_evaluated_on_their_own() -> None:
    """Two towers and a frozen one: each reads its column of a loader's batch, by order or by name."""
    text = (
        "model m; dim d; data D : table(a: real[d], b: real[d]); net f : real[d] -> real; "
        "net h : real[d] -> real; net old : real[d] -> real frozen; var u = params(f); var v = params(h);"
        "minimize E[z ~ D] square(f(u; z.a) - h(v; z.b)); subject to E[z ~ D] square(f(u; z.a) - old(z.a)) <= 9;"
    )
    rng = np.random.default_rng(1)
    a, b = (torch.from_numpy(part) for part in rng.normal(size=(2, 30, 5)))
    nets = {name: torch.nn.Sequential(torch.nn.Linear(5, 1), torch.nn.Flatten(0)).double() for name in "fh"}
    bound_nets = {**nets, "old": copy.deepcopy(nets["f"])}
    problem = fccomodel.compile(text).bind(D={"a": a.numpy(), "b": b.numpy()}, nets=bound_nets)
    criterion, rows = problem.criterion(batch=30), np.arange(30)
    exact = (nets["f"](a) - nets["h"](b)).square().mean().item()
    for batch in ((a, b), {"b": b, "a": a}):
        assert criterion.evaluate([(rows, batch)], **nets).objective == pytest.approx(exact, rel=1e-6)
    with pytest.raises(FccoError, match="does not have the columns a, b"):
        criterion.evaluate([(rows, a)], **nets)
    with pytest.raises(FccoError, match="`old` has no weights to train"):
        criterion(rows, f=nets["f"](a), h=nets["h"](b), old=nets["f"](a))


def test_a_loader_without_numbers_is_refused() -> None:
    problem, data, net = bound(AUC)
    images = torch.utils.data.TensorDataset(torch.from_numpy(data["x"]))
    loader = torch.utils.data.DataLoader(images, batch_size=50)
    with pytest.raises(FccoError, match="the loader gives a list of 1,"):
        problem.criterion(batch=24).evaluate(loader, s=net)


def test_the_precision_of_the_algebra_stays() -> None:
    """A module of half precision around the criterion moves it, but does not round its estimates."""
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    rows = list(range(24))
    criterion(rows, s=net(torch.from_numpy(data["x"][rows])))
    before = copy.deepcopy(criterion.state_dict())
    torch.nn.ModuleList([criterion]).half().float()
    for name, value in criterion.state_dict().items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, before[name]), name


def test_wrapped_modules_are_reported_and_bound() -> None:
    problem, _, net = bound(AUC)
    wrapped = torch.nn.DataParallel(net)
    wrapped.module.train()
    report = problem.criterion(batch=24).report(s=wrapped)
    assert report.objective == problem.criterion(batch=24).report(s=net).objective


@pytest.mark.slow  # torch loads its compiler
def test_a_compiled_module_is_bound() -> None:
    _, data, net = bound(AUC)
    wrapped = torch.compile(torch.nn.DataParallel(net.train()), backend="eager")
    again = fccomodel.compile(AUC).bind(D=data, nets={"s": wrapped})
    assert again.solve(budget="2it", optimizer=torch.optim.Adam).outcome.solution.iterations == 2


def test_a_sampler_goes_on_with_its_next_epoch() -> None:
    problem, _, _ = bound(AUC)
    sampler = problem.criterion(batch=24).sampler(seed=3)
    first = list(sampler)
    other = problem.criterion(batch=24).sampler(seed=3)
    other.load_state_dict(sampler.state_dict())
    assert list(other) == list(sampler) != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": torch.optim.LBFGS}, "LBFGS computes the loss several times"),
        ({"optimizer": torch.optim.Adam, "epochs": 3}, "budget is in steps"),
    ],
)
def test_loops_say_how_they_are_run(options: dict[str, Any], message: str) -> None:
    problem, _, _ = bound(AUC)
    with pytest.raises(FccoError) as error:
        problem.solve(**{"budget": "2it", **options})
    assert message in str(error.value).replace("\n  ", " ")


def test_a_rate_is_the_optimizers() -> None:
    problem, _, _ = bound(AUC)
    with pytest.raises(FccoError, match="steps are your optimizer's"):
        problem.criterion(lr=0.1)


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts of the guide, one after the other: they rank, and flag no more than they may."""
    page = (ROOT / "tutorials" / "guide" / "training.md").read_text()
    space: dict[str, Any] = {"__name__": "__main__"}
    for script in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(compile(script, "training.md", "exec"), space)
    auc, violation = re.findall(r"on all rows: auc ([\d.]+), violation ([\d.]+)", capsys.readouterr().out)[0]
    assert float(auc) > 0.85
    assert float(violation) < 0.03
    result = space["result"]
    assert result.objective > 0.85
    assert result.report.feasibility < 0.03


# --------------------------------------------------------------------------------------------- errors
def test_what_does_not_fit_is_said() -> None:
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    s = net(torch.from_numpy(data["x"]))
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ([0, 1, 2], {"s": s[:2]}, "shape"),
        ([0, 1], {"score": s[:2]}, "no net `score`"),
        ([0, 1], {}, "missing"),
        ([0, 120], {"s": s[:2]}, "row 120 is not in the table"),
        ([-1, 1], {"s": s[:2]}, "row -1"),
        ({"E": [0, 1]}, {"s": s[:2]}, "rows of `D`"),
        ([], {"s": s[:0]}, "the batch is empty"),
        (torch.tensor([0.0, 1.0]), {"s": s[:2]}, "their type is float32"),
        (torch.tensor([True, False]), {"s": s[:2]}, "their type is bool"),
        ([0, 1], {"s": net}, "a Sequential, not a tensor"),
        ([0, 1], {"s": {"rank": s[:2], "label": s[:2]}}, "a dictionary with rank, label"),
    ]
    for batch, scores, message in wrong:
        with pytest.raises(FccoError, match=message) as error:
            criterion(batch, **scores)
        assert error.value.diagnostics[0].code == "F0826"
        assert error.value.diagnostics[0].fix


def wrong_scores(s: torch.Tensor) -> list[tuple[Any, Any, str]]:
    """Rows, scores, and what is said of them."""
    return [
        ([0, 1], torch.tensor([0, 1]), "of type int64"),
        ([0, 1], torch.empty(2, device="meta"), "on the device meta, the criterion is on cpu"),
        (None, s[:2], "a NoneType is no list"),
        (["a", "b"], s[:2], "a list is no list of whole"),
    ]


def test_scores_that_are_no_scores_are_refused() -> None:
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    for rows, scores, message in wrong_scores(net(torch.from_numpy(data["x"]))):
        with pytest.raises(FccoError, match=message):
            criterion(rows, s=scores)


def test_a_loss_is_differentiated_once() -> None:
    problem, data, net = bound(PARTIAL)
    loss = problem.criterion(batch=24)(range(24), s=net(torch.from_numpy(data["x"][:24])))
    gradients = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
    with pytest.raises(FccoError, match="cannot be differentiated twice"):
        sum(g.square().sum() for g in gradients).backward()


def test_the_gradient_of_a_worst_group_is_that_of_its_envelope() -> None:
    """The maximum over groups is smoothed: the gradient is sum over k of y[k] times that of group k, for the
    projection y of the means, divided by the smoothing, on the simplex."""
    problem, data, net = bound(HEAD + "minimize max[k in G] E[z ~ D | z.g == k] log1pexp(-s(w; z.x));")
    criterion = problem.criterion(batch=120)
    x = torch.from_numpy(data["x"])
    criterion(range(120), s=net(x)).backward()
    means = torch.stack([torch.nn.functional.softplus(-net(x)[data["g"] == k]).mean() for k in "abc"])
    scaled = (means.detach() / criterion.settings.smoothing("y1")).sort(descending=True).values
    shifts = (scaled.cumsum(0) - 1) / torch.arange(1, 4)
    y = (means.detach() / criterion.settings.smoothing("y1") - shifts[scaled > shifts][-1]).clamp(min=0)
    assert y.sum() == pytest.approx(1.0)
    exact = torch.autograd.grad((y * means).sum(), list(net.parameters()))
    together = torch.cat([g.reshape(-1) for g in exact])
    assert torch.allclose(gradient_of(net), together, atol=1e-14)


def test_a_loss_that_overflows_is_refused_and_forgotten() -> None:
    """The scores are finite, their exponentials are not; the next batch is as if this one had not been."""
    problem, _, _ = bound(HEAD + "minimize square(E[z ~ D] exp(s(w; z.x)));")
    criterion = problem.criterion(batch=24)
    with pytest.raises(FccoError, match="the loss is not finite, after 0 steps"):
        criterion(range(24), s=torch.full((24,), 800.0))
    assert float(criterion(range(24), s=torch.ones(24))) == pytest.approx(np.e**2)
    assert criterion.values()["objective"] == pytest.approx(np.e**2)


def test_a_state_is_of_its_rows() -> None:
    data = rows()
    criterion = bound(AUC, data)[0].criterion(batch=24)
    for part, message in (
        (slice(60), "it had 120 rows, and 60"),
        (slice(None, None, -1), "differ"),
    ):
        other = bound(AUC, {name: column[part] for name, column in data.items()})[0].criterion(batch=24)
        with pytest.raises(FccoError, match="the state is of other rows of the table `D`(.|\n)*" + message):
            other.load_state_dict(criterion.state_dict())


def test_a_criterion_is_copied_and_not_pickled() -> None:
    problem, data, net = bound(PARTIAL)
    criterion = problem.criterion(batch=24)
    s = net(torch.from_numpy(data["x"][:24])).detach()
    criterion(range(24), s=s)
    other = copy.deepcopy(criterion)
    assert torch.equal(criterion(range(24), s=s + 1), other(range(24), s=s + 1))
    with pytest.raises(FccoError, match=r"Save criterion.state_dict\(\)"):
        pickle.dumps(criterion)


def test_datasets_that_cannot_be_numbered() -> None:
    with pytest.raises(FccoError, match="a generator cannot be numbered"):
        fccomodel.numbered(item for item in [1, 2])
    with pytest.raises(FccoError, match="row 3 is not in the dataset, which has 3 items"):
        fccomodel.numbered([1, 2, 3])[3]


# ------------------------------------------------------------------------------------ loops that miss
TAIL = HEAD + "var t; minimize t + 2 * E[z ~ D] pos(s(w; z.x) - t);"


def looped(
    criterion: Any, net: Any, x: torch.Tensor, batches: Any, *, step: bool = True, moved: Any = ()
) -> None:
    """Trains on these batches."""
    optimizer = torch.optim.SGD([*net.parameters(), *moved], lr=1e-3)
    for batch in batches:
        optimizer.zero_grad()
        criterion(batch, s=net(x[batch])).backward()
        optimizer.step()
        if step:
            criterion.step()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("order", "row numbers of 8 batches are in the order of the table `D`, as in 48"),
        ("subset", "rows 90 to 119 of the table `D` are in no batch of"),
        ("step", r"criterion.step\(\) was not called in 20 batches"),
        ("variable", "`t` did not move in 100 steps"),
        ("evaluation", "10 backward passes in evaluation mode"),
        ("constants", "the scores of `s` have no gradient"),
    ],
)
def test_a_loop_that_leaves_something_out_is_told(wrong: str, message: str) -> None:
    """Each is told once; a right loop hears nothing (warnings are errors in these tests)."""
    problem, data, net = bound(TAIL)
    x, criterion = torch.from_numpy(data["x"]), problem.criterion(batch=24, stage=10)
    sampler = criterion.sampler()
    right = [batch for _ in range(24) for batch in sampler]
    with pytest.warns(UserWarning, match=message) as told:
        if wrong == "order":
            looped(criterion, net, x, [list(range(k % 5 * 24, k % 5 * 24 + 24)) for k in range(20)])
        elif wrong == "subset":
            rng = np.random.default_rng(0)
            looped(criterion, net, x, [rng.choice(90, 24) for _ in range(40)])
        elif wrong == "step":
            looped(criterion, net, x, right[:30], step=False)
        elif wrong == "variable":
            looped(criterion, net, x, right)
        elif wrong == "evaluation":
            looped(criterion.eval(), net, x, right[:15])
        else:
            for batch in right[:15]:
                criterion(batch, s=net(x[batch]).detach())
    assert len(told) == 1


def test_a_right_loop_hears_nothing() -> None:
    problem, data, net = bound(TAIL)
    criterion = problem.criterion(batch=24, stage=10)
    sampler = criterion.sampler()
    right = [batch for _ in range(24) for batch in sampler]
    looped(criterion, net, torch.from_numpy(data["x"]), right, moved=criterion.parameters())


@pytest.mark.parametrize("batch", [0, -1, 2.5, True])
def test_a_batch_has_at_least_one_row(batch: Any) -> None:
    problem, _, _ = bound(AUC)
    with pytest.raises(FccoError, match="is not a number of rows"):
        problem.criterion(batch=batch)


def test_words_of_other_libraries_are_answered() -> None:
    problem, data, net = bound(AUC)
    with pytest.raises(FccoError, match=r"problem.criterion\(batch=64\)"):
        problem.criterion(batch_size=64)
    with pytest.raises(FccoError, match="torch.autocast"):
        problem.criterion(batch=24, precision="bfloat16")
    criterion = problem.criterion(batch=24)
    with pytest.raises(FccoError, match="the scores of `s` are missing"):
        criterion([0, 1], net(torch.from_numpy(data["x"][:2])))
    numbers = fccomodel.numbered(torch.from_numpy(data["x"]))
    loader = torch.utils.data.DataLoader(numbers, sampler=criterion.sampler(seed=0))
    with pytest.raises(FccoError, match="batch_sampler=criterion.sampler"):
        next(iter(loader))


def test_watched_values_follow_the_scores() -> None:
    """After all scores have moved, a few visits to each row are enough."""
    problem, data, net = bound(PARTIAL)
    criterion = problem.criterion(batch=40)
    s = net(torch.from_numpy(data["x"])).detach()
    positive = torch.from_numpy(data["y"]) == 1
    for k in range(60):
        moved = 6.0 * (k >= 20)
        for batch in criterion.sampler(seed=k):
            criterion(batch, s=s[batch] + moved * positive[batch])
    exact = ((s[~positive] - s[positive][:, None] - 6.0) / 2).exp().mean(1).log().mean()
    assert abs(criterion.values()["objective"] - float(exact)) < 0.2


def test_a_loader_without_row_numbers_is_refused() -> None:
    problem, data, net = bound(AUC)
    batch = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    with pytest.raises(FccoError, match="not row numbers of the table `D`: the first entry of a batch"):
        problem.criterion(batch=24).evaluate([batch], s=net)


def test_validation_rows_without_their_table_are_refused() -> None:
    """Labels tell; inputs alone do where the loader has no labels; transformed inputs do not."""
    problem, data, net = bound(AUC)
    criterion = problem.criterion(batch=24)
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    other = torch.utils.data.TensorDataset(x.flip(0), y.flip(0))

    def evaluated(dataset: Any, **more: Any) -> Any:
        """The values on all items of a dataset."""
        loader = torch.utils.data.DataLoader(fccomodel.numbered(dataset), batch_size=50)
        return criterion.evaluate(loader, s=net, **more)

    with pytest.raises(FccoError, match="no\\s+entry of the loader goes with the column y or g"):
        evaluated(other)
    with pytest.raises(FccoError, match="inputs of the loader are not those of the bound rows"):
        evaluated(x.flip(0))
    with pytest.raises(FccoError, match="data="):
        evaluated(torch.cat([x, x]))
    frame = {"x": data["x"][::-1].copy(), "y": data["y"][::-1].copy(), "g": data["g"][::-1].copy()}
    known = evaluated(torch.utils.data.TensorDataset(x, y)).objective
    assert evaluated(other, data={"D": frame}).objective == pytest.approx(known, abs=1e-9)
    halved = evaluated(torch.utils.data.TensorDataset(x / 2, y))
    assert halved.objective == evaluated(x / 2, data={}).objective


@pytest.mark.parametrize("classes", [2, 40])
def test_labels_in_place_of_row_numbers_are_refused(classes: int) -> None:
    problem, data, net = bound(AUC, rows(n=2000))
    x, criterion = torch.from_numpy(data["x"]), problem.criterion(batch=64)
    labels = torch.arange(2000) % classes
    order = torch.randperm(2000, generator=torch.Generator().manual_seed(0))
    with pytest.raises(FccoError, match=f"look like labels(.|\n)*only {classes} different"):
        for batch in order[:1024].split(64):
            criterion(labels[batch], s=net(x[batch]))


def test_one_batch_again_and_again_is_no_sign_of_labels() -> None:
    problem, data, net = bound(AUC)
    x, criterion = torch.from_numpy(data["x"]), problem.criterion(batch=8)
    batch = torch.cat([torch.from_numpy(np.flatnonzero(data["y"] == k)[:4]) for k in (0, 1)])
    for _ in range(20):
        assert torch.isfinite(criterion(batch, s=net(x[batch])))


def test_running_values_are_of_the_last_ten_steps() -> None:
    """Scores rise by the same amount in every step: the running mean is nine steps late."""
    problem, data, net = bound(HEAD + "minimize E[z ~ D] s(w; z.x);")
    criterion = problem.criterion(batch=24)
    batch = torch.arange(24)
    for k in range(120):
        criterion(batch, s=torch.full((24,), float(k)))
    assert 119 - criterion.values()["objective"] == pytest.approx(9.0, abs=0.1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model m; data D : table(a: real); var t; minimize E[z ~ D] square(t - z.a);", "no net"),
        (HEAD + "minimize E[a ~ P, b ~ N] s(w; a.x - b.x);", "not applied to a column"),
        (HEAD + "minimize max[z in D] square(s(w; z.x));", "all rows of a table"),
        (HEAD + "minimize E[z ~ D] square(s(w; z.x)) + sumsq(w);", "weights"),
    ],
    ids=["no net", "pairs of rows", "maximum", "weights"],
)
def test_models_without_a_criterion_are_refused(text: str, message: str) -> None:
    if "net s" in text:
        problem = bound(text)[0]
    else:
        problem = fccomodel.compile(text).bind(D={"a": np.arange(5.0)})
    with pytest.raises(FccoError, match=message) as error:
        problem.criterion()
    assert error.value.diagnostics[0].code == "F0826"


def test_an_algorithm_with_steps_of_its_own_is_refused() -> None:
    problem = bound(PARTIAL)[0]
    with pytest.raises(FccoError, match="no criterion"):
        problem.criterion(algorithm="moap")


def test_an_algorithm_that_the_model_names_is_not_replaced() -> None:
    problem = bound(PARTIAL + "options { algorithm = moap; }")[0]
    with pytest.raises(FccoError, match="no criterion") as error:
        problem.criterion()
    assert error.value.diagnostics[0].code == "F0826"
    assert problem.criterion(algorithm="sonex").algorithm == "sonex"


def test_biased_methods_are_used_only_by_name() -> None:
    text = HEAD + "minimize E[p ~ D] log(E[n ~ D | n != p] exp(s(w; n.x) - s(w; p.x)));"
    problem = bound(text)[0]
    assert problem.criterion().algorithm != "bsgd"
    assert problem.criterion(algorithm="bsgd").algorithm == "bsgd"


def test_scores_that_are_not_finite_are_refused_before_anything_moves() -> None:
    problem, data, net = bound(PARTIAL)
    criterion = problem.criterion(batch=24)
    s = net(torch.from_numpy(data["x"]))
    criterion(range(24), s=s[:24])
    before = copy.deepcopy(criterion.state_dict())
    wrong = s[:24].detach().clone()
    wrong[3] = torch.nan
    with pytest.raises(FccoError, match=r"1 of 24 scores of `s` are not finite, after 1 steps \(row 3"):
        criterion(range(24), s=wrong)
    after = criterion.state_dict()
    for name, value in before.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value.nan_to_num(-7.0), after[name].nan_to_num(-7.0)), name
    assert before["_extra_state"]["steps"] == after["_extra_state"]["steps"]


def test_gradients_of_small_batches_add_up() -> None:
    """Means of losses: four batches of 16, each a quarter, have the gradient of their 64 rows."""
    text = HEAD + "minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.x));"
    problem, data, net = bound(text)
    x = torch.from_numpy(data["x"])
    whole = problem.criterion(batch=64, algorithm="sox")
    whole(range(64), s=net(x[:64])).backward()
    together = gradient_of(net).clone()
    net.zero_grad()
    small = problem.criterion(batch=16, algorithm="sox")
    for k in range(4):
        rows = list(range(16 * k, 16 * k + 16))
        (small(rows, s=net(x[rows])) / 4).backward()
    small.step()
    assert torch.allclose(gradient_of(net), together, atol=1e-12)


def test_formulas_may_read_the_column_that_a_net_reads() -> None:
    text = HEAD + "minimize E[z ~ D] (square(s(w; z.x) - z.y) + 0.1 * sumsq(z.x));"
    problem, data, net = bound(text)
    x = torch.from_numpy(data["x"])
    seen = problem.criterion(batch=24).evaluate([(np.arange(120), x)], s=net)
    errors = (net(x).detach().numpy() - data["y"]) ** 2
    assert seen.objective == pytest.approx(errors.mean() + 0.1 * (data["x"] ** 2).sum(1).mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "group K = D by g; minimize max[k in K] E[z ~ k] s(w; z.x);",
            r"max\[k in G\] E\[z ~ D \| z.g == k\]",
        ),
        ("minimize max{k in G} E[z ~ D | z.g == k] s(w; z.x);", r"write `max\[i in I\]"),
        ("minimize max[z in D] s(w; z.x);", r"max\[k in G\] E\[z ~ D \| z.g == k\]"),
    ],
)
def test_errors_lead_to_the_syntax_of_groups(text: str, message: str) -> None:
    with pytest.raises(FccoError) as error:
        bound(HEAD + text)[0].criterion()
    assert re.search(message, error.value.diagnostics[0].fix)


def test_multipliers_of_families_are_known_by_member() -> None:
    problem, data, net = bound(GROUPS)
    criterion = problem.criterion(batch=24)
    rows = np.arange(24)
    for _ in range(3):
        criterion(rows, s=net(torch.from_numpy(data["x"][rows])))
        criterion.step()
    by_label = criterion.multipliers_by_label()
    assert {"fair[a]", "fair[b]", "fair[c]"} == by_label.keys()
    assert list(by_label.values()) == pytest.approx(criterion.multipliers()["fair"])
