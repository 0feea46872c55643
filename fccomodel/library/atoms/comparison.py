"""Comparisons and logic, for conditions and data; their derivative is 0."""

from fccomodel.library.atoms._base import Properties
from fccomodel.library.atoms._interval import UNIT
from fccomodel.library.atoms._scalar import ScalarAtom


def _relation(name: str, symbol: str, formula: str) -> ScalarAtom:
    return ScalarAtom(
        name=name,
        symbol=symbol,
        meaning=f"u {symbol} v",
        arguments=("u", "v"),
        formula=formula,
        torch=f"({{0}} {symbol} {{1}})",
        derivative=("0", "0"),
        boolean=True,
        properties=Properties(gradient_lipschitz=None, range=UNIT),
    )


le = _relation("le", "<=", "u <= v")
lt = _relation("lt", "<", "u < v")
ge = _relation("ge", ">=", "u >= v")
gt = _relation("gt", ">", "u > v")
eq = _relation("eq", "==", "Eq(u, v)")
ne = _relation("ne", "!=", "Ne(u, v)")
and_ = ScalarAtom(
    name="and",
    symbol="and",
    meaning="u and v",
    arguments=("u", "v"),
    formula="And(u, v)",
    torch="({0} & {1})",
    derivative=("0", "0"),
    boolean=True,
    properties=Properties(gradient_lipschitz=None, range=UNIT),
)
or_ = ScalarAtom(
    name="or",
    symbol="or",
    meaning="u or v",
    arguments=("u", "v"),
    formula="Or(u, v)",
    torch="({0} | {1})",
    derivative=("0", "0"),
    boolean=True,
    properties=Properties(gradient_lipschitz=None, range=UNIT),
)
not_ = ScalarAtom(
    name="not",
    symbol="not",
    meaning="not u",
    arguments=("u",),
    formula="Not(u)",
    torch="{0}.logical_not()",
    derivative=("0",),
    boolean=True,
    properties=Properties(gradient_lipschitz=None, range=UNIT),
)
