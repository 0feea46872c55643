"""Data for the names of a problem: sources of columns, binding, torch modules."""
