"""A marimo notebook: what it shows of a model, its structure, plan and result, and the progress of a run."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.places import ROOT

CELLS = """import marimo
app = marimo.App()

@app.cell
def _():
    import numpy as np
    import fccomodel as fc
    x = np.random.default_rng(0).normal(size=(40, 2))
    m = fc.compile('''dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];
    minimize risk: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);''')
    p = m.bind(D={"x": x, "y": np.where(x[:, 0] > 0, 1, -1)})
    return m, p

@app.cell
def _(m):
    m
    return

@app.cell
def _(p):
    p.explain()
    return

@app.cell
def _(p):
    p.plan()
    return

@app.cell
def _(p):
    import marimo
    seen, replace = [], marimo.output.replace
    marimo.output.replace = lambda value: (seen.append(getattr(value, "text", "")), replace(value))
    r = p.solve(budget="60it")
    r
    return r, seen

@app.cell
def _(r, seen):
    print("SEEN", len(seen), "<polyline" in seen[0], repr(seen[-1]), r.report.epsilon < 10)
    return
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("marimo") is None, reason="no marimo here")
def test_a_notebook(tmp_path: Path) -> None:
    (tmp_path / "book.py").write_text(CELLS)
    command = [sys.executable, "-m", "marimo", "export", "html", "book.py", "-o", "book.html", "--force"]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=240
    )
    assert not done.returncode, done.stderr
    page = html.unescape((tmp_path / "book.html").read_text())
    for words in (
        "<math",
        "minimize risk",
        "every term is convex",
        "other algorithms, and what each lacks",
        "the whole report",
    ):
        assert words in page.replace("\\u003C", "<").replace("\\u003c", "<"), words
    assert "SEEN" in page and "True '' True" in page.replace("\\'", "'"), page[page.find("SEEN") :][:80]
