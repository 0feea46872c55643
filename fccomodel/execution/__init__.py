"""Programs as they run: backends, checkpoints, several ranks, races between algorithms."""
