"""Sentences for ``Algorithm.beyond``: what steps do if an assumption about the form of F does not hold."""

#: For algorithms whose theorem is about two levels f(E g).
NESTED = {"two levels": "estimates of all levels are tracked, each by those below it"}
#: For algorithms whose theorem is about minimisation over all of R^d without a regulariser.
PROXIMAL = {
    "unregularised": "each step is followed by the prox of the regulariser",
    "whole space": "each step is followed by the projection on the simple set",
}
