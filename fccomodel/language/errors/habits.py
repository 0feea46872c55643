"""Attributes and methods of arrays and models elsewhere (NumPy, torch, CVXPY, Pyomo, scikit-learn), with what
to write here instead."""

from __future__ import annotations

#: Names of the transpose.
TRANSPOSES = ("T", "mT", "transpose")
#: Methods of arrays that are functions of the language, by the name elsewhere.
FUNCTIONS = {
    "sum": "sum({0})",
    "mean": "mean({0})",
    "max": "max({0})",
    "min": "min({0})",
    "abs": "abs({0})",
    "sqrt": "sqrt({0})",
    "exp": "exp({0})",
    "log": "log({0})",
    "norm": "norm2({0})",
    "dot": "dot({0}, v)",
}
#: Attributes that say the size of an array.
SIZES = ("shape", "size", "ndim")
#: Attributes and methods that give the numbers of an array.
NUMBERS = ("value", "values", "numpy", "item", "detach", "tolist", "data")

#: Attributes of models that are not bound yet, by what to write here.
MODEL = {
    **dict.fromkeys(("fit", "optimize", "optimise", "run", "train"), "m.bind(frame).solve(seed=0)"),
    **dict.fromkeys(("minimise", "Minimize", "set_objective", "setObjective"), "m.minimize(risk=...)"),
    **dict.fromkeys(("maximise", "Maximize"), "m.maximize(auc=...)"),
    **dict.fromkeys(
        ("add_constraint", "add_constraints", "addConstr", "constraint", "st", "such_that", "subjectto"),
        "m.subject_to(name=left <= right)",
    ),
    **dict.fromkeys(("variable", "add_variable", "add_var", "addVar", "Var", "var"), "m.w = fc.var(m.d)"),
    **dict.fromkeys(("parameter", "Param", "param"), "m.mu = fc.param(ge=0, default=0.1)"),
    **dict.fromkeys(("table", "data", "Set"), "m.D = fc.table(x=fc.real[m.d], y={0, 1})"),
    **dict.fromkeys(("value", "values", "variables", "objective"), "m.bind(frame).solve().variables"),
    **dict.fromkeys(("predict", "score", "coef_"), "m.bind(frame).solve().predict(rows)"),
    **dict.fromkeys(("text", "show", "pprint", "write", "to_file"), "print(m)"),
    **dict.fromkeys(("params", "parameters", "names", "statements"), "print(m)"),
}


def instead(written: str, attribute: str, *, vector: bool | None = None) -> str:
    """The fix for ``written.attribute`` where the attribute is a habit from elsewhere, else "".

    vector   whether the array is a vector, which has no transpose; None if that is not known
    """
    if attribute in TRANSPOSES and vector is None:
        return f"A vector needs no transpose: `A @ {written}`. Of a matrix it is `transpose({written})`."
    if attribute in TRANSPOSES and vector:
        return f"A vector needs no transpose. Write `dot({written}, v)` or `A @ {written}`."
    if attribute in TRANSPOSES:
        return f"Write `transpose({written})`."
    if attribute in FUNCTIONS:
        return f"Write `{FUNCTIONS[attribute].format(written)}`."
    if attribute in SIZES:
        return f"The declaration of `{written}` has its sizes; a size with a name is a `dim`."
    if attribute in NUMBERS:
        return f'A model has no numbers. After a solve they are `result.variables["{written}"]`.'
    return ""
