"""A result as a page for a browser, and its pictures."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import fccomodel
from fccomodel.app.cli import main
from fccomodel.app.shown import page
from fccomodel.app.shown.pictures import roc
from fccomodel.app.shown.plots import Plots

MODEL = """model gaps; dim d; set G; data D : table(x: real[d], y: {-1, 1}, g: G); param kappa default 0.02; var w[d];
let rate[k in G] = E[z ~ D | z.g == k] sigmoid(dot(w, z.x));
minimize risk: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w)
subject to gap[k in G]: abs(rate[k] - E[z ~ D] sigmoid(dot(w, z.x))) <= kappa;"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    rows = pd.DataFrame(x, columns=["a", "b", "c"])
    rows["y"], rows["g"] = np.where(x @ [1, -1, 0.5] + 0.3 * g > 0, 1, -1), [f"<b>g{k}</b>" for k in g]
    rows.to_csv(folder / "rows.csv", index=False)
    spec = {"D": {"source": str(folder / "rows.csv"), "x": {"columns": ["a", "b", "c"]}}}
    result = fccomodel.compile(MODEL).bind(spec=spec).solve(budget="400it", holdout=0.3)
    result.save(folder / "out")
    return folder / "out"


class Page(HTMLParser):
    """The texts of elements with an id, and what is asked of a network."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.sources += [given[name] for name in ("src", "href") if given.get(name) and tag != "use"]
        if tag not in ("meta", "br", "path", "use", "link"):
            self.open.append((tag, given.get("id") or ""))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


def test_the_page(folder, tmp_path, capsys):
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text()
    page, record = Page(text), fccomodel.load(folder).record
    assert page.texts["verdict"].strip().startswith(record["verdict"])
    assert float(page.texts["objective"]) == pytest.approx(record["objective"], rel=1e-4)
    assert all(label in page.texts["constraints"] for label in record["constraints"])
    assert "<b>g0</b>" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.S), "labels are text"
    assert "0.3 of the rows at random, seed 0" in text
    assert record["answered_by"]["words"] in text and "`" not in page.texts["assumptions"]
    assert all(name in page.texts["assumptions"] for name in record["assumptions"])
    assert text.count("<math") > 3 and text.count("<svg") == 3
    assert [source for source in page.sources if not source.startswith("#")] == []
    assert "http" not in re.sub(r'"http://www.w3.org[^"]*"', "", text)


def test_names_of_data_are_texts_not_elements(tmp_path):
    """A column, a label, a comment and a set's element that are named like elements of a page."""
    script, picture = "<script>alert(1)</script>", "</style><img src=x onerror=alert(1)>"
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({script: rng.normal(size=40), "y": rng.normal(size=40), "g": [script, picture] * 20})
    model = fccomodel.compile(
        "dim d; set G; data D : table(x: real[d], y: real, g: G); var w[d]; var t[G];\n# "
        "<script>alert(1)</script>\n"
        "minimize E[z ~ D] (dot(w, z.x) + t[z.g] - z.y)^2; subject to fair[k in G]: t[k] <= 1;"
    )
    bound = model.bind(spec={"D": {"x": {"columns": [script]}}}, D=rows)
    result = bound.solve(budget="20it", polish=False)
    result.save(tmp_path / "out")
    shown = [fccomodel.app.shown.page.html(fccomodel.load(tmp_path / "out"))]
    shown += [
        x._repr_html_()
        for x in (model, bound, bound.plan(), result, fccomodel.evaluate(tmp_path / "out", D=rows))
    ]
    assert all("<script>alert" not in text and "<img src=x" not in text for text in shown)
    assert any("&lt;script&gt;alert" in text for text in shown)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_a_browser_shows_it(folder, tmp_path):
    """Real elements: mathematics and pictures have a size, nothing is wider than a phone or cut off;
    print unfolds all."""
    path = tmp_path / "page.html"
    script = """<script>addEventListener("load", () => { const box = e => e.getBoundingClientRect();
      document.title = JSON.stringify([box(document.querySelector("math")).width > 20,
        [...document.querySelectorAll("figure svg")].map(e => Math.round(box(e).height / box(e).width * 100)),
        document.documentElement.scrollWidth <= innerWidth,
        [...document.querySelectorAll(".wide")].every(e => e.scrollHeight <= e.clientHeight)]);
      dispatchEvent(new Event("beforeprint"));
      document.title += [...document.querySelectorAll("details")].every(e => e.open); })</script>"""
    path.write_text(
        fccomodel.app.shown.page.html(fccomodel.load(folder)).replace("</body>", script + "</body>")
    )
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-sync"
    )
    command = [
        "chromium",
        *flags.split(),
        "--disable-component-update",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    shown = subprocess.run(
        [*command, "--window-size=500,900", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    assert re.search(r"<title>(.*?)</title>", shown)[1] == "[true,[53,34,34],true,true]true"


def test_pictures(folder):
    record = dict(fccomodel.load(folder).record)
    plots = Plots(record)
    axes = plots.convergence().axes
    assert [len(a.get_lines()) for a in axes] >= [1, 1] and axes[0].get_xlabel() == "seconds"
    assert plots.convergence("oracles").axes[0].get_xlabel() == "oracle calls"
    assert len(plots().axes) == 3
    stages = [
        {"seconds": k, "objective": 1.0, "violation": max(0.0, 1e-3 - k), "kkt": 10.0**-k} for k in range(5)
    ]
    beside = Plots(record | {"history": stages}).convergence().axes[1]
    beside.figure.canvas.draw()
    ticks = [label.get_text() for label in beside.get_yticklabels()]
    assert min(beside.get_lines()[0].get_ydata()) == 0 and any("{0}" in tick for tick in ticks), (
        "a 0 is drawn as 0"
    )
    many = {f"c[{k}]": {"value": (k - 9) * 1e-3, "multiplier": max(0.0, k - 7.0)} for k in range(30)}
    record["constraints"] = many
    (axes,) = Plots(record).constraints().axes
    assert (
        axes.get_title(loc="left") == "12 of 30 constraints"
        and axes.get_yticklabels()[0].get_text() == "c[29]"
    )
    (axes,) = Plots(record).multipliers().axes
    assert [bar.get_width() for bar in axes.patches][:2] == [22.0, 21.0]


@pytest.mark.parametrize("package", ["jinja2", "latex2mathml", "matplotlib"])
def test_without_what_it_needs(folder, monkeypatch, capsys, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    assert main(["report", str(folder)]) == 2
    assert "fccomodel[report]" in capsys.readouterr().err


def test_a_page_beside_a_result_leaves_it_as_it_is(folder, capsys):
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").exists() and fccomodel.load(folder).variables["w"].shape == (3,)


def test_an_equality_below_zero_does_not_hold(tmp_path):
    """Marked as broken on the page and in the picture, as in the terminal."""
    text = "var t >= 0; minimize t^2; subject to level: t == 3;"
    result = fccomodel.compile(text).bind().solve(budget="1it", polish=False)
    assert result.constraints["level"] < -0.1 and "\u2717" in str(result)
    assert '<td class="fails">\u2717</td><td>level</td>' in result.html()
    (axes,) = result.plot.constraints().axes
    assert (
        axes.patches[0].get_facecolor() != Plots(result.json).constraints().axes[0].patches[0].get_facecolor()
    )


def test_an_answer_without_steps_shows_its_variables():
    """The interior-point method alone leaves no points of a run to draw."""
    text = 'set A = {"oats", "rye"}; var w[A]; var b; minimize sumsq(w - 2) + (b + 5)^2; subject to s: b >= -4;'
    plot = fccomodel.compile(text).bind().solve().plot
    assert not plot.has_steps
    for axes in (plot().axes[0], plot.variables().axes[0]):
        assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "w[oats]", "w[rye]"]
        assert [bar.get_width() for bar in axes.patches] == pytest.approx([-4, 2, 2], abs=1e-4)
    assert len(plot.variables("w").axes[0].patches) == 2
    with pytest.raises(fccomodel.FccoError, match="no variable `v`"):
        plot.variables("v")


def test_pictures_of_an_answer(tmp_path):
    """Areas are scikit-learn's, ties by halves; groups stand beside their bounds; no words are outside
    or overlap."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(300, 3)), 1)
    rows = pd.DataFrame(x, columns=["a", "b", "c"])
    rows["y"] = np.where(x @ [1, -1, 0.5] + rng.normal(size=300) > 0, 1, -1)
    rows["g"] = rng.choice(["north", "south", "the east coast of the island"], 300)
    result = (
        fccomodel.compile(MODEL)
        .bind(D=rows, spec={"D": {"x": {"columns": ["a", "b", "c"]}}})
        .solve(budget="60it")
    )
    plot = result.plot
    (whole,) = roc.curves(result.outcome, None, by=None, target=None)
    assert whole.area == pytest.approx(roc_auc_score(rows.y, result.decision_function(rows)))
    some = rows[:150]
    for one in roc.curves(result.outcome, some, by="g", target="y"):
        mine = some[some.g == one.name]
        assert one.rows == len(mine) and one.area == pytest.approx(
            roc_auc_score(mine.y, result.decision_function(mine))
        )
    (tied,) = [roc.curve("", np.array([1.0, 1.0, 0.0]), np.array([True, False, False]))]
    assert tied is not None and tied.area == pytest.approx(0.75)
    (axes,) = plot.groups().axes
    assert len(axes.patches) == 3 and axes.get_legend_handles_labels()[1] == ["bound"]
    (axes,) = plot.groups("rate").axes
    assert sorted(bar.get_width() for bar in axes.patches) == pytest.approx(sorted(values(result, "rate")))
    for figure in (
        plot.groups(),
        plot.roc(by="g"),
        plot.constraints(),
        plot.multipliers(),
        plot.convergence(),
    ):
        apart(figure)
    for wrong, code in ((lambda: plot.roc(by="y"), "F0814"), (lambda: plot.groups("none"), "F0805")):
        with pytest.raises(fccomodel.FccoError, match=code):
            wrong()
    with pytest.raises(fccomodel.FccoError, match="F0805"):
        Plots(result.json).roc()


def values(result, name):
    from fccomodel.evaluation.values import values

    let = result.outcome.problem.lets[name]
    return list(values(result.outcome.bound, result.variables, [let])[name].values())


def apart(figure):
    """The words of a picture lie inside it, and no two of them on one another."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    axes_of = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    ticks = [(tick, *sorted(axis.get_view_interval())) for axis in axes_of for tick in axis.get_major_ticks()]
    away = {
        label
        for tick, low, high in ticks
        if not low <= tick.get_loc() <= high
        for label in (tick.label1, tick.label2)
    }
    minor = {label for axis in axes_of for label in axis.get_ticklabels(which="minor")}
    words = [
        text
        for text in figure.findobj(Text)
        if text.get_text().strip() and text.get_visible() and text not in away | minor
    ]
    boxes = {text.get_text(): text.get_window_extent(canvas.get_renderer()) for text in words}
    outside = [
        said for said, box in boxes.items() if box.x0 < -2 or box.x1 > figure.bbox.x1 + 2 or box.y0 < -2
    ]
    pairs = itertools.combinations(boxes.items(), 2)
    hit = [(one, other) for (one, box), (other, beside) in pairs if box.padded(-1).overlaps(beside)]
    assert not outside and not hit


def test_nothing_in_a_picture_is_dark_on_a_dark_page():
    """Ticks of a logarithmic axis are texts without a colour of their own."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none"}):
        figure = Figure()
        figure.subplots().semilogy([1.0, 100.0], color="0.25")
        text = page.svg(figure)
    assert re.match(r'<svg fill="currentColor" ', text) and "<text" in text
    assert not re.search(r"(fill|stroke)[:=] ?\"?(black|#000000|#404040)", text)
