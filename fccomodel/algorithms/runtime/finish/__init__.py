"""The finish on all rows, and what it does where there is no solution."""
