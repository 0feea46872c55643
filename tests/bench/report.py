"""What reports cost: seconds, memory and the residual at optima with many kinked rows or many
constraints.

    python tests/bench/report.py [name ...] [--rows 100000]

Each model is reported on at a point that is (nearly) optimal, in a process of its own. ``more`` is
the memory beyond what was used before, ``data`` that of the bound arrays; ``passes`` are
evaluations over all rows, in units of the first one's seconds.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fccomodel
from fccomodel import report
from fccomodel.report.point.system import System

Array = np.ndarray
Posed = tuple[str, dict[str, Any], dict[str, Array]]
FEATURES = 10
MB = 1 << 20


def drawn(n: int) -> tuple[np.random.Generator, Array, Array]:
    random = np.random.default_rng(0)
    x = random.standard_normal((n, FEATURES))
    return random, x, x @ np.ones(FEATURES) + random.standard_normal(n)


def semideviation(n: int) -> Posed:
    """A linear program with a kink for every row; the best of many portfolios is not sought: one asset."""
    text = """dim d; data R: table(r: real[d]); var x[d] in simplex(d);
    let m = E[z ~ R] dot(z.r, x); minimize -m + mean[z in R] pos(m - dot(z.r, x));"""
    returns = 0.05 * drawn(n)[1]
    returns[:, 0] = 1.0
    return text, {"R": {"r": returns}}, {"x": np.eye(FEATURES)[0]}


def median(n: int) -> Posed:
    _, x, y = drawn(n)
    x = np.column_stack([np.ones(n), x])
    w = np.r_[np.median(y), np.zeros(FEATURES)]
    text = "dim d; data D: table(x: real[d], y: real); var w[d]; minimize mean[z in D] abs(w[1] - z.y);"
    return text, {"D": {"x": x, "y": y}}, {"w": w}


def all_at_their_kinks(n: int) -> Posed:
    """Every row fits exactly: 0 is one of the subgradients."""
    _, x, _ = drawn(n)
    text = (
        "dim d; data D: table(x: real[d], y: real); var w[d]; minimize mean[z in D] abs(dot(w, z.x) - z.y);"
    )
    return text, {"D": {"x": x, "y": x @ np.ones(FEATURES)}}, {"w": np.ones(FEATURES)}


def tail(n: int) -> Posed:
    _, x, _ = drawn(n)
    text = """dim d; data R: table(r: real[d]); var x[d] in simplex(d);
    minimize cvar(tail = 0.05)[z in R] (-dot(z.r, x));"""
    x[:, 0] = 9.0
    return text, {"R": {"r": x}}, {"x": np.eye(FEATURES)[0]}


def family(n: int) -> Posed:
    _, x, y = drawn(n)
    text = """dim d; set G; data D: table(x: real[d], y: real, g: G); var w[d]; minimize E[z ~ D] (dot(w, z.x) - z.y)^2;
    subject to risk[k in G]: E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2 <= 9;"""
    data = {"D": {"x": x, "y": y, "g": np.arange(n) % (n // 10)}}
    return text, data, {"w": np.linalg.lstsq(x, y, rcond=None)[0]}


def kinked_family(n: int) -> Posed:
    _, x, y = drawn(n // 10)
    text = """dim d; data D: table(x: real[d], y: real); var w[d]; var t; minimize t + 0.5 * sumsq(w);
    subject to fit[z in D]: abs(dot(w, z.x) - z.y) <= t;"""
    y = np.clip(y / 100 * (x[:, 0] > 0), -0.01, 0.01)
    y[:2] = 1.0, -1.0
    x[:2] = 0.0
    return text, {"D": {"x": x, "y": y}}, {"w": np.zeros(FEATURES), "t": np.array(1.0)}


def active_bounds(n: int) -> Posed:
    """Constraints as many as variables, each active."""
    size = n // 10
    text = (
        "dim d; data c: real[d]; var x[d]; minimize sumsq(x) - 2 * sum(x); subject to cap[i in d]: "
        "x[i] <= c[i];"
    )
    return text, {"c": np.full(size, 0.5)}, {"x": np.full(size, 0.5)}


def sparse(n: int) -> Posed:
    """A weight for every variable, nearly all at 0."""
    size = n // 10
    text = "dim d; data c: real[d]; var x[d]; minimize sumsq(x - c) + 2 * norm1(x);"
    c = np.random.default_rng(0).uniform(-1.1, 1.1, size)
    return text, {"c": c}, {"x": np.sign(c) * np.maximum(np.abs(c) - 1, 0)}


MODELS: dict[str, Callable[[int], Posed]] = {
    made.__name__: made
    for made in (
        semideviation,
        median,
        all_at_their_kinks,
        tail,
        family,
        kinked_family,
        active_bounds,
        sparse,
    )
}


def measured(name: str, n: int) -> str:
    text, data, point = MODELS[name](n)
    bound = fccomodel.compile(text).bind(**data).bound
    size = sum(
        a.nbytes for value in data.values() for a in (value.values() if isinstance(value, dict) else (value,))
    )
    forward_s = System(bound, point).forward_s
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, wall = time.process_time(), time.perf_counter()
    found = report.report(bound, point)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    cost = f"{seconds:6.2f} s ({wall:6.2f} wall) {seconds / forward_s:7.0f} passes"
    return (
        f"{name:20} {cost} {more:6.0f} MB more {size / MB:6.0f} MB data  epsilon {found.epsilon:.1e}  "
        f"{found.gap}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(measured(args.names[0], args.rows), flush=True)
        return
    for name in args.names or MODELS:
        subprocess.run([sys.executable, __file__, name, "--rows", str(args.rows), "--one"], check=True)


if __name__ == "__main__":
    main()
