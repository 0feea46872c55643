"""A criterion on one and on two ranks: images a second, and what travels in a step.

    python tests/bench/training_ranks.py [--steps 60] [--ranks 1 2]

Generated images of 28 x 28, a partial AUC with bounds on the misses of three groups, the convolutional
net of ``training.py``, 64 images a rank and step, gloo, one thread a rank. Seconds of the clock are of
the slowest rank; seconds of the processor are of one rank.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from training import MODEL, network

import fccomodel
from fccomodel.execution.training import joint

#: images of the table, and of a rank in a step
IMAGES, BATCH = 4096, 64
#: steps before the clock starts
WARM = 5


def images() -> dict[str, Any]:
    """Images whose positives are a little brighter in the middle."""
    rng = np.random.default_rng(0)
    y = (rng.random(IMAGES) < 0.3).astype(int)
    x = rng.normal(size=(IMAGES, 1, 28, 28)).astype(np.float32)
    x[y == 1, :, 8:20, 8:20] += 0.3
    return {"x": x, "y": y, "g": np.array(["a", "b", "c"])[rng.integers(3, size=IMAGES)]}


def counted(sent: list[int]) -> None:
    """Notes the bytes of each message of a criterion."""
    send = joint._all

    def noted(value: torch.Tensor) -> list[torch.Tensor]:
        """``joint._all``, its bytes counted."""
        sent.append(value.numel() * value.element_size())
        return send(value)

    joint._all = noted


def work(rank: int, ranks: int, steps: int, folder: str) -> None:
    """One rank: steps, their seconds, the bytes that it sent."""
    torch.set_num_threads(1)
    where = f"file://{folder}/meet{ranks}"
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=ranks)
    data, net, sent = images(), network(), list[int]()
    counted(sent)
    problem = fccomodel.compile(MODEL).bind(D=data, nets={"s": network()})
    criterion, shared = problem.criterion(batch=BATCH), DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    x, sampler, done = torch.from_numpy(data["x"]), criterion.sampler(seed=0), 0
    while done < WARM + steps:
        for rows in sampler:
            if done == WARM:
                distributed.barrier()
                sent.clear()
                clock, processor = time.perf_counter(), time.process_time()
            loss = criterion(rows, s=shared(x[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            criterion.step()
            done += 1
            if done == WARM + steps:
                break
    seconds = time.perf_counter() - clock, time.process_time() - processor
    weights = sum(p.numel() * p.element_size() for p in net.parameters())
    torch.save((*seconds, sum(sent) / steps, weights), Path(folder) / f"{ranks}-{rank}.pt")
    distributed.destroy_process_group()


def main() -> None:
    """One line for each number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    args = parser.parse_args()
    print("ranks  images/s (clock)  images/s of the processor  bytes of scores  bytes of gradients")
    for ranks in args.ranks:
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.spawn(work, args=(ranks, args.steps, folder), nprocs=ranks)
            found = [torch.load(Path(folder) / f"{ranks}-{rank}.pt") for rank in range(ranks)]
        clock, processor = (max(f[k] for f in found) for k in (0, 1))
        done = args.steps * BATCH
        scores, gradients = found[0][2], found[0][3] if ranks > 1 else 0
        print(
            f"{ranks:5}  {ranks * done / clock:16.0f}  {done / processor:25.0f}  {scores:15.0f}  {gradients:18.0f}"
        )


if __name__ == "__main__":
    main()
