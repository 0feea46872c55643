"""Atoms: the functions of the modelling language. One file per atom or tight family; a new file is
found by itself."""

from fccomodel.library.atoms._array import ArrayAtom, DualBall
from fccomodel.library.atoms._domain import (
    NONZERO,
    WHOLE,
    Broken,
    Domain,
    Fault,
    OrderCondition,
    enclosing,
    nothing,
)
from fccomodel.library.atoms._nodes import (
    as_power,
    divergence_of,
    expression,
    generator,
    of,
    signed,
    squared,
    symbols,
)
from fccomodel.library.atoms._registry import aliases, all, get, operator
from fccomodel.library.atoms.base import Atom, Properties, ShapeError, Site
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom

__all__ = [
    "NONZERO",
    "WHOLE",
    "ArrayAtom",
    "Atom",
    "DualBall",
    "Broken",
    "Domain",
    "Fault",
    "Interval",
    "OrderCondition",
    "Properties",
    "ScalarAtom",
    "ShapeError",
    "Site",
    "aliases",
    "all",
    "as_power",
    "enclosing",
    "expression",
    "divergence_of",
    "generator",
    "get",
    "nothing",
    "of",
    "operator",
    "signed",
    "squared",
    "symbols",
]
