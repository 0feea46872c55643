"""Programs: a plan is lowered to a graph of operations, which is verified and printed as a standalone
program.
"""
