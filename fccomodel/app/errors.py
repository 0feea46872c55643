"""F0001, F0810 - F0812 and arguments: what the commands and the Python interface refuse."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.errors import ARGUMENT, OUTPUT
from fccomodel.data.sources.errors import PACKAGE

INTERNAL = Code("F0001", "internal")
RESULT = Code("F0810", "result")
PROCESSES = Code("F0812", "processes")
AGAIN = "Solve again, or take the whole folder from where it was kept."


def defect(error: Exception, debug: str) -> Diagnostic:
    """What should not have happened; ``debug`` is the environment variable that shows more."""
    frame = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    place = f" ({Path(frame.filename).name}:{frame.lineno})" if frame else ""
    return INTERNAL.error(
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}{place}",
        reason="This is a defect of fccomodel, not of your model.",
        fix=f"Please report it with the model and its binding; {debug}=1 shows the traceback.",
    )


# ---------------------------------------------------------------------------------------------------------------- arguments
def unknown_concept(kind: str, name: str, known: Sequence[str]) -> Diagnostic:
    """A card is asked for by a name that there is."""
    fix = did_you_mean(name, known) or f"`fccomodel {kind}s` lists them."
    return ARGUMENT.error(f"There is no {kind} `{name}`", fix=fix)


def no_code(code: str, known: Sequence[str]) -> Diagnostic:
    """A code is explained that there is."""
    near = did_you_mean(code, known) or f"Codes run from {known[0]} to {known[-1]}."
    return ARGUMENT.error(f"There is no error with the code {code}", fix=near)


def no_template(name: str, known: Sequence[str]) -> Diagnostic:
    """A model begins with a template that there is."""
    fix = did_you_mean(name, known) or "`fccomodel new` lists them."
    return ARGUMENT.error(f"There is no template `{name}`", fix=fix)


def file_is_there(path: Path) -> Diagnostic:
    """A template is not written over a file."""
    return OUTPUT.error(f"{path} is there already", fix="Name another folder: `fccomodel new TEMPLATE DIR`.")


def contradiction(name: str, value: Any, other: Any) -> Diagnostic:
    """An option that is given twice has one value."""
    return ARGUMENT.error(f"--{name} {value} and --option {name}={other} contradict each other", fix="Give one of them.")


def no_folder_for_plots() -> Diagnostic:
    """Curves are written into a folder."""
    return ARGUMENT.error("--plot has nowhere to write", fix="Name a folder: --out DIR.")


def not_seeds(text: str) -> Diagnostic:
    """Seeds are their number, or a list of them."""
    return ARGUMENT.error(f"--seeds {text} is neither a number nor a list", fix="Write --seeds 5 or --seeds 0,1,7.")


def not_a_share(text: str | None) -> Diagnostic:
    """A share of rows is between 0 and 1."""
    return ARGUMENT.error(f"--validation {text} is no share of the rows", fix="Write a number between 0 and 1.")


def not_a_start(start: Any) -> Diagnostic:
    """A solve starts from a result, a folder of one, or values by name."""
    fix = "Give a result, its folder, or a mapping: start={'w': w0}."
    return ARGUMENT.error(f"A {type(start).__name__} is no start", fix=fix)


def nothing_to_compare() -> Diagnostic:
    """A comparison has algorithms and seeds."""
    return ARGUMENT.error("There is nothing to compare", fix="Name algorithms and seeds: --algorithms sox,sonex --seeds 5.")


def not_a_variant(text: str) -> Diagnostic:
    """Algorithms are compared under their names, each with options of its own."""
    fix = "Write sox, or sox(gamma=0.1, inner_batch=4)."
    return ARGUMENT.error(f"`{text}` does not name an algorithm with its options", fix=fix)


def of_all_runs(name: str, text: str) -> Diagnostic:
    """What makes a comparison fair is the same for all."""
    return ARGUMENT.error(
        f"`{name}` in `{text}` is the same for all runs of a comparison", fix="Give it once, outside the parentheses."
    )


def of_solve_alone(name: str, command: str) -> Diagnostic:
    """What is said of new rows is said of a solve."""
    instead = {
        "compare": "Name the rows to judge by: --test \"split == 'test'\".",
        "emit": "`solve --margin` finds the margins, and --out DIR writes the program with them.",
    }
    return ARGUMENT.error(f"`{name}` is an option of solve, not of {command}", fix=instead[command])


def output_not_written(error: OSError) -> Diagnostic:
    """The system takes what is written on standard output."""
    return OUTPUT.error(f"Cannot write on standard output: {error.strerror}")


def folder_in_use(folder: Path) -> Diagnostic:
    """One process writes into a folder of results."""
    return OUTPUT.error(
        f"Cannot write into `{folder}`: another process is writing its result there", fix="Wait for it, or name another folder."
    )


def folder_for_program(path: Path) -> Diagnostic:
    """A program is written into a file."""
    return OUTPUT.error(f"Cannot write `{path}`: it is a folder", fix=f"Name a file: -o {path / 'solver.py'}")


def no_matplotlib() -> Diagnostic:
    """Curves are drawn by matplotlib."""
    return PACKAGE.error("Curves cannot be drawn: matplotlib is not installed", fix="pip install 'fccomodel[plot]'")


def no_page(package: str) -> Diagnostic:
    """Pages are made by jinja2, latex2mathml and matplotlib."""
    return PACKAGE.error(f"A page cannot be made: {package} is not installed", fix="pip install 'fccomodel[report]'")


# -------------------------------------------------------------------------------------------------------------- comparisons
def data_not_sent(error: Exception) -> Diagnostic:
    """Data for several processes can be pickled."""
    return PROCESSES.error(f"The data cannot be sent to other processes: {error}", fix="Bind files or arrays, or use jobs = 1.")


def process_ended() -> Diagnostic:
    """The processes of a comparison live until its end."""
    return PROCESSES.error(
        "A process of the comparison ended by itself", reason="Often the memory is short.", fix="Use fewer processes: --jobs 1."
    )


# ------------------------------------------------------------------------------------------------------------------ results
def no_result_folder(folder: Path) -> Diagnostic:
    """A result is a folder."""
    return RESULT.error(f"`{folder}` is not a folder", fix="Name the folder that `solve --out` wrote.")


def not_a_result(path: Path, error: Exception) -> Diagnostic:
    """A result holds what a solve wrote."""
    return RESULT.error(f"`{path}` is not the result of a solve: {type(error).__name__} {error}")


def format_of_result(path: Path, written: Any, supported: Any) -> Diagnostic:
    """A result has this version's format."""
    return RESULT.error(f"`{path}` has format {written}; this version reads format {supported}")


def changed_record(path: Path) -> Diagnostic:
    """A result is read as it was written."""
    return RESULT.error(f"`{path}` is damaged, or was changed after it was written", fix=AGAIN)


def mixed_folder(path: Path, record: Path) -> Diagnostic:
    """The files of a result are those that were written together."""
    return RESULT.error(f"`{path}` is not the file that was written with `{record}`", reason="Its SHA-256 is another.", fix=AGAIN)


def other_model(path: Path, stored: Any, read: str, version: Any) -> Diagnostic:
    """A result's model is the one that was solved."""
    return RESULT.error(
        f"`{path}`: the model's text now reads as another model ({read}) than the one that was solved ({stored})",
        reason=f"fccomodel {version} wrote it.",
        fix=AGAIN,
    )


def unreadable_variables(path: Path, error: Exception) -> Diagnostic:
    """The variables of a result can be read."""
    return RESULT.error(f"`{path}` cannot be read: {error}")


def variable_not_stored(path: Path, name: str) -> Diagnostic:
    """A result has every variable of its model."""
    return RESULT.error(f"`{path}` has no `{name}`", reason=f"The model declares `var {name}`.")


def stored_shape(name: str, solved: tuple[int, ...], asked: tuple[int | None, ...]) -> Diagnostic:
    """A stored variable has the size that the data ask for."""
    return RESULT.error(
        f"`{name}` was solved with shape {solved}, and this data gives it {asked}",
        fix="Bind data with the same features.",
    )
