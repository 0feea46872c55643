"""What every stage speaks of: the typed problem, places in a text, diagnostics, files, options."""
