"""Regularisers: convex functions of one variable with a cheap prox. One file per regulariser, found by
itself."""

from fccomodel.library.regularisers._recognise import combine, in_turn, recognise
from fccomodel.library.regularisers._registry import all, get
from fccomodel.library.regularisers.base import Recognised, Regulariser

__all__ = ["Recognised", "Regulariser", "all", "combine", "get", "in_turn", "recognise"]
