"""Models as estimators of scikit-learn: in a ``Pipeline``, under ``GridSearchCV``, with columns of
groups by metadata routing."""

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
    """What classifiers and regressors share.

    model         a ``Model``, a text, or a file; None for a linear one. It has one table of rows,
                  and scores them by a definition
                  ``score``, its only net or its only linear form of a row
    params        numbers by name, of the model's ``param`` statements; a grid over them is
                  ``{"params": [{"mu": 0.1}, ...]}``
    nets          modules by name, or texts such as ``"mlp(64, 64)"``
    features      the model's column of features; target: that of the target
    budget        ``"10s"``, ``"5000it"``, ``"1e6oracles"``; None for what the model's size asks for
    options       other options of ``solve``, by name
    random_state  the seed

    After ``fit`` the answer is ``result_``, with its report; ``ConvergenceWarning`` where that says
    that it is no solution. Features are taken as they are: scale them in a ``Pipeline``.
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
        """The model where none is given."""
        raise NotImplementedError

    def _table(self) -> ir.Table:
        """The table with the features; F0816 where there is not just one."""
        tables = self._compiled().compiled.problem.tables
        found = [
            table
            for table in tables.values()
            if self.features in table.columns and self.target in table.columns
        ]
        if len(found) != 1 or len(tables) != 1:
            refuse(errors.no_table_for_estimator(self.features, self.target, list(tables)))
        return found[0]

    def _solve(self, x: np.ndarray, y: np.ndarray, group: Any) -> Result:
        columns = {self.features: x, self.target: y, **self._groups(group)}
        bound = self._compiled().bind(data={self._table().name: columns}, params=self.params, nets=self.nets)
        own = {"seed": self.random_state, "budget": self.budget}
        own = {name: value for name, value in own.items() if value is not None}
        result = bound.solve(
            **files.merged(("an argument of the estimator", own), ("in its `options`", self.options))
        )
        if not result.report.solved:
            warnings.warn(f"{result.report.verdict} (see its report)", ConvergenceWarning, stacklevel=3)
        return result

    def _groups(self, group: Any) -> dict[str, Any]:
        """The other columns of the table: by name, or the only one."""
        others = [name for name in self._table().columns if name not in (self.features, self.target)]
        if group is None:
            given = {}
        elif isinstance(group, Mapping) or hasattr(group, "columns"):
            given = {
                str(name): group[name] for name in (group if isinstance(group, Mapping) else group.columns)
            }
        else:
            if len(others) == 1:
                given = {others[0]: group}
            else:
                given = {"group": group}
        if set(given) != set(others):
            refuse(errors.groups_of_estimator(list(given), others))
        return given

    def _rows(self, x: Any) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        return {self.features: validate_data(self, x, reset=False, dtype=np.float64)}


class FCCOClassifier(ClassifierMixin, _Estimator):
    """A classifier by a model whose target column names its classes, as two numbers or as a set of
    labels; by default logistic regression, of more than two classes by the softmax of a linear form
    for each.

    A model of two classes that meets more of them is solved for each class against the rest. After
    ``fit`` the answers are ``results_``, which has one for each class then, and else only
    ``result_``.

    >>> from fccomodel import FCCOClassifier
    >>> fair = FCCOClassifier("fair.fcco", params={"kappa": 0.05})  # doctest: +SKIP
    >>> fair = fair.set_fit_request(group=True)  # doctest: +SKIP
    >>> fair.fit(X, y, group=sex).predict(X_new)  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any, group: Any = None) -> FCCOClassifier:
        """Solve the model. ``group``: the model's other column, or several by name (a mapping or a
        DataFrame)."""
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
        """What stands for each class in the model's target, in their order: labels, or numbers; F0816
        where these are neither as many nor two."""
        problem, table, count = self._compiled().compiled.problem, self._table(), len(self.classes_)
        domain = table.columns[self.target].domain
        if isinstance(domain, ir.LabelSet) and not table.columns[self.target].shape:
            return np.array([str(one) for one in self.classes_.tolist()])
        values = scoring.values_of(problem, table, self.target, self.params or {})
        if len(values) not in (2, count):
            refuse(errors.target_of_classifier(self.target, table.name, len(values), count))
        return values

    def _wanted(self) -> rows.Quantity:
        return rows.score(self._compiled().compiled)

    def _scored(self, X: Any) -> np.ndarray:
        """(rows,) of one score, or (rows, classes): F0816 where one score is to tell labels, or more
        than two classes, apart."""
        given = self._rows(X)
        each = [result.decision_function(given) for result in self.results_]
        if len(each) > 1:
            return np.column_stack(each)
        (scores,) = each
        if scores.ndim == 1 and (len(self.classes_) > 2 or self._members.dtype.kind == "U"):
            refuse(errors.score_of_classifier(self._wanted().name, len(self.classes_)))
        if scores.ndim == 1:
            return scores
        names = scoring.members(self.result_.fitted(), self._wanted(), scores.shape[1])
        place = {name: k for k, name in enumerate(names.tolist())}
        return scores[:, [place[member] for member in self._members.tolist()]]

    def decision_function(self, X: Any) -> np.ndarray:
        """The model's scores, those of probabilities less 1/2: of two classes positive for the second
        of ``classes_``, of more (rows, classes)."""
        scores = self._scored(X)
        if scores.ndim == 2 and len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores - scoring.limit(self._wanted())

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: by the sign of its score, of several classes by the largest."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _probable(self) -> bool:
        return self.model is None or scoring.probable(self._wanted())

    @available_if(_probable)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Of the default model, and of models whose score is a probability: that of each class, (rows,
        classes); of a model for each class they are divided by their sum."""
        scores = self._scored(X)
        if self.model is None:
            if scores.ndim == 2:
                scores = softmax(scores, axis=1)
            else:
                scores = expit(scores)
        if scores.ndim == 2:
            return scores / scores.sum(1, keepdims=True)
        return np.column_stack([1 - scores, scores])


class FCCORegressor(RegressorMixin, _Estimator):
    """A regressor by a model with a number as its target; by default ridge regression.

    >>> from fccomodel import FCCORegressor
    >>> FCCORegressor(params={"mu": 0.1}).fit(X, y).predict(X_new)  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any, group: Any = None) -> FCCORegressor:
        """Solve the model. ``group``: the model's other column, or several by name (a mapping or a
        DataFrame)."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.result_ = self._solve(X, np.asarray(y, float), group)
        return self

    def _text(self) -> str:
        return RIDGE

    def predict(self, X: Any) -> np.ndarray:
        """The model's score of each row."""
        given = self._rows(X)
        return self.result_.decision_function(given)
