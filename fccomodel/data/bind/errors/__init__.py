"""Every error that a binding can have: one function each, from what is wrong to its diagnostic."""

from fccomodel.data.bind.errors import binding_file, columns, demands, families, numbers, sizes, tables, where

__all__ = ["binding_file", "columns", "demands", "families", "numbers", "sizes", "tables", "where"]
