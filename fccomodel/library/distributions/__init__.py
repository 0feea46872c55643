"""Distributions that models draw from. One file per distribution, found by itself."""

from fccomodel.library.distributions._noise import noise
from fccomodel.library.distributions._registry import all, get, programs
from fccomodel.library.distributions.base import Distribution

__all__ = ["Distribution", "all", "get", "noise", "programs"]
