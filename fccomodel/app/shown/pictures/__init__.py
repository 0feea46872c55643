"""Pictures of an answer beside those of its run: what its scores tell apart, and what it costs each group."""
