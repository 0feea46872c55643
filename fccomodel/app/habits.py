"""Names of other libraries, answered by the name that this one has for the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from fccomodel.core.diagnostics import nearest

#: Attributes of results elsewhere (scikit-learn, SciPy, CVXPY, Pyomo, statsmodels), by what to write here.
RESULT = {
    **dict.fromkeys(
        ("x", "x_value", "solution", "params", "coefficients", "weights"), 'result.variables["w"]'
    ),
    **dict.fromkeys(("fun", "obj", "objective_value", "opt_val", "loss", "cost"), "result.objective"),
    **dict.fromkeys(
        ("dual_value", "dual_values", "duals", "dual", "lagrange_multipliers"), 'result.multipliers["name"]'
    ),
    **dict.fromkeys(("success", "termination_condition", "solver_status", "verdict"), "result.status"),
    **dict.fromkeys(("message", "describe"), "print(result)"),
    **dict.fromkeys(("intercept", "bias"), "result.intercept_"),
    "coef": "result.coef_",
    **dict.fromkeys(("transform", "decision", "forward", "scores"), "result.decision_function(rows)"),
    "predict_proba": "A score is no probability in general. Write `result.decision_function(rows)`, and for "
    "a logistic loss `1 / (1 + np.exp(-scores))`.",
    **dict.fromkeys(("score", "evaluate", "accuracy"), "(result.predict(rows) == labels).mean()"),
    **dict.fromkeys(("nit", "n_iter_", "nfev", "num_iters"), "result.history"),
    **dict.fromkeys(("show", "plots", "figure"), "result.plot()"),
    **dict.fromkeys(("dump", "write", "to_disk", "to_json"), 'result.save("out")'),
    **dict.fromkeys(("to_pandas", "to_df", "frame", "table"), "result.to_frame()"),
    "time": 'result.json["wall_s"]',
}
#: Attributes of pictures of a result, by what to write here.
PICTURES = {
    **dict.fromkeys(("show", "figure", "draw"), "result.plot()"),
    **dict.fromkeys(("savefig", "save", "write"), 'result.plot().savefig("run.png")'),
    **dict.fromkeys(("coef", "coefficients", "weights", "bars", "solution"), "result.plot.variables()"),
    **dict.fromkeys(("history", "loss", "objective", "trace", "curve"), "result.plot.convergence()"),
    **dict.fromkeys(("duals", "dual", "prices", "shadow_prices"), "result.plot.multipliers()"),
}
#: Attributes of sweeps, by what to write here.
SWEEP = {
    **dict.fromkeys(("to_frame", "to_df", "frame", "table", "df", "dataframe"), "curve.to_pandas()"),
    **dict.fromkeys(("solutions", "answers", "variables"), "curve.results"),
    **dict.fromkeys(("best_params_", "best_estimator_", "cv_results_"), "curve.rows"),
    **dict.fromkeys(("slopes", "multipliers", "duals"), 'curve.to_pandas()["slope"]'),
    **dict.fromkeys(("show", "figure"), "curve.plot()"),
}
#: Attributes of bound models, by what to write here.
BOUND = {
    **dict.fromkeys(("fit", "optimize", "optimise", "run", "train", "minimize"), "problem.solve(seed=0)"),
    **dict.fromkeys(("set_params", "params", "parameters"), "problem.with_params(mu=0.1)"),
    **dict.fromkeys(("predict", "decision_function", "score", "coef_"), "problem.solve().predict(rows)"),
    **dict.fromkeys(("variables", "objective", "status", "value"), "problem.solve().variables"),
    **dict.fromkeys(("summary", "describe", "print", "show"), "print(problem.explain())"),
    **dict.fromkeys(("loss", "criterion_fn", "loss_fn"), "problem.criterion()"),
    **dict.fromkeys(("grid", "grid_search", "path_of"), "problem.sweep(mu=[0.1, 0.01])"),
}
#: Attributes of compiled models, by what to write here.
COMPILED = {
    **dict.fromkeys(("fit", "optimize", "optimise", "run", "train"), "model.bind(frame).solve(seed=0)"),
    **dict.fromkeys(
        ("predict", "decision_function", "score", "coef_"), "model.bind(frame).solve().predict(rows)"
    ),
    **dict.fromkeys(("variables", "objective", "status", "value"), "model.bind(frame).solve().variables"),
    **dict.fromkeys(("with_params", "sweep", "compare"), "model.bind(frame).with_params(mu=0.1)"),
    **dict.fromkeys(("summary", "describe", "text", "show"), "print(model.explain())"),
}
#: Names of modelling packages, by what to write here.
PACKAGE = {
    **dict.fromkeys(("Variable", "Var", "variable"), "m.w = fc.var(m.d)"),
    **dict.fromkeys(("Parameter", "Param", "parameter"), "m.mu = fc.param(ge=0, default=0.1)"),
    **dict.fromkeys(("Problem", "ConcreteModel", "model", "LpProblem"), 'm = fc.Model("name")'),
    **dict.fromkeys(("Minimize", "minimise", "minimize", "Objective"), "m.minimize(risk=...)"),
    **dict.fromkeys(("Maximize", "maximise", "maximize"), "m.maximize(auc=...)"),
    **dict.fromkeys(("Constraint", "subject_to", "st"), "m.subject_to(name=left <= right)"),
    **dict.fromkeys(("Set", "set"), "m.G = fc.labels()"),
    **dict.fromkeys(("read", "read_model", "parse", "from_file", "open"), 'fc.compile("model.fcco")'),
    **dict.fromkeys(("solve", "fit"), "m.bind(frame).solve(seed=0)"),
    **dict.fromkeys(("expectation", "Expectation", "average"), "fc.E(f(z) for z in m.D)"),
    **dict.fromkeys(("logistic", "softplus"), "fc.log1pexp(u)"),
    **dict.fromkeys(("relu", "hinge"), "fc.pos(u)"),
}


def no_attribute(owner: str, name: str, habits: Mapping[str, str], known: Iterable[str]) -> NoReturn:
    """Raise the AttributeError of a name that an object does not have, with what to write instead.

    owner   the kind of object, in a word or two
    habits  what to write, by names elsewhere
    known   the names that the object has
    """
    text = f"{owner} has no `{name}`."
    near = nearest(name, [other for other in known if not other.startswith("_")])
    instead = habits.get(name, "")
    if instead.endswith("."):
        text = f"{text} {instead}"
    elif instead:
        text = f"{text} Write `{instead}`."
    elif near:
        text = f"{text} Did you mean `{near}`?"
    raise AttributeError(text, name=name, obj=None)  # with an `obj` Python would add a guess of its own


class Answering:
    """An object that answers names which it does not have by what to write instead.

    _called  the object in a message
    """

    _called = "This object"

    if not TYPE_CHECKING:  # for a type checker an unknown name is an error

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property that failed: its own error is the one to show
                return object.__getattribute__(self, name)
            if name.startswith("_"):
                raise AttributeError(name)
            no_attribute(self._called, name, self._instead(), dir(self))

    def _instead(self) -> Mapping[str, str]:
        """What to write, by names elsewhere."""
        return {}
