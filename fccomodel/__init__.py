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

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source
from fccomodel.core.version import __version__

if TYPE_CHECKING:
    from fccomodel.app.python import BoundModel, CompiledModel, Explanation, Result, compare, compile, evaluate, load

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
        from fccomodel.app import python

        return getattr(python, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
