"""Values of expressions on bound data."""
