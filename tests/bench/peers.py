"""Speed beside the peers: every figure a ratio of one run, by the processor's time on one thread, the
sides taking turns.

    python tests/bench/peers.py [--only PART ...] [--rounds 11] [--seconds 40] [--write]

Steps are of 32 positive and 32 negative rows of 20,000 with 122 numbers; medians of the ratios of
blocks of 200. Traced and compiled steps are those of the backends that ``auto`` takes for runs of
so many steps: by torch alone, and by the system's compiler. The 14 constraints and the objective
share one draw of rows, which has some of every group. LibAUC 2.0.1 and Cooper 1.0.1 come by ``pip
install --no-deps libauc cooper-optim``, CVXPY with Clarabel and scikit-learn by the extra ``test``;
a row whose peer or data are absent is skipped with the reason. README's first command is to take
1.5 s in all, importing torch included, of which a command leaves parts unread; the same in a
program of one's own, which reads all and which Python ends by looking through all that was
imported, and what that takes beyond importing torch, are rows. ``--write`` keeps ``peers.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import backends  # noqa: E402
import pairs  # noqa: E402 - from here on ``time.perf_counter`` is the processor's
import steps  # noqa: E402
import torch  # noqa: E402
from support.emitted_models import Made, make  # noqa: E402
from support.places import ROOT  # noqa: E402
from whole import in_markdown, partial_likelihood  # noqa: E402

import fccomodel  # noqa: E402
from fccomodel.execution import backends as choice  # noqa: E402
from fccomodel.execution.backends import compiled, traced  # noqa: E402
from fccomodel.execution.backends.steps.several import Several  # noqa: E402

ROUNDS, SECONDS = 11, 40.0
BATCH = 32
COX_ROWS = (500, 2_000, 6_000, 30_000, 1_000_000)
#: modules are read as an installation keeps them, compiled
BYTECODE = tempfile.TemporaryDirectory()


class Row(NamedTuple):
    """A case, the peer, our figure over the peer's (``how``: of what, and the figures themselves), and
    what it must be."""

    case: str
    peer: str
    ratio: float
    must: str
    how: str = ""

    def __str__(self) -> str:
        return f"| {self.case} | {self.peer} | {self.ratio:.3g} | {self.must} | {self.how} |"


class Absent(Exception):
    """A peer, or its data, are not here."""


def ratios(ours: Callable[[], None], theirs: Callable[[], None], rounds: int) -> tuple[float, float, float]:
    """The median ratio of blocks that take turns, and both medians in microseconds of a step."""
    ours(), theirs()
    taken = [(steps.microseconds(ours), steps.microseconds(theirs)) for _ in range(rounds)]
    a, b = (statistics.median(column) for column in zip(*taken, strict=True))
    return statistics.median(x / y for x, y in taken), a, b


# -------------------------------------------------------------------------------------------- steps
def part_of_libauc(name: str) -> Any:
    """A module of LibAUC, without its packages' own imports, which ask for torchvision and
    torch_geometric."""
    found = (
        importlib.util.find_spec("libauc") if "libauc" not in sys.modules else sys.modules["libauc"].__spec__
    )
    if found is None or not found.submodule_search_locations:
        raise Absent("LibAUC is not installed")
    root = Path(list(found.submodule_search_locations)[0])
    for package in ("libauc", "libauc.losses", "libauc.optimizers", "libauc.utils"):
        module = sys.modules.setdefault(package, types.ModuleType(package))
        module.__path__, module.__spec__ = (
            [str(root.joinpath(*package.split(".")[1:]))],
            module.__spec__ or found,
        )
    with contextlib.suppress(ImportError):
        importlib.import_module("tqdm")
    if "tqdm" not in sys.modules:
        sys.modules["tqdm"] = module = types.ModuleType("tqdm")
        module.__spec__, module.__dict__["tqdm"], module.__dict__["trange"] = found, iter, range
    return importlib.import_module(f"libauc.{name}")


def scored(net: bool) -> torch.nn.Module:
    if net:
        return steps.mlp()
    return torch.nn.Sequential(torch.nn.Linear(steps.WIDTH, 1, bias=False), torch.nn.Flatten(0))


def libauc(net: bool) -> Callable[[], None]:
    """Its loss and its optimizer on rows drawn as ours are."""
    loss_of, optimizer = part_of_libauc("losses.auc").pAUC_DRO_Loss, part_of_libauc("optimizers.sopa_s").SOPAs
    table = steps.data()["D"]
    x, y = torch.as_tensor(table["x"], dtype=torch.float32), torch.as_tensor(table["y"] == 1).long()
    positive, negative = y.nonzero()[:, 0], (y == 0).nonzero()[:, 0]
    score, loss = scored(net), loss_of(data_len=steps.ROWS, gamma=0.5, device=torch.device("cpu"))
    sopas = optimizer(score.parameters(), lr=1e-3, mode="adam", verbose=False, device=torch.device("cpu"))
    labels = torch.cat([torch.ones(BATCH), torch.zeros(BATCH)]).long()

    def run() -> None:
        for _ in range(steps.STEPS):
            p, n = (some[torch.randint(len(some), (BATCH,))] for some in (positive, negative))
            rows = torch.cat([p, n])
            value = loss(score(x[rows]), labels, rows)
            sopas.zero_grad()
            value.backward()
            sopas.step()

    run.steps = steps.STEPS  # type: ignore[attr-defined]
    return run


def by_backend(made: Made, one: ModuleType) -> tuple[Callable[[], None], str]:
    """Steps by a backend, a library made now; from how many steps on a run takes it without being asked."""
    if reason := one.missing("cpu"):
        raise Absent(reason)
    several = Several.of(made.solver, made.program, "cpu", torch.float32)
    leap, on = one.leap(several)[0], backends.begun(made, torch.float32, math.inf)[1]
    pays = next(
        count for count in range(0, 100_000, 100) if choice.ranked(several, count)[0] == one.backend.name
    )
    run = lambda: on(steps.STEPS, leap)  # noqa: E731
    run.steps = steps.STEPS  # type: ignore[attr-defined]
    return run, f"; auto takes it from {pays:,} steps on"


def of_steps(asked: argparse.Namespace) -> Iterator[Row]:
    """Partial AUC by KL, linear and with a network."""
    for net, must, reach in ((False, "0.15", "0.02"), (True, "0.33", "0.15")):
        peer, shape = libauc(net), "MLP 64-64" if net else "linear"
        for who in ("sox", "sonex"):
            made, case = (
                make("bench", steps.model(steps.PAUC, net), algorithm=who),
                f"KL pAUC step, {shape}, {who.upper()}",
            )
            ratio, a, b = ratios(steps.emitted(made), peer, asked.rounds)
            yield Row(case, "LibAUC 2.0.1", ratio, must, f"{a:.0f} / {b:.0f} µs")
            for one, goal in ((traced, must), (compiled, f"{must}; reach {reach}")):
                ours, pays = by_backend(made, one)
                ratio, a, b = ratios(ours, peer, asked.rounds)
                yield Row(
                    f"{case}, {one.backend.name}", "LibAUC 2.0.1", ratio, goal, f"{a:.0f} / {b:.0f} µs{pays}"
                )
        ratio, a, b = ratios(steps.plain(net, False), peer, asked.rounds)
        yield Row(
            f"KL pAUC step, {shape}, a loop by hand in torch",
            "LibAUC 2.0.1",
            ratio,
            "",
            f"{a:.0f} / {b:.0f} µs",
        )


def cooper_step() -> Callable[[], None]:
    """Cooper's simultaneous steps on the Lagrangian of 14 constraints as one vector, 64 rows a step."""
    try:
        import cooper
    except ImportError:
        raise Absent("Cooper is not installed") from None
    table = steps.data()["D"]
    x, y = torch.as_tensor(table["x"], dtype=torch.float32), torch.as_tensor(table["y"])
    codes = torch.as_tensor(pairs.np.unique(table["g"], return_inverse=True)[1])
    net = steps.mlp()

    class Constrained(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            self.bounds = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                multiplier=cooper.multipliers.DenseMultiplier(num_constraints=14),
                formulation_type=cooper.formulations.Lagrangian,
            )

        def compute_cmp_state(self, rows: torch.Tensor) -> Any:
            losses = torch.nn.functional.softplus(-y[rows] * net(x[rows]))
            group = torch.nn.functional.one_hot(codes[rows], 14).float()
            violation = (losses @ group) / group.sum(0).clamp(min=1) - 0.65
            observed = {self.bounds: cooper.ConstraintState(violation=violation)}
            return cooper.CMPState(loss=losses.mean(), observed_constraints=observed)

    constrained = Constrained()
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    ascent = torch.optim.SGD(constrained.dual_parameters(), lr=0.1, maximize=True)
    both = cooper.optim.SimultaneousOptimizer(cmp=constrained, primal_optimizers=adam, dual_optimizers=ascent)

    def run() -> None:
        for _ in range(steps.STEPS):
            both.roll(compute_cmp_state_kwargs={"rows": torch.randint(steps.ROWS, (2 * BATCH,))})

    run.steps = steps.STEPS  # type: ignore[attr-defined]
    return run


def of_cooper(asked: argparse.Namespace) -> Iterator[Row]:
    """14 constraints on groups; how many rows our steps take is said beside it: five of each group,
    and as many as asked for."""
    peer, must = cooper_step(), {5: "0.5; reach 0.25", BATCH: ""}
    for each, goal in must.items():
        made = make("bench", steps.model(steps.GROUPS, True), algorithm="sonex", **{"inner_batch": each})
        case = f"14 constraints on groups, MLP, SONEX, {14 * each} rows a step"
        sides = [("", (steps.emitted(made), ""))] + [
            (f", {x.backend.name}", by_backend(made, x)) for x in (traced, compiled)
        ]
        for said, (ours, pays) in sides:
            ratio, a, b = ratios(ours, peer, asked.rounds)
            yield Row(
                case + said, "Cooper 1.0.1, one vector, 64 rows", ratio, goal, f"{a:.0f} / {b:.0f} µs{pays}"
            )
    ratio, a, b = ratios(steps.plain(True, True), peer, asked.rounds)
    yield Row(
        "14 constraints on groups, MLP, by hand in torch",
        "Cooper 1.0.1, one vector",
        ratio,
        "",
        f"{a:.0f} / {b:.0f} µs",
    )


# ------------------------------------------------------------------------------------- whole solves
FIRST = """
import time, sys, json
time.perf_counter = time.process_time
import fccomodel as fc
def timed(work):
    began = time.process_time(); found = work(); return found, time.process_time() - began
model = fc.Model.parse(open(sys.argv[1] + ".fcco").read())
def whole():
    return model.bind(spec=sys.argv[1] + ".toml").solve(seed=0)
_, first = timed(whole)
_, second = timed(whole)
problem = model.bind(spec=sys.argv[1] + ".toml")
another, changed = timed(lambda: problem.with_params(tau=0.06).solve(seed=0))
beyond = changed - another.outcome.solution.wall_s
found, sweep = timed(lambda: problem.sweep(tau=[0.08 - 0.0025 * k for k in range(20)]))
passes = sum(one.outcome.solution.passes for one in found)
print(json.dumps([first, second, changed, sweep, passes, beyond]))
"""
IMPORTS = "import torch, numpy, pandas, sklearn.datasets; sklearn.datasets.load_breast_cancer()"


def processor(command: list[str]) -> tuple[float, str]:
    """Processor seconds of a process on one thread, and what it prints."""
    before = os.times()
    alone = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": BYTECODE.name,
    }
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=alone, cwd=ROOT)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, found.stdout


def of_readme(asked: argparse.Namespace) -> Iterator[Row]:
    """README's solve beside what any such program takes to import and read, and beside importing torch
    alone."""
    example, rounds, out = str(ROOT / "examples" / "neyman_pearson"), [], tempfile.TemporaryDirectory()
    readme = [sys.executable, "-m", "fccomodel", "solve", f"{example}.fcco", "--bind", f"{example}.toml"]
    readme += ["--out", f"{out.name}/out"]
    for once in ("import torch", IMPORTS, FIRST):
        processor([sys.executable, "-c", once, example])
    processor(readme)
    for _ in range(min(asked.rounds, 5)):
        began = time.monotonic()
        command, waited = processor(readme)[0], time.monotonic() - began
        torch_alone = processor([sys.executable, "-c", "import torch"])[0]
        least = processor([sys.executable, "-c", IMPORTS])[0]
        spent, said = processor([sys.executable, "-c", FIRST, example])
        inside, second, changed, swept, passes, beyond = json.loads(said.splitlines()[-1])
        first = spent - second - changed - swept
        rounds.append(
            (
                torch_alone,
                least,
                first,
                first - torch_alone,
                second,
                changed,
                beyond,
                swept,
                inside,
                command,
                waited,
            )
        )
    names = (
        "torch",
        "least",
        "first",
        "more",
        "second",
        "changed",
        "beyond",
        "swept",
        "inside",
        "command",
        "waited",
    )
    columns = dict(zip(names, zip(*rounds, strict=True), strict=True))
    for case, ours, theirs, peer, must in (
        ("README's first command", "command", "torch", "importing torch, a process of its own", "1.5 s"),
        (
            "its solve in a program of one's own",
            "first",
            "least",
            "importing torch, pandas, scikit-learn",
            "1.5 s",
        ),
        ("beyond importing torch", "more", "torch", "importing torch", ""),
        ("the same again in one session", "second", "torch", "importing torch", "0.3 s"),
        ("with another parameter", "changed", "torch", "importing torch", ""),
        ("beyond its steps and passes", "beyond", "torch", "importing torch", "0.1 s"),
        ("a sweep over 20 values", "swept", "inside", "its first solve, imports included", "3"),
    ):
        ratio = statistics.median(a / b for a, b in zip(columns[ours], columns[theirs], strict=True))
        figures = " / ".join(f"{statistics.median(columns[side]):.2f}" for side in (ours, theirs)) + " s"
        more = {
            "swept": f"; {passes} passes",
            "command": f"; {statistics.median(columns['waited']):.2f} s by the clock",
        }
        yield Row(case, peer, ratio, must, figures + more.get(ours, ""))


def of_nca(asked: argparse.Namespace) -> Iterator[Row]:
    """Objective after the same seconds; larger is better."""
    x, y = pairs.letters(4000)
    there = pairs.scikit(x, y, asked.seconds)
    for how, text in (("exp(-sumsq(A @ (i.x - j.x)))", pairs.NCA), ("A @ i.x - A @ j.x", apart(pairs.NCA))):
        here = pairs.ours(text, x, y, asked.seconds)[0]
        figures = f"{here:.3f} / {there:.3f} after {asked.seconds:g} s"
        yield Row(
            f"NCA, 4,000 x 16, `{how}`: objective, larger is better",
            "scikit-learn's NCA",
            here / there,
            ">= 1",
            figures,
        )


def apart(text: str) -> str:
    return text.replace("A @ (i.x - j.x)", "A @ i.x - A @ j.x")


def of_semideviation(asked: argparse.Namespace) -> Iterator[Row]:
    """A whole solve, 14,640 rows of 25 assets, after one of half of them: modules are at hand on both
    sides."""
    try:
        import cvxpy as cp
    except ImportError:
        raise Absent("CVXPY is not installed") from None
    rng = pairs.np.random.default_rng(0)
    factors = rng.normal(size=(14_640, 3)) @ rng.normal(size=(3, 25))
    all_rows = 0.05 + factors + rng.normal(size=(14_640, 25)) * rng.uniform(0.5, 2, 25)
    text = """dim d; data R: table(r: real[d]); var x[d] in simplex(d);
    let m = E[z ~ R] dot(z.r, x); minimize -m + 0.5 * E[z ~ R] pos(m - dot(z.r, x));"""

    def ours(r: Any) -> float:
        return float(fccomodel.compile(text).bind(R={"r": r}).solve(seed=0).objective)

    def theirs(r: Any) -> float:
        x = cp.Variable(25)
        risk = -r.mean(0) @ x + 0.5 * cp.sum(cp.pos((r.mean(0) - r) @ x)) / len(r)
        return float(cp.Problem(cp.Minimize(risk), [x >= 0, cp.sum(x) == 1]).solve(solver="CLARABEL"))

    found = []
    for solve in (ours, theirs):
        solve(all_rows[::2])
        began = time.process_time()
        found.append((solve(all_rows), time.process_time() - began))
    (objective, here), (other, there) = found
    how = f"{here:.1f} / {there:.1f} s; objectives {objective:.6f}, {other:.6f}"
    yield Row(
        "mean semideviation, 14,640 rows, whole solve", "CVXPY, Clarabel", here / there, "1; reach 0.5", how
    )


def weighted(x: Any, y: Any, tau: float, mu: float) -> tuple[float, float]:
    """A root search on the multiplier over weighted logistic regressions: objective and the bounded
    loss at its end."""
    from scipy.optimize import brentq
    from sklearn.linear_model import LogisticRegression

    np = pairs.np
    counts, point = [int((y == k).sum()) for k in (0, 1)], [np.zeros(x.shape[1])]

    def bounded(log_nu: float) -> float:
        weights = np.where(y == 1, np.exp(log_nu) / counts[1], 1 / counts[0])
        fit = LogisticRegression(C=1 / (2 * mu), fit_intercept=False, tol=1e-6, max_iter=500)
        point[0] = fit.fit(x, y, sample_weight=weights).coef_[0]
        return float(np.logaddexp(0, -x[y == 1] @ point[0]).mean()) - tau

    brentq(bounded, -4, 6, xtol=1e-4)
    w = point[0]
    return float(np.logaddexp(0, x[y == 0] @ w).mean() + mu * w @ w), float(
        np.logaddexp(0, -x[y == 1] @ w).mean()
    )


def of_neyman(asked: argparse.Namespace) -> Iterator[Row]:
    """286,000 rows, or as many as there are."""
    import against_cvxpy as odds

    if not odds.DATA.exists():
        raise Absent(f"{odds.DATA.name} is not here")
    x, y = odds.table(280_000)
    began = time.process_time()
    found = fccomodel.compile(odds.MODEL).bind(D={"x": x, "y": y}).solve(seed=0, budget="60s")
    here = time.process_time() - began
    began = time.process_time()
    objective, miss = weighted(x, y, odds.TAU, odds.MU)
    there = time.process_time() - began
    how = f"{here:.1f} / {there:.1f} s; objectives {found.objective:.5f}, {objective:.5f}; "
    how += f"violations {found.report.feasibility:.0e}, {max(miss - odds.TAU, 0):.0e}"
    yield Row(
        "Neyman-Pearson, 280,000 rows, whole solve",
        "root search over LogisticRegression",
        here / there,
        "1",
        how,
    )


def of_memory(asked: argparse.Namespace) -> Iterator[Row]:
    """Peak resident memory of the same solve, above that before the data were read: the median of
    three processes."""
    import against_cvxpy as odds

    if not odds.DATA.exists():
        raise Absent(f"{odds.DATA.name} is not here")
    runs, (x, _) = [odds.measured("ours", 280_000, 900.0) for _ in range(3)], odds.table(280_000)
    peaks, read = ([run[what] for run in runs if run is not None] for what in ("peak", "read"))
    if len(peaks) < len(runs):
        raise Absent("a run did not end")
    size, peak = x.nbytes / 2**20, statistics.median(peaks)
    how = f"{min(peaks):.0f} to {max(peaks):.0f} MiB of {size:.0f} MiB of data; "
    how += f"{statistics.median(read):.0f} once pandas has read these"
    yield Row("memory, 280,000 rows", "1.3 x the data + 250 MiB", peak / (1.3 * size + 250), "1", how)


def of_cox(asked: argparse.Namespace) -> Iterator[Row]:
    """Whole solves from 500 to 1,000,000 rows, of which some are censored before the first death."""
    np = pairs.np
    text = """dim d; data D: table(x: real[d], time: real, event: {0, 1}); set I = {z in D | z.event == 1};
    var w[d]; minimize mean[i in I] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x)))
    + 0.005 * sumsq(w);"""
    for count in (200, *COX_ROWS):  # the first is not counted: modules are read
        rng = np.random.default_rng(0)
        x, w = rng.normal(size=(count, 10)), rng.normal(size=10) / 2
        lived = rng.exponential(np.exp(-x @ w))
        seen = rng.exponential(2 * np.median(lived), size=count)
        rows = {"x": x, "time": np.minimum(lived, seen), "event": (lived <= seen).astype(int)}
        found, ours = seconds(
            lambda rows=rows: fccomodel.compile(text).bind(D=rows).solve(seed=0, budget="60s")
        )
        best, theirs = seconds(lambda rows=rows: partial_likelihood(rows, 0.005))
        gap = (found.objective - best) / abs(best)
        how = f"{ours:.2f} / {theirs:.3f} s; relative gap {gap:.0e}"
        if count in COX_ROWS:
            yield Row(f"Cox, {count:,} rows, whole solve", "L-BFGS by hand", ours / theirs, "5 at 1e6", how)


def of_centres(asked: argparse.Namespace) -> Iterator[Row]:
    """Eight centres of 400,000 rows: objectives from one start each, and the seconds of both."""
    from sklearn.cluster import KMeans

    rng = pairs.np.random.default_rng(0)
    x = pairs.np.concatenate([rng.normal(size=(50_000, 8)) + 4 * rng.normal(size=8) for _ in range(8)])
    text = """dim d; set K = 1 .. 8; data D: table(x: real[d]); var c[K, d];
    minimize E[z ~ D] min[k in K] sumsq(z.x - c[k]);"""
    found, ours = seconds(lambda: fccomodel.compile(text).bind(D={"x": x}).solve(seed=0, budget="30s"))
    fit, theirs = seconds(lambda: KMeans(8, n_init=1, random_state=0).fit(x))
    how = f"{ours:.1f} / {theirs:.1f} s; objectives {found.objective:.4f}, {fit.inertia_ / len(x):.4f}"
    yield Row("k-means, 400,000 rows, whole solve", "scikit-learn's KMeans", ours / theirs, "3", how)


def seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    """What some work gives, and its processor seconds."""
    began = time.process_time()
    return work(), time.process_time() - began


PARTS = {
    "steps": of_steps, "cooper": of_cooper, "readme": of_readme, "nca": of_nca, "semideviation": of_semideviation,
    "neyman": of_neyman, "memory": of_memory, "cox": of_cox, "centres": of_centres,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of NCA, each side")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    lines, skipped = ["| case | peer | ratio | must | of |", "|---" * 5 + "|"], []
    print("\n".join(lines), flush=True)
    for name in asked.only:
        try:
            for row in PARTS[name](asked):
                lines.append(str(row))
                print(row, flush=True)
        except (Absent, ImportError) as reason:
            skipped.append(f"- {name}: skipped, {reason}")
            print(skipped[-1], flush=True)
    skipped += [f"- {name}: not in this run" for name in PARTS if name not in asked.only]
    if asked.write:
        about = in_markdown(__doc__ or "")
        load = "loaded" if os.getloadavg()[0] > 1.5 else "idle"
        about += (
            f"\n{platform.machine()}, torch {torch.__version__}; the machine was {load}: read the "
            "ratios, not the seconds."
        )
        HERE.with_suffix(".md").write_text(
            "\n".join(["# Speed beside the peers\n", about, "", *lines, "", *skipped]) + "\n"
        )


if __name__ == "__main__":
    main()
