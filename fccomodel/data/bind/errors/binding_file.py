"""F0501 - F0503, F0518: what a binding file says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.bind.errors import words
from fccomodel.data.bind.errors.demands import UNKNOWN_NAME
from fccomodel.data.sources.errors import first_line

BINDING_FILE = Code("F0501", "binding file")
UNKNOWN_KEY = Code("F0502", "unknown key")
VALUE = Code("F0503", "binding value")


# ----------------------------------------------------------------------------------------- the file
def unreadable(name: str, error: Exception) -> Diagnostic:
    """A binding file is UTF-8 text."""
    return BINDING_FILE.error(
        f"{name} cannot be read: {first_line(error)}", fix="write the binding file as UTF-8 text"
    )


def not_toml(place: str, message: str) -> Diagnostic:
    """A binding file is TOML."""
    return BINDING_FILE.error(
        f"{place}: {message}",
        reason="the binding file is TOML",
        fix="text is in quotes; a section's name is in [ ]",
    )


def too_long(name: str, size: int, limit: int) -> Diagnostic:
    """A binding file is written by a person; data are in files of their own."""
    return BINDING_FILE.error(
        f"{name} has {size / 1e6:,.0f} MB, and a binding file has at most {limit / 1e6:,.0f} MB",
        fix="store its arrays in an .npz file, and name that",
    )


def nested_too_deeply(name: str) -> Diagnostic:
    """A binding file has sections and inline tables."""
    return BINDING_FILE.error(
        f"{name} is nested too deeply", fix="a binding file has sections and inline tables, nothing deeper"
    )


# ----------------------------------------------------------------------------------------- sections
def not_a_mapping(what: str, given: object) -> Diagnostic:
    """Values that are given by name are a mapping from names."""
    return VALUE.error(
        f"{what} is {words.value(given)}, no mapping", fix=f"give values by name: {what} {{name: value}}"
    )


def named_twice(what: str, name: str) -> Diagnostic:
    """A mapping has no two keys with one text, such as ``1`` and ``"1"``."""
    return VALUE.error(f"{what} has two keys that read {name}", fix="leave one of them out")


def _of_model(kind: str, names: Collection[str]) -> str:
    if names:
        return f"the model's {kind} are {', '.join(names)}"
    return f"the model declares no {kind}"


def undeclared(section: str, name: str, declared: Collection[str]) -> Diagnostic:
    """A section of params, nets, sets or dims names what the model declares."""
    return UNKNOWN_NAME.error(
        f"the model declares no {section[:-1]} named {name}",
        fix=did_you_mean(name, declared) or _of_model(section, declared),
    )


def unknown_section(name: str, value: Any, sections: Sequence[str], data: Sequence[str]) -> Diagnostic:
    """Section names must be tables or arrays of the model, or one of a few fixed names."""
    if isinstance(value, Mapping):
        kind = f"[{name}]"
    else:
        kind = name
    return UNKNOWN_KEY.error(
        f"{kind} is neither a table nor an array of the model, nor one of {', '.join(sections)}",
        fix=did_you_mean(name, [*data, *sections]) or _of_model("tables", data),
    )


def not_a_section(name: str, *, table: bool) -> Diagnostic:
    """Sections have settings; a table's may be a path."""
    if table:
        what = 'section with `source = "..."`, or a path'
    else:
        what = "TOML section"
    return VALUE.error(f"{name} must be a {what}", fix=f"write [{name}] on a line of its own")


def unknown_key(
    section: str, key: str, columns: Sequence[str], settings: Sequence[str], allowed: Sequence[str]
) -> Diagnostic:
    """A table's section has its columns and a few settings; ``allowed`` are those of this table."""
    return UNKNOWN_KEY.error(
        f"[{section}] has no column and no setting named {key}",
        fix=did_you_mean(key, allowed)
        or f"the table's columns are {', '.join(columns) or 'in its own section'}; the settings "
        f"{', '.join(settings)}",
    )


def unknown_setting(of: str, key: str, settings: Sequence[str], what: str) -> Diagnostic:
    """An entry or an array has a few settings; ``what`` calls them."""
    fix = did_you_mean(key, settings) or f"{what} are {', '.join(settings)}"
    return UNKNOWN_KEY.error(f"{of} has no setting named {key}", fix=fix)


def not_labels(name: str) -> Diagnostic:
    """The labels of a set whose labels come with the data are a list."""
    reason = "each label once, and only for a set whose labels come with the data (`set G;`)"
    return VALUE.error(f"{name} must be a list of labels", reason=reason, fix=f'{name} = ["a", "b"]')


def not_a_size(name: str) -> Diagnostic:
    """A dim is a whole number above 0."""
    return VALUE.error(f"dim {name} must be a whole number above 0", fix=f"{name} = 10")


# ------------------------------------------------------------------------------ settings of a table
def missing(value: Any) -> Diagnostic:
    """Rows with missing values are an error or are dropped."""
    return VALUE.error(
        f"missing = {words.value(value)} is not known",
        fix='missing = "drop" leaves out rows with missing values; "error" is the default',
    )


def na() -> Diagnostic:
    """Texts that stand for a missing value are a list."""
    return VALUE.error("na must be a list of texts that stand for a missing value", fix='na = ["?"]')


def files() -> Diagnostic:
    """Files and folders that patterns and queries may read are a list of paths."""
    return VALUE.error("files must be a list of paths", fix='files = ["../shards"]')


def separator() -> Diagnostic:
    """A separator is one character."""
    return VALUE.error("separator must be one character", fix='separator = ";"')


def where() -> Diagnostic:
    """A condition is a text."""
    return VALUE.error("where must be a condition in quotes", fix="where = \"split == 'train'\"")


def source() -> Diagnostic:
    """A source is a path, or a text such as ``sklearn:iris``."""
    return VALUE.error(
        "source must be a path in quotes", fix='source = "train.parquet", or source = "sklearn:breast_cancer"'
    )


# ------------------------------------------------------------------------------------------ entries
def no_columns(name: str) -> Diagnostic:
    """An entry names its columns."""
    return VALUE.error(
        f"{name} must say its columns", fix=f'{name.rpartition(".")[2]} = {{ column = "name" }}'
    )


def column_and_columns(name: str, *, both: bool) -> Diagnostic:
    """An entry has ``column`` or ``columns``."""
    return VALUE.error(
        f"{name} has {'both column and columns' if both else 'neither column nor columns'}",
        fix='column = "name" for one, columns = ["a", "b"] or columns = "*" for several',
    )


def column(name: str) -> Diagnostic:
    """``column`` is a name."""
    return VALUE.error(f"{name}: column must be a name in quotes", fix='column = "name"')


def columns(name: str) -> Diagnostic:
    """``columns`` are different names."""
    return VALUE.error(
        f"{name}: columns must be a list of different names", fix='columns = ["a", "b"], or columns = "*"'
    )


def encode(name: str, value: Any) -> Diagnostic:
    """The encoding of texts has one possible value."""
    return VALUE.error(f"{name}: encode = {words.value(value)} is not known", fix='encode = "onehot"')


def scale(name: str, value: Any) -> Diagnostic:
    """The scaling has one possible value."""
    return VALUE.error(f"{name}: scale = {words.value(value)} is not known", fix='scale = "standard"')


def intercept(name: str) -> Diagnostic:
    """The setting for a column of ones is true or false."""
    return VALUE.error(f"{name}: intercept must be true or false", fix="intercept = true")


def min_rows(name: str) -> Diagnostic:
    """The least number of a group's rows is a whole number."""
    return VALUE.error(f"{name}: min_rows must be a whole number", fix="min_rows = 50")


def empty_map(name: str) -> Diagnostic:
    """A map lists values."""
    return VALUE.error(f"{name}: map must list values", fix='map = { "no" = 0, "yes" = 1 }')


def values_of_map(name: str) -> Diagnostic:
    """A map gives numbers or labels."""
    return VALUE.error(f"{name}: map must give numbers or labels", fix='map = { "no" = 0, "yes" = 1 }')


def map_of_columns(name: str) -> Diagnostic:
    """A map is of one column."""
    return VALUE.error(f"{name}: map is for one column", fix='map = {..} goes with column = "name"')


def excepted(name: str) -> Diagnostic:
    """The columns that are left out are a list of names."""
    return VALUE.error(f"{name}: except must be a list of names", fix='except = ["id"]')


def except_of_some(name: str) -> Diagnostic:
    """Columns are left out of all of them."""
    return VALUE.error(
        f'{name}: except goes with columns = "*"', fix="leave the names out of columns instead"
    )


# ------------------------------------------------------------------ entries and the model's columns
def entry_of_label(what: str, name: str) -> Diagnostic:
    """A label is made of columns as they are."""
    fix = f'{name} = {{ column = "..." }}, or columns = [...] for a combined key'
    return VALUE.error(f'{what} is a label: it takes no "*", encode, scale or intercept', fix=fix)


def min_rows_of_number(what: str) -> Diagnostic:
    """Small groups are those of a label."""
    return VALUE.error(
        f"{what} is a number: min_rows is for labels", fix="put min_rows on the column that holds the groups"
    )


def entry_of_number(what: str, name: str) -> Diagnostic:
    """A number per row is one column."""
    fix = f'{name} = {{ column = "..." }}, or declare {name}: real[d]'
    return VALUE.error(
        f"{what} is one number per row: it takes one column, without encode and intercept", fix=fix
    )


def map_of_vector(what: str) -> Diagnostic:
    """A map is for one number per row."""
    return VALUE.error(
        f"{what} is a vector: map is for one number per row", fix='encode = "onehot" makes numbers of texts'
    )


def map_of_number(what: str) -> Diagnostic:
    """A number's map gives numbers."""
    return VALUE.error(
        f"{what}: map must give numbers", reason=f"{what} is a number", fix='map = { "no" = 0, "yes" = 1 }'
    )
