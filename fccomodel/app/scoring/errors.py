"""F0814, F0815: what scores of new rows, their coefficients and their export refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.sources.errors import PACKAGE

ROWS = Code("F0814", "new rows")
EXPORT = Code("F0815", "export")


def no_quantity(name: str, known: Sequence[str]) -> Diagnostic:
    """New rows can be evaluated for a `def`, a `let` over rows, or a net of the model."""
    fix = did_you_mean(name, known) or (f"It has {', '.join(f'`{k}`' for k in known)}." if known else "")
    return ROWS.error(f"The model has no `def`, `let` or `net` called `{name}`", fix=fix)


def not_of_a_row(name: str, why: str, *, is_let: bool = False) -> Diagnostic:
    """A quantity can be evaluated at new rows only if it depends on one row alone."""
    if is_let:
        fix = f"`evaluate(result, ..., show=['{name}'])` gives it on other rows as a whole."
    else:
        fix = ""
    return ROWS.error(f"`{name}` has no value at a single row: {why}", fix=fix)


def no_parameter(name: str, given: str, params: Sequence[str]) -> Diagnostic:
    """Columns are given to parameters that a definition has."""
    fix = did_you_mean(given, params) or f"Its parameters are {', '.join(f'`{p}`' for p in params)}."
    return ROWS.error(f"The definition `{name}` has no parameter `{given}`", fix=fix)


def which_columns(name: str, params: Sequence[str], found: Sequence[str]) -> Diagnostic:
    """It must be clear from which columns a definition is computed."""
    arguments = ", ".join(f"{p}='COLUMN'" for p in params)
    if found:
        several = f"the model may mean {' or '.join(found)}"
    else:
        several = "the model never applies it to columns of one row"
    fix = f"Name them, or the table: value('{name}', rows, columns=dict({arguments}), table='TABLE')."
    if len(params) > 1 and not found:
        fix = f"Of pairs of rows give both: value('{name}', rows, others), decision_function(rows, others)."
    return ROWS.error(f"It is not clear from which columns to compute `{name}`: {several}", fix=fix)


def no_pairs(name: str, found: int) -> Diagnostic:
    """Pairs of rows are scored by a definition that the model applies to two rows."""
    if found:
        why = f"the model takes it of {found} kinds of pairs"
    else:
        why = "the model never takes it of two rows"
    return ROWS.error(
        f"It is not clear how to compute `{name}` of pairs of rows: {why}",
        fix=f"Define the score of a pair, `def {name}(u, v) = ...`, and use it once in the model.",
    )


def no_score(found: Sequence[str], known: Sequence[str]) -> Diagnostic:
    """Rows are scored by `score`, or by the only net or linear form of the model."""
    if found:
        several = f"it has {', '.join(f'`{name}`' for name in found)}"
    else:
        several = "it has no net and no linear form of a row"
    own = ", ".join(f'`value("{name}", rows)`' for name in known)
    if known:
        shown = f" Or take one of its own: {own}."
    else:
        shown = ""
    return ROWS.error(
        f"The model does not say what rows are scored by: {several}",
        fix=f"Define `def score(x) = ...`.{shown}",
    )


def which_additions(name: str, found: Sequence[str]) -> Diagnostic:
    """A model must add the same terms to a net or a linear form in all places."""
    shown = " and ".join(f"`{name} {terms}`" if terms else f"`{name}` alone" for terms in found)
    return ROWS.error(
        f"The model does not say what rows are scored by: it has {shown}",
        fix="Define `def score(x) = ...` with all that belongs to the score.",
    )


def scaled_score(name: str, product: str, term: str) -> Diagnostic:
    """A model must add terms to a net or a linear form itself, not to a multiple of it."""
    return ROWS.error(
        f"The model does not say what rows are scored by: it has `{product}` beside `{term}`",
        reason=f"`{term}` is added to a multiple of `{name}`, so that neither alone is the score.",
        fix="Define `def score(x) = ...` with all that belongs to the score.",
    )


def negated_score(name: str, formula: str) -> Diagnostic:
    """A net or a linear form is the score if labels or targets grow with it."""
    return ROWS.error(
        f"The model does not say what rows are scored by: it has `{formula}`",
        reason=f"There it takes minus `{name}`, so that the sign of the score is not clear.",
        fix="Define `def score(x) = ...`, with the sign that belongs to the larger label or target.",
    )


def no_threshold(name: str) -> Diagnostic:
    """A score that the model only compares with other scores has no threshold of its own."""
    return ROWS.error(
        f"`{name}` ranks rows, and has no threshold between two classes",
        reason="The model takes it in differences of two rows alone, so its zero means nothing.",
        fix="`decision_function(rows)` gives the scores, `predict(rows, threshold=...)` cuts them there.",
    )


def no_class(rows: int) -> Diagnostic:
    """A row that is to have a class has a score."""
    return ROWS.error(
        f"{rows} rows have no score, so no class",
        reason='Their values are missing, and the binding says `missing = "drop"`.',
        fix="Leave them out, or fill the gaps.",
    )


def target_of_labels(name: str) -> Diagnostic:
    """Predictions need a column with two numbers, whose order says which is the larger."""
    return ROWS.error(
        f"`{name}` is a column of labels, which have no order",
        reason="A single score tells two values apart: the larger one has the larger scores.",
        fix=f"Declare it as numbers, {name}: {{0, 1}}, and bind it by map = {{ no = 0, yes = 1 }}. "
        "Predictions are in the words of the data.",
    )


def no_target(name: str, found: Sequence[str]) -> Diagnostic:
    """Predictions need a column with two values."""
    fix = did_you_mean(name, found) or (f"There is {', '.join(f'`{c}`' for c in found)}." if found else "")
    return ROWS.error(f"`{name}` is no column of two values beside the score", fix=fix)


def nothing_to_judge_by(table: str) -> Diagnostic:
    """Scores are judged by a column of two values."""
    return ROWS.error(
        f"{table} has no column of two values that scores could be judged by",
        fix="Declare one, as `y: {-1, 1}`.",
    )


def no_groups(name: str, known: Sequence[str]) -> Diagnostic:
    """Rows are divided by a column of labels."""
    fix = did_you_mean(name, known) or (
        f"There is {', '.join(f'`{c}`' for c in known)}." if known else "Leave `by` out."
    )
    return ROWS.error(f"`{name}` is no column of labels", fix=fix)


def which_target(table: str, found: Sequence[str]) -> Diagnostic:
    """It must be clear which column to predict."""
    shown = " and ".join(f"`{name}`" for name in found)
    fix = f"Say which is meant: predict(rows, target='{found[0]}')."
    return ROWS.error(f"{table} has several columns of two values: {shown}", fix=fix)


def no_module(name: str, known: Sequence[str], *, several: bool) -> Diagnostic:
    """A module is a net's with the weights of one variable."""
    if several:
        return ROWS.error(
            f"Several variables are weights of `{name}`",
            fix=f"Name one: {', '.join(f'`{v}`' for v in known)}.",
        )
    fix = did_you_mean(name, known) or ("" if known else "The model has no net.")
    return ROWS.error(f"There is no net `{name}`", fix=fix)


def net_not_stored(name: str) -> Diagnostic:
    """A folder has a net's weights; the module itself it has where the binding named it in words."""
    return ROWS.error(
        f"The module of net `{name}` is not in the folder: it was an object in Python",
        fix=f'Give it: load(DIR, nets={{"{name}": module}}) in Python, --net "{name}=net.py:Net" '
        "--allow-python on a command line.",
    )


def no_export_kind(path: Path, kinds: Sequence[str]) -> Diagnostic:
    """A score is exported in a form that there is."""
    return EXPORT.error(
        f"`{path}` names no form of export",
        fix=f"Let it end in {' or '.join(f'`{kind}`' for kind in kinds)}.",
    )


def no_export(name: str, why: str) -> Diagnostic:
    """Only a score that is a net of a row's vector, or linear in it, can be exported."""
    return EXPORT.error(
        f"The score `{name}` cannot be exported",
        reason=f"{why[0].upper()}{why[1:]}.",
        fix="Define `def score(x) = ...` as a net of x, or linear in x.",
    )


def no_coefficients(name: str, reason: str) -> Diagnostic:
    """Only a linear score has coefficients."""
    return EXPORT.error(
        f"The score `{name}` has no coefficients",
        reason=reason,
        fix="Values of any score at new rows are `result.decision_function(rows)`.",
    )


def no_onnx() -> Diagnostic:
    """ONNX is written by onnxscript."""
    return PACKAGE.error(
        "ONNX cannot be written: onnx or onnxscript is not installed",
        fix="pip install 'fccomodel[onnx]'    (or export to .pt2, which needs torch alone)",
    )
