"""Attributes and methods of arrays elsewhere (NumPy, torch, CVXPY), with what to write here instead."""

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
NUMBERS = ("value", "numpy", "item", "detach", "tolist", "data")


def instead(written: str, attribute: str, *, vector: bool = False) -> str:
    """The fix for ``written.attribute`` where the attribute is a habit from elsewhere, else "".

    vector   whether the array is a vector, which has no transpose
    """
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
