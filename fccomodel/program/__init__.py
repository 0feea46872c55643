"""From a plan to the text of a standalone program: lowered to a graph of operations, verified, printed."""
