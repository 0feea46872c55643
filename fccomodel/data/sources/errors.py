"""F0505 - F0508, F0510, F0515, F0529, F0534, F0535, F0537, F0538: data that cannot be opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from fccomodel.core.arrays import NotArrays, Objects, TooLarge
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean

FILE = Code("F0505", "data file")
UNREADABLE = Code("F0506", "unreadable")
NOT_A_TABLE = Code("F0507", "not a table")
COLUMN = Code("F0508", "missing column")
NO_ROWS = Code("F0510", "no rows")
SHAPE = Code("F0515", "data shape")
PACKAGE = Code("F0529", "package missing")
DAMAGED = Code("F0534", "prepared folder damaged")
OUTDATED = Code("F0535", "prepared data outdated")
OUTSIDE = Code("F0537", "outside of the binding")
QUERY = Code("F0538", "not one query")


def first_line(error: Exception) -> str:
    """The first line of an exception's message, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# -------------------------------------------------------------------------------------------- files
def zero_character() -> Diagnostic:
    """A file's name is one that the system takes."""
    return FILE.error("a file's name cannot hold a zero character", fix="write the file's name")


def unreadable_path(text: str, error: Exception) -> Diagnostic:
    """The system knows what a path means."""
    if len(text) <= 80:
        shown = text
    else:
        shown = f"{text[:77]}..."
    return FILE.error(f"{shown} is no path: {first_line(error)}", fix="give the path of a file that is there")


def folder_as_file(folder: Path) -> Diagnostic:
    """Data are in a file, not a folder."""
    return FILE.error(f"{folder} is a folder, not a file", fix="name a file in it")


def no_regular_file(path: Path) -> Diagnostic:
    """Data are in a file on a disk, not in a device or a pipe."""
    return FILE.error(
        f"{path} is a device, a pipe or a socket, not a file",
        reason="a file is read more than once, and has an end",
        fix="write what it gives to a file, then name that",
    )


def no_file(name: str, folders: Iterable[Path], near: Collection[str]) -> Diagnostic:
    """A file is in one of ``folders``; ``near`` are the files that are there."""
    where = " or ".join(dict.fromkeys(str(folder.absolute()) for folder in folders))
    return FILE.error(
        f"there is no file {name} in {where}",
        reason="a relative path is looked for in --data-dir, beside the binding file, and in the working "
        "folder, in this order",
        fix=did_you_mean(name, near)
        or "give the path of a file that is there, or the folder with --data-dir",
    )


def no_matching_file(pattern: str, folders: Iterable[Path]) -> Diagnostic:
    """A pattern means at least one file."""
    where = " or ".join(dict.fromkeys(str(folder.absolute()) for folder in folders))
    return FILE.error(
        f"no file matches {pattern} in {where}",
        reason="`*` stands for any characters of a name and `?` for one; the files are read in the order "
        "of their names",
        fix="write the pattern as the files are named, or give the folder with --data-dir",
    )


def pattern_of_all_folders(pattern: str) -> Diagnostic:
    """A pattern says how deep it looks."""
    return FILE.error(
        f"{pattern} would look through all folders",
        reason="`*` and `?` stand for characters of one name; `**` has no meaning here",
        fix="write one `*` for each folder: shards/*/part-*.parquet",
    )


def pattern_too_wide(pattern: str, limit: int) -> Diagnostic:
    """A pattern of file names must not search too many files."""
    return FILE.error(
        f"{pattern} looks at more than {limit:,} files and folders",
        fix="name the folders, and use wildcards for files alone",
    )


def outside_of_binding(who: str, path: Path, places: Iterable[Path], table: str) -> Diagnostic:
    """Patterns and queries read below the folders of the binding, and what it names."""
    return OUTSIDE.error(
        f"{who} reaches {path}",
        reason="a pattern or a query reads only below --data-dir, the binding file's folder and what "
        "`files` names, and follows "
        "a link only to such a file; here these are\n" + "\n".join(dict.fromkeys(map(str, places))),
        fix=f'if it is meant, name it, or a folder above it, in the binding: [{table}] files = ["{path}"]',
    )


def no_data_set(name: str, data_sets: Sequence[str]) -> Diagnostic:
    """A data set of scikit-learn is one that it comes with."""
    fix = did_you_mean(name, data_sets) or f"use one of {', '.join(data_sets)}"
    return FILE.error(f"scikit-learn comes with no data set named {name or 'that'}", fix=fix)


def unknown_suffix(name: str, suffixes: Iterable[str]) -> Diagnostic:
    """The end of a file's name says how it is read."""
    return UNREADABLE.error(
        f"{name} ends in none of {', '.join(sorted(suffixes))}",
        reason="the end of a file's name says how it is read",
        fix="convert it, or read it in Python and bind the arrays",
    )


def not_installed(meaning: str, error: ImportError) -> Diagnostic:
    """The package that reads a kind of data is installed."""
    package = {"sklearn": "scikit-learn", "PIL": "pillow"}.get(error.name or "", error.name or "a package")
    return PACKAGE.error(
        f"{meaning} cannot be read here: {package} is not installed",
        fix=f"pip install {package}    (or bind arrays or an .npz file, which need nothing else)",
    )


# ---------------------------------------------------------------------------------- files of a kind
def empty_file(name: str) -> Diagnostic:
    """A csv file has a line of names and rows."""
    return NO_ROWS.error(f"{name} is empty", fix="give a file with a line of names and at least one row")


def not_csv(name: str, error: Exception) -> Diagnostic:
    """A csv file is text with one separator."""
    return UNREADABLE.error(
        f"{name} cannot be read as csv: {first_line(error)}",
        fix='write it as UTF-8 text, or name its separator: separator = ";"',
    )


def other_separator(name: str, column: str, mark: str, table: str) -> Diagnostic:
    """The columns of a csv file are separated by commas, unless the binding says otherwise."""
    shown = {"\t": "\\t"}.get(mark, mark)  # as TOML writes it
    return UNREADABLE.error(
        f"{name} has one column, named {column[:60]!r}",
        reason=f'its columns look separated by "{shown}", and a .csv file is read with commas',
        fix=f'write separator = "{shown}" in [{table}] of the binding file',
    )


def line_too_long(name: str, limit: int) -> Diagnostic:
    """The lines of a csv file are rows."""
    return UNREADABLE.error(
        f"{name} has a line of more than {limit / 1e6:,.0f} MB",
        fix="write one row a line, as text; or give the right file",
    )


def csv_too_large(name: str, cells: int, available: int) -> Diagnostic:
    """A csv file that is bound has room in memory."""
    return UNREADABLE.error(
        f"{name} does not fit memory: it has more than {cells / 1e6:,.1f} million cells, and "
        f"{available / 1e9:,.1f} GB are free",
        fix="prepare it, which reads it in parts: fccomodel prepare BIND --out DIR",
    )


def column_too_large(name: str, column: str, rows: int, available: int) -> Diagnostic:
    """A column of a parquet file that is bound has room in memory."""
    return UNREADABLE.error(
        f"{name}: column {column} does not fit memory: it has {rows:,} rows, and {available / 1e9:,.1f} "
        "GB are free",
        fix="prepare it, which reads it in parts: fccomodel prepare BIND --out DIR",
    )


def not_parquet(name: str, error: Exception) -> Diagnostic:
    """A parquet file is one."""
    return UNREADABLE.error(
        f"{name} cannot be read as parquet: {first_line(error)}",
        fix="write the file again, or give the right one",
    )


def unreadable_column(name: str, column: str, error: Exception) -> Diagnostic:
    """A column of a parquet file is whole."""
    return UNREADABLE.error(
        f"{name}: column {column} cannot be read: {first_line(error)}", fix="write the file again"
    )


def not_npz(name: str, error: NotArrays) -> Diagnostic:
    """A NumPy file holds plain arrays that are as large as it says, and fit memory."""
    if isinstance(error, Objects):
        return UNREADABLE.error(
            f"{name} is no NumPy file, or holds Python objects",
            reason="objects in NumPy files are pickled, and loading a pickle runs code",
            fix="store plain arrays with numpy.savez",
        )
    if isinstance(error, TooLarge):
        return UNREADABLE.error(
            f"{name} does not fit memory: {error}",
            fix="store its columns in a parquet file and prepare that: fccomodel prepare BIND --out DIR",
        )
    return UNREADABLE.error(
        f"{name} cannot be read: {error}", fix="write the file again, or give the right one"
    )


def no_array_of_name(name: str, array: str, arrays: Iterable[str]) -> Diagnostic:
    """A NumPy file of several arrays has one of the model's name."""
    return COLUMN.error(
        f"{name} has no array named {array}; it has {', '.join(sorted(arrays))}", fix="rename the array"
    )


def repeated_column(what: str, name: str) -> Diagnostic:
    """A name means one column."""
    return UNREADABLE.error(
        f"{what} has several columns named {name}", fix="rename them, so that each name means one column"
    )


def _quoted(query: str) -> str:
    return f"the query is: {query if len(query) <= 200 else query[:197] + '...'}"


def not_a_query(query: str, error: Exception) -> Diagnostic:
    """A query is SQL that DuckDB answers."""
    return UNREADABLE.error(
        f"DuckDB does not answer this query: {first_line(error)}",
        reason=_quoted(query),
        fix="run the query in DuckDB itself; files are named in quotes: duckdb:SELECT * FROM 'train.parquet'",
    )


def not_one_select(query: str, kinds: Sequence[str]) -> Diagnostic:
    """A query is one SELECT statement."""
    if len(kinds) != 1:
        what = f"{len(kinds)} statements ({', '.join(kinds[:5])})"
    else:
        what = f"a statement of type {kinds[0]}"
    return QUERY.error(
        f"the query has {what}, not one SELECT",
        reason=f"a query only reads; {_quoted(query)}",
        fix="write one SELECT statement; run all others in DuckDB itself, and name the files or the "
        "database that they write",
    )


def query_outside(query: str, error: Exception) -> Diagnostic:
    """A query reads the files that it names in quotes."""
    return OUTSIDE.error(
        f"DuckDB may not do this: {first_line(error)}",
        reason="a query reads the files whose names stand in quotes after FROM or in a reading function, "
        "below the binding "
        "file's folder, --data-dir and what `files` names; nothing is written, loaded or "
        f"downloaded; {_quoted(query)}",
        fix="write the file's name in quotes: duckdb:SELECT * FROM 'train.parquet'",
    )


def not_a_database(path: Path, error: Exception) -> Diagnostic:
    """A file that ends in .duckdb or .db is a database."""
    return UNREADABLE.error(
        f"{path.name} cannot be opened as a database of DuckDB: {first_line(error)}",
        fix="give a database that this version of DuckDB reads, and that no other program has open for "
        "writing",
    )


# --------------------------------------------------------------------------------- prepared folders
def damaged(folder: Path, name: str) -> Diagnostic:
    """The files of a prepared folder are as they were written."""
    return DAMAGED.error(
        f"{folder}: {name} is not as it was written",
        reason="its size and its bytes are compared with what the manifest says of them",
        fix=f"prepare the data again: fccomodel prepare BIND --out {folder}",
    )


def outdated(folder: Path, name: str) -> Diagnostic:
    """A prepared folder is of the data as they are."""
    return OUTDATED.error(
        f"{folder} was prepared before {name} changed",
        reason="the file has other bytes than when it was prepared",
        fix=f"prepare the data again: fccomodel prepare BIND --out {folder}",
    )


def not_prepared(folder: Path, name: str, tables: Collection[str]) -> Diagnostic:
    """A prepared folder has a table of the model's name."""
    message = f"{folder} has no table {name}; it has {', '.join(tables)}"
    return COLUMN.error(message, fix="prepare it with the binding that has it")


# ------------------------------------------------------------------------------------ kinds of data
def not_a_table(name: str, value: object) -> Diagnostic:
    """A table is bound to something that a source opens."""
    return NOT_A_TABLE.error(
        f"{name}: a {type(value).__qualname__} is not a table",
        fix="give a DataFrame, a dict of arrays or tensors, a torch Dataset, or a path",
    )


def not_an_array(name: str, meaning: str) -> Diagnostic:
    """An array without rows comes from a source that has such arrays."""
    return NOT_A_TABLE.error(
        f"{name}: {meaning} is not an array", fix="give a NumPy array, a tensor, numbers, or an .npz file"
    )


def not_array_like(what: str, error: Exception) -> Diagnostic:
    """A column in memory is an array, a tensor or lists of one length."""
    return NOT_A_TABLE.error(
        f"{what} is not an array: {error}", fix="give a NumPy array, a tensor, or lists of one length"
    )


def address(value: str | Path) -> Diagnostic:
    """Data are never downloaded: a source must be a local file."""
    return NOT_A_TABLE.error(
        f"{value} is an address",
        reason="nothing is downloaded while binding",
        fix="download it, then give the file",
    )


def unknown_scheme(scheme: str, schemes: Collection[str]) -> Diagnostic:
    """The word before a colon is a kind of data."""
    return NOT_A_TABLE.error(
        f"{scheme}: is not a kind of data",
        fix=did_you_mean(scheme, schemes)
        or f"{', '.join(f'{s}:NAME' for s in sorted(schemes))} or a path are understood",
    )


def parts_of_a_tuple(name: str, count: int, fields: Sequence[str]) -> Diagnostic:
    """A tuple has one part for each column of the table."""
    return NOT_A_TABLE.error(
        f"{name}: {count} array{'s' * (count != 1)} for {len(fields)} columns",
        reason=f"the parts of a tuple are the table's columns in the order of the model: {', '.join(fields)}",
        fix=f"give ({', '.join(fields)}{',' * (len(fields) == 1)}), or a dict of arrays by name",
    )


def parts_of_an_item(name: str, origin: str, count: int, fields: Sequence[str]) -> Diagnostic:
    """An item of a Dataset has one part for each column of the table."""
    return NOT_A_TABLE.error(
        f"{name}: an item of {origin} has {count} parts for {len(fields)} columns",
        reason=f"the parts of an item are the table's columns in the order of the model: {', '.join(fields)}",
        fix="let the Dataset return a dict by the columns' names",
    )


def no_length(name: str, origin: str) -> Diagnostic:
    """The rows of a Dataset are counted and visited again."""
    return NOT_A_TABLE.error(
        f"{name}: {origin} has no length",
        reason="the rows of a table are counted and visited again, which a stream of items does not allow",
        fix="give a Dataset with __len__ and __getitem__, or arrays",
    )


# ---------------------------------------------------------------------------------- rows and shapes
def no_items(name: str, origin: str) -> Diagnostic:
    """A Dataset has items."""
    return NO_ROWS.error(f"{name}: {origin} has no items", fix="give a Dataset with at least one item")


def no_columns(origin: str) -> Diagnostic:
    """Arrays of a table are some."""
    return NO_ROWS.error(f"{origin} hold no columns", fix="give one array for each column of the table")


def single_value(name: str) -> Diagnostic:
    """A column has one value for each row."""
    return SHAPE.error(
        f"{name} is a single value, not a column", fix="give an array with one value for each row"
    )


def lengths(by_name: Mapping[str, int]) -> Diagnostic:
    """The columns of a table have one length."""
    listed = ", ".join(f"{name} {length}" for name, length in by_name.items())
    return SHAPE.error(
        f"the columns have different numbers of rows: {listed}", fix="give arrays with equal first axes"
    )


def shape_of_item(name: str, row: int, shape: tuple[int, ...], first: tuple[int, ...]) -> Diagnostic:
    """The items of a Dataset have one shape."""
    return SHAPE.error(
        f"{name}: item {row} has shape {shape}, item 0 has {first}",
        fix="let the Dataset return items of one shape",
    )


# ------------------------------------------------------------------------------ rows that are drawn
def no_images(folder: Path, suffixes: Sequence[str]) -> Diagnostic:
    """A folder of images has image files."""
    return NO_ROWS.error(
        f"{folder} has no images",
        reason="a folder of images has a folder for each class, with files that end in "
        f"{', '.join(suffixes)}",
        fix="give the folder above the folders of the classes",
    )


def not_an_image(file: Path, error: Exception) -> Diagnostic:
    """An image file is one that Pillow reads."""
    return UNREADABLE.error(
        f"{file.name} cannot be read as an image: {first_line(error)}",
        fix="leave it out of the folder, or write it again",
    )


def a_loader(name: str) -> Diagnostic:
    """Rows have numbers; the batches of a loader have none."""
    return NOT_A_TABLE.error(
        f"{name}: a DataLoader is not a table",
        reason="estimates belong to rows, so rows need numbers; a loader gives batches without them",
        fix="give its dataset, `loader.dataset`, and `workers=4` to fetch rows in other processes",
    )


def row_not_numeric(name: str, kind: str) -> Diagnostic:
    """Rows that nets read are numbers."""
    return NOT_A_TABLE.error(
        f"{name}: a {kind} is not numbers",
        fix=f'turn it into a tensor: transform={{"{name}": f}}, eval_transform={{"{name}": f}}',
    )
