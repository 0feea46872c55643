"""The neighbourhood of a point: whether nearby points are better, and how the optimum moves with the data."""
