"""Tables that stay in their files: values, derivatives, programs and reports are those of the same
numbers in memory."""

from __future__ import annotations

import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bind import _prepared
from fccomodel.data.prepare import prepare
from fccomodel.evaluation.interpret import evaluate
from fccomodel.evaluation.sets import realising
from fccomodel.evaluation.sets.mapped import MappedTensor
from fccomodel.language.check import check
from fccomodel.language.parse import parse

torch.set_num_threads(1)
N, D = 301, 4
MODEL = """
model m;
dim d;
data D : table(x: real[d], y: {-1, 1});
param tau default 0.6;
var w[d];
minimize false_alarms: E[z ~ D | z.y == -1] log1pexp(dot(w, z.x)) + 0.01 * sumsq(w);
subject to misses: E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) <= tau;
"""


@pytest.fixture
def whole(monkeypatch):
    """What of a table was in memory as a whole, by its shape; blocks are of a few rows."""
    seen: list[tuple[int, ...]] = []
    taken = MappedTensor.whole
    monkeypatch.setattr(MappedTensor, "MOST", 64)
    monkeypatch.setattr(MappedTensor, "whole", lambda rows: (seen.append(tuple(rows.shape)), taken(rows))[1])
    return seen


def rows(dtype=torch.float64) -> tuple[torch.Tensor, MappedTensor]:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(N, D)))
    return x.to(torch.float32).to(dtype), MappedTensor(x.to(torch.float32), "cpu", dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_taken_is_what_would_be_in_memory(dtype, whole):
    x, kept = rows(dtype)
    at = torch.randint(N, (200,), generator=torch.Generator().manual_seed(0))
    assert kept.shape == x.shape and len(kept) == N and kept.dtype == dtype and kept.numel() == x.numel()
    for index in (7, slice(3, 9), at[:5], at[:6].reshape(2, 3), (at[:5], 2), (slice(2, 5), 1)):
        assert type(kept[index]) is torch.Tensor and torch.equal(kept[index], x[index])
    assert torch.equal(kept.narrow(0, 5, 4), x[5:9]) and torch.equal(kept.index_select(0, at[:4]), x[at[:4]])
    for index in (at, slice(10, 290), x[:, 0] > 0):
        some = kept[index]
        assert type(some) is MappedTensor and some.shape == x[index].shape
        assert torch.equal(some[:3], x[index][:3]) and torch.equal(some[at[:3] % 90], x[index][at[:3] % 90])
        torch.testing.assert_close(some @ x[0], x[index] @ x[0])
    assert not whole
    torch.testing.assert_close(kept.square().sum(-1), x.square().sum(-1))
    torch.testing.assert_close(torch.cat([kept[at], x]), torch.cat([x[at], x]))
    assert whole == [(N, D), (200, D)]


@pytest.mark.parametrize("columns, most", [((), 64), ((3,), 64), ((), 1 << 20), ((3,), 1 << 20)])
def test_products_and_their_derivatives(columns, most, whole, monkeypatch):
    x, kept = (of[:40] for of in rows())
    w = torch.randn(D, *columns, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda v: kept @ v, w.requires_grad_())
    g = torch.randn(*columns[::-1], 40, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: v @ kept, g)

    def hessian(rows):
        return torch.autograd.functional.hessian(
            lambda v: torch.nn.functional.softplus(rows @ v).sum(), w.detach()
        )

    torch.testing.assert_close(hessian(kept), hessian(x))
    many = torch.eye(40 * math.prod(columns), dtype=torch.float64).reshape(
        -1, 40, *columns
    )  # as families of constraints ask
    monkeypatch.setattr(MappedTensor, "MOST", most)
    slopes = [torch.autograd.grad(of @ w, w, many, is_grads_batched=True)[0] for of in (kept, x)]
    torch.testing.assert_close(*slopes)
    many = torch.ones(3, *columns[::-1], D, dtype=torch.float64)
    slopes = [torch.autograd.grad(g @ of, g, many, is_grads_batched=True)[0] for of in (kept, x)]
    torch.testing.assert_close(*slopes)
    assert not whole


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_share_their_memory(dtype, some, whole):
    x, kept = rows(dtype)
    at = torch.randint(N, (200,), generator=torch.Generator().manual_seed(0))
    x, kept = (x[at], kept[at]) if some else (x, kept)
    found = [(part, block.data_ptr(), block.clone()) for part, block in kept.blocks()]
    assert torch.equal(torch.cat([block for *_, block in found]), x) and [part.stop for part, *_ in found][
        -1
    ] == len(x)
    held = [address for _, address, _ in found]
    in_file = [kept.rows[part].data_ptr() for part, *_ in found]
    assert held == (held[:1] * len(held) if some or dtype == torch.float64 else in_file)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sizes_stay_in_their_file(dtype, whole):
    """The absolute values of all rows or of some, in products, of one another's entries and as rows."""
    x, kept = rows(dtype)
    at, w = torch.randint(N, (200,), generator=torch.Generator().manual_seed(0)), torch.ones(D, dtype=dtype)
    sizes, some = kept.abs(), abs(kept[at])
    assert torch.equal(sizes @ w, x.abs() @ w) and torch.allclose(some @ w, x[at].abs() @ w)
    assert (
        torch.equal(sizes[at] @ w, some @ w)
        and torch.equal(sizes[3], x[3].abs())
        and torch.equal(some[:2], x[at[:2]].abs())
    )
    assert not whole
    assert torch.equal(sizes + 0, x.abs()) and torch.equal(kept + 0, x)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_passes_hold_no_more_than_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(MappedTensor, "MOST", 1 << 17)  # a megabyte of float64
    np.save(tmp_path / "x.npy", np.ones((1 << 15, 512), np.float32))
    kept = MappedTensor(torch.from_numpy(np.load(tmp_path / "x.npy", mmap_mode="c")), "cpu", torch.float64)
    w = torch.ones(512, dtype=torch.float64, requires_grad=True)

    def anonymous():
        return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024

    before = anonymous()
    for some in (kept, kept[torch.arange(1 << 15)]):
        product = some @ w
        product.sum().backward()
        assert product[-1] == 512 and w.grad[0] == 1 << 15
        assert anonymous() - before < 16  # megabytes; all of it would be 128
        w.grad = None


@pytest.fixture
def bound(tmp_path, monkeypatch):
    """The same numbers in memory and in files, as the models that hold them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D)).astype(np.float32)
    given = {"x": x, "y": np.where(x.sum(1) + rng.logistic(size=N) > 0, 1, -1)}
    source = Source(text=MODEL, name="m.fcco")
    prepare(check(parse(source), source), tmp_path / "p", data={"D": given})
    monkeypatch.setattr(_prepared, "HELD", 0)
    model = fc.Model.parse(MODEL)
    return model.bind(D=given), model.bind(D=tmp_path / "p")


def test_values_and_gradients(bound, whole):
    found = []
    for problem in bound:
        w = torch.linspace(-1, 1, D, dtype=torch.float64, requires_grad=True)
        value = evaluate(problem.bound, problem.bound.problem.objective.expr, {"w": w}, chunk=256)
        found.append((value.detach(), *torch.autograd.grad(value, w)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert not whole


def test_answers_reports_and_programs(bound, whole, tmp_path):
    memory, files = (problem.solve(seed=0, budget="300it") for problem in bound)
    assert not whole
    assert files.objective == pytest.approx(memory.objective, rel=1e-4)
    assert files.report.epsilon < 1e-3 and "stays in its file" in str(bound[1].explain())
    files.save(tmp_path / "out")
    program = runpy.run_path(str(tmp_path / "out" / "solver.py"), run_name="solver")
    tensors = program["read_data"](tmp_path / "out" / "data.pt", program["DATA_SHA256"], mapped=True)
    data = program["prepare_full"](program["as_namespace"](tensors, "cpu", torch.float64))
    assert type(data.D_x).__name__ == "MappedTensor" and data.D_x is not tensors["D_x"]
    objective, _ = program["evaluate"](data, torch.from_numpy(files.variables["w"]))
    assert float(objective) == pytest.approx(files.objective, rel=1e-9)


GROUPED = """
model m;
dim d; set G;
data D : table(x: real[d], y: {-1, 1}, t: real, g: G);
set P = {z in D | z.y == 1};
param tau default 0.3;
var w[d] in box(-2, 2);
minimize E[p ~ P] square(E[j ~ D | j.g == p.g and j.t >= p.t and j != p] log1pexp(dot(w, j.x) - dot(w, p.x))) + 0.1 * sumsq(w);
subject to parity[k in G]: E[z ~ D | z.g == k and z.y == -1] log1pexp(dot(w, z.x)) <= 2;
tail: E[z ~ D | z.t >= tau] square(dot(w, z.x)) <= 50;
"""


def test_groups_and_orders_stay_in_their_files(tmp_path, monkeypatch):
    """Every order that no parameter decides is mapped, not made again; another order of the labels
    makes its own."""
    rng, model = np.random.default_rng(0), fc.compile(GROUPED)
    x, y, g = (
        rng.normal(size=(N, 3)),
        np.where(np.arange(N) % 3, -1, 1),
        np.array(["a", "b", "c"])[np.arange(N) % 5 % 3],
    )
    data = {"D": {"x": x, "y": y, "t": rng.normal(size=N) - 2 * (y > 0), "g": g}}
    model.prepare(tmp_path / "p", data=data, dtype="float64")
    monkeypatch.setattr(_prepared, "HELD", 0)
    made, sort = [], realising.order_of

    def order_of(bound, part):
        made.append(
            realising.decided_by(part)
            if isinstance(part.binder.domain, ir.RowSet)
            else part.binder.domain.name
        )
        return sort(bound, part)

    monkeypatch.setattr(realising, "order_of", order_of)
    options = {"budget": "3it", "polish": False}
    memory = model.bind(data=data).solve(**options)
    assert "by row.g; along row.t" in made
    made.clear()
    bound = model.bind(data={"D": tmp_path / "p"})
    said = str(bound.explain())
    assert (
        "groups and orders of D stay in their files" in said
        and "MB of groups and orders of D that were not prepared" in said
    )
    assert bound.solve(**options).objective == pytest.approx(memory.objective, rel=1e-12)
    assert set(made) == {"where ge(row.t, $tau)", "G"}
    turned = model.bind(spec={"sets": {"G": ["c", "b", "a"]}}, data={"D": tmp_path / "p"}).bound
    value = evaluate(turned, turned.problem.objective.expr, {"w": torch.from_numpy(memory.variables["w"])})
    assert not turned.tables["D"].indices and float(value) == pytest.approx(memory.objective, rel=1e-9)
