"""Notebooks: models, explanations and results as HTML, and progress while a solver runs."""
