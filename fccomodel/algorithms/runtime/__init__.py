"""The text that emitted programs carry: loops, finish, and the functions that they call."""
