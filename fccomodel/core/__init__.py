"""Foundations of all stages: the typed problem, places in a text, diagnostics, files, options."""
