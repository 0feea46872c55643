"""What people touch: Python, the command line, displays, comparisons, results."""
