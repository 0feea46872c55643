"""The files that the paths, patterns and queries of a binding name.

A plain path names one file, anywhere. Patterns and queries find files by themselves, so they may read
only below the folders that the user gave (the binding file's folder and ``--data-dir``) and the files
and folders of the key ``files``. A link is followed only to such a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors

if TYPE_CHECKING:
    from fccomodel.data.sources.base import DataRequest

#: Characters that make a path a pattern.
WILDCARDS = frozenset("*?")
#: Entries of folders that one pattern may look at.
LARGEST_SEARCH = 100_000
#: Ends of the names of image files.
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def is_pattern(value: str | Path) -> bool:
    """Whether a path has wildcards."""
    return bool(WILDCARDS & set(str(value)))


def is_file(path: Path) -> bool:
    """Whether a path is an existing file; False for a name that the system does not accept."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def expanded(text: str | Path) -> Path:
    """A path with ``~`` replaced by the home folder. Raises FccoError (F0505) if the text is no path."""
    if "\0" in str(text):
        refuse(errors.zero_character())
    try:
        path = Path(text).expanduser()
        path.exists()  # raises for a name too long
    except (OSError, RuntimeError, ValueError) as error:
        refuse(errors.unreadable_path(str(text), error))
    return path


def find_file(text: str | Path, folders: tuple[Path, ...]) -> Path:
    """The file that a path names: an absolute path, or the first that exists in ``folders``.

    Raises FccoError (F0505) if there is none, or it is a folder, a device or a pipe.
    """
    path = expanded(text)
    tried = _candidates(path, folders)
    try:
        for candidate in tried:
            if candidate.is_file():
                return candidate
        existing = next((candidate for candidate in tried if candidate.exists()), None)
    except OSError as error:  # a folder that may not be entered
        refuse(errors.unreadable_path(str(text), error))
    if existing is not None:
        refuse(errors.folder_as_file(existing) if existing.is_dir() else errors.no_regular_file(existing))
    refuse(errors.no_file(path.name, [candidate.parent for candidate in tried], list(_names_near(tried))))


def _candidates(path: Path, folders: tuple[Path, ...]) -> list[Path]:
    """The paths that a path may stand for: itself if it is absolute, else one in each folder."""
    if path.is_absolute():
        return [path]
    return [folder / path for folder in folders or (Path(),)]


def _names_near(tried: Iterable[Path]) -> Iterator[str]:
    """The names of files in the same folders, for a suggestion; folders that cannot be listed have none."""
    for candidate in tried:
        try:
            yield from (entry.name for entry in _entries(candidate.parent, LARGEST_SEARCH) if entry.is_file())
        except OSError:
            continue


def _entries(folder: Path, limit: int) -> list[Path]:
    """The entries of a folder, at most ``limit`` of them."""
    entries: list[Path] = []
    for entry in folder.iterdir():
        entries.append(entry)
        if len(entries) >= limit:
            break
    return entries


def open_to_search(request: DataRequest) -> tuple[Path, ...]:
    """The folders and files that patterns and queries of a request may read, with links resolved."""
    named = tuple(_place(name, request.folders) for name in request.options.get("files", ()))
    return tuple(path.resolve() for path in (*(request.within or request.folders or (Path(),)), *named))


def _place(name: str, folders: tuple[Path, ...]) -> Path:
    """A folder or a file that the key ``files`` names. Raises FccoError (F0505) if it does not exist."""
    candidates = _candidates(expanded(name), folders)
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    if folder is not None:
        return folder
    return find_file(name, folders)


def is_below(path: Path, places: Sequence[Path]) -> bool:
    """Whether a path, with links resolved, is one of some places or below one."""
    resolved = path.resolve()
    return any(resolved == place or place in resolved.parents for place in places)


def matching(pattern: str | Path, request: DataRequest) -> list[Path]:
    """The files that match a pattern such as ``part-*.parquet``, sorted, in the first folder with any.

    Raises FccoError with F0505 if there are none or the search takes too long, and with F0537 if the
    pattern reaches a folder, or a link to a file, that is not open to it.
    """
    path, places = expanded(pattern), open_to_search(request)
    if "**" in path.parts:
        refuse(errors.pattern_of_all_folders(str(pattern)))
    if path.is_absolute():
        starts, parts = [Path(path.anchor)], path.parts[1:]
    else:
        starts = [folder for folder in request.folders or (Path(),) if is_below(folder, places)]
        parts = path.parts
    for start in starts:
        try:
            files = sorted(filter(is_file, _expanded(start, parts, str(pattern), request, places)))
            for file in files:
                demand_below(file, request, places, f"the pattern {pattern}")
        except (OSError, RuntimeError) as error:  # a folder that may not be entered, links in a circle
            refuse(errors.unreadable_path(str(pattern), error))
        if files:
            return files
    refuse(errors.no_matching_file(str(pattern), starts))


def _expanded(
    start: Path, parts: Sequence[str], pattern: str, request: DataRequest, places: Sequence[Path]
) -> list[Path]:
    """The paths below ``start`` whose parts match those of a pattern; only open folders are listed."""
    paths = [start]
    seen = 0
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


def demand_below(path: Path, request: DataRequest, places: Sequence[Path], who: str) -> None:
    """Raise FccoError (F0537) if a file or a folder is not open to patterns and queries."""
    if not is_below(path, places):
        refuse(errors.outside_of_binding(who, path.resolve(), places, request.name))


def holds_images(folder: Path) -> bool:
    """Whether a path is a folder with a folder in it, or a file that could be an image."""
    try:
        if not folder.is_dir():
            return False
        return any(child.is_dir() or child.suffix.lower() in IMAGES for child in folder.iterdir())
    except (OSError, ValueError):
        return False
