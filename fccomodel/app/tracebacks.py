"""Tracebacks of errors in a user's input, which end at the user's own line."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from fccomodel.core.diagnostics import FccoError

#: The environment variable that asks for whole tracebacks.
DEBUG = "FCCOMODEL_DEBUG"
P = ParamSpec("P")
Returned = TypeVar("Returned")


def public(function: Callable[P, Returned]) -> Callable[P, Returned]:
    """A public function whose FccoError has a traceback without the calls inside the compiler.

    The diagnostics say what is wrong and where. ``FCCOMODEL_DEBUG=1`` keeps the whole traceback.
    """

    @wraps(function)
    def called(*arguments: P.args, **named: P.kwargs) -> Returned:
        """Call the function, and shorten the traceback of its error."""
        try:
            return function(*arguments, **named)
        except FccoError as error:
            if os.environ.get(DEBUG):
                raise
            raise error.with_traceback(None) from error.__cause__

    return called
