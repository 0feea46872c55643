"""Multipliers and subgradients that bring a point nearest to stationarity, and the residuals that are
left."""
