"""The multipliers and subgradients with which a point is nearest to stationarity, and its residuals."""
