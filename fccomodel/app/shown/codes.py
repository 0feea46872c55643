"""Cards of error codes: the stage, the topic, and the rules that are broken.

The rules are the docstrings of the functions that make the errors.
"""

from __future__ import annotations

import inspect
import textwrap

from fccomodel.app import errors, registry
from fccomodel.core.diagnostics import Code, refuse, registered

#: Columns of a card.
WIDTH = 80
#: The stage of an error, by the first two digits of its code.
STAGES = {
    "00": "a defect of the compiler",
    "01": "reading the text",
    "02": "names",
    "03": "shapes and types",
    "04": "domains and structure",
    "05": "binding data",
    "06": "choosing an algorithm",
    "07": "running and reporting",
    "08": "files and options",
}


def card(code: str) -> str:
    """The card of a code, at 80 columns; F0805 for an unknown code."""
    rules = catalogue()
    known = {entry.id: entry for entry in rules}
    if code not in known:
        refuse(errors.no_code(code, list(known)))
    lines = [f"{code}  {known[code].topic}", f"Stage: {STAGES[code[1:3]]}.", ""]
    for rule in rules[known[code]]:
        lines += textwrap.wrap(rule, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return "\n".join(lines)


def catalogue() -> dict[Code, list[str]]:
    """Every code with its rules, sorted by code."""
    rules: dict[str, list[str]] = {}
    for module in registry.error_modules():
        codes = {name: value.id for name, value in vars(module).items() if isinstance(value, Code)}
        functions = [value for value in vars(module).values() if inspect.isfunction(value)]
        for function in functions:
            rule = _rule(function.__doc__ or "")
            used = set(function.__code__.co_names) & set(codes)
            if rule:
                for name in used:
                    rules.setdefault(codes[name], []).append(rule)
    return {code: list(dict.fromkeys(rules.get(code.id, []))) for code in registered()}


def _rule(docstring: str) -> str:
    """The first paragraph of a docstring up to a semicolon, as a sentence on one line."""
    paragraph = inspect.cleandoc(docstring).partition("\n\n")[0]
    sentence = paragraph.partition(";")[0]
    rule = " ".join(sentence.split()).replace("``", "`").rstrip(".")
    if rule:
        return f"{rule}."
    return ""
