"""Functions of tensors that evaluation is made of, with derivatives that need little memory."""
