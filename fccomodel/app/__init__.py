"""The interfaces for people: Python, the command line, displays, comparisons, results."""
