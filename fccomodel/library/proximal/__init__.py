"""The proximal calculus: which functions have a computable prox, and what follows from it, one file
per rule.

``of`` recognises an expression as a function of given arguments and returns a ``Proximal`` (value,
prox, envelope, conjugate, constants; in numbers and as the text of emitted programs) or the reason
why there is none.

    piecewise    linear-quadratic functions of one number, convex or weakly convex: exact
    smooth       other (weakly) convex functions of one number: safeguarded Newton
    balls        norms, by the projection on the dual ball (Moreau's identity)
    largest      max, cvar, topk: by the projection on the (capped) simplex
    entropic     max again, smoothed by entropy on the simplex
    radial       functions of the Euclidean norm: along the ray of the argument
    maxaffine    a few affine functions that overlap: every face of the simplex
    logsumexp    by Newton's method on the simplex with entropy
    operations   scaling, tilting, quadratic perturbation, precomposition, sums over blocks
    maps         the projections and dual maximisers themselves, batched, as programs contain them
    cards        what ``fccomodel atoms`` says of an atom's prox and conjugate
"""

from fccomodel.library.proximal._base import FactsOf, Proximal
from fccomodel.library.proximal._of import Constants, line, of
from fccomodel.library.proximal.balls import Norm
from fccomodel.library.proximal.entropic import Entropic
from fccomodel.library.proximal.largest import Largest
from fccomodel.library.proximal.logsumexp import LogSumExp
from fccomodel.library.proximal.operations import (
    Composed,
    Mapped,
    Perturbed,
    Scaled,
    Separable,
    SumOverBlocks,
    Tilted,
)
from fccomodel.library.proximal.piecewise import Piecewise
from fccomodel.library.proximal.smooth import Smooth

__all__ = [
    "SumOverBlocks",
    "Composed",
    "Constants",
    "Entropic",
    "FactsOf",
    "Largest",
    "LogSumExp",
    "Mapped",
    "Norm",
    "Perturbed",
    "Piecewise",
    "Proximal",
    "Scaled",
    "Separable",
    "Smooth",
    "Tilted",
    "line",
    "of",
]
