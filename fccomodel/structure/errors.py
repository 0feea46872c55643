"""F0691: questions about a model's structure."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean

EXPLANATION = Code("F0691", "explanation")


def nothing_to_explain(name: str, labels: Sequence[str]) -> Diagnostic:
    """The subject of ``--why`` is neither the objective nor a constraint of the model."""
    return EXPLANATION.error(
        f"the model has no `{name}` to explain",
        reason=f"It has {', '.join(labels)}.",
        fix=did_you_mean(name, labels) or "Name one of them.",
    )
