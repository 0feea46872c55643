"""Seconds of whole solves beside their aims, one table by one command.

    python tests/bench/aims.py [CASE ...] [--most ROWS] [--write]

Each row is a process of its own (see ``whole.py``, whose cases and peers these are): processor
seconds of one thread, binding included. An aim is a multiple of the peer's seconds, or, where the
peer's are too short to be a measure or there is no peer, seconds. The last row is ``explain`` of a model with 200 written constraints. ``--most`` leaves out larger cases,
``--write`` keeps the table in ``aims.md``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import whole

HERE = Path(__file__).resolve()
WRITTEN_CONSTRAINTS = 200
EXPLAIN_AIM = 1.0  # seconds


class Aim(NamedTuple):
    """A case of ``whole.py`` at so many rows, and the most that it is to take: so many times the
    peer's seconds, or so many seconds."""

    case: str
    rows: int
    times_peer: float | None = None
    seconds: float | None = None


AIMS = (
    Aim("Cox", 500, seconds=0.1),
    Aim("Cox", 2_000, seconds=0.2),
    Aim("Cox", 6_000, seconds=0.3),
    Aim("Cox", 20_000, seconds=0.5),
    Aim("Cox", 1_000_000, times_peer=5),
    Aim("Markowitz", 500, times_peer=5),
    Aim("Markowitz", 50_000, times_peer=5),
    Aim("turnover", 500, times_peer=5),
    Aim("turnover", 50_000, times_peer=5),
    Aim("transport", 5_000, times_peer=3),
    Aim("newsvendor", 50_000, times_peer=1),
    Aim("lasso", 500, seconds=0.1),
    Aim("elastic net", 500, seconds=0.1),
    Aim("isotonic", 2_000, times_peer=3),
    Aim("k-means", 400_000, times_peer=3),
    Aim("logistic", 1_000_000, times_peer=1.5),
    Aim("bounded", 1_000_000, seconds=5),
    Aim("CVaR", 5_000, times_peer=1),
)


def judged(seconds: float, allowed: float) -> str:
    """Whether the aim is met, or by how much it is missed."""
    if seconds <= allowed:
        return "met"
    return f"{seconds / allowed:.1f} times the aim"


def row(aim: Aim) -> str:
    """The line of a case."""
    found = whole.apart(aim.case, aim.rows)
    head = f"| {aim.case} | {aim.rows:,} |"
    if "error" in found:
        return f"{head} | | | {found['error']} | |"
    ours, peer, allowed, stated = found["ours"], "", aim.seconds, f"{aim.seconds} s"
    if "peer" in found:
        peer = f"{found['peer']:.3f}"
    if aim.times_peer is not None:
        allowed, stated = aim.times_peer * found["peer"], f"{aim.times_peer:g} x the peer"
    assert allowed is not None
    cells = (f"{ours:.2f}", peer, stated, judged(ours, allowed), found["verdict"])
    return f"{head} " + " | ".join(cells) + " |"


def explained() -> str:
    """The line of ``explain``, after that of a smaller model, so that modules are read."""
    seconds = [seconds_to_explain(count) for count in (2, WRITTEN_CONSTRAINTS)][-1]
    verdict = judged(seconds, EXPLAIN_AIM)
    return f"| explain, written constraints | {WRITTEN_CONSTRAINTS} | {seconds:.2f} | | {EXPLAIN_AIM} s | {verdict} | |"


def seconds_to_explain(count: int) -> float:
    """Processor seconds of ``explain`` for so many written constraints, each with its own numbers."""
    import fccomodel

    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(5_000, 20)), draw.choice([-1, 1], 5_000)
    body = "  c{k}: E[z ~ D] (z.x[{column}] * dot(w, z.x) + square(dot(w, z.x) - {k})) <= {bound};"
    rows = [body.format(k=k, column=k % 20 + 1, bound=k * k + 300) for k in range(1, count + 1)]
    text = "\n".join([whole.LOGISTIC, "subject to", *rows])
    problem = fccomodel.compile(text).bind(D={"x": x, "y": y})
    began = time.process_time()
    str(problem.explain())
    return time.process_time() - began


def lines(asked: argparse.Namespace) -> Iterator[str]:
    """The table, line by line."""
    yield "| case | rows | ours, s | peer, s | aim | | verdict of the report |"
    yield "|---" * 7 + "|"
    for aim in AIMS:
        if aim.rows <= asked.most and (not asked.cases or aim.case in asked.cases):
            yield row(aim)
    if not asked.cases or "explain" in asked.cases:
        yield explained()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--most", type=int, default=10**7)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    kept = []
    for line in lines(asked):
        kept.append(line)
        print(line, flush=True)
    if asked.write:
        text = "\n".join(["# Aims of speed\n", whole.in_markdown(__doc__ or ""), *kept])
        HERE.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main()
