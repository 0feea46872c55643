"""Checking: what every form of the language becomes as a typed problem. The texts of errors are under
``golden/errors``."""

import contextlib
import math
from pathlib import Path

import pytest
from support.ir_text import Printer, problem_text
from support.places import EXAMPLES, GOLDEN

from fccomodel.app import registry
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language.check import check
from fccomodel.language.formulas.atom_calls import named_atoms
from fccomodel.language.parse import parse

ERRORS = GOLDEN / "errors"
TABLE = "dim d; data D : table(x: real[d], y: {-1, 1}, time: real);"
GROUPS = (
    'dim d; set G; set K = {0, 1}; set S = {"f", "m"}; data D : table(x: real[d], y: {-1, 1}, g: '
    "G, a: K, s: S); var w[d];"
)


def problem(text: str, name: str = "<model>") -> ir.Problem:
    source = Source(text=text, name=name)
    return check(parse(source), source)


def objective(text: str, pre: str = TABLE + "var w[d];") -> str:
    """The objective of a model that states this one alone, as text."""
    return problem_text(problem(f"{pre} minimize {text};")).splitlines()[-1].removeprefix("minimize None: ")


def codes(text: str) -> list[str]:
    """The codes of a model's errors, in order."""
    with pytest.raises(FccoError) as found:
        problem(text)
    return [d.code for d in found.value.diagnostics]


def remarks(text: str) -> list[str]:
    """The codes of a model's lint notes."""
    return [d.code for d in problem(text).warnings]


# ------------------------------------------------------------------------------------- whole models
CARD = """
model card_form;
dim d;
set  K = {1, 2};
data D : table(x: real[d], y: {-1, 1});
set  P = {z in D | z.y == 1};
set  N = {z in D | z.y == -1};
index i in P, j ~ N, k in K, z ~ D;
var w[d];
def g(w, i, j) = sqhinge(1 + dot(w, j.x) - dot(w, i.x));
def f(u) = log(1 + u);
def h(w, k, z) = sqhinge(1 - z.y * dot(w, z.x)) - 0.05 * k;
minimize mean_i f(E_j g(w; i, j)) + 0.001 * sumsq(w)
s.t. E[h_k(w)] <= 0;
"""


def test_card_form() -> None:
    assert problem_text(problem(CARD)) == "\n".join(
        [
            "set P = rows z of D | (z.y == 1)",
            "set N = rows z1 of D | (z1.y == -1)",
            "minimize None: (mean[i in P] log((1 + E[j ~ N] sqhinge(((1 + dot(w, j.x)) - dot(w, i.x))))) "
            "+ (0.001 * sumsq(w)))",
            "c1[k in K]: E[z2 ~ D] (sqhinge((1 - (z2.y * dot(w, z2.x)))) - (0.05 * k)) <= 0",
        ]
    )


def test_lets_families_nets_and_maximize() -> None:
    text = """
    model fair;
    dim d;
    data D : table(x: real[d], y: {-1, 1}, a: {0, 1});
    set P = {z in D | z.y == 1};
    set N = {z in D | z.y == -1};
    set T = -3 .. 3 by 1;
    param kappa >= 0 default 0.005;
    net s : real[d] -> real;
    var w = params(s);
    let tpr[c in {0, 1}, t in T] = E[z ~ P | z.a == c] sigmoid(s(w; z.x) - t);
    maximize auc: E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));
    subject to
      gap[t in T]: abs(tpr[0, t] - tpr[1, t]) <= kappa;
      first: tpr[0, -3] - tpr[0, 3] <= 1;
    """
    made = problem(text)
    assert problem_text(made).splitlines()[2:] == [
        "let tpr[c in {0, 1}, t in T] = E[z2 ~ P | (z2.a == c)] sigmoid((s(w; z2.x) - t))",
        "maximize auc: E[p ~ P, n ~ N] sigmoid((s(w; p.x) - s(w; n.x)))",
        "gap[t1 in T]: (abs((tpr<0, t1> - tpr<1, t1>)) - kappa) <= 0",
        "first: ((tpr<0, 0> - tpr<0, 6>) - 1) <= 0",
    ]
    assert made.name == "fair" and made.objective.sense == "maximize"
    assert made.variables["w"].shape == ("params(s)",) and made.variables["w"].net == "s"
    assert made.nets["s"].inputs[0].shape == ("d",) and made.nets["s"].output == ()
    refs = [n for n in ir.walk(made.constraints[0].body) if isinstance(n, ir.LetRef)]
    assert refs[0].let is refs[1].let is made.lets["tpr"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.fcco")), ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    made = problem(path.read_text(), str(path))
    assert made.variables and not [d for d in made.warnings if d.code != "F0431"]


# ------------------------------------------------------------------------------------- declarations
def test_dims_and_sets() -> None:
    made = problem(
        'dim d, n; set G; set K = {1, 2.5}; set L = {"a", "b"}; set T = 0 .. 1 by 0.25; set U = 1 .. d; '
        "set V = K;"
        "const p = 2; set W = {p, p + 1}; var w; minimize w^2;"
    )
    assert made.dims == ("d", "n")
    assert isinstance(made.sets["G"], ir.LabelSet) and made.sets["G"].labels is None
    assert isinstance(made.sets["L"], ir.LabelSet) and made.sets["L"].labels == ("a", "b")
    assert isinstance(made.sets["K"], ir.ValueSet) and made.sets["K"].items is not None
    assert [Printer()(i) for i in made.sets["K"].items] == ["1", "2.5"]
    assert isinstance(made.sets["U"], ir.ValueSet) and isinstance(made.sets["U"].high, ir.Size)
    assert made.sets["V"] is made.sets["K"]
    assert isinstance(made.sets["W"], ir.ValueSet) and [Printer()(i) for i in made.sets["W"].items or ()] == [
        "2",
        "3",
    ]


def test_row_sets_hold_conditions_on_their_own_row() -> None:
    made = problem(
        TABLE + "var w[d]; set P = {z in D | z.y == 1}; set Q = {r in P | r.time > 0}; minimize E[z ~ Q] "
        "dot(w, z.x);"
    )
    assert problem_text(made).splitlines()[:2] == [
        "set P = rows z of D | (z.y == 1)",
        "set Q = rows r of D | ((r.y == 1) and (r.time > 0))",
    ]
    assert objective("E[z ~ {q in D | q.y == 1}] dot(w, z.x)") == "E[z ~ {q in D | q.y == 1}] dot(w, z.x)"


def test_set_families_become_conditions() -> None:
    pre = (
        TABLE
        + "var w[d]; set P = {z in D | z.y == 1}; set N[i in P] = {z in D | z.time >= i.time and z.y == -1};"
    )
    assert (
        objective("mean[i in P] log(E[j ~ N[i] | j != i] exp(dot(w, j.x)))", pre)
        == "mean[i in P] log(E[j ~ D | (((j.time >= i.time) and (j.y == -1)) and (j != i))] exp(dot(w, j.x)))"
    )


def test_filtered_value_sets_keep_their_positions() -> None:
    pre = GROUPS + "set B = {k in K | k > 0}; let r[k in K] = E[z ~ D | z.a == k] dot(w, z.x);"
    assert objective("max[k in B] r[k]", pre) == "max[k1 in K | (k1 > 0)] r<k1>"


def test_tables_and_arrays() -> None:
    made = problem(
        "dim d; set A; set K = {1, 2}; data D : table(x: real[d], M: real[d, 3], n: int, k: K, v: {0, "
        "1}[d], a: A);"
        "data c : real[A, K]; data size : int; var w; minimize w^2 + size;"
    )
    columns = made.tables["D"].columns
    assert {n: (c.kind, c.shape) for n, c in columns.items()} == {
        "x": ("real", ("d",)),
        "M": ("real", ("d", 3)),
        "n": ("int", ()),
        "k": ("values", ()),
        "v": ("values", ("d",)),
        "a": ("values", ()),
    }
    assert columns["k"].domain is made.sets["K"] and columns["a"].domain is made.sets["A"]
    assert made.arrays["c"].type.shape == ("A", "K") and made.arrays["size"].type.kind == "int"


def test_table_families() -> None:
    pre = "dim d; set K = {1, 5}; data S[k in K] : table(x: real[d]); var w[d];"
    made = problem(pre + "minimize sum[k in K] (E[z ~ S[k]] dot(w, z.x)) + E[z ~ S[5]] dot(w, z.x);")
    family = made.tables["S"].family
    assert family is not None and family.domain is made.sets["K"]
    assert problem_text(made) == (
        "minimize None: (sum[k in K] E[z ~ S | (z.__family == k)] dot(w, z.x) + E[z1 ~ S | (z1.__family "
        "== 5)] dot(w, z1.x))"
    )


def test_params_and_constants() -> None:
    made = problem(
        "set K = {1, 2}; const p = 2^3 - 1; const q = log(p) / 2; param a > 0, <= 1 default 1 / 4; param b; "
        "param v[K] >= -1 default 0;"
        "var w; minimize a * w^2 + b + sum[k in K] v[k] + q;"
    )
    a, v = made.params["a"], made.params["v"]
    assert (a.lower, a.upper, a.strict_lower, a.strict_upper) == (0, 1, True, False)
    assert isinstance(a.default, ir.Const) and a.default.value == 0.25
    assert made.params["b"].lower == -math.inf and made.params["b"].default is None
    assert v.shape == ("K",) and v.lower == -1
    [q] = [n for n in ir.walk(made.objective.expr) if isinstance(n, ir.Const) and n.value not in (2, 0.25)]
    assert q.value == pytest.approx(math.log(7) / 2)


def test_variable_sets() -> None:
    made = problem(
        "dim d, m; set K = {1, 2}; data A : real[m, d]; data b : real[m]; data cap : real[d]; param r > "
        "0 default 2;"
        "var w[d] >= -1, <= cap, in ball(r); var q[K] in simplex(K); var c[K] in capped_simplex(K, 0.5); "
        "var s[d] in affine(A, b);"
        "var t >= 0; var x[d] in box(-1, 1); var n[d] in nonneg; var M[K, d]; var u[3] >= 0, >= 1;"
        "minimize sum(w) + sum(q) + sum(c) + sum(s) + t + sum(x) + sum(n) + sum(M) + sum(u);"
    )
    show = Printer()
    assert {n: [show.set(s) for s in v.sets] for n, v in made.variables.items()} == {
        "w": ["box(-1, cap)[d]", "ball(r)[d]"],
        "q": ["simplex()[K]"],
        "c": ["capped_simplex(0.5)[K]"],
        "s": ["affine(A, b)[d]"],
        "t": ["box(0, inf)"],
        "x": ["box(-1, 1)[d]"],
        "n": ["nonneg()[d]"],
        "M": [],
        "u": ["box(1, inf)[3]"],
    }


def test_net_assumptions() -> None:
    made = problem(
        TABLE
        + "net s : real[d] -> real[3] assume smooth, lipschitz(2), weakly_convex(0.5); var w = params(s);"
        "minimize E[z ~ D] logsumexp(s(w; z.x)) + 0.1 * sumsq(w);"
    )
    assert made.nets["s"].assume == (("smooth", ()), ("lipschitz", (2.0,)), ("weakly_convex", (0.5,)))
    assert made.nets["s"].output == (3,)


# --------------------------------------------------------------------------------------- reductions
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean[i in D] dot(w, i.x)", "mean[i in D] dot(w, i.x)"),
        ("sum[k in {1, 2}] k * w[1]", "sum[k in {1, 2}] (k * w[0])"),
        ("prod[k in 1 .. 3] (k + w[1])", "prod[k in 1 .. 3] (k + w[0])"),
        ("min[k in {1, 2}] k * w[1]", "min[k in {1, 2}] (k * w[0])"),
        ("variance[z ~ D] dot(w, z.x)", "variance[z ~ D] dot(w, z.x)"),
        ("prob[z ~ D] (dot(w, z.x) > 0)", "prob[z ~ D] (dot(w, z.x) > 0)"),
        ("cvar(tail = 0.1)[z ~ D] dot(w, z.x)", "cvar(tail = 0.1)[z ~ D] dot(w, z.x)"),
        ("topk(k = 2)[i in D] dot(w, i.x)", "topk(k = 2)[i in D] dot(w, i.x)"),
        ("logmeanexp(theta = 2)[i in D] dot(w, i.x)", "logmeanexp(theta = 2)[i in D] dot(w, i.x)"),
        ("pmean(p = 3)[i in D] abs(dot(w, i.x))", "pmean(p = 3)[i in D] abs(dot(w, i.x))"),
        (
            "E(empty = drop)[z ~ D | z.y == 1] dot(w, z.x)",
            'E(empty = "drop")[z ~ D | (z.y == 1)] dot(w, z.x)',
        ),
        (
            "E[z ~ D, e ~ normal(0, 0.1)[d]] dot(w, z.x + e)",
            "E[z ~ D, e ~ normal(0, 0.1)[d]] dot(w, (z.x + e))",
        ),
        ("E[z ~ D] E[e ~ normal(z.time, 1)] e * w[1]", "E[z ~ D] E[e ~ normal(z.time, 1)] (e * w[0])"),
        ("E[e ~ uniform(low = 0, high = 1)] e * w[1]", "E[e ~ uniform(0, 1)] (e * w[0])"),
        ("E[e ~ wind(3)] e * w[1]", "E[e ~ wind(3)] (e * w[0])"),
        (
            "mean[i in D] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x)))",
            "mean[i in D] log(E[j ~ D | (j.time >= i.time)] exp(dot(w, j.x)))",
        ),
        ("sum(E[z ~ D] z.x * w)", "sum(E[z ~ D] (z.x * w))"),
        ("mean[i in D] sum(w) * 2 + 1", "(mean[i in D] (sum(w) * 2) + 1)"),
        (
            "E[z ~ D | not (z.y == 1) or 0 <= z.time < 5] dot(w, z.x)",
            "E[z ~ D | (not((z.y == 1)) or ((0 <= z.time) and (z.time < 5)))] dot(w, z.x)",
        ),
    ],
)
def test_reductions(text: str, expected: str) -> None:
    assert objective(text) == expected


def test_distributionally_robust_form() -> None:
    pre = GROUPS + "param mu > 0 default 1; let r[k in K] = E[z ~ D | z.a == k] dot(w, z.x);"
    made = problem(pre + "minimize max[q in simplex(K)] (sum[k in K] q[k] * r[k] - mu * kl(q, uniform(K)));")
    outer = made.objective.expr
    assert isinstance(outer, ir.Reduce) and isinstance(outer.binders[0].domain, ir.VectorSet)
    assert outer.binders[0].domain.shape == ("K",)
    assert (
        Printer()(outer) == "max[q in simplex()[K]] (sum[k in K] (q[k] * r<k>) - (mu * kl(q, (1[K] / |K|))))"
    )


def test_subscripts_shared_by_definitions() -> None:
    pre = TABLE + "var w[d]; index i in D, j ~ D, z ~ D; set K = {1, 2}; data c : real[K]; index k in K;"
    assert objective("mean_i dot(w, i.x)", pre) == "mean[i in D] dot(w, i.x)"
    # the body of a definition sees the index that its caller binds
    assert objective("mean_i f(w)", pre + "def f(w) = dot(w, i.x);") == "mean[i in D] dot(w, i.x)"
    assert (
        objective("mean_i E[f(w)]", pre + "def f(w) = dot(w, i.x) - dot(w, z.x);")
        == "mean[i in D] E[z ~ D] (dot(w, i.x) - dot(w, z.x))"
    )
    # only what is free is drawn, in the order of declaration
    assert objective("E[dot(w, z.x) + dot(w, j.x)]", pre) == "E[j ~ D, z ~ D] (dot(w, z.x) + dot(w, j.x))"
    assert (
        objective("E_j E[dot(w, z.x) + dot(w, j.x)]", pre) == "E[j ~ D] E[z ~ D] (dot(w, z.x) + dot(w, j.x))"
    )
    assert objective("sum_k c_k * sum(w)", pre) == "sum[k in K] (c[k] * sum(w))"
    assert (
        objective("E_z loss(w, 2)", pre + "def loss(w, k, z) = k * dot(w, z.x);")
        == "E[z ~ D] (2 * dot(w, z.x))"
    )
    assert (
        objective("E_z sum_k loss(w)", pre + "def loss(w, k, z) = k * dot(w, z.x);")
        == "E[z ~ D] sum[k in K] (k * dot(w, z.x))"
    )
    assert (
        objective("sum_k E[r]", pre + "def r(k, z) = k * dot(w, z.x);")
        == "sum[k in K] E[z ~ D] (k * dot(w, z.x))"
    )
    # a binder that restates the declaration is that index
    assert objective("mean[i in D] f(w)", pre + "def f(w) = dot(w, i.x);") == "mean[i in D] dot(w, i.x)"
    # two reductions over one index are two binders
    made = problem(pre + "minimize E_z dot(w, z.x) + E_z sum(w) * z.time;")
    first, second = (n for n in ir.walk(made.objective.expr) if isinstance(n, ir.Reduce))
    assert first.binders[0] is not second.binders[0]


def test_an_index_over_a_family() -> None:
    pre = TABLE + "var w[d]; set N[i in D] = {z in D | z.time >= i.time}; index i in D, j ~ N[i];"
    expected = "mean[i in D] log(E[j ~ D | (j.time >= i.time)] exp(dot(w, j.x)))"
    assert objective("mean_i log(E_j exp(dot(w, j.x)))", pre) == expected
    assert objective("mean_i log(E[exp(dot(w, j.x))])", pre) == expected


def test_free_in_indices_make_constraint_families() -> None:
    pre = (
        TABLE
        + "var w[d]; set K = {1, 2}; set N[i in D] = {z in D | z.time >= i.time}; index k in K, i in D, "
        "j in N[i], z ~ D;"
    )
    made = problem(pre + "minimize sumsq(w); subject to a: E[k * dot(w, z.x)] <= k; b: dot(w, j.x) <= 1;")
    assert problem_text(made).splitlines()[1:] == [
        "a[k in K]: (E[z ~ D] (k * dot(w, z.x)) - k) <= 0",
        "b[i in D, j in D | (j.time >= i.time)]: (dot(w, j.x) - 1) <= 0",
    ]


# ----------------------------------------------------------------------------------------- formulas
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4 / 8 + sum(w)", "(6.5 + sum(w))"),
        ("-2^2 + sum(w)", "(-4 + sum(w))"),
        ("-sum(w) ^ 2", "neg((sum(w) ^ 2))"),
        ("exp(0) * sum(w)", "(1 * sum(w))"),
        ("max(sum(w), 1, 2) + min(sum(w), 3)", "(max(sum(w), 1, 2) + min(sum(w), 3))"),
        (
            "softplus(sum(w)) + hinge(sum(w)) + relu(sum(w))",
            "((log1pexp(sum(w)) + pos(sum(w))) + pos(sum(w)))",
        ),
        ("huber(sum(w), delta = 2)", "huber(sum(w), 2)"),
        ("sum(w * w) / d", "(sum((w * w)) / |d|)"),
        ("w[1] + w[3]", "(w[0] + w[2])"),
        ("sum[j in 1 .. d] w[j]", "sum[j in 1 .. d] w[j]"),
        ("sum[j in d] w[j]", "sum[j in d] w[j]"),
        ("sumsq(2 * w - 1)", "sumsq(((2 * w) - 1))"),
        ("w @ w", "(w @ w)"),
        (
            "sum[j in d | j < d] w[j + 1]",
            "sum[j in d | (j < |d|)] mean[j + 1 in d | (j + 1 == (j + 1))] w[j + 1]",
        ),
        (
            "w[d] + w[d - 1]",
            "(mean[d in d | (d == |d|)] w[d] + mean[d - 1 in d | (d - 1 == (|d| - 1))] w[d - 1])",
        ),
    ],
)
def test_formulas(text: str, expected: str) -> None:
    assert objective(text) == expected


def test_numbers_of_a_part_pick_entries_by_what_they_are() -> None:
    """As formulas of them do: b[i] beside b[i + 1]; not the numbers of another dim, nor of another
    declared set."""
    head = "dim n, m; data c : real[m]; var b[n]; "
    for index in ("i in 1 .. n - 1", "i in 2 .. 3", "i in {1, 3}"):
        found = objective(f"sum[{index}] b[i]^2", head)
        assert found == f"sum[{index}] (mean[(i) in n | ((i) == i)] b[(i)] ^ 2)"
    assert codes(head + "minimize sumsq(b) + sum[i in m] c[i] * b[i];") == ["F0308"]
    steps = "set T = 0 .. 4 by 1; set S = 1 .. 2 by 1; var b[T]; minimize sumsq(b) + "
    assert problem(steps + "sum[t in 1 .. 2] b[t];") and codes(steps + "sum[t in S] b[t];") == ["F0308"]


@pytest.mark.parametrize("again", ["d", "1 .. d"])
def test_ranges_with_the_same_ends_are_one_set(again: str) -> None:
    made = problem(
        "dim d; data D : table(x: real[d]); var w[d]; let g[i in d] = E[z ~ D] (z.x[i] * w[i]);"
        f"minimize sumsq(w); subject to c[i in {again}]: g[i] <= 1;"
    )
    assert problem_text(made).splitlines()[-1] == f"c[i1 in {again}]: (g<i1> - 1) <= 0"
    other = "dim d, m; var w[d]; let g[i in d] = w[i]; minimize sumsq(w); subject to c[i in m]: g[i] <= 1;"
    assert codes(other + " data D : table(x: real[d], v: real[m]);") == ["F0308"]


def test_shapes() -> None:
    made = problem(
        "dim d, m; set K = {1, 2, 3}; data D : table(x: real[d], M: real[m, d]); data c : real[K]; var w[d]; "
        "var v[3]; var A[K, d];"
        "let a = E[z ~ D] z.M @ w; let b = A @ w; let e = transpose(A) @ c; let f = dot(v, c); "
        "let g = outer(w, c); let h = (A @ w)[2];"
        "minimize sum(a) + sum(b) + sum(e) + f + sum(g) + h;"
    )
    assert {n: let.body.shape for n, let in made.lets.items()} == {
        "a": ("m",),
        "b": ("K",),
        "e": ("d",),
        "f": (),
        "g": ("d", "K"),
        "h": (),
    }


def test_labels() -> None:
    pre = GROUPS + "let r[k in S] = E[z ~ D | z.s == k] dot(w, z.x);"
    assert objective('r["f"] - r["m"]', pre) == "(r<0> - r<1>)"
    assert objective('E[z ~ D | z.s == "f"] dot(w, z.x)', pre) == 'E[z1 ~ D | (z1.s == "f")] dot(w, z1.x)'
    assert objective('max[k in G] (E[z ~ D | z.g == k and z.g != "other"] dot(w, z.x))', pre).startswith(
        "max[k1 in G] E[z1 ~ D"
    )


def test_rows_index_what_belongs_to_rows() -> None:
    pre = TABLE + "set P = {z in D | z.y == 1}; data c : real[D]; var u[P]; var w[d];"
    assert objective("mean[i in P] u[i] * c[i]", pre) == "mean[i in P] (u[i] * c[i])"
    assert codes(pre + "minimize mean[i in D] u[i];") == ["F0308"]


def test_definitions_share_arguments_and_equal_calls() -> None:
    made = problem(
        "dim d; var w[d]; def square1(u) = u * u; def norm(v) = sqrt(1 + square1(norm2(v))); minimize "
        "norm(w) + norm(w);"
    )
    total = made.objective.expr
    assert isinstance(total, ir.Apply) and total.args[0] is total.args[1]
    [product] = [n for n in ir.walk(total) if isinstance(n, ir.Apply) and n.op == "mul"]
    assert product.args[0] is product.args[1]


def test_places_are_those_of_the_text() -> None:
    text = (
        "dim d; data D : table(x: real[d]);\nvar w[d];\ndef score(v) = dot(w, v);\nminimize loss: "
        "E[z ~ D] exp(score(z.x));"
    )
    made = problem(text)
    spans = {made.text(n) for n in ir.walk(made.objective.expr)}
    assert spans == {"E[z ~ D] exp(score(z.x))", "exp(score(z.x))", "dot(w, v)", "w", "z.x"}
    assert made.source.text[made.variables["w"].span.start] == "w" and made.source.place(
        made.variables["w"].span
    ) == (2, 5)


@pytest.mark.slow
def test_long_sums_need_no_stack() -> None:
    source = Source(text=f"var w;\nminimize {' + '.join(['w'] * 5001)};")
    made = check(parse(source), source)
    assert sum(isinstance(n, ir.Var) for n in ir.walk(made.objective.expr)) == 5001


# -------------------------------------------------------------------------- constraints and options
def test_constraints() -> None:
    made = problem(
        "set K = {1, 2}; var q[K]; var t; minimize t^2 + sumsq(q); subject to"
        " a: t <= sum(q); b: t^2 >= 1; c: sum(q) == 1; two: -1 <= t - sum(q) <= 1; back: 1 >= t + sum(q) "
        ">= 0;"
        " f[k in K | k > 1]: q[k] + t <= k with penalty = 2, kind = hinge; t * sum(q) <= 3; zero: 0 <= t "
        "* sum(q);"
    )
    assert problem_text(made).splitlines()[1:] == [
        "a: (t - sum(q)) <= 0",
        "b: (1 - (t ^ 2)) <= 0",
        "c: (sum(q) - 1) == 0",
        "two.lower: (-1 - (t - sum(q))) <= 0",
        "two.upper: ((t - sum(q)) - 1) <= 0",
        "back.lower: neg((t + sum(q))) <= 0",
        "back.upper: ((t + sum(q)) - 1) <= 0",
        "f[k in K | (k > 1)]: ((q[k] + t) - k) <= 0",
        "c1: ((t * sum(q)) - 3) <= 0",
        "zero: neg((t * sum(q))) <= 0",
    ]
    options = made.constraints[7].options
    assert (
        isinstance(options["penalty"], ir.Const)
        and isinstance(options["kind"], ir.Label)
        and options["kind"].text == "hinge"
    )


def test_constraints_on_arrays_are_families() -> None:
    made = problem(
        "dim d, n; set K; data A : real[n, d]; data c : real[K]; var w[d]; var v[K]; var i; minimize "
        "sumsq(w) + i^2; subject to"
        " low: A @ w >= 1; same: v == c; rows[k in K]: -1 <= A * v[k] <= 2;"
    )
    assert problem_text(made).splitlines()[1:] == [
        "low[j in n]: (1 - (A @ w)[j]) <= 0",
        "same[j1 in K]: (v[j1] - c[j1]) == 0",
        "rows.lower[k in K, j2 in n, l in d]: (-1 - (A * v[k])[j2, l]) <= 0",
        "rows.upper[k in K, j2 in n, l in d]: ((A * v[k])[j2, l] - 2) <= 0",
    ]


def test_labels_that_are_given_are_not_taken_again() -> None:
    made = problem("var t; minimize t^2; subject to t^3 <= 1; c1: t^3 >= -1; t^5 <= 2;")
    assert [c.label for c in made.constraints] == ["c2", "c1", "c3"]


def test_options() -> None:
    made = problem(
        'var t; minimize t^2; options { algorithm = sonex; sonex.gamma = 0.8; seed = 3; budget = "60s"; '
        "fast = true; step = -1e-3;"
        " rate = 1 / 4; }"
    )
    assert made.options == {
        "algorithm": "sonex",
        "sonex.gamma": 0.8,
        "seed": 3,
        "budget": "60s",
        "fast": True,
        "step": -0.001,
        "rate": 0.25,
    }
    assert isinstance(made.options["seed"], int)


# ------------------------------------------------------------------------------------------ include
def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.fcco").write_text(text)
    return folder / "main.fcco"


def load(path: Path) -> ir.Problem:
    return problem(path.read_text(), str(path))


def test_include(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(
        tmp_path / "parts",
        data='include "sizes.fcco";\ndata D : table(x: real[d]);',
        sizes="model inner; dim d;",
    )
    made = load(
        write(tmp_path, main='include "parts/data.fcco";\nvar w[d];\nminimize E[z ~ D] dot(w, z.x)^2;')
    )
    assert made.name == "main" and made.dims == ("d",)
    assert made.text(made.objective.expr) == "E[z ~ D] dot(w, z.x)^2"
    assert made.source.place(made.objective.span) == (3, 1)
    assert made.source.place(made.tables["D"].span) == (2, 6)


def test_errors_in_an_included_file_name_it(tmp_path: Path) -> None:
    with pytest.raises(FccoError) as found:
        load(
            write(
                tmp_path,
                main='include "data.fcco";\nvar w[d];\nminimize sum(w);',
                data="# data\ndim d;\ndata D : table(x: real[m]);",
            )
        )
    assert "data.fcco:3:24" in str(found.value)
    with pytest.raises(FccoError) as found:
        load(
            write(tmp_path, main='include "data.fcco";\nvar w[d];\nminimize sum(w);', data="dim d;\ndim = 3;")
        )
    assert "data.fcco:2:5" in str(found.value)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"main": 'include "a.fcco";', "a": 'include "main.fcco";'}, "includes itself"),
        ({"main": 'include "a.fcco";\ninclude "a.fcco";', "a": "dim d;"}, "a second time"),
        ({"main": 'include "no.fcco";'}, "There is no model file"),
    ],
)
def test_include_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(FccoError, match=words) as found:
        load(write(tmp_path, **files))
    assert [d.code for d in found.value.diagnostics] == ["F0213"]


# ------------------------------------------------------------------------------------------- errors
def test_every_code_is_shown() -> None:
    """Each code of this stage has a bad model whose text is kept."""
    shown = "".join(path.read_text() for path in ERRORS.glob("*.txt"))
    assert not [
        code for code in registry.codes() if code[:3] in ("F02", "F03", "F04") and f"[{code}]" not in shown
    ]


def test_several_errors_in_one_pass_and_no_echoes() -> None:
    text = (
        "dim d; data D : table(x: real[d], y: {0, 1}); var w[e]; def f(u) = u + missing; let r = E[z ~ "
        "D] dot(w, z.x);"
        "minimize f(r) + E[z ~ D | z.y == 2] dot(w, z.x) + log(-1); subject to a: r <= gone; a: f(r) <= 1;"
    )
    assert codes(text) == ["F0201", "F0201", "F0415", "F0413", "F0201", "F0212"]


def test_findings_are_ordered_and_placed() -> None:
    with pytest.raises(FccoError) as found:
        problem("var w; minimize a + b * w; subject to c: w <= q;")
    places = [d.span.start for d in found.value.diagnostics if d.span is not None]
    assert len(places) == 3 and places == sorted(places)
    assert all(d.topic and d.message and (d.reason or d.fix) for d in found.value.diagnostics)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("minimize E[z ~ D] (dot(w, z.x))^2 + max[q in box(0, 1)] q;", "F0407"),
        ("minimize E[z ~ D, z ~ D] dot(w, z.x);", "F0204"),
        ("minimize mean[i in D, z ~ D] dot(w, i.x);", "F0406"),
        ("minimize sum(concat(w, w)) + dot(w);", "F0302"),
        ("minimize sum(w) + E[z ~ D] z.time.x;", "F0311"),
        ("minimize sum(w) + D[1];", "F0314"),
        ("minimize sum(w) + {1, 2};", "F0314"),
        ("minimize sum(w) + (1 .. 2);", "F0314"),
        ("minimize sum(w) + E[z ~ D | z != w] z.time;", "F0306"),
        ('minimize sum(w) + E[z ~ D | "a" == "b"] z.time;', "F0306"),
        ("minimize sum(w); subject to c: E[z ~ D] z.y == 3;", "F0423"),
        ("let a[k ~ D] = 1; minimize sum(w);", "F0406"),
        ("let a[k in {1, 2} | k > 1] = k; minimize sum(w) + a[1];", "F0416"),
        ("set K; minimize sum(w) + sum[k in K] k;", "F0306"),
        ("data S[k in {1, 2}] : table(x: real); minimize sum(w) + E[z ~ S] z.x;", "F0307"),
        ("set Q[k in {1, 2}]; minimize sum(w);", "F0416"),
        ("def f(u) = u; minimize f * sum(w);", "F0302"),
        ("net s : real -> int; minimize sum(w);", "F0416"),
        ("param a in box(0, 1); minimize sum(w);", "F0412"),
        ("param a default sum(w); minimize sum(w);", "F0424"),
        ("var v[d] in ball(-1); minimize sum(w);", "F0421"),
        ("var v in ball(1); minimize sum(w);", "F0301"),
        ("var v[d] in box(1); minimize sum(w);", "F0302"),
        ("minimize sum(w) + sum[t in 0 .. 1 by 0.0000001] t;", "F0409"),
        ("minimize sum(w) + E[e ~ bernoulli(2)] e;", "F0421"),
        ("minimize sum(w) + E[e ~ uniform(1, 0)] e;", "F0421"),
        ("minimize sum(w) + E[e ~ normal(0, spread = 1)] e;", "F0302"),
        ("minimize sum(w) + E[e ~ normal] e;", "F0302"),
        ("minimize sum(w) + cvar(tail = sum(w))[i in D] i.time;", "F0408"),
        ("minimize sum(w) + 2^10000;", "F0413"),
        ("index k in {1, 2}; minimize sum(w) + k * 0 + sum[k in {3}] k;", "F0204"),
        ("minimize sum(w) + dot(D.x, w);", "F0311"),
        ("minimize sum(w) + uniform(2);", "F0302"),
        ("minimize sum(w) + params(s);", "F0314"),
        ("minimize sum(w) + simplex(2);", "F0314"),
        ("minimize sum(w) + E[z ~ z.x] 1;", "F0407"),
        ("minimize sum(w) + E[z ~ D] (sum[k in z] k);", "F0407"),
        ("minimize sum(w) + sum[k in normal] k;", "F0302"),
        ("minimize sum(w) + sum[k in nonneg] k;", "F0407"),
        ("minimize sum(w) + sum[k in exp(1)] k;", "F0412"),
        ("minimize sum(w) + E[z ~ w[1]] 1;", "F0310"),
        ("minimize sum(w) + E[z ~ gone[1]] 1;", "F0201"),
        ("set N[i in D] = {z in D | z.y == i.y}; minimize sum(w) + E[z ~ N[1, 2]] z.time;", "F0307"),
        ("set N[i in D] = {z in D | z.y == i.y}; minimize sum(w) + E[z ~ N[1]] z.time;", "F0308"),
        ("set N[i in D] = {z in D | z.y == i.y}; minimize sum(w) + N[1];", "F0314"),
        (
            "set N[i in D] = {z in D | z.y == i.q}; minimize sum(w) + mean[i in D] E[z ~ N[i]] z.time;",
            "F0208",
        ),
        ("data S[k in {1, 2}] : table(x: real); minimize sum(w) + E[z ~ S[1, 2]] z.x;", "F0307"),
        ("data S[k in {1, 2}, l in {1, 2}] : table(x: real); minimize sum(w);", "F0416"),
        ("data S[k in {1, 2}] : real; minimize sum(w);", "F0416"),
        ("data S[k ~ D] : table(x: real); minimize sum(w);", "F0406"),
        ("data E2 : table(x: d); minimize sum(w);", "F0416"),
        ("data E2 : table(x: G); set G; minimize sum(w);", "F0202"),
        ("set Q = {z in simplex(3) | z > 0}; minimize sum(w);", "F0407"),
        ("set Q = simplex(3); minimize sum(w);", "F0416"),
        ("set Q = {z in D | z.time > sum(w)}; minimize sum(w);", "F0414"),
        ("index q in simplex(3); minimize sum(w);", "F0407"),
        ("let a[q in simplex(d)] = q[1]; minimize sum(w);", "F0407"),
        ("set Q = {1, 2, w}; minimize sum(w);", "F0424"),
        ('set Q = {1, "a"}; minimize sum(w);', "F0306"),
        ("var v[{1, 2}]; minimize sum(w);", "F0416"),
        ("var v[gone, gone]; minimize sum(w);", "F0201"),
        ("param p >= w; minimize sum(w);", "F0303"),
        ("param p >= d; minimize sum(w);", "F0424"),
        ("param p[3] default w; minimize sum(w);", "F0301"),
        ("const p = w; minimize sum(w);", "F0424"),
        ("net s : real[d] -> real assume lipschitz(-1); minimize sum(w);", "F0418"),
        ("net s : real[d] -> real; var th[3] = params(s); minimize sum(w);", "F0419"),
        ("var t <= 1, in capped_simplex(3, 2); minimize sum(w);", "F0301"),
        ("set K = {1, 2}; var q[K] in capped_simplex(K, 2); minimize sum(w);", "F0421"),
        ("minimize sum(w) + w[1.5];", "F0309"),
        ("minimize sum(w) + w[sum(w)];", "F0308"),
        ('minimize sum(w) + w["a"];', "F0309"),
        ("param n default 2; let a[k in n .. 9] = k; minimize sum(w) + a[3];", "F0309"),
        ("let a = 1; minimize sum(w) + a[1];", "F0310"),
        ("set P = {z in D | z.y == 1}; let a[i in P] = i.time; minimize sum(w) + a[1];", "F0309"),
        ("data E2 : table(x: real); minimize sum(w) + mean[i in D] E[j ~ E2 | j != i] j.x;", "F0306"),
        ("minimize sum(w) + E[z ~ D] (z.y - z);", "F0316"),
        ("minimize sum(w) + E[z ~ D | z.y + (sum(w) == 1) > 0] z.time;", "F0305"),
        ("minimize sum(w) + (w and w);", "F0304"),
        ("def f(u, k) = u * k; minimize sum(w) + f(1, 2, 3);", "F0302"),
        ("def f(u, k) = u * k; minimize sum(w) + f(1, q = 3);", "F0302"),
        ("index k in {1, 2}; def f(u) = u; minimize sum(w) + sum_k f_k(1);", "F0302"),
        ("minimize sum(w) + max(1, 2, w, u = 3);", "F0302"),
        ("minimize sum(w) + log(u = 2, v = 3);", "F0302"),
        ("minimize sum(w) + huber(1, w);", "F0303"),
        ("minimize sum(w) + E[e ~ uniform(w, 1)[3]] 1;", "F0301"),
        ("minimize sum(w) + E[e ~ exponential(0)] e;", "F0421"),
        ("minimize sum(w); options { seed = {1, 2}; gamma = w[1]; }", "F0418"),
        ("minimize sum(w); subject to c: sum(w) <= 1 with penalty = sum(w);", "F0424"),
    ],
)
def test_refused(text: str, code: str) -> None:
    assert code in codes(TABLE + "var w[d];" + text)


def test_sets_of_sets_share_their_conditions() -> None:
    """A chain of them is checked in a time proportional to its length."""
    chain = "".join(f"set a{k + 1} = {{z in a{k} | z.time > {k}}};" for k in range(5))
    sets = problem(
        f"{TABLE}set a0 = {{z in D | z.time > -1}}; {chain} var t; minimize E[z ~ a5] (t - z.time)^2;"
    ).sets
    for k in range(5):
        assert sets[f"a{k + 1}"].where.args[0] is sets[f"a{k}"].where


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("minimize E[z ~ D] dot(w, z.x) / 2;", []),
        ("minimize E[z ~ D] (dot(w, z.x) / z.time);", []),
        ("minimize E[z ~ D] dot(w, z.x) / z.time * 3;", ["F0434"]),
        ("minimize mean[i in D] dot(w, i.x) / i.time;", ["F0434"]),
        ("minimize sum(w) + mean[i in D] sumsq(w);", ["F0437"]),
        ("minimize sum(w); subject to c: 0 <= w[1] <= 1;", []),
        ("var t; minimize sum(w) + t; subject to c: -1 <= t <= 1;", ["F0435"]),
        ("var t; minimize sum(w) + t; subject to c: 3 >= t;", ["F0435"]),
        ("set K = {1, 2}; var q[K]; minimize sum(w) + sum(q); subject to c[k in K]: q[k] >= 0;", ["F0435"]),
        ("set K = {1, 2}; var q[K]; minimize sum(w) + sum(q); subject to c[k in K | k > 1]: q[k] >= 0;", []),
    ],
)
def test_remarks(text: str, expected: list[str]) -> None:
    assert [c for c in remarks(TABLE + "var w[d];" + text) if c != "F0432"] == expected


def test_every_function_of_the_language_can_be_called() -> None:
    """Each public atom is accepted, by each of its names, with arguments of shapes that its rule takes."""
    pre = "dim d; var t >= 0.5, <= 1; var w[d] >= 0.5, <= 1; var A[d, d];"
    for name, atom in named_atoms().items():
        rest = atom.min_count - 1
        forms = [
            [first] + [other] * rest
            for first in ("t", "w", "A", "A + transpose(A)")
            for other in (first, "A", "0.5", "2.5", "2")
        ]
        bodies = []
        for form in forms:
            with contextlib.suppress(FccoError):
                bodies.append(problem(f"{pre} let y = {name}({', '.join(form)}); minimize t;").lets["y"].body)
        assert any(isinstance(body, ir.Apply) and body.op == atom.name for body in bodies), name
