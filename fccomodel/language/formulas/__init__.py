"""The meaning of formulas: names, calls, indices, sets and reductions become typed expressions.

Importing this package registers the function that types each kind of formula.
"""

from fccomodel.language.formulas import calls, comparisons, indexing, names, operators, reductions

__all__ = ["calls", "comparisons", "indexing", "names", "operators", "reductions"]
