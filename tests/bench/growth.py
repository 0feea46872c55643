"""How each stage grows: CPU seconds of reading, binding, planning, emitting, preparing, a step, an
evaluation, the report, and the memory beside the data, along one size at a time.

    python tests/bench/growth.py [axis ...] [--most 1e6] [--write]
    python tests/bench/growth.py --picture

Each size is a process of its own with one thread, whose CPU seconds are counted, so that others on
the machine matter little. ``slope`` is that of log seconds against log size over the last three
sizes; what takes less than ``SHORT`` has none. With ``--write`` the table goes to ``growth.md``;
``--picture`` draws the curves that this page has.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Posed = tuple[str, dict[str, Any]]
HERE = Path(__file__).resolve()
STAGES = ("read", "bind", "plan", "emit", "prepare", "step", "evaluate", "report")
PICTURE = HERE.parents[2] / "tutorials" / "pictures" / "growth.svg"
ABOUT = """CPU seconds of one thread by stage (a step: the mean of fifty), and MB; made by `tests/bench/growth.py --write`. Slopes
above 1.25 are bold.

![CPU seconds of each stage against each size](../../tutorials/pictures/growth.svg)"""
#: Seconds below which a stage's growth is noise; the slope above which it is marked.
SHORT, STEEP = 0.1, 1.25
STEPS = 50
LOGISTIC = "log1pexp(-z.y * dot(w, z.x))"
TABLE = "dim d; set G; data D: table(x: real[d], y: {-1, 1}, g: G); var w[d];"


def table(n: int, d: int = 10, groups: int = 10) -> dict[str, Any]:
    random = np.random.default_rng(0)
    x = random.standard_normal((n, d), dtype=np.float32)
    y = np.where(x[:, 0] + random.standard_normal(n) > 0, 1, -1)
    return {"D": {"x": x, "y": y, "g": np.arange(n) % groups}}


def rows(n: int) -> Posed:
    """Rows of one expectation and of a constraint."""
    text = (
        f"{TABLE} minimize E[z ~ D] {LOGISTIC} + 0.01 * sumsq(w); subject to c: E[z ~ D | z.y == 1] "
        f"{LOGISTIC} <= 0.6;"
    )
    return text, table(n)


def blocks(n: int) -> Posed:
    """As many outer functions, each of an expectation over its own ten rows."""
    text = "set I; dim d; data D: table(i: I, x: real[d], y: real); var w[d];"
    text += "minimize mean[k in I] square(E[z ~ D | z.i == k] (dot(w, z.x) - z.y)) + 0.01 * sumsq(w);"
    random = np.random.default_rng(0)
    x = random.standard_normal((10 * n, 5), dtype=np.float32)
    return text, {"D": {"i": np.arange(10 * n) // 10, "x": x, "y": x.sum(1) + random.standard_normal(10 * n)}}


def constraints(n: int) -> Posed:
    """A family of constraints, each of an expectation over its own ten rows."""
    text = (
        f"{TABLE} minimize E[z ~ D] {LOGISTIC}; subject to c[k in G]: E[z ~ D | z.g == k] "
        "square(dot(w, z.x) - z.y) <= 4;"
    )
    return text, table(10 * n, groups=n)


def groups(n: int) -> Posed:
    """The worst of so many groups of ten rows."""
    text = f"{TABLE} minimize max[k in G] (E[z ~ D | z.g == k] {LOGISTIC}) + 0.01 * sumsq(w);"
    return text, table(10 * n, groups=n)


def columns(n: int) -> Posed:
    """Coefficients, of a thousand rows."""
    text = f"{TABLE} minimize E[z ~ D] {LOGISTIC} + 0.01 * sumsq(w); subject to c: norm2(w) <= 5;"
    return text, table(1000, d=n)


def terms(n: int) -> Posed:
    """Terms written out."""
    return f"var x; minimize {' + '.join(f'square(x - {k % 7})' for k in range(n))};", {}


def definitions(n: int) -> Posed:
    """Definitions, each of the one before."""
    return "var x; let a0 = square(x); " + " ".join(
        f"let a{k + 1} = a{k} + x;" for k in range(n)
    ) + f" minimize a{n};", {}


def variables(n: int) -> Posed:
    """Variables of one number, each in a term of its own."""
    declared = " ".join(f"var x{k} >= 0;" for k in range(n))
    return f"{declared} minimize {' + '.join(f'square(x{k} - {k % 7})' for k in range(n))};", {}


#: By its name an axis: the models, and the sizes.
AXES: dict[str, tuple[Callable[[int], Posed], tuple[int, ...]]] = {
    "rows": (rows, (10_000, 100_000, 1_000_000, 10_000_000)),
    "blocks": (blocks, (1_000, 10_000, 100_000, 1_000_000)),
    "constraints": (constraints, (100, 1_000, 10_000)),
    "groups": (groups, (100, 1_000, 10_000, 100_000)),
    "columns": (columns, (100, 1_000, 10_000, 100_000)),
    "terms": (terms, (50, 100, 200, 400)),
    "definitions": (definitions, (25, 50, 100)),
    "variables": (variables, (25, 50, 100, 200)),
}


def measured(axis: str, n: int) -> dict[str, float]:
    """CPU seconds by stage, and MB: of the data, and at most beyond them and what the libraries hold."""
    import torch

    from fccomodel import pipeline
    from fccomodel.core.source import Source

    torch.set_num_threads(1)
    text, data = AXES[axis][0](n)
    held = sum(np.asarray(column).nbytes for given in data.values() for column in given.values())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken: dict[str, float] = {}

    def stage(name: str, what: Callable[[], Any], times: int = 1) -> Any:
        began = time.process_time()
        found = what()
        taken[name] = (time.process_time() - began) / times
        return found

    made = stage("read", lambda: pipeline.compile_model(Source(text=text, name="growth.fcco")))
    binding = pipeline.Binding(data=data)
    bound = stage("bind", lambda: pipeline.bind(made, binding))
    planned = stage(
        "plan", lambda: pipeline.plan(made, binding, {"unverified": (True, "given")}, bound=bound)
    )
    program = stage("emit", lambda: pipeline.emit(planned))
    solver, rng = types.ModuleType("solver"), torch.Generator().manual_seed(0)
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), solver.__dict__)  # noqa: S102
    tensors = solver.as_namespace(dict(program.data), "cpu", torch.float32)
    with solver.no_grad():
        ready = stage("prepare", lambda: solver.prepare(tensors))
        if hasattr(solver, "draw"):
            stage("step", lambda: steps(solver, ready, rng), STEPS)
        full = stage("prepare", lambda: solver.prepare_full(solver.prepare(tensors)))
        w = solver.start(rng, "cpu", torch.float32)
        stage("evaluate", lambda: solver.evaluate(full, w))
    from fccomodel import report

    values = {name: np.zeros(shape) for name, shape in shapes(bound).items()}
    stage("report", lambda: report.report(bound, values, analysis=planned.analysis))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return taken | {"data": held / 2**20, "more": max(peak - before, 0) / 1024}


def shapes(bound: Any) -> dict[str, tuple[int, ...]]:
    from fccomodel.evaluation.sets import elements

    return {name: elements.shape(bound, v.shape) for name, v in bound.problem.variables.items()}


def steps(solver: Any, data: Any, rng: Any) -> None:
    import torch

    w = solver.start(rng, "cpu", torch.float32)
    state = types.SimpleNamespace(w=w, w_prev=w.clone(), met=0)
    u, c, h = solver.buffers("cpu", torch.float32), solver.centres("cpu", torch.float32), solver.Settings()
    h.eta = h.eta or 1e-3
    solver.SOLVER.begin(state, h)
    parts = solver.draw(data, rng, STEPS)
    for k in range(STEPS):
        solver.advance(solver.SOLVER, data, state, u, c, [part[k] for part in parts], h)


def slope(sizes: list[int], seconds: list[float]) -> float | None:
    """Of log seconds against log size over the last three; None where they are short."""
    pairs = [(math.log(n), math.log(s)) for n, s in zip(sizes, seconds, strict=True) if s > 0][-3:]
    if len(pairs) < 2 or seconds[-1] < SHORT:
        return None
    x, y = np.array(pairs).T
    return float(np.polyfit(x, y, 1)[0])


def apart(axis: str, n: int, seconds: float = 900) -> dict[str, float] | str:
    """A size's figures from a process of its own, or why there are none."""
    command = [sys.executable, str(HERE), "--one", axis, str(n)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired:
        return f"more than {seconds:g} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["ended without a word"])[-1][:120]
    return json.loads(done.stdout.splitlines()[-1])


def lines(axis: str, found: dict[int, dict[str, float] | str]) -> list[str]:
    """A table in Markdown: a row per size, then the slopes."""
    head = ["", *STAGES, "data MB", "more MB"]
    text = [
        f"**{axis}**: {AXES[axis][0].__doc__}",
        "",
        " | ".join(["", *head, ""]).strip(),
        "|" + "---|" * len(head),
    ]
    good = {n: one for n, one in found.items() if isinstance(one, dict)}
    for n, one in found.items():
        if isinstance(one, str):
            text.append(f"| {n:,} | {one} |")
            continue
        entries = [f"{one[s]:.2g}" if s in one else "-" for s in STAGES] + [
            f"{one['data']:.0f}",
            f"{one['more']:.0f}",
        ]
        text.append(f"| {n:,} | " + " | ".join(entries) + " |")
    fits = [slope(list(good), [one.get(s, 0.0) for one in good.values()]) for s in STAGES]
    shown = ["" if f is None else f"**{f:.2f}**" if f > STEEP else f"{f:.2f}" for f in fits]
    return [*text, "| slope | " + " | ".join(shown) + " | | |", ""]


def of_page() -> dict[str, dict[int, dict[str, float]]]:
    """By axis and size the seconds of the stages, as the page has them."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    axis = ""
    for line in HERE.with_suffix(".md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("**"):
            axis = line.split("**")[1]
        elif len(cells) > len(STAGES) and cells[0].replace(",", "").isdecimal():
            stages = zip(STAGES, cells[1:], strict=False)
            found.setdefault(axis, {})[int(cells[0].replace(",", ""))] = {
                s: float(x) for s, x in stages if x not in ("", "-")
            }
    return found


def picture(found: dict[str, dict[int, dict[str, float]]]) -> None:
    """A panel per axis: CPU seconds of the stages against the size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    high = math.ceil(len(found) / 2)
    pyplot.rcParams |= {"svg.hashsalt": "growth", "svg.fonttype": "none"}
    figure, panels = pyplot.subplots(high, 2, figsize=(9, 2.6 * high), layout="constrained", squeeze=False)
    for axes, (axis, sizes) in zip(panels.flat, found.items(), strict=False):
        for k, s in enumerate(STAGES):
            points = [(n, one[s]) for n, one in sizes.items() if s in one]
            axes.plot(*zip(*points, strict=True), marker="osD^v<>x"[k], markersize=3, linewidth=1, label=s)
        axes.set(xscale="log", yscale="log", title=axis, ylabel="CPU seconds")
        axes.minorticks_off()
        axes.set_xticks(list(sizes), [f"{n:,}" for n in sizes])
    for axes in panels.flat[len(found) :]:
        axes.set_axis_off()
    figure.legend(
        *panels.flat[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(STAGES),
        frameon=False,
    )
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("axes", nargs="*", choices=[*AXES, []], help="all of them unless given")
    parser.add_argument("--most", type=float, default=math.inf, help="no larger sizes")
    parser.add_argument("--write", action="store_true", help="write growth.md")
    parser.add_argument("--picture", action="store_true", help="draw what growth.md has, measuring nothing")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measured(args.one[0], int(args.one[1]))))
        return
    if args.picture:
        picture(of_page())
        return
    text = []
    for axis in args.axes or AXES:
        text += (table := lines(axis, {n: apart(axis, n) for n in AXES[axis][1] if n <= args.most}))
        print("\n".join(table), flush=True)
    if args.write:
        HERE.with_suffix(".md").write_text("# How stages grow\n\n" + ABOUT + "\n\n" + "\n".join(text))


if __name__ == "__main__":
    main()
