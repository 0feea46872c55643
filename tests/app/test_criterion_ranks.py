"""A criterion on two ranks: the batches of both are one, and the steps are those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import fccomodel

#: pairs across ranks, a bound for each group, and a threshold beside the net
MODEL = """
model m; dim d; set G; data D : table(x: real[d], y: {0, 1}, g: G);
set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0};
net s : real[d] -> real; var w = params(s); var t >= -1, <= 1;
minimize E[p ~ P] log(E[n ~ N] exp((s(w; n.x) - s(w; p.x)) / 2)) + square(E[z ~ D] s(w; z.x) - t);
subject to few[k in G]: E[z ~ D | z.g == k] sigmoid(s(w; z.x) - t) <= 0.2;
"""
STEPS = 50
BATCH = 12


def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4))
    y = (x[:, 0] + rng.normal(size=90) > 0.6).astype(int)
    return {"x": x, "y": y, "g": np.array(["a", "b", "c"])[rng.integers(3, size=90)]}


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 8), torch.nn.ELU(), torch.nn.Linear(8, 1), torch.nn.Flatten(0)
    return torch.nn.Sequential(*layers).double()


def part(step: int, batch: list[int], rank: int) -> list[int]:
    """A rank's rows of a joint batch; sometimes the ranks have different numbers of rows."""
    if step % 7 == 3:
        return batch[:3] if rank == 0 else batch[3:]
    return batch[rank::2]


def trained(criterion: Any, net: torch.nn.Module, batches: list[list[int]]) -> None:
    """Steps of gradient descent with momentum, the last scores handed in."""
    x = torch.from_numpy(rows()["x"])
    optimizer = torch.optim.SGD([*net.parameters(), *criterion.parameters()], 0.05, momentum=0.5)
    for batch in batches:
        loss = criterion(batch, s=net(x[batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        criterion.step()


def prepared() -> tuple[Any, Any, torch.nn.Module]:
    problem = fccomodel.compile(MODEL).bind(D=rows(), nets={"s": network().float()})
    return problem, problem.criterion(batch=BATCH), network()


def rank_of_two(rank: int, folder: str) -> None:
    """What each process does."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    problem, criterion, net = prepared()
    alone = problem.criterion(batch=2 * BATCH, together=False)
    first = list(alone.sampler(seed=1))
    assert list(criterion.sampler(seed=1)) == [batch[rank::2] for batch in first]
    sampler = alone.sampler(seed=1)
    joint = [batch for _ in range(STEPS) for batch in sampler][:STEPS]
    shared = DistributedDataParallel(net)
    trained(criterion, shared, [part(k, batch, rank) for k, batch in enumerate(joint)])
    numbers = fccomodel.numbered(torch.from_numpy(rows()["x"]))
    mine = torch.utils.data.Subset(numbers, range(rank, 90, 2))
    seen = criterion.evaluate(DataLoader(mine, batch_size=30), together=True, s=net)
    state = {"net": net.state_dict(), "criterion": criterion.state_dict(), "seen": seen.objective}
    torch.save(state, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.slow
def test_two_ranks_are_one_process_with_the_joint_batch(tmp_path: Path) -> None:
    multiprocessing.spawn(rank_of_two, args=(str(tmp_path),), nprocs=2)
    states = [torch.load(tmp_path / f"{rank}.pt", weights_only=False) for rank in range(2)]
    problem, _, net = prepared()
    criterion = problem.criterion(batch=2 * BATCH)
    sampler = criterion.sampler(seed=1)
    joint = [batch for _ in range(STEPS) for batch in sampler][:STEPS]
    trained(criterion, net, [part(k, b, 0) + part(k, b, 1) for k, b in enumerate(joint)])
    numbers = fccomodel.numbered(torch.from_numpy(rows()["x"]))
    seen = criterion.evaluate(DataLoader(numbers, batch_size=90), s=net)
    for state in states:
        for name, value in net.state_dict().items():
            assert torch.allclose(state["net"][name], value, rtol=0, atol=1e-10), name
        for name, value in criterion.state_dict().items():
            if isinstance(value, torch.Tensor):
                assert torch.allclose(state["criterion"][name], value, rtol=0, atol=1e-10, equal_nan=True), (
                    name
                )
        assert state["seen"] == pytest.approx(seen.objective, abs=1e-10)
    assert float(criterion.state_dict()["variables.t"]) != 0.0


def test_a_batch_of_fewer_rows_than_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank has a row; none is left out."""
    from fccomodel.execution.training import joint

    monkeypatch.setattr(joint, "count", lambda: 4)
    shares = []
    for rank in range(4):
        monkeypatch.setattr(joint, "rank", lambda rank=rank: rank)
        shares.append(joint.share([7, 8, 9], True))
    assert shares == [[7], [8], [9], [7]]
    assert joint.share([7, 8, 9], False) == [7, 8, 9]
