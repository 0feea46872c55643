"""No memory: the minibatch value itself, biased under a nonlinear f (BSGD; sox-2022, section 2.2)."""

needs_previous = False
gradient_by = "new"


def track(u, index, g, h):
    """u_i = g_i(w; B2)."""
    return g


def track_log(u, index, g, h):
    """log u_i = log g_i(w; B2)."""
    return g
