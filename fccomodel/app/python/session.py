"""The interface for Python: compile, bind, explain, solve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.app.python import starting
from fccomodel.app.python.solved import Explanation, Planned, Result
from fccomodel.app.shown import latex
from fccomodel.app.shown.notebook import live
from fccomodel.app.stored import comparison, keeping, results
from fccomodel.core import files, options
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.data.sources import frame

if TYPE_CHECKING:
    from fccomodel.app.python.sweeps import Sweep
    from fccomodel.app.python.training import Criterion
    from fccomodel.data.bound import Bound
    from fccomodel.execution.run import Progress
    from fccomodel.execution.training.samplers import Numbered


#: Plans that a problem keeps, for options that it is solved with again.
PLANS = 8


def compile(text_or_path: str | Path) -> CompiledModel:
    """A model from its text (a string with a line break or a ``;``) or a file; raises ``FccoError``
    with every error found."""
    return CompiledModel(compiled=pipeline.compile_model(files.model_source(text_or_path)))


def load(
    folder: str | Path, *, nets: Mapping[str, Any] | None = None, allow_python: bool = False
) -> results.Stored:
    """A result that ``Result.save`` or ``solve --out`` wrote: ``.variables``, ``.multipliers``,
    ``.record`` (result.json), and as of the result itself ``.predict``, ``.value``, ``.module``.
    ``nets`` are the modules that were objects in Python."""
    return results.load(Path(folder), nets=nets, allow_python=allow_python)


def numbered(dataset: Any) -> Numbered:
    """A map-style dataset whose items come with their row numbers, for a criterion: ``for rows, (x, y)
    in DataLoader(numbered(data), batch_sampler=criterion.sampler())``."""
    from fccomodel.app.python import training

    return training.numbered(dataset)


def evaluate(
    stored: Result | results.Stored | str | Path,
    *,
    data: Mapping[str, Any] | None = None,
    nets: Mapping[str, Any] | None = None,
    where: str | None = None,
    data_dir: str | Path | None = None,
    allow_python: bool = False,
    show: Iterable[str] = (),
    **tables: Any,
) -> results.Evaluation:
    """Judge an answer, at hand or stored, on other rows, with the scaling and the categories that it
    was solved with.

    Tables are given by name (``D=frame``) or in ``data``; ``where`` chooses rows, in place of the
    binding's own ``where``. ``show`` names lets of the model whose values are wanted: ``.shown``.
    """
    answer = results.at_hand(stored.outcome) if isinstance(stored, Result) else stored
    return results.evaluate(
        answer if isinstance(answer, results.Stored) else load(answer),
        data=_tables(data, tables),
        nets=nets,
        where=where,
        data_dir=None if data_dir is None else Path(data_dir),
        allow_python=allow_python,
        show=show,
    )


def compare(
    model: BoundModel,
    *,
    algorithms: Sequence[str],
    seeds: int | Sequence[int] = 5,
    tune: bool = False,
    validation: str | float | None = None,
    test: str | None = None,
    show: Sequence[str] = (),
    reference: float | None = None,
    tolerance: float = comparison.TOLERANCE,
    jobs: int | None = 1,
    checkpoint: str | Path | None = None,
    every: str | float | None = None,
    fresh: bool = False,
    progress: Callable[[comparison.Step], None] | None = None,
    **given: Any,
) -> comparison.Comparison:
    """Run several algorithms on a bound model, side by side.

    ``print`` shows the table; ``.curves``, ``.to_pandas()`` and ``.save(folder)`` give more.

    algorithms   identifiers of algorithms
    seeds        how many seeds, or which
    tune         whether to choose hyper-parameters from the papers' grids, judged on ``validation``
    validation   rows to tune on: a condition, or a share of the rows
    test         rows to judge the answers on as well
    show         lets of the model to report
    reference    the optimal value, if it is known
    tolerance    violation up to which a run counts as feasible
    jobs         number of processes; None: one per processor (a script then needs
                 ``if __name__ == "__main__"``)
    checkpoint   folder from which a killed comparison goes on; ``every`` and ``fresh`` as in ``solve``

    Other keywords are options of the runs: ``budget="1e6oracles"`` (the default),
    ``precision="float64"``, ...
    """
    with keeping.kept(checkpoint, every, fresh) as checkpoints:
        return comparison.compare(
            model.compiled,
            model.binding,
            algorithms=algorithms,
            seeds=seeds,
            chosen=options.resolve(
                given, model.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
            ),
            tuning=tune,
            validation=validation,
            test=test,
            show=show,
            reference=reference,
            tolerance=tolerance,
            jobs=jobs,
            bound=model.bound,
            checkpoints=checkpoints,
            progress=progress,
        )


def owned(value: Any) -> Any:
    """A copy of arrays, tensors and tables of them, and the rows of a query; anything else as it is."""
    if isinstance(value, np.memmap):
        return value
    value = frame.read(value)
    if isinstance(value, Mapping):
        return {name: owned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        if type(value) in (list, tuple):
            return type(value)(owned(part) for part in value)
        return value
    for method in ("clone", "copy"):
        if hasattr(value, "shape") and hasattr(value, method):
            return getattr(value.detach() if hasattr(value, "detach") else value, method)()
    return value


def _tables(data: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """What is given by name, in a mapping and as keywords; F0805 for a name that is in both."""
    from fccomodel.data.bind import by_name  # loads torch

    return files.merged(("in `data`", by_name(data, "data")), ("as a keyword", tables))


def _binding(
    spec: Mapping[str, Any] | str | Path | None,
    data: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    nets: Mapping[str, Any] | None,
    samplers: Mapping[str, Callable[..., Any]] | None,
    data_dir: str | Path | None,
    allow_python: bool,
    drawing: Any = None,
) -> pipeline.Binding:
    """What is given to ``bind``, as the pipeline takes it."""
    return pipeline.Binding(
        drawing=drawing,
        spec=Path(spec) if isinstance(spec, str) else spec,
        data=data,
        params={name: owned(value) for name, value in (params or {}).items()},
        nets=nets or {},
        samplers=samplers or {},
        data_dir=None if data_dir is None else Path(data_dir),
        allow_python=allow_python,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class CompiledModel(latex.Typeset):
    """A checked model without data."""

    compiled: pipeline.Compiled

    @property
    def name(self) -> str:
        """The model's name."""
        return self.compiled.problem.name

    @property
    def hash(self) -> str:
        """Changes when the mathematics does; comments, layout and options do not count."""
        return self.compiled.hash

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Lint notes: what is allowed but perhaps not meant."""
        return self.compiled.problem.warnings

    def bind(
        self,
        *,
        spec: Mapping[str, Any] | str | Path | None = None,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        nets: Mapping[str, Any] | None = None,
        samplers: Mapping[str, Callable[..., Any]] | None = None,
        data_dir: str | Path | None = None,
        allow_python: bool = False,
        keys: Any = None,
        transform: Mapping[str, Callable[[Any], Any]] | None = None,
        eval_transform: Mapping[str, Callable[[Any], Any]] | None = None,
        workers: int = 0,
        **tables: Any,
    ) -> BoundModel:
        """Give the model's names their data.

        tables     by name: a DataFrame, a file, a mapping of arrays, tensors, a torch ``Dataset``, or
                   ``sklearn:NAME``. Arrays are copied, so changing them later changes nothing here
        data       the same as a mapping, for names that cannot be keywords
        spec       a binding file (TOML), or the same as a mapping
        params     numbers by name
        nets       torch modules by name, or texts such as ``mlp(64, 64, activation=elu)``
        samplers   functions for distributions that the model names and the language does not have:
                   ``function(rng, n, *parameters)`` returns n draws
        data_dir   the folder that file names in the binding start from
        keys       of a data set whose rows are drawn, the columns that formulas read: a DataFrame or
                   a mapping of arrays; then no item is read for them. By table for several tables
        transform  by column, ``{"x": f}``, what a step does to each row that it draws
        eval_transform  the same for looks, reports and scores, which see rows as they are otherwise
        workers    processes that fetch rows, as of a torch ``DataLoader``

        A column of vectors that only nets read is drawn row by row if it comes from a large or
        random Dataset, a folder of images, or an array that is mapped from a file.
        """
        from fccomodel.data.bind import Given, keyed

        given = {name: owned(value) for name, value in _tables(data, tables).items()}
        given = keyed(self.compiled.problem, given, owned(keys))
        drawing = Given(transform=transform or {}, eval_transform=eval_transform or {}, workers=workers)
        return self._bound(_binding(spec, given, params, nets, samplers, data_dir, allow_python, drawing))

    def prepare(
        self,
        folder: str | Path,
        *,
        dtype: str = "float32",
        spec: Mapping[str, Any] | str | Path | None = None,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        nets: Mapping[str, Any] | None = None,
        samplers: Mapping[str, Callable[..., Any]] | None = None,
        data_dir: str | Path | None = None,
        allow_python: bool = False,
        **tables: Any,
    ) -> BoundModel:
        """Bind tables that do not fit into memory: write them into a folder, and map them from there.

        folder     a new or empty folder, or one with prepared tables, which are replaced. Later
                   ``bind(D=folder)`` takes it as it is
        dtype      precision of the stored vectors: ``float32`` or ``float64``

        The other arguments are those of ``bind``; files and queries are read in parts.
        Raises F0806 if the folder cannot be written.
        """
        options.check_value("precision", dtype, options.KEYWORD)
        binding = _binding(spec, _tables(data, tables), params, nets, samplers, data_dir, allow_python)
        made = pipeline.prepare(self.compiled, binding, Path(folder).absolute(), dtype=dtype)
        return self._bound(replace(binding, data={**binding.data, **dict.fromkeys(made.tables, made.folder)}))

    def _bound(self, binding: pipeline.Binding) -> BoundModel:
        return BoundModel(
            compiled=self.compiled, binding=binding, bound=pipeline.bind(self.compiled, binding)
        )

    def explain(self, *, params: Mapping[str, Any] | None = None, **given: Any) -> Explanation:
        """What the text alone proves, for these values of some params: the structure, its reasons, and
        the algorithm."""
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        binding = pipeline.Binding(params=params or {})
        return Explanation(explained=pipeline.explain(self.compiled, binding, chosen))

    def solve(self, **given: Any) -> Result:
        """Solve a model that needs no data."""
        return self.bind().solve(**given)

    def __repr__(self) -> str:
        return f"<CompiledModel {self.name}>"


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundModel(latex.Typeset):
    """A model with its data."""

    compiled: pipeline.Compiled
    binding: pipeline.Binding
    bound: Bound = field(repr=False)
    _plans: dict[str, pipeline.Planned] = field(default_factory=dict, init=False, repr=False)

    def with_params(self, **params: Any) -> BoundModel:
        """The same model and data for other values of some params; data are read again only where
        these decide sizes or sets."""
        given = {name: owned(value) for name, value in params.items()}
        binding, bound = pipeline.rebind(self.compiled, self.binding, self.bound, given)
        return BoundModel(compiled=self.compiled, binding=binding, bound=bound)

    def plan(self, **given: Any) -> Planned:
        """The structure found and the algorithm chosen, with every option's value and origin; rows of
        ``holdout`` left out."""
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        made = self._made(chosen)
        return Planned(**{entry.name: getattr(made, entry.name) for entry in fields(made)})

    def _made(self, chosen: options.Origins) -> pipeline.Planned:
        """The plan for these options: the one made before, where the same rows were planned for."""
        bound, key = self._bound(chosen), repr(sorted(chosen.items()))
        if bound is not None and key in self._plans:
            return replace(self._plans[key], spent=0.0)
        made = pipeline.plan(self.compiled, self.binding, chosen, bound=bound)
        if bound is not None:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            self._plans[key] = made
        return made

    def explain(self, **given: Any) -> Explanation:
        """The structure found and why, the algorithm chosen, and what each rejected one lacks;
        ``.json`` has it as data."""
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        return Explanation(
            explained=pipeline.explain(self.compiled, self.binding, chosen, bound=self._bound(chosen))
        )

    def _bound(self, chosen: options.Origins) -> Bound | None:
        """The bound data, if no row is held out and the seed leaves them as they are: a net's first
        weights come from it."""
        if "holdout" in chosen:
            return None
        seed = chosen.get("seed", (0,))[0]
        if seed == 0 or not self.compiled.problem.nets:
            return self.bound
        return None

    def emit(self, path: str | Path | None = None, **given: Any) -> str:
        """The text of the standalone solver; with a path, written there with its data beside it."""
        program = results.emitted(self.plan(**given))
        if path is None:
            return program.text
        results.write_program(program, Path(path))
        return Path(path).read_text(encoding="utf-8")

    def criterion(self, *, batch: int = 64, algorithm: str | None = None, **given: Any) -> Criterion:
        """The minimised objective as a ``torch.nn.Module``, for a training loop of your own:
        ``loss = criterion(rows, s=net(x))``.

        batch      rows of a batch of ``criterion.sampler()``; any batch may be given
        algorithm  whose gradient it is; unless given one whose estimates are unbiased in the limit.
                   Other keywords are options of the algorithm

        Raises F0826 where the model has no net, or a part of it needs more than a batch.
        """
        from fccomodel.app.python import training

        return training.criterion(self, batch=batch, algorithm=algorithm, **given)

    def solve(
        self,
        *,
        seed: int | None = None,
        device: str | None = None,
        precision: str | None = None,
        backend: str | None = None,
        budget: str | None = None,
        algorithm: str | None = None,
        unverified: bool | None = None,
        progress: Callable[[Progress], None] | None = None,
        show: Iterable[str] = (),
        holdout: str | float | None = None,
        margin: float | None = None,
        population: bool | str | None = None,
        sensitivity: bool = False,
        start: Any = None,
        trace: Sequence[str] = (),
        trace_at: Sequence[int] | None = None,
        checkpoint: str | Path | None = None,
        every: str | float | None = None,
        fresh: bool = False,
        **given: Any,
    ) -> Result:
        """Run the solver and report on the original problem over all bound rows.

        seed         whole number; the same seed gives the same answer on the same machine
        device       ``auto``, ``cpu``, ``cuda``
        precision    ``float32`` or ``float64`` of the steps; reports are always float64
        backend      what runs the steps: ``auto``, ``eager``, ``traced``, ``compiled``, ``cuda-graph``;
                     F0818 if it cannot
        budget       ``60s``, ``5m``, ``5000it`` or ``1e6oracles``
        algorithm    the algorithm to use; its requirements are checked all the same
        unverified   run even if no theorem covers the model; the report says so first
        progress     called now and then with a ``Progress``; without it a notebook shows the run's course
        show         names of lets whose values are wanted: ``result.values``
        holdout      rows to leave out and judge the answer by: a condition, or a share of them chosen at
                     random. See ``result.heldout``
        margin       confidence with which constraints on expectations over rows shall hold for new rows.
                     See ``result.margins``
        population   an interval of the optimality gap for new rows; ``60s`` is the time it may take. See
                     ``result.population``
        sensitivity  whether to report how the optimum moves with the right sides of the constraints:
                     ``result.report.sensitivity``
        start        where the run begins: a result of this model or one like it (with its multipliers and
                     centres), the folder of one, or values of variables by name; F0712 if they do not fit.
                     Restarting from the answer itself costs only the time of the report
        trace        quantities to record at single steps: ``u`` (estimates), ``g`` (true values),
                     ``gradient`` (its bias), ``y`` (multipliers, duals). Nothing but steps runs then. See
                     ``result.trace``
        trace_at     the steps before which they are recorded
        checkpoint   folder in which the run keeps its state; after a kill it goes on from there, to the
                     same numbers. F0817 if it belongs to another model, data or options
        every        time between checkpoints, as ``60s``
        fresh        whether to begin anew, whatever the folder holds

        Other keywords are options of the algorithm.
        """
        named: dict[str, Any] = {
            "seed": seed,
            "device": device,
            "precision": precision,
            "budget": budget,
            "algorithm": algorithm,
        }
        named |= {
            "backend": backend,
            "unverified": unverified,
            "holdout": holdout,
            "margin": margin,
            "population": population,
        }
        from fccomodel.app import new_rows
        from fccomodel.pipeline import solving

        if trace:
            given = {"polish": False, **given}
        elif trace_at is not None:
            refuse(errors.steps_without_trace())
        planned = starting.begun(self.plan(**named, **given), start)
        if trace and (margin is not None or population):
            refuse(errors.traced_alone())
        if trace and checkpoint is not None:
            refuse(errors.traced_whole())
        with (
            keeping.kept(checkpoint, every, fresh) as checkpoints,
            live.progress() if progress is None else nullcontext(progress) as shown,
        ):
            if trace:
                return Result(outcome=solving.traced(planned, trace, trace_at, shown, show=show))
            planned = replace(planned, checkpoints=checkpoints)
            return Result(outcome=new_rows.solve(planned, shown, show=show, sensitive=sensitivity))

    def sweep(
        self,
        *,
        start: Any = None,
        show: Iterable[str] = (),
        progress: Callable[..., None] | None = None,
        **given: Any,
    ) -> Sweep:
        """Solve for each value of a param, each time from the answer before: ``sweep(tau=[0.1, 0.05])``.

        With several params it solves for each combination, the last param first. Ctrl-C keeps what is done.

        start      where the first solve begins, as in ``solve``
        show       names of lets whose values are wanted
        progress   called after each solve with its ``Point``, how many are done, and how many there are

        Other keywords are options of the solves. Raises F0518 for unknown params and F0520 for values
        that they do not take.
        """
        from fccomodel.app.python import sweeps

        params = {name: given.pop(name) for name in list(given) if name in self.compiled.problem.params}
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        return sweeps.sweep(
            self.compiled, self.binding, self.bound, params, chosen, start=start, show=show, progress=progress
        )

    def path(
        self,
        param: str | None = None,
        *,
        count: int = 50,
        ratio: float = 1e-3,
        progress: Callable[..., None] | None = None,
        **given: Any,
    ) -> Sweep:
        """A sweep over the weight of a regulariser (``lam`` in ``+ lam * norm1(w)``): ``count`` values
        from the least at which zero is optimal, geometrically down to ``ratio`` of it. ``param``
        names it where there are several.

        Raises F0805 where no param is such a weight, or zero is optimal for none of its values.
        """
        from fccomodel.app.python import sweeps

        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        return sweeps.path(
            self.compiled,
            self.binding,
            self.bound,
            param,
            chosen,
            count=count,
            ratio=ratio,
            progress=progress,
        )

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {table.n:,} rows" for name, table in self.bound.tables.items())
        if rows:
            return f"<BoundModel {self.compiled.problem.name} ({rows})>"
        return f"<BoundModel {self.compiled.problem.name}>"
