"""Lowers leaves of expressions (data, variables, members of families), atoms of them, and masks."""
