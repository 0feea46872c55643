"""Lowering of what has no parts: data, variables, members of families, atoms of them."""
