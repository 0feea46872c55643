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

from fccomodel.core import interrupts as _interrupts

if _interrupts.is_command():
    _interrupts.end_at_once()

from fccomodel.core.diagnostics import Diagnostic, FccoError  # noqa: E402
from fccomodel.core.source import Source  # noqa: E402
from fccomodel.core.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from fccomodel.app.python.estimators import FCCOClassifier as FCCOClassifier
    from fccomodel.app.python.estimators import FCCORegressor as FCCORegressor
    from fccomodel.app.python.modelling import Model
    from fccomodel.app.python.session import (
        BoundModel,
        CompiledModel,
        Explanation,
        Result,
        compare,
        compile,
        evaluate,
        grade,
        load,
        numbered,
        track,
    )

__all__ = [
    "BoundModel",
    "CompiledModel",
    "Diagnostic",
    "Explanation",
    "FccoError",
    "Model",
    "Result",
    "Source",
    "__version__",
    "compare",
    "compile",
    "evaluate",
    "grade",
    "load",
    "numbered",
    "track",
]

#: Estimators of scikit-learn, which need that package.
_ESTIMATORS = ("FCCOClassifier", "FCCORegressor")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext fccomodel``: cells that begin with ``%%fcco NAME`` are models."""
    from fccomodel.app.python import magic

    magic.load(shell)


def __getattr__(name: str) -> Any:
    """The rest of the interface, imported when first used: ``fccomodel --version`` need not wait for
    torch."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in __all__ and name != "Model":
        from fccomodel.app.python import session

        return getattr(session, name)
    if name in _ESTIMATORS:
        try:
            from fccomodel.app.python import estimators
        except ImportError as error:
            from fccomodel.app.errors import no_estimators

            raise FccoError([no_estimators(error)]) from None
        return getattr(estimators, name)
    from fccomodel.app.python import modelling

    if name in modelling.names():
        return getattr(modelling, name)
    from fccomodel.app import habits

    habits.no_attribute("fccomodel", name, habits.PACKAGE, __dir__())


def __dir__() -> list[str]:
    from fccomodel.app.python import modelling

    return sorted({*globals(), *__all__, *_ESTIMATORS, *modelling.names()})
