"""Writes ``fccomodel/__init__.pyi``, the types of the package's interface, from the library.

With it an editor knows every word of the language, with its arguments and its meaning.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Iterator

import fccomodel
from fccomodel.app.python import modelling
from fccomodel.language import vocabulary
from fccomodel.language.notation import words
from fccomodel.library import distributions, reductions, sets

_HEAD = '''\
"""The interface of a modelling language and compiler for finite-sum coupled compositional
stochastic optimisation.

Written by ``fccomodel.app.python.stub``; a test holds it to the library.
"""

# ruff: noqa: I001
from collections.abc import Callable, Iterable
from typing import Any, Protocol

{imports}

#: What stands in a formula.
Value = Formula | Set | float | str

class _Reduction(Protocol):
    """Called with a comprehension over sets of the model; ``mean[m.i](...)`` for a declared index."""

    def __call__(
        self, comprehension: Iterable[Any] | Value, /, *more: Value, **options: Value
    ) -> Formula: ...
    def __getitem__(self, index: Formula) -> Callable[[Value], Formula]: ...

__all__: list[str]
__version__: str

def load_ipython_extension(shell: Any) -> None: ...
'''
_IMPORTS = {
    "fccomodel.app.python.estimators": ("FCCOClassifier", "FCCORegressor"),
    "fccomodel.app.python.modelling": modelling.__all__,
    "fccomodel.app.python.session": {*fccomodel.__all__}
    - {"Model", "Diagnostic", "FccoError", "Source", "__version__"},
    "fccomodel.core.diagnostics": ("Diagnostic", "FccoError"),
    "fccomodel.core.source": ("Source",),
    "fccomodel.language.notation.sets": ("Set",),
    "fccomodel.language.notation.terms": ("Formula",),
}


def text() -> str:
    """The text of the stub for the present library."""
    imports = "\n".join(_import(module, names) for module, names in _IMPORTS.items())
    return "\n".join([_HEAD.format(imports=imports), *(_word(name) for name in sorted(vocabulary.names()))])


def _import(module: str, names: Iterable[str]) -> str:
    return "\n".join([f"from {module} import (", *(f"    {name} as {name}," for name in sorted(names)), ")"])


def _word(name: str) -> str:
    """A word's signature and its card."""
    paragraphs = words.word(name).__doc__.partition("\n\nFrom: ")[0].split("\n\n")
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += ["", *textwrap.wrap(paragraph, 120)]
    quoted = "\n".join(_docstring(lines[1:]))
    if name in reductions.words():
        return f"{name}: _Reduction\n{quoted}\n"
    if name == words.WEIGHTS:
        returned = "Any"
    elif name in sets.all() or name in distributions.all():
        returned = "Set"
    else:
        returned = "Formula"
    parameters = ", ".join(_parameters(name))
    return f"def {name}({parameters}) -> {returned}:\n{textwrap.indent(quoted, '    ')}\n"


def _docstring(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring with its quotes."""
    escaped = [line.replace("\\", "\\\\") for line in lines]
    yield f'"""{escaped[0]}' + ('"""' if len(escaped) == 1 else "")
    yield from escaped[1:-1]
    if len(escaped) > 1:
        yield f'{escaped[-1]}"""'


def _parameters(name: str) -> Iterator[str]:
    """The typed parameters of a word, as in ``*args: Value`` or ``t: Value = ...``."""
    optional = name in sets.all() or name == words.WEIGHTS
    for parameter in words.word(name).__signature__.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            yield f"*{parameter.name}: Value"
        elif optional:
            yield f"{parameter.name}: Value = ..."
        else:
            yield f"{parameter.name}: Value"
