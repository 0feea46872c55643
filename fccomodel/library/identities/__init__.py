"""Identities between equal ways of writing a function, and the canonical form that the compiler
reads."""

from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.identities._canonical import Canonical, after, all, canonical, known
from fccomodel.library.identities._equal import equal, same_set
from fccomodel.library.identities._multiples import multiples

__all__ = [
    "Canonical",
    "Identity",
    "Knowledge",
    "after",
    "all",
    "canonical",
    "equal",
    "known",
    "multiples",
    "same_set",
]
