"""Two records of ``replay.py`` side by side: which runs differ, in what, and where first."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "replay.txt"  # the file that makes a folder a record
#: parts of a run by what they are; what is not here is text
PARTS = {
    "values.json": "values",
    "report.json": "report",
    "data.json": "data",
    "error.txt": "error",
    "inputs.json": "inputs",
}
PARTS |= {"program.py": "program", "explain.txt": "explain", "explain.json": "explain", "why.txt": "explain"}
TEXTS = {"program", "explain", "text"}


def runs(folder: Path, only: str) -> dict[str, Path]:
    """The folders of a record's runs."""
    if not (folder / MARK).is_file():
        raise SystemExit(f"{folder} is no record")
    found = {path.parent for path in folder.rglob("*") if path.is_file() and path.parent != folder}
    return {name: path for path in sorted(found) if only in (name := str(path.relative_to(folder)))}


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """The entries of a JSON value by their places."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            yield from leaves(entry, f"{at}.{key}" if at else str(key))
    else:
        yield at, value


def number(value: Any) -> float | None:
    if isinstance(value, str) and re.fullmatch(r"-?0x[\da-f.]+p[+-]\d+", value):
        return float.fromhex(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def of_json(a: str, b: str) -> str:
    """The first entry that differs, how many do, and the largest relative difference of numbers."""
    ours, theirs = dict(leaves(json.loads(a))), dict(leaves(json.loads(b)))
    places = [place for place in {**ours, **theirs} if ours.get(place, ...) != theirs.get(place, ...)]
    if not places:
        return "the order of entries"
    pairs = [(number(ours.get(p)), number(theirs.get(p))) for p in places]
    sizes = [abs(x - y) / max(abs(x), abs(y), 1e-300) for x, y in pairs if x is not None and y is not None]
    first = f"{places[0]}: {ours.get(places[0], 'absent')} -> {theirs.get(places[0], 'absent')}"
    largest = f", by up to {max(sizes):.1e} of a number" if sizes else ""
    return f"{len(places)} of {len(ours)} entries{largest}; {first[:160]}"


def of_text(a: str, b: str) -> str:
    """The first line that differs, and how many do."""
    ours, theirs = a.splitlines(), b.splitlines()
    pairs = list(itertools.zip_longest(ours, theirs, fillvalue="(no line)"))
    where = [k for k, (x, y) in enumerate(pairs) if x != y]
    if not where:
        return "the ends of lines"
    x, y = pairs[where[0]]
    return (
        f"lines {len(ours)} -> {len(theirs)}, from line {where[0] + 1}: {x.strip()[:90]!r} -> "
        f"{y.strip()[:90]!r}"
    )


def differences(a: Path, b: Path) -> dict[str, str]:
    """By file: what two folders of a run differ in."""
    found = {}
    for file in sorted({path.name for folder in (a, b) for path in folder.iterdir()}):
        ours, theirs = (
            (folder / file).read_text() if (folder / file).exists() else None for folder in (a, b)
        )
        if ours is None or theirs is None:
            found[file] = f"only in {a if theirs is None else b}"
        elif ours != theirs:
            found[file] = of_json(ours, theirs) if file.endswith(".json") else of_text(ours, theirs)
    return found


def kind(found: dict[str, str]) -> str:
    """In a word: what sort of difference it is."""
    sorts = {PARTS.get(file, "text") for file in found}
    if not sorts:
        return "same"
    if "inputs" in sorts:
        return "not the same model"
    if sorts <= TEXTS:
        return "text only, values and reports the same"
    return "values the same, other parts not" if "values" not in sorts else "values differ"


def compare(a: Path, b: Path, only: str, text_may_differ: bool) -> int:
    ours, theirs = runs(a, only), runs(b, only)
    counts, bad = Counter[str](), False
    for name in sorted({**ours, **theirs}):
        if name not in ours or name not in theirs:
            found, word = {}, f"only in {a if name in ours else b}"
        else:
            found = differences(ours[name], theirs[name])
            word = kind(found)
        counts[word] += 1
        bad |= word != "same" and not (text_may_differ and word.startswith("text only"))
        if word != "same":
            print(f"{name}: {word}")
            for file, what in found.items():
                print(f"    {file}: {what}")
    print(
        f"{sum(counts.values())} runs: "
        + "; ".join(f"{count} {word}" for word, count in counts.most_common())
    )
    return int(bad or not counts)
