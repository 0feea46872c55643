"""Atoms: the functions of the modelling language. One file per atom or tight family; a new file is found by itself."""

from fccomodel.library.atoms._base import ArrayAtom, Atom, Properties, ScalarAtom, ShapeError, Site
from fccomodel.library.atoms._interval import Interval
from fccomodel.library.atoms._registry import aliases, all, get

__all__ = ["ArrayAtom", "Atom", "Interval", "Properties", "ScalarAtom", "ShapeError", "Site", "aliases", "all", "get"]
