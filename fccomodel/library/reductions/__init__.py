"""Reductions, which make one value of many. One file per kind; a new file is found by itself."""

from fccomodel.library.reductions._registry import all, get, logarithm, named, of, programs, words
from fccomodel.library.reductions._spelled import Spelled, spelled
from fccomodel.library.reductions.base import (
    BlockOfElements,
    ByMeans,
    Elements,
    Option,
    Options,
    Reduction,
    Site,
    Slope,
)

__all__ = [
    "ByMeans",
    "Elements",
    "BlockOfElements",
    "Option",
    "Options",
    "Reduction",
    "Site",
    "Slope",
    "Spelled",
    "all",
    "get",
    "logarithm",
    "named",
    "of",
    "programs",
    "spelled",
    "words",
]
