"""A model of the gallery as a notebook, in an archive with its model, binding and data."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

#: The day of every file in the archives, so that the same contents give the same archive.
DAY = (2020, 1, 1, 0, 0, 0)


def archive(model: Path, title: str, about: str) -> bytes:
    """A zip archive of the notebook and of the files that it reads."""
    binding = model.with_suffix(".toml")
    sources = re.findall(r'^source = "(?!\w+:)([^"]+)"', binding.read_text(encoding="utf-8"), re.MULTILINE)
    files = {path: (model.parent / path).read_bytes() for path in (model.name, binding.name, *sources)}
    files[f"{model.stem}.ipynb"] = notebook(model.stem, title, about).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(f"{model.stem}/{name}", DAY), content)
    return buffer.getvalue()


def code_cells(stem: str) -> list[str]:
    """What the notebook runs: the model, its explanation, its answer, pictures, another start."""
    return [
        f'import fccomodel as fc\n\nmodel = fc.compile("{stem}.fcco")\nmodel',
        f'problem = model.bind(spec="{stem}.toml")\nprint(problem.explain())',
        "result = problem.solve(seed=0)\nresult",
        "result.plot()",
    ]


def notebook(stem: str, title: str, about: str) -> str:
    """The notebook as JSON, in the format 4.5 of Jupyter."""
    install = "Needs `pip install 'fccomodel[data,report]'`."
    cells = [{"cell_type": "markdown", "metadata": {}, "id": "about", "source": f"# {title}\n\n{about}\n\n{install}"}]
    for number, code in enumerate(code_cells(stem)):
        cell = {"cell_type": "code", "metadata": {}, "id": f"code-{number}", "source": code}
        cells.append({**cell, "execution_count": None, "outputs": []})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)
