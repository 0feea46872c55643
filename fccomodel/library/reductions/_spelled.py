"""Reductions that are written in terms of others: ``std`` is the root of ``variance``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fccomodel.library.atoms import Interval
from fccomodel.library.reductions.base import Option
from fccomodel.library.reductions.prob import PROB
from fccomodel.library.reductions.topk import TOPK
from fccomodel.library.reductions.variance import VARIANCE


@dataclass(frozen=True, kw_only=True, eq=False)
class Spelled:
    """A word for a function of another reduction.

    name     as models write it
    meaning  its value, in one line
    of       the reduction that it is a function of
    outer    the atom that is applied to that
    negated  whether that reduction is of minus the elements
    bounded  whether it stands in constraints alone, as one side of them
    option   its named option
    binders  ``in`` iterates over all elements, ``~`` draws them
    example  a model that uses it
    """

    name: str
    meaning: str
    example: str
    of: str
    outer: str = ""
    negated: bool = False
    bounded: bool = False
    option: Option | None = None
    binders: tuple[str, ...] = ("~",)

    @property
    def head(self) -> str:
        """The beginning of its text: ``bottomk(k = 3)``."""
        if self.option is None:
            return self.name
        return f"{self.name}({self.option.name} = {self.option.example})"

    @property
    def index(self) -> str:
        """An example of its index."""
        return "k in K" if "in" in self.binders else "z ~ D"

    @property
    def form(self) -> str:
        """An example of its use."""
        return f"{self.head}[{self.index}] ..."

    @property
    def drawn(self) -> bool:
        """Whether its elements are draws."""
        return self.binders == ("~",)


STD = Spelled(
    name="std",
    meaning="the root of the variance of the elements drawn",
    of=VARIANCE.name,
    outer="sqrt",
    example="dim d; data D : table(r: real[d]); var x[d] in simplex(d); minimize std[z ~ D] dot(z.r, x);",
)
BOTTOMK = Spelled(
    name="bottomk",
    meaning="the mean of the k smallest elements, of all where there are fewer",
    of=TOPK.name,
    outer="neg",
    example="dim d; var x[d] in simplex(d); maximize bottomk(k = 2)[i in d] x[i];",
    negated=True,
    option=TOPK.option,
    binders=TOPK.binders,
)
QUANTILE = Spelled(
    name="quantile",
    meaning="the number that a share `level` of the draws is at most, as one side of a constraint",
    of=PROB.name,
    bounded=True,
    example="dim d; data D : table(r: real[d]); var x[d] in simplex(d); maximize E[z ~ D] dot(z.r, x); "
    "subject to low: quantile(level = 0.05)[z ~ D] dot(z.r, x) >= -1 with surrogate = cvar;",
    option=Option(name="level", example="0.05", domain=(Interval(0.0, 1.0, lo_open=True, hi_open=True),)),
)


def spelled() -> Mapping[str, Spelled]:
    """Every such word by its name."""
    return {one.name: one for one in (BOTTOMK, QUANTILE, STD)}
