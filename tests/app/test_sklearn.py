"""Models as estimators of scikit-learn: its own checks, pipelines, searches over params, columns of
groups."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fccomodel
from fccomodel import FCCOClassifier, FCCORegressor
from fccomodel.core.diagnostics import FccoError

FAIR = """
model fair;
dim d;
set G;
data D : table(x: real[d], y: {0, 1}, g: G);
param kappa >= 0 default 10;
var w[d];
var b;
def score(x) = dot(w, x) + b;
minimize risk: E[z ~ D] log1pexp(-(2 * z.y - 1) * score(z.x)) + 0.01 * sumsq(w);
subject to
  gap[k in G, l in G | k != l]: E[z ~ D | z.g == k] score(z.x) - E[z ~ D | z.g == l] score(z.x) <= kappa;
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([FCCOClassifier(budget="100it"), FCCORegressor(budget="100it")])
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    """After short runs: they judge manners, not answers."""
    check(estimator)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, y = make_classification(160, 4, n_informative=3, n_redundant=0, random_state=0)
    group = np.where(x[:, 0] + np.random.default_rng(0).normal(size=160) > 0, "a", "b")
    return x, np.where(y == 1, "yes", "no"), group


def gap(model: Any, x: np.ndarray, group: np.ndarray) -> float:
    scores = model.decision_function(x)
    return abs(scores[group == "a"].mean() - scores[group == "b"].mean())


def test_a_constraint_on_groups(data: Any) -> None:
    """The column of groups goes through a pipeline by metadata routing, and is not needed to predict."""
    x, y, group = data
    with sklearn.config_context(enable_metadata_routing=True):
        made = {}
        for kappa in (10.0, 0.1):
            fair = FCCOClassifier(FAIR, params={"kappa": kappa}).set_fit_request(group=True)
            made[kappa] = make_pipeline(StandardScaler(), fair).fit(x, y, group=group)
    assert gap(made[0.1], x, group) == pytest.approx(0.1, abs=1e-4) and gap(made[10.0], x, group) > 0.2
    assert set(made[0.1].predict(x)) == {"no", "yes"} and made[10.0].score(x, y) > 0.7
    fitted = made[0.1][-1]
    assert fitted.result_.report.solved and fitted.result_.multipliers["gap"].dims == ("k", "l")
    assert not hasattr(fitted, "predict_proba")  # a score that is no probability


def test_a_search_over_params(data: Any) -> None:
    x, y, _ = data
    grid = {"params": [{"mu": 10.0}, {"mu": 0.001}]}
    found = GridSearchCV(FCCOClassifier(), grid, cv=2, scoring="neg_log_loss").fit(x, y)
    assert found.best_params_ == {"params": {"mu": 0.001}}
    upper = found.predict_proba(x)
    assert upper.sum(1) == pytest.approx(1) and np.array_equal(upper[:, 1] > 0.5, found.predict(x) == "yes")


def test_probabilities(data: Any) -> None:
    x, y, _ = data
    loss = "log1pexp(-(2 * z.y - 1) * score(z.x))"
    text = FAIR.replace("dot(w, x) + b", "sigmoid(dot(w, x) + b)").replace(loss, "(score(z.x) - z.y)^2")
    made = FCCOClassifier(text, options={"unverified": True}).fit(x, y, group=np.resize(["a", "b"], len(x)))
    assert np.array_equal(made.predict_proba(x)[:, 1] > 0.5, made.predict(x) == "yes")
    assert made.decision_function(x) == pytest.approx(made.predict_proba(x)[:, 1] - 0.5)


def test_the_regressor_is_ridge_regression() -> None:
    x, y = make_regression(60, 3, noise=1.0, random_state=0)
    y = y / y.std()
    made = FCCORegressor(params={"mu": 0.5}).fit(x, y)
    assert made.predict(x) == pytest.approx(Ridge(alpha=0.5 * 60).fit(x, y).predict(x), abs=1e-5)


@pytest.mark.parametrize("of", ["text", "compiled", "model"])
def test_models_of_every_kind(of: str, data: Any) -> None:
    kinds = {"text": str, "compiled": fccomodel.compile, "model": fccomodel.Model.parse}
    estimator = clone(FCCOClassifier(kinds[of](FAIR), budget="20it"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert estimator.fit(data[0], data[1], group={"g": data[2]}).predict(data[0]).shape == (160,)


@pytest.mark.parametrize("given", [{}, {"h": [0] * 160}, {"g": [0] * 160, "h": [0] * 160}])
def test_groups_that_are_not_the_models(given: Any, data: Any) -> None:
    with pytest.raises(FccoError, match="F0816"):
        FCCOClassifier(FAIR).fit(data[0], data[1], group=given or None)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fccomodel.app.python.estimators")
    monkeypatch.delattr(fccomodel.app.python, "estimators")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(FccoError, match="F0529"):
        fccomodel.FCCORegressor  # noqa: B018


# ---------------------------------------------------------------------------------- several classes
ONE_SCORE = """
dim d;
data D : table(x: real[d], y: {0, 1});
var w[d];
var b;
def score(x) = dot(w, x) + b;
minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * score(z.x)) + 0.01 * sumsq(w);
"""
SCORES = """
dim d;
set C = {2, 0, 1};
data D : table(x: real[d], y: {0, 1, 2});
var W[C, d];
def score(x) = W @ x;
minimize E[z ~ D] (logsumexp(score(z.x)) - sum[k in C | k == z.y] dot(W[k], z.x)) + 0.001 * sumsq(W);
"""
LABELLED = SCORES.replace("set C = {2, 0, 1}", "set C").replace("y: {0, 1, 2}", "y: C")
CLASSES = np.array(["barbera", "barolo", "grignolino"])


@pytest.fixture(scope="module")
def wine() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(x)[::2], CLASSES[[1, 2, 0]][y][::2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("text", [None, ONE_SCORE, SCORES, LABELLED])
def test_several_classes(text: str | None, wine: Any) -> None:
    """By a softmax, by a model for each class against the rest, by one with numbers for classes, by
    one with labels."""
    made = FCCOClassifier(text, budget=None if text is None else "200it").fit(*wine)
    assert made.score(*wine) > 0.97 and made.decision_function(wine[0]).shape == (89, 3)
    assert len(made.results_) == (3 if text is ONE_SCORE else 1) and hasattr(made, "result_") == (
        text is not ONE_SCORE
    )
    if text is None:
        logistic = LogisticRegression(C=1 / (2 * 0.001 * 89), tol=1e-9, max_iter=5000).fit(*wine)
        assert made.predict_proba(wine[0]) == pytest.approx(logistic.predict_proba(wine[0]), abs=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_of_two_labels_are_told_apart_by_the_difference_of_their_scores(wine: Any) -> None:
    x, y = wine
    made = FCCOClassifier(LABELLED, budget="200it").fit(x, y == "barolo")
    assert made.score(x, y == "barolo") > 0.97 and made.decision_function(x).shape == (89,)


def test_numbers_of_classes_stand_in_the_order_of_their_set(wine: Any) -> None:
    """The set of the scores lists them otherwise than the column does."""
    x, y = wine[0], np.unique(wine[1], return_inverse=True)[1]
    result = fccomodel.compile(SCORES).bind(D={"x": x, "y": y}).solve(budget="200it", polish=False)
    assert (result.predict({"x": x}) == y).mean() > 0.97


def test_one_score_does_not_tell_labels_apart(wine: Any) -> None:
    text = LABELLED.replace("score(x) = W @ x", "score(x) = sum(W @ x)").replace(
        "logsumexp(score(z.x))", "score(z.x)^2"
    )
    made = FCCOClassifier(text, budget="5it", options={"unverified": True, "polish": False})
    with warnings.catch_warnings(), pytest.raises(FccoError, match="F0816"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        made.fit(*wine).predict(wine[0])


OTHER_COLUMN = FAIR.replace("x: real[d]", "u: real[d]").replace("z.x", "z.u")


@pytest.mark.parametrize("text", [FAIR.replace("{0, 1}", "{0, 1, 2}"), OTHER_COLUMN])
def test_models_that_are_no_classifier(text: str, data: Any) -> None:
    with pytest.raises(FccoError, match="F0816"):
        FCCOClassifier(text).fit(*data)


def test_a_score_that_only_ranks_gives_no_classes(data: Any) -> None:
    text = "dim d; data D : table(x: real[d], y: {0, 1}); var w[d]; "
    text += "minimize E[p ~ D, n ~ D | p.y == 1 and n.y == 0] log1pexp(dot(w, n.x - p.x)) + sumsq(w);"
    x, y, _ = data
    ranking = FCCOClassifier(text).fit(x, y)
    assert ranking.decision_function(x).std() > 0
    with pytest.raises(FccoError, match="ranks rows"):
        ranking.predict(x)
