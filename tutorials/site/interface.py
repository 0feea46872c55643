"""What people touch: the grammar, the commands, the functions and classes in Python, what to cite."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markup import docstring, fenced, folded, heading, page, paragraph

import fccomodel
from fccomodel.app import cli
from fccomodel.app.generated import citing
from fccomodel.core import files
from fccomodel.language.lexer import grammar_text

START = """\
Every page here is written from what the library itself goes by. At a shell `fccomodel atoms NAME`, `fccomodel options NAME`,
`fccomodel algorithms NAME` and `fccomodel explain F0406` show the same."""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RULE = re.compile(r"^[?!]?(\w+)(?:\.\d)?:", re.MULTILINE)
#: Examples of a statement that are shown.
MOST = 4


# ------------------------------------------------------------------------------------------------------------- grammar
def grammar() -> str:
    """The grammar in its parts, statements with examples out of the models of ``examples``."""
    written = _statements()
    blocks = [paragraph("The syntax as the parser reads it (LALR(1), the notation of lark), with statements of the examples.")]
    for part in grammar_text().strip().split("\n\n"):
        comments = [line.removeprefix("//").strip() for line in part.splitlines() if line.startswith("//")]
        rules = "\n".join(line for line in part.splitlines() if not line.startswith("//"))
        blocks += [paragraph(" ".join(comments))] if comments else []
        blocks += [fenced(rules, "lark")] if rules else []
        blocks += [_example(word, written[word]) for word in RULE.findall(rules) if word in written]
    return page(*blocks)


def _example(word: str, statements: list[str]) -> str:
    return folded(word, fenced("\n".join(statements[:MOST]), "fcco"))


def _statements() -> dict[str, list[str]]:
    """The statements of all examples by their rules, the shortest first."""
    from fccomodel.language.parse import parse

    found: dict[str, set[str]] = {}
    for path in sorted(EXAMPLES.rglob("*.fcco")):
        source = files.read_model(path)
        for statement in parse(source).statements:
            rule = type(statement).__name__.lower().removesuffix("decl")
            found.setdefault(rule, set()).add(source.text[statement.span.start : statement.span.end])
    return {rule: sorted(texts, key=lambda one: (len(one), one)) for rule, texts in found.items()}


# ------------------------------------------------------------------------------------------------------------ commands
def commands() -> str:
    """What ``--help`` says of each."""
    return page(*(f"## fccomodel {one.name}\n\n{fenced(_help(one.name))}" for one in cli.COMMANDS))


def _help(command: str) -> str:
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        cli.main([command, "--help"])
    return told.getvalue()


# -------------------------------------------------------------------------------------------------------------- Python
def python() -> str:
    """The interface: its functions, and its classes with their methods."""
    blocks = [fenced(inspect.cleandoc(fccomodel.__doc__ or ""))]
    for name in sorted(fccomodel.__all__, key=str.lower):
        thing = getattr(fccomodel, name)
        if callable(thing):
            blocks += [heading(name, name), fenced(f"{name}{_signature(thing)}", "python"), docstring(thing)]
            blocks += [block for one in _methods(thing) for block in one] if inspect.isclass(thing) else []
    return page(*blocks)


def _methods(thing: type) -> Iterator[tuple[str, ...]]:
    """Public methods and properties with docstrings of their own."""
    for name, one in inspect.getmembers(thing):
        function = one.fget if isinstance(one, property) else one
        if name.startswith("_") or not inspect.isroutine(function) or not (function.__doc__ or "").strip():
            continue
        if not (getattr(function, "__module__", None) or "").startswith("fccomodel"):
            continue
        signature = () if isinstance(one, property) else (fenced(f"{name}{_signature(function)}", "python"),)
        yield heading(f".{name}", f"{thing.__name__}.{name}", level=3), *signature, docstring(function)


def _signature(thing: Any) -> str:
    """Names of arguments and their defaults; types are on the docstring's part."""
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    return str(inspect.Signature([one.replace(annotation=one.empty) for one in given if one.name != "self"]))


# ----------------------------------------------------------------------------------------------------------------- cite
def citing_entries() -> str:
    return "\n".join(citing.papers().values())


def cite() -> str:
    """What an answer rests on, and all papers."""
    library = citing.LIBRARY.format(version=fccomodel.__version__)
    return page(
        "# How to cite",
        "`result.cite()` prints what one answer rests on: the papers of its algorithm and theorem, what finished the run, "
        "and the library:",
        fenced(library, "bibtex"),
        "## All papers",
        fenced(citing_entries(), "bibtex"),
    )
