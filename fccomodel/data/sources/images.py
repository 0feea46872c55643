"""Folders of images: a folder for each class, with image files in it.

The columns are ``image``, ``label`` (the name of the class), ``number`` (the class counted from 0, in
the order of the names) and ``file``. An image is an array [channels, height, width] in [0, 1], or what
a transform makes of the picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import arrays, drawn_rows, errors
from fccomodel.data.sources._paths import IMAGES
from fccomodel.data.sources.base import DataRequest, DataSource, RawColumn, RawTable, from_array

#: modes of pictures that are taken as they are; others become red, green and blue
MODES = ("L", "RGB")
IMAGE = "image"


@dataclass(frozen=True, eq=False)
class PictureReader:
    """The pictures of files."""

    files: tuple[Path, ...]

    def read(self, numbers: np.ndarray) -> dict[str, list[Any]]:
        """The pictures with these numbers, decoded one after another."""
        return {IMAGE: [_picture(self.files[number]) for number in numbers.tolist()]}


def _picture(file: Path) -> Any:
    """A picture of Pillow. F0506 for a file that is none."""
    from PIL import Image

    try:
        with Image.open(file) as picture:
            picture.load()
            return picture if picture.mode in MODES else picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        refuse(errors.not_an_image(file, error))


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """The image files of a folder with their classes, in the order of the names.

    A link that leads out of the folder is left out.
    """
    root = folder.resolve()
    for child in sorted(folder.iterdir()):
        inside = sorted(child.iterdir()) if child.is_dir() else [child]
        for file in inside:
            if file.suffix.lower() in IMAGES and file.is_file() and file.resolve().is_relative_to(root):
                yield file, child.name if child.is_dir() else ""


def _open(folder: Path, request: DataRequest) -> RawTable:
    import PIL  # noqa: F401 - the error of a package that is missing names it

    labelled_files = list(_files(folder))
    if not labelled_files:
        refuse(errors.no_images(folder, IMAGES))
    files = tuple(file for file, _ in labelled_files)
    reader, origin, n = PictureReader(files), str(folder), len(files)
    chosen = drawn_rows.chosen(reader, [IMAGE], n, origin, request)
    if chosen.keys is not None:
        return chosen.beside_keys()
    names = [label for _, label in labelled_files]
    _, number = np.unique(names, return_inverse=True)
    columns = {
        "label": from_array(np.array(names, dtype=object)),
        "number": from_array(number),
        "file": from_array(np.array([str(f.relative_to(folder)) for f in files], dtype=object)),
    }
    table = arrays.as_table(columns, origin, n)
    if chosen.names:
        return chosen.beside(table)

    def load(name: str) -> RawColumn:
        """A column; the images are decoded when somebody reads them."""
        if name != IMAGE:
            return columns[name]
        source = drawn_rows.RowSource(reader=reader, what=origin)
        source.add(IMAGE, IMAGE, None, None)
        return from_array(source.values(np.arange(n), None)[IMAGE])

    return RawTable(
        origin=origin,
        n=n,
        numeric={IMAGE: True, **table.numeric},
        load=load,
        vectors=frozenset([IMAGE]),
        hidden=frozenset(["number"]),
    )


SOURCE = DataSource(name="images", meaning="a folder of images", open=_open, needs=("PIL",))
