"""Estimators of scikit-learn that solve a model.

They work in a ``Pipeline`` and under ``GridSearchCV``; columns of groups come by metadata routing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fccomodel.app import errors
from fccomodel.app.scoring import rows, scoring
from fccomodel.core import files, ir
from fccomodel.core.diagnostics import refuse

if TYPE_CHECKING:
    from fccomodel.app.python.modelling import Model
    from fccomodel.app.python.session import CompiledModel, Result

_LINEAR = """
dim d;
data D : table(x: real[d], y: {kind});
param mu >= 0 default 0.001;  # the weight of the squared coefficients
var w[d];
var b;
def score(x) = dot(w, x) + b;
minimize risk: E[z ~ D] {loss} + mu * sumsq(w);
"""
LOGISTIC = f"model logistic;{_LINEAR.format(kind='{-1, 1}', loss='log1pexp(-z.y * score(z.x))')}"
SOFTMAX = """
model softmax;
dim d;
set C;  # the classes come with the data
data D : table(x: real[d], y: C);
param mu >= 0 default 0.001;  # the weight of the squared coefficients
var w[C, d];
var b[C];
def score(x) = w @ x + b;
minimize risk: E[z ~ D] (logsumexp(score(z.x)) - dot(w[z.y], z.x) - b[z.y]) + mu * sumsq(w);
"""
RIDGE = f"model ridge;{_LINEAR.format(kind='real', loss='(score(z.x) - z.y)^2')}"


@cache
def _default(text: str) -> CompiledModel:
    from fccomodel.app.python import session

    return session.compile(text)


class _Estimator(BaseEstimator):
    """The common part of the classifier and the regressor.

    model         a ``Model``, a text, or a file; None for a linear model. A model has one table of
                  rows. The score of a row is the definition ``score``, or the only net, or the only
                  linear form of a row
    params        numbers by name, of the model's ``param`` statements; a grid over them is
                  ``{"params": [{"mu": 0.1}, ...]}``
    nets          modules by name, or texts such as ``"mlp(64, 64)"``
    features      the model's column of features
    target        the model's column of the target
    budget        ``"10s"``, ``"5000it"``, ``"1e6oracles"``; None for a budget by the model's size
    options       other options of ``solve``, by name
    random_state  the seed

    After ``fit`` the answer is ``result_``, with its report. A ``ConvergenceWarning`` says if the
    report calls it unsolved. Features are not scaled: scale them in a ``Pipeline``.
    """

    def __init__(
        self,
        model: Model | CompiledModel | str | Path | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        nets: Mapping[str, Any] | None = None,
        features: str = "x",
        target: str = "y",
        budget: str | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ):
        self.model, self.params, self.nets, self.features, self.target = model, params, nets, features, target
        self.budget, self.options, self.random_state = budget, options, random_state

    def _compiled(self) -> CompiledModel:
        from fccomodel.app.python import session
        from fccomodel.app.python.modelling import Model

        if self.model is None:
            return _default(self._text())
        if isinstance(self.model, Model):
            return self.model.compiled
        if isinstance(self.model, session.CompiledModel):
            return self.model
        return session.compile(self.model)

    def _text(self) -> str:
        """The text of the model that is solved if the caller gives none."""
        raise NotImplementedError

    def _table(self) -> ir.Table:
        """The model's only table, with features and target; F0816 if the model has no such table."""
        tables = list(self._compiled().compiled.problem.tables.values())
        if len(tables) == 1 and {self.features, self.target} <= set(tables[0].columns):
            return tables[0]
        names = [table.name for table in tables]
        refuse(errors.no_table_for_estimator(self.features, self.target, names))

    def _solve(self, x: np.ndarray, y: np.ndarray, group: Any) -> Result:
        """Solve the model with these features, targets and groups; warn if it is not solved."""
        columns = {self.features: x, self.target: y, **self._groups(group)}
        bound = self._compiled().bind(data={self._table().name: columns}, params=self.params, nets=self.nets)
        own: dict[str, Any] = {}
        if self.random_state is not None:
            own["seed"] = self.random_state
        if self.budget is not None:
            own["budget"] = self.budget
        all_options = files.merged(("an argument of the estimator", own), ("in its `options`", self.options))
        result = bound.solve(**all_options)
        if not result.report.solved:
            warnings.warn(f"{result.report.verdict} (see its report)", ConvergenceWarning, stacklevel=3)
        return result

    def _groups(self, group: Any) -> dict[str, Any]:
        """The columns beside features and target, by name.

        group   None, a mapping or a DataFrame of the columns, or the values of the only one
        """
        others = [name for name in self._table().columns if name not in (self.features, self.target)]
        if group is None:
            columns = {}
        elif isinstance(group, Mapping):
            columns = {str(name): values for name, values in group.items()}
        elif hasattr(group, "columns"):
            columns = {str(name): group[name] for name in group.columns}
        elif len(others) == 1:
            columns = {others[0]: group}
        else:
            columns = {"group": group}
        if set(columns) != set(others):
            refuse(errors.groups_of_estimator(list(columns), others))
        return columns

    def _rows(self, x: Any) -> dict[str, np.ndarray]:
        """New rows of features, checked against the features of ``fit``."""
        check_is_fitted(self)
        return {self.features: validate_data(self, x, reset=False, dtype=np.float64)}


class FCCOClassifier(ClassifierMixin, _Estimator):
    """A classifier by a model whose target column has two numbers or a set of labels.

    Without a model it is logistic regression; for more than two classes, softmax regression.

    If the model has two classes and the data have more, it is solved once per class, against the
    other classes. ``results_`` has these answers after ``fit``. With a single answer that is
    ``result_`` too.

    >>> from fccomodel import FCCOClassifier
    >>> fair = FCCOClassifier("fair.fcco", params={"kappa": 0.05})  # doctest: +SKIP
    >>> fair = fair.set_fit_request(group=True)  # doctest: +SKIP
    >>> fair.fit(X, y, group=sex).predict(X_new)  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any, group: Any = None) -> FCCOClassifier:
        """Solve the model.

        group   the values of the table's only other column, or several columns by name (a mapping or a
                DataFrame)
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("The target has one class; a classifier needs two classes.")
        self._members = self._targets()
        if len(self._members) < len(self.classes_):
            coded = [(codes == k).astype(int) for k in range(len(self.classes_))]
        else:
            coded = [codes]
        self.results_ = [self._solve(X, self._members[code], group) for code in coded]
        self.__dict__.pop("result_", None)
        if len(self.results_) == 1:
            self.result_ = self.results_[0]
        return self

    def _text(self) -> str:
        if len(getattr(self, "classes_", ())) > 2:
            return SOFTMAX
        return LOGISTIC

    def _targets(self) -> np.ndarray:
        """The label or number of each class in the model's target column, in the order of the classes.

        F0816 if the column's domain has neither two numbers nor one for each class.
        """
        problem = self._compiled().compiled.problem
        table = self._table()
        count = len(self.classes_)
        column = table.columns[self.target]
        if isinstance(column.domain, ir.LabelSet) and not column.shape:
            return np.array([str(label) for label in self.classes_.tolist()])
        values = scoring.values_of(problem, table, self.target, self.params or {})
        if len(values) not in (2, count):
            refuse(errors.target_of_classifier(self.target, table.name, len(values), count))
        return values

    def _score_quantity(self) -> rows.Quantity:
        """The model's score of a row."""
        return rows.score(self._compiled().compiled)

    def _scores(self, X: Any) -> np.ndarray:
        """The scores, of shape (rows,) or (rows, classes).

        F0816 if the model has a single score, which cannot tell labels or more than two classes apart.
        """
        new_rows = self._rows(X)
        per_result = [result.decision_function(new_rows) for result in self.results_]
        if len(per_result) > 1:
            return np.column_stack(per_result)
        (scores,) = per_result
        if scores.ndim == 1:
            if len(self.classes_) > 2 or self._members.dtype.kind == "U":
                refuse(errors.score_of_classifier(self._score_quantity().name, len(self.classes_)))
            return scores
        names = scoring.members(self.result_.fitted(), self._score_quantity(), scores.shape[1])
        place = {name: k for k, name in enumerate(names.tolist())}
        return scores[:, [place[member] for member in self._members.tolist()]]

    def decision_function(self, X: Any) -> np.ndarray:
        """The model's scores; a score that is a probability less 1/2.

        With two classes, shape (rows,), positive for the second of ``classes_``; with more,
        shape (rows, classes).
        """
        scores = self._scores(X)
        if scores.ndim == 2 and len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores - scoring.limit(self._score_quantity())

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: by the sign of its score, or the class with the largest score.

        F0816 if the model only compares scores with each other: then 0 is no threshold.
        """
        scores = self.decision_function(X)
        if self.model is not None and self._only_ranks():
            refuse(errors.ranking_of_classifier(self._score_quantity().name))
        if scores.ndim == 1:
            place = (scores > 0).astype(int)
        else:
            place = scores.argmax(1)
        return self.classes_[place]

    def _only_ranks(self) -> bool:
        """Whether the model takes a score of rows only in differences of two rows."""
        wanted = self._score_quantity()
        return not wanted.expr.shape and rows.is_only_compared(wanted)

    def _has_probabilities(self) -> bool:
        """Whether the model's score is a probability, or is turned into one."""
        return self.model is None or scoring.probable(self._score_quantity())

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, of shape (rows, classes).

        Only the default model and models whose score is a probability have them. If one model per
        class was solved, each row's probabilities are divided by their sum.
        """
        scores = self._scores(X)
        if self.model is None:
            if scores.ndim == 2:
                scores = softmax(scores, axis=1)
            else:
                scores = expit(scores)
        if scores.ndim == 2:
            return scores / scores.sum(1, keepdims=True)
        return np.column_stack([1 - scores, scores])


class FCCORegressor(RegressorMixin, _Estimator):
    """A regressor by a model whose target is a number. Without a model it is ridge regression.

    >>> from fccomodel import FCCORegressor
    >>> FCCORegressor(params={"mu": 0.1}).fit(X, y).predict(X_new)  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any, group: Any = None) -> FCCORegressor:
        """Solve the model.

        group   the values of the table's only other column, or several columns by name (a mapping or a
                DataFrame)
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.result_ = self._solve(X, np.asarray(y, float), group)
        return self

    def _text(self) -> str:
        return RIDGE

    def predict(self, X: Any) -> np.ndarray:
        """The model's score of each row."""
        rows = self._rows(X)  # raises NotFittedError before fit
        return self.result_.decision_function(rows)
