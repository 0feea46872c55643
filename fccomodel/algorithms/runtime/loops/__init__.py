"""The loops of steps, as programs carry them, and what paces, watches and ends them."""
