"""Notebooks: models, explanations and results as HTML, cells of model text, and progress while a
solver runs."""
