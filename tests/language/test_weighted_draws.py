"""Draws by weight, words for functions of reductions, options that vary: values, names, Python, refusals."""

import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.core.source import Source
from fccomodel.evaluation.interpret.evaluator import Evaluator
from fccomodel.language.format import format as formatted
from fccomodel.library import reductions

HEAD = "dim d; set K = 1 .. 2; data D : table(x: real[d], y: real, p: real); data th : real[K]; var w[d]; "
RNG = np.random.default_rng(0)
ROWS, Y, WEIGHT = RNG.normal(size=(30, 3)), RNG.normal(size=30), RNG.uniform(0.1, 2, 30)
DATA = {"D": {"x": ROWS, "y": Y, "p": WEIGHT}, "th": np.array([0.5, 3.0])}
W = np.array([0.3, 0.2, -0.1])
U = ROWS @ W
ALL = WEIGHT / WEIGHT.sum()
PART = np.where(Y > 0, WEIGHT, 0) / WEIGHT[Y > 0].sum()

SOME = np.maximum(Y, 0) / np.maximum(Y, 0).sum()


def value(formula: str) -> float:
    bound = fc.compile(f"{HEAD} minimize risk: {formula};").bind(**DATA).bound
    return float(Evaluator(bound, {"w": torch.tensor(W)}).value(bound.problem.objective.expr, {}).data)


@pytest.mark.parametrize(
    ("formula", "closed"),
    [
        ("E[z ~ D by z.p] dot(w, z.x)", ALL @ U),
        ("E[z ~ D by 2 * z.p | z.y > 0] (dot(w, z.x) - z.y)^2", PART @ (U - Y) ** 2),
        ("variance[z ~ D by z.p | z.y > 0] dot(w, z.x)", PART @ (U - PART @ U) ** 2),
        ("std[z ~ D by z.p] dot(w, z.x)", np.sqrt(ALL @ (U - ALL @ U) ** 2)),
        ("std[z ~ D] dot(w, z.x)", U.std()),
        ("logmeanexp(theta = 2)[z ~ D by z.p] dot(w, z.x)", 2 * np.log(ALL @ np.exp(U / 2))),
        ("logmeanexp(theta = w[1])[z ~ D by z.p] dot(w, z.x)", 0.3 * np.log(ALL @ np.exp(U / 0.3))),
        (
            "sum[k in K] logmeanexp(theta = th[k])[z ~ D] dot(w, z.x)",
            sum(t * np.log(np.mean(np.exp(U / t))) for t in (0.5, 3.0)),
        ),
        ("bottomk(k = 2)[i in d] w[i]", 0.05),
        ("logmeanexp(theta = 2)[z ~ D by max(z.y, 0)] dot(w, z.x)", 2 * np.log(SOME @ np.exp(U / 2))),
    ],
)
def test_values(formula: str, closed: float) -> None:
    assert value(formula) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize(
    "formula",
    ["std[z ~ D by z.p] dot(w, z.x)", "variance[z ~ D by z.p] dot(w, z.x)", "E[z ~ D by z.p] w[1]^2"],
)
def test_weighted_measures_are_convex(formula: str) -> None:
    explained = str(fc.compile(f"{HEAD} minimize risk: {formula};").explain())
    assert "A convex problem" in explained


@pytest.mark.slow
def test_weighted_least_squares() -> None:
    model = fc.compile(f"{HEAD} minimize risk: E[z ~ D by z.p] (dot(w, z.x) - z.y)^2;")
    found = model.bind(**DATA).solve(budget="200it").variables["w"]
    root = np.sqrt(WEIGHT)
    assert np.allclose(found, np.linalg.lstsq(ROWS * root[:, None], Y * root, rcond=None)[0], atol=1e-6)


def test_negative_weights_are_refused_with_the_data() -> None:
    model = fc.compile(f"{HEAD} minimize risk: E[z ~ D by z.p] (dot(w, z.x) - z.y)^2;")
    with pytest.raises(fc.FccoError, match="z.p"):
        model.bind(D={"x": ROWS, "y": Y, "p": -WEIGHT}, th=DATA["th"]).solve(budget="1it")


@pytest.mark.parametrize(
    ("quantile", "chance"),
    [
        ("quantile(level = 0.1)[z ~ D] dot(w, z.x) >= -1", "prob[z ~ D] (dot(w, z.x) < -1) <= 0.1"),
        ("1 >= quantile(level = 0.9)[z ~ D] dot(w, z.x)", "prob[z ~ D] (dot(w, z.x) > 1) <= 1 - 0.9"),
    ],
)
def test_a_bound_of_a_quantile_is_a_chance_constraint(quantile: str, chance: str) -> None:
    head = f"{HEAD} minimize sumsq(w - 1); subject to c:"
    of_quantile, of_chance = (
        fc.compile(f"{head} {one} with surrogate = cvar;") for one in (quantile, chance)
    )
    assert of_quantile.latex() == of_chance.latex()


def test_words_stay_names_elsewhere() -> None:
    text = (
        "dim d; data D : table(x: real[d], std: real); var quantile[d]; var std >= 0; "
        "minimize std[z ~ D] dot(quantile, z.x) + std + quantile[1]^2 + E[z ~ D] z.std;"
    )
    assert fc.compile(text).name


@pytest.mark.parametrize("word", reductions.spelled().values(), ids=reductions.spelled())
def test_examples_of_words(word: reductions.Spelled) -> None:
    assert word.name in word.example and fc.compile(word.example).name


def test_format_keeps_weights() -> None:
    text = (
        "dim d;\ndata D : table(x: real[d], p: real);\nvar w[d];\nminimize E[z ~ D by z.p] dot(w, z.x)^2;\n"
    )
    assert formatted(Source(text=text)) == text


def test_draws_that_depend_on_rows_vary_with_them() -> None:
    """The weighted mean inside of a variance draws from its own rows, and so do expectations in it."""
    drawn = value("variance[z ~ D by 1, v ~ normal(10 * z.y, 0.01)] v")
    assert drawn == pytest.approx(100 * Y.var(), rel=0.1)
    inside = value("variance[z ~ D by 1] E[v ~ normal(10 * z.y, 0.01), u ~ uniform(v, v + 1)] (v + u)")
    assert inside == pytest.approx(400 * Y.var(), rel=0.1)


def refused(text: str) -> str:
    with pytest.raises(fc.FccoError) as caught:
        fc.compile(f"{HEAD} {text}").bind(**DATA)
    return str(caught.value)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("bottomk(k = 2)[z ~ D] w[1]", "`bottomk` goes over all elements"),
        ("bottomk[k in K] th[k] * w[k]", "bottomk(k = 3)[k in K]"),
        ("std[k in K] w[k]", "`std` averages draws"),
        ("E[z ~ D by 0 * z.p] w[1]", "the weights `0 * z.p` are all 0"),
        ("E[z ~ D by z.y] w[1]", "This place needs a value in [0, inf)"),
    ],
)
def test_messages_have_the_words_of_the_text(formula: str, message: str) -> None:
    assert message in refused(f"minimize risk: {formula};")


def test_the_bound_of_a_quantile_stands_outside_of_its_draws() -> None:
    low = "minimize sumsq(w); subject to low: quantile(level = 0.1)[z ~ D] dot(w, z.x)"
    model = fc.compile(f"{HEAD} {low} >= E[z ~ D] z.y - 3 with surrogate = cvar;")
    assert r"\mathbb{E}_{z \sim D}\left[y_{z}\right] - 3" in model.latex()
    assert "F0211" in refused(f"{low} >= z.y with surrogate = cvar;")


def test_formulas_show_weights_without_the_check_of_their_sign() -> None:
    model = fc.compile(
        f"{HEAD} minimize risk: E[z ~ D by z.p] w[1]^2 + logmeanexp(theta = th[1])[z ~ D] w[1];"
    )
    assert "sqrt" not in model.latex()


@pytest.mark.parametrize(
    "formula",
    [
        "E[z ~ D by z.by] dot(w, z.x)^2",
        "E[z ~ D by z.by | z.where > 0] dot(w, z.x)^2",
        "E[k ~ d by k | k > 1] w[k]^2",
        "E[k ~ d | k > 1] w[k]^2",
        "E[k ~ K by th[k]] k * w[1]^2",
    ],
)
def test_python_draws_by_weight_too(formula: str) -> None:
    """Columns may have the names of a set's methods; sizes and sets of numbers are drawn from too."""
    head = HEAD.replace("p: real", "by: real, where: real")
    parsed = fc.Model.parse(f"{head} minimize risk: {formula};")
    names: dict[str, object] = {}
    exec(parsed.to_python(), names)
    written = next(one for one in names.values() if type(one) is type(parsed))
    assert str(written) == str(parsed)


def test_weights_in_python_multiply_and_are_never_lost() -> None:
    m = fc.Model()
    m.D = fc.table(y=fc.real, p=fc.real)
    chained = m.D.by(m.D.p).by(lambda z: z.y**2)
    assert "by z.p * z.y^2" in str(fc.E(z.y for z in chained))
    assert "by z.p" in str(fc.E(z.y for z in m.D.by(m.D.p).subset(m.D.y > 0)))
    with pytest.raises(fc.FccoError, match="F0127"):
        m.P = m.D.by(m.D.p)
    with pytest.raises(fc.FccoError, match="F0127"):
        m.z = fc.index(m.D.by(m.D.p))
