"""A plan to a point: lowered to a graph, emitted as the text of a standalone program, run."""
