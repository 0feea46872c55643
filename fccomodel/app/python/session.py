"""The interface for Python: compile, bind, explain, solve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import errors, habits
from fccomodel.app.python import starts
from fccomodel.app.python import track as track
from fccomodel.app.python.by_kind import by_kind
from fccomodel.app.python.solved import Explanation, Planned, Result
from fccomodel.app.shown import latex
from fccomodel.app.shown.notebook import live
from fccomodel.app.stored import comparison, results
from fccomodel.app.stored.checkpoints import kept
from fccomodel.app.tracebacks import public
from fccomodel.core import files, ir, options
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.data.sources import frame

if TYPE_CHECKING:
    from fccomodel.app.grading import Grade
    from fccomodel.app.python.sweeps import Sweep
    from fccomodel.app.python.track import Tracker
    from fccomodel.app.python.training import Criterion
    from fccomodel.data.bound import Bound
    from fccomodel.execution.run import Progress
    from fccomodel.execution.training.samplers import Numbered


#: Number of plans that a bound model keeps, each for one set of options.
PLANS = 8


@public
def compile(text_or_path: str | Path) -> CompiledModel:
    """The checked model of a text (a string with a line break or a ``;``) or of a file.

    Raises ``FccoError`` with every error of the text.
    """
    return CompiledModel(compiled=pipeline.compile_model(files.model_source(text_or_path)))


@public
def load(
    folder: str | Path, *, nets: Mapping[str, Any] | None = None, allow_python: bool = False
) -> results.Stored:
    """Read a result that ``Result.save`` or ``solve --out`` wrote.

    It has ``.variables``, ``.multipliers``, ``.record`` (result.json), and the methods ``.predict``,
    ``.value`` and ``.module`` of a fresh result. ``nets`` gives again the modules that were objects
    in Python when the model was solved.
    """
    return results.load(Path(folder), nets=nets, allow_python=allow_python)


@public
def numbered(dataset: Any) -> Numbered:
    """A map-style dataset that yields each item together with its row number.

    A criterion needs the numbers: ``for rows, (x, y) in DataLoader(numbered(data),
    batch_sampler=criterion.sampler())``.
    """
    from fccomodel.app.python import training

    return training.numbered(dataset)


@public
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
    """Judge an answer on other rows. Columns are scaled and categories coded as in the solve.

    stored   a result, or the folder of one
    data     tables by name; they may also be keywords (``D=frame``)
    where    a condition that chooses rows; it replaces the binding's own ``where``
    show     lets of the model whose values are wanted, in ``.shown``
    """
    if isinstance(stored, Result):
        answer = results.at_hand(stored.outcome)
    elif isinstance(stored, results.Stored):
        answer = stored
    else:
        answer = load(stored)
    return results.evaluate(
        answer,
        data=_tables(data, tables),
        nets=nets,
        where=where,
        data_dir=None if data_dir is None else Path(data_dir),
        allow_python=allow_python,
        show=show,
    )


@public
def grade(
    answer: str | Path | CompiledModel,
    key: str | Path | CompiledModel | BoundModel,
    *,
    cost: bool = True,
    budget: str = "5s",
) -> Grade:
    """Judge whether a model states the same problem as a key, and where it does not.

    ``print`` shows the judgement; ``.verdict`` is ``same``, ``different``, ``undecided`` or
    ``invalid``, ``.score`` a number from 0 to 1, and ``.json`` all of it.

    answer  the text or the file of the model to judge
    key     the model that is right; one with data (``fc.compile(..).bind(..)``) is compared on these too
    cost    whether to solve both models and say what the differences cost
    budget  the budget of each of these two solves
    """
    from fccomodel.app import grading

    if isinstance(key, BoundModel):
        right, bound = key.compiled, key.bound
    else:
        right, bound = _compiled(key).compiled, None
    if isinstance(answer, CompiledModel):
        source = answer.compiled.source
    else:
        source = files.model_source(answer)
    return grading.grade(source, right, bound, budget=budget if cost else None)


def _compiled(model: str | Path | CompiledModel) -> CompiledModel:
    """The model itself, or the model of a text or a file."""
    if isinstance(model, CompiledModel):
        return model
    return compile(model)


# Users give these keywords one by one: a record would be a second name for each.
@public
def compare(  # noqa: PLR0913
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
    progress: Callable[[comparison.ComparisonProgress], None] | None = None,
    **given: Any,
) -> comparison.Comparison:
    """Run several algorithms on a bound model, side by side.

    ``print`` shows the table; ``.curves``, ``.to_pandas()`` and ``.save(folder)`` give more.

    algorithms   identifiers of algorithms
    seeds        the number of seeds, or the seeds themselves
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
    chosen = options.resolve(
        given, model.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
    )
    contest = comparison.Contest(
        algorithms=algorithms,
        seeds=seeds,
        tuning=tune,
        validation=validation,
        test=test,
        show=show,
        reference=reference,
        tolerance=tolerance,
    )
    with kept(checkpoint, every, fresh) as checkpoints:
        return comparison.compare(
            model.compiled,
            model.binding,
            contest,
            chosen=chosen,
            jobs=jobs,
            bound=model.bound,
            checkpoints=checkpoints,
            progress=progress,
        )


def owned(value: Any) -> Any:
    """A copy of a value that the caller may change later: an array, a tensor, or a table of them.

    The rows of a query are read. Any other value is returned as it is.
    """
    if isinstance(value, np.memmap):
        return value
    value = frame.read(value)
    if isinstance(value, Mapping):
        return {name: owned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        if type(value) in (list, tuple):
            return type(value)(owned(part) for part in value)
        return value
    if not hasattr(value, "shape"):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "clone"):
        return value.clone()
    if hasattr(value, "copy"):
        return value.copy()
    return value


def _tables(data: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables given in a mapping and as keywords, together; F0805 for a name that is in both."""
    from fccomodel.data.bind import by_name  # loads torch

    return files.merged(("in `data`", by_name(data, "data")), ("as a keyword", tables))


def _of_only_table(problem: ir.Problem, rows: Any, tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tables by name, with ``rows`` (None if not given) as the data of the model's only table."""
    if rows is None:
        return tables
    if len(problem.tables) != 1:
        refuse(errors.rows_without_table(list(problem.tables)))
    (name,) = problem.tables
    return files.merged(("without a name", {name: rows}), ("as a keyword", tables))


def _named(
    problem: ir.Problem,
    data: Any,
    params: Mapping[str, Any] | None,
    nets: Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The data, the params and the nets that are given, in mappings and as keywords."""
    from fccomodel.data.bind import by_name  # loads torch

    mappings = {"data": by_name(data, "data"), "params": params or {}, "nets": nets or {}}
    named = by_kind(problem, mappings, keywords)
    return named["data"], named["params"], named["nets"]


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
    """The arguments of ``bind`` as the record that the pipeline takes."""
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
class CompiledModel(habits.Answering, latex.Typeset):
    """A checked model without data."""

    _called = "A model without data"

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
        """Notes on statements that are allowed but may be mistakes."""
        return self.compiled.problem.warnings

    def _instead(self) -> Mapping[str, str]:
        return habits.COMPILED

    # Users give these keywords one by one.
    @public
    def bind(  # noqa: PLR0913
        self,
        rows: Any = None,
        /,
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

        rows       the data of the model's only table, without its name: ``bind(frame)``
        tables     by name: a DataFrame, a file, a mapping of arrays, tensors, a torch ``Dataset``, or
                   ``sklearn:NAME``. Arrays are copied, so changing them later changes nothing here
        data       a mapping of such tables, for names that cannot be keywords
        spec       a binding file (TOML), or its content as a mapping
        params     numbers by name; they may also be keywords, ``bind(D=frame, tau=0.1)``
        nets       torch modules by name (or as keywords), or texts such as ``mlp(64, 64, activation=elu)``
        samplers   functions that draw from the model's own distributions:
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
        from fccomodel.data.bind import DrawnArguments, keyed

        tables = dict(_of_only_table(self.compiled.problem, rows, tables))
        data, params, nets = _named(self.compiled.problem, data, params, nets, tables)
        data_by_name = {name: owned(value) for name, value in data.items()}
        data_by_name = keyed(self.compiled.problem, data_by_name, owned(keys))
        drawing = DrawnArguments(
            transform=transform or {}, eval_transform=eval_transform or {}, workers=workers
        )
        return self._bound(
            _binding(spec, data_by_name, params, nets, samplers, data_dir, allow_python, drawing)
        )

    # The keywords are those of ``bind``.
    @public
    def prepare(  # noqa: PLR0913
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
                   ``bind(D=folder)`` uses it without preparing it again
        dtype      precision of the stored vectors: ``float32`` or ``float64``

        The other arguments are those of ``bind``; files and queries are read in parts.
        Raises F0806 if the folder cannot be written.
        """
        options.check_stored(dtype)
        data, params, nets = _named(self.compiled.problem, data, params, nets, tables)
        binding = _binding(spec, data, params, nets, samplers, data_dir, allow_python)
        data_folder = pipeline.prepare(self.compiled, binding, Path(folder).absolute(), dtype=dtype)
        return self._bound(
            replace(binding, data={**binding.data, **dict.fromkeys(data_folder.tables, data_folder.folder)})
        )

    def _bound(self, binding: pipeline.Binding) -> BoundModel:
        return BoundModel(
            compiled=self.compiled, binding=binding, bound=pipeline.bind(self.compiled, binding)
        )

    @public
    def explain(self, *, params: Mapping[str, Any] | None = None, **given: Any) -> Explanation:
        """The facts that the text alone proves, their reasons, and the algorithm that would run.

        ``params`` gives values to some params.
        """
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        binding = pipeline.Binding(params=params or {})
        return Explanation(explained=pipeline.explain(self.compiled, binding, chosen))

    @public
    def solve(self, **given: Any) -> Result:
        """Solve a model that needs no data."""
        return self.bind().solve(**given)

    def __repr__(self) -> str:
        return f"<CompiledModel {self.name}>"


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundModel(habits.Answering, latex.Typeset):
    """A model with its data."""

    _called = "A model with its data"

    compiled: pipeline.Compiled
    binding: pipeline.Binding
    bound: Bound = field(repr=False)
    _plans: dict[str, pipeline.Planned] = field(default_factory=dict, init=False, repr=False)

    def _instead(self) -> Mapping[str, str]:
        return habits.BOUND

    @public
    def with_params(self, **params: Any) -> BoundModel:
        """The model with its data, at other values of some params.

        Data are read again only if the new values decide sizes or sets.
        """
        values = {name: owned(value) for name, value in params.items()}
        binding, bound = pipeline.rebind(self.compiled, self.binding, self.bound, values)
        return BoundModel(compiled=self.compiled, binding=binding, bound=bound)

    @public
    def plan(self, **given: Any) -> Planned:
        """The facts about the model, the chosen algorithm, and the value and origin of every option.

        Rows of ``holdout`` are left out of the data.
        """
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        planned = self._planned(chosen)
        return Planned(**{entry.name: getattr(planned, entry.name) for entry in fields(planned)})

    def _planned(self, chosen: options.Origins) -> pipeline.Planned:
        """The plan for these options: an earlier one if it was made for the rows bound here."""
        bound = self._bound(chosen)
        if bound is None:
            return pipeline.plan(self.compiled, self.binding, chosen, bound=None)
        key = repr(sorted(chosen.items()))
        if key in self._plans:
            return replace(self._plans[key], spent=0.0)
        planned = pipeline.plan(self.compiled, self.binding, chosen, bound=bound)
        if len(self._plans) >= PLANS:
            self._plans.clear()
        self._plans[key] = planned
        return planned

    @public
    def explain(self, **given: Any) -> Explanation:
        """The facts about the model with their reasons, the chosen algorithm, and the requirements
        that each rejected algorithm lacks. ``.json`` has all this as data."""
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        return Explanation(
            explained=pipeline.explain(self.compiled, self.binding, chosen, bound=self._bound(chosen))
        )

    def _bound(self, chosen: options.Origins) -> Bound | None:
        """The bound data, or None if these options need other data.

        Held-out rows are removed from the data, and the seed decides a net's first weights.
        """
        if "holdout" in chosen:
            return None
        seed = chosen.get("seed", (0,))[0]
        if seed == 0 or not self.compiled.problem.nets:
            return self.bound
        return None

    @public
    def emit(self, path: str | Path | None = None, **given: Any) -> str:
        """The text of the standalone solver. If a path is given, write it there, with its data."""
        program = results.emitted(self.plan(**given))
        if path is None:
            return program.text
        results.write_program(program, Path(path))
        return Path(path).read_text(encoding="utf-8")

    @public
    def criterion(
        self,
        *,
        batch: int = 64,
        algorithm: str | None = None,
        together: bool = True,
        track: Tracker | None = None,
        **given: Any,
    ) -> Criterion:
        """The minimised objective as a ``torch.nn.Module``, for a training loop of your own:
        ``loss = criterion(rows, s=net(x))``.

        batch      rows in a batch of ``criterion.sampler()``; the loss takes batches of any size
        algorithm  the algorithm whose gradient the loss has. The default is an algorithm whose
                   estimates are unbiased in the limit
        together   whether the batches of all ranks are one under ``torch.distributed``. Then every
                   rank calls the loss at the same time, and gradients are averaged over ranks
        track      writes ``values()`` every 20 steps: ``fc.track.tensorboard("runs")``

        Other keywords are options of the algorithm. Raises F0826 if the model has no net, or if a
        part of the model needs more rows than a batch has.
        """
        from fccomodel.app.python import training

        return training.criterion(
            self, batch=batch, algorithm=algorithm, together=together, track=track, **given
        )

    # Every option has a keyword, so that editors complete it and ``help`` explains it.
    @public
    def solve(  # noqa: PLR0913
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
        verbose: bool = False,
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
        optimizer: Callable[..., Any] | None = None,
        scheduler: Callable[..., Any] | None = None,
        clip: float | None = None,
        ema: float | None = None,
        callback: Callable[..., Any] | None = None,
        look_every: int | None = None,
        batch: int | None = None,
        validate: Any = None,
        watch: str | None = None,
        patience: int | None = None,
        **given: Any,
    ) -> Result:
        """Run the solver and report on the original problem over all bound rows.

        seed         whole number; the same seed gives the same answer on the same machine
        device       ``auto``, ``cpu``, ``cuda``
        precision    ``float32`` or ``float64`` of the steps; reports are always float64. With
                     ``bfloat16`` steps run nets by autocast, and all else is float32
        backend      what runs the steps: ``auto``, ``eager``, ``traced``, ``compiled``, ``cuda-graph``;
                     F0818 if it cannot
        budget       ``60s``, ``5m``, ``5000it`` or ``1e6oracles``
        algorithm    the algorithm to use; its requirements are checked all the same
        unverified   run even if no theorem covers the model; the report says so first
        progress     called now and then with a ``Progress``. By default a notebook shows the progress
        verbose      whether to show the progress in the terminal too
        show         names of lets whose values are wanted: ``result.values``
        holdout      rows that are left out of the solve and judge the answer: a condition, or a share
                     of the rows, chosen at random. See ``result.heldout``
        margin       confidence with which constraints on expectations over rows shall hold for new rows.
                     See ``result.margins``
        population   whether to compute an interval of the optimality gap for new rows, or the time that
                     this may take, as ``60s``. See ``result.population``
        sensitivity  whether to report how the optimum moves with the right sides of the constraints:
                     ``result.report.sensitivity``
        start        the first point of the run: a result of this model or of a similar one (its
                     multipliers and centres are used too), the folder of a result, or values of
                     variables by name. F0712 if they do not fit. Restarting from the answer itself costs
                     only the time of the report
        trace        quantities to record at single steps: ``u`` (estimates), ``g`` (true values),
                     ``gradient`` (its bias), ``y`` (multipliers, duals). The run then consists of
                     steps alone. See ``result.trace``
        trace_at     numbers of the steps before which the quantities are recorded
        checkpoint   folder in which the run saves its state. A killed run goes on from there and ends
                     with the numbers of an uninterrupted run. F0817 if the folder belongs to another
                     model, data or options
        every        time between checkpoints, as ``60s``; with ``callback`` the steps between two calls
        fresh        whether to ignore a checkpoint in the folder

        The following are for models with nets. If one of them is given, the steps are those of an
        optimizer of torch, by the gradient of ``criterion()``; no theorem is claimed of them.

        optimizer    makes the optimizer: ``lambda p: torch.optim.AdamW(p, lr=1e-3)``. ``p`` is the list
                     of all parameters, ``p.named`` has them by name (``s.0.weight``), for groups.
                     Unless given Adam with rate 1e-3
        scheduler    makes a schedule of the optimizer, which steps after every step
        clip         largest norm of the gradient
        look_every   steps between two looks at all rows (and those of ``validate``). Unless given as
                     often as a twentieth of the work allows
        ema          decay of an average of the weights, which looks and the answer take: 0.999
        callback     called every ``every`` steps (100) with ``state``: ``.modules``, ``.step``,
                     ``.seconds``, ``.values``, ``.best``, ``.look()``; the run ends if it returns False.
                     If it raises, the run ends too and the answer is the best point so far
        batch        rows of a step (64)
        validate     rows to choose the answer by: other data for tables, ``{"D": frame}``, or
                     ``"holdout"`` for those that ``holdout`` leaves out
        watch        what is watched there: ``objective`` (unless given), ``violation``, a constraint's
                     label, or a let with its sense, ``maximize auc``
        patience     looks without a gain there after which the run ends; unless given it goes on

        Other keywords are options: of the algorithm, and ``starts``, the number of runs from different
        first points, of which the best answer is kept.
        """
        recipe = {
            "optimizer": optimizer,
            "scheduler": scheduler,
            "clip": clip,
            "ema": ema,
            "callback": callback,
            "look_every": look_every,
            "batch": batch,
            "validate": validate,
            "watch": watch,
            "patience": patience,
        }
        recipe = {name: value for name, value in recipe.items() if value is not None}
        if recipe.keys() == {"patience"}:  # without an optimizer it is the option about stages
            given = {"patience": recipe.pop("patience"), **given}
        named: dict[str, Any] = {
            "seed": seed,
            "device": device,
            "precision": precision,
            "budget": budget,
            "algorithm": algorithm,
            "backend": backend,
            "unverified": unverified,
            "holdout": holdout,
            "margin": margin,
            "population": population,
        }
        from fccomodel.app import new_rows
        from fccomodel.evaluation.values import lets
        from fccomodel.pipeline import solving

        if not recipe and self._in_train_mode():
            from fccomodel.execution.training.recipe import adam

            recipe = {"optimizer": adam}
        if recipe:
            from fccomodel.app.python import training

            beside: dict[str, Any] = {"trace": trace, "backend": backend}
            beside |= {"margin": margin, "population": population, "starts": given.get("starts", 1) != 1}
            training.refuse_beside(beside, recipe)
            if every is not None and (callback is not None or checkpoint is None):
                recipe["every"], every = every, None
            named = {k: v for k, v in named.items() if v is not None or k == "algorithm"}
            with (
                kept(checkpoint, every, fresh) as checkpoints,
                live.shown(progress, verbose=verbose) as shown,
            ):
                outcome = training.trained(
                    self,
                    recipe,
                    {**named, **given},
                    start,
                    shown,
                    checkpoints=checkpoints,
                    show=show,
                    sensitive=sensitivity,
                )
            return Result(outcome=outcome)
        if trace:
            given = {"polish": False, **given}
        elif trace_at is not None:
            refuse(errors.steps_without_trace())
        planned = starts.begun(self.plan(**named, **given), start)
        if trace and (margin is not None or population):
            refuse(errors.traced_alone())
        if trace and checkpoint is not None:
            refuse(errors.traced_whole())
        with (
            kept(checkpoint, every, fresh) as checkpoints,
            live.shown(progress, verbose=verbose) as shown,
        ):
            if trace:
                lets_shown = lets(planned.problem, show)
                return Result(outcome=solving.traced(planned, trace, trace_at, shown, show=lets_shown))
            planned = replace(planned, checkpoints=checkpoints)
            return Result(outcome=new_rows.solve(planned, shown, show=show, sensitive=sensitivity))

    def _in_train_mode(self) -> bool:
        """Whether a net was given in train mode: steps are then those of an optimizer."""
        if not self.bound.nets:
            return False
        from fccomodel.data.nets import in_train_mode

        return bool(in_train_mode(self.bound.nets))

    @public
    def sweep(
        self,
        *,
        start: Any = None,
        show: Iterable[str] = (),
        progress: Callable[..., None] | None = None,
        **given: Any,
    ) -> Sweep:
        """Solve for each value of a param, each time from the answer before: ``sweep(tau=[0.1, 0.05])``.

        With several params it solves for each combination; the last param varies fastest. Ctrl-C ends
        the sweep and keeps the solves that are done.

        start      where the first solve begins, as in ``solve``
        show       names of lets whose values are wanted
        progress   called after each solve with its ``Point``, how many are done, and how many there are

        Other keywords are options of the solves. Raises F0518 for unknown params and F0520 for values
        outside a param's domain.
        """
        from fccomodel.app.python import sweeps
        from fccomodel.app.python.sweeps.errors import nothing_to_sweep

        known = self.compiled.problem.params
        params = {name: given.pop(name) for name in list(given) if name in known}
        if not params:
            refuse(nothing_to_sweep(tuple(known), tuple(given)))
        chosen = options.resolve(
            given, self.compiled.problem.options, options.configuration(), given_as=options.KEYWORD
        )
        return sweeps.sweep(
            self.compiled, self.binding, self.bound, params, chosen, start=start, show=show, progress=progress
        )

    @public
    def path(
        self,
        param: str | None = None,
        *,
        count: int = 50,
        ratio: float = 1e-3,
        progress: Callable[..., None] | None = None,
        **given: Any,
    ) -> Sweep:
        """A sweep over the weight of a regulariser (``lam`` in ``+ lam * norm1(w)``).

        The weights fall geometrically, from the smallest weight at which zero is optimal.

        param      the weight; needed only if the model has several
        count      number of weights
        ratio      last weight / first weight
        progress   as in ``sweep``

        Raises F0805 if no param is such a weight, or if zero is optimal for none of its values.
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
