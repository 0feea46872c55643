"""Notebooks: cells of model text, what is shown of everything, progress and interruption, in one kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

import fccomodel
from fccomodel.app.shown.notebook import live
from fccomodel.execution.run import Progress

MODEL = """dim d;
data D : table(x: real[d], y: {-1, 1});
var w[d];
minimize risk: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w)
subject to small: sumsq(w) <= 1;"""
ROWS = """import numpy as np, fccomodel as fc
rng = np.random.default_rng(0)
x = rng.normal(size=(200, 3))
D = {"x": x, "y": np.where(x[:, 0] > 0, 1, -1)}"""
#: The cells of one notebook by what they show.
CELLS = {
    "load": "%load_ext fccomodel",
    "model": f"%%fcco m\n{MODEL}",
    "wrong": "%%fcco wrong\nvar w;\nminimize sumsq(v);",
    "no name": "%%fcco\nvar w;",
    "solved": "%%fcco tiny --solve --budget 50it --seed 1\nvar t >= 0; minimize (t - 1)^2;",
    "kept": "print(type(tiny).__name__, tiny_result.options['seed'])",
    "rows": ROWS,
    "bound": "p = m.bind(D=D)\np",
    "explained": "p.explain()",
    "planned": "p.plan()",
    "wrong data": "p.explain()\nm.bind(D={'x': x})",
    "wrong Python": "k = fc.Model('k')\nk.w = fc.var()\nk.minimize(k.w ** 2 +\n           k.v)\nk.check()",
    "module": """import torch
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, width), torch.nn.Linear(width, 1)
    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))
text = "net s : real[3] -> real; data D : table(x: real[3], y: {-1, 1}); var w = params(s);"
text += "minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));"
r = fc.compile(text).bind(D=D, nets={"s": Net(4)}).solve(budget="20it")
print(r.outcome.program.modules.keys(), str(r)[:40].strip())""",
    "interrupted": """import os, signal, threading, time
def interrupt():
    while getattr(signal.getsignal(signal.SIGINT), "__name__", "") != "on_interrupt":
        time.sleep(0.05)  # the solver does not run yet
    time.sleep(0.7)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
r = m.bind(D=D).solve(budget="200s", polish=False, algorithm="sonex", patience=10**6)
r""",
    "status": "print(r.json['status'], r.objective < 0.7, len(repr(r)) < 200)",
    "compared": "fc.compare(p, algorithms=['sonex', 'alexr2'], seeds=2, budget='1e4oracles')",
}


@pytest.fixture(scope="module")
def shown() -> Mapping[str, list[Any]]:
    """The outputs of each cell."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("latex2mathml")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.values()])
    nbclient.NotebookClient(book, timeout=240, kernel_name="python3", allow_errors=True).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, book.cells, strict=True)}


def html(outputs: list[Any]) -> str:
    return "".join(out.data.get("text/html", "") for out in outputs if "data" in out)


def printed(outputs: list[Any]) -> str:
    return "".join(out.get("text", "") for out in outputs)


def raised(outputs: list[Any]) -> str:
    """An error as the cell shows it, without colours."""
    (error,) = (out for out in outputs if out.output_type == "error")
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))


@pytest.mark.slow
def test_cells_of_model_text(shown):
    assert "<math" in html(shown["model"]) and "text/latex" in shown["model"][0].data
    assert "%%fcco wrong:3:16" in raised(shown["wrong"]) and "Traceback" not in raised(shown["wrong"])
    assert "%%fcco NAME" in raised(shown["no name"])
    assert "minimize objective" in html(shown["solved"]) and "Model (1," in printed(shown["kept"])


@pytest.mark.slow
def test_errors_in_cells_have_their_place(shown):
    assert "line 2 | m.bind(D={'x': x})" in raised(shown["wrong data"]) and "F05" in raised(
        shown["wrong data"]
    )
    assert ":4:12" in raised(shown["wrong Python"]) and "k.v" in raised(shown["wrong Python"])


@pytest.mark.slow
def test_what_is_shown(shown):
    assert "D: 200 rows" in html(shown["bound"]) and "<math" in html(shown["bound"])
    explained = html(shown["explained"])
    assert "<b>small</b>: convex, smooth" in explained and "every term is convex" in explained
    assert explained.count("<details") == explained.count("</details>") > 8
    assert "other algorithms, and what each lacks" in html(shown["planned"]) and 'class="rows"' in html(
        shown["planned"]
    )
    assert all(name in html(shown["compared"]) for name in ("sonex", "alexr2"))
    assert "dict_keys(['s'])" in printed(shown["module"])


@pytest.mark.slow
def test_an_interrupt_keeps_the_best_point(shown):
    assert "interrupted True True" in printed(shown["status"])
    assert "the whole report" in html(shown["interrupted"])


def step(k: int) -> Progress:
    return Progress(
        stage=k, iteration=10 * k, objective=1 / (k + 1), violation=0.0, kkt=None if k < 3 else 10.0**-k, kkt_error=None,
        steps_per_second=1.0, seconds_left=None, message="<b>",
    )  # fmt: skip


def test_progress_is_drawn_twice_a_second_at_most():
    pictures: list[str] = []
    clock = iter(k / 10 for k in range(2000))
    watch = live.LivePicture(pictures.append, lambda: next(clock))
    for k in range(1500):
        watch(step(min(k, 9)))
    assert (
        len(pictures) == pytest.approx(1500 / 10 / live.PICTURE_SECONDS, abs=3)
        and len(watch.points) <= 2 * live.CURVE_POINTS + 1
    )
    assert (
        pictures[-1].count("<polyline") == 2
        and "&lt;b&gt;" in pictures[-1]
        and "KKT residual" not in pictures[0]
    )


def test_without_a_notebook_there_is_no_display():
    with live.progress() as callback:
        assert callback is None


def test_models_explain_themselves_as_html():
    """Also where nothing solves the model, and labels are text."""
    text = "var w; minimize E[z ~ normal(0, 1)] sqrt(abs(w - z)); subject to w >= 1;"
    refused = fccomodel.compile(text).explain()._repr_html_()
    assert refused.count("<details") == refused.count("</details>") and "other algorithms" in refused
    model = fccomodel.Model("unfinished")
    assert model._repr_html_() is None and set(model._repr_mimebundle_()) == {"text/plain"}
    bundle = fccomodel.compile(text)._repr_mimebundle_(exclude={"text/html"})
    assert set(bundle) == {"text/plain", "text/latex"} and "\\sqrt" in bundle["text/latex"]
    assert "Planned" in repr(fccomodel.compile("var t; minimize t^2;").bind().plan())
