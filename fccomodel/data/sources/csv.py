"""Text files with one row per line and the columns' names in the first."""

from __future__ import annotations

from pathlib import Path

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources._base import DataSource, RawTable, Request


def _open(path: Path, request: Request) -> RawTable:
    import pandas as pd

    tabs = any(path.name.lower().endswith(end) for end in (".tsv", ".tsv.gz"))
    separator = request.options.get("separator", "\t" if tabs else ",")
    try:
        data = pd.read_csv(path, sep=separator, na_values=request.options.get("na"), low_memory=False)
    except pd.errors.EmptyDataError:
        refuse(errors.empty_file(path.name))
    except (pd.errors.ParserError, UnicodeError, OSError, ValueError, EOFError) as error:
        refuse(errors.not_csv(path.name, error))
    if len(data.columns) == 1 and separator == ",":
        likely = next((mark for mark in ";\t|" if mark in str(data.columns[0])), None)
        if likely is not None:
            refuse(errors.other_separator(path.name, str(data.columns[0]), likely, request.name))
    return frame.from_pandas(data, str(path))


SOURCE = DataSource(
    name="csv",
    meaning="a csv file",
    open=_open,
    suffixes=(".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    needs=("pandas",),
)
