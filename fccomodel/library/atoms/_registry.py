"""Finds every atom: each public module of this package is a file of atoms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from fccomodel.core.registry import records
from fccomodel.library.atoms.base import Atom


@cache
def all() -> Mapping[str, Atom]:
    """Every atom by its name, in alphabetical order."""
    return records("fccomodel.library.atoms", Atom)


@cache
def aliases() -> Mapping[str, str]:
    """Every further name of an atom, with the atom's own name."""
    return MappingProxyType({alias: atom.name for atom in all().values() for alias in atom.aliases})


@cache
def operator(symbol: str) -> Atom:
    """The atom that models write with this symbol between two operands."""
    return next(atom for atom in all().values() if atom.symbol == symbol and len(atom.arguments) == 2)


def get(name: str) -> Atom | None:
    """The atom of this name or alias, or None."""
    return all().get(aliases().get(name, name))
