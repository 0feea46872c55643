"""A page on this machine in which a model is written, explained and solved.

``answers`` says what the page shows of a model, ``running`` solves it in a process of its own, and ``server``
answers the browser: on this machine only, and only to who has the token.
"""

from __future__ import annotations

#: The port of the page, if none is given.
PORT = 8675
