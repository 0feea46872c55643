"""Simple sets: closed convex sets of arrays with a cheap projection. One file per set, found by itself."""

from fccomodel.library.sets._recognise import intersection, recognise
from fccomodel.library.sets._registry import all, get
from fccomodel.library.sets._translated import translated
from fccomodel.library.sets.base import SimpleSet

__all__ = ["SimpleSet", "all", "get", "intersection", "recognise", "translated"]
