"""Templates: copies of the repository's examples, with binding and data, to begin with."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from fccomodel.app import errors
from fccomodel.core.diagnostics import refuse
from fccomodel.core.files import make_folder, write_text

TEMPLATES = (
    "fair_classifier",
    "neyman_pearson",
    "group_dro",
    "partial_auc",
    "cox",
    "portfolio",
    "newsvendor",
    "ranking",
    "continual_learning",
    "multi_class",
    "farmer",
    "reserve",
    "safe_policy",
)
README = """# {name}

{about}

    fccomodel check   {name}.fcco
    fccomodel explain {name}.fcco --bind {name}.toml
    fccomodel solve   {name}.fcco --bind {name}.toml --out out
    fccomodel report  out

`{name}.fcco` is the mathematics, `{name}.toml` says which data stand for its tables. Change either:
`fccomodel atoms` lists the functions that a model can use, and `--data D=FILE` binds a table of your
own whose columns have the model's names.
"""


def known() -> dict[str, str]:
    """The first sentence about every template, by its name on the command line."""
    sentences = {}
    for name in TEMPLATES:
        first_sentence = about(name).partition(".")[0].partition(":")[0]
        sentences[name.replace("_", "-")] = first_sentence
    return sentences


def about(name: str) -> str:
    """The paragraph above a template's model."""
    text = _file(f"{name}.fcco").read_text(encoding="utf-8")
    comment = re.match(r"(?:#.*\n)*", text)
    assert comment is not None
    return "\n".join(line.lstrip("# ") for line in comment[0].splitlines())


def model(template: str) -> str:
    """The text of a template's model, by its name on the command line."""
    return _file(f"{template.replace('-', '_')}.fcco").read_text(encoding="utf-8")


def write(template: str, folder: Path) -> list[Path]:
    """Copy a template into a folder; returns the paths.

    F0805 for an unknown template, F0806 if a file exists already.
    """
    name = template.replace("-", "_")
    if name not in TEMPLATES:
        refuse(errors.no_template(template, list(known())))
    binding = _file(f"{name}.toml").read_text(encoding="utf-8")
    texts = {f"{name}.fcco": _file(f"{name}.fcco").read_text(encoding="utf-8"), f"{name}.toml": binding}
    for path in re.findall(r'^source = "(?!\w+:)([^"]+)"', binding, flags=re.M):
        texts[path] = _file(path).read_text(encoding="utf-8")
    texts["README.md"] = README.format(name=name, about=about(name))
    for path in texts:
        if (folder / path).exists():
            refuse(errors.file_is_there(folder / path))
    for path, text in texts.items():
        make_folder((folder / path).parent)
        write_text(folder / path, text)
    return [folder / path for path in texts]


def _file(name: str) -> Any:
    """A file of the examples. An installed package contains them; in a checkout they are beside it."""
    package = files("fccomodel")
    for examples in (package.joinpath("examples"), package.joinpath("..", "examples")):
        for place in (examples, examples.joinpath("applications")):
            if place.joinpath(name).is_file():
                return place.joinpath(name)
    raise FileNotFoundError(f"examples/{name} is neither in the installed package nor beside it")
