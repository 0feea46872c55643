"""A modelling language and compiler for finite-sum coupled compositional stochastic optimisation.

>>> import fccomodel
>>> problem = fccomodel.compile("model.fcco").bind(D="train.parquet")  # doctest: +SKIP
>>> print(problem.explain())  # doctest: +SKIP
>>> result = problem.solve(seed=0, budget="60s")  # doctest: +SKIP
>>> result.variables["w"], result.report.epsilon  # doctest: +SKIP
>>> result.save("out")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fccomodel.diagnostics import Diagnostic, FccoError
from fccomodel.source import Source

if TYPE_CHECKING:
    from fccomodel.api import BoundModel, CompiledModel, Explanation, Result, compare, compile, evaluate, load

__version__ = "0.1.0"

__all__ = [
    "BoundModel",
    "CompiledModel",
    "Diagnostic",
    "Explanation",
    "FccoError",
    "Result",
    "Source",
    "__version__",
    "compare",
    "compile",
    "evaluate",
    "load",
]


def __getattr__(name: str) -> Any:
    """The rest of the interface, imported when first used: ``fccomodel --version`` need not wait for torch."""
    if name in __all__:
        from fccomodel import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
