"""A compiled objective inside a training loop that somebody else owns: criterion, samplers, blocks."""
