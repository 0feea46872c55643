"""Models written in Python: ``Model``, and the language's own words as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.app.python.by_kind import by_kind, kinds
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.app.tracebacks import public
from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language import vocabulary
from fccomodel.language.notation import words
from fccomodel.language.notation.declarations import (
    array,
    const,
    dim,
    grid,
    index,
    integer,
    labels,
    net,
    param,
    params,
    real,
    sampler,
    table,
    values,
    var,
)
from fccomodel.language.notation.model import Notation
from fccomodel.language.notation.sets import draw, iterate
from fccomodel.language.notation.terms import between, chain, column, if_else, literal, subscript
from fccomodel.language.notation.words import vector

if TYPE_CHECKING:
    from fccomodel.app.python.session import BoundModel, CompiledModel, Explanation, Result

__all__ = [
    "Model",
    "array",
    "between",
    "chain",
    "column",
    "const",
    "dim",
    "draw",
    "grid",
    "if_else",
    "index",
    "integer",
    "iterate",
    "labels",
    "literal",
    "net",
    "param",
    "params",
    "real",
    "sampler",
    "subscript",
    "table",
    "values",
    "var",
    "vector",
]


def names() -> frozenset[str]:
    """The names that models are written with: the declarations, and every word of the language."""
    return vocabulary.names() | {*__all__}


def __getattr__(name: str) -> Any:
    """A word of the language."""
    if name in vocabulary.names():
        return words.word(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Model(Shown, Notation):
    """A model written in Python, statement by statement: an attribute for each declaration, calls for
    objective and constraints.

    >>> import fccomodel as fc
    >>> from fccomodel import E, dot, log1pexp, real, sumsq
    >>> m = fc.Model("classifier")
    >>> m.d = fc.dim()
    >>> m.D = fc.table(x=real[m.d], y={-1, 1})
    >>> m.w = fc.var(m.d)
    >>> m.minimize(risk=E(log1pexp(-z.y * dot(m.w, z.x)) for z in m.D) + 0.01 * sumsq(m.w))
    >>> print(m)
    model classifier;
    <BLANKLINE>
    dim d;
    data D : table(x: real[d], y: {-1, 1});
    var w[d];
    <BLANKLINE>
    minimize risk: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);
    <BLANKLINE>

    A formula has no value until the model is solved. Python's ``if``, ``and``, ``or``, ``not`` and
    chains of comparisons need a value, so they are refused. Join conditions by ``&``, ``|``, ``~``,
    and put them into ``D.where(D.y == 1)``; a chain is ``between(a, e, b)``. Errors of ``check``,
    ``bind``, ``explain`` and ``solve`` show the lines and columns of Python.
    """

    _compiled: CompiledModel | None = None

    @classmethod
    def parse(cls, text_or_path: str | Path) -> Model:
        """The model of a file, or of a text (a string with a line break or a ``;``).

        Comments of the text become ``doc``.
        """
        model: Model = cls.read(files.model_source(text_or_path))
        return model

    def _changed(self) -> None:
        super()._changed()
        self._compiled = None

    @property
    def compiled(self) -> CompiledModel:
        """The checked model, as ``fccomodel.compile`` returns it for a file.

        Raises FccoError with every error of the model.
        """
        from fccomodel import pipeline
        from fccomodel.app.python.session import CompiledModel

        if self._compiled is None:
            self._compiled = CompiledModel(compiled=pipeline.compile_model(self.source))
        return self._compiled

    @property
    def hash(self) -> str:
        """Changes when the mathematics does; comments, layout and options do not count."""
        return self.compiled.hash

    @public
    def check(self) -> Model:
        """The model itself, after its names, shapes and domains are checked.

        Raises FccoError with every error of the model.
        """
        _ = self.compiled
        return self

    @public
    def explain(self, *, params: Mapping[str, Any] | None = None, **given: Any) -> Explanation:
        """The facts that the model alone proves, their reasons, and the algorithm that would run.

        ``params`` gives values to some params.
        """
        return self.compiled.explain(params=params, **given)

    @public
    def bind(  # noqa: PLR0913  keywords of the documented interface
        self,
        rows: Any = None,
        /,
        *,
        spec: Mapping[str, Any] | str | Path | None = None,
        samplers: Mapping[str, Callable[..., Any]] | None = None,
        data_dir: str | Path | None = None,
        allow_python: bool = False,
        keys: Any = None,
        transform: Mapping[str, Callable[[Any], Any]] | None = None,
        eval_transform: Mapping[str, Callable[[Any], Any]] | None = None,
        workers: int = 0,
        **given: Any,
    ) -> BoundModel:
        """Give the model's names their data: ``m.bind(D=frame, mu=0.1, s=module)``.

        rows   the data of the model's only table, without its name: ``m.bind(frame)``
        given  values by name. For a table: a DataFrame, a file, a mapping of arrays or
               ``sklearn:NAME``; for a param: a number; for a net: a torch module or
               ``"mlp(64, 64)"``. They may also be in mappings ``data``, ``params`` and ``nets``
        spec   the data's columns for each column of the model: a binding file (TOML), or its content as a
               mapping, such as
               ``{"D": {"x": {"columns": ["age", "job"], "encode": "onehot", "scale": "standard",
               "intercept": True}, "y": {"column": "paid", "map": {"no": 0, "yes": 1}}}}``. A column that
               is not named there is the data's column with the model's own name

        Other arguments are those of ``fccomodel.compile(...).bind``.
        """
        named = self._by_kind(given)
        return self.compiled.bind(
            rows,
            spec=spec,
            samplers=samplers,
            data_dir=data_dir,
            allow_python=allow_python,
            keys=keys,
            transform=transform,
            eval_transform=eval_transform,
            workers=workers,
            **named,
        )

    @public
    def prepare(
        self,
        folder: str | Path,
        *,
        dtype: str = "float32",
        spec: Mapping[str, Any] | str | Path | None = None,
        samplers: Mapping[str, Callable[..., Any]] | None = None,
        data_dir: str | Path | None = None,
        allow_python: bool = False,
        **given: Any,
    ) -> BoundModel:
        """Bind tables that do not fit into memory: write them into a folder, and map them from there.

        folder  a new or empty folder, or one with prepared tables, which are replaced. Later
                ``bind(D=folder)`` uses it without preparing it again
        dtype   precision of the stored vectors: ``float32`` or ``float64``

        The other arguments are those of ``bind``. Raises F0806 if the folder cannot be written.
        """
        named = self._by_kind(given)
        return self.compiled.prepare(
            folder,
            dtype=dtype,
            spec=spec,
            samplers=samplers,
            data_dir=data_dir,
            allow_python=allow_python,
            **named,
        )

    @public
    def mock(self, *, rows: int = 200, seed: int = 0) -> BoundModel:
        """The model with data of the declared types, drawn at random, so that it runs before there is
        data: ``m.mock().solve()``.

        Numbers are standard normal, or lie in (0.1, 1) where the model asks for positive ones; dims
        have size 5, labels are ``a``, ``b``, ``c``, nets small perceptrons, and params without
        default lie inside their bounds.
        """
        from fccomodel.app.generated import mocking
        from fccomodel.app.python.session import BoundModel

        compiled = self.compiled.compiled
        binding, bound, _ = mocking.drawn(compiled, rows=rows, seed=seed)
        return BoundModel(compiled=compiled, binding=binding, bound=bound)

    def _by_kind(self, given: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The keywords of ``bind``, sorted into data, params and nets.

        A keyword ``data``, ``params`` or ``nets`` is a mapping of such values, unless the model itself
        has that name.
        """
        problem = self.compiled.compiled.problem
        names = kinds(problem)
        mappings: dict[str, dict[str, Any]] = {}
        for kind in ("data", "params", "nets"):
            mapping = given.pop(kind, None) if kind not in names else None
            mappings[kind] = dict(mapping or {})
        return by_kind(problem, mappings, given)

    @public
    def solve(self, **given: Any) -> Result:
        """Solve a model that needs no data."""
        return self.compiled.solve(**given)

    @public
    def latex(self, form: str = "problem") -> str:
        """The model as a LaTeX ``align*`` block.

        form   ``problem`` (as written), ``normal`` (the normal form) or ``smoothed``
        """
        return self.compiled.latex(form)

    def _repr_latex_(self) -> str | None:
        """LaTeX for notebooks, or None as long as the model has errors."""
        try:
            return self.compiled._repr_latex_()
        except FccoError:
            return None

    def _repr_html_(self) -> str | None:
        """MathML for browsers, or None as long as the model has errors."""
        try:
            return self.compiled._repr_html_()
        except FccoError:
            return None

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[Source]]:
        """Pickle and copy the model as its text."""
        return type(self).read, (self.source,)
