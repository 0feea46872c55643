"""Which files the paths, patterns and queries of a binding mean.

A plain path names one file and may name any. A pattern and a query find files by themselves, so
they read only below the folders that the user gave (the binding file's folder and ``--data-dir``)
and what the key ``files`` names. A link is followed only to such a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors

if TYPE_CHECKING:
    from fccomodel.data.sources.base import Request

#: Characters that make a path a pattern.
WILDCARDS = frozenset("*?")
#: Entries of folders that one pattern may look at.
LARGEST_SEARCH = 100_000


def is_pattern(value: str | Path) -> bool:
    """Whether a path has wildcards."""
    return bool(WILDCARDS & set(str(value)))


def is_file(path: Path) -> bool:
    """Whether a path is that of a file; a name that the system does not take is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def expanded(text: str | Path) -> Path:
    """A path, its ``~`` replaced by the home folder; F0505 where that is not known, or the text is no
    path."""
    if "\0" in str(text):
        refuse(errors.zero_character())
    try:
        path = Path(text).expanduser()
        path.exists()  # raises for a name too long
    except (OSError, RuntimeError, ValueError) as error:
        refuse(errors.unreadable_path(str(text), error))
    return path


def find_file(text: str | Path, folders: tuple[Path, ...]) -> Path:
    """The file that a path means: absolute, or the first that is there in ``folders``. F0505 where
    there is none, or where it is a folder, a device or a pipe."""
    path = expanded(text)
    try:
        if path.is_absolute():
            tried = [path]
        else:
            tried = [folder / path for folder in folders or (Path(),)]
        for candidate in tried:
            if candidate.is_file():
                return candidate
        there = next((candidate for candidate in tried if candidate.exists()), None)
    except OSError as error:  # a folder that may not be entered
        refuse(errors.unreadable_path(str(text), error))
    if there is not None:
        refuse(errors.folder_as_file(there) if there.is_dir() else errors.no_regular_file(there))
    refuse(errors.no_file(path.name, [candidate.parent for candidate in tried], list(_names_near(tried))))


def _names_near(tried: Iterable[Path]) -> Iterator[str]:
    """The files beside those that were tried, for a suggestion; none of a folder that cannot be listed."""
    for candidate in tried:
        try:
            yield from (entry.name for entry in _entries(candidate.parent, LARGEST_SEARCH) if entry.is_file())
        except OSError:
            continue


def _entries(folder: Path, limit: int) -> list[Path]:
    """The entries of a folder, at most ``limit`` of them."""
    found: list[Path] = []
    for entry in folder.iterdir():
        found.append(entry)
        if len(found) >= limit:
            break
    return found


def open_to_search(request: Request) -> tuple[Path, ...]:
    """The folders and files that patterns and queries of a request may read, without links."""
    named = tuple(_place(name, request.folders) for name in request.options.get("files", ()))
    return tuple(path.resolve() for path in (*(request.within or request.folders or (Path(),)), *named))


def _place(name: str, folders: tuple[Path, ...]) -> Path:
    """A folder or a file that the key ``files`` names; F0505 where it is not there."""
    path = expanded(name)
    if path.is_absolute():
        candidates = [path]
    else:
        candidates = [folder / path for folder in folders or (Path(),)]
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    if folder is not None:
        return folder
    return find_file(name, folders)


def is_below(path: Path, places: Sequence[Path]) -> bool:
    """Whether a path, its links followed, is one of some places or below one."""
    resolved = path.resolve()
    return any(resolved == place or place in resolved.parents for place in places)


def matching(pattern: str | Path, request: Request) -> list[Path]:
    """The files that a pattern such as ``part-*.parquet`` means, by name, in the first folder that has
    some.

    Raises F0505 where there are none, and where looking for them would take too long; F0537 where
    the pattern looks into a folder, or finds a link to a file, that is not open to it.
    """
    path, places = expanded(pattern), open_to_search(request)
    if "**" in path.parts:
        refuse(errors.pattern_of_all_folders(str(pattern)))
    if path.is_absolute():
        starts, parts = [Path(path.anchor)], path.parts[1:]
    else:
        starts, parts = (
            [folder for folder in request.folders or (Path(),) if is_below(folder, places)],
            path.parts,
        )
    for start in starts:
        try:
            found = sorted(filter(is_file, _expanded(start, parts, str(pattern), request, places)))
            for file in found:
                demand_below(file, request, places, f"the pattern {pattern}")
        except (OSError, RuntimeError) as error:  # a folder that may not be entered, links in a circle
            refuse(errors.unreadable_path(str(pattern), error))
        if found:
            return found
    refuse(errors.no_matching_file(str(pattern), starts))


def _expanded(
    start: Path, parts: Sequence[str], pattern: str, request: Request, places: Sequence[Path]
) -> list[Path]:
    """The paths below ``start`` whose parts match those of a pattern. A folder is listed only where it
    is open to patterns."""
    paths, seen = [start], 0
    for part in parts:
        if not is_pattern(part):
            paths = [path / part for path in paths if (path / part).exists()]
            continue
        inside: list[Path] = []
        for folder in (path for path in paths if path.is_dir()):
            demand_below(folder, request, places, f"the pattern {pattern}")
            entries = _entries(folder, LARGEST_SEARCH + 1 - seen)
            seen += len(entries)
            if seen > LARGEST_SEARCH:
                refuse(errors.pattern_too_wide(pattern, LARGEST_SEARCH))
            inside += [entry for entry in entries if fnmatchcase(entry.name, part)]
        paths = inside
    return paths


def demand_below(path: Path, request: Request, places: Sequence[Path], who: str) -> None:
    """F0537 where a file or a folder is not open to patterns and queries."""
    if not is_below(path, places):
        refuse(errors.outside_of_binding(who, path.resolve(), places, request.name))
