"""Text files with one row per line and the columns' names in the first."""

from __future__ import annotations

from pathlib import Path

from fccomodel.data.sources import frame
from fccomodel.data.sources._base import RawTable, Request, Source, refuse


def _open(path: Path, request: Request) -> RawTable:
    import pandas as pd

    tabs = any(path.name.lower().endswith(end) for end in (".tsv", ".tsv.gz"))
    separator = request.options.get("separator", "\t" if tabs else ",")
    try:
        data = pd.read_csv(path, sep=separator, na_values=request.options.get("na"), low_memory=False)
    except pd.errors.EmptyDataError:
        refuse("F0510", f"{path.name} is empty", fix="give a file with a line of names and at least one row")
    except (pd.errors.ParserError, UnicodeError, OSError, ValueError, EOFError) as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        refuse(
            "F0506",
            f"{path.name} cannot be read as csv: {text}",
            fix='write it as UTF-8 text, or name its separator: separator = ";"',
        )
    if len(data.columns) == 1 and separator == ",":
        other = next((mark for mark in ";\t|" if mark in str(data.columns[0])), None)
        if other is not None:
            shown = {"\t": "\\t"}.get(other, other)  # as TOML writes it
            refuse(
                "F0506",
                f"{path.name} has one column, named {str(data.columns[0])[:60]!r}",
                reason=f'its columns look separated by "{shown}", and a .csv file is read with commas',
                fix=f'write separator = "{shown}" in [{request.name}] of the binding file',
            )
    return frame.from_pandas(data, str(path))


SOURCE = Source(
    name="csv",
    meaning="a csv file",
    open=_open,
    suffixes=(".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    needs=("pandas",),
)
