"""One point of a problem: values, gradients, the terms of its kinks, and the scales of all of them."""
