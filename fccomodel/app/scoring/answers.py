"""The methods of an answer for new rows, whether it is in memory or read from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app.tracebacks import public

if TYPE_CHECKING:
    import torch

    from fccomodel.app.scoring.scoring import Fitted


class PredictionMethods:
    """New rows are a DataFrame, a mapping of arrays, a file: what binds, with the columns that are
    used and no others needed.

    Scaling and categories are those that the answer was found with. A text that was not there then
    has no indicator, which a warning tells; a label that was not there is refused. A missing value
    is refused, or where the binding says ``missing = "drop"`` its row gets NaN.
    """

    def fitted(self) -> Fitted:
        """The facts that the answer knows without its data."""
        raise NotImplementedError

    @public
    def value(
        self,
        name: str,
        rows: Any,
        others: Any = None,
        /,
        *,
        columns: Mapping[str, str] | None = None,
        table: str = "",
    ) -> np.ndarray:
        """The values at some rows of a ``def``, a ``let`` of rows, or a net of the model, by its name:
        (rows, ...), float64.

        others   of a ``def`` of two rows the second ones: then the values are (rows, others, ...)
        columns  of a ``def`` that the model takes of several: the table's column for each parameter
        table    which table the rows are of, where several have these columns

        Raises F0814 for what has no value at a single row, F05xx for rows that do not bind as before.
        """
        from fccomodel.app.scoring import rows as of_rows
        from fccomodel.app.scoring import scoring

        known = self.fitted()
        if others is not None:
            from fccomodel.app.scoring import pairs

            return pairs.value(known, pairs.pair(known.compiled, name), rows, others)
        return scoring.value(
            known, of_rows.quantity(known.compiled, name, columns=columns, table=table), rows
        )

    @public
    def decision_function(self, rows: Any, others: Any = None, /) -> np.ndarray:
        """The scores of some rows: by the definition ``score``, else by the model's only net or linear
        form of a row.

        others   the second rows if ``score`` is of two rows, such as a user and an item: then the
                 scores of all pairs are (rows, others)
        """
        from fccomodel.app.scoring import rows as of_rows
        from fccomodel.app.scoring import scoring

        known = self.fitted()
        if others is not None:
            return self.value(of_rows.SCORE, rows, others)
        return scoring.value(known, of_rows.score(known.compiled), rows)

    @public
    def predict(
        self, rows: Any, /, *, threshold: float | None = None, target: str | None = None
    ) -> np.ndarray:
        """The predictions from the scores of some rows, as labels or numbers of the data.

        The larger value of the table's column of two values (``target`` where there are several)
        for scores above the ``threshold`` (0, or 1/2 for a probability), else the smaller; of a
        vector of scores the class with the largest; where no column has two values, the scores
        themselves. Labels such as ``{"no", "yes"}`` have no larger value: declare the target as
        ``{0, 1}``, and bind it by a map; predictions are labels of the data.
        """
        from fccomodel.app.scoring import rows as of_rows
        from fccomodel.app.scoring import scoring

        known = self.fitted()
        score = of_rows.score(known.compiled)
        scores = scoring.value(known, score, rows)
        return scoring.predicted(known, score, scores, threshold=threshold, target=target)

    @property
    @public
    def coef_(self) -> np.ndarray:
        """The coefficients of a linear score in the units of the data, before any scaling.

        They are (columns,), or (scores, columns) for several scores. Entries have the names of the
        data's columns: ``result.coef_.sel(column="age")``. F0815 if the score is not linear.
        """
        from fccomodel.app.scoring import linear
        from fccomodel.app.shown import labelled

        coefficients = linear.coefficients(self.fitted())
        columns = ("column", coefficients.names)
        if coefficients.coefficients.ndim == 1:
            return labelled.Labelled(coefficients.coefficients, [columns])
        return labelled.Labelled(coefficients.coefficients, [("score", None), columns])

    @property
    @public
    def intercept_(self) -> np.ndarray:
        """The constant of a linear score: a number, or (scores,). F0815 if the score is not linear."""
        from fccomodel.app.scoring import linear

        return linear.coefficients(self.fitted()).constant

    @public
    def module(self, name: str) -> torch.nn.Module:
        """Uses of an answer for new rows; the answer is in memory or was read from its folder."""
        from fccomodel.app.scoring import scoring

        return scoring.module(self.fitted(), name)

    @public
    def export(self, path: str | Path) -> Path:
        """The score of rows with its scaling as a program of its own: ``.onnx`` (the extra ``onnx``),
        or ``.pt2`` for torch.

        It takes (rows, columns) float64, ``x``: the columns that the score reads, in the order of
        ``result.json``'s ``names``, a text's as one indicator for each of its values; it gives
        ``score``. F0815 for scores that are neither a net nor linear.
        """
        from fccomodel.app.scoring import exporting

        return exporting.export(self.fitted(), Path(path))
