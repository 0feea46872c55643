"""A table that stays in its file: seconds and anonymous memory of prepare, bind, first step,
evaluation, solve and report.

    python tests/bench/large.py FOLDER [--rows 1e7] [--features 50] [--groups 1000] [--memory] [--budget 30s]

A logistic objective under a constraint (Neyman-Pearson), or with ``--groups`` the squared risks of
groups, on rows that are drawn into a Parquet file of the folder, once. ``--memory`` binds that file
itself, as float64 in memory, to compare. Anonymous memory (RssAnon) is what cannot be dropped:
pages of a mapped file do not count. Each line tells the most that a stage had, sampled every few
milliseconds.
"""

from __future__ import annotations

import argparse
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from fccomodel import pipeline
from fccomodel.core import options
from fccomodel.core.source import Source
from fccomodel.evaluation.interpret import evaluate

MODEL = """
model large;
dim d;
data D : table(x: real[d], y: {-1, 1});
var w[d];
minimize false_alarms: E[z ~ D | z.y == -1] log1pexp(dot(w, z.x)) + 0.01 * sumsq(w);
subject to misses: E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) <= 0.45;
"""
OF_GROUPS = """
model large;
dim d;
set G;
data D : table(x: real[d], y: {-1, 1}, g: G);
var w[d];
minimize risks: E[k ~ G] square(E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))) + 0.01 * sumsq(w);
"""
BINDING = {
    "D": {
        "source": "raw.parquet",
        "x": {"columns": "*", "except": ["g"], "scale": "standard", "intercept": True},
    }
}
PART = 1 << 18


def drawn(path: Path, n: int, d: int, groups: int) -> None:
    """Rows of a logistic model, in groups at random."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    w = rng.normal(size=d) / np.sqrt(d)
    schema = pa.schema(
        [*((f"x{k + 1}", pa.float32()) for k in range(d)), ("y", pa.int8()), ("g", pa.int32())]
    )
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression=None) as file:
        for low in range(0, n, PART):
            x = rng.standard_normal((min(PART, n - low), d), dtype=np.float32)
            y = np.where(x @ w + rng.logistic(size=len(x)) > 0, 1, -1).astype(np.int8)
            g = rng.integers(0, groups, len(x), dtype=np.int32)
            file.write_table(pa.table([*x.T, y, g], schema=schema), row_group_size=PART)


def anonymous() -> float:
    """Megabytes of this process that no file is behind."""
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    return 0.0 if found is None else int(found[1]) / 1024


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Prints seconds, CPU seconds and memory of a block."""
    most, done = [anonymous()], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], anonymous())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    began, worked = time.perf_counter(), time.process_time()
    yield
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    done.set()
    watching.join()
    memory = f"anonymous {most[0]:8.0f} MB, after it {anonymous():8.0f}"
    print(f"{name:<12} {seconds:8.1f} s {worked:8.1f} s CPU   {memory}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--groups", type=int, default=0, help="the model of groups, of so many of them")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--memory", action="store_true", help="bind the Parquet file itself")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.folder.mkdir(parents=True, exist_ok=True)
    raw, prepared = given.folder / "raw.parquet", given.folder / "prepared"
    if not raw.exists():
        drawn(raw, int(given.rows), given.features, given.groups or 1)
    compiled = pipeline.compile_model(Source(text=OF_GROUPS if given.groups else MODEL, name="large.fcco"))
    if given.memory:
        binding = pipeline.Binding(spec=BINDING, data_dir=given.folder)
    else:
        if not prepared.exists():
            with stage("prepare"):
                pipeline.prepare(compiled, pipeline.Binding(spec=BINDING, data_dir=given.folder), prepared)
        binding = pipeline.Binding(data={"D": prepared})
    place = "in memory" if given.memory else "in files"
    print(f"{given.rows:.0f} rows of {given.features} features, {place}; imports {anonymous():.0f} MB")
    with stage("bind"):
        bound = pipeline.bind(compiled, binding)
    with stage("evaluation"):
        w = torch.zeros(bound.dims["d"], dtype=torch.float64, requires_grad=True)
        evaluate(bound, compiled.problem.objective.expr, {"w": w}).backward()
    del bound
    for name, budget in (("first step", "1it"), ("solve", given.budget)):
        with stage(name):
            origins = options.resolve({"budget": budget}, compiled.problem.options, options.configuration())
            outcome = pipeline.solve(pipeline.plan(compiled, binding, origins))
    print(f"objective {outcome.report.objective:.6f}, epsilon {outcome.report.epsilon:.2e}")


if __name__ == "__main__":
    main()
