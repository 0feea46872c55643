"""Comparisons and logic, for conditions and data; their derivative is 0.

A condition in the place of a number is its ``indicator``.
"""

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import UNIT
from fccomodel.library.atoms.scalar import ScalarAtom


def _relation(name: str, symbol: str, formula: str, tex: str) -> ScalarAtom:
    return ScalarAtom(
        name=name,
        symbol=symbol,
        meaning=f"u {symbol} v",
        tex=f"0 <0:1> {tex} <1:1>",
        arguments=("u", "v"),
        formula=formula,
        torch=f"({{0}} {symbol} {{1}})",
        derivative=("0", "0"),
        boolean=True,
        properties=Properties(gradient_lipschitz=None, range=UNIT),
    )


le = _relation("le", "<=", "u <= v", r"\le")
lt = _relation("lt", "<", "u < v", r"<")
ge = _relation("ge", ">=", "u >= v", r"\ge")
gt = _relation("gt", ">", "u > v", r">")
eq = _relation("eq", "==", "Eq(u, v)", r"=")
ne = _relation("ne", "!=", "Ne(u, v)", r"\ne")
and_ = ScalarAtom(
    name="and",
    symbol="and",
    meaning="u and v",
    tex=r"0 <0:1> \wedge <1:1>",
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
    tex=r"0 <0:1> \vee <1:1>",
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
    tex=r"0 \neg <0:3>",
    arguments=("u",),
    formula="Not(u)",
    torch="{0}.logical_not()",
    derivative=("0",),
    boolean=True,
    properties=Properties(gradient_lipschitz=None, range=UNIT),
)
indicator = ScalarAtom(
    name="indicator",
    meaning="1 where the condition c holds, else 0",
    tex=r"\mathbb{1}\{<0>\}",
    arguments=("c",),
    parameters=("c",),
    formula="Piecewise((1, Ne(c, 0)), (0, True))",
    torch="torch.as_tensor({0} != 0).double()",
    derivative=(),
    internal=True,
    properties=Properties(curvature="constant", monotone="constant", lipschitz=0.0, range=UNIT),
)
