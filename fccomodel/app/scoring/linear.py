"""The coefficients of a linear score in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.app.scoring import errors, exporting, rows
from fccomodel.app.scoring.scoring import Fitted
from fccomodel.core.diagnostics import FccoError, refuse


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """A score ``coefficients . x + constant`` of the data's columns x, before any scaling.

    coefficients   (columns,), or (scores, columns) if there are several scores
    constant       a number, or (scores,)
    names          the name of each column; a text has one for each of its values
    """

    coefficients: np.ndarray
    constant: np.ndarray
    names: Sequence[str]


def coefficients(known: Fitted) -> Coefficients:
    """The coefficients of the answer's score. F0815 if the score is not linear in one vector of a row."""
    wanted = rows.score(known.compiled)
    try:
        score, samples = exporting.module(known)
    except FccoError as error:
        refuse(errors.no_coefficients(wanted.name, error.diagnostics[0].reason))
    if not isinstance(score, exporting.Score) or not isinstance(score.body, exporting.Linear):
        refuse(errors.no_coefficients(wanted.name, "It is a net."))
    width = samples[0].shape[1]
    weights = score.body.weights.numpy()
    scaled, constant = weights[:width], score.body.constant.numpy()
    divisor, mean = score.divisor.numpy(), score.mean.numpy()
    per_unit = (scaled.T / divisor).T
    constant = constant - mean @ per_unit + weights[width:].sum(0)
    names = known.encoding[wanted.table.name][wanted.columns[0]].get("names") or ()
    shown = tuple(names[:width]) or tuple(f"{wanted.columns[0]}[{k + 1}]" for k in range(width))
    return Coefficients(coefficients=per_unit.T, constant=constant, names=shown)
