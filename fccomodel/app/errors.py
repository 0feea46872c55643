"""F0001, F0813, F0816 and arguments: what the commands and the Python interface refuse."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT, NO_SUCH_FILE, OUTPUT
from fccomodel.data.sources.errors import PACKAGE

INTERNAL = Code("F0001", "internal")
NAMES = Code("F0813", "names of entries")
ESTIMATOR = Code("F0816", "estimator")


def defect(error: Exception, debug: str) -> Diagnostic:
    """A defect of the compiler; the environment variable ``debug`` shows more."""
    if error.__traceback__:
        frame = traceback.extract_tb(error.__traceback__)[-1]
    else:
        frame = None
    if frame:
        place = f" ({Path(frame.filename).name}:{frame.lineno})"
    else:
        place = ""
    return INTERNAL.error(
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}{place}",
        reason="This is a defect of fccomodel, not of your model.",
        fix=f"Please report it with the model and its binding; {debug}=1 shows the traceback.",
    )


# ---------------------------------------------------------------------------------------- arguments
def no_model_beside(bind: Path, model: Path) -> Diagnostic:
    """Preparing data needs a model: its declarations say what each column becomes."""
    return NO_SUCH_FILE.error(
        f"There is no model `{model}` beside `{bind}`", fix="Name the model: --model FILE."
    )


def unknown_concept(kind: str, name: str, known: Sequence[str]) -> Diagnostic:
    """A card is asked for by a name that there is."""
    fix = did_you_mean(name, known) or f"`fccomodel {kind}s` lists them."
    return ARGUMENT.error(f"There is no {kind} `{name}`", fix=fix)


def no_code(code: str, known: Sequence[str]) -> Diagnostic:
    """A code is explained that there is."""
    near = did_you_mean(code, known) or f"Codes run from {known[0]} to {known[-1]}."
    return ARGUMENT.error(f"There is no error with the code {code}", fix=near)


def cell_arguments(message: str, usage: str) -> Diagnostic:
    """The first line of a cell of model text names the model."""
    return ARGUMENT.error(f"%%fcco: {message}", fix=f"Begin the cell with `{usage}`.")


def no_template(name: str, known: Sequence[str]) -> Diagnostic:
    """A model begins with a template that there is."""
    fix = did_you_mean(name, known) or "`fccomodel new` lists them."
    return ARGUMENT.error(f"There is no template `{name}`", fix=fix)


def file_is_there(path: Path) -> Diagnostic:
    """A template is not written over a file."""
    return OUTPUT.error(f"{path} is there already", fix="Name another folder: `fccomodel new TEMPLATE DIR`.")


def contradiction(name: str, value: Any, other: Any) -> Diagnostic:
    """An option that is given twice has one value."""
    return ARGUMENT.error(
        f"--{name} {value} and --option {name}={other} contradict each other", fix="Give one of them."
    )


def no_folder_for_plots() -> Diagnostic:
    """Curves are written into a folder."""
    return ARGUMENT.error("--plot has nowhere to write", fix="Name a folder: --out DIR.")


def not_a_start(start: Any) -> Diagnostic:
    """A solve starts from a result, a folder of one, or values by name."""
    fix = "Give a result, its folder, or a mapping: start={'w': w0}."
    return ARGUMENT.error(f"A {type(start).__name__} is no start", fix=fix)


def traced_alone() -> Diagnostic:
    """A trace is of one run."""
    return ARGUMENT.error(
        "A trace is of one run, margins and intervals for new rows are of many", fix="Ask for them apart."
    )


def traced_whole() -> Diagnostic:
    """A trace cannot be combined with checkpoints, which do not contain what it has seen."""
    return ARGUMENT.error(
        "A traced run keeps no checkpoints: what it has seen is no part of them", fix="Ask for them apart."
    )


def no_folder_for_checkpoints(name: str) -> Diagnostic:
    """How checkpoints are written is said with where."""
    return ARGUMENT.error(
        f"`{name}` is about checkpoints, and no folder is named for them", fix="Name one: --checkpoint DIR."
    )


def not_a_time(name: str, value: Any) -> Diagnostic:
    """A time has its unit."""
    return ARGUMENT.error(f"`{value}` is no time for `{name}`", fix="Write 60s, 5m or 2h.")


def steps_without_trace() -> Diagnostic:
    """Steps to look at are those of a trace."""
    return ARGUMENT.error(
        "`trace_at` names steps, and nothing is traced at them", fix='Say what to trace: trace=["u"].'
    )


def of_solve_alone(name: str, command: str) -> Diagnostic:
    """Statements about new rows belong to a solve."""
    instead = {
        "compare": "Name the rows to judge by: --test \"split == 'test'\".",
        "emit": f"`solve --{name}` finds it, and --out DIR writes the program beside the answer.",
    }
    return ARGUMENT.error(f"`{name}` is an option of solve, not of {command}", fix=instead[command])


def output_not_written(error: OSError) -> Diagnostic:
    """The system takes what is written on standard output."""
    return OUTPUT.error(f"Cannot write on standard output: {error.strerror}")


def folder_in_use(folder: Path) -> Diagnostic:
    """One process writes into a folder of results."""
    return OUTPUT.error(
        f"Cannot write into `{folder}`: another process is writing there",
        fix="Wait for it, or name another folder.",
    )


def folder_for_program(path: Path) -> Diagnostic:
    """A program is written into a file."""
    return OUTPUT.error(f"Cannot write `{path}`: it is a folder", fix=f"Name a file: -o {path / 'solver.py'}")


def no_matplotlib() -> Diagnostic:
    """Curves are drawn by matplotlib."""
    return PACKAGE.error(
        "Curves cannot be drawn: matplotlib is not installed", fix="pip install 'fccomodel[plot]'"
    )


def no_page(package: str) -> Diagnostic:
    """Pages are made by jinja2, latex2mathml and matplotlib."""
    return PACKAGE.error(
        f"A page cannot be made: {package} is not installed", fix="pip install 'fccomodel[report]'"
    )


def no_package(what: str, error: ImportError) -> Diagnostic:
    """Some values need another Python package."""
    package = error.name or "a package"
    return PACKAGE.error(f"{what} cannot be made: {package} is not installed", fix=f"pip install {package}")


def no_tracker(package: str) -> Diagnostic:
    """Values of a run are written by the tracker's own package."""
    return PACKAGE.error(f"{package} is not installed", fix=f"pip install {package}")


# ------------------------------------------------------------------------------------------- labels
def no_axis(name: str, axes: Sequence[str]) -> Diagnostic:
    """An entry is chosen along axes that the array has."""
    fix = did_you_mean(name, axes) or f"Its axes are {', '.join(f'`{axis}`' for axis in axes)}."
    return NAMES.error(f"The array has no axis `{name}`", fix=fix)


def no_entry(axis: str, chosen: Any, names: Sequence[Any]) -> Diagnostic:
    """An entry is chosen by a name that it has."""
    near = did_you_mean(str(chosen), [str(name) for name in names])
    shown = ", ".join(map(str, names[:6])) + (", ..." if len(names) > 6 else "")
    return NAMES.error(f"There is no {axis} = {chosen!r}", fix=near or f"There is {shown}.")


def names_lost() -> Diagnostic:
    """Arrays that a result hands out have names; what is computed of them has none."""
    return NAMES.error(
        "The array has no names",
        reason="What is computed of a labelled array, or cut out of it by number, has none.",
        fix="Select first, by `sel`, and compute with what it gives.",
    )


def no_column_of_history(name: str, columns: Sequence[str]) -> Diagnostic:
    """A column of a run's history is one that was recorded."""
    fix = did_you_mean(name, columns) or f"It has {', '.join(f'`{c}`' for c in columns)}."
    return NAMES.error(f"The history has no column `{name}`", fix=fix)


# ---------------------------------------------------------------------------------- rows and scores


def no_rows_at_hand() -> Diagnostic:
    """Scores are of the rows of a solve, which its files do not hold."""
    return ARGUMENT.error(
        "There are no rows whose scores could be drawn", fix="Draw those of a solve: `result.plot.roc()`."
    )


def no_values(name: str, known: Sequence[str]) -> Diagnostic:
    """A picture by group needs a family of constraints or of lets."""
    fix = did_you_mean(name, known) or (
        f"There is {', '.join(f'`{n}`' for n in known)}." if known else "The model has none."
    )
    return ARGUMENT.error(f"`{name}` is no family of constraints or lets with values", fix=fix)


def no_variable_to_show(name: str, known: Sequence[str]) -> Diagnostic:
    """A picture shows variables of the model."""
    fix = did_you_mean(name, known) or f"There is {', '.join(f'`{n}`' for n in known)}."
    return ARGUMENT.error(f"The model has no variable `{name}`", fix=fix)


# ------------------------------------------------------------------------------------------- export


def rows_without_table(tables: list[str]) -> Diagnostic:
    """Data without a name belong to the model's only table."""
    if not tables:
        return ARGUMENT.error("the model has no table for these rows", fix="Remove them.")
    return ARGUMENT.error(
        f"the rows can be those of {len(tables)} tables",
        reason=f"The model has the tables {', '.join(f'`{name}`' for name in tables)}.",
        fix=f"Name the table: `bind({tables[0]}=...)`.",
    )


# --------------------------------------------------------------------------------------- estimators
def no_estimators(error: ImportError) -> Diagnostic:
    """Estimators are those of scikit-learn, from 1.6 on."""
    return PACKAGE.error(
        f"Estimators need scikit-learn 1.6 or later: {error}",
        fix="pip install 'fccomodel[sklearn]'",
    )


def no_editor(error: ImportError) -> Diagnostic:
    """The language server speaks with editors by pygls."""
    return PACKAGE.error(
        f"The language server needs pygls 2 or later: {error}", fix="pip install 'fccomodel[editor]'"
    )


def no_table_for_estimator(features: str, target: str, tables: Sequence[str]) -> Diagnostic:
    """An estimator's model has one table, with a column of features and one of the target."""
    if tables:
        has = f"It has {', '.join(f'`{name}`' for name in tables)}."
    else:
        has = "It has none."
    return ESTIMATOR.error(
        f"The model has no single table with columns `{features}` and `{target}`",
        reason=has,
        fix="Name the columns: FCCOClassifier(model, features=..., target=...).",
    )


def groups_of_estimator(given: Sequence[str], asked: Sequence[str]) -> Diagnostic:
    """An estimator gets the other columns of the model's table by `group`."""
    listed = ", ".join(f"`{name}`" for name in asked)
    if asked:
        asks = f"the model's table has {listed}"
    else:
        asks = "the model's table has no other column"
    if given:
        given_as = f"`group` gives {', '.join(f'`{name}`' for name in given)}"
    else:
        given_as = "`group` is not given"
    fix = "fit(X, y, group=...): the only column, or a mapping of several by their names."
    return ESTIMATOR.error(f"{given_as}; {asks}", fix=fix)


def target_of_classifier(target: str, table: str, values: int, classes: int) -> Diagnostic:
    """A classifier's model has a target of two values, of as many as there are classes, or of labels."""
    if values:
        has = f"has {values} values, and the data have {classes} classes"
    else:
        has = "is no column of classes"
    fix = f"Declare it as {target}: {{-1, 1}}, or as labels that come with the data: set C; ... {target}: C."
    return ESTIMATOR.error(f"`{table}.{target}` {has}", fix=fix)


def ranking_of_classifier(name: str) -> Diagnostic:
    """A classifier's score has a threshold between the classes."""
    return ESTIMATOR.error(
        f"`{name}` ranks rows, and has no threshold between two classes",
        reason="The model takes it in differences of two rows alone, so its zero means nothing.",
        fix="`decision_function(rows)` gives the scores. For classes, "
        "`result_.predict({'x': rows}, threshold=...)` cuts them where you say.",
    )


def score_of_classifier(name: str, classes: int) -> Diagnostic:
    """A classifier of several classes has a score for each."""
    return ESTIMATOR.error(
        f"`{name}` is one number for each row, and there are {classes} classes",
        fix="Score each class, def score(x) = W @ x, with var W[C, d]; or give the target two values, "
        "and each class is solved "
        "against the rest.",
    )
