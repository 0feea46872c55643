"""Functions that programs carry where they name them."""
