"""Whether the pages read well: `python .ci/paragraphs.py [PAGE ...]`.

Prints each paragraph of more than 110 words and each sentence of more than 40 words in the README, the
tutorials and the examples, with its page, and exits with status 1 if there is any. Blocks of code are left
out; a cell of a table and an item of a list are paragraphs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST_PARAGRAPH = 110  # words
LONGEST_SENTENCE = 40  # words
CODE = re.compile(r"^\s*```.*?^\s*```", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
#: The end of a sentence: a full stop or the like before a capital letter, code or a bracket.
END = re.compile(r"(?<=[.!?:])[*_)\"]*\s+(?=[A-Z`\[(*\"])")
#: The address of a link.
ADDRESS = re.compile(r"\]\([^)]*\)")


def paragraphs(page: str) -> list[str]:
    """The paragraphs, cells and items of a page in Markdown."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", CODE.sub("\n\n", page)):
        rows = [line for line in block.splitlines() if line.lstrip().startswith("|")]
        words = [line for line in block.splitlines() if not line.lstrip().startswith("|")]
        found += [cell for row in rows for cell in row.strip().strip("|").split(" | ")]
        found += ITEM.split("\n".join(words))
    return found


def words(text: str) -> int:
    """The number of words; a link counts as its text."""
    return len(ADDRESS.sub("]", text).split())


def faults(page: str) -> list[str]:
    """What is too long on a page."""
    found = []
    for paragraph in paragraphs(page):
        beginning = " ".join(paragraph.split())[:60]
        if words(paragraph) > LONGEST_PARAGRAPH:
            found.append(f"a paragraph of {words(paragraph)} words: {beginning} ...")
        for sentence in END.split(paragraph):
            if words(sentence) > LONGEST_SENTENCE:
                beginning = " ".join(sentence.split())[:60]
                found.append(f"a sentence of {words(sentence)} words: {beginning} ...")
    return found


def pages() -> list[Path]:
    """The pages that users read."""
    folders = [*(ROOT / "tutorials").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return [ROOT / "README.md", *sorted(folders)]


def main() -> int:
    """Print the faults; the exit status is 1 if there are any."""
    chosen = [Path(name) for name in sys.argv[1:]] or pages()
    found = [f"{page}: {fault}" for page in chosen for fault in faults(page.read_text(encoding="utf-8"))]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
