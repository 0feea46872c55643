"""Identities: ways of writing one function that are equal everywhere, and the one of them that the compiler reads."""

from fccomodel.library.identities._base import Identity, Known
from fccomodel.library.identities._canonical import Canonical, all, canonical
from fccomodel.library.identities._equal import equal
from fccomodel.library.identities._multiples import multiples

__all__ = ["Canonical", "Identity", "Known", "all", "canonical", "equal", "multiples"]
