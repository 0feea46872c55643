"""The gallery: the models of ``examples`` with their data, mathematics, and answers.

Answers are solved once and kept beside this file, ``answers/NAME.txt`` and ``.svg``; ``python tutorials/site/gallery.py
[NAME ...]`` solves them again. A test solves the quick ones and compares.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ANSWERS = HERE / "answers"
#: Titles that a file's name does not give.
NAMED = {"neyman_pearson": "Neyman-Pearson"}


def models(root: Path) -> list[Path]:
    """Every model that has a binding beside it."""
    found = [*sorted((root / "examples").glob("*.fcco")), *sorted((root / "examples" / "applications").glob("*.fcco"))]
    return [path for path in found if path.with_suffix(".toml").exists()]


def write(root: Path, to: Path) -> list[Any]:
    """A page for each model and one for all; their part of the navigation."""
    import notebooks
    from markup import page, text

    to.mkdir(parents=True)
    cards, nav = [], []
    for path in models(root):
        about, title = _about(path), _title(path)
        (to / f"{path.stem}.md").write_text(_page(path, root), encoding="utf-8")
        picture, archive = to / f"{path.stem}.svg", to / f"{path.stem}.zip"
        shutil.copy(ANSWERS / picture.name, picture)
        archive.write_bytes(notebooks.archive(path, title, about))
        image = f'<img src="{picture.name}" alt="" loading="lazy">'
        about = text(about.partition(". ")[0].rstrip(".:"))
        cards.append(f'<a href="{path.stem}.html">{image}<strong>{title}</strong><br>{about}.</a>')
        nav.append({title: f"gallery/{path.stem}.md"})
    start = (
        "Models with their data and answers. Each page has a notebook to download, with the model and the data. "
        "`fccomodel new NAME` copies most of them to a folder of yours."
    )
    (to / "index.md").write_text(page("# Gallery", start, f'<div class="gallery">{"".join(cards)}</div>'), encoding="utf-8")
    return nav


def _page(path: Path, root: Path) -> str:
    from markup import aligned, fenced, page, paragraph

    from fccomodel import pipeline
    from fccomodel.app.shown.page import mathematics
    from fccomodel.core import files

    place = path.relative_to(root).with_suffix("")
    problem = pipeline.compile_model(files.read_model(path)).problem
    report, picture = ANSWERS / f"{path.stem}.txt", ANSWERS / f"{path.stem}.svg"
    command = f"fccomodel solve {place}.fcco --bind {place}.toml"
    return page(
        f"# {_title(path)}",
        paragraph(_about(path)),
        f"[Notebook with model and data]({path.stem}.zip){{ .md-button }}",
        aligned(mathematics(problem)),
        "## Model",
        fenced(_without_about(path), "fcco"),
        "## Data",
        fenced(path.with_suffix(".toml").read_text(encoding="utf-8"), "toml"),
        "## Answer",
        fenced(command, "sh"),
        fenced(report.read_text(encoding="utf-8")),
        f'<div class="picture">{picture.read_text(encoding="utf-8").replace(chr(10), " ")}</div>',
        f"Files: [`{path.name}`](../{place}.fcco), [`{path.stem}.toml`](../{place}.toml)",
    )


def _title(path: Path) -> str:
    if path.stem in NAMED:
        return NAMED[path.stem]
    words = re.sub(r"\b(auc|dro)\b", lambda found: found[0].upper(), path.stem.replace("_", " "))
    return words[0].upper() + words[1:]


def _about(path: Path) -> str:
    """The paragraph above the model."""
    return " ".join(line.lstrip("# ") for line in _head(path).splitlines())


def _without_about(path: Path) -> str:
    return path.read_text(encoding="utf-8").removeprefix(_head(path)).lstrip()


def _head(path: Path) -> str:
    found = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
    return found[0] if found else ""


def solve(path: Path) -> None:
    """Solve a model by the defaults, in the checkout's folder, and keep what is printed, and the picture."""
    import fccomodel
    from fccomodel.app.shown.page import svg

    os.chdir(ROOT)
    result = fccomodel.compile(path).bind(spec=path.relative_to(ROOT).with_suffix(".toml")).solve(seed=0)
    ANSWERS.mkdir(exist_ok=True)
    (ANSWERS / f"{path.stem}.txt").write_text("\n".join(line.rstrip() for line in str(result).strip("\n").splitlines()) + "\n")
    picture = result.plot.convergence() if result.plot.has_steps else result.plot.variables()
    (ANSWERS / f"{path.stem}.svg").write_text(svg(picture), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for model in models(ROOT):
        if not sys.argv[1:] or model.stem in sys.argv[1:]:
            solve(model)
