"""Elements of sets, members of families, draws of distributions, and the axes that they lie along."""
