"""Models in Python: the same as their files, in every construct, there and back."""

from __future__ import annotations

import copy
import linecache
import pickle
import re

import pytest
from support.places import ROOT
from support.random_models import Generator

import fccomodel as fc
from fccomodel import (
    E,
    box,
    cvar,
    dot,
    exp,
    log,
    log1pexp,
    logmeanexp,
    mean,
    normal,
    pmean,
    prob,
    real,
    sigmoid,
    simplex,
    sqhinge,
    square,
    sumsq,
    topk,
    variance,
)
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language import rewriting, statements
from fccomodel.language.parse import parse

FILES = sorted([*(ROOT / "examples").rglob("*.fcco"), *(ROOT / "tests" / "golden" / "facts").glob("*.fcco")])


def built(code: str) -> fc.Model:
    """The model that a program makes."""
    scope: dict[str, object] = {"__name__": "user"}
    exec(compile(code, "<program>", "exec"), scope)
    return next(value for value in scope.values() if isinstance(value, fc.Model))


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_to_python_to_file(path):
    """Hash, statements in order, labels, variables and comments."""
    compiled = fc.compile(path)
    model = fc.Model.parse(path)
    again = built(model.to_python())
    assert model.hash == again.hash == compiled.hash
    trees = [rewriting.canonical(parse(Source(text=str(m)))) for m in (model, again)]
    assert trees[0] == trees[1]
    assert [type(s) for s in trees[0].statements] == [type(s) for s in compiled.compiled.statements]
    problems = [m.compiled.problem for m in (compiled, again.compiled)]
    assert [c.label for c in problems[0].constraints] == [c.label for c in problems[1].constraints]
    assert [*problems[0].variables] == [*problems[1].variables]
    said = comments(str(model))
    assert said == comments(str(again)) and sorted(said) == sorted(comments(path.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_every_text_can_be_printed(first):
    """What is printed of any syntax reads as that syntax."""
    for seed in range(first, first + 100):
        model = Generator(seed).model()
        text = "\n".join(statements.text(statement) for statement in model.statements)
        assert parse(Source(text=text)) == model, text


def roc_fair() -> fc.Model:
    """The model of the design."""
    m = fc.Model("roc_fair", doc="AUC, with equal true positive rates along the curve")
    m.d = fc.dim()
    m.G = fc.labels()
    m.T = fc.grid(-3, 3, by=0.5)
    m.D = fc.table(x=real[m.d], y={0, 1}, g=m.G)
    m.kappa = fc.param(ge=0, default=0.01)
    m.s = fc.net(real[m.d], real)
    m.w = fc.params(m.s)
    D, G, T, s, w = m.D, m.G, m.T, m.s, m.w
    P, N = D.where(D.y == 1), D.where(D.y == 0)

    @m.define
    def score(x):
        return s(w, x)

    rate = m.let(rate=(E(sigmoid(score(z.x) - t) for z in P) for t in T))
    own = m.let(own=(E(sigmoid(score(z.x) - t) for z in P.where(D.g == k)) for k in G for t in T))
    m.maximize(auc=E(sigmoid(score(p.x) - score(n.x)) for p in P for n in N))
    m.subject_to(gap=(abs(own[k, t] - rate[t]) <= m.kappa for k in G for t in T))
    return m


def test_the_session():
    """A model, its file, and edits by label."""
    m = roc_fair()
    D, score = m.D, m.score
    worst = cvar((E(log1pexp(-score(z.x)) for z in D.where(D.y == 1).where(D.g == k)) for k in m.G), tail=0.3)
    assert (
        str(m)
        == """\
# AUC, with equal true positive rates along the curve
model roc_fair;

dim d;
set G;
set T = -3 .. 3 by 0.5;
data D : table(x: real[d], y: {0, 1}, g: G);
param kappa >= 0 default 0.01;
net s : real[d] -> real;
var w = params(s);
def score(x) = s(w; x);
let rate[t in T] = E[z ~ D | z.y == 1] sigmoid(score(z.x) - t);
let own[k in G, t in T] = E[z ~ D | z.y == 1 and z.g == k] sigmoid(score(z.x) - t);

maximize auc: E[p ~ D, n ~ D | p.y == 1 and n.y == 0] sigmoid(score(p.x) - score(n.x));
subject to
  gap[k in G, t in T]: abs(own[k, t] - rate[t]) <= kappa;
"""
    )
    assert fc.Model.parse(str(m)).hash == m.hash
    assert m.check() is m and m.explain().why("gap")
    del m.constraints["gap"]
    m.minimize(worst=worst)
    assert "gap" not in str(m) and "maximize" not in str(m) and "subject to" not in str(m)
    assert (
        "minimize worst: cvar(tail = 0.3)[k in G] E[z ~ D | z.y == 1 and z.g == k] log1pexp(-score(z.x));"
        in str(m)
    )


def test_the_session_on_data():
    """Tumours by their first measurements, in groups of small and large ones: a torch module, a param
    for each solve."""
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    tumours = pytest.importorskip("sklearn.datasets").load_breast_cancer()
    x = (tumours.data[:60, :3] - tumours.data[:60, :3].mean(0)) / tumours.data[:60, :3].std(0)
    group = numpy.where(tumours.data[:60, 0] > numpy.median(tumours.data[:60, 0]), "large", "small")
    y = numpy.arange(60) % 2
    module = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0))
    p = roc_fair().bind(D={"x": x, "y": y, "g": group}, s=module, kappa=0.2)
    r = p.solve(seed=0, budget="30it")
    assert {label.split("[")[0] for label in r.constraints} == {"gap"} and len(r.constraints) == 2 * 13
    tighter = p.with_params(kappa=0.1)
    assert tighter.bound.tables is p.bound.tables and float(tighter.bound.params["kappa"]) == 0.1


def test_shipped_models_by_hand():
    """As one would write them: the hashes of the files."""
    m = fc.Model("neyman_pearson")
    m.d = fc.dim()
    m.D = fc.table(x=real[m.d], y={0, 1})
    m.tau = fc.param(ge=0, default=0.05)
    m.mu = fc.param(ge=0, default=0.005)
    m.w = fc.var(m.d)
    m.define(lambda_named("score", lambda x: dot(m.w, x)))
    sick, well = m.D.where(m.D.y == 1), m.D.where(m.D.y == 0)
    m.minimize(false_alarms=E(log1pexp(m.score(z.x)) for z in well) + m.mu * sumsq(m.w))
    m.subject_to(misses=E(log1pexp(-m.score(z.x)) for z in sick) <= m.tau)
    assert m.hash == fc.compile(ROOT / "examples" / "neyman_pearson.fcco").hash

    m = fc.Model("group_dro")
    m.d, m.G = fc.dim(), fc.labels()
    m.D = fc.table(x=real[m.d], y={-1, 1}, g=m.G)
    m.alpha = fc.param(gt=0, le=1, default=0.3)
    m.mu = fc.param(ge=0, default=0.01)
    m.w = fc.var(m.d)
    risk = cvar((E(log1pexp(-z.y * dot(m.w, z.x)) for z in m.D.where(m.D.g == k)) for k in m.G), tail=m.alpha)
    m.minimize(risk=risk + m.mu * sumsq(m.w))
    assert m.hash == fc.compile(ROOT / "examples" / "group_dro.fcco").hash


def lambda_named(name, function):
    function.__name__ = name
    return function


def scratch() -> fc.Model:
    m = fc.Model()
    m.d, m.K = fc.dim(), fc.values(1, 2)
    m.G = fc.labels()
    m.D = fc.table(x=real[m.d], y={-1, 1}, g=m.G, t=real)
    m.a, m.w, m.v = fc.param(ge=0), fc.var(m.d), fc.var(m.K)
    m.A = fc.array(m.d, m.d)
    m.r, m.u = fc.index(m.D), fc.index(fc.draw(m.D))
    m.s = fc.net(real[m.d], real, assume={"smooth": True, "lipschitz": 2})
    m.theta = fc.params(m.s)
    return m


#: What is written in Python, and how the file says it.
FORMULAS = {
    "minus": (lambda m: -m.a * 2 - -3, "-a * 2 - -3"),
    "power": (lambda m: (m.a + 1) ** 2**m.a, "(a + 1)^2^a"),
    "reflected": (lambda m: 1 - 2 / m.a, "1 - 2 / a"),
    "product": (lambda m: m.w @ m.A @ m.w, "w @ A @ w"),
    "literal": (lambda m: fc.literal(2) * 3 * m.a, "2 * 3 * a"),
    "small": (lambda m: 1e-7 * m.a, "1e-7 * a"),
    "zero": (lambda m: sum([m.a, m.a]), "a + a"),  # Python's sum, of a list
    "entry": (lambda m: m.v[1] + m.w[2], "v[1] + w[2]"),
    "row": (lambda m: dot(m.A[1], m.w), "dot(A[1], w)"),
    "next entry": (
        lambda m: fc.sum(m.w[i + 1] for i in fc.grid(1, m.d - 1)),
        "sum[i in 1 .. d - 1] w[i + 1]",
    ),
    "entry by a label": (lambda m: E(m.v[z.g] for z in m.D), "E[z ~ D] v[z.g]"),
    "dim": (lambda m: mean(m.w[i] for i in m.d) + m.d, "mean[i in d] w[i] + d"),
    "condition": (
        lambda m: E(z.t for z in m.D.where((m.D.y == 1) & ~(m.D.g == "a") | (m.D.t > 2))),
        'E[z ~ D | z.y == 1 and not z.g == "a" or z.t > 2] z.t',
    ),
    "condition twice": (
        lambda m: E(z.t for z in m.D.where(m.D.y == 1).where(m.D.t > 0)),
        "E[z ~ D | z.y == 1 and z.t > 0] z.t",
    ),
    "condition on another": (
        lambda m: mean(E(n.t for n in m.D.where(m.D.t >= i.t)) for i in m.D),
        "mean[i in D] E[n ~ D | n.t >= i.t] n.t",
    ),
    "condition by a function": (
        lambda m: fc.sum(m.v[k] for k in m.K.where(lambda k: k > 1)),
        "sum[k in K | k > 1] v[k]",
    ),
    "chain": (lambda m: E(z.t for z in m.D.where(fc.between(0, m.D.t, 1))), "E[z ~ D | 0 <= z.t <= 1] z.t"),
    "mixed chain": (
        lambda m: E(z.t for z in m.D.where(fc.chain(0, "<", m.D.t, "<=", m.a))),
        "E[z ~ D | 0 < z.t <= a] z.t",
    ),
    "subset": (lambda m: E(z.t for z in m.D.subset(m.D.y == 1)), "E[z ~ {z in D | z.y == 1}] z.t"),
    "declared index": (lambda m: mean[m.r](log(E[m.u](m.r.t * m.u.t))), "mean_r log(E_u r.t * u.t)"),
    "declared draw": (lambda m: E(m.u.t), "E[u.t]"),
    "net": (lambda m: E(m.s(m.theta, z.x) for z in m.D), "E[z ~ D] s(theta; z.x)"),
    "distribution": (
        lambda m: E(square(z - m.a) for z in normal(0, sd=m.a)),
        "E[z ~ normal(0, sd = a)] square(z - a)",
    ),
    "vector draws": (lambda m: E(dot(z, m.w) for z in normal(0, 1)[m.d]), "E[z ~ normal(0, 1)[d]] dot(z, w)"),
    "sampler": (lambda m: E(z * m.a for z in fc.sampler("demand", m.a)), "E[z ~ demand(a)] z * a"),
    "weights": (lambda m: dot(fc.uniform(m.K), m.v), "dot(uniform(K), v)"),
    "over a simplex": (lambda m: fc.max(dot(q, m.v) for q in simplex(m.K)), "max[q in simplex(K)] dot(q, v)"),
    "iterate": (lambda m: fc.sum(m.v[k] for k in fc.iterate(m.K)), "sum[k in K] v[k]"),
    "places of a dim": (
        lambda m: fc.sum(m.w[i + 1] for i in m.d.where(lambda i: i < m.d)),
        "sum[i in d | i < d] w[i + 1]",
    ),
    "variance": (lambda m: fc.sqrt(variance(z.t for z in m.D)), "sqrt(variance[z ~ D] z.t)"),
    "probability": (lambda m: prob(z.t > m.a for z in m.D), "prob[z ~ D] (z.t > a)"),
    "topk": (lambda m: topk((z.t for z in m.D), k=3), "topk(k = 3)[z in D] z.t"),
    "pmean": (lambda m: pmean((z.t for z in m.D), p=2), "pmean(p = 2)[z in D] z.t"),
    "soft maximum": (lambda m: logmeanexp(z.t for z in m.D), "logmeanexp[z in D] z.t"),
    "Python's own loop": (lambda m: fc.sum(m.w[k] for k in (1, 2, 3)), "w[1] + w[2] + w[3]"),
    "largest of a list": (lambda m: fc.max(m.w[k] for k in (1, 2)), "max(w[1], w[2])"),
    "numpy's number": (lambda m: __import__("numpy").float64(0.5) * m.a, "0.5 * a"),
    "column": (lambda m: E(fc.column(z, "t") for z in m.D), "E[z ~ D] z.t"),
    "a declared index, restated": (lambda m: mean(log(m.r.t) for r in m.D), "mean[r in D] log(r.t)"),
    "names taken": (lambda m: E(d.t for d in m.D), "E[d2 ~ D] d2.t"),
    "names inside": (lambda m: mean(risk(m, z.t) for z in m.D), "mean[z in D] E[z2 ~ D] (z2.t - z.t)^2"),
}


def risk(m, at):
    """A function of Python, which is inlined: its element is another than the caller's of the same name."""
    return E((z.t - at) ** 2 for z in m.D)


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    write, text = FORMULAS[name]
    m = scratch()
    m.minimize(write(m))
    said = next(line for line in str(m).splitlines() if line.startswith("minimize"))
    assert said == f"minimize {text};"
    again = built(m.to_python())
    assert rewriting.canonical(parse(Source(text=str(again)))) == rewriting.canonical(
        parse(Source(text=str(m)))
    )


#: Statements of Python, and of the file.
STATEMENTS = {
    'm.v = fc.var(m.K, ge=-1, le=1, domain=[simplex(m.K), fc.ball(2)], doc="weights")': (
        "var v[K] >= -1, <= 1, in simplex(K), in ball(2);  # weights"
    ),
    "m.q = fc.var(m.d, domain=fc.nonneg)": "var q[d] in nonneg;",
    "m.b = fc.param(m.d, gt=0, le=2, default=1)": "param b[d] > 0, <= 2 default 1;",
    "m.c = fc.array()": "data c : real;",
    "m.c = fc.array(fc.integer[m.K])": "data c : int[K];",
    "m.e = fc.const(2 * 3)": "const e = 6;",
    'm.U = fc.values("low", "high")': 'set U = {"low", "high"};',
    "m.V = m.K": "set V = K;",
    "m.Q = m.D.where(lambda p: p.y == 1)": "set Q = {p in D | p.y == 1};",
    "m.N = (m.D.where(m.D.t >= i.t) for i in m.D)": "set N[i in D] = {z in D | z.t >= i.t};",
    "m.F = (fc.table(x=real) for k in m.K)": "data F[k in K] : table(x: real);",
    'm.F = fc.table({"class": int, "by": {0, 1}}, z=fc.values(1, 0)[2])': (
        "data F : table(class: int, by: {0, 1}, z: {1, 0}[2]);"
    ),
    'm.dim("n", "k")': "dim n, k;",
    "m.index(row=m.D, other=fc.draw(m.D))": "index row in D, other ~ D;",
    "m.level = E(z.t for z in m.D)": "let level = E[z ~ D] z.t;",
    "m.minimize(cost=m.a)": "minimize cost: a;",
    "m.subject_to(m.a <= 1)": "  a <= 1;",
    'm.subject_to(low=fc.between(0, m.a, 1), using={"penalty": "exact", "rho": 2})': (
        "  low: 0 <= a <= 1 with penalty = exact, rho = 2;"
    ),
    "m.subject_to(each=(m.v[k] >= 0 for k in m.K.where(lambda k: k > 1)))": "  each[k in K | k > 1]: v[k] >= 0;",
    'm.options({"adam.beta": 0.9}, algorithm="sonex", budget="60s", polish=False)': (
        'options {\n  adam.beta = 0.9;\n  algorithm = sonex;\n  budget = "60s";\n  polish = false;\n}'
    ),
    'm["check"] = fc.param(doc="a name that Model has itself")': "param check;  # a name that Model has itself",
}


@pytest.mark.parametrize("program", STATEMENTS)
def test_statements(program):
    m = scratch()
    exec(program, {**globals(), "m": m})
    assert STATEMENTS[program] in str(m)
    again = built(m.to_python())
    assert str(again) == str(m)


def test_a_statement_is_replaced_where_it_stands():
    m = scratch()
    m.minimize(E(z.t * m.a for z in m.D))
    m.a = fc.param(ge=1)
    m.subject_to(low=m.a <= 1)
    m.subject_to(low=m.a <= 2)
    text = str(m)
    assert text.index("param a >= 1") < text.index("var w") and "a <= 2" in text and "a <= 1" not in text


def test_a_replaced_statement_may_use_later_names():
    """A cell that is run again after others: its statement stands after what it uses, and before what
    uses it."""
    m = fc.Model()
    m.w = fc.var()
    m.minimize(square(m.w))
    m.lo = fc.param(default=0)
    m.w = fc.var(ge=m.lo)
    assert str(m).index("param lo") < str(m).index("var w") < str(m).index("minimize")
    m.check()


def test_a_cell_is_run_again():
    m = scratch()
    cell = compile("m.minimize(m.a)\nm.subject_to(m.a <= 1)", "<cell>", "exec")
    for _ in range(2):
        exec(cell, {"m": m, "__name__": "user"})
    assert str(m).count("a <= 1") == 1


def test_constraints_of_a_loop_are_all_kept():
    """Said at one place with different numbers, without labels and with."""
    m = fc.Model()
    m.w = fc.var(3)
    m.minimize(sumsq(m.w))
    for k in (1, 2, 3):
        m.subject_to(m.w[k] >= k)
        m.subject_to(**{f"high{k}": m.w[k] <= 2 * k})
    assert len(m.compiled.compiled.problem.constraints) == 6 and list(m.constraints) == [
        "high1",
        "high2",
        "high3",
    ]


def test_an_included_model():
    shared = scratch()
    m = fc.Model("with_shared")
    m.include(shared)
    m.minimize(E(dot(m.w, z.x) for z in shared.D) + square(m.v[1] - 1) + sumsq(m.w))
    assert "data D" in str(m) and m.D is shared.D
    m.check()


def test_a_file_that_includes_another(tmp_path):
    (tmp_path / "shared.fcco").write_text("model shared;\ndata D : table(x: real);  # of both\n")
    (tmp_path / "main.fcco").write_text(
        'model main;\ninclude "shared.fcco";\nvar t;\nminimize E[z ~ D] (z.x - t)^2 + u;\n'
    )
    model = fc.Model.parse(tmp_path / "main.fcco")
    assert "data D : table(x: real);  # of both" in str(model) and "include" not in model.to_python()
    with pytest.raises(FccoError, match=r"main.fcco:4:33\n"):
        model.check()
    (tmp_path / "main.fcco").write_text(
        'model main;\ninclude "shared.fcco";\nvar t;\nminimize E[z ~ D] (z.x - t)^2;\n'
    )
    compiled = fc.compile(tmp_path / "main.fcco")
    assert built(fc.Model.parse(tmp_path / "main.fcco").to_python()).hash == compiled.hash


def test_errors_name_the_cell_of_another_place():
    scope = {"m": fc.Model(), "fc": fc, "__name__": "user"}
    cells = {
        "<first>": "m.D = fc.table(x=fc.real)\nm.w = fc.var()\n",
        "<second>": "m.minimize(fc.E(z.y * m.w for z in m.D))\n",
    }
    for name, text in cells.items():
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), scope)
    with pytest.raises(FccoError, match=r"<second>:1:17\n(.|\n)*declared on line 1 of <first>"):
        scope["m"].check()


def test_errors_of_binding_show_python():
    text = "m.a = fc.param(ge=0)\nm.w = fc.var()\nm.minimize(m.a * m.w ** 2)\n"
    m = fc.Model()
    linecache.cache["<bound>"] = len(text), None, text.splitlines(keepends=True), "<bound>"
    exec(compile(text, "<bound>", "exec"), {"m": m, "fc": fc, "__name__": "user"})
    with pytest.raises(FccoError, match=r"<bound>:1:3\n  1 \| m.a = fc.param"):
        m.bind()


def test_what_solves_is_the_same_as_the_file():
    rows = {"x": [0.0, 1.0, 2.0, 4.0]}
    m = fc.Model("centre")
    m.D = fc.table(x=real)
    m.t = fc.var(domain=box(-1, 3))
    m.mu = fc.param(default=0)
    m.minimize(spread=E((z.x - m.t) ** 2 for z in m.D) + m.mu * exp(m.t))
    result = m.bind(D=rows, mu=0.0).solve(budget="2000it")
    again = fc.compile(str(m)).bind(D=rows).solve(budget="2000it")
    assert result.variables["t"] == pytest.approx(1.75, abs=1e-4) and again.objective == pytest.approx(
        result.objective
    )


def test_models_are_copied_and_pickled():
    m = fc.Model.parse(ROOT / "examples" / "card_form.fcco")
    for other in (copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        other.extra = fc.param()
        assert other.hash != m.hash and "extra" not in m
    compiled = pickle.loads(pickle.dumps(m.source))
    assert compiled.text == str(m)


def test_hasattr_and_dir():
    m = scratch()
    assert hasattr(m, "w") and not hasattr(m, "nothing") and "w" in dir(m) and "w" in m
    with pytest.raises(AttributeError):
        _ = m.nothing


def test_words_are_those_of_the_library():
    from fccomodel.app.python import modelling
    from fccomodel.language import vocabulary

    declared = set(modelling.__all__)
    assert not declared & vocabulary.names() and not vocabulary.names() & set(fc.__all__)
    for name in sorted(vocabulary.names()):
        word = getattr(fc, name)
        assert word.__name__ == name and word.__doc__ and word.__signature__
    rooms = {path.stem for path in (ROOT / "fccomodel").iterdir()}
    assert not rooms & vocabulary.names(), "a room's name would hide the word"


def test_logs_and_hinges_are_imported():
    """The names above are words, whatever they shadow."""
    assert {repr(word) for word in (log, sqhinge, square)} == {
        "<word log>",
        "<word sqhinge>",
        "<word square>",
    }
