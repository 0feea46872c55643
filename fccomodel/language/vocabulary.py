"""The words of the library that models use as functions, reductions, sets and distributions."""

from __future__ import annotations

from functools import cache

from fccomodel.library import array_functions, atoms, distributions, reductions, sets

#: The methods of sets in Python: a column with such a name is no attribute of its table.
SET_METHODS = ("where", "by", "subset")


@cache
def names() -> frozenset[str]:
    """Every word."""
    functions = {name for name, atom in atoms.all().items() if not atom.internal and not atom.symbol}
    functions |= {alias for alias, name in atoms.aliases().items() if name in functions}
    return frozenset(
        {
            *functions,
            *array_functions.FUNCTIONS,
            *reductions.words(),
            *sets.all(),
            *distributions.all(),
        }
    )
