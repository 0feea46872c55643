"""Builds the documentation site: ``python tutorials/site/build.py [-o site]``; it needs the extra ``docs`` and no network.

Pages are the documents of the checkout, at their own paths, the sessions of the course, and what is generated of registries,
grammar, examples and golden texts: no page repeats what is known elsewhere. A warning is an error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

#: What is copied as it stands, with what it links to.
COPIED = ("README.md", "tutorials", "examples", "tests/bench/*.md", "tests/bench/*.py", "fccomodel/algorithms/papers.bib", "fccomodel/LICENSE", "fccomodel/CITATION.cff")
SESSION = re.compile(r"\]\((?:\./)?(\d\d_\w+)\.py\)")

#: A program and the model that stands for it.
PAIR = re.compile(r"^```python\n(?:(?!^```).*\n)*```\n\n```fcco\n(?:(?!^```).*\n)*```$", re.MULTILINE)
BESIDE = '<div class="beside" markdown>\n\n\\g<0>\n\n</div>'
WHOLE_WIDTH = "---\nhide: [navigation, toc]\n---\n\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "site", help="the folder that it is written to")
    out = parser.parse_args(arguments).out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), out)
    print(f"{out / 'index.html'}")
    return 0


def build(work: Path, out: Path) -> None:
    """Writes the pages below ``work``, and the site made of them to ``out``.

    Raises:
        SystemExit: a page is missing from the navigation, or Zensical warns, for example of a link that leads nowhere.
    """
    import yaml
    import zensical

    docs = work / "docs"
    copy(docs)
    sections = write(docs)
    written = (HERE / "site.yml").read_text(encoding="utf-8")
    for folder in ("tutorials/guide", "tests/bench"):
        pages = (path.relative_to(docs).as_posix() for path in sorted((docs / folder).glob("*.md")))
        sections[folder] = [page for page in pages if page not in written]
    for page in docs.rglob("*.md"):
        page.write_text(side_by_side(page.read_text(encoding="utf-8")), encoding="utf-8")

    settings = yaml.safe_load(written)
    settings["nav"] = filled(settings["nav"], sections)
    missing = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - set(named(settings["nav"]))
    if missing:
        raise SystemExit(f"pages that the navigation does not name: {', '.join(sorted(missing))}")
    shutil.copytree(HERE / "theme", work / "theme")
    (work / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    zensical.build(str(work / "mkdocs.yml"), {"clean": True, "strict": True})
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(work / "site", out)


def copy(docs: Path) -> None:
    """Copies the documents and what stands beside them."""
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
    for asset in ("style.css", "file_worker.js"):
        shutil.copy(HERE / asset, docs)


def write(docs: Path) -> dict[str, list[Any]]:
    """Writes the generated pages; returns the sections of the navigation that they make."""
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


def side_by_side(page: str) -> str:
    """The page with each program and the model that follows it side by side, over the width of the page."""
    beside, count = PAIR.subn(BESIDE, page)
    return WHOLE_WIDTH + beside if count else page


def filled(nav: Any, sections: dict[str, list[Any]]) -> Any:
    """The navigation with the generated sections in their places."""
    if isinstance(nav, list):
        lists = (sections[item] if isinstance(item, str) and item in sections else [filled(item, sections)] for item in nav)
        return [item for items in lists for item in items]
    if isinstance(nav, dict):
        return {title: filled(item, sections) for title, item in nav.items()}
    return sections.get(nav, nav)


def named(nav: Any) -> Iterator[str]:
    """The pages that the navigation names."""
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from named(item)


if __name__ == "__main__":
    sys.exit(main())
