"""Regularisers: convex functions of one variable with a cheap prox. One file per regulariser, found by itself."""

from fccomodel.library.regularisers._base import Recognised, Regulariser
from fccomodel.library.regularisers._recognise import combine, in_turn, recognise
from fccomodel.library.regularisers._registry import all, get

__all__ = ["Recognised", "Regulariser", "all", "combine", "get", "in_turn", "recognise"]
