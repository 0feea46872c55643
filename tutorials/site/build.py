"""Builds the documentation site: ``python tutorials/site/build.py [-o site]``; it needs the extra ``docs`` and no network.

Pages are the documents of the checkout, at their own paths, the sessions of the course, and what is generated of registries,
grammar, examples and golden texts: no page repeats what is known elsewhere. A warning is an error.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

#: What is copied as it stands, with what it links to.
COPIED = ("README.md", "tutorials", "examples", "tests/bench/*.md", "tests/bench/*.py", "fccomodel/algorithms/papers.bib")
SESSION = re.compile(r"\]\((?:\./)?(\d\d_\w+)\.py\)")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "site", help="the folder that it is written to")
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    out = parser.parse_args(arguments).out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), out)
    print(f"{out / 'index.html'}")
    return 0


def build(docs: Path, out: Path) -> None:
    """The pages, in ``docs``, and the site made of them."""
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # of the theme, about versions that are not used here
    from mkdocs.commands import build as mkdocs
    from mkdocs.config import load_config

    copy(docs)
    nav = write(docs)
    config = load_config(str(HERE / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(out))
    named = (HERE / "mkdocs.yml").read_text(encoding="utf-8")
    for folder in ("tutorials/guide", "tests/bench"):
        pages = (path.relative_to(docs).as_posix() for path in sorted((docs / folder).glob("*.md")))
        nav[folder] = [page for page in pages if page not in named]
    config.nav = filled(config.nav, nav)
    config.plugins.on_startup(command="build", dirty=False)
    mkdocs.build(config)
    config.plugins.on_shutdown()


def copy(docs: Path) -> None:
    """The documents and what stands beside them."""
    skipped = shutil.ignore_patterns("site", "__pycache__", ".*")
    for pattern in COPIED:
        for path in sorted(ROOT.glob(pattern)):
            to = docs / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, to, ignore=skipped)
            else:
                shutil.copy(path, to)
    for page in docs.rglob("*.md"):
        page.write_text(SESSION.sub(r"](\1.md)", page.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copy(HERE / "style.css", docs)


def write(docs: Path) -> dict[str, list[Any]]:
    """The generated pages; the sections of the navigation that they make."""
    import benchmarks
    import course
    import gallery
    import reference

    nav = {
        "course": course.write(ROOT / "tutorials" / "course", docs / "tutorials" / "course"),
        "gallery": gallery.write(ROOT, docs / "gallery"),
        "reference": reference.write(ROOT, docs / "reference"),
    }
    benchmarks.write(ROOT / "tests" / "bench", docs / "reference" / "benchmarks.md")
    return nav


def filled(nav: Any, sections: dict[str, list[Any]]) -> Any:
    """The navigation with the generated sections in their places."""
    if isinstance(nav, list):
        lists = (sections[item] if isinstance(item, str) and item in sections else [filled(item, sections)] for item in nav)
        return [item for items in lists for item in items]
    if isinstance(nav, dict):
        return {title: filled(item, sections) for title, item in nav.items()}
    return sections.get(nav, nav)


if __name__ == "__main__":
    sys.exit(main())
