"""Estimators of the inner expectations: how u follows g. One file each; the emitter copies their
source into solvers."""
