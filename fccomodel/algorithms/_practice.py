"""What steps do beyond theorems about f(E g) on all of R^d without regularisers: words for
``Algorithm.beyond``."""

NESTED = {"two levels": "estimates of all levels are tracked, each by those below it"}
#: w <- prox_{eta r}(w - eta v), and projections on simple sets
PROXIMAL = {
    "unregularised": "each step is followed by the prox of the regulariser",
    "whole space": "each step is followed by the projection on the simple set",
}
