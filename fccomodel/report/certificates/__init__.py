"""Lower bounds of the optimal value of a convex problem: how far the objective at a point can be from
the optimum."""
