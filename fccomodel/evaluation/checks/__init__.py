"""What binding could not check: domains of functions, and sizes that values decide."""
