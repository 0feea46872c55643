"""Several steps as one function, for backends that trace, capture or compile it."""
